/* Row by row through each chunk: a run counts as often as it is long. */
#include "store/sqlite_fold.h"

#include <math.h>
#include <stdlib.h>

void fold_init(struct fold *f, struct connection *c, struct spending *s)
{
	*f = (struct fold){ .c = c, .spending = s };
	buf_init(&f->info_bytes, 1 << 21);
	fold_reset(f);
}

void fold_reset(struct fold *f)
{
	if (f->rows.index.slots)
		memset(f->rows.index.slots, 0, (f->rows.index.mask + 1) * sizeof *f->rows.index.slots);
	f->rows.index.n = f->rows.n = 0;
	f->epoch = 0;
	f->has_before = false;
	f->metrics = 0;
	f->rate = 0;
	f->total = (struct chunk_slot){ 0 };
	for (int m = 0; m < METRICS; m++)
		f->total.sum[m] = f->total.max[m] = f->total.last[m] = NAN;
	f->info = (struct slot_info){ .default_metric = -1, .source = { .header_objects = -1, .header_bytes = -1 } };
}

void fold_finish(struct fold *f)
{
	numbers_finish(&f->rows);
	free(f->at);
	free(f->matrix);
	buf_finish(&f->info_bytes);
	chunk_reader_finish(&f->reader);
}

static int64_t times(int64_t a, unsigned n)
{
	int64_t product;
	if (!__builtin_mul_overflow(a, (int64_t)n, &product))
		return product;
	return a < 0 ? INT64_MIN : INT64_MAX;
}

/* The place of a row; INDEX_NONE: err is worded. */
static uint32_t find_row(struct fold *f, uint32_t row, struct error *err)
{
	bool new;
	if (f->next < f->rows.n && f->rows.keys[f->next] == row)
		return f->next++;
	uint32_t at = numbers_place(&f->rows, row, &new);
	f->next = new ? f->next : at + 1;
	if (at == INDEX_NONE || !memory_grow((void **)&f->at, &f->at_capacity, (size_t)at + 1, sizeof *f->at, INDEX_NONE)) {
		error_nomem(err, "the stacks of a range");
		return INDEX_NONE;
	}
	if (new) {
		f->at[at] = (struct fold_row){ .base = INDEX_NONE, .max = { INT64_MIN, INT64_MIN } };
		if (spend(f->spending, sizeof *f->at + 32, err))
			return INDEX_NONE;
	}
	return at;
}

static uint32_t find_base(struct fold *f, uint32_t at, struct error *err)
{
	if (f->at[at].base != INDEX_NONE)
		return f->at[at].base;
	uint32_t row = f->rows.keys[at];
	sqlite3_stmt *q = db_statement(f->c, S_GET_ROW, err);
	if (!q)
		return INDEX_NONE;
	sqlite3_bind_int64(q, 1, row);
	int rc = db_step(f->c, q, "reading stacks", err);
	if (rc == 0)
		error_set(err, E_FORMAT, "%s: damaged: row %u is missing", f->c->path, row);
	if (rc <= 0)
		return INDEX_NONE;
	bool own = sqlite3_column_type(q, 2) == SQLITE_NULL;
	uint32_t base_row = own ? row : (uint32_t)sqlite3_column_int64(q, 2);
	sqlite3_reset(q);
	uint32_t base = own ? at : find_row(f, base_row, err);
	if (base != INDEX_NONE)
		f->at[at].base = base;
	return base;
}

/* --- slots as a whole --- */

static double more(double a, double b)
{
	return isnan(a) ? b : isnan(b) ? a : a + b;
}

static void add_totals(struct fold *f, const struct chunk_head *h, unsigned i)
{
	const struct chunk_slot *s = &h->slots[i];
	struct chunk_slot *t = &f->total;
	if (t->n == 0)
		t->time_ms = s->time_ms;
	t->last_ms = s->last_ms;
	for (int m = 0; m < METRICS; m++) {
		if (m >= INUSE_OBJECTS)
			t->sum[m] = more(t->sum[m], s->sum[m]);
		else if (h->layout.tier)
			t->sum[m] = more(t->sum[m], s->sum[m]);
		t->max[m] = fmax(t->max[m], s->max[m]);
		t->last[m] = s->last[m];
	}
	t->n += s->n;
}

static int add_infos(struct fold *f, const struct chunk_head *h, unsigned first, unsigned end, struct error *err)
{
	for (unsigned i = 0; i < end; i++) {
		size_t n;
		const uint8_t *bytes = chunk_next_info(&f->reader, &n);
		if (!bytes || (i >= first && !slot_info_read(bytes, n, h->slots[i].last_ms, &f->info)))
			return error_set(err, E_FORMAT, "damaged: what it says of where its profiles are from is cut off");
		if (i < first)
			continue;
		double rate = f->info.source.rate;
		f->rate = f->total.n == 0 ? rate : f->rate <= 0 || rate <= 0 ? 0 : fmax(f->rate, rate);
		add_totals(f, h, i);
		if (i + 1 < end)
			continue;
		buf_reset(&f->info_bytes);
		buf_add(&f->info_bytes, bytes, n);
		if (f->info_bytes.failed || !slot_info_read((const uint8_t *)f->info_bytes.data, n, h->slots[i].last_ms, &f->info))
			return error_nomem(err, "a profile's info");
	}
	return 0;
}

