/*
 * Numbers beside the profiles. A block holds some moments (or buckets) of one series: times, names, and for each name its values one
 * after the other, as differences where they are whole numbers, as most are.
 */
#include "store/sqlite_gauges.h"

#include <math.h>
#include <stdlib.h>
#include <zstd.h>

#include "store/sqlite_plan.h"
#include "store/sqlite_reads.h"

#define BLOCK_BYTES_MAX ((size_t)64 << 20)
#define WHOLE_MAX 9007199254740992.0            /* 2^53 */

/* --- blocks --- */

void gauge_block_finish(struct gauge_block *b)
{
	free(b->times);
	free(b->counts);
	free(b->names);
	free(b->values);
	*b = (struct gauge_block){ 0 };
}

bool gauge_block_init(struct gauge_block *b, size_t slots, size_t names, unsigned columns)
{
	*b = (struct gauge_block){ .slots = slots, .n_names = names, .columns = columns };
	size_t n = memory_product(memory_product(slots, names), columns);
	b->times = calloc(slots + 1, sizeof *b->times);
	b->counts = calloc(slots + 1, sizeof *b->counts);
	b->names = calloc(names + 1, sizeof *b->names);
	b->values = n < BLOCK_BYTES_MAX ? malloc((n + 1) * sizeof *b->values) : NULL;
	for (size_t i = 0; b->values && i < n; i++)
		b->values[i] = NAN;
	if (b->times && b->counts && b->names && b->values)
		return true;
	gauge_block_finish(b);
	return false;
}

double *gauge_value(const struct gauge_block *b, size_t name, unsigned column, size_t slot)
{
	return &b->values[(name * b->columns + column) * b->slots + slot];
}

static bool all_whole(const double *v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!(fabs(v[i]) < WHOLE_MAX) || v[i] != nearbyint(v[i]) || (v[i] == 0 && signbit(v[i])))
			return false;
	return true;
}

void gauge_block_write(const struct gauge_block *b, struct buf *out)
{
	int64_t before = 0;
	varint_add(out, b->slots);
	varint_add(out, b->n_names);
	varint_add(out, b->columns);
	for (size_t i = 0; i < b->slots; i++) {
		varint_add_signed(out, b->times[i] - before);
		before = b->times[i];
		if (b->columns > 1)
			varint_add(out, b->counts[i]);
	}
	for (size_t k = 0; k < b->n_names; k++) {
		varint_add(out, b->names[k]);
		for (unsigned c = 0; c < b->columns; c++) {
			const double *v = gauge_value(b, k, c, 0);
			bool whole = all_whole(v, b->slots);
			varint_add(out, whole);
			for (size_t i = 0; i < b->slots; i++)
				if (whole)
					varint_add_signed(out, (int64_t)v[i] - (i ? (int64_t)v[i - 1] : 0));
				else
					varint_add_double(out, v[i]);
		}
	}
}

static bool read_values(struct varint_reader *r, double *v, size_t n)
{
	uint64_t whole = varint_next(r), sum = 0;
	for (size_t i = 0; i < n && !r->failed; i++) {
		if (whole)
			v[i] = (double)(int64_t)(sum += (uint64_t)varint_next_signed(r));
		else
			v[i] = varint_next_double(r);
	}
	return whole <= 1 && !r->failed;
}

static int bad(struct error *err)
{
	return error_set(err, E_FORMAT, "a block of gauges is damaged");
}

static int read_plain(const uint8_t *bytes, size_t n, struct gauge_block *ret, struct error *err)
{
	struct varint_reader r = { bytes, bytes + n, false };
	struct gauge_block b;
	int64_t before = 0;
	uint64_t slots = varint_next(&r), names = varint_next(&r), columns = varint_next(&r);
	if (r.failed || slots > n || names > n || columns == 0 || columns > GAUGE_COLUMNS)
		return bad(err);
	if (!gauge_block_init(&b, slots, names, (unsigned)columns))
		return error_nomem(err, "gauges");
	for (size_t i = 0; i < b.slots; i++) {
		b.times[i] = before = (int64_t)((uint64_t)before + (uint64_t)varint_next_signed(&r));
		b.counts[i] = columns > 1 ? (uint32_t)varint_next(&r) : 1;
	}
	bool ok = !r.failed;
	for (size_t k = 0; k < b.n_names && ok; k++) {
		b.names[k] = (uint32_t)varint_next(&r);
		for (unsigned c = 0; c < b.columns && ok; c++)
			ok = read_values(&r, gauge_value(&b, k, c, 0), b.slots);
	}
	if (!ok || r.at != r.end) {
		gauge_block_finish(&b);
		return bad(err);
	}
	*ret = b;
	return 0;
}

