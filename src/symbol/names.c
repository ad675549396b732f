/*
 * An arena of blocks with an index over the texts in it. Mangled names repeat a lot (an
 * inlined function appears in hundreds of units), and demangling costs microseconds.
 */
#include "symbol/names.h"

#include <stdlib.h>

#include "symbol/symbol.h"

#define NAMES_BLOCK ((size_t)64 << 10)
#define NAMES_LIMIT ((size_t)1 << 30)
#define NAMES_MAX ((size_t)1 << 30)

struct name {
	const char *text;
	const char *demangled;   /* NULL: not asked yet */
	size_t length;
};

struct wanted {
	const struct names *names;
	const char *text;
	size_t length;
};

void names_init(struct names *n)
{
	memset(n, 0, sizeof(*n));
}

void names_finish(struct names *n)
{
	if (!n)
		return;
	for (size_t i = 0; i < n->n_blocks; i++)
		free(n->blocks[i]);
	free(n->blocks);
	free(n->items);
	index_finish(&n->index);
	memset(n, 0, sizeof(*n));
}

static char *take(struct names *n, size_t bytes)
{
	if (bytes > n->left) {
		size_t block = bytes > NAMES_BLOCK ? bytes : NAMES_BLOCK;
		if (bytes > NAMES_LIMIT || n->bytes > NAMES_LIMIT - block) {
			n->full = true;
			return NULL;
		}
		char *fresh = malloc(block);
		char **slot = fresh ? ARRAY_PUSH(n->blocks, n->n_blocks, n->blocks_capacity, NAMES_MAX)
		                    : NULL;
		if (!slot) {
			free(fresh);
			return NULL;
		}
		*slot = fresh;
		n->at = fresh;
		n->left = block;
		n->bytes += block;
	}
	char *taken = n->at;
	n->at += bytes;
	n->left -= bytes;
	return taken;
}

static bool same_text(const void *context, uint32_t item)
{
	const struct wanted *w = context;
	const struct name *have = &w->names->items[item];
	return have->length == w->length && !memcmp(have->text, w->text, w->length);
}

/* The item of that text, or INDEX_NONE. */
static uint32_t intern(struct names *n, const char *text, size_t length)
{
	struct wanted w = { n, text, length };
	uint64_t hash = hash_bytes(text, length);
	uint32_t found = index_find(&n->index, hash, same_text, &w);
	if (found != INDEX_NONE)
		return found;
	char *copy = index_reserve(&n->index) ? take(n, length + 1) : NULL;
	struct name *item = copy ? ARRAY_PUSH(n->items, n->n, n->capacity, NAMES_MAX) : NULL;
	if (!item)
		return INDEX_NONE;
	memcpy(copy, text, length);
	copy[length] = '\0';
	*item = (struct name){ .text = copy, .length = length };
	index_insert(&n->index, hash, (uint32_t)(n->n - 1));
	return (uint32_t)(n->n - 1);
}

const char *names_keep(struct names *n, const char *text, size_t length)
{
	uint32_t item = intern(n, text, length);
	return item == INDEX_NONE ? NULL : n->items[item].text;
}

const char *names_demangled(struct names *n, const char *text)
{
	uint32_t item = intern(n, text, strlen(text));
	if (item == INDEX_NONE)
		return NULL;
	if (n->items[item].demangled)
		return n->items[item].demangled;
	struct buf plain;
	buf_init(&plain, BUF_MAX_DEFAULT);
	symbol_demangle(text, &plain);
	const char *kept = plain.failed ? NULL : names_keep(n, plain.data ? plain.data : "", plain.len);
	buf_finish(&plain);
	n->items[item].demangled = kept;
	return kept;
}
