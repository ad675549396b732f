/*
 * Names for a whole profile: locations without lines are grouped by binary, all binaries are looked up at once (lookup.h), and the
 * answers become functions and lines in the order of the mappings, so that the result doesn't depend on
 * which worker was first.
 */
#include <stdlib.h>
#include <string.h>

#include "profile/operations.h"
#include "symbol/binaries.h"
#include "symbol/lookup.h"
#include "symbol/outside.h"

#define MISSING_NAMED 3                      /* more missing files than this are only counted */
#define ITEMS_MAX ((size_t)1 << 31)

/* The locations of one binary. */
struct batch {
	uint32_t *locations;         size_t n, locations_capacity;
	uint64_t *addresses;         size_t n_addresses, addresses_capacity;   /* the file's own, or offsets in it before it is open */
	bool translated;             /* they are the file's own */
};

struct work {
	struct profile *profile;
	const struct symbol_options *options;
	struct binaries binaries;
	struct batch *batches;               /* one per binary, and a last one for unmapped locations */
	struct lookup *lookups;              /* one per batch; empty when there is no file */
	struct elf_file unmapped;            /* --binary, for the last */
	struct outside outside;              /* code that is in no file */
};

/* --- grouping --- */

static int add_location(struct batch *b, uint32_t location, uint64_t offset, struct error *err)
{
	uint32_t *slot = ARRAY_PUSH(b->locations, b->n, b->locations_capacity, ITEMS_MAX);
	uint64_t *at = slot ? ARRAY_PUSH(b->addresses, b->n_addresses, b->addresses_capacity, ITEMS_MAX) : NULL;
	if (!at)
		return error_nomem(err, "locations");
	*slot = location;
	*at = offset;
	return 0;
}

static int group(struct work *w, struct error *err)
{
	struct profile *p = w->profile;
	for (size_t i = 0; i < p->n_locations; i++) {
		const struct location *l = &p->locations[i];
		if (l->n_lines)
			continue;
		size_t batch = l->mapping == PROFILE_NONE ? w->binaries.n
		                                          : w->binaries.of_mapping[l->mapping];
		int rc = add_location(&w->batches[batch], (uint32_t)i, location_file_offset(p, l), err);
		if (rc)
			return rc;
	}
	return 0;
}

/* Offsets become addresses, and those that are addresses stay if the file has them. */
static void translate(const struct profile *p, const struct elf_file *f, struct batch *b)
{
	for (size_t i = 0; i < b->n; i++) {
		const struct location *l = &p->locations[b->locations[i]];
		uint64_t offset = b->addresses[i];
		if (mapping_is_file_space(&p->mappings[l->mapping]) && !elf_file_offset(f, l->address, &offset))
			offset = UINT64_MAX;
		if (!elf_file_address(f, offset, &b->addresses[i]))
			b->addresses[i] = NO_ADDRESS;
	}
	b->translated = true;
}

/* Locations outside every mapping (old dumps without a list of them): a program at a fixed address has them. */
static int open_unmapped(struct work *w, struct error *err)
{
	struct batch *b = &w->batches[w->binaries.n];
	uint64_t offset;
	if (!w->options->binary || b->n == 0)
		return 0;
	int rc = elf_file_open(&w->unmapped, w->options->binary, err);
	if (rc)
		return rc;
	for (size_t i = 0; i < b->n; i++)
		if (!w->unmapped.fixed_address || !elf_file_offset(&w->unmapped, b->addresses[i], &offset))
			b->addresses[i] = NO_ADDRESS;
	b->translated = true;
	return 0;
}

static int look_up(struct work *w, struct buf *warnings, struct error *err)
{
	int rc = 0;
	for (size_t i = 0; i <= w->binaries.n && rc == 0; i++) {
		const struct batch *b = &w->batches[i];
		const struct elf_file *f = i < w->binaries.n ? &w->binaries.items[i].elf : &w->unmapped;
		if (b->translated)
			rc = lookup_begin(&w->lookups[i], f, b->addresses, b->n, err);
	}
	return rc ? rc : lookups_run(w->lookups, w->binaries.n + 1, w->options, warnings, err);
}

/* --- writing into the profile --- */

