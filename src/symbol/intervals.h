/*
 * Which of many intervals have a certain address: sorted by where they begin, each with how far any of those up to it
 * reaches, so that the search goes back only as long as one still can. Nested and overlapping ones are all found.
 */
#ifndef SYMBOL_INTERVALS_H
#define SYMBOL_INTERVALS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define INTERVALS_MAX ((size_t)1 << 24)

struct interval {
	uint64_t low, high;          /* high is not in it; low == high: it has no address, but stands there */
	uint64_t reach;              /* the highest high of those up to this one; since intervals_sort() */
	uint32_t order, value;       /* order: how many were added before */
};

struct intervals {
	struct interval *items;      /* by low, then order */
	size_t n, capacity;
};

/* False when out of memory, or when there are INTERVALS_MAX. */
bool intervals_add(struct intervals *x, uint64_t low, uint64_t high, uint32_t value);
/* Between the last that is added and the first question. */
void intervals_sort(struct intervals *x);
void intervals_finish(struct intervals *x);

/* How many begin at or before the address: where a search begins. */
size_t intervals_before(const struct intervals *x, uint64_t address);

/* The next one with the address, from *at down: those that begin last come first. NULL: no more. */
static inline const struct interval *intervals_next(const struct intervals *x, size_t *at, uint64_t address)
{
	while (*at > 0 && x->items[*at - 1].reach > address) {
		const struct interval *i = &x->items[--*at];
		if (i->high > address)
			return i;
	}
	return NULL;
}

/* The one with the address that was added first, or NULL. */
const struct interval *intervals_first(const struct intervals *x, uint64_t address);

#endif
