/*
 * profile.proto, from bytes to the model. Fields may come in any order on the wire (strings
 * first or last), so one scan over the top level checks its framing, notes where the strings are
 * and between which bytes each kind of field lies; then each kind is walked in the order
 * in which things refer to each other: types, mappings, functions, locations, samples.
 *
 * What google/pprof's reader accepts is accepted, with its meaning: unknown fields are skipped, the
 * last of repeated single fields counts, a location may name a mapping that doesn't exist (then it has
 * none), a stack may be empty. Everything else is an error that names the field and its byte.
 */
#include "format/pprof_reader.h"

#include <inttypes.h>
#include <stdlib.h>

static const char *const profile_fields[PPROF_FIELDS] = {
	[PPROF_SAMPLE_TYPE] = "sample_type",     [PPROF_SAMPLE] = "sample",
	[PPROF_MAPPING] = "mapping",             [PPROF_LOCATION] = "location",
	[PPROF_FUNCTION] = "function",           [PPROF_STRING_TABLE] = "string_table",
	[PPROF_DROP_FRAMES] = "drop_frames",     [PPROF_KEEP_FRAMES] = "keep_frames",
	[PPROF_TIME_NANOS] = "time_nanos",       [PPROF_DURATION_NANOS] = "duration_nanos",
	[PPROF_PERIOD_TYPE] = "period_type",     [PPROF_PERIOD] = "period",
	[PPROF_COMMENT] = "comment",             [PPROF_DEFAULT_SAMPLE_TYPE] = "default_sample_type",
	[PPROF_DOC_URL] = "doc_url",
};

/* --- the profile's own fields --------------------------------------------- */

static int read_value_type(struct pprof_reader *r, const struct proto_field *f, uint32_t *ret_type,
                           uint32_t *ret_unit)
{
	uint64_t type = 0, unit = 0;
	const struct pprof_slot slots[] = { { 1, "type", &type }, { 2, "unit", &unit } };
	int rc = pprof_read_message(r, f, slots, 2, 0, NULL);
	if (!rc)
		rc = pprof_text(r, pprof_single("type"), f->at, type, ret_type);
	if (!rc)
		rc = pprof_text(r, pprof_single("unit"), f->at, unit, ret_unit);
	return rc;
}

static int read_sample_type(struct pprof_reader *r, const struct proto_field *f, size_t ordinal)
{
	uint32_t type, unit;
	(void)ordinal;
	int rc = read_value_type(r, f, &type, &unit);
	if (rc)
		return rc;
	uint32_t column = profile_add_type(r->p, "", "");
	rc = pprof_built(r);
	if (!rc)
		r->p->types[column] = (struct sample_type){ type, unit };
	return rc;
}

static int read_period_type(struct pprof_reader *r, const struct proto_field *f, size_t ordinal)
{
	(void)ordinal;
	return read_value_type(r, f, &r->p->period_type, &r->p->period_unit);
}

static int read_number(struct pprof_reader *r, const struct proto_field *f, size_t ordinal)
{
	struct pprof_place leaf = pprof_single(profile_fields[f->number]);
	(void)ordinal;
	switch (f->number) {
	case PPROF_TIME_NANOS:
		if (r->time_nanos)
			return pprof_fail(r, leaf, f->at, E_FORMAT,
			                  "given before; these are two profiles in one file, split or merge them");
		r->time_nanos = (int64_t)f->value;
		return E_OK;
	case PPROF_DURATION_NANOS:
		r->duration_nanos = (int64_t)f->value;
		return E_OK;
	case PPROF_PERIOD:
		r->p->period = (int64_t)f->value;
		return E_OK;
	case PPROF_DROP_FRAMES:
		return pprof_text(r, leaf, f->at, f->value, &r->p->drop_frames);
	case PPROF_KEEP_FRAMES:
		return pprof_text(r, leaf, f->at, f->value, &r->p->keep_frames);
	case PPROF_DEFAULT_SAMPLE_TYPE:
		return pprof_text(r, leaf, f->at, f->value, &r->p->default_type);
	default:
		return pprof_text(r, leaf, f->at, f->value, &r->p->doc_url);
	}
}

