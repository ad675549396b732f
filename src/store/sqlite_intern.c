/*
 * Numbers for what profiles are made of. What the store has given a number to is remembered by a keyed hash; what isn't remembered is asked for,
 * compared byte by byte, and added when it is new.
 *
 *   mapping  -> build   by build id, or path      frames     -> stack    (all numbers, leaf first)
 *   location -> frame   build and file offset,    label set  -> labels
 *                       names it came with        stack, labels, how many-th of its kind -> row
 */
#include "store/sqlite_intern.h"

#include "profile/operations.h"

static struct key key_of(const struct translator *t, const void *bytes, size_t n, uint64_t also)
{
	struct key k = { hash_mix(t->seed[0], also ^ n), hash_mix(t->seed[1], also + n) };
	const char *at = bytes;
	for (; n > 0; n -= n < 8 ? n : 8, at += 8) {
		uint64_t word = 0;
		memcpy(&word, at, n < 8 ? n : 8);
		k.high = hash_mix(k.high, word);
		k.low = hash_mix(k.low + word, k.high);
	}
	return k;
}

/* --- asking and adding --- */

uint32_t intern_failed(struct passage *g, int failed)
{
	if (!g->failed)
		g->failed = failed ? failed : E_NOMEM;
	return 0;
}

/* The number of the last INSERT. */
static uint32_t added(struct passage *g, sqlite3_stmt *q)
{
	int rc = db_run(g->c, q, "adding", g->err);
	if (rc)
		return intern_failed(g, rc);
	int64_t id = sqlite3_last_insert_rowid(g->c->db);
	if (id <= 0 || id >= UINT32_MAX)
		return intern_failed(g, error_set(g->err, E_LIMIT, "%s: has as many different stacks as it can number", g->c->path));
	return (uint32_t)id;
}

static sqlite3_stmt *ask(struct passage *g, enum sqlite_statement s)
{
	if (g->failed)
		return NULL;
	sqlite3_stmt *q = db_statement(g->c, s, g->err);
	if (!q)
		intern_failed(g, g->err->code);
	return q;
}

/* Among the rows (id, bytes) the one with these bytes; 0: none, or failed. */
static uint32_t same_bytes(struct passage *g, sqlite3_stmt *q, const void *bytes, size_t n)
{
	int rc;
	while ((rc = db_step(g->c, q, "looking for what is known", g->err)) > 0) {
		const void *there = sqlite3_column_blob(q, 1);
		if ((size_t)sqlite3_column_bytes(q, 1) == n && (n == 0 || (there && memcmp(there, bytes, n) == 0))) {
			uint32_t id = (uint32_t)sqlite3_column_int64(q, 0);
			sqlite3_reset(q);
			return id;
		}
	}
	return rc < 0 ? intern_failed(g, rc) : 0;
}

static void bind_bytes(sqlite3_stmt *q, int at, const void *bytes, size_t n)
{
	sqlite3_bind_blob64(q, at, n ? bytes : "", n, SQLITE_STATIC);
}

/* Found by hash and bytes, or added with both. */
static uint32_t by_hash(struct passage *g, enum sqlite_statement find, enum sqlite_statement add, const void *bytes, size_t n, uint32_t base)
{
	int64_t hash = (int64_t)hash_bytes(bytes, n);
	sqlite3_stmt *q = ask(g, find);
	if (!q)
		return 0;
	sqlite3_bind_int64(q, 1, hash);
	uint32_t id = same_bytes(g, q, bytes, n);
	if (id || !(q = ask(g, add)))
		return id;
	sqlite3_bind_int64(q, 1, hash);
	bind_bytes(q, 2, bytes, n);
	if (base)
		sqlite3_bind_int64(q, 3, base);
	return added(g, q);
}

uint32_t intern_text(struct passage *g, const char *text, size_t n)
{
	if (n == 0)
		return 0;
	struct key k = key_of(g->t, text, n, 1);
	struct idmap_entry *e = idmap_find(&g->t->strings, k.high, k.low);
	uint32_t id = e ? e->id : by_hash(g, S_FIND_STRING, S_ADD_STRING, text, n, 0);
	sweep_use(g->t->sweep, SWEEP_STRINGS, id);
	if (id && !e)
		idmap_put(&g->t->strings, k.high, k.low, id, 0);
	return id;
}

