/*
 * Where to read a range from: whole buckets from the coarsest tier that has them, what is left at the ends from finer ones, and from
 * raw profiles at last. Where the profiles are gone the ends are rounded out to the finest buckets that are still there.
 */
#ifndef STORE_SQLITE_PLAN_H
#define STORE_SQLITE_PLAN_H

#include "store/sqlite_fold.h"

extern const int64_t tier_bucket_ms[TIERS];     /* raw: 1 */

struct piece {
	int tier;
	int64_t from_ms, to_ms;
};

#define PIECES_MAX 32

struct plan {
	struct piece pieces[PIECES_MAX];        /* one after the other in time */
	size_t n;
};

enum plan_what { PLAN_PROFILES, PLAN_GAUGES };

/* No coarser than coarsest, unless nothing finer is left. */
int plan_range(struct connection *c, enum plan_what what, uint32_t series, int64_t from_ms, int64_t to_ms, int coarsest, struct plan *ret,
               struct error *err);
/* The coarsest whose buckets don't straddle steps. */
int plan_coarsest(int64_t step_ms);
/* The end of the last bucket that was made; INT64_MIN: none. Nothing may come before it any more. */
int plan_rolled_until(struct connection *c, enum plan_what what, uint32_t series, int tier, int64_t *ret, struct error *err);

int64_t round_down(int64_t t, int64_t bucket);
int64_t round_up(int64_t t, int64_t bucket);

#endif
