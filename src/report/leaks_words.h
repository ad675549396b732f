/*
 * What the text, the Markdown and the JSON of `leaks` have in common: what is shown, and how rates, times and
 * places are worded.
 */
#ifndef REPORT_LEAKS_WORDS_H
#define REPORT_LEAKS_WORDS_H

#include "report/header.h"

struct leaks {
	const struct series *s;
	const struct leaks_options *o;
	size_t shown;               /* of s->order */
	size_t exceeding;           /* places over the gate */
	struct notes notes;
};

void leaks_init(struct leaks *l, const struct series *s, const struct leaks_options *o);
void leaks_finish(struct leaks *l);

/* "stack", "function", ... */
const char *leaks_places(const struct leaks *l);
static inline double leaks_change(const struct leaks *l, const struct growth *g)
{
	return g->values[l->s->n_snapshots - 1].value - g->values[0].value;
}

/* "+12.3 MiB/h"; a series without times: "/snapshot". */
void leaks_rate(const struct leaks *l, double rate, struct buf *out);
/* "±1.20 MiB" or "-1.00 MiB/+2.00 MiB", per hour like the rate; "" when exact. */
void leaks_rate_error(const struct leaks *l, const struct slope *slope, struct buf *out);
/* "12 snapshots over 2.00 h", and per what. */
void leaks_range(const struct leaks *l, struct buf *out);
/* "leaf ← caller ← caller", at most that many frames; escaped for the terminal. */
void leaks_place(const struct leaks *l, const struct growth *g, size_t most, struct buf *out);
/*
 * Seconds (or snapshots) until the limit when only this growth goes on from the total of now: by the rate, and by its interval
 * (high INFINITY when it may not grow at all). False without a limit, for what doesn't grow steadily, or when it is reached already.
 */
bool leaks_time_to_limit(const struct leaks *l, const struct growth *g, double *ret_value, struct interval *ret_interval);
/* "2.10 h (1.80 h to 2.60 h)". */
void leaks_time_text(const struct leaks *l, double value, struct interval i, struct buf *out);
/* What would suffice to tell, when no place grows surely; nothing otherwise. */
void leaks_advice(const struct leaks *l, struct buf *out);
/* One sentence: did the gate trip, and why. Nothing without a gate. */
void leaks_verdict(const struct leaks *l, struct buf *out);

#endif