uint32_t intern_string(struct passage *g, uint32_t string)
{
	uint32_t *id = &g->t->string_ids[string];
	if (string && !*id)
		*id = intern_text(g, profile_text(g->p, string), strings_length(&g->p->strings, string));
	return string ? *id : 0;
}

/* --- builds and frames --- */

enum build_kind build_kind_of(const struct profile *p, const struct mapping *m)
{
	const char *file = profile_text(p, m->file);
	if (*file == '\0' || (*file == '[' && strcmp(file, "[vdso]") != 0))
		return BUILD_MEMORY;
	return mapping_is_file_space(m) ? BUILD_FILE_SPACE : BUILD_FILE;
}

uint32_t find_build(struct connection *c, enum build_kind kind, const char *build_id, const char *path, size_t path_n, int *ret_failed,
                    struct error *err)
{
	bool by_id = *build_id != '\0';
	sqlite3_stmt *q = db_statement(c, by_id ? S_FIND_BUILD_BY_ID : S_FIND_BUILD, err);
	*ret_failed = q ? 0 : err->code;
	if (!q)
		return 0;
	sqlite3_bind_text(q, 1, build_id, -1, SQLITE_STATIC);
	if (!by_id)
		bind_bytes(q, 2, path, path_n);
	sqlite3_bind_int(q, by_id ? 2 : 3, kind);
	int rc = db_step(c, q, "looking for a binary", err);
	uint32_t id = rc > 0 ? (uint32_t)sqlite3_column_int64(q, 0) : 0;
	sqlite3_reset(q);
	*ret_failed = rc < 0 ? rc : 0;
	return id;
}

uint32_t intern_build(struct passage *g, uint32_t mapping)
{
	uint32_t *slot = &g->t->build_ids[mapping];
	if (*slot || g->failed)
		return *slot;
	const struct mapping *m = &g->p->mappings[mapping];
	const char *build_id = profile_text(g->p, m->build_id), *path = profile_text(g->p, m->file);
	size_t path_n = strings_length(&g->p->strings, m->file);
	enum build_kind kind = build_kind_of(g->p, m);
	struct key k = key_of(g->t, *build_id ? build_id : path, *build_id ? strings_length(&g->p->strings, m->build_id) : path_n,
	                      (uint64_t)kind << 1 | (*build_id != '\0'));
	struct idmap_entry *e = idmap_find(&g->t->builds, k.high, k.low);
	if (e)
		return *slot = e->id;
	int failed;
	*slot = find_build(g->c, kind, build_id, path, path_n, &failed, g->err);
	if (failed)
		return intern_failed(g, failed);
	sqlite3_stmt *q = *slot ? NULL : ask(g, S_ADD_BUILD);
	if (q) {
		sqlite3_bind_int(q, 1, kind);
		sqlite3_bind_text(q, 2, build_id, -1, SQLITE_STATIC);
		bind_bytes(q, 3, path, path_n);
		*slot = added(g, q);
	}
	sweep_use(g->t->sweep, SWEEP_BUILDS, *slot);
	if (*slot)
		idmap_put(&g->t->builds, k.high, k.low, *slot, 0);
	return *slot;
}

void add_lines(struct buf *to, const struct profile *p, const struct location *l, string_number *number, void *context)
{
	varint_add(to, l->n_lines);
	for (uint32_t i = 0; i < l->n_lines; i++) {
		const struct line *line = &p->lines[l->first_line + i];
		const struct function *f = &p->functions[line->function];
		varint_add(to, number(context, f->name));
		varint_add(to, number(context, f->system_name));
		varint_add(to, number(context, f->file));
		varint_add_signed(to, f->start_line);
		varint_add_signed(to, line->line);
		varint_add(to, line->column);
	}
}

struct varint_reader column_numbers(sqlite3_stmt *q, int column)
{
	const uint8_t *bytes = sqlite3_column_blob(q, column);
	return (struct varint_reader){ bytes, bytes ? bytes + sqlite3_column_bytes(q, column) : NULL, false };
}

static bool visit_three(struct varint_reader *r, string_visitor *visit, void *context)
{
	for (int i = 0; i < 3; i++)
		if (!visit(context, varint_next(r)))
			return false;
	return !r->failed;
}