int gauge_block_read(const void *bytes, size_t n, struct gauge_block *ret, struct error *err)
{
	if (n < 4 || memcmp(bytes, "\x28\xb5\x2f\xfd", 4) != 0)
		return read_plain(bytes, n, ret, err);
	unsigned long long size = ZSTD_getFrameContentSize(bytes, n);
	if (size > BLOCK_BYTES_MAX)
		return bad(err);
	uint8_t *plain = malloc((size_t)size + 1);
	if (!plain)
		return error_nomem(err, "gauges");
	size_t got = ZSTD_decompress(plain, (size_t)size, bytes, n);
	int failed = ZSTD_isError(got) || got != size ? bad(err) : read_plain(plain, got, ret, err);
	free(plain);
	return failed;
}

int gauge_block_insert(struct connection *c, uint32_t series, int tier, const struct gauge_block *b, struct error *err)
{
	struct buf plain, packed;
	buf_init(&plain, BLOCK_BYTES_MAX);
	buf_init(&packed, 2 * BLOCK_BYTES_MAX);
	gauge_block_write(b, &plain);
	const struct buf *bytes = &plain;
	if (b->slots > 1 && !plain.failed && buf_reserve(&packed, ZSTD_compressBound(plain.len))) {
		size_t n = ZSTD_compress(packed.data, ZSTD_compressBound(plain.len), plain.data, plain.len, 3);
		packed.failed = ZSTD_isError(n);
		packed.len = packed.failed ? 0 : n;
		bytes = &packed;
	}
	int failed = bytes->failed || plain.failed ? error_nomem(err, "gauges") : 0;
	sqlite3_stmt *q = failed ? NULL : db_statement(c, S_ADD_GAUGES, err);
	if (q) {
		sqlite3_bind_int64(q, 1, series);
		sqlite3_bind_int(q, 2, tier);
		sqlite3_bind_int64(q, 3, b->times[0]);
		sqlite3_bind_int64(q, 4, b->times[b->slots - 1]);
		sqlite3_bind_blob64(q, 5, bytes->data, bytes->len, SQLITE_STATIC);
		failed = db_run(c, q, "writing gauges", err);
	} else if (!failed) {
		failed = err->code;
	}
	buf_finish(&plain);
	buf_finish(&packed);
	return failed;
}

/* --- in --- */

static int append_gauges(struct sqlite_store *s, uint32_t series, int64_t time_ms, const struct store_gauge *gauges, size_t n,
                         struct series_state **ret, struct error *err)
{
	struct gauge_block b;
	int failed = series_state(s, series, ret, err);
	if (failed)
		return failed;
	if (time_ms <= (*ret)->gauges_ms)
		return error_set(err, E_USAGE, "%s: gauges of series %u that are not after its last ones", s->path, series);
	if (!gauge_block_init(&b, 1, n, 1))
		return error_nomem(err, "gauges");
	b.times[0] = time_ms;
	for (size_t i = 0; i < n && !failed; i++) {
		*gauge_value(&b, i, 0, 0) = gauges[i].value;
		failed = translator_string(s, gauges[i].name, strlen(gauges[i].name), &b.names[i], err);
		if (!failed)
			failed = sweep_keep(&s->sweep, &s->writer, SWEEP_STRINGS, b.names[i], SWEEP_NEVER, err);
	}
	if (!failed)
		failed = gauge_block_insert(&s->writer, series, TIER_RAW, &b, err);
	gauge_block_finish(&b);
	return failed;
}

static void note_gauges(struct series_state *state, int64_t time_ms)
{
	state->gauges_ms = time_ms;
	state->n_gauges++;
	if (state->gauges_pending_ms[TIER_5_MINUTES] == INT64_MAX)
		state->gauges_pending_ms[TIER_5_MINUTES] = time_ms;
}

