/*
 * Building a profile: every kind of thing goes into an array, once, and is found again
 * through a hash index. A failure is kept in p->failure; from then on everything is a no-op.
 */
#include "profile/profile.h"

#include <stdlib.h>

#define LIMIT_DEFAULT ((size_t)8 << 30)

static const struct {
	const char *name, *unit;
} metrics[METRICS] = {
	[ALLOC_OBJECTS] = { "alloc_objects", "count" },
	[ALLOC_SPACE] = { "alloc_space", "bytes" },
	[INUSE_OBJECTS] = { "inuse_objects", "count" },
	[INUSE_SPACE] = { "inuse_space", "bytes" },
};

const char *metric_name(enum metric m)
{
	return metrics[m].name;
}

const char *metric_unit(enum metric m)
{
	return metrics[m].unit;
}

struct profile *profile_new(size_t limit_bytes)
{
	struct profile *p = calloc(1, sizeof *p);
	if (!p)
		return NULL;
	p->limit_bytes = limit_bytes ? limit_bytes : LIMIT_DEFAULT;
	for (int m = 0; m < METRICS; m++)
		p->metric[m] = -1;
	struct label_set *empty =
	    ARRAY_PUSH(p->label_sets, p->n_label_sets, p->label_sets_capacity, 1);
	if (!empty || !strings_init(&p->strings)) {
		profile_free(p);
		return NULL;
	}
	*empty = (struct label_set){ 0 };
	return p;
}

void profile_free(struct profile *p)
{
	if (!p)
		return;
	strings_finish(&p->strings);
	free(p->types);
	free(p->mappings);
	free(p->functions);
	free(p->lines);
	free(p->locations);
	free(p->frames);
	free(p->stacks);
	free(p->labels);
	free(p->label_sets);
	free(p->sources);
	free(p->samples);
	free(p->values);
	free(p->comments);
	index_finish(&p->function_index);
	index_finish(&p->location_index);
	index_finish(&p->stack_index);
	index_finish(&p->label_set_index);
	free(p);
}

static uint32_t fail(struct profile *p, const char *what)
{
	if (!p->failure.code)
		error_set(&p->failure, E_LIMIT,
		          "no memory for more %s, or the profile is larger than its limit of %zu MiB",
		          what, p->limit_bytes >> 20);
	return 0;
}

/* Most items of that size that the limit allows; indexes are 32 bits wide. */
static size_t most(const struct profile *p, size_t item_bytes)
{
	size_t n = p->limit_bytes / item_bytes;
	return n < INDEX_NONE - 1 ? n : INDEX_NONE - 1;
}

#define PUSH(p, array, n, capacity) \
	((p)->failure.code ? NULL : ARRAY_PUSH((p)->array, (p)->n, (p)->capacity, most((p), sizeof *(p)->array)))

uint32_t profile_string(struct profile *p, const char *text, size_t length)
{
	if (p->failure.code || length == 0)
		return 0;
	uint32_t id = strings_add(&p->strings, text, length, p->limit_bytes);
	return id == INDEX_NONE ? fail(p, "strings") : id;
}

uint32_t profile_cstring(struct profile *p, const char *text)
{
	return text ? profile_string(p, text, strlen(text)) : 0;
}

uint32_t profile_add_type(struct profile *p, const char *type, const char *unit)
{
	struct sample_type t = { profile_cstring(p, type), profile_cstring(p, unit) };
	struct sample_type *slot = PUSH(p, types, n_types, types_capacity);
	if (!slot)
		return fail(p, "sample types");
	*slot = t;
	return (uint32_t)(p->n_types - 1);
}

void profile_add_heap_types(struct profile *p, bool with_alloc)
{
	for (int m = with_alloc ? ALLOC_OBJECTS : INUSE_OBJECTS; m < METRICS; m++)
		profile_add_type(p, metrics[m].name, metrics[m].unit);
}

uint32_t profile_add_mapping(struct profile *p, const struct mapping *m)
{
	struct mapping *slot = PUSH(p, mappings, n_mappings, mappings_capacity);
	if (!slot)
		return fail(p, "mappings");
	*slot = *m;
	return (uint32_t)(p->n_mappings - 1);
}

