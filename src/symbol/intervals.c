#include "symbol/intervals.h"

#include <stdlib.h>

#include "base/memory.h"

bool intervals_add(struct intervals *x, uint64_t low, uint64_t high, uint32_t value)
{
	struct interval *slot = ARRAY_PUSH(x->items, x->n, x->capacity, INTERVALS_MAX);
	if (slot)
		*slot = (struct interval){ .low = low, .high = high, .order = (uint32_t)(x->n - 1), .value = value };
	return slot != NULL;
}

static int compare(const void *a, const void *b)
{
	const struct interval *x = a, *y = b;
	if (x->low != y->low)
		return x->low < y->low ? -1 : 1;
	return x->order < y->order ? -1 : x->order > y->order;
}

void intervals_sort(struct intervals *x)
{
	uint64_t reach = 0;
	if (x->n)
		qsort(x->items, x->n, sizeof(*x->items), compare);
	for (size_t i = 0; i < x->n; i++) {
		reach = x->items[i].high > reach ? x->items[i].high : reach;
		x->items[i].reach = reach;
	}
}

void intervals_finish(struct intervals *x)
{
	free(x->items);
	*x = (struct intervals){ 0 };
}

size_t intervals_before(const struct intervals *x, uint64_t address)
{
	size_t low = 0, n = x->n;
	while (n > 0) {
		size_t half = n / 2;
		bool right = x->items[low + half].low <= address;
		low += right ? half + 1 : 0;
		n = right ? n - half - 1 : half;
	}
	return low;
}

const struct interval *intervals_first(const struct intervals *x, uint64_t address)
{
	const struct interval *first = NULL, *i;
	size_t at = intervals_before(x, address);
	while ((i = intervals_next(x, &at, address)) != NULL)
		if (!first || i->order < first->order)
			first = i;
	return first;
}
