/*
 * Looking after a store: what is in it, whether all of it can be read, and giving space back. The check goes on behind what it finds: a
 * damaged page costs the chunks on it, and the others are looked at all the same.
 */
#include <math.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "store/sqlite_fold.h"
#include "store/sqlite_gauges.h"
#include "store/sqlite_reads.h"

/* --- info --- */

static uint64_t file_bytes(const char *path, const char *ending)
{
	struct stat st;
	struct buf name;
	buf_init(&name, 1 << 16);
	buf_printf(&name, "%s%s", path, ending);
	uint64_t n = !name.failed && stat(name.data, &st) == 0 ? (uint64_t)st.st_size : 0;
	buf_finish(&name);
	return n;
}

static int count(struct connection *c, struct store_info *i, struct error *err)
{
	const struct {
		enum sqlite_statement which;
		uint64_t *to;
	} counts[] = { { S_COUNT_SERIES, &i->n_series },  { S_COUNT_STACKS, &i->n_stacks }, { S_COUNT_FRAMES, &i->n_frames },
		       { S_COUNT_BUILDS, &i->n_builds }, { S_COUNT_OPEN, &i->n_open },     { S_COUNT_RECEIVED, &i->n_profiles },
		       { S_FREE_PAGES, &i->free_bytes } };
	int failed = 0;
	for (size_t k = 0; k < sizeof counts / sizeof *counts && !failed; k++) {
		int64_t n = 0;
		failed = db_number(c, counts[k].which, &n, err);
		*counts[k].to = (uint64_t)n;
	}
	i->n_profiles += i->n_open;
	i->free_bytes *= STORE_PAGE_BYTES;
	return failed;
}

int sqlite_info(struct store *store, struct store_info *ret, struct error *err)
{
	struct sqlite_store *s = (struct sqlite_store *)store;
	struct store_info i = { .bytes = file_bytes(s->path, "") + file_bytes(s->path, "-wal") };
	struct error unasked;
	err = err ? err : &unasked;
	struct connection *c = db_begin_read(s, err);
	if (!c)
		return err->code;
	int rc = count(c, &i, err);
	sqlite3_stmt *q = rc ? NULL : db_statement(c, S_TIER_SUMS, err);
	rc = q ? 0 : err->code;
	while (q && (rc = db_step(c, q, "reading", err)) > 0) {
		int tier = sqlite3_column_int(q, 0);
		if (tier == TIER_PIN)
			i.pinned = (uint64_t)sqlite3_column_int64(q, 1);
		if (tier < 0 || tier >= TIERS)
			continue;
		i.tiers[tier].chunks = (uint64_t)sqlite3_column_int64(q, 1);
		i.tiers[tier].profiles = (uint64_t)sqlite3_column_int64(q, 2);
		i.tiers[tier].samples = (uint64_t)sqlite3_column_int64(q, 3);
		i.tiers[tier].bytes = (uint64_t)sqlite3_column_int64(q, 4);
		i.tiers[tier].first_ms = sqlite3_column_int64(q, 5);
		i.tiers[tier].last_ms = sqlite3_column_int64(q, 6);
	}
	db_end_read(s, c);
	if (!rc)
		*ret = i;
	return rc;
}

/* --- check --- */

#define FINDINGS_MAX 1000

struct checking {
	struct connection *c;
	struct buf *findings;
	unsigned n;
	uint64_t profiles;
	struct present {
		uint8_t *bits;          /* a bit for each number there is */
		uint64_t n;
	} rows, frames, strings, builds;
	struct chunk_reader reader;
};

static void find(struct checking *k, const char *where, int64_t number, const char *what)
{
	if (k->n++ == FINDINGS_MAX)
		buf_adds(k->findings, "and more\n");
	if (k->n <= FINDINGS_MAX)
		buf_printf(k->findings, "%s %lld: %s\n", where, (long long)number, what);
}