uint32_t profile_add_source(struct profile *p, const struct source *s)
{
	struct source *slot = PUSH(p, sources, n_sources, sources_capacity);
	if (!slot)
		return fail(p, "sources");
	*slot = *s;
	return (uint32_t)(p->n_sources - 1);
}

/* --- functions ------------------------------------------------------------ */

struct function_key {
	const struct profile *p;
	const struct function *f;
};

static bool same_function(const void *context, uint32_t item)
{
	const struct function_key *k = context;
	const struct function *f = &k->p->functions[item];
	return f->name == k->f->name && f->system_name == k->f->system_name &&
	       f->file == k->f->file && f->start_line == k->f->start_line;
}

uint32_t profile_intern_function(struct profile *p, const struct function *f)
{
	if (p->failure.code)
		return 0;
	uint64_t hash = hash_mix(hash_u64((uint64_t)f->name << 32 | f->file),
	                         (uint64_t)f->system_name << 32 ^ (uint64_t)f->start_line);
	struct function_key key = { p, f };
	uint32_t id = index_find(&p->function_index, hash, same_function, &key);
	if (id != INDEX_NONE)
		return id;
	struct function *slot;
	if (!index_reserve(&p->function_index) ||
	    !(slot = PUSH(p, functions, n_functions, functions_capacity)))
		return fail(p, "functions");
	*slot = *f;
	id = (uint32_t)(p->n_functions - 1);
	index_insert(&p->function_index, hash, id);
	return id;
}

/* --- locations ------------------------------------------------------------ */

struct location_key {
	const struct location *locations;
	uint64_t address;
	uint32_t mapping;
};

static bool same_location(const void *context, uint32_t item)
{
	const struct location_key *k = context;
	return k->locations[item].address == k->address && k->locations[item].mapping == k->mapping;
}

uint32_t profile_intern_location(struct profile *p, uint32_t mapping, uint64_t address)
{
	if (p->failure.code)
		return 0;
	uint64_t hash = hash_mix(hash_u64(address), mapping);
	struct location_key key = { p->locations, address, mapping };
	uint32_t id = index_find(&p->location_index, hash, same_location, &key);
	if (id != INDEX_NONE)
		return id;
	if (!index_reserve(&p->location_index))
		return fail(p, "locations");
	id = profile_add_location(p, mapping, address, false, NULL, 0);
	if (!p->failure.code)
		index_insert(&p->location_index, hash, id);
	return id;
}

void profile_set_lines(struct profile *p, uint32_t location, const struct line *lines, size_t n)
{
	if (p->failure.code)
		return;
	if (n == 0) {
		p->locations[location].n_lines = 0;
		return;
	}
	size_t at = p->n_lines;
	if (n > most(p, sizeof *lines) - at ||
	    !(at + n <= p->lines_capacity ||
	      memory_grow((void **)&p->lines, &p->lines_capacity, at + n, sizeof *lines,
	                  most(p, sizeof *lines)))) {
		fail(p, "lines");
		return;
	}
	memcpy(p->lines + at, lines, n * sizeof *lines);
	p->n_lines += n;
	p->locations[location].first_line = (uint32_t)at;
	p->locations[location].n_lines = (uint32_t)n;
}

uint32_t profile_add_location(struct profile *p, uint32_t mapping, uint64_t address, bool folded,
                              const struct line *lines, size_t n)
{
	struct location *slot = PUSH(p, locations, n_locations, locations_capacity);
	if (!slot)
		return fail(p, "locations");
	*slot = (struct location){ .address = address, .mapping = mapping, .folded = folded };
	uint32_t id = (uint32_t)(p->n_locations - 1);
	profile_set_lines(p, id, lines, n);
	return id;
}

/* --- stacks --------------------------------------------------------------- */

struct stack_key {
	const struct profile *p;
	const uint32_t *locations;
	size_t n;
};

static bool same_stack(const void *context, uint32_t item)
{
	const struct stack_key *k = context;
	const struct stack *s = &k->p->stacks[item];
	return s->n == k->n &&
	       (k->n == 0 || !memcmp(k->p->frames + s->first, k->locations, k->n * sizeof *k->locations));
}

uint32_t profile_intern_stack(struct profile *p, const uint32_t *locations, size_t n)
{
	return profile_intern_hashed_stack(p, locations, n, profile_stack_hash(locations, n));
}

