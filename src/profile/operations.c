/*
 * Several profiles in one: merged (different processes) or as the two sides of a diff. What is
 * the same is found by what it is, never by where it was: a mapping by build id or path, a frame by its
 * offset in the file, a function by its names.
 */
#include "profile/operations.h"

#include <stdlib.h>

/* One input on its way into the result: where each of its things went. */
struct import {
	struct profile *to;
	const struct profile *from;
	bool base;
	uint32_t snapshot;          /* of the sources in the result */
	uint32_t *strings;          /* new number + 1, or 0: not yet copied */
	uint32_t *mappings, *functions, *locations, *stacks, *label_sets;
	const int *columns;         /* per type of the result: the column here */
	struct index *location_index;   /* of the result, by content */
};

static uint32_t import_string(struct import *m, uint32_t id)
{
	if (!m->strings[id])
		m->strings[id] = profile_string(m->to, profile_text(m->from, id),
		                                strings_length(&m->from->strings, id)) + 1;
	return m->strings[id] - 1;
}

/* --- mappings -------------------------------------------------------------- */

static bool same_file(const struct mapping *a, const struct mapping *b)
{
	if (a->build_id && b->build_id)
		return a->build_id == b->build_id;
	if (a->file && b->file)
		return a->file == b->file;
	return a->file == b->file && a->start == b->start;
}

/* No file's code is nearly as big. */
#define EXTENT_MAX ((uint64_t)1 << 40)

bool mapping_has_extent(const struct mapping *m)
{
	return m->limit > m->start && m->limit - m->start <= EXTENT_MAX && m->offset <= UINT64_MAX - EXTENT_MAX;
}

bool mapping_is_file_space(const struct mapping *m)
{
	return m->start == 0 && m->offset == 0 && !mapping_has_extent(m);
}

static bool covers(const struct mapping *a, const struct mapping *b)
{
	if (!mapping_has_extent(a) || !mapping_has_extent(b))
		return a->start == b->start && a->limit == b->limit && a->offset == b->offset;
	uint64_t size = b->limit - b->start;
	return a->offset <= b->offset && b->offset - a->offset <= a->limit - a->start &&
	       size <= (a->limit - a->start) - (b->offset - a->offset);
}

static void import_mappings(struct import *m)
{
	for (size_t i = 0; i < m->from->n_mappings; i++) {
		struct mapping copy = m->from->mappings[i];
		copy.file = import_string(m, copy.file);
		copy.build_id = import_string(m, copy.build_id);
		size_t k = 0;
		while (k < m->to->n_mappings && !(same_file(&m->to->mappings[k], &copy) &&
		                                  covers(&m->to->mappings[k], &copy)))
			k++;
		if (k == m->to->n_mappings)
			k = profile_add_mapping(m->to, &copy);
		else if (!m->to->mappings[k].build_id)
			m->to->mappings[k].build_id = copy.build_id;
		m->mappings[i] = (uint32_t)k;
	}
}

/* --- functions and locations ----------------------------------------------- */

static void import_functions(struct import *m)
{
	for (size_t i = 0; i < m->from->n_functions; i++) {
		struct function f = m->from->functions[i];
		f.name = import_string(m, f.name);
		f.system_name = import_string(m, f.system_name);
		f.file = import_string(m, f.file);
		m->functions[i] = profile_intern_function(m->to, &f);
	}
}

struct content_key {
	const struct profile *p;
	const struct location *l;
	const struct line *lines;
};

static bool same_content(const void *context, uint32_t item)
{
	const struct content_key *k = context;
	const struct location *a = &k->p->locations[item], *b = k->l;
	if (a->address != b->address || a->mapping != b->mapping || a->n_lines != b->n_lines)
		return false;
	for (uint32_t i = 0; i < a->n_lines; i++) {
		const struct line *x = &k->p->lines[a->first_line + i], *y = &k->lines[i];
		if (x->function != y->function || x->line != y->line || x->column != y->column)
			return false;
	}
	return true;
}

static uint32_t import_location(struct import *m, const struct location *l, struct line *lines)
{
	struct location copy = *l;
	if (m->to->failure.code)
		return 0;       /* what the tables say may not be there */
	if (l->mapping != PROFILE_NONE) {
		const struct mapping *from = &m->from->mappings[l->mapping];
		copy.mapping = m->mappings[l->mapping];
		const struct mapping *to = &m->to->mappings[copy.mapping];
		copy.address = l->address - from->start + from->offset - to->offset + to->start;
	}
	uint64_t hash = hash_mix(hash_u64(copy.address), (uint64_t)copy.mapping << 32 | copy.n_lines);
	for (uint32_t i = 0; i < l->n_lines; i++) {
		lines[i] = m->from->lines[l->first_line + i];
		lines[i].function = m->functions[lines[i].function];
		hash = hash_mix(hash, (uint64_t)lines[i].function << 32 ^ (uint64_t)lines[i].line);
	}
	struct content_key key = { m->to, &copy, lines };
	uint32_t id = index_find(m->location_index, hash, same_content, &key);
	if (id != INDEX_NONE)
		return id;
	if (!index_reserve(m->location_index)) {
		error_nomem(&m->to->failure, "locations");
		return 0;
	}
	id = profile_add_location(m->to, copy.mapping, copy.address, copy.folded, lines, copy.n_lines);
	index_insert(m->location_index, hash, id);
	return id;
}