static int add_comment(struct pprof_reader *r, const uint8_t *at, uint64_t index)
{
	struct profile *p = r->p;
	uint32_t id;
	int rc = pprof_text(r, (struct pprof_place){ "comment", p->n_comments }, at, index, &id);
	if (rc)
		return rc;
	profile_add_comment(p, "");
	rc = pprof_built(r);
	if (!rc)
		p->comments[p->n_comments - 1] = id;
	return rc;
}

static int read_comment(struct pprof_reader *r, const struct proto_field *f, size_t ordinal)
{
	if (f->wire == PROTO_VARINT)
		return add_comment(r, f->at, f->value);
	int rc = pprof_want_wire(r, (struct pprof_place){ "comment", ordinal }, f, PROTO_BYTES);
	struct proto_cursor c = { f->bytes, f->end };
	while (!rc && c.at < c.end) {
		const uint8_t *at = c.at;
		uint64_t index;
		if (proto_varint(&c, &index) != PROTO_FIELD)
			return pprof_fail(r, (struct pprof_place){ "comment", ordinal }, at, E_FORMAT, "a bad varint");
		rc = add_comment(r, at, index);
	}
	return rc;
}

/* --- mappings, functions, locations --------------------------------------- */

static int read_mapping(struct pprof_reader *r, const struct proto_field *f, size_t ordinal)
{
	static const char deleted[] = " (deleted)";
	const size_t deleted_n = sizeof deleted - 1;
	uint64_t id = 0, file = 0, build_id = 0, flags[4] = { 0 };
	struct mapping m = { .executable = true };
	const struct pprof_slot slots[] = {
		{ 1, "id", &id },
		{ 2, "memory_start", &m.start },
		{ 3, "memory_limit", &m.limit },
		{ 4, "file_offset", &m.offset },
		{ 5, "filename", &file },
		{ 6, "build_id", &build_id },
		{ 7, "has_functions", &flags[0] },
		{ 8, "has_filenames", &flags[1] },
		{ 9, "has_line_numbers", &flags[2] },
		{ 10, "has_inline_frames", &flags[3] },
	};
	(void)ordinal;
	int rc = pprof_read_message(r, f, slots, sizeof slots / sizeof *slots, 0, NULL);
	if (!rc)
		rc = pprof_text(r, pprof_single("filename"), f->at, file, &m.file);
	if (!rc)
		rc = pprof_text(r, pprof_single("build_id"), f->at, build_id, &m.build_id);
	if (rc)
		return rc;
	size_t n = strings_length(&r->p->strings, m.file);
	if (n > deleted_n && !memcmp(profile_text(r->p, m.file) + n - deleted_n, deleted, deleted_n)) {
		m.file = profile_string(r->p, profile_text(r->p, m.file), n - deleted_n);
		m.deleted = true;
	}
	m.has_functions = flags[0];
	m.has_filenames = flags[1];
	m.has_line_numbers = flags[2];
	m.has_inline_frames = flags[3];
	uint32_t item = profile_add_mapping(r->p, &m);
	rc = pprof_built(r);
	return rc ? rc : pprof_ids_add(r, &r->mappings, f->at, id, item);
}

static int read_function(struct pprof_reader *r, const struct proto_field *f, size_t ordinal)
{
	uint64_t id = 0, name = 0, system_name = 0, file = 0, start_line = 0;
	const struct pprof_slot slots[] = {
		{ 1, "id", &id },
		{ 2, "name", &name },
		{ 3, "system_name", &system_name },
		{ 4, "filename", &file },
		{ 5, "start_line", &start_line },
	};
	struct function fn = { 0 };
	(void)ordinal;
	int rc = pprof_read_message(r, f, slots, sizeof slots / sizeof *slots, 0, NULL);
	if (!rc)
		rc = pprof_text(r, pprof_single("name"), f->at, name, &fn.name);
	if (!rc)
		rc = pprof_text(r, pprof_single("system_name"), f->at, system_name, &fn.system_name);
	if (!rc)
		rc = pprof_text(r, pprof_single("filename"), f->at, file, &fn.file);
	if (rc)
		return rc;
	fn.start_line = (int64_t)start_line;
	uint32_t item = profile_intern_function(r->p, &fn);
	rc = pprof_built(r);
	return rc ? rc : pprof_ids_add(r, &r->functions, f->at, id, item);
}

