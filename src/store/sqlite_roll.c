/*
 * Buckets. One is made when its time is over: when a later profile is there, or an hour went by without one. From then on the series takes
 * nothing that would belong into it, so that a bucket and the profiles it was made of can never disagree.
 */
#include <math.h>
#include <stdlib.h>
#include <time.h>

#include "store/sqlite_upkeep.h"

#define STEP_NS 25000000
#define TIER_LEVEL 3

bool step_is_over(const struct timespec *began)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (now.tv_sec - began->tv_sec) * 1000000000LL + now.tv_nsec - began->tv_nsec > STEP_NS;
}

/* What is before the horizon is all in buckets of the finer tier. */
int due_tier(const int64_t *pending, int64_t last_ms, int64_t now_ms)
{
	int64_t horizon = now_ms - HOUR_MS > last_ms ? now_ms - HOUR_MS : last_ms;
	for (int t = TIER_5_MINUTES; t < TIERS; t++) {
		if (pending[t] == INT64_MAX)
			continue;
		int64_t begin = round_down(pending[t], tier_bucket_ms[t]);
		if (begin + tier_bucket_ms[t] <= horizon)
			return t;
		horizon = begin < horizon ? begin : horizon;
	}
	return TIER_RAW;
}

bool roll_is_due(const struct series_state *state, int64_t now_ms)
{
	return !state->has_pending || due_tier(state->pending_ms, state->profile_ms, now_ms) != TIER_RAW ||
	       due_tier(state->gauges_pending_ms, state->gauges_ms, now_ms) != TIER_RAW;
}

/* --- what is pending --- */

static int first_slot(void *context, const struct chunk_head *h, sqlite3_stmt *q, unsigned first, unsigned end, struct error *err)
{
	(void)q;
	(void)end;
	(void)err;
	*(int64_t *)context = h->slots[first].time_ms;
	return 1;
}

int rolled_until(struct sqlite_store *s, enum plan_what what, uint32_t series, int tier, int64_t *ret, struct error *err)
{
	int failed = 0;
	*ret = INT64_MIN;
	for (int t = tier; t < TIERS && !failed; t++) {
		int64_t until = INT64_MIN;
		failed = plan_rolled_until(&s->writer, what, series, t, &until, err);
		*ret = until > *ret ? until : *ret;
	}
	return failed;
}

static int find_pending(struct sqlite_store *s, uint32_t series, int tier, struct series_state *state, struct error *err)
{
	int64_t from;
	int failed = rolled_until(s, PLAN_PROFILES, series, tier, &from, err);
	state->pending_ms[tier] = INT64_MAX;
	if (failed)
		return failed;
	failed = scan_chunks(&(struct scan){ &s->writer, series, tier - 1, from, INT64_MAX, first_slot, &state->pending_ms[tier],
	                         .heads = true }, err);
	return failed < 0 ? failed : 0;
}

int roll_find_pending(struct sqlite_store *s, uint32_t series, struct series_state *state, struct error *err)
{
	int failed = 0;
	for (int t = TIER_5_MINUTES; t < TIERS && !failed; t++)
		failed = find_pending(s, series, t, state, err);
	return failed;
}

/* --- one bucket --- */

static int fold_visit(void *context, const struct chunk_head *h, sqlite3_stmt *q, unsigned first, unsigned end, struct error *err)
{
	return fold_chunk(context, h, sqlite3_column_blob(q, SCAN_BODY), (size_t)sqlite3_column_bytes(q, SCAN_BODY), first, end, err);
}

static int by_row(const void *a, const void *b, void *context)
{
	const uint32_t *keys = context;
	uint32_t x = keys[*(const uint32_t *)a], y = keys[*(const uint32_t *)b];
	return (x > y) - (x < y);
}

static bool row_columns(const struct fold *f, const struct fold_row *r, const struct chunk_layout *l, int64_t *v)
{
	bool last = r->last_in == f->epoch, any = r->count > 0;
	v[0] = (int64_t)r->count << 1 | last;
	for (int m = 0; m < METRICS; m++) {
		if (l->sum[m] < 0)
			continue;
		v[l->sum[m]] = m < INUSE_OBJECTS ? r->increase[m] : r->sum[m - INUSE_OBJECTS];
		v[l->last[m]] = last ? r->last[m] : 0;
		if (m >= INUSE_OBJECTS)
			v[l->max[m]] = r->count ? r->max[m - INUSE_OBJECTS] : 0;
		any = any || v[l->sum[m]];
	}
	return any;
}

