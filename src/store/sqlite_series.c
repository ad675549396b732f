/*
 * Series: who they are, and which of them match. There are thousands at most over the life of a store, so matchers are tried on all.
 * Labels are kept as name NUL value NUL ..., sorted by name, so that equal ones are equal bytes.
 */
#include <limits.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>

#include "store/sqlite_plan.h"

#define LABELS_MAX 64
#define LABEL_BYTES_MAX 65536

static int add_labels(struct buf *b, const struct store_identity *who, struct error *err)
{
	if (who->n_labels > LABELS_MAX)
		return error_set(err, E_USAGE, "a series has at most %d labels, not %zu", LABELS_MAX, who->n_labels);
	for (size_t i = 0; i < who->n_labels; i++) {
		const struct store_label *l = &who->labels[i];
		if (!*l->name || !*l->value || (i > 0 && strcmp(who->labels[i - 1].name, l->name) >= 0))
			return error_set(err, E_USAGE, "labels of a series are sorted by name, no two alike, and not empty (%.100s)", l->name);
		buf_add(b, l->name, strlen(l->name) + 1);
		buf_add(b, l->value, strlen(l->value) + 1);
	}
	return b->failed ? error_set(err, E_LIMIT, "labels of a series take at most %d bytes", LABEL_BYTES_MAX) : 0;
}

static int find_or_add(struct sqlite_store *s, const struct store_identity *who, const struct buf *labels, uint32_t *ret, struct error *err)
{
	static const char doing[] = "adding a series";
	struct connection *c = &s->writer;
	int64_t hash = (int64_t)hash_mix(hash_bytes(labels->data, labels->len), who->process);
	int rc;
	sqlite3_stmt *q = db_statement(c, S_FIND_SERIES, err);
	if (!q)
		return err->code;
	sqlite3_bind_int64(q, 1, hash);
	sqlite3_bind_int64(q, 2, (int64_t)who->process);
	sqlite3_bind_int64(q, 3, who->started_ms);
	while ((rc = db_step(c, q, doing, err)) > 0) {
		if ((size_t)sqlite3_column_bytes(q, 1) == labels->len &&
		    (!labels->len || memcmp(sqlite3_column_blob(q, 1), labels->data, labels->len) == 0) &&
		    strcmp((const char *)sqlite3_column_text(q, 2), who->build_id) == 0) {
			*ret = (uint32_t)sqlite3_column_int64(q, 0);
			sqlite3_reset(q);
			return 0;
		}
	}
	if (rc < 0 || !(q = db_statement(c, S_ADD_SERIES, err)))
		return err->code;
	sqlite3_bind_int64(q, 1, hash);
	sqlite3_bind_blob(q, 2, labels->len ? labels->data : "", (int)labels->len, SQLITE_STATIC);
	sqlite3_bind_int64(q, 3, (int64_t)who->process);
	sqlite3_bind_int64(q, 4, who->started_ms);
	sqlite3_bind_text(q, 5, who->build_id, -1, SQLITE_STATIC);
	rc = db_run(c, q, doing, err);
	int64_t id = sqlite3_last_insert_rowid(c->db);
	if (!rc && id > UINT32_MAX - 1)
		rc = error_set(err, E_LIMIT, "%s: has had as many series as it can", s->path);
	if (!rc)
		*ret = (uint32_t)id;
	return rc;
}

int sqlite_add_series(struct store *store, const struct store_identity *who, uint32_t *ret_series, struct error *err)
{
	struct sqlite_store *s = (struct sqlite_store *)store;
	struct error unasked;
	struct buf labels;
	uint32_t id = 0;
	err = err ? err : &unasked;
	buf_init(&labels, LABEL_BYTES_MAX);
	int failed = add_labels(&labels, who, err);
	if (!failed)
		failed = db_begin_write(s, err);
	if (!failed) {
		failed = find_or_add(s, who, &labels, &id, err);
		failed = db_end_write(s, failed, err);
	}
	buf_finish(&labels);
	if (!failed)
		*ret_series = id;
	return failed;
}

/* --- the writer's state --- */

/* Buckets that were made are closed: nothing comes into them any more. */
static int floors(struct connection *c, uint32_t series, struct series_state *state, struct error *err)
{
	int failed = 0;
	for (int t = TIER_RAW; t < TIERS && !failed; t++) {
		int64_t profiles = INT64_MIN, gauges;
		if (t > TIER_RAW)
			failed = plan_rolled_until(c, PLAN_PROFILES, series, t, &profiles, err);
		if (!failed)
			failed = plan_rolled_until(c, PLAN_GAUGES, series, t, &gauges, err);
		if (!failed && profiles != INT64_MIN && profiles - 1 > state->last_ms)
			state->last_ms = profiles - 1;
		if (!failed && gauges != INT64_MIN && gauges - 1 > state->gauges_ms)
			state->gauges_ms = gauges - 1;
	}
	return failed;
}

