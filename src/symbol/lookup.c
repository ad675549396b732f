/*
 * The cache is asked first, and joined with the sorted addresses like everything else. An answer that debug information gave is
 * final. A poorer one comes with the note of what was looked for in vain when it was found (notes.h): it is taken while that is still
 * not there. What symbol tables gave because debug information was too much for a worker is never kept: it might not be, next time.
 */
#include "symbol/lookup.h"

#include <stdlib.h>
#include <string.h>

#include "base/processors.h"
#include "symbol/locate.h"
#include "symbol/notes.h"
#include "symbol/sandbox.h"

#define BIG_FILE ((uint64_t)16 << 20)
#define MEMORY_OF_THREAD ((uint64_t)64 << 20)    /* its stack, and what malloc has for it */

/* One binary's part of a run. */
struct part {
	struct lookup *lookup;
	const struct symbol_options *options;
	enum symbol_depth depth;
	uint64_t *missing;           /* addresses, sorted */
	size_t n_missing;
	struct note_taker notes;
	struct file_source files;    /* the note taker's */
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

void lookup_take(struct lookup *l, const struct answers *a)
{
	join(l, a, ANSWER_NOTHING);
}

size_t lookup_missing(const struct lookup *l, uint64_t *ret)
{
	size_t n = 0;
	for (size_t i = 0; i < l->n; i++)
		if (!l->hits[i].from)
			ret[n++] = l->addresses[i];
	return n;
}

/* --- the cache --- */

bool lookup_uses_cache(const struct elf_file *binary, const struct symbol_options *o)
{
	return !o->no_cache && o->depth == SYMBOL_FULL && *binary->build_id;
}

static bool holds(struct cache_segment *s, const struct elf_file *binary, const struct symbol_options *o)
{
	if (!s->was_judged)
		s->holds = note_holds(s, binary, o);
	s->was_judged = true;
	return s->holds;
}

void lookup_take_cached(struct lookup *l, struct cache_file *c, const struct symbol_options *o)
{
	bool all = false;
	for (size_t k = 0; k < c->n && !all; k++) {
		join(l, &c->segments[k].answers, ANSWER_DEBUG);
		all = true;
		for (size_t i = 0; i < l->n && all; i++)
			all = l->hits[i].from != NULL;
	}
	/* Poor ones only where somebody has nothing better: then it is worth asking whether they hold. */
	for (size_t k = 0; k < c->n && !all; k++)
		if (holds(&c->segments[k], l->binary, o))
			join(l, &c->segments[k].answers, ANSWER_NOTHING);
}

/* --- workers --- */

struct resolve_options lookup_reader(enum symbol_depth depth, uint64_t memory_limit, const struct file_source *files)
{
	uint64_t memory = memory_limit ? memory_limit : SANDBOX_MEMORY;
	size_t threads = processors_available();
	/* Threads that take all the memory leave none to work with. */
	if (threads > memory / MEMORY_OF_THREAD)
		threads = memory / MEMORY_OF_THREAD ? (size_t)(memory / MEMORY_OF_THREAD) : 1;
	return (struct resolve_options){
		.depth = depth, .files = files, .threads = threads, .decompressed_limit = memory - memory / 4, .kept_limit = memory / 8,
	};
}

bool lookup_may_try_tables(const struct worker_task *t)
{
	return t->end == WORKER_NO_MEMORY || t->end == WORKER_TIMEOUT || t->end == WORKER_DIED;
}

static int resolve_part(void *context, const struct file_source *files, struct buf *block, uint32_t *ret_flags, struct error *err)
{
	const struct part *p = context;
	struct resolve_options o = lookup_reader(p->depth, p->options->memory_limit, files);
	struct resolve_result result = { 0 };
	if (p->lookup->binary->bytes > BIG_FILE)
		worker_take_big_pages();
	int rc = resolve(p->lookup->binary, p->missing, p->n_missing, &o, block, &result, err);
	*ret_flags = result.damaged ? LOOKUP_DAMAGED : 0;
	return rc;
}

static int begin_part(struct part *p, struct lookup *l, const struct symbol_options *o, struct locator *locator, struct error *err)
{
	*p = (struct part){ .lookup = l, .options = o, .depth = o->depth };
	note_taker_init(&p->notes, locator_files(locator));
	p->files = note_taker_files(&p->notes);
	p->missing = malloc((l->n + 1) * sizeof(*p->missing));
	if (!p->missing)
		return error_nomem(err, "addresses");
	l->n_asked = p->n_missing = lookup_missing(l, p->missing);
	l->task = (struct worker_task){ .job = resolve_part, .context = p, .files = &p->files };
	return 0;
}

static void end_part(struct part *p)
{
	struct lookup *l = p->lookup;
	if (!l || p->n_missing == 0)
		return;
	l->poor = p->depth != p->options->depth && l->task.end == WORKER_ANSWERED;
	if (l->task.end != WORKER_ANSWERED) {
		l->error = l->error.code ? l->error : l->task.error;
	} else if (answers_open(&l->fresh, l->task.block, l->task.block_bytes, NULL)) {
		error_set(&l->error, E_FORMAT, "its reader answered with nonsense");
		l->poor = false;
	} else {
		l->damaged = l->task.flags & LOOKUP_DAMAGED;
		lookup_take(l, &l->fresh);
		if (!l->damaged && !l->poor && lookup_uses_cache(l->binary, p->options))
			note_and_keep(&p->notes, l->binary, p->options, l->task.block, l->task.block_bytes);
	}
}

/* The biggest files first, so that no processor is left alone with one in the end. */
static int compare_parts(const void *a, const void *b)
{
	const struct part *const *x = a, *const *y = b;
	uint64_t m = (*x)->lookup->binary->bytes, n = (*y)->lookup->binary->bytes;
	return m > n ? -1 : m < n;
}

static void run_some(struct part **parts, size_t n, uint32_t timeout_ms, struct worker_task *room)
{
	struct worker_options w = { .timeout_ms = timeout_ms, .memory_bytes = n ? parts[0]->options->memory_limit : 0 };
	for (size_t i = 0; i < n; i++)
		room[i] = parts[i]->lookup->task;
	workers_run(room, n, &w);
	for (size_t i = 0; i < n; i++)
		parts[i]->lookup->task = room[i];
}

/* Its worker failed over debug information: it is asked for symbols. */
static void ask_less(struct part *p)
{
	struct lookup *l = p->lookup;
	l->error = l->task.error;
	worker_task_finish(&l->task);
	p->depth = SYMBOL_TABLE;
	l->task = (struct worker_task){ .job = resolve_part, .context = p, .files = &p->files };
}

static int run_parts(struct part *parts, size_t n, const struct symbol_options *o, struct error *err)
{
	struct part **order = calloc(n + 1, sizeof(*order));
	struct worker_task *tasks = calloc(n + 1, sizeof(*tasks));
	size_t n_tasks = 0, n_again = 0;
	int rc = order && tasks ? 0 : error_nomem(err, "workers");
	for (size_t i = 0; i < n && rc == 0; i++)
		if (parts[i].n_missing)
			order[n_tasks++] = &parts[i];
	if (n_tasks)
		qsort(order, n_tasks, sizeof(*order), compare_parts);
	run_some(order, n_tasks, o->timeout_ms, tasks);
	for (size_t i = 0; i < n_tasks; i++)
		if (o->depth == SYMBOL_FULL && lookup_may_try_tables(&order[i]->lookup->task)) {
			ask_less(order[i]);
			order[n_again++] = order[i];
		}
	run_some(order, n_again, LOOKUP_TABLES_MS, tasks);
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
		if (l[i].n && lookup_uses_cache(l[i].binary, o)) {
			cache_open(&l[i].cache, l[i].binary->build_id);
			lookup_take_cached(&l[i], &l[i].cache, o);
		}
		if (l[i].n)
			rc = begin_part(&parts[i], &l[i], o, &locator, err);
	}
	if (rc == 0)
		rc = run_parts(parts, n, o, err);
	for (size_t i = 0; i < n; i++) {
		if (rc == 0)
			end_part(&parts[i]);
		free(parts[i].missing);
		note_taker_finish(&parts[i].notes);
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
