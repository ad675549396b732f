/* Binaries are the same when their paths are; several mappings may be of one file. */
#include "report/flame_modules.h"


#include <stdlib.h>
#include <string.h>

static uint32_t mapping_slot(const struct view *v, uint32_t mapping)
{
	return mapping == PROFILE_NONE ? (uint32_t)v->profile->n_mappings : mapping;
}

static int compare_modules(const void *a, const void *b, void *context)
{
	const struct flame_module *x = a, *y = b;
	const struct profile *p = context;
	if (x->weight != y->weight)
		return x->weight > y->weight ? -1 : 1;
	return strcmp(profile_text(p, x->file), profile_text(p, y->file));
}

/* One module for each path that has a mapping; *first_of: path -> module + 1. */
static bool collect(const struct view *v, struct flame_modules *m, uint32_t *first_of)
{
	const struct profile *p = v->profile;
	for (size_t i = 0; i <= p->n_mappings; i++) {
		uint32_t file = i < p->n_mappings ? p->mappings[i].file : 0;
		if (!first_of[file]) {
			struct flame_module *module = ARRAY_PUSH(m->modules, m->n, m->capacity, UINT32_MAX);
			if (!module)
				return false;
			*module = (struct flame_module){ .file = file };
			first_of[file] = (uint32_t)m->n;
		}
		m->of_mapping[i] = first_of[file] - 1;
	}
	return true;
}

/* A binary weighs what its frames hold themselves, and a little for each stack it takes part in. */
static void weigh(const struct view *v, const struct flame_stacks *s, bool inverted, struct flame_modules *m)
{
	m->by_name = true;
	for (size_t i = 0; i < s->n; i++) {
		const struct sequence *stack = &s->stacks[i];
		double width = s->widths[i];
		for (uint32_t k = 0; k < stack->n; k++) {
			uint32_t mapping = v->entries[s->frames[stack->first + k]].mapping;
			bool leaf = k == (inverted ? 0 : stack->n - 1);
			m->modules[m->of_mapping[mapping_slot(v, mapping)]].weight += width * (leaf ? 1 : 1e-6);
			m->by_name = m->by_name && mapping == PROFILE_NONE;
		}
	}
	if (v->by == BY_BINARY)
		m->by_name = true;
}

/* Heaviest first; what has no frame in a stack goes. of_mapping follows. */
static bool sort_modules(const struct view *v, struct flame_modules *m, uint32_t *place_of)
{
	struct profile *p = v->profile;
	qsort_r(m->modules, m->n, sizeof(*m->modules), compare_modules, p);
	for (size_t i = 0; i < m->n; i++)
		place_of[m->modules[i].file] = (uint32_t)i;
	for (size_t i = 0; i <= p->n_mappings; i++)
		m->of_mapping[i] = place_of[i < p->n_mappings ? p->mappings[i].file : 0];
	while (m->n > 0 && m->modules[m->n - 1].weight == 0)
		m->n--;
	for (size_t i = 0; i < m->n; i++)
		m->modules[i].hue = i < FLAME_HUES ? (uint32_t)i : FLAME_HUE_REST;
	return true;
}

bool flame_modules_make(const struct view *v, const struct flame_stacks *s, bool inverted,
                        struct flame_modules *ret)
{
	const struct profile *p = v->profile;
	struct flame_modules m = { 0 };
	uint32_t *place_of = calloc(p->strings.n, sizeof(*place_of));
	m.of_mapping = calloc(p->n_mappings + 1, sizeof(*m.of_mapping));
	bool ok = place_of && m.of_mapping && collect(v, &m, place_of);
	if (ok) {
		weigh(v, s, inverted, &m);
		ok = sort_modules(v, &m, place_of);
	}
	free(place_of);
	if (!ok) {
		flame_modules_finish(&m);
		return false;
	}
	*ret = m;
	return true;
}

void flame_modules_finish(struct flame_modules *m)
{
	if (!m)
		return;
	free(m->modules);
	free(m->of_mapping);
	*m = (struct flame_modules){ 0 };
}

uint32_t flame_module_of(const struct flame_modules *m, const struct view *v, uint32_t entry)
{
	return m->of_mapping[mapping_slot(v, v->entries[entry].mapping)];
}

void flame_module_name(const struct view *v, const struct flame_module *m, struct buf *out)
{
	const char *name = path_base(profile_text(v->profile, m->file));
	if (*name)
		picture_text(name, strlen(name), out);
	else
		buf_adds(out, "(no binary)");
}

struct flame_colour flame_colour(const struct flame_modules *m, const struct view *v, uint32_t entry)
{
	uint32_t name = v->entries[entry].name;
	uint64_t hash = hash_bytes(profile_text(v->profile, name), strings_length(&v->profile->strings, name));
	uint32_t module = flame_module_of(m, v, entry);
	struct flame_colour c = { .shade = (unsigned)(hash % 3) };
	if (m->by_name)
		c.hue = (unsigned)(hash / 3 % FLAME_HUES);
	else
		c.hue = module < m->n ? m->modules[module].hue : FLAME_HUE_REST;
	return c;
}
