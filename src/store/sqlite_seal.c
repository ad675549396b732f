/* Several chunks of a series become one: row by row, all of them side by side. */
#include <math.h>
#include <stdlib.h>
#include <zstd.h>

#include "store/sqlite_upkeep.h"

#define SEAL_SAMPLES_MAX (1u << 20)     /* a chunk is read whole: not too much at once */
#define SEAL_LEVEL 3

const unsigned tier_chunk_slots[TIERS] = { 60, 12, 24, 16 };

struct part {
	int64_t id;
	struct chunk_head head;
	struct chunk_reader reader;
	unsigned first;                 /* its place among all slots */
};

struct sealing {
	struct sqlite_store *s;
	struct part *parts;
	size_t n, capacity;
	unsigned slots;
	uint64_t samples;
	void *decompressor;
	struct chunk_writer writer;
	struct buf head, data;
};

static void sealing_finish(struct sealing *g)
{
	for (size_t i = 0; i < g->n; i++) {
		chunk_head_finish(&g->parts[i].head);
		chunk_reader_finish(&g->parts[i].reader);
	}
	free(g->parts);
	ZSTD_freeDCtx(g->decompressor);
	chunk_writer_finish(&g->writer);
	buf_finish(&g->head);
	buf_finish(&g->data);
}

/* Chunks of other metrics don't go together with the first ones. 1: that's enough. */
static int add_part(struct sealing *g, sqlite3_stmt *q, struct error *err)
{
	struct part *p = ARRAY_PUSH(g->parts, g->n, g->capacity, CHUNK_SLOTS_MAX);
	if (!p)
		return error_nomem(err, "a chunk");
	*p = (struct part){ .id = sqlite3_column_int64(q, 0), .reader = { .decompressor = g->decompressor, .borrowed = true }, .first = g->slots };
	int failed = chunk_head_read(sqlite3_column_blob(q, 2), (size_t)sqlite3_column_bytes(q, 2), &p->head, err);
	if (failed)
		return failed;
	uint64_t samples = 0;
	for (size_t i = 0; i < p->head.n; i++)
		samples += p->head.slots[i].samples;
	if (g->slots + p->head.n > CHUNK_SLOTS_MAX || (g->n > 1 && (p->head.layout.metrics != g->parts[0].head.layout.metrics ||
	                                                            g->samples + samples > SEAL_SAMPLES_MAX))) {
		chunk_head_finish(&p->head);
		g->n--;
		return 1;
	}
	g->slots += (unsigned)p->head.n;
	g->samples += samples;
	return chunk_open(&p->reader, &p->head, sqlite3_column_blob(q, 3), (size_t)sqlite3_column_bytes(q, 3), err);
}

static int gather(struct sealing *g, uint32_t series, int tier, int64_t before_ms, unsigned max, struct error *err)
{
	struct connection *c = &g->s->writer;
	sqlite3_stmt *q = db_statement(c, tier == TIER_RAW ? S_SEAL_OPEN : S_SEAL_TIER, err);
	if (!q)
		return err->code;
	int at = 1, rc;
	sqlite3_bind_int64(q, at++, series);
	if (tier != TIER_RAW) {
		sqlite3_bind_int(q, at++, tier);
		sqlite3_bind_int64(q, at++, before_ms);
	}
	sqlite3_bind_int64(q, at, max);
	while ((rc = db_step(c, q, "sealing a chunk", err)) > 0) {
		rc = add_part(g, q, err);
		if (rc) {
			if (rc == E_FORMAT)
				error_prefix(err, "%s: series %u, chunk of %lld: ", c->path, series, sqlite3_column_int64(q, 1));
			sqlite3_reset(q);
			break;
		}
	}
	return rc < 0 ? rc : 0;
}

#define NO_ROW UINT32_MAX

static uint32_t next_row(struct part *p)
{
	return chunk_next_row(&p->reader) ? p->reader.row : NO_ROW;
}

/* Of all parts the values of the rows that are the next, side by side. rows: each part's current row. */
static int add_rows_of(struct sealing *g, uint32_t *rows, uint8_t *present, int64_t *values, struct error *err)
{
	unsigned columns = g->parts[0].head.layout.n;
	for (size_t i = 0; i < g->n; i++)
		rows[i] = next_row(&g->parts[i]);
	for (;;) {
		uint32_t row = NO_ROW;
		for (size_t i = 0; i < g->n; i++)
			row = rows[i] < row ? rows[i] : row;
		if (row == NO_ROW)
			break;
		memset(present, 0, g->slots);
		for (size_t i = 0; i < g->n; i++) {
			struct part *p = &g->parts[i];
			if (rows[i] != row)
				continue;
			chunk_read_row(&p->reader, present + p->first, values + (size_t)p->first * columns);
			rows[i] = next_row(p); /* NO_ROW when that failed */
		}
		chunk_add_row(&g->writer, row, present, values);
	}
	for (size_t i = 0; i < g->n; i++)
		if (g->parts[i].reader.failed)
			return error_set(err, E_FORMAT, "%s: a chunk of %lld is damaged", g->s->path, (long long)g->parts[i].head.slots[0].time_ms);
	return 0;
}

