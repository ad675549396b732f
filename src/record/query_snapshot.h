/*
 * One profile out of the store: what a selection of processes had at a moment, or over a range.
 */
#ifndef RECORD_QUERY_SNAPSHOT_H
#define RECORD_QUERY_SNAPSHOT_H

#include "record/query_selection.h"

struct snapshot_of {
	struct selecting what;
	bool range;                         /* else at */
	int64_t at_ms, from_ms, to_ms;
	enum store_mode mode;
};

/* What "match", "series", "at", "from", "to", "mode" say: now, when there is no time. */
void param_snapshot(struct params *p, struct snapshot_of *ret);
/* The base: what the parameters with base_ before them change in *now. False: there are none. */
bool param_base(struct params *p, const struct snapshot_of *now, struct snapshot_of *ret);

/* Status 404 when there is nothing. What has to be said about it: whole lines in notes. */
int snapshot_read(struct query *q, const struct snapshot_of *of, struct profile **ret, struct buf *notes, struct error *err);
/* Of several processes, at several moments side by side: each has its profile at or before the time, under a source of its own. */
int snapshot_read_moments(struct query *q, const struct selection *s, const int64_t *times_ms, size_t n_times, struct profile **ret,
                          struct error *err);
/* This recorder's own address for it: ".../api/v1/profile?match=...&at=...". */
void snapshot_add_url(const struct query *q, const struct snapshot_of *of, struct buf *out);
/* The same for one series at a moment. */
void snapshot_add_series_url(const struct query *q, uint32_t series, int64_t at_ms, struct buf *out);

/* Locations lose their lines: as if nothing were known but addresses. */
void snapshot_forget_names(struct profile *p);
/* About what it takes in memory. */
size_t snapshot_bytes(const struct profile *p);

#endif
