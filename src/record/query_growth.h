/*
 * A range as moments, for the ranking of what grows: whole profiles side by side. Several processes are added up moment by moment, those
 * that were there nearly all the time; one that came or went would look like growth.
 */
#ifndef RECORD_QUERY_GROWTH_H
#define RECORD_QUERY_GROWTH_H

#include "record/query_snapshot.h"

struct growth_of {
	struct selecting what;
	int64_t from_ms, to_ms;
	size_t moments;
};

struct growth_read {
	struct profile *profile;            /* profile_series of the moments */
	int64_t *times_ms;
	size_t n_times;
	uint32_t series;                    /* the only one, or UINT32_MAX */
	struct buf notes;                   /* whole lines */
};

void param_growth(struct params *p, struct growth_of *ret);
/* Status 404 when there are fewer than two moments. Finish it in any case. */
int growth_read(struct query *q, const struct growth_of *of, struct growth_read *ret, struct error *err);
void growth_finish(struct growth_read *g);

#endif