static bool import_locations(struct import *m)
{
	uint32_t most = 1;
	for (size_t i = 0; i < m->from->n_locations; i++)
		if (m->from->locations[i].n_lines > most)
			most = m->from->locations[i].n_lines;
	struct line *lines = malloc(most * sizeof *lines);
	if (!lines)
		return false;
	for (size_t i = 0; i < m->from->n_locations; i++)
		m->locations[i] = import_location(m, &m->from->locations[i], lines);
	free(lines);
	return true;
}

/* --- stacks, labels, samples ------------------------------------------------ */

static bool import_stacks(struct import *m)
{
	uint32_t most = 1;
	for (size_t i = 0; i < m->from->n_stacks; i++)
		if (m->from->stacks[i].n > most)
			most = m->from->stacks[i].n;
	uint32_t *frames = malloc(most * sizeof *frames);
	if (!frames)
		return false;
	for (size_t i = 0; i < m->from->n_stacks; i++) {
		const struct stack *s = &m->from->stacks[i];
		for (uint32_t k = 0; k < s->n; k++)
			frames[k] = m->locations[m->from->frames[s->first + k]];
		m->stacks[i] = profile_intern_stack(m->to, frames, s->n);
	}
	free(frames);
	return true;
}

static bool import_labels(struct import *m)
{
	uint32_t most = 1;
	for (size_t i = 0; i < m->from->n_label_sets; i++)
		if (m->from->label_sets[i].n > most)
			most = m->from->label_sets[i].n;
	struct label *labels = malloc(most * sizeof *labels);
	if (!labels)
		return false;
	for (size_t i = 0; i < m->from->n_label_sets; i++) {
		const struct label_set *s = &m->from->label_sets[i];
		for (uint32_t k = 0; k < s->n; k++) {
			labels[k] = m->from->labels[s->first + k];
			labels[k].key = import_string(m, labels[k].key);
			labels[k].str = import_string(m, labels[k].str);
			labels[k].unit = import_string(m, labels[k].unit);
		}
		m->label_sets[i] = profile_intern_labels(m->to, labels, s->n);
	}
	free(labels);
	return true;
}

static bool import_samples(struct import *m)
{
	uint32_t first_source = (uint32_t)m->to->n_sources;
	for (size_t i = 0; i < m->from->n_sources; i++) {
		struct source s = m->from->sources[i];
		s.name = import_string(m, s.name);
		s.base = m->base;
		s.snapshot = m->snapshot;
		profile_add_source(m->to, &s);
	}
	int64_t *values = malloc((m->to->n_types + 1) * sizeof *values);
	if (!values)
		return false;
	for (size_t i = 0; i < m->from->n_samples; i++) {
		const struct sample *s = &m->from->samples[i];
		for (size_t k = 0; k < m->to->n_types; k++)
			values[k] = m->from->values[i * m->from->n_types + (size_t)m->columns[k]];
		profile_add_sample(m->to, m->stacks[s->stack], m->label_sets[s->labels],
		                   first_source + s->source, values);
	}
	free(values);
	return true;
}

static uint32_t *new_map(size_t n)
{
	return calloc(n + 1, sizeof(uint32_t));
}

/* How inputs go together. */
enum join { JOIN_MERGE, JOIN_DIFF, JOIN_SERIES };

static int import_profile(struct profile *to, const struct profile *from, size_t number, enum join how, const int *columns,
                          struct index *location_index, struct error *err)
{
	struct import m = {
		.to = to, .from = from, .columns = columns, .location_index = location_index,
		.base = how == JOIN_DIFF && number == 0, .snapshot = how == JOIN_SERIES ? (uint32_t)number : 0,
		.strings = new_map(from->strings.n),
		.mappings = new_map(from->n_mappings),
		.functions = new_map(from->n_functions),
		.locations = new_map(from->n_locations),
		.stacks = new_map(from->n_stacks),
		.label_sets = new_map(from->n_label_sets),
	};
	bool ok = m.strings && m.mappings && m.functions && m.locations && m.stacks && m.label_sets;
	if (ok) {
		import_mappings(&m);
		import_functions(&m);
		ok = import_locations(&m) && import_stacks(&m) && import_labels(&m) && import_samples(&m);
		for (size_t i = 0; i < from->n_comments; i++)
			profile_add_comment(to, profile_text(from, from->comments[i]));
	}
	free(m.strings);
	free(m.mappings);
	free(m.functions);
	free(m.locations);
	free(m.stacks);
	free(m.label_sets);
	return ok ? E_OK : error_nomem(err, "joining profiles");
}