static bool has(const struct present *p, uint64_t number)
{
	return number < p->n && p->bits[number / 8] & 1u << number % 8;
}

/* 0 is none. */
static bool has_or_none(const struct present *p, uint64_t number)
{
	return number == 0 || has(p, number);
}

/* All numbers of a table. */
static int read_numbers(struct checking *k, enum sqlite_statement which, const char *table, struct present *ret, struct error *err)
{
	struct error why;
	size_t capacity = 0;
	int rc;
	sqlite3_stmt *q = db_statement(k->c, which, err);
	if (!q)
		return err->code;
	while ((rc = db_step(k->c, q, "checking", &why)) > 0) {
		uint64_t id = (uint64_t)sqlite3_column_int64(q, 0);
		size_t before = capacity;
		if (id > UINT32_MAX || !memory_grow((void **)&ret->bits, &capacity, (size_t)(id / 8 + 1), 1, UINT32_MAX)) {
			sqlite3_reset(q);
			return error_nomem(err, "the check");
		}
		memset(ret->bits + before, 0, capacity - before);
		ret->bits[id / 8] |= (uint8_t)(1u << id % 8);
		ret->n = id >= ret->n ? id + 1 : ret->n;
	}
	if (rc < 0)
		find(k, table, (int64_t)ret->n, why.text);
	return 0;
}

/* What sums up to the totals beside it: raw ones exactly. */
static bool check_rows(struct checking *k, const struct chunk_head *h, double (*sums)[METRICS], const char **ret_why)
{
	struct chunk_reader *r = &k->reader;
	uint8_t present[CHUNK_SLOTS_MAX];
	int64_t *values = malloc(h->n * h->layout.n * sizeof *values);
	*ret_why = values ? "damaged: its rows can't be read" : "no memory to check it";
	while (values && chunk_next_row(r)) {
		if (!has(&k->rows, r->row)) {
			*ret_why = "damaged: it has a stack that isn't there";
			break;
		}
		if (!chunk_read_row(r, present, values))
			break;
		for (size_t i = 0; i < h->n; i++)
			for (int m = 0; m < METRICS; m++)
				if (present[i] && h->layout.last[m] >= 0)
					sums[i][m] += (double)values[i * h->layout.n + (size_t)h->layout.last[m]];
	}
	bool whole = values && !r->failed && r->next == r->rows;
	free(values);
	for (size_t i = 0; i < h->n && whole; i++)
		for (int m = 0; m < METRICS; m++)
			if (h->layout.last[m] >= 0 && fabs(sums[i][m] - h->slots[i].last[m]) > 1e-9 * fabs(sums[i][m]) + 1) {
				*ret_why = "damaged: its rows don't add up to its totals";
				return false;
			}
	return whole;
}

static bool check_info(const struct checking *k, const struct slot_info *i)
{
	const uint32_t strings[] = { i->source.name, i->period_type, i->period_unit, i->drop_frames, i->keep_frames, i->doc_url };
	struct varint_reader comments = i->comments;
	bool ok = has_or_none(&k->builds, i->main_build);
	for (size_t n = 0; n < sizeof strings / sizeof *strings; n++)
		ok = ok && has_or_none(&k->strings, strings[n]);
	for (uint64_t n = 0; n < i->n_comments && ok; n++)
		ok = has_or_none(&k->strings, varint_next(&comments)) && !comments.failed;
	return ok;
}

static bool check_chunk(struct checking *k, const struct chunk_head *h, const void *body, size_t n, struct error *why)
{
	double (*sums)[METRICS] = calloc(h->n, sizeof *sums);
	struct slot_info info;
	const char *text = "no memory to check it";
	bool ok = sums && chunk_open(&k->reader, h, body, n, why) == 0;
	if (!ok && sums)
		text = NULL;
	for (size_t i = 0; i < h->n && ok; i++) {
		size_t length;
		const uint8_t *bytes = chunk_next_info(&k->reader, &length);
		ok = bytes && slot_info_read(bytes, length, h->slots[i].last_ms, &info);
		text = "damaged: what it says of where its profiles are from is cut off";
		if (ok && !(ok = check_info(k, &info)))
			text = "damaged: it has a name or a binary that isn't there";
	}
	ok = ok && check_rows(k, h, sums, &text);
	if (!ok && text)
		error_set(why, E_FORMAT, "%s", text);
	free(sums);
	return ok;
}