static int add_rows(struct sealing *g, struct error *err)
{
	uint32_t *rows = malloc(g->n * sizeof *rows);
	uint8_t *present = malloc(g->slots);
	int64_t *values = malloc((size_t)g->slots * g->parts[0].head.layout.n * sizeof *values);
	int failed = rows && present && values ? add_rows_of(g, rows, present, values, err) : error_nomem(err, "a chunk");
	free(rows);
	free(present);
	free(values);
	return failed;
}

static int insert_chunk(struct sealing *g, uint32_t series, int tier, const struct chunk_head *h, int level, struct error *err)
{
	chunk_head_write(h, &g->head);
	int failed = chunk_writer_end(&g->writer, level, &g->data, err);
	if (failed || g->head.failed || g->data.failed)
		return failed ? failed : error_nomem(err, "a chunk");
	return chunk_insert(&g->s->writer, series, tier, h, &g->head, &g->data, err);
}

int chunk_insert(struct connection *c, uint32_t series, int tier, const struct chunk_head *h, const struct buf *head, const struct buf *data,
                 struct error *err)
{
	uint64_t samples = 0;
	for (size_t i = 0; i < h->n; i++)
		samples += h->slots[i].samples;
	sqlite3_stmt *q = db_statement(c, S_ADD_CHUNK, err);
	if (!q)
		return err->code;
	sqlite3_bind_int64(q, 1, series);
	sqlite3_bind_int(q, 2, tier);
	sqlite3_bind_int64(q, 3, h->slots[0].time_ms);
	sqlite3_bind_int64(q, 4, h->slots[h->n - 1].time_ms);
	sqlite3_bind_int64(q, 5, (int64_t)h->n);
	sqlite3_bind_int64(q, 6, (int64_t)samples);
	sqlite3_bind_blob64(q, 7, head->data, head->len, SQLITE_STATIC);
	sqlite3_bind_blob64(q, 8, data->data, data->len, SQLITE_STATIC);
	return db_run(c, q, "writing a chunk", err);
}

static int merge_parts(struct sealing *g, uint32_t series, int tier, struct error *err)
{
	struct chunk_head h = { g->parts[0].head.layout, calloc(g->slots, sizeof *h.slots), g->slots };
	if (!h.slots)
		return error_nomem(err, "a chunk");
	chunk_writer_begin(&g->writer, h.layout, g->slots);
	for (size_t i = 0; i < g->n; i++) {
		struct part *p = &g->parts[i];
		memcpy(h.slots + p->first, p->head.slots, p->head.n * sizeof *h.slots);
		for (size_t k = 0; k < p->head.n; k++) {
			size_t n;
			const uint8_t *info = chunk_next_info(&p->reader, &n);
			if (info)
				chunk_add_info(&g->writer, info, n);
		}
	}
	int failed = add_rows(g, err);
	if (!failed)
		failed = insert_chunk(g, series, tier, &h, SEAL_LEVEL, err);
	free(h.slots);
	return failed;
}

static int delete_parts(struct sealing *g, int tier, struct error *err)
{
	int failed = 0;
	for (size_t i = 0; i < g->n && !failed; i++) {
		sqlite3_stmt *q = db_statement(&g->s->writer, tier == TIER_RAW ? S_DELETE_OPEN : S_DELETE_CHUNK, err);
		if (q)
			sqlite3_bind_int64(q, 1, g->parts[i].id);
		failed = q ? db_run(&g->s->writer, q, "sealing a chunk", err) : err->code;
	}
	return failed;
}

/* The parts are in the chunk now. */
static int note_sealed(struct sealing *g, uint32_t series, struct series_state *state, struct error *err)
{
	sqlite3_stmt *q = db_statement(&g->s->writer, S_SERIES_SEALED, err);
	if (!q)
		return err->code;
	const struct chunk_head *last = &g->parts[g->n - 1].head;
	sqlite3_bind_int64(q, 1, series);
	sqlite3_bind_int64(q, 2, last->slots[last->n - 1].time_ms);
	sqlite3_bind_int64(q, 3, (int64_t)g->slots);
	state->n_open -= g->slots < state->n_open ? g->slots : state->n_open;
	state->open_samples -= g->samples < state->open_samples ? g->samples : state->open_samples;
	state->first_open_ms = last->slots[last->n - 1].time_ms + 1;
	return db_run(&g->s->writer, q, "sealing a chunk", err);
}

