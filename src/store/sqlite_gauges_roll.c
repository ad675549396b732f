/* Gauges of many moments into one block, and into buckets: mean, largest, last. */
#include <math.h>
#include <stdlib.h>

#include "store/sqlite_reads.h"
#include "store/sqlite_upkeep.h"

/* Blocks that were read, in order of time. */
struct blocks {
	struct gauge_block *items;
	int64_t *ids;
	size_t n, capacity, ids_capacity, slots;
	struct numbers names;
};

static void blocks_finish(struct blocks *b)
{
	for (size_t i = 0; i < b->n; i++)
		gauge_block_finish(&b->items[i]);
	free(b->items);
	free(b->ids);
	numbers_finish(&b->names);
}

static int add_block(struct blocks *b, sqlite3_stmt *q, int column, struct error *err)
{
	bool new;
	if (!memory_grow((void **)&b->ids, &b->ids_capacity, b->n + 1, sizeof *b->ids, INDEX_NONE))
		return error_nomem(err, "gauges");
	b->ids[b->n] = sqlite3_column_int64(q, 0);
	struct gauge_block *slot = ARRAY_PUSH(b->items, b->n, b->capacity, INDEX_NONE);
	if (!slot)
		return error_nomem(err, "gauges");
	*slot = (struct gauge_block){ 0 };
	int failed = gauge_block_read(sqlite3_column_blob(q, column), (size_t)sqlite3_column_bytes(q, column), slot, err);
	for (size_t i = 0; i < slot->n_names && !failed; i++)
		if (numbers_place(&b->names, slot->names[i], &new) == INDEX_NONE)
			failed = error_nomem(err, "gauges");
	b->slots += slot->slots;
	return failed;
}

static int read_blocks(struct connection *c, sqlite3_stmt *q, struct blocks *b, int column, struct error *err)
{
	int rc;
	while ((rc = db_step(c, q, "reading gauges", err)) > 0) {
		rc = add_block(b, q, column, err);
		if (rc) {
			sqlite3_reset(q);
			return rc;
		}
	}
	return rc;
}

/* --- one block of many --- */

static int join(const struct blocks *b, struct gauge_block *ret, struct error *err)
{
	size_t at = 0;
	if (!gauge_block_init(ret, b->slots, b->names.n, b->items[0].columns))
		return error_nomem(err, "gauges");
	memcpy(ret->names, b->names.keys, b->names.n * sizeof *ret->names);
	for (size_t i = 0; i < b->n; i++) {
		const struct gauge_block *from = &b->items[i];
		memcpy(ret->times + at, from->times, from->slots * sizeof *ret->times);
		memcpy(ret->counts + at, from->counts, from->slots * sizeof *ret->counts);
		for (size_t k = 0; k < from->n_names; k++) {
			bool new;
			uint32_t name = numbers_place((struct numbers *)&b->names, from->names[k], &new);
			for (unsigned c = 0; c < ret->columns && c < from->columns; c++)
				memcpy(gauge_value(ret, name, c, at), gauge_value(from, k, c, 0), from->slots * sizeof(double));
		}
		at += from->slots;
	}
	return 0;
}

int seal_gauges(struct sqlite_store *s, uint32_t series, int tier, int64_t before_ms, struct series_state *state, struct error *err)
{
	struct connection *c = &s->writer;
	struct blocks b = { 0 };
	struct gauge_block whole = { 0 };
	sqlite3_stmt *q = db_statement(c, S_SEAL_GAUGES, err);
	if (!q)
		return err->code;
	sqlite3_bind_int64(q, 1, series);
	sqlite3_bind_int(q, 2, tier);
	sqlite3_bind_int64(q, 3, before_ms);
	sqlite3_bind_int64(q, 4, tier_chunk_slots[tier]);
	int failed = read_blocks(c, q, &b, 2, err);
	for (size_t i = 0; i < b.n && b.n > 1 && !failed; i++) {
		q = db_statement(c, S_DELETE_GAUGES, err);
		if (q)
			sqlite3_bind_int64(q, 1, b.ids[i]);
		failed = q ? db_run(c, q, "sealing gauges", err) : err->code;
	}
	if (!failed && b.n > 1) {
		failed = join(&b, &whole, err);
		if (!failed)
			failed = gauge_block_insert(c, series, tier, &whole, err);
	}
	if (tier == TIER_RAW)
		state->n_gauges -= b.n < state->n_gauges ? (uint32_t)b.n : state->n_gauges;
	gauge_block_finish(&whole);
	blocks_finish(&b);
	return failed;
}

/* --- buckets --- */

static sqlite3_stmt *range(struct connection *c, uint32_t series, int tier, int64_t from_ms, int64_t to_ms, struct error *err)
{
	sqlite3_stmt *q = db_statement(c, S_RANGE_GAUGES, err);
	if (q) {
		sqlite3_bind_int64(q, 1, series);
		sqlite3_bind_int(q, 2, tier);
		sqlite3_bind_int64(q, 3, from_ms);
		sqlite3_bind_int64(q, 4, to_ms);
	}
	return q;
}

