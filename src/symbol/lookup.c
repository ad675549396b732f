/*
 * The cache is asked first, and joined with the sorted addresses like everything else. An answer that debug information gave is
 * final. A poorer one comes with the note of what was looked for in vain when it was found: it is taken while that is still
 * not there, which costs a few calls of stat a binary.
 *
 * A note is a struct note, then each request that nobody answered (the first of a kind; packed), with its length before it.
 */
#include "symbol/lookup.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "symbol/file_request.h"
#include "symbol/locate.h"
#include "symbol/resolve.h"
#include "symbol/sandbox.h"

#define ASK_NETWORK_AGAIN_SECONDS 3600
#define BIG_FILE ((uint64_t)16 << 20)
#define KINDS (FILE_DWP + 1)

enum note_flags {
	NOTE_DEBUG_INFO = 1,         /* the binary had some itself */
	NOTE_SYMTAB = 2,             /* and a .symtab */
	NOTE_NETWORK = 4,            /* debuginfod was asked, too */
};

struct note {
	uint32_t flags;
	uint32_t n_requests;
};

/* A source of files that remembers what it did not have. */
struct recorder {
	struct file_source inner;
	bool seen[KINDS];
	struct note note;
	struct buf requests;
};

/* One binary's part of a run. */
struct part {
	struct lookup *lookup;
	const struct symbol_options *options;
	uint64_t *missing;           /* addresses, sorted */
	size_t n_missing;
	struct recorder recorder;
	struct file_source files;    /* the recorder */
};

/* --- beginning --- */

struct place {
	uint64_t address;
	uint32_t asked;
};

#define DIGIT_BITS 11
#define DIGITS ((size_t)1 << DIGIT_BITS)

/* Digit by digit from the last, those left out that all have in common; room is as large as places. The result is in either. */
static struct place *sort_places(struct place *places, struct place *room, size_t n)
{
	uint64_t differing = 0;
	for (size_t i = 1; i < n; i++)
		differing |= places[i].address ^ places[0].address;
	for (unsigned shift = 0; shift < 64 && differing >> shift; shift += DIGIT_BITS) {
		size_t at[DIGITS] = { 0 }, sum = 0;
		if (((differing >> shift) & (DIGITS - 1)) == 0)
			continue;
		for (size_t i = 0; i < n; i++)
			at[places[i].address >> shift & (DIGITS - 1)]++;
		for (size_t k = 0; k < DIGITS; k++) {
			size_t here = at[k];
			at[k] = sum;
			sum += here;
		}
		for (size_t i = 0; i < n; i++)
			room[at[places[i].address >> shift & (DIGITS - 1)]++] = places[i];
		struct place *sorted = room;
		room = places;
		places = sorted;
	}
	return places;
}

int lookup_begin(struct lookup *l, const struct elf_file *binary, const uint64_t *addresses, size_t n, struct error *err)
{
	memset(l, 0, sizeof(*l));
	l->binary = binary;
	if (n >= UINT32_MAX)
		return error_nomem(err, "addresses");
	struct place *places = malloc(2 * (n + 1) * sizeof(*places)), *sorted;
	l->addresses = malloc((n + 1) * sizeof(*l->addresses));
	l->of = malloc((n + 1) * sizeof(*l->of));
	l->hits = calloc(n + 1, sizeof(*l->hits));
	if (!places || !l->addresses || !l->of || !l->hits) {
		free(places);
		return error_nomem(err, "addresses");
	}
	size_t n_places = 0;
	for (size_t i = 0; i < n; i++) {
		l->of[i] = UINT32_MAX;
		if (addresses[i] == NO_ADDRESS)
			continue;
		places[n_places++] = (struct place){ addresses[i], (uint32_t)i };
	}
	sorted = sort_places(places, places + n + 1, n_places);
	for (size_t i = 0; i < n_places; i++) {
		if (l->n == 0 || l->addresses[l->n - 1] != sorted[i].address)
			l->addresses[l->n++] = sorted[i].address;
		l->of[sorted[i].asked] = (uint32_t)(l->n - 1);
	}
	free(places);
	return 0;
}

void lookup_end(struct lookup *l)
{
	if (!l)
		return;
	cache_close(&l->cache);
	worker_task_finish(&l->task);
	free(l->addresses);
	free(l->of);
	free(l->hits);
	memset(l, 0, sizeof(*l));
}

/* --- answers --- */

/* First of a's addresses from at on that is not below address; steps double, so it costs little wherever it is. */
static size_t advance(const struct answers *a, size_t at, uint64_t address)
{
	size_t step = 1;
	while (at + step <= a->n && a->addresses[at + step - 1] < address) {
		at += step;
		step *= 2;
	}
	while (step > 0) {
		if (at + step <= a->n && a->addresses[at + step - 1] < address)
			at += step;
		step /= 2;
	}
	return at;
}

