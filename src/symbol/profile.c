/*
 * Names for a whole profile: locations without lines are grouped by binary, each binary is resolved
 * in one batch (several at once, a thread each: nothing is shared between them), and the answers
 * become functions and lines in the order of the mappings, so that the result doesn't depend on
 * which thread was first.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/processors.h"
#include "profile/operations.h"
#include "symbol/binaries.h"
#include "symbol/resolve.h"

#define THREADS_MAX 4
#define THREAD_STACK ((size_t)16 << 20)      /* the demangler recurses */
#define MISSING_NAMED 3                      /* more missing files than this are only counted */
#define ITEMS_MAX ((size_t)1 << 31)

/* The locations of one binary and what came of them. */
struct batch {
	uint32_t *locations;         size_t n, locations_capacity;
	uint64_t *offsets;           size_t n_offsets, offsets_capacity;
	struct symbol_answers answers;
	uint64_t *addresses;
	bool answered, damaged;
	int rc;
	struct error error;
};

struct turn {
	uint64_t cost;
	uint32_t batch;
};

struct work {
	struct profile *profile;
	const struct symbol_options *options;
	struct binaries binaries;
	struct batch *batches;               /* one per binary, and a last one for unmapped locations */
	struct turn *order;                  /* batches, biggest file first */
	atomic_size_t next;                  /* relaxed: it only hands out numbers */
};

/* --- grouping --- */

