#include "record/arena.h"

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK_BYTES ((size_t)16 << 10)
#define BLOCK_LEAST ((size_t)1 << 10)

struct arena_block {
	struct arena_block *before;
	size_t n, capacity;
	_Alignas(max_align_t) unsigned char bytes[];
};

void arena_init(struct arena *a, size_t max)
{
	*a = (struct arena){ .max = max };
}

void arena_finish(struct arena *a)
{
	while (a->last) {
		struct arena_block *before = a->last->before;
		free(a->last);
		a->last = before;
	}
	a->bytes = 0;
}

static struct arena_block *add_block(struct arena *a, size_t n)
{
	/* Small ones, of one target, stay small. */
	size_t like_before = a->bytes < BLOCK_LEAST ? BLOCK_LEAST : a->bytes < BLOCK_BYTES ? a->bytes : BLOCK_BYTES;
	size_t capacity = n > like_before ? n : like_before;
	if (a->failed || n > a->max || a->bytes > a->max - n)
		return NULL;
	struct arena_block *b = calloc(1, sizeof *b + capacity);
	if (!b)
		return NULL;
	b->capacity = capacity;
	b->before = a->last;
	a->last = b;
	a->bytes += capacity;
	return b;
}

void *arena_take(struct arena *a, size_t n)
{
	size_t align = _Alignof(max_align_t);
	if (n > SIZE_MAX / 2) {
		a->failed = true;
		return NULL;
	}
	n = (n + align - 1) / align * align;
	struct arena_block *b = a->last;
	if (!b || b->capacity - b->n < n)
		b = add_block(a, n);
	if (!b) {
		a->failed = true;
		return NULL;
	}
	void *at = b->bytes + b->n;
	b->n += n;
	return at;
}

char *arena_text(struct arena *a, const char *text, size_t n)
{
	char *copy = n < SIZE_MAX ? arena_take(a, n + 1) : NULL;
	if (copy && n)
		memcpy(copy, text, n);
	return copy;
}

void *arena_grow(struct arena *a, void *items, size_t n, size_t item_bytes)
{
	if (n && (n & (n - 1)))
		return items;
	if (n > SIZE_MAX / 4 / item_bytes) {
		a->failed = true;
		return NULL;
	}
	void *larger = arena_take(a, (n ? 2 * n : 1) * item_bytes);
	if (larger && n)
		memcpy(larger, items, n * item_bytes);
	return larger;
}
