#include "cli/addr_symbols.h"

#include <stdlib.h>
#include <string.h>

#include "symbol/demangle.h"

#define SYMBOLS_MAX ((size_t)1 << 26)

struct addr_symbol {
	const char *name;                    /* in the image */
	uint64_t value;
};

void addr_symbols_init(struct addr_symbols *s, const struct elf_image *e)
{
	memset(s, 0, sizeof *s);
	s->image = e;
}

void addr_symbols_finish(struct addr_symbols *s)
{
	free(s->items);
	index_finish(&s->index);
	memset(s, 0, sizeof *s);
}

struct wanted {
	const struct addr_symbols *symbols;
	const char *name;
	size_t length;
};

static bool same_name(const void *context, uint32_t item)
{
	const struct wanted *w = context;
	const char *name = w->symbols->items[item].name;
	return strncmp(name, w->name, w->length) == 0 && !name[w->length];
}

static uint32_t find(const struct addr_symbols *s, const char *name, size_t length)
{
	return index_find(&s->index, hash_bytes(name, length), same_name, &(struct wanted){ s, name, length });
}

/* Without memory, only those that were read are known. */
static void read_all(struct addr_symbols *s)
{
	struct elf_symbols all;
	struct elf_symbol y;
	s->read = true;
	if (!elf_symbols_begin(&all, s->image, false) && !elf_symbols_begin(&all, s->image, true))
		return;
	while (elf_symbols_next(&all, &y)) {
		size_t length = strlen(y.name);
		if (length == 0 || find(s, y.name, length) != INDEX_NONE)
			continue;
		struct addr_symbol *slot = index_reserve(&s->index) ? ARRAY_PUSH(s->items, s->n, s->capacity, SYMBOLS_MAX) : NULL;
		if (!slot)
			return;
		*slot = (struct addr_symbol){ y.name, y.value };
		index_insert(&s->index, hash_bytes(y.name, length), (uint32_t)(s->n - 1));
	}
}

static uint64_t find_demangled(const struct addr_symbols *s, const char *name, size_t length)
{
	struct buf plain;
	uint64_t value = 0;
	buf_init(&plain, BUF_MAX_DEFAULT);
	for (size_t i = 0; i < s->n; i++) {
		if (s->items[i].name[0] != '_')
			continue;
		buf_reset(&plain);
		demangle(s->items[i].name, DEMANGLE_FULL, &plain);
		if (plain.len == length && memcmp(plain.data, name, length) == 0) {
			value = s->items[i].value;
			break;
		}
	}
	buf_finish(&plain);
	return value;
}

uint64_t addr_symbols_value(struct addr_symbols *s, const char *name, size_t length)
{
	if (length == 0)
		return 0;
	if (!s->read)
		read_all(s);
	uint32_t item = find(s, name, length);
	if (item != INDEX_NONE)
		return s->items[item].value;
	bool scoped = memchr(name, '(', length) || memmem(name, length, "::", 2);
	return scoped ? find_demangled(s, name, length) : 0;
}
