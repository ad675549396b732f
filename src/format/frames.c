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
	uint32_t number = f->cache[i] - 1;
	if (number < f->n && f->addresses[number] == address)
		return number;
	number = find_or_add(f, address);
	f->cache[i] = number + 1;
	return number;
}

#define EACH(byte) (UINT64_C(0x0101010101010101) * (byte))

/*
 * Lower-case hex digits eight at a time: the nibble of each byte, checked by making the character again
 * from it. The nibbles pushed together, first one on top, in *ret_value; returns zero in all bytes that are digits.
 */
static inline uint64_t eight_digits(const char *p, uint64_t *ret_value)
{
	uint64_t x;
	memcpy(&x, p, sizeof(x));
#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
	x = __builtin_bswap64(x);
#endif
	uint64_t v = (x & EACH(0x0f)) + (x >> 6 & EACH(0x01)) * 9;
	uint64_t letters = (v + EACH(0x06)) >> 4 & EACH(0x01);
	uint64_t again = v + EACH('0') + letters * ('a' - 10 - '0');
	uint64_t wrong = (v & EACH(0xf0)) | (again ^ x);
	v &= EACH(0x0f);
	v = (v << 4 | v >> 8) & UINT64_C(0x00ff00ff00ff00ff);
	v = (v << 8 | v >> 16) & UINT64_C(0x0000ffff0000ffff);
	*ret_value = (v << 16 | v >> 32) & UINT32_MAX;
	return wrong;
}

/*
 * "0x7f1234567890 ", as user-space addresses are on 64-bit machines: twelve digits, so that where the next one
 * begins does not wait for this one's conversion. p has 18 bytes.
 */
static inline bool usual_address(const char *p, uint64_t *ret_address)
{
	uint64_t high, low;
	if (p[0] != '0' || p[1] != 'x' || p[14] != ' ')
		return false;
	uint64_t wrong = eight_digits(p + 2, &high) | (eight_digits(p + 10, &low) & UINT32_MAX);
	*ret_address = high << 16 | low >> 16;
	return wrong == 0;
}

/* Any form, with blanks before it. 1: *at is moved behind it; 0: there was none to the end. */
static int any_address(const struct lines *l, const char **at, const char *end, uint64_t *ret_address,
                       struct error *err)
{
	const char *p = *at;
	while (p < end && (*p == ' ' || *p == '\t'))
		p++;
	if (p == end)
		return 0;
	*at = p;
	if (lines_hex(at, end, ret_address) && (*at == end || **at == ' ' || **at == '\t'))
		return 1;
	char quoted[LINES_QUOTE];
	return lines_error(l, err, E_FORMAT, "expected an address such as 0x7f12ab34 in place of \"%s\"",
	                   lines_quote(quoted, p, (size_t)(end - p)));
}

static int too_many(const struct frames *f, const struct lines *l, struct error *err)
{
	if (f->stack_n == f->depth)
		return lines_error(l, err, E_LIMIT, "stack of more than %u frames", f->depth);
	return lines_error(l, err, E_LIMIT, "more distinct addresses than memory or the limit of %zu MiB allows",
	                   f->limit_bytes >> 20);
}

int frames_read(struct frames *f, const struct lines *l, const char *at, const char *end,
                struct error *err)
{
	/* A frame takes two bytes at least. */
	size_t most = (size_t)(end - at) / 2 + 1, n = 0;
	if (most > f->depth)
		most = f->depth;
	if (!memory_grow((void **)&f->stack, &f->stack_capacity, most, sizeof(*f->stack), most))
		return error_nomem(err, "a stack");
	for (;; n++) {
		uint64_t address;
		int rc = 1;
		if (end - at > 18 && *at == ' ' && usual_address(at + 1, &address))
			at += 15;
		else
			rc = any_address(l, &at, end, &address, err);
		f->stack_n = n;
		if (rc <= 0)
			return rc;
		uint32_t number = n < f->depth ? number_of(f, address - (address > 0)) : INDEX_NONE;
		if (number == INDEX_NONE)
			return too_many(f, l, err);
		f->stack[n] = number;
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