int seal_chunk(struct sqlite_store *s, uint32_t series, int tier, int64_t before_ms, unsigned max, struct series_state *state, struct error *err)
{
	struct sealing g = { .s = s, .decompressor = ZSTD_createDCtx() };
	buf_init(&g.head, 1 << 20);
	buf_init(&g.data, CHUNK_BODY_MAX);
	chunk_writer_init(&g.writer);
	int failed = g.decompressor ? gather(&g, series, tier, before_ms, max, err) : error_nomem(err, "a chunk");
	if (!failed && g.n > (tier == TIER_RAW ? 0u : 1u)) {
		failed = delete_parts(&g, tier, err);
		if (!failed)
			failed = merge_parts(&g, series, tier, err);
		if (!failed && tier == TIER_RAW)
			failed = note_sealed(&g, series, state, err);
	}
	sealing_finish(&g);
	return failed;
}

/* --- peaks --- */

struct peak {
	double most;
	struct chunk_head head;
	unsigned slot;
	struct buf body;
};

static int look_for_peak(void *context, const struct chunk_head *h, sqlite3_stmt *q, unsigned first, unsigned end, struct error *err)
{
	struct peak *p = context;
	int metric = h->layout.metrics & 1u << INUSE_SPACE ? INUSE_SPACE : INUSE_OBJECTS;
	bool found = false;
	for (unsigned i = first; i < end; i++)
		if (h->slots[i].last[metric] > p->most || (!p->head.n && !found)) {
			p->most = h->slots[i].last[metric];
			p->slot = i;
			found = true;
		}
	if (!found)
		return 0;
	struct chunk_slot *slots = malloc(h->n * sizeof *slots);
	if (!slots)
		return error_nomem(err, "a peak");
	memcpy(slots, h->slots, h->n * sizeof *slots);
	chunk_head_finish(&p->head);
	p->head = (struct chunk_head){ h->layout, slots, h->n };
	buf_reset(&p->body);
	buf_add(&p->body, sqlite3_column_blob(q, SCAN_BODY), (size_t)sqlite3_column_bytes(q, SCAN_BODY));
	return p->body.failed ? error_nomem(err, "a peak") : 0;
}

static int copy_slot(struct chunk_writer *w, struct chunk_reader *r, unsigned slot, struct error *err)
{
	const uint8_t *info = NULL;
	size_t n = 0;
	for (unsigned i = 0; i <= slot; i++)
		info = chunk_next_info(r, &n);
	if (info)
		chunk_add_info(w, info, n);
	while (info && chunk_next_row(r)) {
		int64_t v[CHUNK_COLUMNS_MAX];
		bool present;
		for (unsigned at = 0, length; at < r->slots; at += length) {
			if (!chunk_next_run(r, at, &length, &present, v))
				break;
			if (present && slot >= at && slot < at + length)
				chunk_add_single(w, r->row, v);
		}
	}
	return info && !r->failed ? 0 : error_set(err, E_FORMAT, "the chunk with an hour's peak is damaged");
}

/* An hour is rolled up again when all of its tier has been dropped and profiles of it have not. 1: its peak is still there. */
static int is_pinned(struct connection *c, uint32_t series, int64_t time_ms, struct error *err)
{
	sqlite3_stmt *q = db_statement(c, S_HAS_CHUNK, err);
	if (!q)
		return err->code;
	sqlite3_bind_int64(q, 1, series);
	sqlite3_bind_int(q, 2, TIER_PIN);
	sqlite3_bind_int64(q, 3, time_ms);
	int rc = db_step(c, q, "looking for a peak", err);
	sqlite3_reset(q);
	return rc;
}

int pin_peak(struct sqlite_store *s, uint32_t series, int64_t hour_ms, struct error *err)
{
	struct peak p = { .most = -INFINITY };
	struct chunk_reader reader = { 0 };
	struct sealing g = { .s = s };
	buf_init(&p.body, CHUNK_BODY_MAX);
	buf_init(&g.head, 1 << 20);
	buf_init(&g.data, CHUNK_BODY_MAX);
	chunk_writer_init(&g.writer);
	int failed = scan_chunks(&(struct scan){ &s->writer, series, TIER_RAW, hour_ms, hour_ms + HOUR_MS, look_for_peak, &p, .with_before = false }, err);
	int pinned = !failed && p.head.n ? is_pinned(&s->writer, series, p.head.slots[p.slot].time_ms, err) : 0;
	if (pinned < 0)
		failed = pinned;
	if (!failed && !pinned && p.head.n) {
		struct chunk_head h = { p.head.layout, &p.head.slots[p.slot], 1 };
		chunk_writer_begin(&g.writer, h.layout, 1);
		failed = chunk_open(&reader, &p.head, p.body.data, p.body.len, err);
		if (!failed)
			failed = copy_slot(&g.writer, &reader, p.slot, err);
		if (!failed)
			failed = insert_chunk(&g, series, TIER_PIN, &h, SEAL_LEVEL, err);
	}
	chunk_reader_finish(&reader);
	chunk_head_finish(&p.head);
	buf_finish(&p.body);
	sealing_finish(&g);
	return failed;
}