/* Chunk or open profile: head and data are columns 0 and 1. */
static void check_one(struct checking *k, enum sqlite_statement which, const char *what, int64_t id, bool counts)
{
	struct error why = { 0 };
	struct chunk_head h;
	sqlite3_stmt *q = db_statement(k->c, which, &why);
	int rc = -1;
	if (q) {
		sqlite3_bind_int64(q, 1, id);
		rc = db_step(k->c, q, "reading it", &why);
	}
	bool ok = rc > 0 && chunk_head_read(sqlite3_column_blob(q, 0), (size_t)sqlite3_column_bytes(q, 0), &h, &why) == 0;
	if (ok) {
		ok = check_chunk(k, &h, sqlite3_column_blob(q, 1), (size_t)sqlite3_column_bytes(q, 1), &why);
		k->profiles += ok && counts ? h.n : 0;
		chunk_head_finish(&h);
	}
	if (rc > 0)
		sqlite3_reset(q);
	if (rc == 0)
		find(k, what, id, "is in an index but not in its table");
	else if (!ok)
		find(k, what, id, why.text);
}

static void check_gauges(struct checking *k, int64_t id)
{
	struct error why = { 0 };
	struct gauge_block b;
	sqlite3_stmt *q = db_statement(k->c, S_CHECK_GAUGES, &why);
	int rc = -1;
	if (q) {
		sqlite3_bind_int64(q, 1, id);
		rc = db_step(k->c, q, "reading it", &why);
	}
	if (rc > 0 && gauge_block_read(sqlite3_column_blob(q, 0), (size_t)sqlite3_column_bytes(q, 0), &b, &why) == 0)
		gauge_block_finish(&b);
	if (rc > 0)
		sqlite3_reset(q);
	if (why.code)
		find(k, "gauges", id, why.text);
}

static bool check_stack(struct checking *k, sqlite3_stmt *q)
{
	struct varint_reader r = column_numbers(q, 1);
	while (r.at < r.end)
		if (!has(&k->frames, varint_next(&r)) || r.failed)
			return false;
	return true;
}

static bool string_is_there(void *context, uint64_t string)
{
	const struct checking *k = context;
	return has_or_none(&k->strings, string);
}

/* Goes through a list, also where a page of it is damaged: then that is the finding. */
static void each(struct checking *k, enum sqlite_statement which, const char *table, void (*check)(struct checking *k, sqlite3_stmt *q))
{
	struct error why = { 0 };
	int rc = -1;
	sqlite3_stmt *q = db_statement(k->c, which, &why);
	while (q && (rc = db_step(k->c, q, "checking", &why)) > 0)
		check(k, q);
	if (rc < 0)
		find(k, table, 0, why.text);
}

static void each_chunk(struct checking *k, sqlite3_stmt *q)
{
	int tier = sqlite3_column_int(q, 1);
	check_one(k, S_CHECK_CHUNK, "chunk", sqlite3_column_int64(q, 0), tier == TIER_RAW);
}

static void each_open(struct checking *k, sqlite3_stmt *q)
{
	check_one(k, S_CHECK_OPEN, "open profile", sqlite3_column_int64(q, 0), true);
}

static void each_gauges(struct checking *k, sqlite3_stmt *q)
{
	check_gauges(k, sqlite3_column_int64(q, 0));
}