/* --- joining ---------------------------------------------------------------- */

/* Types that all inputs have, in the first one's order; columns: n rows of n_types. */
static int common_types(struct profile *to, const struct profile *const *inputs, size_t n, int *columns,
                        struct error *err)
{
	const struct profile *first = inputs[0];
	for (size_t t = 0; t < first->n_types; t++) {
		const char *type = profile_text(first, first->types[t].type);
		bool all = true;
		for (size_t i = 0; i < n && all; i++) {
			int column = i == 0 ? (int)t : profile_type_column(inputs[i], type);
			all = column >= 0;
			columns[i * first->n_types + to->n_types] = column;
		}
		if (all)
			profile_add_type(to, type, profile_text(first, first->types[t].unit));
	}
	if (to->n_types == 0)
		return error_set(err, E_USAGE, "the profiles have no sample type in common (one has %s, another %s)",
		                 first->n_types ? profile_text(first, first->types[0].type) : "none",
		                 inputs[n - 1]->n_types
		                     ? profile_text(inputs[n - 1], inputs[n - 1]->types[0].type)
		                     : "none");
	return E_OK;
}

static void copy_header(struct profile *to, const struct profile *const *inputs, size_t n)
{
	const struct profile *first = inputs[0];
	to->default_type = profile_cstring(to, profile_text(first, first->default_type));
	to->drop_frames = profile_cstring(to, profile_text(first, first->drop_frames));
	to->keep_frames = profile_cstring(to, profile_text(first, first->keep_frames));
	to->doc_url = profile_cstring(to, profile_text(first, first->doc_url));
	to->period_type = profile_cstring(to, profile_text(first, first->period_type));
	to->period_unit = profile_cstring(to, profile_text(first, first->period_unit));
	to->period = first->period;
	for (size_t i = 1; i < n; i++)
		if (inputs[i]->period != first->period)
			to->period = 0;
}

static int join(const struct profile *const *inputs, size_t n, enum join how, struct profile **ret, struct error *err)
{
	struct index location_index = { 0 };
	int *columns = calloc(n * inputs[0]->n_types + 1, sizeof *columns);
	struct profile *to = profile_new(inputs[0]->limit_bytes);
	int code = columns && to ? common_types(to, inputs, n, columns, err)
	                         : error_nomem(err, "joining profiles");
	if (!code)
		copy_header(to, inputs, n);
	for (size_t i = 0; i < n && !code; i++)
		code = import_profile(to, inputs[i], i, how, columns + i * inputs[0]->n_types, &location_index, err);
	if (!code)
		code = profile_finish(to, err);
	index_finish(&location_index);
	free(columns);
	if (code) {
		profile_free(to);
		return code;
	}
	*ret = to;
	return E_OK;
}

static bool same_process(const struct source *a, const struct source *b)
{
	return a->process && a->process == b->process && (!a->pid || !b->pid || a->pid == b->pid);
}

bool profile_same_process(const struct profile *a, const struct profile *b)
{
	for (size_t i = 0; i < a->n_sources; i++)
		for (size_t k = 0; k < b->n_sources; k++)
			if (same_process(&a->sources[i], &b->sources[k]))
				return true;
	return false;
}

int profile_merge(struct profile *const *inputs, size_t n, struct profile **ret, struct error *err)
{
	if (n == 0)
		return error_set(err, E_USAGE, "nothing to merge");
	for (size_t i = 0; i < n; i++)
		for (size_t k = i + 1; k < n; k++)
			if (profile_same_process(inputs[i], inputs[k]))
				return error_set(
				    err, E_USAGE,
				    "%s and %s are dumps of one process: what is in use is not added up over time; "
				    "`heapgauge diff` compares two of them, `heapgauge leaks` ranks growth over a series",
				    profile_text(inputs[i], inputs[i]->sources[0].name),
				    profile_text(inputs[k], inputs[k]->sources[0].name));
	return join((const struct profile *const *)inputs, n, JOIN_MERGE, ret, err);
}

int profile_diff(const struct profile *base, const struct profile *now, struct profile **ret, struct error *err)
{
	const struct profile *inputs[2] = { base, now };
	return join(inputs, 2, JOIN_DIFF, ret, err);
}

int profile_series(const struct profile *const *inputs, size_t n, struct profile **ret, struct error *err)
{
	if (n == 0)
		return error_set(err, E_USAGE, "no profile is given");
	return join(inputs, n, JOIN_SERIES, ret, err);
}
