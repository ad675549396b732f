#include "format/pprof_samples.h"

#include <inttypes.h>
#include <stdlib.h>

static uint64_t random_below(uint64_t *state, uint64_t n)
{
	*state += 0x9e3779b97f4a7c15u;
	return hash_u64(*state) % n;
}

static uint32_t some_text(struct profile *p, uint64_t *s, const char *stem)
{
	static const char *const ends[] = { "", "\"quoted\"", "é", "日本", "\n", "<a&b>", "\x1b[31m", " x" };
	struct buf text;
	buf_init(&text, 4096);
	buf_printf(&text, "%s%" PRIu64 "%s", stem, random_below(s, 50), ends[random_below(s, 8)]);
	uint32_t id = profile_string(p, text.data, text.len);
	buf_finish(&text);
	return id;
}

static void add_header(struct profile *p, uint64_t *s)
{
	if (random_below(s, 4) == 0) {
		uint64_t n = 1 + random_below(s, 5);
		for (uint64_t i = 0; i < n; i++)
			profile_add_type(p, profile_text(p, some_text(p, s, "type")), i & 1 ? "bytes" : "s");
	} else {
		profile_add_heap_types(p, random_below(s, 2));
		p->default_type = profile_cstring(p, "inuse_space");
		p->drop_frames = profile_cstring(p, "(je_)?malloc");
	}
	if (random_below(s, 4)) {
		p->period_type = profile_cstring(p, "space");
		p->period_unit = profile_cstring(p, "bytes");
		p->period = (int64_t)1 << random_below(s, 22);
	}
	if (random_below(s, 3) == 0)
		p->keep_frames = some_text(p, s, "keep");
	for (uint64_t i = random_below(s, 3); i > 0; i--)
		profile_add_comment(p, profile_text(p, some_text(p, s, "comment")));
	struct source now = { .time_nanos = (int64_t)random_below(s, (uint64_t)1 << 62),
		              .duration_nanos = (int64_t)random_below(s, 1 << 30),
		              .header_bytes = -1, .header_objects = -1 };
	profile_add_source(p, &now);
	if (random_below(s, 4) == 0) {
		now.base = true;
		profile_add_source(p, &now);
	}
}

static void add_tables(struct profile *p, uint64_t *s)
{
	uint64_t at = 0x400000;
	for (uint64_t i = random_below(s, 6); i > 0; i--) {
		struct mapping m = { .start = at, .limit = at + (1 + random_below(s, 1000)) * 4096,
			             .offset = random_below(s, 9) * 4096, .executable = true,
			             .file = some_text(p, s, "/lib/"), .has_functions = true,
			             .has_filenames = true, .has_line_numbers = true,
			             .has_inline_frames = true };
		if (random_below(s, 2))
			m.build_id = some_text(p, s, "abcdef");
		at = m.limit + random_below(s, 100) * 4096;
		profile_add_mapping(p, &m);
	}
	for (uint64_t i = 1 + random_below(s, 40); i > 0; i--) {
		struct function f = { .name = some_text(p, s, "fn"), .system_name = some_text(p, s, "_Z"),
			              .file = some_text(p, s, "/src/"),
			              .start_line = (int64_t)random_below(s, 1000) };
		profile_intern_function(p, &f);
	}
	for (uint64_t i = 1 + random_below(s, 80); i > 0; i--) {
		struct line lines[3];
		size_t n = 1 + random_below(s, 3);
		for (size_t k = 0; k < n; k++)
			lines[k] = (struct line){ .function = (uint32_t)random_below(s, p->n_functions),
				                  .line = (int64_t)random_below(s, 3000) - 3,
				                  .column = (uint32_t)random_below(s, 90) };
		uint32_t mapping = p->n_mappings ? (uint32_t)random_below(s, p->n_mappings) : PROFILE_NONE;
		uint64_t address = mapping == PROFILE_NONE ? random_below(s, UINT64_MAX)
		                                           : p->mappings[mapping].start + random_below(s, 4096);
		profile_add_location(p, mapping, address, random_below(s, 9) == 0, lines, n);
	}
}

static uint32_t some_labels(struct profile *p, uint64_t *s)
{
	struct label labels[4];
	size_t n = 0;
	if (random_below(s, 2))
		labels[n++] = (struct label){ .key = profile_cstring(p, "thread"), .str = some_text(p, s, "t") };
	if (random_below(s, 4) == 0)
		labels[n++] = (struct label){ .key = some_text(p, s, "u"), .str = some_text(p, s, "v") };
	if (random_below(s, 2))
		labels[n++] = (struct label){ .key = profile_cstring(p, "bytes"),
			                      .unit = profile_cstring(p, "bytes"),
			                      .number = (int64_t)random_below(s, 1 << 20) };
	if (random_below(s, 4) == 0)
		labels[n++] = (struct label){ .key = some_text(p, s, "w"),
			                      .unit = random_below(s, 2) ? some_text(p, s, "x") : 0,
			                      .number = -1 - (int64_t)random_below(s, 1 << 20) };
	return profile_intern_labels(p, labels, n);
}