static int load_state(struct sqlite_store *s, uint32_t series, struct series_state *ret, struct error *err)
{
	struct connection *c = &s->writer;
	struct series_state state = { .known = true, .last_ms = INT64_MIN, .gauges_ms = INT64_MIN, .profile_ms = INT64_MIN };
	sqlite3_stmt *q = db_statement(c, S_GET_SERIES, err);
	if (!q)
		return err->code;
	sqlite3_bind_int64(q, 1, series);
	int rc = db_step(c, q, "looking for a series", err);
	if (rc == 0)
		return error_set(err, E_USAGE, "%s: there is no series %u", s->path, series);
	if (rc < 0)
		return rc;
	if (sqlite3_column_type(q, 6) != SQLITE_NULL)
		state.last_ms = sqlite3_column_int64(q, 6);
	state.metrics = (unsigned)sqlite3_column_int(q, 8);
	sqlite3_reset(q);
	if (!(q = db_statement(c, S_SERIES_OPEN, err)))
		return err->code;
	sqlite3_bind_int64(q, 1, series);
	rc = db_step(c, q, "looking for a series", err);
	if (rc < 0)
		return rc;
	if (sqlite3_column_type(q, 1) != SQLITE_NULL && sqlite3_column_int64(q, 1) > state.last_ms)
		state.last_ms = sqlite3_column_int64(q, 1);
	state.profile_ms = state.last_ms;
	state.n_open = (uint64_t)sqlite3_column_int64(q, 0);
	state.first_open_ms = sqlite3_column_int64(q, 2);
	sqlite3_reset(q);
	if (!(q = db_statement(c, S_COUNT_GAUGES, err)))
		return err->code;
	sqlite3_bind_int64(q, 1, series);
	rc = db_step(c, q, "looking for a series", err);
	if (rc < 0)
		return rc;
	state.n_gauges = (uint32_t)sqlite3_column_int64(q, 0);
	sqlite3_reset(q);
	rc = floors(c, series, &state, err);
	if (!rc)
		*ret = state;
	return rc;
}

int series_state(struct sqlite_store *s, uint32_t series, struct series_state **ret, struct error *err)
{
	if (series >= s->series_capacity || !s->series[series].known) {
		struct series_state state;
		int failed = load_state(s, series, &state, err);
		if (failed)
			return failed;
		size_t before = s->series_capacity;
		if (!memory_grow((void **)&s->series, &s->series_capacity, (size_t)series + 1, sizeof *s->series, SIZE_MAX / sizeof *s->series))
			return error_nomem(err, "the series");
		memset(s->series + before, 0, (s->series_capacity - before) * sizeof *s->series);
		s->series[series] = state;
	}
	*ret = &s->series[series];
	return 0;
}

/* --- reading --- */

/* Labels, their texts and the build id in one block, which begins with the labels. */
static int read_row(sqlite3_stmt *q, struct store_series_info *ret, struct error *err)
{
	const char *labels = sqlite3_column_blob(q, 1), *build_id = (const char *)sqlite3_column_text(q, 4);
	size_t n = (size_t)sqlite3_column_bytes(q, 1), n_labels = 0;
	if (!build_id || (n && (!labels || labels[n - 1])))
		return error_set(err, E_FORMAT, "series %lld is damaged", sqlite3_column_int64(q, 0));
	for (size_t i = 0; i < n; i++)
		n_labels += !labels[i];
	if (n_labels % 2)
		return error_set(err, E_FORMAT, "series %lld is damaged", sqlite3_column_int64(q, 0));
	n_labels /= 2;
	size_t build_bytes = strlen(build_id) + 1;
	struct store_label *block = malloc((n_labels + 1) * sizeof *block + n + build_bytes);
	if (!block)
		return error_nomem(err, "the series");
	char *text = (char *)(block + n_labels + 1);
	if (n)
		memcpy(text, labels, n);
	memcpy(text + n, build_id, build_bytes);
	for (size_t i = 0; i < n_labels; i++) {
		block[i].name = text;
		block[i].value = text + strlen(text) + 1;
		text = (char *)block[i].value + strlen(block[i].value) + 1;
	}
	*ret = (struct store_series_info){
		.series = (uint32_t)sqlite3_column_int64(q, 0),
		.who = { block, n_labels, (uint64_t)sqlite3_column_int64(q, 2), sqlite3_column_int64(q, 3), (char *)(block + n_labels + 1) + n },
		.first_ms = sqlite3_column_int64(q, 5),
		.last_ms = sqlite3_column_type(q, 6) == SQLITE_NULL ? INT64_MIN : sqlite3_column_int64(q, 6),
		.n_profiles = (uint64_t)sqlite3_column_int64(q, 7),
		.metrics = (unsigned)sqlite3_column_int(q, 8),
	};
	return 0;
}

/* Adds what isn't in chunks yet. */
static int add_open(struct connection *c, struct store_series_info *info, struct error *err)
{
	sqlite3_stmt *q = db_statement(c, S_SERIES_OPEN, err);
	if (!q)
		return err->code;
	sqlite3_bind_int64(q, 1, info->series);
	int rc = db_step(c, q, "reading series", err);
	if (rc < 0)
		return rc;
	info->n_profiles += (uint64_t)sqlite3_column_int64(q, 0);
	if (sqlite3_column_type(q, 1) != SQLITE_NULL && sqlite3_column_int64(q, 1) > info->last_ms)
		info->last_ms = sqlite3_column_int64(q, 1);
	sqlite3_reset(q);
	return 0;
}