int sqlite_append_gauges(struct store *store, uint32_t series, int64_t time_ms, const struct store_gauge *gauges, size_t n, struct error *err)
{
	struct sqlite_store *s = (struct sqlite_store *)store;
	struct error unasked;
	struct series_state *state;
	err = err ? err : &unasked;
	if (n == 0)
		return 0;
	if (n > STORE_GAUGES_MAX)
		return error_set(err, E_USAGE, "at most %d gauges of a series, not %zu", STORE_GAUGES_MAX, n);
	int failed = db_begin_write(s, err);
	if (failed)
		return failed;
	failed = append_gauges(s, series, time_ms, gauges, n, &state, err);
	failed = db_finish_write(s, failed, err);
	if (!failed)
		note_gauges(state, time_ms);
	pthread_mutex_unlock(&s->write_lock);
	return failed;
}

/* --- out --- */

struct collecting {
	struct connection *c;
	struct spending spending;
	struct numbers names;           /* a store's string to an index of ret->names */
	struct store_gauges *ret;
	size_t points_capacity, names_capacity, first;
	uint32_t series;
	int64_t from_ms, to_ms, step_ms;
	uint32_t *counts;               /* beside the points: profiles in each */
	size_t counts_capacity;
};

static int name_index(struct collecting *g, uint32_t name, uint32_t *ret, struct error *err)
{
	bool new;
	uint32_t at = numbers_place(&g->names, name, &new);
	if (at == INDEX_NONE)
		return error_nomem(err, "gauges");
	*ret = at;
	if (!new)
		return 0;
	sqlite3_stmt *q = db_statement(g->c, S_GET_STRING, err);
	if (!q)
		return err->code;
	sqlite3_bind_int64(q, 1, name);
	int rc = db_step(g->c, q, "reading gauges", err);
	if (rc <= 0)
		return rc ? rc : error_set(err, E_FORMAT, "%s: damaged: string %u is missing", g->c->path, name);
	const char **slot = ARRAY_PUSH(g->ret->names, g->ret->n_names, g->names_capacity, INDEX_NONE);
	if (slot)
		*slot = strndup(sqlite3_column_blob(q, 0) ? sqlite3_column_blob(q, 0) : "", (size_t)sqlite3_column_bytes(q, 0));
	sqlite3_reset(q);
	return slot && *slot ? 0 : error_nomem(err, "gauges");
}

static int add_point(struct collecting *g, uint32_t name, int64_t time, double mean, double max, double last, uint32_t n, struct error *err)
{
	struct store_gauge_point p = { g->series, name, time, mean, max, last };
	if (isnan(last))
		return 0;
	int failed = spend(&g->spending, sizeof p, err);
	if (failed)
		return failed;
	if (!memory_grow((void **)&g->counts, &g->counts_capacity, g->ret->n_points + 1, sizeof *g->counts, INDEX_NONE))
		return error_nomem(err, "gauges");
	g->counts[g->ret->n_points] = n;
	struct store_gauge_point *slot = ARRAY_PUSH(g->ret->points, g->ret->n_points, g->points_capacity, INDEX_NONE);
	if (!slot)
		return error_nomem(err, "gauges");
	*slot = p;
	return 0;
}

static int add_block(struct collecting *g, const struct gauge_block *b, struct error *err)
{
	int failed = 0;
	for (size_t k = 0; k < b->n_names && !failed; k++) {
		uint32_t name = 0;
		failed = name_index(g, b->names[k], &name, err);
		for (size_t i = 0; i < b->slots && !failed; i++) {
			if (b->times[i] < g->from_ms || b->times[i] >= g->to_ms)
				continue;
			double mean = *gauge_value(b, k, 0, i);
			failed = add_point(g, name, b->times[i], mean, b->columns > 1 ? *gauge_value(b, k, 1, i) : mean,
			                   b->columns > 1 ? *gauge_value(b, k, 2, i) : mean, b->counts[i], err);
		}
	}
	return failed;
}

