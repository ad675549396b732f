/* One profile as it came, one profile of a range, and which moments there are. */
#include <math.h>
#include <stdlib.h>

#include "store/sqlite_plan.h"
#include "store/sqlite_profile.h"
#include "store/sqlite_reads.h"

/* --- one moment --- */

/* A slot that was found, with its bytes. */
struct moment {
	int64_t time_ms;                /* of the (last) profile; INT64_MIN: nothing found */
	uint32_t series;
	int tier;                       /* -1: an open profile */
	struct chunk_head head;
	unsigned slot;
	struct buf body;
};

/* The last slot at or before time_ms of the row q stands on, if it is later than what was found. */
static int consider(struct moment *m, sqlite3_stmt *q, int tier, int64_t time_ms, struct error *err)
{
	struct chunk_head h;
	int failed = chunk_head_read(sqlite3_column_blob(q, 2), (size_t)sqlite3_column_bytes(q, 2), &h, err);
	if (failed)
		return failed;
	unsigned n = (unsigned)h.n;
	while (n > 0 && h.slots[n - 1].last_ms > time_ms)
		n--;
	if (n == 0 || h.slots[n - 1].last_ms <= m->time_ms) {
		chunk_head_finish(&h);
		return 0;
	}
	chunk_head_finish(&m->head);
	m->head = h;
	m->tier = tier;
	m->slot = n - 1;
	m->time_ms = h.slots[n - 1].last_ms;
	buf_reset(&m->body);
	buf_add(&m->body, sqlite3_column_blob(q, 3), (size_t)sqlite3_column_bytes(q, 3));
	return m->body.failed ? error_nomem(err, "a chunk") : 0;
}

static int look(struct connection *c, enum sqlite_statement s, uint32_t series, int tier, int64_t time_ms, struct moment *m, struct error *err)
{
	sqlite3_stmt *q = db_statement(c, s, err);
	if (!q)
		return err->code;
	int at = 1;
	sqlite3_bind_int64(q, at++, series);
	if (tier >= 0)
		sqlite3_bind_int(q, at++, tier);
	sqlite3_bind_int64(q, at, time_ms);
	int rc = db_step(c, q, "reading a profile", err);
	if (rc > 0) {
		rc = consider(m, q, tier, time_ms, err);
		if (rc == E_FORMAT)
			error_prefix(err, "%s: series %u, chunk of %lld: ", c->path, series, sqlite3_column_int64(q, 1));
		sqlite3_reset(q);
	}
	return rc;
}

static int find_moment(struct connection *c, uint32_t series, int64_t time_ms, struct moment *m, struct error *err)
{
	*m = (struct moment){ .time_ms = INT64_MIN, .series = series };
	buf_init(&m->body, CHUNK_BODY_MAX);
	int failed = look(c, S_LAST_OPEN, series, -1, time_ms, m, err);
	/* What is open is later than all that is sealed. */
	if (!failed && m->time_ms == INT64_MIN)
		failed = look(c, S_LAST_CHUNK, series, TIER_RAW, time_ms, m, err);
	/* A bucket's last profile is the one before this when it is in the bucket at hand. */
	if (!failed && m->time_ms == INT64_MIN)
		for (int t = TIER_5_MINUTES; t <= TIER_PIN && !failed; t++) {
			failed = look(c, S_LAST_CHUNK, series, t, time_ms, m, err);
			if (!failed && t < TIERS)
				failed = look(c, S_LAST_CHUNK, series, t, round_down(time_ms, tier_bucket_ms[t]) - 1, m, err);
		}
	return failed;
}

static void moment_finish(struct moment *m)
{
	chunk_head_finish(&m->head);
	buf_finish(&m->body);
}

/* Values of a tier's slot are those of its last profile. types: metrics that are wanted. */
static void row_values(const struct chunk_layout *l, unsigned types, const int64_t *columns, int64_t *values)
{
	for (int m = 0, n = 0; m < METRICS; m++)
		if (types & 1u << m)
			values[n++] = l->metrics & 1u << m ? columns[l->last[m]] : 0;
}

/* A slot of a chunk that is wanted; its source when it has one. */
struct wanted {
	unsigned slot;
	uint32_t snapshot, source;
};

/* Damage is told with its place. */
static int at_place(const struct connection *c, const struct moment *m, int failed, struct error *err)
{
	if (failed == E_FORMAT && m->head.n)
		error_prefix(err, "%s: series %u, chunk of %lld: ", c->path, m->series, (long long)m->head.slots[0].time_ms);
	return failed;
}