static bool line_strings(struct varint_reader *r, string_visitor *visit, void *context)
{
	for (uint64_t n = varint_next(r); n > 0; n--) {
		if (!visit_three(r, visit, context))
			return false;
		for (int i = 0; i < 3; i++)
			varint_next(r);
	}
	return !r->failed;
}

bool frame_strings(sqlite3_stmt *q, int own, int names, string_visitor *visit, void *context)
{
	struct varint_reader came_with = column_numbers(q, own), later = column_numbers(q, names);
	if (came_with.at) {
		varint_next(&came_with); /* folded */
		if (!line_strings(&came_with, visit, context))
			return false;
	}
	return !later.at || line_strings(&later, visit, context);
}

static uint32_t number_of_string(void *context, uint32_t string)
{
	return intern_string(context, string);
}

/* What makes the frame this one besides its place; empty when there is nothing. */
static void own_lines(struct passage *g, const struct location *l)
{
	struct buf *b = &g->t->blob;
	buf_reset(b);
	if (l->n_lines == 0 && !l->folded)
		return;
	varint_add(b, l->folded);
	add_lines(b, g->p, l, number_of_string, g);
	if (b->failed)
		intern_failed(g, error_nomem(g->err, "a frame's names"));
}

static uint32_t look_up_frame(struct passage *g, uint32_t build, uint64_t offset)
{
	struct buf *own = &g->t->blob;
	sqlite3_stmt *q = ask(g, S_FIND_FRAME);
	if (!q)
		return 0;
	sqlite3_bind_int64(q, 1, build);
	sqlite3_bind_int64(q, 2, (int64_t)offset);
	uint32_t id = same_bytes(g, q, own->data, own->len);
	if (id || !(q = ask(g, S_ADD_FRAME)))
		return id;
	sqlite3_bind_int64(q, 1, build);
	sqlite3_bind_int64(q, 2, (int64_t)offset);
	if (own->len)
		bind_bytes(q, 3, own->data, own->len);
	return added(g, q);
}

uint32_t intern_frame(struct passage *g, uint32_t location)
{
	const struct location *l = &g->p->locations[location];
	uint32_t build = l->mapping == PROFILE_NONE ? 0 : intern_build(g, l->mapping);
	uint64_t offset = location_file_offset(g->p, l);
	own_lines(g, l);
	struct key k = key_of(g->t, g->t->blob.data, g->t->blob.len, hash_mix(build, offset));
	k.high = hash_mix(k.high, offset);
	k.low = hash_mix(k.low, (uint64_t)build << 32 ^ offset);
	if (g->failed)
		return 0;
	struct idmap_entry *e = idmap_find(&g->t->frames, k.high, k.low);
	uint32_t id = e ? e->id : look_up_frame(g, build, offset);
	if (id && !e)
		idmap_put(&g->t->frames, k.high, k.low, id, 0);
	sweep_use(g->t->sweep, SWEEP_FRAMES, id);
	return g->t->frame_ids[location] = id;
}

/* --- labels --- */

static uint32_t intern_label_bytes(struct passage *g, uint32_t base)
{
	struct buf *b = &g->t->blob;
	if (b->failed)
		return intern_failed(g, error_nomem(g->err, "labels"));
	uint32_t id = by_hash(g, S_FIND_LABELS, S_ADD_LABELS, b->data, b->len, base);
	sweep_use(g->t->sweep, SWEEP_LABELS, id);
	return id;
}

static void label_bytes(struct passage *g, const struct label_set *set, bool without_size)
{
	struct buf *b = &g->t->blob;
	buf_reset(b);
	for (uint32_t i = 0; i < set->n && !g->failed; i++) {
		const struct label *l = &g->p->labels[set->first + i];
		if (without_size && !l->str && strcmp(profile_text(g->p, l->key), "bytes") == 0)
			continue;
		varint_add(b, intern_string(g, l->key));
		varint_add(b, intern_string(g, l->str));
		varint_add(b, intern_string(g, l->unit));
		varint_add_signed(b, l->number);
	}
}

