/* A map from one number to another, which only grows. */
#ifndef STORE_NUMBERS_H
#define STORE_NUMBERS_H

#include <stdlib.h>

#include "base/memory.h"

struct numbers {
	struct index index;
	uint32_t *keys, *values;        /* in the order they were added */
	size_t n, keys_capacity, values_capacity;
};

static inline void numbers_finish(struct numbers *m)
{
	index_finish(&m->index);
	free(m->keys);
	free(m->values);
	*m = (struct numbers){ 0 };
}

struct numbers_key {
	const struct numbers *m;
	uint32_t key;
};

static inline bool numbers_same(const void *context, uint32_t item)
{
	const struct numbers_key *k = context;
	return k->m->keys[item] == k->key;
}

/* The key's place among keys and values, added with value 0 when new; INDEX_NONE: no memory. */
static inline uint32_t numbers_place(struct numbers *m, uint32_t key, bool *ret_new)
{
	uint64_t hash = hash_mix(key, 0);
	uint32_t at = index_find(&m->index, hash, numbers_same, &(struct numbers_key){ m, key });
	*ret_new = at == INDEX_NONE;
	if (at != INDEX_NONE)
		return at;
	size_t n = m->n;
	if (!index_reserve(&m->index) || !memory_grow((void **)&m->keys, &m->keys_capacity, n + 1, sizeof *m->keys, INDEX_NONE) ||
	    !memory_grow((void **)&m->values, &m->values_capacity, n + 1, sizeof *m->values, INDEX_NONE))
		return INDEX_NONE;
	m->keys[n] = key;
	m->values[n] = 0;
	m->n = n + 1;
	index_insert(&m->index, hash, (uint32_t)n);
	return (uint32_t)n;
}

#endif