static int scan_gauges(struct collecting *g, int tier, int64_t from_ms, int64_t to_ms, struct error *err)
{
	int rc;
	sqlite3_stmt *q = db_statement(g->c, S_RANGE_GAUGES, err);
	if (!q)
		return err->code;
	sqlite3_bind_int64(q, 1, g->series);
	sqlite3_bind_int(q, 2, tier);
	sqlite3_bind_int64(q, 3, from_ms);
	sqlite3_bind_int64(q, 4, to_ms);
	g->from_ms = from_ms;
	g->to_ms = to_ms;
	while ((rc = db_step(g->c, q, "reading gauges", err)) > 0) {
		struct gauge_block b;
		rc = gauge_block_read(sqlite3_column_blob(q, 1), (size_t)sqlite3_column_bytes(q, 1), &b, err);
		if (!rc) {
			rc = add_block(g, &b, err);
			gauge_block_finish(&b);
		} else {
			error_prefix(err, "%s: series %u at %lld: ", g->c->path, g->series, sqlite3_column_int64(q, 0));
		}
		if (rc) {
			sqlite3_reset(q);
			return rc;
		}
	}
	return rc;
}

struct ordered {
	struct store_gauge_point point;
	uint32_t n;
};

static int by_name_and_time(const void *a, const void *b)
{
	const struct ordered *x = a, *y = b;
	if (x->point.name != y->point.name)
		return x->point.name < y->point.name ? -1 : 1;
	return (x->point.time_ms > y->point.time_ms) - (x->point.time_ms < y->point.time_ms);
}

/* Sorted, and put together in steps. */
static int tidy_series(struct collecting *g, struct error *err)
{
	size_t n = g->ret->n_points - g->first, kept = g->first;
	struct ordered *all = malloc((n + 1) * sizeof *all);
	if (!all)
		return error_nomem(err, "gauges");
	for (size_t i = 0; i < n; i++)
		all[i] = (struct ordered){ g->ret->points[g->first + i], g->counts[g->first + i] };
	qsort(all, n, sizeof *all, by_name_and_time);
	for (size_t i = 0, end; i < n; i = end) {
		struct store_gauge_point p = all[i].point;
		double sum = p.mean * all[i].n, count = all[i].n;
		p.time_ms = g->step_ms ? round_down(p.time_ms, g->step_ms) : p.time_ms;
		for (end = i + 1; end < n && g->step_ms && all[end].point.name == p.name &&
		                  round_down(all[end].point.time_ms, g->step_ms) == p.time_ms; end++) {
			sum += all[end].point.mean * all[end].n;
			count += all[end].n;
			p.max = fmax(p.max, all[end].point.max);
			p.last = all[end].point.last;
		}
		p.mean = end > i + 1 ? sum / count : p.mean;
		g->ret->points[kept++] = p;
	}
	g->ret->n_points = kept;
	free(all);
	return 0;
}

static int read_series(struct collecting *g, const struct store_range *r, struct error *err)
{
	struct plan plan;
	g->first = g->ret->n_points;
	int failed = plan_range(g->c, PLAN_GAUGES, g->series, r->from_ms, r->to_ms, plan_coarsest(g->step_ms), &plan, err);
	for (size_t i = 0; i < plan.n && !failed; i++)
		failed = scan_gauges(g, plan.pieces[i].tier, plan.pieces[i].from_ms, plan.pieces[i].to_ms, err);
	return failed ? failed : tidy_series(g, err);
}

int sqlite_read_gauges(struct store *store, const struct store_range *r, int64_t step_ms, const struct store_budget *b,
                       struct store_gauges *ret, struct error *err)
{
	struct sqlite_store *s = (struct sqlite_store *)store;
	struct store_gauges found = { 0 };
	struct error unasked;
	err = err ? err : &unasked;
	if (step_ms < 0)
		return error_set(err, E_USAGE, "a step of less than nothing");
	struct collecting g = { .spending = { .budget = b }, .ret = &found, .step_ms = step_ms };
	if (!(g.c = db_begin_read(s, err)))
		return err->code;
	int failed = 0;
	for (size_t i = 0; i < r->n_series && !failed; i++) {
		g.series = r->series[i];
		failed = read_series(&g, r, err);
	}
	db_end_read(s, g.c);
	numbers_finish(&g.names);
	free(g.counts);
	if (failed)
		store_gauges_finish(&found);
	else
		*ret = found;
	return failed;
}