static int read_line(struct pprof_reader *r, const struct proto_field *f, size_t ordinal)
{
	uint64_t function = 0, number = 0, column = 0;
	const struct pprof_slot slots[] = {
		{ 1, "function_id", &function },
		{ 2, "line", &number },
		{ 3, "column", &column },
	};
	int rc = pprof_want_wire(r, (struct pprof_place){ "line", ordinal }, f, PROTO_BYTES);
	if (rc)
		return rc;
	pprof_enter(r, "line", ordinal);
	rc = pprof_read_message(r, f, slots, sizeof slots / sizeof *slots, 0, NULL);
	if (rc)
		return rc;
	uint32_t item = pprof_ids_find(&r->functions, function);
	if (item == PROFILE_NONE)
		return pprof_fail(r, pprof_single("function_id"), f->at, E_FORMAT,
		                  "there is no function with the id %" PRIu64, function);
	pprof_leave(r);
	if (ordinal >= r->limits->depth)
		return pprof_fail(r, pprof_nowhere, f->at, E_LIMIT, "more than %u lines at one location",
		                  r->limits->depth);
	struct line *line = ARRAY_PUSH(r->lines, r->n_lines, r->lines_capacity, r->limits->depth);
	if (!line)
		return pprof_fail_memory(r);
	/* A column that is none (negative, or beyond 32 bits) is one that isn't known. */
	*line = (struct line){ .function = item,
		               .column = column <= UINT32_MAX ? (uint32_t)column : 0,
		               .line = (int64_t)number };
	return E_OK;
}

static int read_location(struct pprof_reader *r, const struct proto_field *f, size_t ordinal)
{
	uint64_t id = 0, mapping = 0, address = 0, folded = 0;
	const struct pprof_slot slots[] = {
		{ 1, "id", &id },
		{ 2, "mapping_id", &mapping },
		{ 3, "address", &address },
		{ 5, "is_folded", &folded },
	};
	(void)ordinal;
	r->n_lines = 0;
	int rc = pprof_read_message(r, f, slots, sizeof slots / sizeof *slots, 4, read_line);
	if (rc)
		return rc;
	uint32_t item = profile_add_location(r->p, pprof_ids_find(&r->mappings, mapping), address, folded,
	                                     r->lines, r->n_lines);
	rc = pprof_built(r);
	return rc ? rc : pprof_ids_add(r, &r->locations, f->at, id, item);
}

/* --- samples -------------------------------------------------------------- */

static const char *varint_fault(enum proto_status status)
{
	return status == PROTO_CUT ? "the packed numbers end inside a varint"
	                           : "a varint of more than 64 bits";
}

/* Room for n more frames, or for as many as the limit allows. */
static bool reserve_frames(struct pprof_reader *r, size_t n)
{
	size_t most = r->limits->depth - r->n_stack;
	return memory_grow((void **)&r->stack, &r->stack_capacity,
	                   r->n_stack + (n < most ? n : most), sizeof *r->stack, r->limits->depth);
}

/* Why frame number n, which has that id, can't be taken. */
static int refuse_frame(struct pprof_reader *r, size_t n, const uint8_t *at, uint64_t id)
{
	struct pprof_place leaf = { "location_id", n };
	if (n >= r->limits->depth)
		return pprof_fail(r, leaf, at, E_LIMIT, "the stack has more than %u frames",
		                  r->limits->depth);
	return pprof_fail(r, leaf, at, E_FORMAT, "there is no location with the id %" PRIu64, id);
}

/* Packed ids: the loop in which reading a profile spends most of its time. */
static int read_packed_frames(struct pprof_reader *r, struct proto_cursor c)
{
	size_t n = r->n_stack, most = r->limits->depth;
	uint32_t *stack = r->stack;
	while (c.at < c.end) {
		const uint8_t *at = c.at;
		uint64_t id;
		enum proto_status status = proto_varint(&c, &id);
		if (status != PROTO_FIELD)
			return pprof_fail(r, (struct pprof_place){ "location_id", n }, at, E_FORMAT, "%s",
			                  varint_fault(status));
		uint32_t item = pprof_ids_find(&r->locations, id);
		if (item == PROFILE_NONE || n >= most)
			return refuse_frame(r, n, at, id);
		stack[n++] = item;
	}
	r->n_stack = n;
	return E_OK;
}

