/*
 * Numbers become a profile again: each row, stack, frame, binary and string is fetched when it is first met. Addresses are offsets
 * until the end, when it is known how far each file goes; then the mappings get places, none of which ever existed.
 */
#include "store/sqlite_profile.h"

#include <stdlib.h>

#include "profile/operations.h"

/* Below 4 GiB an address space tells nothing of its process (profile_process_identity). */
#define LOW_BASE ((uint64_t)0x10000000)
#define HIGH_BASE ((uint64_t)0x560000000000)
#define BETWEEN ((uint64_t)1 << 21)
#define FILE_SPAN ((uint64_t)1 << 32)
#define STACK_FRAMES_MAX PROFILE_MAX_DEPTH

int assembly_begin(struct assembly *a, struct connection *c, const struct store_budget *b, unsigned metrics, struct error *err)
{
	*a = (struct assembly){ .c = c, .spending = { .budget = b }, .err = err, .p = profile_new(spending_limit(b)) };
	if (!a->p)
		return a->failed = error_nomem(err, "a profile");
	for (int m = 0; m < METRICS; m++)
		if (metrics & 1u << m)
			profile_add_type(a->p, metric_name(m), metric_unit(m));
	return 0;
}

static uint32_t no(struct assembly *a, int failed)
{
	if (!a->failed)
		a->failed = failed ? failed : E_NOMEM;
	return 0;
}

static uint32_t damaged(struct assembly *a, const char *what, uint32_t number)
{
	return no(a, error_set(a->err, E_FORMAT, "%s: damaged: %s %u is missing or cut off", a->c->path, what, number));
}

/* The place of a number and whether it is to be fetched; false: failed. */
static bool place(struct assembly *a, struct numbers *m, uint32_t number, uint32_t *ret_at, bool *ret_new)
{
	if (a->failed)
		return false;
	*ret_at = numbers_place(m, number, ret_new);
	if (*ret_at == INDEX_NONE)
		no(a, error_nomem(a->err, "a profile"));
	else if (*ret_new) {
		int failed = spend(&a->spending, 64, a->err);
		if (failed)
			no(a, failed);
	}
	return !a->failed;
}

static sqlite3_stmt *fetch(struct assembly *a, enum sqlite_statement s, const char *what, uint32_t number)
{
	if (a->failed)
		return NULL;
	sqlite3_stmt *q = db_statement(a->c, s, a->err);
	if (!q) {
		no(a, a->err ? a->err->code : E_IO);
		return NULL;
	}
	sqlite3_bind_int64(q, 1, number);
	int rc = db_step(a->c, q, "reading a profile", a->err);
	if (rc > 0)
		return q;
	if (rc == 0)
		damaged(a, what, number);
	else
		no(a, rc);
	return NULL;
}

uint32_t assembly_string(struct assembly *a, uint32_t string)
{
	uint32_t at;
	bool new;
	if (string == 0 || !place(a, &a->strings, string, &at, &new))
		return 0;
	if (new) {
		sqlite3_stmt *q = fetch(a, S_GET_STRING, "string", string);
		if (!q)
			return 0;
		const char *text = sqlite3_column_blob(q, 0);
		size_t n = (size_t)sqlite3_column_bytes(q, 0);
		a->strings.values[at] = text ? profile_string(a->p, text, n) : 0;
		sqlite3_reset(q);
		int failed = spend(&a->spending, n, a->err);
		if (failed)
			no(a, failed);
	}
	return a->strings.values[at];
}

/* --- binaries and frames --- */

