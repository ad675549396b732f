/*
 * Which process is at the other end: what one label set's profiles and metrics say about it, and so which series they belong to. Another
 * start time, layout of memory or build than before is another process, and begins a series.
 */
#ifndef RECORD_FEED_H
#define RECORD_FEED_H

#include "profile/profile.h"
#include "store/store.h"

#define BUILD_ID_MAX 128

/* What one profile says. Zeros: it doesn't. */
struct feed_process {
	uint64_t process;
	int64_t started_ms;
	char build_id[BUILD_ID_MAX + 1];
};
void feed_process_of(const struct profile *p, int64_t started_ms, struct feed_process *ret);

struct feed {
	bool known;
	struct feed_process last;
	uint32_t series;
	int64_t last_ms;                    /* of its last profile */
	double restarts_used;               /* of FEED_RESTARTS; one is given back each minute */
	int64_t restarts_ms;                /* when that was so */
};

/* Restarts of a target in a row: behind a load balancer, or with made-up addresses, each answer would be a series. */
#define FEED_RESTARTS 20

/* Is it the process of the last one? What wasn't known before is no difference. */
bool feed_same(const struct feed *f, const struct feed_process *now);

/*
 * The series for a profile of that process, which gets a time after the last one's. *ret_restarted: another process than the last one.
 * one_process: E_LIMIT when it is another one too often.
 */
int feed_series(struct feed *f, struct store *s, const struct store_label *labels, size_t n_labels, const struct feed_process *now,
                bool one_process, int64_t *time_ms, bool *ret_restarted, struct error *err);

#endif