/* --- amounts in use --- */

static void add_in_use(struct fold_row *row, const struct chunk_layout *l, const int64_t *v, unsigned n, bool wants_sum)
{
	if (l->tier) {
		row->count += (uint32_t)(times(v[0] >> 1, n));
		for (int m = INUSE_OBJECTS; m < METRICS; m++) {
			if (l->sum[m] < 0)
				continue;
			row->sum[m - INUSE_OBJECTS] = value_sum(row->sum[m - INUSE_OBJECTS], times(v[l->sum[m]], n));
			if (v[0] >> 1 && v[l->max[m]] > row->max[m - INUSE_OBJECTS])
				row->max[m - INUSE_OBJECTS] = v[l->max[m]];
		}
		return;
	}
	row->count += n;
	for (int m = INUSE_OBJECTS; m < METRICS && wants_sum; m++) {
		if (l->sum[m] < 0)
			continue;
		int64_t value = v[l->sum[m]], *sum = &row->sum[m - INUSE_OBJECTS], *max = &row->max[m - INUSE_OBJECTS];
		*sum = value_sum(*sum, times(value, n));
		*max = value > *max ? value : *max;
	}
}

static void set_last(struct fold *f, struct fold_row *row, const struct chunk_layout *l, const int64_t *v)
{
	if (l->tier && !(v[0] & 1))
		return;
	for (int m = 0; m < METRICS; m++)
		row->last[m] = l->last[m] < 0 ? 0 : v[l->last[m]];
	row->last_in = f->epoch;
}

/* --- allocated amounts --- */

/* Room for a base row in this chunk's matrix of what was allocated until each slot. */
static int64_t *matrix_row(struct fold *f, uint32_t base, struct error *err)
{
	struct fold_row *row = &f->at[base];
	size_t width = (size_t)f->reader.slots * 2;
	if (row->matrix_in != f->epoch) {
		size_t before = f->matrix_capacity;
		if (!memory_grow((void **)&f->matrix, &f->matrix_capacity, (f->matrix_rows + 1) * width, sizeof *f->matrix, SIZE_MAX / 16) ||
		    spend(f->spending, (f->matrix_capacity - before) * sizeof *f->matrix, err)) {
			error_set(err, E_LIMIT, "no memory for what was allocated in a range");
			return NULL;
		}
		memset(f->matrix + f->matrix_rows * width, 0, width * sizeof *f->matrix);
		row->matrix = (uint32_t)f->matrix_rows++;
		row->matrix_in = f->epoch;
	}
	return f->matrix + row->matrix * width;
}

static void add_allocated(const struct chunk_layout *l, int64_t *to, unsigned from, unsigned n, const int64_t *v)
{
	for (unsigned i = from; i < from + n; i++)
		for (int m = ALLOC_OBJECTS; m < INUSE_OBJECTS; m++)
			if (l->sum[m] >= 0)
				to[2 * i + (unsigned)m] = value_sum(to[2 * i + (unsigned)m], v[l->sum[m]]);
}

/* Slot by slot against the one before. from: the first that is looked at; increases count from first on. */
static void add_increases(struct fold *f, unsigned from, unsigned first, unsigned end)
{
	double total[2] = { 0, 0 };
	for (size_t r = 0; r < f->rows.n; r++) {
		struct fold_row *row = &f->at[r];
		if (row->matrix_in != f->epoch)
			continue;
		const int64_t *v = f->matrix + (size_t)row->matrix * f->reader.slots * 2;
		bool continues = row->before_in == f->epoch - 1 && from == first;
		for (int k = 0; k < 2; k++) {
			int64_t before = continues ? row->before[k] : 0;
			for (unsigned i = from; i < end; i++) {
				int64_t now = v[2 * i + (unsigned)k], grown = now >= before ? now - before : now;
				if (i >= first && (i > from || f->has_before)) {
					row->increase[k] = value_sum(row->increase[k], grown);
					total[k] += (double)grown;
				}
				before = now;
			}
			row->before[k] = before;
		}
		row->before_in = f->epoch;
	}
	for (int k = 0; k < 2; k++)
		if (f->metrics & 1u << k && end > first)
			f->total.sum[k] = more(f->total.sum[k], total[k]);
}

/* --- rows --- */