/* Answers of at least that quality for addresses that have a poorer one, or none. */
static void join(struct lookup *l, const struct answers *a, enum answer_quality least)
{
	size_t at = 0;
	for (size_t i = 0; i < l->n && at < a->n; i++) {
		at = advance(a, at, l->addresses[i]);
		if (at == a->n || a->addresses[at] != l->addresses[i] || a->quality[at] < least)
			continue;
		const struct lookup_hit *h = &l->hits[i];
		if (!h->from || h->from->quality[h->at] < a->quality[at])
			l->hits[i] = (struct lookup_hit){ a, (uint32_t)at };
	}
}

/* --- notes --- */

static int record_open(void *context, const struct file_request *r, char *ret_path, unsigned long size)
{
	struct recorder *c = context;
	char packed[FILE_REQUEST_MAX];
	int fd = c->inner.open(c->inner.context, r, ret_path, size);
	if (fd >= 0 || c->seen[r->kind])
		return fd;
	uint32_t n = (uint32_t)file_request_pack(r, packed, sizeof(packed));
	c->seen[r->kind] = true;
	c->note.n_requests += n > 0;
	buf_add(&c->requests, &n, n ? sizeof(n) : 0);
	buf_add(&c->requests, packed, n);
	return fd;
}

/* The n-th request in a note; false when there is no such. */
static bool next_request(const char *bytes, size_t n, size_t *at, struct file_request *ret)
{
	uint32_t length;
	if (n - *at < sizeof(length))
		return false;
	memcpy(&length, bytes + *at, sizeof(length));
	*at += sizeof(length);
	if (length > n - *at || !file_request_unpack(bytes + *at, length, ret))
		return false;
	*at += length;
	return true;
}

static bool is_there(const struct symbol_options *o, const struct file_request *r)
{
	struct symbol_options local = *o;
	struct locator locator;
	char path[FILE_REQUEST_MAX];
	local.debuginfod = NULL;
	locator_init(&locator, &local, NULL);
	struct file_source files = locator_files(&locator);
	int fd = files.open(files.context, r, path, sizeof(path));
	if (fd >= 0)
		close(fd);
	locator_finish(&locator);
	return fd >= 0;
}

/* Would its poor answers be as poor today? */
static bool still_holds(const struct cache_segment *s, const struct elf_file *binary, const struct symbol_options *o)
{
	struct note note;
	size_t at = sizeof(note);
	if (s->note_bytes < at)
		return false;
	memcpy(&note, s->note, sizeof(note));
	if ((binary->has_debug_info && !(note.flags & NOTE_DEBUG_INFO)) || (binary->has_symtab && !(note.flags & NOTE_SYMTAB)))
		return false;
	uint64_t now = (uint64_t)time(NULL);
	if (note.n_requests && o->debuginfod &&
	    (!(note.flags & NOTE_NETWORK) || now < s->time || now - s->time > ASK_NETWORK_AGAIN_SECONDS))
		return false;
	for (uint32_t i = 0; i < note.n_requests; i++) {
		struct file_request r;
		if (!next_request(s->note, s->note_bytes, &at, &r) || is_there(o, &r))
			return false;
	}
	return true;
}

/* --- the cache --- */

static bool uses_cache(const struct lookup *l, const struct symbol_options *o)
{
	return !o->no_cache && o->depth == SYMBOL_FULL && *l->binary->build_id;
}

static void ask_cache(struct lookup *l, const struct symbol_options *o)
{
	cache_open(&l->cache, l->binary->build_id);
	bool all = false;
	for (size_t k = 0; k < l->cache.n && !all; k++) {
		join(l, &l->cache.segments[k].answers, ANSWER_DEBUG);
		all = true;
		for (size_t i = 0; i < l->n && all; i++)
			all = l->hits[i].from != NULL;
	}
	/* Poor ones only where somebody has nothing better: then it is worth asking whether they hold. */
	for (size_t k = 0; k < l->cache.n && !all; k++)
		if (still_holds(&l->cache.segments[k], l->binary, o))
			join(l, &l->cache.segments[k].answers, ANSWER_NOTHING);
}

static void tell_cache(const struct part *p)
{
	const struct lookup *l = p->lookup;
	const struct recorder *r = &p->recorder;
	struct note note = r->note;
	struct buf bytes;
	note.flags = (l->binary->has_debug_info ? NOTE_DEBUG_INFO : 0) | (l->binary->has_symtab ? NOTE_SYMTAB : 0) |
	             (p->options->debuginfod ? NOTE_NETWORK : 0);
	buf_init(&bytes, CACHE_NOTE_MAX);
	buf_add(&bytes, &note, sizeof(note));
	buf_add(&bytes, r->requests.data, r->requests.len);
	if (!bytes.failed && !r->requests.failed)
		cache_append(l->binary->build_id, l->task.block, l->task.block_bytes, bytes.data, bytes.len);
	buf_finish(&bytes);
}

/* --- workers --- */

enum worker_flags { WAS_DAMAGED = 1 };