uint32_t assembly_mapping(struct assembly *a, uint32_t build)
{
	uint32_t at;
	bool new;
	if (build == 0 || !place(a, &a->builds, build, &at, &new))
		return PROFILE_NONE;
	if (!new)
		return a->builds.values[at];
	sqlite3_stmt *q = fetch(a, S_GET_BUILD, "binary", build);
	if (!q)
		return PROFILE_NONE;
	int kind = sqlite3_column_int(q, 0);
	const char *path = sqlite3_column_blob(q, 2);
	struct mapping m = {
		.file = profile_string(a->p, path ? path : "", (size_t)sqlite3_column_bytes(q, 2)),
		.build_id = profile_cstring(a->p, (const char *)sqlite3_column_text(q, 1)),
		.executable = true,
	};
	sqlite3_reset(q);
	if (kind < BUILD_FILE || kind > BUILD_MEMORY) {
		damaged(a, "binary", build);
		return PROFILE_NONE;
	}
	uint32_t mapping = profile_add_mapping(a->p, &m);
	if (!memory_grow((void **)&a->extents, &a->extents_capacity, (size_t)mapping + 1, sizeof *a->extents, INDEX_NONE)) {
		no(a, error_nomem(a->err, "a profile"));
		return PROFILE_NONE;
	}
	a->extents[mapping].kind = (enum build_kind)kind;
	a->extents[mapping].least = UINT64_MAX;
	a->extents[mapping].most = 0;
	return a->builds.values[at] = mapping;
}

#define LINES_MAX 4096

/* Names with numbers of the store, to lines of the profile's location. */
static bool set_lines(struct assembly *a, uint32_t location, struct varint_reader *r)
{
	struct line lines[64] = { 0 }, *all = lines;
	uint64_t n = varint_next(r);
	if (r->failed || n > LINES_MAX)
		return false;
	if (n > sizeof lines / sizeof *lines && !(all = malloc(n * sizeof *all))) {
		no(a, error_nomem(a->err, "a profile's lines"));
		return true;
	}
	for (uint64_t i = 0; i < n; i++) {
		struct function f = { .name = assembly_string(a, (uint32_t)varint_next(r)) };
		f.system_name = assembly_string(a, (uint32_t)varint_next(r));
		f.file = assembly_string(a, (uint32_t)varint_next(r));
		f.start_line = varint_next_signed(r);
		all[i].line = varint_next_signed(r);
		all[i].column = (uint32_t)varint_next(r);
		all[i].function = profile_intern_function(a->p, &f);
	}
	profile_set_lines(a->p, location, all, n);
	if (all != lines)
		free(all);
	return !r->failed;
}

static void name_frame(struct assembly *a, uint32_t location, const uint8_t *bytes, size_t n, bool own, uint32_t frame)
{
	struct varint_reader r = { bytes, bytes + n, false };
	if (own)
		a->p->locations[location].folded = varint_next(&r) & 1;
	if (!set_lines(a, location, &r))
		damaged(a, "frame", frame);
	uint32_t mapping = a->p->locations[location].mapping;
	if (mapping == PROFILE_NONE || !a->p->locations[location].n_lines)
		return;
	struct mapping *m = &a->p->mappings[mapping];
	m->has_functions = m->has_filenames = m->has_line_numbers = m->has_inline_frames = true;
}

uint32_t assembly_frame(struct assembly *a, uint32_t frame)
{
	uint32_t at;
	bool new;
	if (!place(a, &a->frames, frame, &at, &new))
		return 0;
	if (!new)
		return a->frames.values[at];
	sqlite3_stmt *q = fetch(a, S_GET_FRAME, "frame", frame);
	if (!q)
		return 0;
	uint32_t build = (uint32_t)sqlite3_column_int64(q, 0), mapping = assembly_mapping(a, build);
	uint64_t offset = (uint64_t)sqlite3_column_int64(q, 1);
	uint32_t location = profile_add_location(a->p, mapping, offset, false, NULL, 0);
	bool own = sqlite3_column_type(q, 2) != SQLITE_NULL;
	int column = own ? 2 : 3;
	if (!a->failed && !a->p->failure.code && sqlite3_column_type(q, column) != SQLITE_NULL)
		name_frame(a, location, sqlite3_column_blob(q, column), (size_t)sqlite3_column_bytes(q, column), own, frame);
	sqlite3_reset(q);
	if (mapping != PROFILE_NONE && !a->failed) {
		uint64_t *least = &a->extents[mapping].least, *most = &a->extents[mapping].most;
		*least = offset < *least ? offset : *least;
		*most = offset > *most ? offset : *most;
	}
	return a->frames.values[at] = location;
}