static void each_stack(struct checking *k, sqlite3_stmt *q)
{
	if (!check_stack(k, q))
		find(k, "stack", sqlite3_column_int64(q, 0), "damaged: it has a frame that isn't there");
}

static void each_frame(struct checking *k, sqlite3_stmt *q)
{
	if (!has_or_none(&k->builds, (uint64_t)sqlite3_column_int64(q, 1)) || !frame_strings(q, 2, 3, string_is_there, k))
		find(k, "frame", sqlite3_column_int64(q, 0), "damaged: it has a name or a binary that isn't there");
}

static void each_labels(struct checking *k, sqlite3_stmt *q)
{
	if (!label_strings(q, 1, string_is_there, k))
		find(k, "label set", sqlite3_column_int64(q, 0), "damaged: it has a word that isn't there");
}

static void each_orphan(struct checking *k, sqlite3_stmt *q)
{
	find(k, "row", sqlite3_column_int64(q, 0), "damaged: its stack, its labels or the row it is counted with aren't there");
}

static void each_line(struct checking *k, sqlite3_stmt *q)
{
	const char *line = (const char *)sqlite3_column_text(q, 0);
	if (line && strcmp(line, "ok") != 0)
		find(k, "file", 0, line);
}

int sqlite_check(struct store *store, struct buf *findings, uint64_t *ret_profiles, struct error *err)
{
	struct sqlite_store *s = (struct sqlite_store *)store;
	struct error unasked;
	err = err ? err : &unasked;
	struct connection *c = db_begin_read(s, err);
	if (!c)
		return err->code;
	struct checking k = { .c = c, .findings = findings };
	int failed = read_numbers(&k, S_ROW_IDS, "rows", &k.rows, err);
	if (!failed)
		failed = read_numbers(&k, S_FRAME_IDS, "frames", &k.frames, err);
	if (!failed)
		failed = read_numbers(&k, S_STRING_IDS, "strings", &k.strings, err);
	if (!failed)
		failed = read_numbers(&k, S_BUILD_IDS, "builds", &k.builds, err);
	if (!failed) {
		each(&k, S_QUICK_CHECK, "file", each_line);
		each(&k, S_ORPHANS, "rows", each_orphan);
		each(&k, S_ALL_STACKS, "stacks", each_stack);
		each(&k, S_ALL_FRAMES, "frames", each_frame);
		each(&k, S_ALL_LABELS, "label sets", each_labels);
		each(&k, S_CHUNK_IDS, "chunks", each_chunk);
		each(&k, S_OPEN_IDS, "open profiles", each_open);
		each(&k, S_GAUGES_IDS, "gauges", each_gauges);
	}
	chunk_reader_finish(&k.reader);
	free(k.rows.bits);
	free(k.frames.bits);
	free(k.strings.bits);
	free(k.builds.bits);
	db_end_read(s, c);
	if (!failed && findings->failed)
		failed = error_nomem(err, "the findings");
	if (!failed)
		*ret_profiles = k.profiles;
	return failed;
}

/* --- compact --- */

int sqlite_compact(struct store *store, struct error *err)
{
	struct sqlite_store *s = (struct sqlite_store *)store;
	struct error unasked;
	int64_t left = 1, before = INT64_MAX;
	int failed = 0;
	err = err ? err : &unasked;
	if (s->options.read_only)
		return error_set(err, E_USAGE, "%s: was opened to be read", s->path);
	while (!failed && left > 0 && left < before) {
		before = left == 1 ? INT64_MAX : left;
		pthread_mutex_lock(&s->write_lock);
		failed = give_back(s, err);
		if (!failed)
			failed = db_number(&s->writer, S_FREE_PAGES, &left, err);
		pthread_mutex_unlock(&s->write_lock);
	}
	pthread_mutex_lock(&s->write_lock);
	if (!failed)
		failed = db_do(&s->writer, S_CHECKPOINT, "giving space back", err);
	pthread_mutex_unlock(&s->write_lock);
	return failed;
}