static int read_frames(struct pprof_reader *r, const struct proto_field *f)
{
	if (f->wire != PROTO_VARINT) {
		int rc = pprof_want_wire(r, pprof_single("location_id"), f, PROTO_BYTES);
		if (!rc && !reserve_frames(r, (size_t)(f->end - f->bytes)))
			rc = pprof_fail_memory(r);
		return rc ? rc : read_packed_frames(r, (struct proto_cursor){ f->bytes, f->end });
	}
	uint32_t item = pprof_ids_find(&r->locations, f->value);
	if (item == PROFILE_NONE || r->n_stack >= r->limits->depth)
		return refuse_frame(r, r->n_stack, f->at, f->value);
	if (!reserve_frames(r, 1))
		return pprof_fail_memory(r);
	r->stack[r->n_stack++] = item;
	return E_OK;
}

static void push_value(struct pprof_reader *r, uint64_t value)
{
	if (r->n_values < r->p->n_types)
		r->values[r->n_values] = (int64_t)value;
	r->n_values++;
}

static int read_values(struct pprof_reader *r, const struct proto_field *f)
{
	if (f->wire == PROTO_VARINT) {
		push_value(r, f->value);
		return E_OK;
	}
	int rc = pprof_want_wire(r, pprof_single("value"), f, PROTO_BYTES);
	if (rc)
		return rc;
	struct proto_cursor c = { f->bytes, f->end };
	while (c.at < c.end) {
		uint64_t value;
		enum proto_status status = proto_varint(&c, &value);
		if (status != PROTO_FIELD)
			return pprof_fail(r, (struct pprof_place){ "value", r->n_values }, c.at, E_FORMAT,
			                  "%s", varint_fault(status));
		push_value(r, value);
	}
	return E_OK;
}

/* pprof marks the samples of the profile that was subtracted, whose values it negates. */
static bool marks_base(const struct pprof_reader *r, const struct label *l)
{
	return l->str && !strcmp(profile_text(r->p, l->key), "pprof::base") &&
	       !strcmp(profile_text(r->p, l->str), "true");
}

static int read_label(struct pprof_reader *r, const struct proto_field *f)
{
	uint64_t key = 0, str = 0, number = 0, unit = 0;
	const struct pprof_slot slots[] = {
		{ 1, "key", &key },
		{ 2, "str", &str },
		{ 3, "num", &number },
		{ 4, "num_unit", &unit },
	};
	struct pprof_place place = { "label", r->n_labels };
	struct label label = { 0 };
	int rc = pprof_want_wire(r, place, f, PROTO_BYTES);
	if (rc)
		return rc;
	pprof_enter(r, place.field, place.ordinal);
	rc = pprof_read_message(r, f, slots, sizeof slots / sizeof *slots, 0, NULL);
	if (!rc)
		rc = pprof_text(r, pprof_single("key"), f->at, key, &label.key);
	if (!rc)
		rc = pprof_text(r, pprof_single("str"), f->at, str, &label.str);
	if (!rc)
		rc = pprof_text(r, pprof_single("num_unit"), f->at, unit, &label.unit);
	if (rc)
		return rc;
	pprof_leave(r);
	label.number = (int64_t)number;
	if (label.str) {
		label.unit = 0;
		label.number = 0;
	}
	if (marks_base(r, &label)) {
		r->is_base = true;
		return E_OK;
	}
	struct label *slot = ARRAY_PUSH(r->labels, r->n_labels, r->labels_capacity, UINT32_MAX);
	if (!slot)
		return pprof_fail_memory(r);
	*slot = label;
	return E_OK;
}

static int read_sample_fields(struct pprof_reader *r, const struct proto_field *sample)
{
	struct proto_cursor c = { sample->bytes, sample->end };
	struct proto_field f;
	enum proto_status status;
	int rc = E_OK;
	while (!rc && (status = proto_next(&c, &f)) != PROTO_END) {
		if (status != PROTO_FIELD)
			return pprof_fail_wire(r, &f, status, sample->end);
		if (f.number == 1)
			rc = read_frames(r, &f);
		else if (f.number == 2)
			rc = read_values(r, &f);
		else if (f.number == 3)
			rc = read_label(r, &f);
	}
	return rc;
}