uint32_t profile_intern_hashed_stack(struct profile *p, const uint32_t *locations, size_t n, uint64_t hash)
{
	if (p->failure.code)
		return 0;
	struct stack_key key = { p, locations, n };
	uint32_t id = index_find(&p->stack_index, hash, same_stack, &key);
	if (id != INDEX_NONE)
		return id;
	size_t at = p->n_frames, max = p->limit_bytes / sizeof *p->frames;
	if (n > max - at ||
	    !(at + n <= p->frames_capacity ||
	      memory_grow((void **)&p->frames, &p->frames_capacity, at + n, sizeof *p->frames, max)) ||
	    !index_reserve(&p->stack_index))
		return fail(p, "frames");
	struct stack *slot = PUSH(p, stacks, n_stacks, stacks_capacity);
	if (!slot)
		return fail(p, "stacks");
	if (n)
		memcpy(p->frames + at, locations, n * sizeof *locations);
	p->n_frames += n;
	*slot = (struct stack){ at, (uint32_t)n };
	id = (uint32_t)(p->n_stacks - 1);
	index_insert(&p->stack_index, hash, id);
	return id;
}

/* --- labels --------------------------------------------------------------- */

struct label_key {
	const struct profile *p;
	const struct label *labels;
	size_t n;
};

static bool same_label(const struct label *a, const struct label *b)
{
	return a->key == b->key && a->str == b->str && a->unit == b->unit && a->number == b->number;
}

static bool same_labels(const void *context, uint32_t item)
{
	const struct label_key *k = context;
	const struct label_set *s = &k->p->label_sets[item];
	if (s->n != k->n)
		return false;
	for (size_t i = 0; i < k->n; i++)
		if (!same_label(&k->p->labels[s->first + i], &k->labels[i]))
			return false;
	return true;
}

static uint64_t hash_labels(const struct label *labels, size_t n)
{
	uint64_t hash = n;
	for (size_t i = 0; i < n; i++) {
		hash = hash_mix(hash, (uint64_t)labels[i].key << 32 | labels[i].str);
		hash = hash_mix(hash, (uint64_t)labels[i].unit << 32 ^ (uint64_t)labels[i].number);
	}
	return hash;
}

/* The two labels that mean something to us. */
static void label_set_notice(const struct profile *p, struct label_set *set, const struct label *l)
{
	const char *key = profile_text(p, l->key);
	if (l->str && !strcmp(key, "thread"))
		set->thread = l->str;
	else if (!l->str && l->number > 0 && !strcmp(key, "bytes"))
		set->block_size = (uint64_t)l->number;
}

uint32_t profile_intern_labels(struct profile *p, const struct label *labels, size_t n)
{
	if (p->failure.code || n == 0)
		return 0;
	uint64_t hash = hash_labels(labels, n);
	struct label_key key = { p, labels, n };
	uint32_t id = index_find(&p->label_set_index, hash, same_labels, &key);
	if (id != INDEX_NONE)
		return id;
	struct label_set set = { .first = (uint32_t)p->n_labels, .n = (uint32_t)n };
	for (size_t i = 0; i < n; i++) {
		struct label *slot = PUSH(p, labels, n_labels, labels_capacity);
		if (!slot)
			return fail(p, "labels");
		*slot = labels[i];
		label_set_notice(p, &set, &labels[i]);
	}
	struct label_set *slot;
	if (!index_reserve(&p->label_set_index) ||
	    !(slot = PUSH(p, label_sets, n_label_sets, label_sets_capacity)))
		return fail(p, "label sets");
	*slot = set;
	id = (uint32_t)(p->n_label_sets - 1);
	index_insert(&p->label_set_index, hash, id);
	return id;
}

uint32_t profile_intern_heap_labels(struct profile *p, uint32_t thread, uint64_t block_size)
{
	struct label labels[2];
	size_t n = 0;
	if (thread)
		labels[n++] = (struct label){ .key = profile_cstring(p, "thread"), .str = thread };
	if (block_size)
		labels[n++] = (struct label){ .key = profile_cstring(p, "bytes"),
		                              .unit = profile_cstring(p, "bytes"),
		                              .number = (int64_t)block_size };
	return profile_intern_labels(p, labels, n);
}

/* --- samples -------------------------------------------------------------- */