struct profile *sample_profile(uint64_t seed)
{
	struct profile *p = profile_new(0);
	uint64_t state = hash_u64(seed + 1), *s = &state;
	if (!p)
		return NULL;
	add_header(p, s);
	add_tables(p, s);
	for (uint64_t i = random_below(s, 50); i > 0; i--) {
		uint32_t frames[64];
		int64_t values[8];
		size_t n = random_below(s, 64);
		for (size_t k = 0; k < n; k++)
			frames[k] = (uint32_t)random_below(s, p->n_locations);
		for (size_t k = 0; k < p->n_types; k++)
			values[k] = (int64_t)(random_below(s, UINT64_MAX) >> random_below(s, 64));
		uint32_t stack = profile_intern_stack(p, frames, n);
		uint32_t source = (uint32_t)random_below(s, p->n_sources);
		for (size_t k = 0; k < p->n_types; k++)
			if (values[k] == INT64_MIN)
				values[k] = 1;
		profile_add_sample(p, stack, some_labels(p, s), source, values);
	}
	struct error err;
	if (profile_finish(p, &err)) {
		profile_free(p);
		return NULL;
	}
	return p;
}

/* --- description ---------------------------------------------------------- */

static void describe_text(const struct profile *p, uint32_t text, struct buf *out)
{
	buf_addc(out, '"');
	buf_add(out, profile_text(p, text), strings_length(&p->strings, text));
	buf_adds(out, "\" ");
}

static void describe_header(const struct profile *p, struct buf *out)
{
	for (size_t i = 0; i < p->n_types; i++) {
		buf_adds(out, "type ");
		describe_text(p, p->types[i].type, out);
		describe_text(p, p->types[i].unit, out);
	}
	const uint32_t texts[] = { p->default_type, p->period_type, p->period_unit,
		                   p->drop_frames,  p->keep_frames, p->doc_url };
	buf_printf(out, "\nperiod %" PRId64 " ", p->period);
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
		describe_text(p, texts[i], out);
	for (size_t i = 0; i < p->n_comments; i++)
		describe_text(p, p->comments[i], out);
	buf_printf(out, "\ntime %" PRId64 " %" PRId64 "\n", p->sources[0].time_nanos,
	           p->sources[0].duration_nanos);
	for (size_t i = 0; i < p->n_mappings; i++) {
		const struct mapping *m = &p->mappings[i];
		buf_printf(out, "mapping %" PRIx64 " %" PRIx64 " %" PRIx64 " %d%d%d%d ", m->start, m->limit,
		           m->offset, m->has_functions, m->has_filenames, m->has_line_numbers,
		           m->has_inline_frames);
		describe_text(p, m->file, out);
		describe_text(p, m->build_id, out);
		buf_addc(out, '\n');
	}
}

static void describe_frame(const struct profile *p, uint32_t location, struct buf *out)
{
	const struct location *l = &p->locations[location];
	buf_printf(out, "  frame %" PRIx64 " mapping %d folded %d", l->address, (int)l->mapping, l->folded);
	for (uint32_t i = 0; i < l->n_lines; i++) {
		const struct line *line = &p->lines[l->first_line + i];
		const struct function *f = &p->functions[line->function];
		buf_printf(out, " [%" PRId64 ":%u %" PRId64 " ", line->line, line->column, f->start_line);
		describe_text(p, f->name, out);
		describe_text(p, f->system_name, out);
		describe_text(p, f->file, out);
		buf_addc(out, ']');
	}
	buf_addc(out, '\n');
}

static const struct profile *comparing;

static int compare_labels(const void *a, const void *b)
{
	const struct label *x = a, *y = b;
	int c = (x->str == 0) - (y->str == 0);
	if (!c)
		c = strcmp(profile_text(comparing, x->key), profile_text(comparing, y->key));
	if (!c)
		c = (x->number > y->number) - (x->number < y->number);
	return c ? c : strcmp(profile_text(comparing, x->str), profile_text(comparing, y->str));
}

static void describe_labels(const struct profile *p, const struct label_set *set, struct buf *out)
{
	if (set->n == 0)
		return;
	struct label *labels = calloc(set->n, sizeof *labels);
	if (!labels)
		abort();
	memcpy(labels, p->labels + set->first, set->n * sizeof *labels);
	comparing = p;
	qsort(labels, set->n, sizeof *labels, compare_labels);
	for (uint32_t i = 0; i < set->n; i++) {
		buf_adds(out, "  label ");
		describe_text(p, labels[i].key, out);
		describe_text(p, labels[i].str, out);
		describe_text(p, labels[i].unit, out);
		buf_printf(out, "%" PRId64 "\n", labels[i].number);
	}
	free(labels);
}

void sample_describe(const struct profile *p, struct buf *out)
{
	describe_header(p, out);
	for (size_t i = 0; i < p->n_samples; i++) {
		const struct sample *s = &p->samples[i];
		const struct stack *stack = &p->stacks[s->stack];
		buf_adds(out, p->sources[s->source].base ? "base sample" : "sample");
		for (size_t k = 0; k < p->n_types; k++)
			buf_printf(out, " %" PRId64, p->values[i * p->n_types + k]);
		buf_addc(out, '\n');
		describe_labels(p, &p->label_sets[s->labels], out);
		for (uint32_t k = 0; k < stack->n; k++)
			describe_frame(p, p->frames[stack->first + k], out);
	}
}