static int add_rows(struct assembly *a, struct chunk_reader *r, const struct wanted *w, size_t n, unsigned types, struct error *err)
{
	size_t skipped = 0;
	while (chunk_next_row(r)) {
		int64_t columns[CHUNK_COLUMNS_MAX], values[METRICS] = { 0 };
		size_t k = 0;
		for (unsigned at = 0, length; at < r->slots; at += length) {
			bool present, told = false;
			if (!chunk_next_length(r, at, &length, &present))
				break;
			if (present && (k == n || w[k].slot >= at + length)) {
				skipped++;
				continue;
			}
			if (present) {
				chunk_skip_values(r, skipped);
				skipped = 0;
				chunk_next_values(r, columns);
				told = !r->layout.tier || columns[0] & 1;
			}
			if (told)
				row_values(&r->layout, types, columns, values);
			for (; k < n && w[k].slot < at + length; k++)
				if (told)
					assembly_add(a, r->row, w[k].source, values);
		}
		if (a->failed)
			return a->failed;
	}
	return r->failed ? error_set(err, E_FORMAT, "damaged: its rows can't be read") : 0;
}

static int add_sources(struct assembly *a, const struct moment *m, struct chunk_reader *r, struct wanted *w, size_t n, uint64_t *ret_process,
                       struct error *err)
{
	struct slot_info info = { 0 };
	for (unsigned slot = 0, k = 0; k < n; slot++) {
		size_t bytes_n;
		const uint8_t *bytes = chunk_next_info(r, &bytes_n);
		if (bytes && slot != w[k].slot)
			continue;
		if (!bytes || !slot_info_read(bytes, bytes_n, m->head.slots[slot].last_ms, &info))
			return error_set(err, E_FORMAT, "damaged: what it says of where its profiles are from is cut off");
		if (a->p->n_sources == 0)
			assembly_info(a, &info);
		info.source.name = assembly_string(a, info.source.name);
		info.source.snapshot = w[k].snapshot;
		w[k++].source = profile_add_source(a->p, &info.source);
	}
	*ret_process = info.source.process;
	return 0;
}

/* Slots of one chunk, ascending: a source for each, with its rows. The reader is anybody's, and used again. */
static int add_slots(struct assembly *a, const struct moment *m, struct chunk_reader *r, struct wanted *w, size_t n, unsigned types,
                     uint64_t *ret_process, struct error *err)
{
	int failed = chunk_open(r, &m->head, m->body.data, m->body.len, err);
	if (!failed)
		failed = add_sources(a, m, r, w, n, ret_process, err);
	if (!failed)
		failed = add_rows(a, r, w, n, types, err);
	return at_place(a->c, m, failed, err);
}

static int read_moment(struct connection *c, const struct moment *m, const struct store_budget *b, struct profile **ret, struct error *err)
{
	struct assembly a;
	struct chunk_reader reader = { 0 };
	struct wanted w = { .slot = m->slot };
	uint64_t process = 0;
	int failed = assembly_begin(&a, c, b, m->head.layout.metrics, err);
	if (failed)
		return failed;
	failed = add_slots(&a, m, &reader, &w, 1, m->head.layout.metrics, &process, err);
	chunk_reader_finish(&reader);
	return assembly_end(&a, process, failed, ret, err);
}

int sqlite_read(struct store *store, uint32_t series, int64_t time_ms, const struct store_budget *b, struct profile **ret, struct error *err)
{
	struct sqlite_store *s = (struct sqlite_store *)store;
	struct error unasked;
	struct moment m = { 0 };
	err = err ? err : &unasked;
	struct connection *c = db_begin_read(s, err);
	if (!c)
		return err->code;
	int failed = find_moment(c, series, time_ms, &m, err);
	if (!failed && m.time_ms == INT64_MIN)
		failed = error_set(err, E_USAGE, "%s: series %u has no profile at or before that time", s->path, series);
	if (!failed)
		failed = read_moment(c, &m, b, ret, err);
	moment_finish(&m);
	db_end_read(s, c);
	return failed;
}

/* --- several moments --- */

