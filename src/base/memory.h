/*
 * Memory with limits: growing arrays, checked sizes, and a hash index over items
 * that live elsewhere (strings, locations, stacks: each is stored once, in order,
 * and found again through the index).
 */
#ifndef BASE_MEMORY_H
#define BASE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* a * b or SIZE_MAX when that overflows. */
size_t memory_product(size_t a, size_t b);

/*
 * Grows the array *data of *capacity items to at least need items, at most max.
 * Doubles; large blocks move by remap, so the copy is cheap and the slack untouched.
 * Returns false, leaving everything as it was, when out of memory or past max.
 */
bool memory_grow(void **data, size_t *capacity, size_t need, size_t item_bytes, size_t max);

static inline void *array_item(void *items, size_t i, size_t item_bytes)
{
	return (char *)items + i * item_bytes;
}

/* Appends room for one item to a { items, n, capacity } triple; NULL when it can't grow. */
#define ARRAY_PUSH(items, n, capacity, max)                                              \
	(((n) < (capacity) ||                                                            \
	  memory_grow((void **)&(items), &(capacity), (n) + 1, sizeof *(items), max))    \
	     ? (__typeof__(&*(items)))array_item((items), (n)++, sizeof *(items))        \
	     : NULL)

/* Index of the first of n sorted numbers that is not below value; n when there is none. */
static inline size_t lower_bound_u64(const uint64_t *sorted, size_t n, uint64_t value)
{
	size_t low = 0;
	while (n > 0) {
		size_t half = n / 2;
		bool right = sorted[low + half] < value;
		low += right ? half + 1 : 0;
		n = right ? n - half - 1 : half;
	}
	return low;
}

/* 64-bit hash of bytes / of one word; not for adversaries, tables re-check equality. */
uint64_t hash_bytes(const void *bytes, size_t n);

static inline uint64_t hash_u64(uint64_t x)
{
	x ^= x >> 32;
	x *= 0x9e3779b97f4a7c15u;
	x ^= x >> 29;
	x *= 0xbf58476d1ce4e5b9u;
	return x ^ (x >> 32);
}

static inline uint64_t hash_mix(uint64_t h, uint64_t x)
{
	return hash_u64(h ^ (x + 0x9e3779b97f4a7c15u + (h << 6) + (h >> 2)));
}

/*
 * Open addressing, linear probing, at most half full. A slot's place comes from the tag
 * it keeps, so the table grows without asking for anybody's hash again.
 */
struct index_slot {
	uint32_t item;  /* index + 1; 0 is free */
	uint32_t tag;   /* the upper half of the hash */
};

struct index {
	struct index_slot *slots;
	size_t mask;    /* slots - 1, or 0 when there are none */
	size_t n;
};

#define INDEX_NONE UINT32_MAX

void index_finish(struct index *x);
/* Makes room for one more; false when out of memory. Call before index_insert. */
bool index_reserve(struct index *x);

typedef bool index_same(const void *context, uint32_t item);

/* The item with that hash for which same() says yes, or INDEX_NONE. */
static inline uint32_t index_find(const struct index *x, uint64_t hash, index_same *same,
                                  const void *context)
{
	if (!x->slots)
		return INDEX_NONE;
	uint32_t tag = (uint32_t)(hash >> 32);
	for (size_t i = tag & x->mask;; i = (i + 1) & x->mask) {
		struct index_slot s = x->slots[i];
		if (!s.item)
			return INDEX_NONE;
		if (s.tag == tag && same(context, s.item - 1))
			return s.item - 1;
	}
}

/* Looking for something with that hash will soon be faster. */
static inline void index_prefetch(const struct index *x, uint64_t hash)
{
	if (x->slots)
		__builtin_prefetch(&x->slots[(uint32_t)(hash >> 32) & x->mask]);
}

static inline void index_insert(struct index *x, uint64_t hash, uint32_t item)
{
	uint32_t tag = (uint32_t)(hash >> 32);
	size_t i = tag & x->mask;
	while (x->slots[i].item)
		i = (i + 1) & x->mask;
	x->slots[i] = (struct index_slot){ item + 1, tag };
	x->n++;
}

#endif
