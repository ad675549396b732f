/*
 * A stack of a real program repeats addresses seen a moment ago, so a small direct-mapped cache
 * answers nearly all look-ups and the hash index only the rest.
 */
#include "format/frames.h"

#include <stdlib.h>

#define CACHE_SLOTS ((size_t)1 << FRAMES_CACHE_BITS)

int frames_init(struct frames *f, const struct read_limits *limits, struct error *err)
{
	*f = (struct frames){
		.limit_bytes = limits->profile_bytes,
		.depth = limits->depth,
	};
	f->cache = calloc(CACHE_SLOTS, sizeof(*f->cache));
	return f->cache ? E_OK : error_nomem(err, "the addresses of the profile");
}

void frames_finish(struct frames *f)
{
	if (!f)
		return;
	free(f->addresses);
	free(f->stack);
	free(f->cache);
	index_finish(&f->index);
	*f = (struct frames){ 0 };
}

struct sought {
	const uint64_t *addresses;
	uint64_t address;
};

static bool same(const void *context, uint32_t item)
{
	const struct sought *s = context;
	return s->addresses[item] == s->address;
}

/* Out of line: the rare case. INDEX_NONE when out of memory or past the limit. */
static __attribute__((noinline)) uint32_t find_or_add(struct frames *f, uint64_t address)
{
	uint64_t hash = hash_u64(address);
	struct sought sought = { f->addresses, address };
	uint32_t number = index_find(&f->index, hash, same, &sought);
	if (number != INDEX_NONE)
		return number;
	size_t most = f->limit_bytes / sizeof(*f->addresses);
	if (most > INDEX_NONE - 1)
		most = INDEX_NONE - 1;
	uint64_t *slot = NULL;
	if (index_reserve(&f->index))
		slot = ARRAY_PUSH(f->addresses, f->n, f->capacity, most);
	if (!slot)
		return INDEX_NONE;
	*slot = address;
	number = (uint32_t)(f->n - 1);
	index_insert(&f->index, hash, number);
	return number;
}

static inline uint32_t number_of(struct frames *f, uint64_t address)
{
	size_t i = (size_t)(address * UINT64_C(0x9e3779b97f4a7c15) >> (64 - FRAMES_CACHE_BITS));
	if (f->cache[i].used && f->cache[i].address == address)
		return f->cache[i].number;
	uint32_t number = find_or_add(f, address);
	f->cache[i].address = address;
	f->cache[i].number = number;
	f->cache[i].used = number != INDEX_NONE;
	return number;
}

int frames_read(struct frames *f, const struct lines *l, const char *at, const char *end,
                struct error *err)
{
	/* A frame takes two bytes at least. */
	size_t most = (size_t)(end - at) / 2 + 1;
	if (most > f->depth)
		most = f->depth;
	if (!memory_grow((void **)&f->stack, &f->stack_capacity, most, sizeof(*f->stack), most) ||
	    !f->stack)
		return error_nomem(err, "a stack");
	f->stack_n = 0;
	for (;;) {
		while (at < end && (*at == ' ' || *at == '\t'))
			at++;
		if (at == end)
			return E_OK;
		uint64_t address;
		const char *word = at;
		if (!lines_hex(&at, end, &address) || (at < end && *at != ' ' && *at != '\t')) {
			char quoted[LINES_QUOTE];
			return lines_error(l, err, E_FORMAT, "expected an address such as 0x7f12ab34 in place of \"%s\"",
			                   lines_quote(quoted, word, (size_t)(end - word)));
		}
		if (f->stack_n == f->depth)
			return lines_error(l, err, E_LIMIT, "stack of more than %u frames", f->depth);
		uint32_t number = number_of(f, address - (address > 0));
		if (number == INDEX_NONE)
			return lines_error(l, err, E_LIMIT, "more distinct addresses than memory or the limit of %zu MiB allows",
			                   f->limit_bytes >> 20);
		f->stack[f->stack_n++] = number;
	}
}

int frames_locate(const struct frames *f, const struct maps *m, struct profile *p, struct error *err)
{
	for (size_t i = 0; i < f->n; i++)
		if (profile_intern_location(p, maps_find(m, f->addresses[i]), f->addresses[i]) != i)
			break;
	if (p->failure.code) {
		if (err)
			*err = p->failure;
		return p->failure.code;
	}
	return E_OK;
}
