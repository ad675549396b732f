/* Profiles made of chance, and whether two say the same: frames are compared by what they are, not by where they were. */
#ifndef TESTS_STORE_RANDOM_PROFILE_H
#define TESTS_STORE_RANDOM_PROFILE_H

#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"
#include "profile/operations.h"
#include "profile/view.h"

struct chance {
	uint64_t state;
};

static inline uint64_t chance(struct chance *c, uint64_t below)
{
	c->state = hash_u64(c->state + 0x9e3779b97f4a7c15u);
	return below ? c->state % below : c->state;
}

/* One process: its stacks are the same in all of its profiles, its values change. */
struct process {
	uint64_t seed, slide, process;
	unsigned stacks;
	bool with_alloc, with_names, odd;       /* odd: mappings and values nobody sane has */
	double rate;
};

static inline void add_random_mappings(struct profile *p, const struct process *w)
{
	static const char *const files[] = { "/usr/bin/server", "/usr/lib/libone.so", "/usr/lib/libone.so", "[vdso]", "[heap]", "", "/old/tool" };
	for (unsigned i = 0; i < sizeof files / sizeof *files; i++) {
		struct mapping m = { .start = 0x560000000000 + w->slide + i * 0x10000000, .offset = i * 0x1000, .executable = true };
		m.limit = m.start + 0x4000000;
		m.file = profile_cstring(p, files[i]);
		if (i < 3)
			m.build_id = profile_cstring(p, i ? "00112233445566778899aabbccddeeff00112233" : "abcdef0123456789");
		if (i == 2)
			m.offset = 0x5000000;
		if (i == 6 && w->odd)
			m.start = m.offset = 0, m.limit = UINT64_MAX;
		profile_add_mapping(p, &m);
	}
}

static inline uint32_t random_location(struct profile *p, const struct process *w, struct chance *c)
{
	uint64_t which = chance(c, 400);
	struct chance own = { w->seed + which };
	uint32_t mapping = (uint32_t)chance(&own, 8);
	uint64_t address = chance(&own, 0x3000000);
	mapping = mapping == 7 || (!w->odd && mapping > 3) ? which % 3 ? 0 : PROFILE_NONE : mapping;
	if (mapping != PROFILE_NONE)
		address += p->mappings[mapping].start;
	uint32_t location = profile_intern_location(p, mapping, address);
	if (w->with_names && which % 2 && !p->locations[location].n_lines) {
		struct line lines[3] = { { 0 } };
		unsigned n = 1 + (unsigned)chance(&own, 3);
		for (unsigned i = 0; i < n; i++) {
			char name[64];
			snprintf(name, sizeof name, "function_%u", (unsigned)chance(&own, 100));
			struct function f = { .name = profile_cstring(p, name), .file = profile_cstring(p, "a.c"),
				              .start_line = (int64_t)chance(&own, 9) };
			lines[i] = (struct line){ profile_intern_function(p, &f), (uint32_t)chance(&own, 3), (int64_t)chance(&own, 1000) };
		}
		profile_set_lines(p, location, lines, n);
		p->locations[location].folded = chance(&own, 2);
	}
	return location;
}

static inline int64_t random_value(const struct process *w, struct chance *c)
{
	if (w->odd && chance(c, 20) == 0)
		return (int64_t)chance(c, 0) >> chance(c, 63);
	return (int64_t)chance(c, (uint64_t)1 << chance(c, 36));
}

static inline uint32_t random_labels(struct profile *p, struct chance *c, uint64_t moment)
{
	uint32_t thread = 0;
	uint64_t size = 0;
	char name[32];
	if (chance(c, 3)) {
		snprintf(name, sizeof name, "t%u worker", (unsigned)chance(c, 5));
		thread = profile_cstring(p, name);
	}
	/* Of one size or of several, which changes over time. */
	if (chance(c, 2) || (chance(c, 3) == 0 && moment % 2))
		size = (uint64_t)16 << chance(c, 6);
	return profile_intern_heap_labels(p, thread, size);
}

