/*
 * Sorted by two numbers at a time, kept next to the sequence as one key; then each run of equal
 * keys by the next two. Runs wait in a list, so nothing recurses however long sequences are.
 */
#include "base/sequences.h"

#include "base/memory.h"

#include <stdlib.h>

struct keyed {
	uint64_t key;
	struct sequence s;
};

struct run {
	size_t from, to;
	uint32_t depth;
};

struct sorter {
	const uint32_t *words;
	struct keyed *items;
	struct run *runs;
	size_t n_runs, capacity;
	sequence_tie *tie;
	const void *context;
};

/* An end is 0, so it comes before any number. */
static uint64_t key_at(const uint32_t *words, const struct sequence *s, uint32_t depth)
{
	uint64_t high = depth < s->n ? (uint64_t)words[s->first + depth] + 1 : 0;
	uint64_t low = depth + 1 < s->n ? (uint64_t)words[s->first + depth + 1] + 1 : 0;
	return high << 32 | low;
}

static int compare_keys(const void *a, const void *b)
{
	const struct keyed *x = a, *y = b;
	return (x->key > y->key) - (x->key < y->key);
}

static int compare_ties(const void *a, const void *b, void *context)
{
	const struct sorter *o = context;
	uint32_t x = ((const struct keyed *)a)->s.item, y = ((const struct keyed *)b)->s.item;
	int order = o->tie ? o->tie(o->context, x, y) : 0;
	return order ? order : (x > y) - (x < y);
}

static void sort_keys(struct keyed *items, size_t n)
{
	if (n > 12) {
		qsort(items, n, sizeof(*items), compare_keys);
		return;
	}
	for (size_t i = 1; i < n; i++) {
		struct keyed moved = items[i];
		size_t at = i;
		for (; at > 0 && items[at - 1].key > moved.key; at--)
			items[at] = items[at - 1];
		items[at] = moved;
	}
}

static bool push_run(struct sorter *o, size_t from, size_t to, uint32_t depth)
{
	if (to - from < 2)
		return true;
	struct run *run = ARRAY_PUSH(o->runs, o->n_runs, o->capacity, SIZE_MAX / sizeof(*run));
	if (run)
		*run = (struct run){ from, to, depth };
	return run != NULL;
}

/* Sorts a run by the two numbers at its depth; what is still equal waits for the next two. */
static bool sort_run(struct sorter *o, struct run run)
{
	struct keyed *items = o->items;
	bool differ = false, sorted = true;
	for (size_t i = run.from; i < run.to; i++) {
		items[i].key = key_at(o->words, &items[i].s, run.depth);
		differ |= items[i].key != items[run.from].key;
		sorted &= i == run.from || items[i - 1].key <= items[i].key;
	}
	if (differ && !sorted)
		sort_keys(items + run.from, run.to - run.from);
	for (size_t i = run.from; i < run.to;) {
		size_t from = i;
		uint64_t key = items[i].key;
		while (i < run.to && items[i].key == key)
			i++;
		if ((uint32_t)key == 0) {
			/* All of them end here: they are the same. */
			if (i - from > 1)
				qsort_r(items + from, i - from, sizeof(*items), compare_ties, o);
		} else if (!push_run(o, from, i, run.depth + 2)) {
			return false;
		}
	}
	return true;
}

bool sequences_sort(const uint32_t *words, struct sequence *sequences, size_t n, sequence_tie *tie,
                    const void *context)
{
	struct sorter o = { .words = words, .tie = tie, .context = context };
	if (n < 2)
		return true;
	size_t bytes = memory_product(n, sizeof(*o.items));
	o.items = bytes < SIZE_MAX ? malloc(bytes) : NULL;
	bool ok = o.items != NULL && push_run(&o, 0, n, 0);
	for (size_t i = 0; ok && i < n; i++)
		o.items[i].s = sequences[i];
	while (ok && o.n_runs > 0)
		ok = sort_run(&o, o.runs[--o.n_runs]);
	for (size_t i = 0; ok && i < n; i++)
		sequences[i] = o.items[i].s;
	free(o.items);
	free(o.runs);
	return ok;
}