static int write_rows(struct fold *f, struct chunk_writer *w, uint64_t *ret_rows, struct error *err)
{
	uint32_t *order = malloc((f->rows.n + 1) * sizeof *order);
	if (!order)
		return error_nomem(err, "a bucket");
	for (size_t i = 0; i < f->rows.n; i++)
		order[i] = (uint32_t)i;
	qsort_r(order, f->rows.n, sizeof *order, by_row, f->rows.keys);
	*ret_rows = 0;
	for (size_t i = 0; i < f->rows.n; i++) {
		int64_t v[CHUNK_COLUMNS_MAX];
		if (!row_columns(f, &f->at[order[i]], &w->layout, v))
			continue;
		chunk_add_single(w, f->rows.keys[order[i]], v);
		++*ret_rows;
	}
	free(order);
	return 0;
}

static int write_bucket(struct sqlite_store *s, struct fold *f, uint32_t series, int tier, int64_t begin, struct error *err)
{
	struct chunk_writer w;
	struct buf head, data;
	struct chunk_slot slot = f->total;
	struct chunk_head h = { chunk_layout(f->metrics, true), &slot, 1 };
	/* Of a metric that some of its profiles don't have. */
	for (int m = 0; m < METRICS; m++) {
		slot.sum[m] = isnan(slot.sum[m]) ? 0 : slot.sum[m];
		slot.max[m] = isnan(slot.max[m]) ? 0 : slot.max[m];
		slot.last[m] = isnan(slot.last[m]) ? 0 : slot.last[m];
	}
	slot.time_ms = begin;
	if (f->rate != f->info.source.rate)     /* the first thing in it */
		memcpy(f->info_bytes.data, &f->rate, sizeof f->rate);
	chunk_writer_init(&w);
	buf_init(&head, 1 << 20);
	buf_init(&data, CHUNK_BODY_MAX);
	chunk_writer_begin(&w, h.layout, 1);
	chunk_add_info(&w, f->info_bytes.data, f->info_bytes.len);
	int failed = write_rows(f, &w, &slot.samples, err);
	chunk_head_write(&h, &head);
	if (!failed)
		failed = chunk_writer_end(&w, TIER_LEVEL, &data, err);
	if (!failed)
		failed = head.failed || data.failed ? error_nomem(err, "a bucket")
		                                    : chunk_insert(&s->writer, series, tier, &h, &head, &data, err);
	chunk_writer_finish(&w);
	buf_finish(&head);
	buf_finish(&data);
	return failed;
}

static int roll_bucket(struct sqlite_store *s, struct fold *f, uint32_t series, int tier, int64_t begin, struct error *err)
{
	fold_reset(f);
	int failed = scan_chunks(&(struct scan){ &s->writer, series, tier - 1, begin, begin + tier_bucket_ms[tier], fold_visit, f,
	                                         .with_before = tier == TIER_5_MINUTES }, err);
	if (!failed && f->total.n == 0)
		return error_set(err, E_FORMAT, "%s: damaged: series %u has nothing at %lld", s->path, series, (long long)begin);
	if (!failed)
		failed = write_bucket(s, f, series, tier, begin, err);
	if (!failed && tier == TIER_HOUR)
		failed = pin_peak(s, series, begin, err);
	return failed;
}

/* --- a series --- */

static int roll_one(struct sqlite_store *s, struct fold *f, uint32_t series, int tier, struct series_state *state, struct error *err)
{
	int64_t begin = round_down(state->pending_ms[tier], tier_bucket_ms[tier]), end = begin + tier_bucket_ms[tier];
	int failed = roll_bucket(s, f, series, tier, begin, err);
	if (!failed && end % (tier_bucket_ms[tier] * tier_chunk_slots[tier]) == 0)
		failed = seal_chunk(s, series, tier, end, tier_chunk_slots[tier], state, err);
	if (!failed)
		failed = find_pending(s, series, tier, state, err);
	if (end - 1 > state->last_ms)
		state->last_ms = end - 1;
	if (tier + 1 < TIERS && state->pending_ms[tier + 1] == INT64_MAX)
		state->pending_ms[tier + 1] = begin;
	return failed;
}

int roll_profiles(struct sqlite_store *s, uint32_t series, int64_t now_ms, struct series_state *state, bool *ret_done, struct error *err)
{
	struct timespec began;
	struct spending spending = { .budget = &(struct store_budget){ .max_bytes = (size_t)1 << 30 } };
	struct fold f;
	int failed = 0, tier;
	clock_gettime(CLOCK_MONOTONIC, &began);
	fold_init(&f, &s->writer, &spending);
	while (!failed && (tier = due_tier(state->pending_ms, state->profile_ms, now_ms)) != TIER_RAW && !step_is_over(&began)) {
		spending.bytes = 0;
		failed = roll_one(s, &f, series, tier, state, err);
	}
	fold_finish(&f);
	*ret_done = !failed && due_tier(state->pending_ms, state->profile_ms, now_ms) == TIER_RAW;
	return failed;
}