/* The profile of that process at that moment; the same again for the same arguments. */
static inline struct profile *random_profile(const struct process *w, uint64_t moment, int64_t time_ms)
{
	struct profile *p = profile_new(0);
	struct chance noise = { w->seed * 31 + moment };
	profile_add_heap_types(p, w->with_alloc);
	add_random_mappings(p, w);
	struct source s = { .rate = w->rate, .time_nanos = time_ms * 1000000 + (int64_t)chance(&noise, 1000), .process = w->process, .pid = w->seed % 30000,
		            .header_objects = -1, .header_bytes = -1, .name = profile_cstring(p, "http://somewhere/"),
		            .raw_counts = w->seed & 1 };
	if (w->seed & 2)
		s.header_objects = 1.5, s.header_bytes = 4711.25;
	uint32_t source = profile_add_source(p, &s);
	if (w->seed & 4) {
		p->default_type = profile_cstring(p, "inuse_objects");
		p->period_type = profile_cstring(p, "space");
		p->period_unit = profile_cstring(p, "bytes");
		p->period = (int64_t)w->rate;
		profile_add_comment(p, "made of chance");
	}
	for (unsigned i = 0; i < w->stacks; i++) {
		struct chance c = { w->seed * 1000003 + i }, now = { w->seed + i * 77777 };
		uint32_t frames[32], n = (uint32_t)chance(&c, 20);
		for (uint32_t k = 0; k < n; k++)
			frames[k] = random_location(p, w, &c);
		if (!w->odd)            /* no two alike */
			frames[n++] = profile_intern_location(p, 0, p->mappings[0].start + 0x3800000 + i);
		uint32_t stack = profile_intern_stack(p, frames, n), labels = random_labels(p, &c, moment);
		/* A third changes at each moment; some come and go. */
		uint64_t since = moment - (i % 3 ? moment % (2 + i % 7) : 0);
		now.state += since * 1234567;
		if (chance(&now, 5) == 0)
			continue;
		int64_t values[4] = { (int64_t)(since + i), (int64_t)(since * 100 + i), random_value(w, &now), random_value(w, &now) };
		if (w->with_alloc && chance(&now, 50) == 0)
			values[0] = values[1] = 1;
		int twins = w->odd && chance(&now, 10) == 0 ? 3 : 1;
		for (int t = 0; t < twins; t++)
			profile_add_sample(p, stack, labels, source, w->with_alloc ? values : values + 2);
	}
	return profile_finish(p, NULL) == 0 ? p : NULL;
}

/* --- the same? Each sample as a line of text, sorted. --- */

static inline void add_frame_text(struct buf *b, const struct profile *p, uint32_t location)
{
	const struct location *l = &p->locations[location];
	const struct mapping *m = l->mapping == PROFILE_NONE ? NULL : &p->mappings[l->mapping];
	buf_printf(b, "%s %s+%llx%s", m ? profile_text(p, m->build_id) : "-", !m ? "" : m->build_id ? "" : profile_text(p, m->file),
	           (unsigned long long)location_file_offset(p, l), l->folded ? "F" : "");
	for (uint32_t i = 0; i < l->n_lines; i++) {
		const struct line *line = &p->lines[l->first_line + i];
		const struct function *f = &p->functions[line->function];
		buf_printf(b, "(%s,%s,%s,%lld,%lld,%u)", profile_text(p, f->name), profile_text(p, f->system_name), profile_text(p, f->file),
		           (long long)f->start_line, (long long)line->line, line->column);
	}
	buf_adds(b, "; ");
}

static inline int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

enum { WITH_SIZE = 1, WITH_VALUES = 2 };
static inline char *sample_text(const struct profile *p, size_t i, int what)
{
	struct buf b;
	const struct sample *s = &p->samples[i];
	const struct stack *stack = &p->stacks[s->stack];
	const struct label_set *set = &p->label_sets[s->labels];
	buf_init(&b, 1 << 20);
	buf_adds(&b, "");
	for (uint32_t k = 0; k < stack->n; k++)
		add_frame_text(&b, p, p->frames[stack->first + k]);
	for (uint32_t k = 0; k < set->n; k++) {
		const struct label *l = &p->labels[set->first + k];
		if (!(what & WITH_SIZE) && !l->str && strcmp(profile_text(p, l->key), "bytes") == 0)
			continue;
		buf_printf(&b, "[%s=%s %lld %s]", profile_text(p, l->key), profile_text(p, l->str), (long long)l->number, profile_text(p, l->unit));
	}
	for (size_t k = 0; k < p->n_types && what & WITH_VALUES; k++)
		buf_printf(&b, " %s=%lld", profile_text(p, p->types[k].type), (long long)p->values[i * p->n_types + k]);
	return b.data;
}

static inline char **sample_texts(const struct profile *p)
{
	char **texts = calloc(p->n_samples + 1, sizeof *texts);
	for (size_t i = 0; i < p->n_samples; i++)
		texts[i] = sample_text(p, i, WITH_SIZE | WITH_VALUES);
	qsort(texts, p->n_samples, sizeof *texts, by_text);
	return texts;
}

/* False with the first difference on stderr. */
static inline bool same_samples(const struct profile *a, const struct profile *b)
{
	bool same = a->n_samples == b->n_samples;
	if (!same)
		fprintf(stderr, "%zu samples and %zu\n", a->n_samples, b->n_samples);
	char **x = sample_texts(a), **y = sample_texts(b);
	for (size_t i = 0; i < a->n_samples && i < b->n_samples; i++)
		if (same && strcmp(x[i], y[i]) != 0) {
			fprintf(stderr, "- %s\n+ %s\n", x[i], y[i]);
			same = false;
		}
	for (size_t i = 0; i < a->n_samples; i++)
		free(x[i]);
	for (size_t i = 0; i < b->n_samples; i++)
		free(y[i]);
	free(x);
	free(y);
	return same;
}

#endif
