/*
 * When a target's turn is. Each has a fixed place in its interval, by a hash, so that a thousand targets of one interval are spread evenly
 * over it, and have the same places after a restart. Turns that were missed are left out, never made up for.
 */
#ifndef RECORD_SCHEDULE_H
#define RECORD_SCHEDULE_H

#include <stdint.h>

/* Milliseconds from now to the first turn, 0 <= it < interval; now_ms since 1970. */
int64_t schedule_first(uint64_t hash, int64_t interval_ms, int64_t now_ms);

/* The turn after the one at due_ms (any clock): a whole number of intervals later, and after now_ms. *ret_missed: turns left out. */
int64_t schedule_next(int64_t due_ms, int64_t interval_ms, int64_t now_ms, uint64_t *ret_missed);

#endif