/* Frames of one binary repeat the same functions: pointers of names are enough to find them again. */
struct known_function {
	const char *function, *system_name, *file;   /* NULL: unknown */
	uint32_t start_line;
	bool is_start;               /* function says only where it begins */
};

struct memo_item {
	struct known_function key;
	uint32_t function;
};

struct memo {
	struct memo_item *items;     size_t n, capacity;
	struct index index;
};

struct memo_wanted {
	const struct memo *memo;
	const struct known_function *key;
};

struct writing {
	struct profile *profile;
	enum demangle_mode mode;
	struct memo memo;
	struct buf name;
	struct line *lines;          size_t lines_capacity;
};

static bool same_function(const void *context, uint32_t item)
{
	const struct memo_wanted *w = context;
	const struct known_function *a = w->key, *b = &w->memo->items[item].key;
	return a->function == b->function && a->system_name == b->system_name && a->file == b->file && a->start_line == b->start_line;
}

static uint32_t add_function(struct profile *p, const struct known_function *f, const char *name)
{
	uint32_t text = profile_cstring(p, name);
	struct function function = {
		.name = text,
		.system_name = f->system_name ? profile_cstring(p, f->system_name) : text,
		.file = f->file ? profile_cstring(p, f->file) : 0,
		.start_line = f->start_line,
	};
	return profile_intern_function(p, &function);
}

/* "libfoo.so!"; "" without a file. */
static void add_binary_name(const struct profile *p, const struct location *l, struct buf *name)
{
	const char *path = l->mapping == PROFILE_NONE ? "" : profile_text(p, p->mappings[l->mapping].file);
	buf_reset(name);
	if (*path)
		buf_printf(name, "%s!", path_base(path));
}

/* "libfoo.so!0x1234", "[vdso]!0x5f", "0x7f0012345678". */
static void unknown_name(const struct profile *p, const struct location *l, uint64_t address,
                         struct buf *ret)
{
	add_binary_name(p, l, ret);
	/* Offsets mean nothing without a file. */
	buf_printf(ret, "0x%llx", (unsigned long long)(ret->len ? address : l->address));
}

static uint32_t function_of(struct writing *w, const struct location *l, const struct known_function *f)
{
	struct memo *m = &w->memo;
	uint64_t hash = hash_mix(hash_mix((uintptr_t)f->function, (uintptr_t)f->file), f->start_line);
	uint32_t found = index_find(&m->index, hash, same_function, &(struct memo_wanted){ m, f });
	if (found != INDEX_NONE)
		return m->items[found].function;
	const char *name;
	if (f->is_start) {
		add_binary_name(w->profile, l, &w->name);
		buf_adds(&w->name, f->function);
		name = w->name.data;
	} else {
		/* The allocator's own functions are known by their full names. */
		bool in_full = f->function && function_is_allocator(f->function);
		name = lookup_name(f->function, f->system_name, in_full ? DEMANGLE_FULL : w->mode, &w->name);
	}
	if (!name)
		return 0;                /* w->name.failed tells */
	uint32_t function = add_function(w->profile, f, name);
	struct memo_item *item = index_reserve(&m->index) ? ARRAY_PUSH(m->items, m->n, m->capacity, ITEMS_MAX)
	                                                  : NULL;
	if (item) {                  /* without it, only slower */
		*item = (struct memo_item){ *f, function };
		index_insert(&m->index, hash, (uint32_t)(m->n - 1));
	}
	return function;
}

static void mark_mapping(struct profile *p, uint32_t location, const struct answer_frame *frames, size_t n)
{
	uint32_t number = p->locations[location].mapping;
	if (number == PROFILE_NONE)
		return;
	struct mapping *m = &p->mappings[number];
	/* Also for unknown ones: pprof would look for names itself and blank ours. */
	m->has_functions = true;
	m->has_inline_frames |= n > 1;
	for (size_t i = 0; i < n; i++) {
		m->has_filenames |= frames[i].file != 0;
		m->has_line_numbers |= frames[i].line != 0;
	}
}

/* What an unnamed location shows: the file's own address where it was read, else what the profile says. */
static uint64_t shown_address(const struct profile *p, const struct batch *b, size_t n)
{
	if (b->translated && b->addresses[n] != NO_ADDRESS && p->locations[b->locations[n]].mapping != PROFILE_NONE)
		return b->addresses[n];
	return location_file_offset(p, &p->locations[b->locations[n]]);
}

