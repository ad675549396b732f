/*
 * The series that a query is about, and how gauges of several are put together: never added up over time.
 *
 * A place is one or several series that followed each other (a process and the one after its restart, a pod and the one that replaced
 * it): series in one place are never there at once. There are as many places as there were processes at once, no more. The largest values
 * of a place's series become one by taking the largest, the last ones by taking the last, and only places are added up. Means are weighted
 * by the part of the time in which the process was there.
 */
#ifndef RECORD_QUERY_SELECTION_H
#define RECORD_QUERY_SELECTION_H

#include "record/api_private.h"

struct chosen {
	const struct store_series_info *info;
	int64_t interval_ms;                /* between its profiles, on average; a guess when it has only one */
	int64_t first_ms, last_ms;          /* of its profiles, clipped to the range */
	unsigned place;
};

struct selection {
	struct chosen *items;               /* by first profile */
	size_t n;
	unsigned n_places;
	int64_t from_ms, to_ms;             /* as asked */
	int64_t first_ms, last_ms;          /* of all; 0 when there is none */
	struct selection_list *lists;       /* what info points into */
	size_t n_lists;
	struct place_sum *sums;             /* room for selection_weights */
};

/* What selects: parameters "match" and "series", or "base_match" and "base_series". */
struct selecting {
	const char **match, **series;
	size_t n_match, n_series;
};
void param_selecting(struct params *p, const char *match, const char *series, struct selecting *ret);

/* Those with profiles in the range; n may be 0. Finish it in any case. */
int selection_make(struct query *q, const struct selecting *what, int64_t from_ms, int64_t to_ms, struct selection *ret, struct error *err);
void selection_finish(struct selection *s);

/*
 * Only those that are there at time_ms: the newest process of each label set, and each process once, if its last profile isn't older than
 * three of its intervals.
 */
void selection_keep_alive(struct selection *s, int64_t time_ms);

/* How long after its last profile a process counts as there. */
int64_t chosen_patience_ms(const struct chosen *c);

/*
 * The part of from_ms .. to_ms (and of the time when any of the selection was there) in which each one was; 0 where has is false. has, ret: one
 * for each of s->items; has NULL: all.
 */
void selection_weights(const struct selection *s, int64_t from_ms, int64_t to_ms, const bool *has, double *ret);

bool selection_same_labels(const struct store_series_info *a, const struct store_series_info *b);
/* {"instance":"a","job":"b"} under that key. */
struct json;
void selection_add_labels(struct json *j, const char *key, const struct store_series_info *info);
/* {instance="a",job="b"}; "{}" without labels. */
void selection_add_selector(struct buf *out, const struct store_series_info *info);

#endif