void profile_add_comment(struct profile *p, const char *text)
{
	uint32_t id = profile_cstring(p, text);
	uint32_t *slot = PUSH(p, comments, n_comments, comments_capacity);
	if (!slot) {
		fail(p, "comments");
		return;
	}
	*slot = id;
}

void profile_add_sample(struct profile *p, uint32_t stack, uint32_t labels, uint32_t source,
                        const int64_t *values)
{
	size_t need = p->n_values + p->n_types;
	if (p->failure.code)
		return;
	if (need > p->values_capacity &&
	    !memory_grow((void **)&p->values, &p->values_capacity, need, sizeof *p->values,
	                 p->limit_bytes / sizeof *p->values)) {
		fail(p, "values");
		return;
	}
	struct sample *slot = PUSH(p, samples, n_samples, samples_capacity);
	if (!slot) {
		fail(p, "samples");
		return;
	}
	*slot = (struct sample){ stack, labels, source };
	if (p->n_types)
		memcpy(p->values + p->n_values, values, p->n_types * sizeof *values);
	p->n_values = need;
}

static int find_type(const struct profile *p, const char *name)
{
	for (size_t i = 0; i < p->n_types; i++)
		if (!strcmp(profile_text(p, p->types[i].type), name))
			return (int)i;
	return -1;
}

int profile_type_column(const struct profile *p, const char *name)
{
	static const char *const aliases[][2] = {
		{ "space", "inuse_space" },   { "objects", "inuse_objects" },
		{ "inuse_space", "space" },   { "inuse_objects", "objects" },
	};
	int column = find_type(p, name);
	for (size_t i = 0; column < 0 && i < sizeof aliases / sizeof *aliases; i++)
		if (!strcmp(name, aliases[i][0]))
			column = find_type(p, aliases[i][1]);
	return column;
}

int profile_default_column(const struct profile *p)
{
	int column = -1;
	if (p->default_type)
		column = find_type(p, profile_text(p, p->default_type));
	if (column < 0)
		column = p->metric[INUSE_SPACE];
	return column < 0 ? (int)p->n_types - 1 : column;
}

int profile_finish(struct profile *p, struct error *err)
{
	if (p->failure.code) {
		if (err)
			*err = p->failure;
		return p->failure.code;
	}
	for (int m = 0; m < METRICS; m++) {
		int column = profile_type_column(p, metrics[m].name);
		bool unit = column >= 0 &&
		            !strcmp(profile_text(p, p->types[column].unit), metrics[m].unit);
		p->metric[m] = unit ? column : -1;
	}
	return E_OK;
}

/* --- identity ------------------------------------------------------------- */

const char *path_base(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash && slash[1] ? slash + 1 : path;
}

uint64_t location_file_offset(const struct profile *p, const struct location *l)
{
	if (l->mapping == PROFILE_NONE)
		return l->address;
	const struct mapping *m = &p->mappings[l->mapping];
	const char *file = profile_text(p, m->file);
	if (*file == '\0' || (*file == '[' && strcmp(file, "[vdso]") != 0))
		return l->address;
	return l->address - m->start + m->offset;
}

/*
 * Where the kernel put the main program, else the vDSO, else the C library: each is random under ASLR and stays
 * for the process's life, while libraries come and go. The fixed base of an unrandomized PIE tells nothing.
 */
uint64_t profile_process_identity(const struct profile *p)
{
	static const uint64_t fixed_pie = 0x555555554000, low = (uint64_t)1 << 32;
	if (p->n_mappings == 0)
		return 0;
	const struct mapping *main = &p->mappings[0];
	uint64_t base = main->start - main->offset;
	if (base == fixed_pie)
		return 0;
	if (main->start >= low && base >= low)
		return hash_mix(hash_u64(base), 1) | 1;
	for (size_t i = 1; i < p->n_mappings; i++)
		if (!strcmp(profile_text(p, p->mappings[i].file), "[vdso]"))
			return hash_mix(hash_u64(p->mappings[i].start), 2) | 1;
	for (size_t i = 1; i < p->n_mappings; i++) {
		const struct mapping *m = &p->mappings[i];
		if (!strncmp(path_base(profile_text(p, m->file)), "libc", 4) && m->start >= low)
			return hash_mix(hash_u64(m->start - m->offset), 3) | 1;
	}
	return 0;
}