/* What all the series have. */
static int common_metrics(struct connection *c, const struct store_moment *moments, size_t n, unsigned *ret, struct error *err)
{
	unsigned metrics = (1u << METRICS) - 1;
	int failed = 0;
	for (size_t i = 0; i < n && !failed; i++) {
		struct store_series_info info = { 0 };
		if (i > 0 && moments[i].series == moments[i - 1].series)
			continue;
		failed = series_identity(c, moments[i].series, &info, err);
		metrics &= info.metrics;
		free((void *)info.who.labels);
	}
	if (!failed && !metrics)
		failed = error_set(err, E_USAGE, "the series have no metric in common");
	*ret = metrics;
	return failed;
}

/* Moments of one chunk, gathered so that it is decoded once. */
struct gathering {
	struct assembly *assembly;
	struct moment moment;           /* of the first of them */
	struct chunk_reader reader;
	struct wanted *wanted;
	size_t n;
	unsigned types;
	uint64_t process;               /* of the last source */
};

static int add_gathered(struct gathering *g, struct error *err)
{
	int failed = g->n ? add_slots(g->assembly, &g->moment, &g->reader, g->wanted, g->n, g->types, &g->process, err) : 0;
	g->n = 0;
	moment_finish(&g->moment);
	return failed;
}

/* Is m of the chunk that is at hand, behind what was gathered of it? */
static bool goes_with(const struct gathering *g, const struct moment *m)
{
	return g->n && g->moment.series == m->series && g->moment.tier >= 0 && g->moment.tier == m->tier &&
	       g->moment.head.slots[0].time_ms == m->head.slots[0].time_ms && g->wanted[g->n - 1].slot < m->slot;
}

static int gather(struct gathering *g, const struct store_moment *of, bool *ret_found, struct error *err)
{
	struct moment m;
	int failed = spend(&g->assembly->spending, 0, err);
	if (failed)
		return failed;
	failed = find_moment(g->assembly->c, of->series, of->time_ms, &m, err);
	*ret_found = !failed && m.time_ms != INT64_MIN;
	if (*ret_found && !goes_with(g, &m)) {
		failed = add_gathered(g, err);
		g->moment = m;
	} else {
		moment_finish(&m);
	}
	if (*ret_found)
		g->wanted[g->n++] = (struct wanted){ .slot = m.slot, .snapshot = of->snapshot };
	return failed;
}

static int gather_all(struct assembly *a, const struct store_moment *moments, size_t n, unsigned types, bool *ret_found, uint64_t *ret_process,
                      struct error *err)
{
	struct gathering g = { .assembly = a, .types = types, .wanted = calloc(n + 1, sizeof *g.wanted) };
	int failed = g.wanted ? 0 : error_nomem(err, "moments");
	for (size_t i = 0; i < n && !failed; i++)
		failed = gather(&g, &moments[i], &ret_found[i], err);
	if (!failed)
		failed = add_gathered(&g, err);
	moment_finish(&g.moment);
	chunk_reader_finish(&g.reader);
	free(g.wanted);
	*ret_process = g.process;
	return failed;
}

int sqlite_read_moments(struct store *store, const struct store_moment *moments, size_t n, const struct store_budget *b, bool *ret_found,
                        struct profile **ret, struct error *err)
{
	struct sqlite_store *s = (struct sqlite_store *)store;
	struct error unasked;
	struct assembly a;
	unsigned types = 0;
	uint64_t process = 0;
	bool one = true;
	err = err ? err : &unasked;
	struct connection *c = db_begin_read(s, err);
	if (!c)
		return err->code;
	int failed = common_metrics(c, moments, n, &types, err);
	if (!failed)
		failed = assembly_begin(&a, c, b, types, err);
	if (!failed) {
		for (size_t i = 0; i < n; i++)
			one = one && moments[i].series == moments[0].series;
		failed = gather_all(&a, moments, n, types, ret_found, &process, err);
		if (!failed && a.p->n_sources == 0)
			failed = error_set(err, E_USAGE, "%s: there is no profile at or before that time", s->path);
		failed = assembly_end(&a, one ? process : 0, failed, ret, err);
	}
	db_end_read(s, c);
	return failed;
}

/* --- a range --- */

static int fold_visit(void *context, const struct chunk_head *h, sqlite3_stmt *q, unsigned first, unsigned end, struct error *err)
{
	struct fold *f = context;
	int failed = spend(f->spending, 0, err);
	return failed ? failed : fold_chunk(f, h, sqlite3_column_blob(q, SCAN_BODY), (size_t)sqlite3_column_bytes(q, SCAN_BODY), first, end, err);
}