/* --- rows --- */

static uint32_t fetch_stack(struct assembly *a, uint32_t stack)
{
	uint32_t at;
	bool new;
	if (!place(a, &a->stacks, stack, &at, &new) || !new)
		return a->failed ? 0 : a->stacks.values[at];
	sqlite3_stmt *q = fetch(a, S_GET_STACK, "stack", stack);
	if (!q)
		return 0;
	size_t n = (size_t)sqlite3_column_bytes(q, 0), frames = 0;
	const uint8_t *bytes = sqlite3_column_blob(q, 0);
	struct varint_reader r = { bytes, bytes ? bytes + n : NULL, false };
	uint32_t *locations = malloc((n + 1) * sizeof *locations);
	while (locations && r.at < r.end && !r.failed && !a->failed)
		locations[frames++] = assembly_frame(a, (uint32_t)varint_next(&r));
	sqlite3_reset(q);
	if (!locations)
		no(a, error_nomem(a->err, "a stack"));
	else if (r.failed || frames > STACK_FRAMES_MAX)
		damaged(a, "stack", stack);
	else if (!a->failed)
		a->stacks.values[at] = profile_intern_stack(a->p, locations, frames);
	free(locations);
	return a->stacks.values[at];
}

#define LABELS_MAX 1024

static uint32_t fetch_labels(struct assembly *a, uint32_t labels)
{
	struct label all[LABELS_MAX];
	uint32_t at;
	bool new;
	if (labels == 0 || !place(a, &a->labels, labels, &at, &new))
		return 0;
	if (!new)
		return a->labels.values[at];
	sqlite3_stmt *q = fetch(a, S_GET_LABELS, "label set", labels);
	if (!q)
		return 0;
	size_t n = 0;
	const uint8_t *bytes = sqlite3_column_blob(q, 0);
	struct varint_reader r = { bytes, bytes ? bytes + sqlite3_column_bytes(q, 0) : NULL, false };
	while (r.at < r.end && n < LABELS_MAX) {
		struct label *l = &all[n++];
		l->key = assembly_string(a, (uint32_t)varint_next(&r));
		l->str = assembly_string(a, (uint32_t)varint_next(&r));
		l->unit = assembly_string(a, (uint32_t)varint_next(&r));
		l->number = varint_next_signed(&r);
	}
	bool whole = r.at == r.end && !r.failed;
	sqlite3_reset(q);
	if (!whole)
		return damaged(a, "label set", labels);
	return a->labels.values[at] = profile_intern_labels(a->p, all, n);
}

static void fetch_row(struct assembly *a, uint32_t row, uint32_t at)
{
	if (!memory_grow((void **)&a->row_parts, &a->row_parts_capacity, (size_t)at + 1, sizeof *a->row_parts, INDEX_NONE)) {
		no(a, error_nomem(a->err, "a profile"));
		return;
	}
	sqlite3_stmt *q = fetch(a, S_GET_ROW, "row", row);
	if (!q)
		return;
	uint32_t stack = (uint32_t)sqlite3_column_int64(q, 0), labels = (uint32_t)sqlite3_column_int64(q, 1);
	sqlite3_reset(q);
	a->row_parts[at].stack = fetch_stack(a, stack);
	a->row_parts[at].labels = fetch_labels(a, labels);
}

