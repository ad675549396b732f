/*
 * The cache is told of new answers by the hundred: each time costs a lock, and sometimes a new file.
 */
#include "symbol/talk.h"

#include <stdlib.h>
#include <string.h>

#include "symbol/locate.h"
#include "symbol/notes.h"
#include "symbol/standing.h"

#define ASKED_MAX (STANDING_QUESTION_MAX / sizeof(uint64_t))    /* more have workers of their own */
#define UNTOLD_MAX ((size_t)512)
#define UNTOLD_BYTES_MAX ((size_t)4 << 20)
#define FAILURES_MAX 3

/* What a worker has between questions; the reader is made in there. */
struct reading {
	const struct talk *talk;
	enum symbol_depth depth;
	struct resolver *reader;
};

/* A block of answers that the cache hasn't been told. */
struct untold {
	void *block;
	size_t bytes;
};

struct talk {
	const struct elf_file *binary;
	struct symbol_options options;
	struct locator locator;
	struct note_taker notes;
	struct file_source files;            /* the note taker's */
	struct reading full, tables;
	struct standing *full_worker, *tables_worker;
	size_t n_failures;
	struct error given_up;               /* code 0, or why only symbol tables are read from now on */
	bool opened_cache;
	struct cache_file cache;
	struct untold untold[UNTOLD_MAX];
	size_t n_untold, untold_bytes;
};

/* --- inside --- */

static int answer(void *context, const struct file_source *files, const void *question, size_t n, struct buf *block, uint32_t *ret_flags,
                  struct error *err)
{
	struct reading *r = context;
	struct resolve_options o = lookup_reader(r->depth, r->talk->options.memory_limit, files);
	struct resolve_result result = { 0 };
	int rc = r->reader ? 0 : resolver_open(&r->reader, r->talk->binary, &o, err);
	if (rc == 0)
		rc = resolver_ask(r->reader, question, n / sizeof(uint64_t), block, &result, err);
	*ret_flags = result.damaged ? LOOKUP_DAMAGED : 0;
	return rc;
}

/* --- the cache --- */

struct told {
	uint64_t address;
	uint32_t block, at;
};

static int compare_told(const void *a, const void *b)
{
	const struct told *x = a, *y = b;
	return x->address < y->address ? -1 : x->address > y->address;
}

/* All of them as one block. */
static int join_untold(const struct talk *t, struct buf *ret)
{
	struct answers *blocks = calloc(t->n_untold + 1, sizeof(*blocks));
	struct told *all = NULL;
	struct answers_builder b;
	const struct answers_builder *whole = &b;
	size_t n = 0, capacity = 0;
	int rc = blocks ? 0 : E_NOMEM;
	answers_begin(&b);
	for (size_t i = 0; i < t->n_untold && rc == 0; i++) {
		rc = answers_open(&blocks[i], t->untold[i].block, t->untold[i].bytes, NULL);
		for (size_t k = 0; rc == 0 && k < blocks[i].n; k++) {
			struct told *slot = ARRAY_PUSH(all, n, capacity, UNTOLD_MAX * ASKED_MAX);
			if (slot)
				*slot = (struct told){ blocks[i].addresses[k], (uint32_t)i, (uint32_t)k };
			else
				rc = E_NOMEM;
		}
	}
	if (rc == 0 && n)
		qsort(all, n, sizeof(*all), compare_told);
	for (size_t i = 0; i < n && rc == 0; i++)
		if (i == 0 || all[i].address != all[i - 1].address)
			rc = answers_copy(&b, &blocks[all[i].block], all[i].at);
	if (rc == 0)
		rc = answers_write(&whole, 1, ret, NULL);
	answers_end(&b);
	free(all);
	free(blocks);
	return rc;
}

static void tell_cache(struct talk *t)
{
	struct buf block;
	if (t->n_untold == 0)
		return;
	buf_init(&block, CACHE_FILE_MAX);
	if (join_untold(t, &block) == 0)
		note_and_keep(&t->notes, t->binary, &t->options, block.data, block.len);
	buf_finish(&block);
	for (size_t i = 0; i < t->n_untold; i++)
		free(t->untold[i].block);
	t->n_untold = t->untold_bytes = 0;
}