static int add_location(struct batch *b, uint32_t location, uint64_t offset, struct error *err)
{
	uint32_t *slot = ARRAY_PUSH(b->locations, b->n, b->locations_capacity, ITEMS_MAX);
	uint64_t *at = slot ? ARRAY_PUSH(b->offsets, b->n_offsets, b->offsets_capacity, ITEMS_MAX) : NULL;
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

/* Addresses that are the file's own instead of offsets in it. */
static void translate(const struct profile *p, const struct elf_file *f, struct batch *b)
{
	for (size_t i = 0; i < b->n; i++) {
		const struct location *l = &p->locations[b->locations[i]];
		if (mapping_is_file_space(&p->mappings[l->mapping]) && !elf_file_offset(f, l->address, &b->offsets[i]))
			b->offsets[i] = NO_ADDRESS;
	}
}

/* Locations outside every mapping (old dumps without a list of them): a program at a fixed address has them. */
static int open_unmapped(struct work *w, struct elf_file *f, struct error *err)
{
	struct batch *b = &w->batches[w->binaries.n];
	const char *path = w->options->binary;
	if (!path || b->n == 0)
		return 0;
	int rc = elf_file_open(f, path, err);
	if (rc)
		return rc;
	for (size_t i = 0; i < b->n; i++)
		if (!f->fixed_address || !elf_file_offset(f, b->offsets[i], &b->offsets[i]))
			b->offsets[i] = NO_ADDRESS;
	b->rc = resolve_file(f, b->offsets, b->n, w->options->depth, w->options, &b->answers,
	                     NULL, &b->damaged, &b->error);
	b->answered = b->rc == 0;
	return 0;
}

/* --- resolving --- */

static void resolve_batch(struct work *w, uint32_t number)
{
	struct batch *b = &w->batches[number];
	struct binary *binary = &w->binaries.items[number];
	if (b->n == 0 || binary->state != BINARY_OPEN)
		return;
	b->rc = resolve_file(&binary->elf, b->offsets, b->n, w->options->depth, w->options,
	                     &b->answers, &b->addresses, &b->damaged, &b->error);
	b->answered = b->rc == 0;
}

static void *worker(void *context)
{
	struct work *w = context;
	for (;;) {
		size_t i = atomic_fetch_add_explicit(&w->next, 1, memory_order_relaxed);
		if (i >= w->binaries.n)
			return NULL;
		resolve_batch(w, w->order[i].batch);
	}
}

static int compare_turns(const void *a, const void *b)
{
	const struct turn *x = a, *y = b;
	if (x->cost != y->cost)
		return x->cost > y->cost ? -1 : 1;
	return x->batch < y->batch ? -1 : x->batch > y->batch;
}

static void resolve_all(struct work *w)
{
	pthread_t threads[THREADS_MAX];
	size_t n_threads = 0, busy = 0;
	for (size_t i = 0; i < w->binaries.n; i++) {
		bool has_work = w->batches[i].n && w->binaries.items[i].state == BINARY_OPEN;
		w->order[i] = (struct turn){ has_work ? w->binaries.items[i].elf.bytes : 0, (uint32_t)i };
		busy += has_work;
	}
	qsort(w->order, w->binaries.n, sizeof(*w->order), compare_turns);
	/* Not sysconf(), which reads in /sys and /proc: the sandbox has neither. */
	size_t wanted = processors_available();
	if (wanted > THREADS_MAX)
		wanted = THREADS_MAX;
	if (wanted > busy)
		wanted = busy;
	pthread_attr_t attributes;
	if (pthread_attr_init(&attributes) == 0) {
		/* This thread works too, and alone when no other can be had. */
		pthread_attr_setstacksize(&attributes, THREAD_STACK);
		while (n_threads + 1 < wanted &&
		       pthread_create(&threads[n_threads], &attributes, worker, w) == 0)
			n_threads++;
		pthread_attr_destroy(&attributes);
	}
	worker(w);
	for (size_t i = 0; i < n_threads; i++)
		pthread_join(threads[i], NULL);
}

/* --- writing into the profile --- */

/* Frames of one binary repeat the same functions: pointers of names are enough to find them again. */
struct memo_item {
	const struct symbol_frame *frame;
	uint32_t function;
};

struct memo {
	struct memo_item *items;     size_t n, capacity;
	struct index index;
};

struct memo_wanted {
	const struct memo *memo;
	const struct symbol_frame *frame;
};

static bool same_function(const void *context, uint32_t item)
{
	const struct memo_wanted *w = context;
	const struct symbol_frame *a = w->frame, *b = w->memo->items[item].frame;
	return a->function == b->function && a->system_name == b->system_name && a->file == b->file &&
	       a->start_line == b->start_line;
}

static uint32_t add_function(struct profile *p, const struct symbol_frame *f, const char *name)
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

static uint32_t function_of(struct memo *m, struct profile *p, const struct symbol_frame *f)
{
	uint64_t hash = hash_mix(hash_mix((uintptr_t)f->function, (uintptr_t)f->file), f->start_line);
	uint32_t found = index_find(&m->index, hash, same_function, &(struct memo_wanted){ m, f });
	if (found != INDEX_NONE)
		return m->items[found].function;
	uint32_t function = add_function(p, f, f->function);
	struct memo_item *item = index_reserve(&m->index) ? ARRAY_PUSH(m->items, m->n, m->capacity, ITEMS_MAX)
	                                                  : NULL;
	if (item) {                  /* without it, only slower */
		*item = (struct memo_item){ f, function };
		index_insert(&m->index, hash, (uint32_t)(m->n - 1));
	}
	return function;
}

/* "libfoo.so!0x1234", "[vdso]!0x5f", "0x7f0012345678". */
static void unknown_name(const struct profile *p, const struct location *l, uint64_t address,
                         struct buf *ret)
{
	buf_reset(ret);
	const char *path = l->mapping == PROFILE_NONE ? "" : profile_text(p, p->mappings[l->mapping].file);
	if (*path)
		buf_printf(ret, "%s!", path_base(path));
	else
		address = l->address;            /* offsets mean nothing without a file */
	buf_printf(ret, "0x%llx", (unsigned long long)address);
}

static void mark_mapping(struct profile *p, uint32_t location, const struct symbol_frame *frames, size_t n)
{
	uint32_t number = p->locations[location].mapping;
	if (number == PROFILE_NONE)
		return;
	struct mapping *m = &p->mappings[number];
	/* Also for unknown ones: pprof would look for names itself and blank ours. */
	m->has_functions = true;
	m->has_inline_frames |= n > 1;
	for (size_t i = 0; i < n; i++) {
		m->has_filenames |= frames[i].file != NULL;
		m->has_line_numbers |= frames[i].line != 0;
	}
}

/* What an unnamed location shows: the file's own address where it was read, else what the profile says. */
static uint64_t shown_address(const struct profile *p, const struct batch *b, size_t n)
{
	if (b->addresses && b->addresses[n] != NO_ADDRESS)
		return b->addresses[n];
	return location_file_offset(p, &p->locations[b->locations[n]]);
}

/* One location: its frames as lines. room has space for them. */
static void write_frames(struct profile *p, uint32_t location, uint64_t address,
                         const struct symbol_frame *frames, size_t n, struct memo *memo,
                         struct line *room, struct buf *name)
{
	for (size_t k = 0; k < n; k++) {
		const struct symbol_frame *f = &frames[k];
		if (!f->function)
			unknown_name(p, &p->locations[location], address, name);
		uint32_t function = f->function ? function_of(memo, p, f) : add_function(p, f, name->data);
		room[k] = (struct line){ function, f->column, f->line };
	}
	profile_set_lines(p, location, room, n);
}

static int write_batch(struct profile *p, const struct batch *b, struct error *err)
{
	static const struct symbol_frame nothing[1];
	struct memo memo = { 0 };
	struct buf name;
	struct line *lines = NULL;
	size_t capacity = 0;
	int rc = 0;
	buf_init(&name, BUF_MAX_DEFAULT);
	if (!buf_reserve(&name, 64))
		rc = error_nomem(err, "names");
	for (size_t i = 0; i < b->n && rc == 0; i++) {
		const struct symbol_frame *frames = nothing;
		size_t n = 1;
		if (b->answered && b->answers.answers[i].n) {
			frames = b->answers.frames + b->answers.answers[i].first;
			n = b->answers.answers[i].n;
		}
		mark_mapping(p, b->locations[i], frames, n);
		if (memory_grow((void **)&lines, &capacity, n, sizeof(*lines), ITEMS_MAX))
			write_frames(p, b->locations[i], shown_address(p, b, i),
			             frames, n, &memo, lines, &name);
		else
			rc = error_nomem(err, "lines");
		if (name.failed)
			rc = error_nomem(err, "names");
	}
	free(lines);
	free(memo.items);
	index_finish(&memo.index);
	buf_finish(&name);
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
		if (w->batches[i].rc)
			binaries_warn(warnings, w->batches[i].error.text);
		if (w->batches[i].damaged) {
			struct error e;
			error_set(&e, E_FORMAT,
			          "%s: not all of its debug information could be read (damaged or of an "
			          "unknown kind); some frames have no lines", b->elf.path);
			binaries_warn(warnings, e.text);
		}
	}
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
	w->order = calloc(w->binaries.n + 1, sizeof(*w->order));
	if (!w->batches || !w->order)
		return error_nomem(err, "binaries");
	return group(w, err);
}