static int resolve_part(void *context, const struct file_source *files, struct buf *block, uint32_t *ret_flags, struct error *err)
{
	const struct part *p = context;
	uint64_t memory = p->options->memory_limit ? p->options->memory_limit : SANDBOX_MEMORY;
	struct resolve_options o = { .depth = p->options->depth, .files = files, .decompressed_limit = memory - memory / 4 };
	struct resolve_result result = { 0 };
	if (p->lookup->binary->bytes > BIG_FILE)
		worker_take_big_pages();
	int rc = resolve(p->lookup->binary, p->missing, p->n_missing, &o, block, &result, err);
	*ret_flags = result.damaged ? WAS_DAMAGED : 0;
	return rc;
}

static int begin_part(struct part *p, struct lookup *l, const struct symbol_options *o, struct locator *locator, struct error *err)
{
	*p = (struct part){ .lookup = l, .options = o };
	p->recorder.inner = locator_files(locator);
	buf_init(&p->recorder.requests, CACHE_NOTE_MAX);
	p->files = (struct file_source){ record_open, &p->recorder };
	p->missing = malloc((l->n + 1) * sizeof(*p->missing));
	if (!p->missing)
		return error_nomem(err, "addresses");
	for (size_t i = 0; i < l->n; i++)
		if (!l->hits[i].from)
			p->missing[p->n_missing++] = l->addresses[i];
	l->n_asked = p->n_missing;
	l->task = (struct worker_task){ .job = resolve_part, .context = p, .files = &p->files };
	return 0;
}

static void end_part(struct part *p)
{
	struct lookup *l = p->lookup;
	if (!l || p->n_missing == 0)
		return;
	if (l->task.end != WORKER_ANSWERED) {
		l->error = l->task.error;
	} else if (answers_open(&l->fresh, l->task.block, l->task.block_bytes, NULL)) {
		error_set(&l->error, E_FORMAT, "its reader answered with nonsense");
	} else {
		l->damaged = l->task.flags & WAS_DAMAGED;
		join(l, &l->fresh, ANSWER_NOTHING);
		if (!l->damaged && uses_cache(l, p->options))
			tell_cache(p);
	}
}

/* The biggest files first, so that no processor is left alone with one in the end. */
static int compare_parts(const void *a, const void *b)
{
	const struct part *const *x = a, *const *y = b;
	uint64_t m = (*x)->lookup->binary->bytes, n = (*y)->lookup->binary->bytes;
	return m > n ? -1 : m < n;
}

static int run_parts(struct part *parts, size_t n, const struct symbol_options *o, struct error *err)
{
	struct part **order = calloc(n + 1, sizeof(*order));
	struct worker_task *tasks = calloc(n + 1, sizeof(*tasks));
	size_t n_tasks = 0;
	int rc = order && tasks ? 0 : error_nomem(err, "workers");
	for (size_t i = 0; i < n && rc == 0; i++)
		if (parts[i].n_missing)
			order[n_tasks++] = &parts[i];
	if (n_tasks) {
		struct worker_options w = { .timeout_ms = o->timeout_ms, .memory_bytes = o->memory_limit };
		qsort(order, n_tasks, sizeof(*order), compare_parts);
		for (size_t i = 0; i < n_tasks; i++)
			tasks[i] = order[i]->lookup->task;
		workers_run(tasks, n_tasks, &w);
		for (size_t i = 0; i < n_tasks; i++)
			order[i]->lookup->task = tasks[i];
	}
	free(order);
	free(tasks);
	return rc;
}

int lookups_run(struct lookup *l, size_t n, const struct symbol_options *o, struct buf *warnings, struct error *err)
{
	struct part *parts = calloc(n + 1, sizeof(*parts));
	struct locator locator;
	if (!parts)
		return error_nomem(err, "binaries");
	locator_init(&locator, o, warnings);
	int rc = 0;
	for (size_t i = 0; i < n && rc == 0; i++) {
		if (l[i].n && uses_cache(&l[i], o))
			ask_cache(&l[i], o);
		if (l[i].n)
			rc = begin_part(&parts[i], &l[i], o, &locator, err);
	}
	if (rc == 0)
		rc = run_parts(parts, n, o, err);
	for (size_t i = 0; i < n; i++) {
		if (rc == 0)
			end_part(&parts[i]);
		free(parts[i].missing);
		buf_finish(&parts[i].recorder.requests);
	}
	locator_finish(&locator);
	free(parts);
	return rc;
}

/* --- names --- */

const char *lookup_name(const char *function, const char *system_name, enum demangle_mode mode, struct buf *b)
{
	if (mode == DEMANGLE_FULL)
		return function;
	if (mode == DEMANGLE_NONE)
		return system_name ? system_name : function;
	buf_reset(b);
	if (system_name)
		demangle(system_name, mode, b);
	else
		demangle_reduce(function, mode, b);
	return b->failed || !b->len ? function : b->data;
}
