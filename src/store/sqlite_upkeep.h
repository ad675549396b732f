/* The parts of store_maintain. All on the writer, within its transaction. */
#ifndef STORE_SQLITE_UPKEEP_H
#define STORE_SQLITE_UPKEEP_H

#include <time.h>

#include "store/sqlite_gauges.h"

#define HOUR_MS 3600000
/* Buckets of a tier that are kept in one chunk; moments of gauges, too (tier raw). */
extern const unsigned tier_chunk_slots[TIERS];

/* sqlite_seal.c */
int chunk_insert(struct connection *c, uint32_t series, int tier, const struct chunk_head *h, const struct buf *head, const struct buf *data,
                 struct error *err);
/* Up to max of a series' open profiles, or of a tier's single buckets before before_ms, become one chunk. */
int seal_chunk(struct sqlite_store *s, uint32_t series, int tier, int64_t before_ms, unsigned max, struct series_state *state, struct error *err);
/* The largest profile of the hour, whole, beside the tiers. */
int pin_peak(struct sqlite_store *s, uint32_t series, int64_t hour_ms, struct error *err);

/* sqlite_roll.c: buckets that are over, until there are no more (*ret_done) or some time went by. state is brought up to date. */
int roll_profiles(struct sqlite_store *s, uint32_t series, int64_t now_ms, struct series_state *state, bool *ret_done, struct error *err);
bool roll_is_due(const struct series_state *state, int64_t now_ms);
/* Since when nothing has been rolled up to this tier: what is in a coarser one was in this one, whose buckets may all be dropped by now. */
int rolled_until(struct sqlite_store *s, enum plan_what what, uint32_t series, int tier, int64_t *ret, struct error *err);
int roll_find_pending(struct sqlite_store *s, uint32_t series, struct series_state *state, struct error *err);

/* sqlite_gauges_roll.c: the same for gauges. */
int seal_gauges(struct sqlite_store *s, uint32_t series, int tier, int64_t before_ms, struct series_state *state, struct error *err);
int roll_gauges(struct sqlite_store *s, uint32_t series, int64_t now_ms, struct series_state *state, bool *ret_done, struct error *err);
int gauges_find_pending(struct sqlite_store *s, uint32_t series, struct series_state *state, struct error *err);

/* Which tier's bucket is due; *ret_tier 0: none. pending: by tier. last_ms: of the series. */
int due_tier(const int64_t *pending, int64_t last_ms, int64_t now_ms);
/* True when a step should end: about 25 ms after began. */
bool step_is_over(const struct timespec *began);

#endif