static void finish(struct work *w)
{
	for (size_t i = 0; w->batches && i <= w->binaries.n; i++) {
		struct batch *b = &w->batches[i];
		symbol_answers_finish(&b->answers);
		free(b->locations);
		free(b->offsets);
		free(b->addresses);
	}
	free(w->batches);
	free(w->order);
	binaries_finish(&w->binaries);
}

int symbol_profile(struct profile *p, const struct symbol_options *o, struct buf *warnings,
                   struct error *err)
{
	static const struct symbol_options defaults = { .depth = SYMBOL_FULL };
	struct work w = { .profile = p, .options = o ? o : &defaults };
	struct elf_file unmapped = { .fd = -1 };
	int rc = start(&w, err);
	if (rc == 0 && w.options->depth != SYMBOL_NONE) {
		rc = open_all(&w, err);
		if (rc == 0)
			rc = open_unmapped(&w, &unmapped, err);
		if (rc == 0)
			resolve_all(&w);
	}
	for (size_t i = 0; rc == 0 && i <= w.binaries.n; i++) {
		if (w.batches[i].rc == E_NOMEM)
			rc = error_set(err, E_NOMEM, "%s", w.batches[i].error.text);
		else
			rc = write_batch(p, &w.batches[i], err);
	}
	if (rc == 0)
		say(&w, warnings);
	elf_file_finish(&unmapped);
	finish(&w);
	if (rc == 0 && p->failure.code) {
		if (err)
			*err = p->failure;
		rc = p->failure.code;
	}
	return rc;
}