void assembly_add(struct assembly *a, uint32_t row, uint32_t source, const int64_t *values)
{
	uint32_t at;
	bool new;
	if (!place(a, &a->rows, row, &at, &new))
		return;
	if (new)
		fetch_row(a, row, at);
	if (a->failed)
		return;
	int failed = spend(&a->spending, sizeof(struct sample) + a->p->n_types * sizeof *values, a->err);
	if (failed)
		no(a, failed);
	else
		profile_add_sample(a->p, a->row_parts[at].stack, a->row_parts[at].labels, source, values);
}

/* --- the whole --- */

void assembly_info(struct assembly *a, const struct slot_info *i)
{
	struct profile *p = a->p;
	struct varint_reader comments = i->comments;
	assembly_mapping(a, i->main_build);
	if (i->default_metric >= 0)
		p->default_type = profile_cstring(p, metric_name((enum metric)i->default_metric));
	p->period_type = assembly_string(a, i->period_type);
	p->period_unit = assembly_string(a, i->period_unit);
	p->drop_frames = assembly_string(a, i->drop_frames);
	p->keep_frames = assembly_string(a, i->keep_frames);
	p->doc_url = assembly_string(a, i->doc_url);
	p->period = i->period;
	for (uint64_t k = 0; k < i->n_comments && !comments.failed && !a->failed && !p->failure.code; k++)
		profile_add_comment(p, profile_text(p, assembly_string(a, (uint32_t)varint_next(&comments))));
	if (comments.failed)
		no(a, error_set(a->err, E_FORMAT, "%s: damaged: a profile's comments are cut off", a->c->path));
}

/*
 * All profiles have the same of a file mapped, whichever frames they have: else its frames in two of them would not be the same when these
 * are joined.
 */
static uint64_t span_of(uint64_t last)
{
	uint64_t span = FILE_SPAN;
	while (span <= last)
		span *= 2;
	return span;
}

/* Offsets that no file has (somebody's nonsense) begin where the first of them is. */
static void lay_out(struct assembly *a, uint64_t process)
{
	struct profile *p = a->p;
	uint64_t next = process ? HIGH_BASE + (hash_u64(process) & 0xfffffff) * 4096 : LOW_BASE;
	for (size_t i = 0; i < p->n_mappings; i++) {
		struct mapping *m = &p->mappings[i];
		uint64_t least = a->extents[i].least, most = a->extents[i].most;
		if (least > most)
			least = most = 0;
		switch (a->extents[i].kind) {
		case BUILD_FILE:
			if (most >= (uint64_t)1 << 38)
				m->offset = least & ~(uint64_t)4095;
			m->start = next;
			m->limit = next + span_of(most - m->offset);
			next = m->limit + BETWEEN;
			break;
		case BUILD_MEMORY:
			m->start = least & ~(uint64_t)4095;
			m->limit = most < UINT64_MAX - 4095 ? (most + 4096) & ~(uint64_t)4095 : UINT64_MAX;
			break;
		default:
			break;          /* file space begins at 0, and nobody knows its end */
		}
	}
	for (size_t i = 0; i < p->n_locations; i++) {
		struct location *l = &p->locations[i];
		if (l->mapping != PROFILE_NONE && a->extents[l->mapping].kind == BUILD_FILE)
			l->address += p->mappings[l->mapping].start - p->mappings[l->mapping].offset;
	}
}

int assembly_end(struct assembly *a, uint64_t process, int failed, struct profile **ret, struct error *err)
{
	if (!failed)
		failed = a->failed;
	if (!failed && !a->p->failure.code)
		lay_out(a, process);
	if (!failed)
		failed = profile_finish(a->p, err);
	numbers_finish(&a->strings);
	numbers_finish(&a->builds);
	numbers_finish(&a->frames);
	numbers_finish(&a->stacks);
	numbers_finish(&a->labels);
	numbers_finish(&a->rows);
	free(a->row_parts);
	free(a->extents);
	if (failed)
		profile_free(a->p);
	else
		*ret = a->p;
	return failed;
}
