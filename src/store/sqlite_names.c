/*
 * Names for frames that came without: found later, by whoever has the binary, and put to the frame itself, so that every profile
 * that ever had it shows them.
 */
#include <stdlib.h>

#include "store/sqlite_profile.h"
#include "store/sqlite_reads.h"

/* --- which are wanted --- */

static int add_build(sqlite3_stmt *q, struct store_build **list, size_t *n, size_t *capacity, struct error *err)
{
	struct store_build *b = ARRAY_PUSH(*list, *n, *capacity, INDEX_NONE);
	if (!b)
		return error_nomem(err, "the binaries");
	const char *id = (const char *)sqlite3_column_text(q, 0), *path = sqlite3_column_blob(q, 1);
	*b = (struct store_build){ strdup(id ? id : ""), strndup(path ? path : "", (size_t)sqlite3_column_bytes(q, 1)),
		                   (uint64_t)sqlite3_column_int64(q, 2) };
	return b->build_id && b->path ? 0 : error_nomem(err, "the binaries");
}

int sqlite_builds(struct store *store, struct store_build **ret, size_t *ret_n, struct error *err)
{
	struct sqlite_store *s = (struct sqlite_store *)store;
	struct store_build *list = NULL;
	size_t n = 0, capacity = 0;
	struct error unasked;
	err = err ? err : &unasked;
	struct connection *c = db_begin_read(s, err);
	if (!c)
		return err->code;
	sqlite3_stmt *q = db_statement(c, S_UNNAMED_BUILDS, err);
	int rc = q ? 0 : err->code;
	while (q && (rc = db_step(c, q, "reading binaries", err)) > 0) {
		rc = add_build(q, &list, &n, &capacity, err);
		if (rc) {
			sqlite3_reset(q);
			break;
		}
	}
	db_end_read(s, c);
	if (rc) {
		store_builds_free(list, n);
		return rc;
	}
	*ret = list;
	*ret_n = n;
	return 0;
}

int sqlite_unnamed(struct store *store, const char *build_id, size_t max, struct profile **ret, struct error *err)
{
	struct sqlite_store *s = (struct sqlite_store *)store;
	struct assembly a;
	struct error unasked;
	err = err ? err : &unasked;
	struct connection *c = db_begin_read(s, err);
	if (!c)
		return err->code;
	int failed = assembly_begin(&a, c, NULL, 0, err);
	if (!failed) {
		sqlite3_stmt *q = db_statement(c, S_UNNAMED, err);
		int rc = q ? 0 : err->code;
		if (q) {
			sqlite3_bind_text(q, 1, build_id, -1, SQLITE_STATIC);
			sqlite3_bind_int64(q, 2, max > INT32_MAX ? INT32_MAX : (int64_t)max);
		}
		while (q && !a.failed && (rc = db_step(c, q, "reading frames", err)) > 0)
			assembly_frame(&a, (uint32_t)sqlite3_column_int64(q, 0));
		if (q)
			sqlite3_reset(q);
		failed = assembly_end(&a, 0, rc < 0 ? rc : 0, ret, err);
		/* Names that are there are to be replaced. */
		for (size_t i = 0; !failed && i < (*ret)->n_locations; i++)
			(*ret)->locations[i].n_lines = 0;
	}
	db_end_read(s, c);
	return failed;
}

/* --- putting them --- */

struct putting {
	struct sqlite_store *s;
	const struct profile *p;
	struct error *err;
	int failed;
};

static uint32_t number_of_string(void *context, uint32_t string)
{
	struct putting *g = context;
	uint32_t number = 0;
	if (string && !g->failed)
		g->failed = translator_string(g->s, profile_text(g->p, string), strings_length(&g->p->strings, string), &number, g->err);
	return number;
}

static int put_names(struct putting *g, const struct location *l, uint32_t build, struct buf *names)
{
	buf_reset(names);
	if (l->n_lines)
		add_lines(names, g->p, l, number_of_string, g);
	if (names->failed)
		return error_nomem(g->err, "names");
	sqlite3_stmt *q = g->failed ? NULL : db_statement(&g->s->writer, S_PUT_NAMES, g->err);
	if (!q)
		return g->failed ? g->failed : g->err->code;
	sqlite3_bind_int64(q, 1, build);
	sqlite3_bind_int64(q, 2, (int64_t)location_file_offset(g->p, l));
	if (l->n_lines)
		sqlite3_bind_blob64(q, 3, names->data, names->len, SQLITE_STATIC);
	return db_run(&g->s->writer, q, "putting names", g->err);
}

static int put_all(struct putting *g)
{
	const struct profile *p = g->p;
	struct buf names;
	int failed = 0;
	uint32_t *builds = calloc(p->n_mappings + 1, sizeof *builds);
	if (!builds)
		return error_nomem(g->err, "names");
	for (size_t i = 0; i < p->n_mappings && !failed; i++) {
		const struct mapping *m = &p->mappings[i];
		builds[i] = find_build(&g->s->writer, build_kind_of(p, m), profile_text(p, m->build_id), profile_text(p, m->file),
		                       strings_length(&p->strings, m->file), &failed, g->err);
	}
	buf_init(&names, (size_t)16 << 20);
	for (size_t i = 0; i < p->n_locations && !failed; i++) {
		const struct location *l = &p->locations[i];
		if (l->mapping != PROFILE_NONE && builds[l->mapping])
			failed = put_names(g, l, builds[l->mapping], &names);
	}
	buf_finish(&names);
	free(builds);
	return failed;
}

int sqlite_put_names(struct store *store, const struct profile *p, struct error *err)
{
	struct sqlite_store *s = (struct sqlite_store *)store;
	struct error unasked;
	err = err ? err : &unasked;
	struct putting g = { s, p, err, 0 };
	int failed = db_begin_write(s, err);
	return failed ? failed : db_end_write(s, put_all(&g), err);
}

int sqlite_ask_again(struct store *store, const char *build_id, struct error *err)
{
	struct sqlite_store *s = (struct sqlite_store *)store;
	struct error unasked;
	err = err ? err : &unasked;
	int failed = db_begin_write(s, err);
	if (failed)
		return failed;
	sqlite3_stmt *q = db_statement(&s->writer, S_ASK_AGAIN, err);
	if (q)
		sqlite3_bind_text(q, 1, build_id, -1, SQLITE_STATIC);
	failed = q ? db_run(&s->writer, q, "asking again", err) : err->code;
	return db_end_write(s, failed, err);
}