/* NULL for code of files. */
static const char *name_outside(const struct work *w, const struct location *l, bool has_file)
{
	const struct profile *p = w->profile;
	if (l->mapping == PROFILE_NONE)
		return outside_name(&w->outside, "", "", l->address, l->address);
	const struct mapping *m = &p->mappings[l->mapping];
	if (has_file)
		return NULL;
	return outside_name(&w->outside, profile_text(p, m->file), profile_text(p, m->build_id), l->address, location_file_offset(p, l));
}

/* One location: its frames as lines. hit may be of nothing; other is its name then, or NULL. */
static int write_location(struct writing *w, uint32_t location, uint64_t address, struct lookup_hit hit, const char *other,
                          struct error *err)
{
	static const struct answers nothing = { .strings = "" };
	static const struct answer_frame unknown;
	const struct answers *a = hit.from ? hit.from : &nothing;
	const struct location *l = &w->profile->locations[location];
	size_t n = hit.from ? a->first[hit.at + 1] - a->first[hit.at] : 0;
	const struct answer_frame *frames = n ? a->frames + a->first[hit.at] : &unknown;
	n = n ? n : 1;
	if (!memory_grow((void **)&w->lines, &w->lines_capacity, n, sizeof(*w->lines), ITEMS_MAX))
		return error_nomem(err, "lines");
	mark_mapping(w->profile, location, frames, n);
	for (size_t k = 0; k < n; k++) {
		const struct answer_frame *f = &frames[k];
		struct known_function key = { answers_text(a, f->function), answers_text(a, f->system_name), answers_text(a, f->file),
			                      f->start_line, hit.from && a->quality[hit.at] == ANSWER_START };
		uint32_t function;
		key.function = key.function ? key.function : other;
		if (key.function) {
			function = function_of(w, l, &key);
		} else {
			unknown_name(w->profile, l, address, &w->name);
			function = w->name.failed ? 0 : add_function(w->profile, &key, w->name.data);
		}
		if (w->name.failed)
			return error_nomem(err, "names");
		w->lines[k] = (struct line){ function, f->column, f->line };
	}
	profile_set_lines(w->profile, location, w->lines, n);
	return 0;
}

static int write_batch(struct work *work, size_t number, struct error *err)
{
	const struct batch *b = &work->batches[number];
	const struct lookup *l = &work->lookups[number];
	struct writing w = { .profile = work->profile, .mode = work->options->demangle };
	bool has_file = number < work->binaries.n && work->binaries.items[number].state != BINARY_NO_FILE;
	bool outside = work->options->depth != SYMBOL_NONE;
	int rc = 0;
	buf_init(&w.name, BUF_MAX_DEFAULT);
	for (size_t i = 0; i < b->n && rc == 0; i++) {
		struct lookup_hit hit = { NULL, 0 };
		if (l->n && l->of[i] != UINT32_MAX)
			hit = l->hits[l->of[i]];
		const char *other = outside ? name_outside(work, &work->profile->locations[b->locations[i]], has_file) : NULL;
		rc = write_location(&w, b->locations[i], shown_address(work->profile, b, i), hit, other, err);
	}
	free(w.lines);
	free(w.memo.items);
	index_finish(&w.memo.index);
	buf_finish(&w.name);
	return rc;
}

/* --- what there is to say --- */

static void warn_missing(const struct work *w, struct buf *warnings, const struct binary *b)
{
	struct buf line;
	buf_init(&line, 64 << 10);
	buf_printf(&line, "%s is not on this machine; its frames stay unnamed; point --debug-dir to a copy",
	           profile_text(w->profile, b->file));
	if (!line.failed)
		binaries_warn(warnings, line.data);
	buf_finish(&line);
}