uint32_t intern_labels(struct passage *g, uint32_t set_number)
{
	const struct label_set *set = &g->p->label_sets[set_number];
	uint32_t base = 0, id = 0;
	if (set->block_size) {
		label_bytes(g, set, true);
		base = g->t->blob.len ? intern_label_bytes(g, 0) : 0;
	}
	label_bytes(g, set, false);
	if (g->t->blob.len && !g->failed) {
		struct key k = key_of(g->t, g->t->blob.data, g->t->blob.len, 2);
		struct idmap_entry *e = idmap_find(&g->t->labels, k.high, k.low);
		id = e ? e->id : intern_label_bytes(g, set->block_size ? base + 1 : 0);
		if (id && !e)
			idmap_put(&g->t->labels, k.high, k.low, id, 0);
		sweep_use(g->t->sweep, SWEEP_LABELS, id);
	}
	return g->t->label_ids[set_number] = id + 1;
}

bool label_strings(sqlite3_stmt *q, int column, string_visitor *visit, void *context)
{
	struct varint_reader r = column_numbers(q, column);
	while (r.at < r.end) {
		if (!visit_three(&r, visit, context))
			return false;
		varint_next(&r);
	}
	return !r.failed;
}

/* --- stacks and rows --- */

uint32_t intern_stack(struct passage *g, const struct stack *s)
{
	struct buf *b = &g->t->blob;
	const uint32_t *frames = g->p->frames + s->first;
	for (uint32_t i = 0; i < s->n && !g->failed; i++)
		if (!g->t->frame_ids[frames[i]])
			intern_frame(g, frames[i]);
	buf_reset(b);
	for (uint32_t i = 0; i < s->n; i++)
		varint_add(b, g->t->frame_ids[frames[i]]);
	if (b->failed)
		return intern_failed(g, error_nomem(g->err, "a stack"));
	return by_hash(g, S_FIND_STACK, S_ADD_STACK, b->data, b->len, 0);
}

/* The labels without block size, plus one; 0: they have none. */
static uint32_t base_labels(struct passage *g, uint32_t labels)
{
	sqlite3_stmt *q = labels ? ask(g, S_GET_LABELS) : NULL;
	if (!q)
		return 0;
	sqlite3_bind_int64(q, 1, labels);
	int rc = db_step(g->c, q, "looking for labels", g->err);
	uint32_t base = rc > 0 ? (uint32_t)sqlite3_column_int64(q, 1) : 0;
	sqlite3_reset(q);
	return rc < 0 ? intern_failed(g, rc) : base;
}

static uint32_t look_up_row(struct passage *g, uint32_t stack, uint32_t labels, uint32_t nth)
{
	sqlite3_stmt *q = ask(g, S_FIND_ROW);
	if (!q)
		return 0;
	sqlite3_bind_int64(q, 1, stack);
	sqlite3_bind_int64(q, 2, labels);
	sqlite3_bind_int64(q, 3, nth);
	int rc = db_step(g->c, q, "looking for a stack", g->err);
	if (rc < 0)
		return intern_failed(g, rc);
	uint32_t id = rc > 0 ? (uint32_t)sqlite3_column_int64(q, 0) : 0, seen = rc > 0 ? (uint32_t)sqlite3_column_int64(q, 1) : 0;
	sqlite3_reset(q);
	if (id && seen < g->day && (q = ask(g, S_SEE_ROW))) {
		sqlite3_bind_int64(q, 1, id);
		sqlite3_bind_int64(q, 2, g->day);
		rc = db_run(g->c, q, "noting a stack", g->err);
		if (rc)
			return intern_failed(g, rc);
	}
	return id;
}

/* What it allocated counts on across a change of the block size: the row without one is its base. */
uint32_t intern_row(struct passage *g, uint32_t stack, uint32_t labels, uint32_t nth)
{
	uint32_t id = look_up_row(g, stack, labels, nth), base_set = id ? 0 : base_labels(g, labels);
	uint32_t base = base_set && !g->failed ? intern_row(g, stack, base_set - 1, 0) : 0;
	sqlite3_stmt *q = id ? NULL : ask(g, S_ADD_ROW);
	if (!q)
		return id;
	sqlite3_bind_int64(q, 1, stack);
	sqlite3_bind_int64(q, 2, labels);
	sqlite3_bind_int64(q, 3, nth);
	if (base)
		sqlite3_bind_int64(q, 4, base);
	sqlite3_bind_int64(q, 5, g->day);
	return added(g, q);
}