static int find_pending(struct sqlite_store *s, uint32_t series, int tier, struct series_state *state, struct error *err)
{
	int64_t from, *pending = &state->gauges_pending_ms[tier];
	int failed = rolled_until(s, PLAN_GAUGES, series, tier, &from, err);
	*pending = INT64_MAX;
	if (failed)
		return failed;
	sqlite3_stmt *q = range(&s->writer, series, tier - 1, from, INT64_MAX, err);
	int rc = q ? 0 : err->code;
	while (q && *pending == INT64_MAX && (rc = db_step(&s->writer, q, "reading gauges", err)) > 0) {
		struct gauge_block b;
		rc = gauge_block_read(sqlite3_column_blob(q, 1), (size_t)sqlite3_column_bytes(q, 1), &b, err);
		if (rc)
			break;
		for (size_t i = 0; i < b.slots && *pending == INT64_MAX; i++)
			if (b.times[i] >= from)
				*pending = b.times[i];
		gauge_block_finish(&b);
	}
	if (q)
		sqlite3_reset(q);
	return rc < 0 ? rc : 0;
}

int gauges_find_pending(struct sqlite_store *s, uint32_t series, struct series_state *state, struct error *err)
{
	int failed = 0;
	for (int t = TIER_5_MINUTES; t < TIERS && !failed; t++)
		failed = find_pending(s, series, t, state, err);
	return failed;
}

static void add_to_bucket(const struct blocks *b, struct gauge_block *to, int64_t begin, int64_t end, double *counts)
{
	for (size_t i = 0; i < b->n; i++) {
		const struct gauge_block *from = &b->items[i];
		unsigned max_column = from->columns > 1, last_column = from->columns > 1 ? 2 : 0;
		for (size_t slot = 0; slot < from->slots; slot++) {
			if (from->times[slot] < begin || from->times[slot] >= end)
				continue;
			to->counts[0] += from->counts[slot];
			for (size_t k = 0; k < from->n_names; k++) {
				bool new;
				double mean = *gauge_value(from, k, 0, slot), n = from->counts[slot];
				uint32_t name = numbers_place((struct numbers *)&b->names, from->names[k], &new);
				double *sum = gauge_value(to, name, 0, 0), *max = gauge_value(to, name, 1, 0);
				if (isnan(mean))
					continue;
				*sum = isnan(*sum) ? mean * n : *sum + mean * n;
				*max = fmax(*max, *gauge_value(from, k, max_column, slot));
				*gauge_value(to, name, 2, 0) = *gauge_value(from, k, last_column, slot);
				counts[name] += n;
			}
		}
	}
	for (size_t k = 0; k < to->n_names; k++)
		*gauge_value(to, k, 0, 0) /= counts[k];
}

static int roll_bucket(struct sqlite_store *s, uint32_t series, int tier, int64_t begin, struct error *err)
{
	struct blocks b = { 0 };
	struct gauge_block to = { 0 };
	int64_t end = begin + tier_bucket_ms[tier];
	sqlite3_stmt *q = range(&s->writer, series, tier - 1, begin, end, err);
	int failed = q ? read_blocks(&s->writer, q, &b, 1, err) : err->code;
	double *counts = calloc(b.names.n + 1, sizeof *counts);
	if (!failed && (!counts || !gauge_block_init(&to, 1, b.names.n, GAUGE_COLUMNS)))
		failed = error_nomem(err, "gauges");
	if (!failed) {
		to.times[0] = begin;
		to.counts[0] = 0;
		memcpy(to.names, b.names.keys, b.names.n * sizeof *to.names);
		add_to_bucket(&b, &to, begin, end, counts);
		failed = gauge_block_insert(&s->writer, series, tier, &to, err);
	}
	free(counts);
	gauge_block_finish(&to);
	blocks_finish(&b);
	return failed;
}

int roll_gauges(struct sqlite_store *s, uint32_t series, int64_t now_ms, struct series_state *state, bool *ret_done, struct error *err)
{
	struct timespec began;
	int failed = 0, tier;
	clock_gettime(CLOCK_MONOTONIC, &began);
	while (!failed && (tier = due_tier(state->gauges_pending_ms, state->gauges_ms, now_ms)) != TIER_RAW && !step_is_over(&began)) {
		int64_t begin = round_down(state->gauges_pending_ms[tier], tier_bucket_ms[tier]), end = begin + tier_bucket_ms[tier];
		failed = roll_bucket(s, series, tier, begin, err);
		if (!failed && end % (tier_bucket_ms[tier] * tier_chunk_slots[tier]) == 0)
			failed = seal_gauges(s, series, tier, end, state, err);
		if (!failed)
			failed = find_pending(s, series, tier, state, err);
		if (end - 1 > state->gauges_ms)
			state->gauges_ms = end - 1;
		if (tier + 1 < TIERS && state->gauges_pending_ms[tier + 1] == INT64_MAX)
			state->gauges_pending_ms[tier + 1] = begin;
	}
	*ret_done = !failed && due_tier(state->gauges_pending_ms, state->gauges_ms, now_ms) == TIER_RAW;
	return failed;
}