/* What reading it came to, if not to all its names. */
static void warn_unread(struct buf *warnings, const struct elf_file *f, const struct lookup *l)
{
	struct error e;
	const char *frames = l->n_asked < l->n ? "some of its" : "its";
	if (l->error.code) {
		const char *missing = l->poor ? "have names of symbols only: no lines, and inlined functions are missing" : "stay unnamed";
		error_set(&e, E_FORMAT, "%.200s: %s; %s frames %s%s", f->path, l->error.text, frames, missing,
		          l->error.code == E_NOMEM ? "; --memory-limit gives it more" : "");
		binaries_warn(warnings, e.text);
	}
	if (l->damaged) {
		error_set(&e, E_FORMAT, "%s: not all of its debug information could be read (damaged or of an "
		          "unknown kind); some frames have no lines", f->path);
		binaries_warn(warnings, e.text);
	}
}

static void say(const struct work *w, struct buf *warnings)
{
	size_t missing = 0;
	for (size_t i = 0; i < w->binaries.n; i++)
		missing += w->batches[i].n && w->binaries.items[i].state == BINARY_MISSING;
	for (size_t i = 0; i < w->binaries.n; i++) {
		const struct binary *b = &w->binaries.items[i];
		if (w->batches[i].n == 0)
			continue;
		if (b->state == BINARY_REFUSED)
			binaries_warn(warnings, b->error.text);
		if (b->state == BINARY_MISSING && missing <= MISSING_NAMED)
			warn_missing(w, warnings, b);
		if (b->state == BINARY_OPEN)
			warn_unread(warnings, &b->elf, &w->lookups[i]);
	}
	if (w->batches[w->binaries.n].translated)
		warn_unread(warnings, &w->unmapped, &w->lookups[w->binaries.n]);
	if (missing > MISSING_NAMED) {
		struct error e;
		error_set(&e, E_IO,
		          "%zu files of the profile are not on this machine; their frames stay unnamed; "
		          "point --debug-dir to copies", missing);
		binaries_warn(warnings, e.text);
	}
}

/* --- all of it --- */

static int open_all(struct work *w, struct error *err)
{
	for (size_t i = 0; i < w->binaries.n; i++) {
		struct binary *b = &w->binaries.items[i];
		bool given = b->is_main && w->options->binary;
		if (w->batches[i].n == 0 && !given)
			continue;
		int rc = binary_open(b, w->profile, w->options, err);
		if (rc)
			return rc;
		if (b->state == BINARY_OPEN)
			translate(w->profile, &b->elf, &w->batches[i]);
	}
	return 0;
}

static int start(struct work *w, struct error *err)
{
	bool *used = binaries_used(w->profile);
	int rc = used ? binaries_init(&w->binaries, w->profile, used, err) : error_nomem(err, "mappings");
	free(used);
	if (rc)
		return rc;
	w->batches = calloc(w->binaries.n + 1, sizeof(*w->batches));
	w->lookups = calloc(w->binaries.n + 1, sizeof(*w->lookups));
	if (!w->batches || !w->lookups)
		return error_nomem(err, "binaries");
	return group(w, err);
}

static void finish(struct work *w)
{
	for (size_t i = 0; w->batches && i <= w->binaries.n; i++) {
		free(w->batches[i].locations);
		free(w->batches[i].addresses);
	}
	for (size_t i = 0; w->lookups && i <= w->binaries.n; i++)
		lookup_end(&w->lookups[i]);
	free(w->batches);
	free(w->lookups);
	binaries_finish(&w->binaries);
	elf_file_finish(&w->unmapped);
	outside_finish(&w->outside);
}

int symbol_profile(struct profile *p, const struct symbol_options *o, struct buf *warnings,
                   struct error *err)
{
	static const struct symbol_options defaults = { .depth = SYMBOL_FULL };
	struct work w = { .profile = p, .options = o ? o : &defaults, .unmapped = { .fd = -1 } };
	int rc = start(&w, err);
	if (rc == 0 && w.options->depth != SYMBOL_NONE) {
		outside_init(&w.outside, w.options->perf_map, warnings);
		rc = open_all(&w, err);
		if (rc == 0)
			rc = open_unmapped(&w, err);
		if (rc == 0)
			rc = look_up(&w, warnings, err);
	}
	for (size_t i = 0; rc == 0 && i <= w.binaries.n; i++)
		rc = write_batch(&w, i, err);
	if (rc == 0)
		say(&w, warnings);
	finish(&w);
	if (rc == 0 && p->failure.code) {
		if (err)
			*err = p->failure;
		rc = p->failure.code;
	}
	return rc;
}