static int fold_range(struct fold *f, uint32_t series, int64_t from_ms, int64_t to_ms, bool allocated, struct error *err)
{
	struct plan plan;
	int failed = plan_range(f->c, PLAN_PROFILES, series, from_ms, to_ms, TIER_DAY, &plan, err);
	for (size_t i = 0; i < plan.n && !failed; i++) {
		const struct piece *p = &plan.pieces[i];
		struct scan scan = { f->c, series, p->tier, p->from_ms, p->to_ms, fold_visit, f,
		                     .with_before = allocated && p->tier == TIER_RAW };
		f->has_before = false;
		failed = scan_chunks(&scan, err);
	}
	return failed;
}

/* Only the last slot, when nothing that counts up is asked for. */
static int fold_last(struct fold *f, uint32_t series, int64_t from_ms, int64_t to_ms, struct error *err)
{
	struct moment m = { 0 };
	int failed = find_moment(f->c, series, to_ms - 1, &m, err);
	if (!failed && m.time_ms >= from_ms)
		failed = fold_chunk(f, &m.head, m.body.data, m.body.len, m.slot, m.slot + 1, err);
	if (failed == E_FORMAT && m.head.n)
		error_prefix(err, "%s: series %u, chunk of %lld: ", f->c->path, series, (long long)m.head.slots[0].time_ms);
	moment_finish(&m);
	return failed;
}

/* False: nothing of it is left. */
static bool row_result(const struct fold *f, const struct fold_row *r, enum store_mode mode, unsigned types, int64_t *values)
{
	bool any = false;
	for (int m = 0, n = 0; m < METRICS; m++) {
		if (!(types & 1u << m))
			continue;
		int64_t v = 0;
		int k = m - INUSE_OBJECTS;
		if (m < INUSE_OBJECTS)
			v = r->increase[m];
		else if (mode == STORE_LAST)
			v = r->last_in == f->epoch ? r->last[m] : 0;
		else if (mode == STORE_AVERAGE)
			v = (int64_t)llround((double)r->sum[k] / f->total.n);
		else if (r->count > 0)
			v = r->count < f->total.n && r->max[k] < 0 ? 0 : r->max[k];
		any = any || v != 0;
		values[n++] = v;
	}
	return any;
}

static uint32_t add_source(struct assembly *a, const struct fold *f, const struct store_series_info *who)
{
	struct source s = f->info.source;
	s.name = assembly_string(a, s.name);
	for (size_t i = 0; i < who->who.n_labels; i++)
		if (strcmp(who->who.labels[i].name, "instance") == 0)
			s.name = profile_cstring(a->p, who->who.labels[i].value);
	s.rate = f->rate;
	s.header_objects = s.header_bytes = -1;
	return profile_add_source(a->p, &s);
}

struct merge {
	struct assembly assembly;
	struct fold fold;
	struct spending spending;
	enum store_mode mode;
	unsigned types;
	size_t sources;
	uint64_t process;               /* of the last source */
};

static int merge_series(struct merge *g, const struct store_series_info *who, const struct store_range *r, struct error *err)
{
	struct fold *f = &g->fold;
	bool allocated = who->metrics & (1u << ALLOC_OBJECTS | 1u << ALLOC_SPACE);
	fold_reset(f);
	int failed = g->mode == STORE_LAST && !allocated ? fold_last(f, who->series, r->from_ms, r->to_ms, err)
	                                                 : fold_range(f, who->series, r->from_ms, r->to_ms, allocated, err);
	if (failed || f->total.n == 0)
		return failed;
	if (g->sources++ == 0)
		assembly_info(&g->assembly, &f->info);
	g->process = f->info.source.process;
	uint32_t source = add_source(&g->assembly, f, who);
	for (size_t i = 0; i < f->rows.n && !g->assembly.failed; i++) {
		int64_t values[METRICS];
		if (row_result(f, &f->at[i], g->mode, g->types, values))
			assembly_add(&g->assembly, f->rows.keys[i], source, values);
	}
	return g->assembly.failed;
}