/* The values of a base go under a source of their own, with their sign restored. */
static int use_base_source(struct pprof_reader *r, const uint8_t *at, uint32_t *ret_source)
{
	for (size_t i = 0; i < r->n_values; i++) {
		if (r->values[i] == INT64_MIN)
			return pprof_fail(r, (struct pprof_place){ "value", i }, at, E_FORMAT,
			                  "-2^63 cannot be negated, as a base's value must be");
		r->values[i] = -r->values[i];
	}
	if (r->base_source == PROFILE_NONE) {
		struct source base = r->p->sources[0];
		base.base = true;
		r->base_source = profile_add_source(r->p, &base);
	}
	*ret_source = r->base_source;
	return pprof_built(r);
}

static int read_sample(struct pprof_reader *r, const struct proto_field *f, size_t ordinal)
{
	uint32_t source = 0;
	(void)ordinal;
	r->n_stack = r->n_values = r->n_labels = 0;
	r->is_base = false;
	int rc = read_sample_fields(r, f);
	if (rc)
		return rc;
	if (r->p->n_types == 0)
		return pprof_fail(r, pprof_nowhere, f->at, E_FORMAT, "there is a sample, but no sample_type");
	if (r->n_values != r->p->n_types)
		return pprof_fail(r, pprof_single("value"), f->at, E_FORMAT,
		                  "the sample has %zu values, but there are %zu sample types", r->n_values,
		                  r->p->n_types);
	if (r->is_base && (rc = use_base_source(r, f->at, &source)))
		return rc;
	uint32_t stack = profile_intern_stack(r->p, r->stack, r->n_stack);
	uint32_t labels = profile_intern_labels(r->p, r->labels, r->n_labels);
	profile_add_sample(r->p, stack, labels, source, r->values);
	return pprof_built(r);
}

/* --- the whole ------------------------------------------------------------ */

static int scan_string(struct pprof_reader *r, const struct proto_field *f)
{
	struct pprof_place leaf = { "string_table", r->n_strings };
	int rc = pprof_want_wire(r, leaf, f, PROTO_BYTES);
	if (rc)
		return rc;
	if (r->n_strings == 0 && f->bytes != f->end)
		return pprof_fail(r, leaf, f->at, E_FORMAT, "the first string is not the empty one");
	size_t max = r->limits->profile_bytes / sizeof *r->strings;
	if (r->n_strings >= max)
		return pprof_fail(r, leaf, f->at, E_LIMIT, "more than %zu strings", max);
	const uint8_t **slot = ARRAY_PUSH(r->strings, r->n_strings, r->strings_capacity, max);
	if (!slot)
		return pprof_fail_memory(r);
	*slot = f->at;
	return E_OK;
}

/* The framing of the top level is right, and what lies where. */
static int scan(struct pprof_reader *r)
{
	struct proto_cursor c = { r->bytes, r->bytes + r->n };
	struct proto_field f;
	enum proto_status status;
	while ((status = proto_next(&c, &f)) == PROTO_FIELD) {
		if (f.number >= PPROF_FIELDS)
			continue;
		struct pprof_extent *x = &r->extents[f.number];
		if (x->n++ == 0)
			x->begin = f.at;
		x->end = c.at;
		int rc = f.number == PPROF_STRING_TABLE ? scan_string(r, &f) : E_OK;
		if (rc)
			return rc;
	}
	if (status != PROTO_END)
		return pprof_fail_wire(r, &f, status, c.end);
	if (r->n_strings == 0)
		return pprof_fail(r, pprof_nowhere, r->bytes + r->n, E_FORMAT,
		                  "there is no string_table; this is not a whole pprof profile");
	r->string_ids = calloc(r->n_strings, sizeof *r->string_ids);
	return r->string_ids && pprof_ids_init(&r->mappings, r->extents[PPROF_MAPPING].n) &&
	               pprof_ids_init(&r->functions, r->extents[PPROF_FUNCTION].n) &&
	               pprof_ids_init(&r->locations, r->extents[PPROF_LOCATION].n)
	           ? E_OK
	           : pprof_fail_memory(r);
}

/* All fields of one number, in their order. */
static int walk(struct pprof_reader *r, unsigned number, pprof_field_reader *read)
{
	const struct pprof_extent *x = &r->extents[number];
	struct proto_cursor c = { x->begin, x->end };
	struct proto_field f;
	bool is_message = number <= PPROF_FUNCTION || number == PPROF_PERIOD_TYPE;
	bool is_repeated = number <= PPROF_FUNCTION;
	for (size_t i = 0; i < x->n && proto_next(&c, &f) == PROTO_FIELD;) {
		if (f.number != number)
			continue;
		struct pprof_place place = { profile_fields[number], is_repeated ? i : PPROF_SINGLE };
		int rc = number == PPROF_COMMENT
		             ? E_OK
		             : pprof_want_wire(r, place, &f, is_message ? PROTO_BYTES : PROTO_VARINT);
		if (!rc && is_message)
			pprof_enter(r, place.field, place.ordinal);
		if (!rc)
			rc = read(r, &f, i);
		if (rc)
			return rc;
		if (is_message)
			pprof_leave(r);
		i++;
	}
	return E_OK;
}