int series_identity(struct connection *c, uint32_t series, struct store_series_info *ret, struct error *err)
{
	sqlite3_stmt *q = db_statement(c, S_GET_SERIES, err);
	if (!q)
		return err->code;
	sqlite3_bind_int64(q, 1, series);
	int rc = db_step(c, q, "reading series", err);
	if (rc == 0)
		return error_set(err, E_USAGE, "%s: there is no series %u", c->path, series);
	if (rc > 0) {
		rc = read_row(q, ret, err);
		sqlite3_reset(q);
	}
	return rc;
}

struct matcher {
	const struct store_matcher *what;
	regex_t expression;
	bool compiled;
};

static int compile(struct matcher *m, struct error *err)
{
	struct buf whole;
	if (m->what->match < MATCH_REGEX)
		return 0;
	buf_init(&whole, 1 << 16);
	buf_printf(&whole, "^(%s)$", m->what->value);
	int failed = whole.failed ? error_set(err, E_USAGE, "%.60s: an expression of more than 64 KiB", m->what->name) : 0;
	int rc = failed ? 0 : regcomp(&m->expression, whole.data, REG_EXTENDED | REG_NOSUB);
	if (rc) {
		char why[128];
		regerror(rc, &m->expression, why, sizeof why);
		failed = error_set(err, E_USAGE, "%.60s: '%.200s' is no expression: %s", m->what->name, m->what->value, why);
	}
	m->compiled = !failed;
	buf_finish(&whole);
	return failed;
}

static bool matches(const struct matcher *m, const struct store_identity *who)
{
	const char *value = "";
	for (size_t i = 0; i < who->n_labels; i++)
		if (strcmp(who->labels[i].name, m->what->name) == 0)
			value = who->labels[i].value;
	bool same = m->compiled ? regexec(&m->expression, value, 0, NULL, 0) == 0 : strcmp(value, m->what->value) == 0;
	return same == (m->what->match == MATCH_EQUAL || m->what->match == MATCH_REGEX);
}

struct found {
	struct store_series_info *items;
	size_t n, capacity;
};

static int keep_if(struct connection *c, struct found *f, struct store_series_info *info, const struct matcher *m, size_t n, int64_t from_ms,
                   int64_t to_ms, struct error *err)
{
	int failed = add_open(c, info, err);
	bool keep = !failed && info->last_ms != INT64_MIN && info->first_ms < to_ms && info->last_ms >= from_ms;
	for (size_t i = 0; i < n && keep; i++)
		keep = matches(&m[i], &info->who);
	struct store_series_info *slot = keep ? ARRAY_PUSH(f->items, f->n, f->capacity, UINT32_MAX) : NULL;
	if (slot)
		*slot = *info;
	else
		free((void *)info->who.labels);
	return keep && !slot ? error_nomem(err, "the series") : failed;
}

static int by_first(const void *a, const void *b)
{
	const struct store_series_info *x = a, *y = b;
	if (x->first_ms != y->first_ms)
		return x->first_ms < y->first_ms ? -1 : 1;
	return (x->series > y->series) - (x->series < y->series);
}

static int find_all(struct sqlite_store *s, const struct matcher *m, size_t n, int64_t from_ms, int64_t to_ms, struct found *f,
                    struct error *err)
{
	struct connection *c = db_begin_read(s, err);
	if (!c)
		return err->code;
	sqlite3_stmt *q = db_statement(c, S_ALL_SERIES, err);
	int rc = q ? 0 : err->code;
	while (q && (rc = db_step(c, q, "reading series", err)) > 0) {
		struct store_series_info info;
		rc = read_row(q, &info, err);
		if (!rc)
			rc = keep_if(c, f, &info, m, n, from_ms, to_ms, err);
		if (rc) {
			sqlite3_reset(q);
			break;
		}
	}
	db_end_read(s, c);
	return rc;
}

int sqlite_find_series(struct store *store, const struct store_matcher *m, size_t n, int64_t from_ms, int64_t to_ms,
                       struct store_series_info **ret, size_t *ret_n, struct error *err)
{
	struct error unasked;
	struct found f = { 0 };
	struct matcher *matchers = calloc(n + 1, sizeof *matchers);
	err = err ? err : &unasked;
	int failed = matchers ? 0 : error_nomem(err, "the matchers");
	for (size_t i = 0; i < n && !failed; i++) {
		matchers[i].what = &m[i];
		failed = compile(&matchers[i], err);
	}
	if (!failed)
		failed = find_all((struct sqlite_store *)store, matchers, n, from_ms, to_ms, &f, err);
	for (size_t i = 0; matchers && i < n; i++)
		if (matchers[i].compiled)
			regfree(&matchers[i].expression);
	free(matchers);
	if (failed) {
		store_series_free(f.items, f.n);
		return failed;
	}
	if (f.n)
		qsort(f.items, f.n, sizeof *f.items, by_first);
	*ret = f.items;
	*ret_n = f.n;
	return 0;
}