static int merge_all(struct merge *g, struct connection *c, const struct store_range *r, const struct store_budget *b, struct profile **ret,
                     struct error *err)
{
	int failed = 0;
	struct store_series_info *who = calloc(r->n_series + 1, sizeof *who);
	if (!who)
		return error_nomem(err, "the series");
	for (size_t i = 0; i < r->n_series && !failed; i++) {
		failed = series_identity(c, r->series[i], &who[i], err);
		g->types |= failed ? 0 : who[i].metrics;
	}
	if (!failed)
		failed = assembly_begin(&g->assembly, c, b, g->types ? g->types : 1u << INUSE_SPACE, err);
	if (!failed) {
		fold_init(&g->fold, c, &g->spending);
		for (size_t i = 0; i < r->n_series && !failed; i++)
			failed = merge_series(g, &who[i], r, err);
		if (!failed && g->sources == 0)
			failed = error_set(err, E_USAGE, "%s: there are no profiles in that time", c->path);
		fold_finish(&g->fold);
		failed = assembly_end(&g->assembly, g->sources == 1 ? g->process : 0, failed, ret, err);
	}
	for (size_t i = 0; i < r->n_series; i++)
		free((void *)who[i].who.labels);
	free(who);
	return failed;
}

int sqlite_merge(struct store *store, const struct store_range *r, enum store_mode mode, const struct store_budget *b, struct profile **ret,
                 struct error *err)
{
	struct sqlite_store *s = (struct sqlite_store *)store;
	struct error unasked;
	err = err ? err : &unasked;
	struct merge g = { .mode = mode, .spending = { .budget = b } };
	struct connection *c = db_begin_read(s, err);
	if (!c)
		return err->code;
	int failed = merge_all(&g, c, r, b, ret, err);
	db_end_read(s, c);
	return failed;
}

/* --- which moments there are --- */

struct times {
	int64_t *items;
	size_t n, capacity;
};

static int add_times(void *context, const struct chunk_head *h, sqlite3_stmt *q, unsigned first, unsigned end, struct error *err)
{
	struct times *t = context;
	(void)q;
	for (unsigned i = first; i < end; i++) {
		int64_t *slot = ARRAY_PUSH(t->items, t->n, t->capacity, SIZE_MAX / sizeof *t->items);
		if (!slot)
			return error_nomem(err, "the moments");
		*slot = h->slots[i].last_ms;
	}
	return 0;
}

static int by_time(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
	return (x > y) - (x < y);
}

/* Sorted, each once, in the range, and no more than max of them, the first and the last among these. */
static void tidy(struct times *t, int64_t from_ms, int64_t to_ms, size_t max)
{
	size_t n = 0;
	if (t->n)
		qsort(t->items, t->n, sizeof *t->items, by_time);
	for (size_t i = 0; i < t->n; i++)
		if (t->items[i] >= from_ms && t->items[i] < to_ms && (n == 0 || t->items[i] != t->items[n - 1]))
			t->items[n++] = t->items[i];
	if (max > 0 && n > max) {
		for (size_t i = 0; i < max; i++)
			t->items[i] = t->items[max == 1 ? n - 1 : (size_t)((unsigned __int128)i * (n - 1) / (max - 1))];
		n = max;
	}
	t->n = n;
}

int sqlite_moments(struct store *store, uint32_t series, int64_t from_ms, int64_t to_ms, size_t max, int64_t **ret_times, size_t *ret_n,
                   struct error *err)
{
	struct sqlite_store *s = (struct sqlite_store *)store;
	struct error unasked;
	struct plan plan;
	struct times t = { 0 };
	err = err ? err : &unasked;
	struct connection *c = db_begin_read(s, err);
	if (!c)
		return err->code;
	int failed = plan_range(c, PLAN_PROFILES, series, from_ms, to_ms, TIER_RAW, &plan, err);
	bool all_raw = true;
	for (size_t i = 0; i < plan.n && !failed; i++) {
		const struct piece *p = &plan.pieces[i];
		all_raw = all_raw && p->tier == TIER_RAW;
		failed = scan_chunks(&(struct scan){ c, series, p->tier, p->from_ms, p->to_ms, add_times, &t, .heads = true }, err);
	}
	if (!failed && !all_raw)
		failed = scan_chunks(&(struct scan){ c, series, TIER_PIN, from_ms, to_ms, add_times, &t, .heads = true }, err);
	db_end_read(s, c);
	if (failed) {
		free(t.items);
		return failed;
	}
	tidy(&t, from_ms, to_ms, max);
	*ret_times = t.items;
	*ret_n = t.n;
	return 0;
}