/* Its period is the sampling rate only if the profile counts bytes on a heap. */
static bool is_heap(const struct profile *p)
{
	static const char *const heap_types[] = { "inuse_space", "alloc_space", "space" };
	if (strcmp(profile_text(p, p->period_type), "space") != 0 ||
	    strcmp(profile_text(p, p->period_unit), "bytes") != 0)
		return false;
	for (size_t i = 0; i < p->n_types; i++)
		for (size_t h = 0; h < sizeof heap_types / sizeof *heap_types; h++)
			if (!strcmp(profile_text(p, p->types[i].type), heap_types[h]) &&
			    !strcmp(profile_text(p, p->types[i].unit), "bytes"))
				return true;
	return false;
}

static int add_source(struct pprof_reader *r)
{
	struct profile *p = r->p;
	struct source s = {
		.name = profile_cstring(p, r->name),
		.rate = is_heap(p) && p->period > 0 ? (double)p->period : 0,
		.time_nanos = r->time_nanos,
		.duration_nanos = r->duration_nanos,
		.process = profile_process_identity(p),
		.header_objects = -1,
		.header_bytes = -1,
	};
	profile_add_source(p, &s);
	r->values = calloc(p->n_types + 1, sizeof *r->values);
	return r->values ? pprof_built(r) : pprof_fail_memory(r);
}

static int read_all(struct pprof_reader *r)
{
	static const struct {
		unsigned number;
		pprof_field_reader *read;
	} order[] = {
		{ PPROF_SAMPLE_TYPE, read_sample_type }, { PPROF_PERIOD_TYPE, read_period_type },
		{ PPROF_PERIOD, read_number },           { PPROF_TIME_NANOS, read_number },
		{ PPROF_DURATION_NANOS, read_number },   { PPROF_DROP_FRAMES, read_number },
		{ PPROF_KEEP_FRAMES, read_number },      { PPROF_DEFAULT_SAMPLE_TYPE, read_number },
		{ PPROF_DOC_URL, read_number },          { PPROF_COMMENT, read_comment },
		{ PPROF_MAPPING, read_mapping },         { PPROF_FUNCTION, read_function },
		{ PPROF_LOCATION, read_location },
	};
	int rc = scan(r);
	for (size_t i = 0; i < sizeof order / sizeof *order && !rc; i++)
		rc = walk(r, order[i].number, order[i].read);
	if (!rc)
		rc = add_source(r);
	if (!rc)
		rc = walk(r, PPROF_SAMPLE, read_sample);
	if (!rc && (rc = profile_finish(r->p, r->err)))
		error_prefix(r->err, "%s: ", r->name);
	return rc;
}

static void reader_finish(struct pprof_reader *r)
{
	free(r->strings);
	free(r->string_ids);
	pprof_ids_finish(&r->mappings);
	pprof_ids_finish(&r->functions);
	pprof_ids_finish(&r->locations);
	free(r->stack);
	free(r->values);
	free(r->labels);
	free(r->lines);
}

int pprof_read(const void *bytes, size_t n, const char *name, const struct read_limits *limits,
               struct profile **ret, struct error *err)
{
	struct pprof_reader r = { .bytes = bytes, .n = n, .name = name, .limits = limits, .err = err,
		            .base_source = PROFILE_NONE };
	if (n == 0)
		return error_set(err, E_TRUNCATED, "%s: empty, not a pprof profile", name);
	if (n > limits->input_bytes)
		return error_set(err, E_LIMIT, "%s: larger than the limit of %zu bytes", name,
		                 limits->input_bytes);
	r.p = profile_new(limits->profile_bytes);
	int rc = r.p ? read_all(&r) : pprof_fail_memory(&r);
	reader_finish(&r);
	if (rc)
		profile_free(r.p);
	else
		*ret = r.p;
	return rc;
}