/* What isn't kept is only worked out again. */
static void keep_for_cache(struct talk *t, const struct worker_task *task)
{
	void *copy = task->block_bytes <= UNTOLD_BYTES_MAX ? malloc(task->block_bytes) : NULL;
	if (!copy)
		return;
	memcpy(copy, task->block, task->block_bytes);
	t->untold[t->n_untold++] = (struct untold){ copy, task->block_bytes };
	t->untold_bytes += task->block_bytes;
	if (t->n_untold == UNTOLD_MAX || t->untold_bytes > UNTOLD_BYTES_MAX)
		tell_cache(t);
}

/* --- asking --- */

static int new_workers(struct talk *t, struct error *err)
{
	struct worker_options full = { .timeout_ms = t->options.timeout_ms, .memory_bytes = t->options.memory_limit };
	struct worker_options tables = { .timeout_ms = LOOKUP_TABLES_MS, .memory_bytes = t->options.memory_limit };
	t->full = (struct reading){ .talk = t, .depth = t->options.depth };
	t->tables = (struct reading){ .talk = t, .depth = SYMBOL_TABLE };
	int rc = standing_new(&t->full_worker, answer, &t->full, &t->files, &full, err);
	return rc ? rc : standing_new(&t->tables_worker, answer, &t->tables, &t->files, &tables, err);
}

/* Of one question; whatever is the reason, the next one may be about something else. */
static void note_failure(struct talk *t, const struct worker_task *task)
{
	if (++t->n_failures >= FAILURES_MAX || task->end == WORKER_TIMEOUT)
		t->given_up = task->error;
}

/* l->task has an answer afterwards, or l->error says why not. */
static void ask_workers(struct talk *t, struct lookup *l, const uint64_t *missing, size_t n)
{
	l->error = t->given_up;
	if (!l->error.code) {
		standing_ask(t->full_worker, missing, n * sizeof(*missing), &l->task);
		if (l->task.end == WORKER_ANSWERED)
			return;
		l->error = l->task.error;
		if (t->options.depth != SYMBOL_FULL || !lookup_may_try_tables(&l->task))
			return;
		note_failure(t, &l->task);
	}
	standing_ask(t->tables_worker, missing, n * sizeof(*missing), &l->task);
	l->poor = l->task.end == WORKER_ANSWERED;
}

static void ask_few(struct talk *t, struct lookup *l, const uint64_t *missing, size_t n)
{
	l->n_asked = n;
	ask_workers(t, l, missing, n);
	if (l->task.end != WORKER_ANSWERED)
		return;
	if (answers_open(&l->fresh, l->task.block, l->task.block_bytes, NULL)) {
		error_set(&l->error, E_FORMAT, "its reader answered with nonsense");
		l->poor = false;
		return;
	}
	l->damaged = l->task.flags & LOOKUP_DAMAGED;
	lookup_take(l, &l->fresh);
	if (!l->damaged && !l->poor && lookup_uses_cache(t->binary, &t->options))
		keep_for_cache(t, &l->task);
}

int talk_ask(struct talk *t, struct lookup *l, struct error *err)
{
	uint64_t *missing = malloc((l->n + 1) * sizeof(*missing));
	if (!missing)
		return error_nomem(err, "addresses");
	if (lookup_uses_cache(t->binary, &t->options)) {
		if (!t->opened_cache)
			cache_open(&t->cache, t->binary->build_id);
		t->opened_cache = true;
		lookup_take_cached(l, &t->cache, &t->options);
	}
	int rc = 0;
	size_t n = lookup_missing(l, missing);
	if (n > ASKED_MAX)
		rc = lookups_run(l, 1, &t->options, NULL, err);
	else if (n)
		ask_few(t, l, missing, n);
	free(missing);
	return rc;
}

int talk_begin(struct talk **ret, const struct elf_file *binary, const struct symbol_options *o, struct error *err)
{
	struct talk *t = calloc(1, sizeof(*t));
	if (!t)
		return error_nomem(err, "a conversation");
	t->binary = binary;
	t->options = *o;
	locator_init(&t->locator, &t->options, NULL);
	note_taker_init(&t->notes, locator_files(&t->locator));
	t->files = note_taker_files(&t->notes);
	int rc = new_workers(t, err);
	if (rc)
		talk_end(t);
	else
		*ret = t;
	return rc;
}

void talk_end(struct talk *t)
{
	if (!t)
		return;
	tell_cache(t);
	standing_free(t->full_worker);
	standing_free(t->tables_worker);
	cache_close(&t->cache);
	note_taker_finish(&t->notes);
	locator_finish(&t->locator);
	free(t);
}
