/* An entry is found by its hash alone: of 131,072 stacks two meet in 64 bits once in 10^9 dumps. */
#include "format/jeheap_base.h"

#include <stdlib.h>

struct base_entry {
	uint64_t hash, block_size;
};

struct jeheap_base {
	struct base_entry *entries;          size_t n, capacity;
	int64_t *values;                size_t values_capacity;         /* columns for each entry */
	size_t columns, limit_bytes;
	struct index index;
};

struct jeheap_base *base_new(size_t columns, size_t limit_bytes)
{
	struct jeheap_base *b = calloc(1, sizeof(*b));
	if (b)
		*b = (struct jeheap_base){ .columns = columns, .limit_bytes = limit_bytes };
	return b;
}

void jeheap_base_free(struct jeheap_base *b)
{
	if (!b)
		return;
	free(b->entries);
	free(b->values);
	index_finish(&b->index);
	free(b);
}

uint64_t base_key_stack(const struct frames *f, uint64_t *addresses)
{
	for (size_t i = 0; i < f->stack_n; i++)
		addresses[i] = f->addresses[f->stack[i]];
	return hash_bytes(addresses, f->stack_n * sizeof(*addresses));
}

struct sought {
	const struct base_entry *entries;
	uint64_t hash;
};

static bool same(const void *context, uint32_t item)
{
	const struct sought *s = context;
	return s->entries[item].hash == s->hash;
}

static uint32_t find(const struct jeheap_base *b, uint64_t hash)
{
	struct sought sought = { b->entries, hash };
	return index_find(&b->index, hash, same, &sought);
}

static uint64_t hash_of(struct base_key key)
{
	return hash_mix(key.stack, key.thread);
}

/* A new entry of zeros; INDEX_NONE when there is no room. */
static uint32_t new_entry(struct jeheap_base *b, uint64_t hash, uint64_t block_size)
{
	size_t values = (b->n + 1) * b->columns;
	struct base_entry *e;
	if (!index_reserve(&b->index) ||
	    !memory_grow((void **)&b->values, &b->values_capacity, values, sizeof(*b->values),
	                 b->limit_bytes / sizeof(*b->values)) ||
	    !(e = ARRAY_PUSH(b->entries, b->n, b->capacity, b->limit_bytes / sizeof(*b->entries))))
		return INDEX_NONE;
	*e = (struct base_entry){ hash, block_size };
	memset(b->values + values - b->columns, 0, b->columns * sizeof(*b->values));
	index_insert(&b->index, hash, (uint32_t)(b->n - 1));
	return (uint32_t)(b->n - 1);
}

bool base_add(struct jeheap_base *b, struct base_key key, uint64_t block_size, const int64_t *values)
{
	uint64_t hash = hash_of(key);
	uint32_t i = find(b, hash);
	if (i == INDEX_NONE)
		i = new_entry(b, hash, block_size);
	if (i == INDEX_NONE)
		return false;
	if (b->entries[i].block_size != block_size)
		b->entries[i].block_size = 0;
	/* The reader has seen to it that all values of a dump add up to less than 2^63. */
	for (size_t c = 0; c < b->columns; c++)
		b->values[i * b->columns + c] += values[c];
	return true;
}

bool base_take(struct jeheap_base *b, struct base_key key, uint64_t *block_size, int64_t *values, size_t columns)
{
	uint32_t i = find(b, hash_of(key));
	size_t common = columns < b->columns ? columns : b->columns;
	int64_t any = 0;
	if (i != INDEX_NONE) {
		int64_t *base = b->values + (i + 1) * b->columns - common, *now = values + columns - common;
		for (size_t c = 0; c < common; c++) {
			int64_t taken = now[c] < base[c] ? now[c] : base[c];
			now[c] -= taken;
			base[c] -= taken;
		}
		if (b->entries[i].block_size != *block_size)
			*block_size = 0;
	}
	for (size_t c = 0; c < columns; c++)
		any |= values[c];
	return any != 0;
}