static int fold_row(struct fold *f, uint32_t at, unsigned from, unsigned first, unsigned end, bool allocated, struct error *err)
{
	const struct chunk_layout *l = &f->reader.layout;
	int64_t *matrix = NULL;
	if (allocated && !l->tier) {
		uint32_t base = find_base(f, at, err);
		matrix = base == INDEX_NONE ? NULL : matrix_row(f, base, err);
		if (!matrix)
			return err->code;
	}
	struct fold_row *row = &f->at[at];
	for (unsigned i = 0, n; i < f->reader.slots; i += n) {
		int64_t v[CHUNK_COLUMNS_MAX];
		bool present;
		if (!chunk_next_run(&f->reader, i, &n, &present, v))
			return error_set(err, E_FORMAT, "damaged: a row's runs are not as long as they say");
		unsigned low = i > first ? i : first, high = i + n < end ? i + n : end;
		if (!present || i >= end)
			continue;
		if (low < high) {
			add_in_use(row, l, v, high - low, !f->only_last);
			if (high == end)
				set_last(f, row, l, v);
			for (int m = ALLOC_OBJECTS; m < INUSE_OBJECTS && l->tier; m++)
				if (l->sum[m] >= 0)
					row->increase[m] = value_sum(row->increase[m], times(v[l->sum[m]], high - low));
		}
		low = i > from ? i : from;
		if (matrix && low < high)
			add_allocated(l, matrix, low, high - low, v);
	}
	return 0;
}

int fold_chunk(struct fold *f, const struct chunk_head *h, const void *body, size_t n, unsigned first, unsigned end, struct error *err)
{
	bool allocated = h->layout.metrics & (1u << ALLOC_OBJECTS | 1u << ALLOC_SPACE);
	unsigned from = first > 0 && (first == end || !f->has_before) ? first - 1 : first;
	if (from == end)
		return 0;
	f->metrics |= first < end ? h->layout.metrics : 0;
	f->epoch++;
	f->next = 0;
	f->matrix_rows = 0;
	int failed = chunk_open(&f->reader, h, body, n, err);
	if (!failed)
		failed = add_infos(f, h, first, end, err);
	while (!failed && chunk_next_row(&f->reader)) {
		uint32_t at = find_row(f, f->reader.row, err);
		failed = at == INDEX_NONE ? err->code : fold_row(f, at, from, first, end, allocated, err);
	}
	if (!failed && f->reader.failed)
		failed = error_set(err, E_FORMAT, "damaged: its row numbers make no sense");
	if (!failed && allocated && !h->layout.tier)
		add_increases(f, from, first, end);
	f->has_before = true;
	return failed;
}

/* --- what there is --- */

static int visit_row(const struct scan *s, sqlite3_stmt *q, struct error *err)
{
	struct chunk_head h;
	int failed = chunk_head_read(sqlite3_column_blob(q, 2), (size_t)sqlite3_column_bytes(q, 2), &h, err);
	if (!failed) {
		unsigned first = 0, end = (unsigned)h.n;
		while (first < end && h.slots[first].time_ms < s->from_ms)
			first++;
		while (end > first && h.slots[end - 1].time_ms >= s->to_ms)
			end--;
		if (first < end || (s->with_before && first > 0))
			failed = s->visit(s->context, &h, q, first, end, err);
		chunk_head_finish(&h);
	}
	if (failed == E_FORMAT)
		error_prefix(err, "%s: series %u, %s of %lld: ", s->c->path, s->series, s->tier == TIER_PIN ? "peak" : "chunk",
		             sqlite3_column_int64(q, 1));
	return failed;
}

static int visit_all(const struct scan *s, sqlite3_stmt *q, struct error *err)
{
	int rc;
	while ((rc = db_step(s->c, q, "reading profiles", err)) > 0) {
		rc = visit_row(s, q, err);
		if (rc) {
			sqlite3_reset(q);
			return rc;
		}
	}
	return rc;
}

static int scan_open(const struct scan *s, struct error *err)
{
	sqlite3_stmt *q;
	int rc = 0;
	int64_t from = s->from_ms;
	if (s->with_before) {
		/* Visited first if it is the last one before the range. */
		if (!(q = db_statement(s->c, S_LAST_OPEN, err)))
			return err->code;
		sqlite3_bind_int64(q, 1, s->series);
		sqlite3_bind_int64(q, 2, s->from_ms - 1);
		rc = visit_all(s, q, err);
	}
	if (rc || !(q = db_statement(s->c, s->heads ? S_HEADS_OPEN : S_RANGE_OPEN, err)))
		return rc ? rc : err->code;
	sqlite3_bind_int64(q, 1, s->series);
	sqlite3_bind_int64(q, 2, from);
	sqlite3_bind_int64(q, 3, s->to_ms);
	return visit_all(s, q, err);
}

int scan_chunks(const struct scan *s, struct error *err)
{
	sqlite3_stmt *q = db_statement(s->c, s->heads ? S_HEADS_CHUNKS : S_RANGE_CHUNKS, err);
	if (!q)
		return err->code;
	sqlite3_bind_int64(q, 1, s->series);
	sqlite3_bind_int(q, 2, s->tier);
	sqlite3_bind_int64(q, 3, s->with_before ? s->from_ms - 1 : s->from_ms);
	sqlite3_bind_int64(q, 4, s->to_ms);
	int rc = visit_all(s, q, err);
	return rc || s->tier != TIER_RAW ? rc : scan_open(s, err);
}
