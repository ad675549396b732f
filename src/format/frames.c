/*
 * A stack of a real program repeats addresses seen a moment ago, so a small cache answers
 * nearly all look-ups. It is asked with the text, as it stands there: what is found was parsed and
 * checked before, and the text need not be read as a number again.
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
	free(f->texts);
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

/* INDEX_NONE when out of memory or past the limit. */
static uint32_t find_or_add(struct frames *f, uint64_t address)
{
	uint64_t hash = hash_u64(address);
	struct sought sought = { f->addresses, address };
	uint32_t number = index_find(&f->index, hash, same, &sought);
	if (number != INDEX_NONE)
		return number;
	size_t most = f->limit_bytes / sizeof(*f->texts);
	if (most > INDEX_NONE - 1)
		most = INDEX_NONE - 1;
	if (!index_reserve(&f->index) ||
	    !memory_grow((void **)&f->texts, &f->texts_capacity, f->n + 1, sizeof(*f->texts), most) ||
	    !memory_grow((void **)&f->addresses, &f->capacity, f->n + 1, sizeof(*f->addresses), most))
		return INDEX_NONE;
	number = (uint32_t)f->n++;
	f->addresses[number] = address;
	f->texts[number] = (struct frame_text){ 0, 0 };
	index_insert(&f->index, hash, number);
	return number;
}

/* " 0x7f1234567890", and a blank or newline: what user-space addresses look like on 64-bit machines. */
#define USUAL 15

static inline struct frame_text usual_text(const char *at)
{
	struct frame_text text;
	memcpy(&text.first, at + 1, sizeof(text.first));
	memcpy(&text.last, at + USUAL - 7, sizeof(text.last));
	return text;
}

static inline uint64_t text_hash(struct frame_text text)
{
	return (text.first ^ (text.last << 31 | text.last >> 33)) * UINT64_C(0x9e3779b97f4a7c15);
}

static inline struct frame_slot *cache_slot(const struct frames *f, uint64_t hash)
{
	return &f->cache[hash >> (64 - FRAMES_CACHE_BITS)];
}

static inline uint32_t hash_tag(uint64_t hash)
{
	return (uint32_t)(hash >> (32 - FRAMES_CACHE_BITS));
}

/* Which of the two it would be is chosen without a branch: nobody could predict it. */
static inline uint32_t look_up(const struct frames *f, struct frame_text text)
{
	uint64_t hash = text_hash(text);
	const struct frame_slot *slot = cache_slot(f, hash);
	uint32_t second = 0u - (slot->tag[0] != hash_tag(hash));
	uint32_t number = ((slot->number[0] & ~second) | (slot->number[1] & second)) - 1;
	bool found = number < f->n &&
	             ((f->texts[number].first ^ text.first) | (f->texts[number].last ^ text.last)) == 0;
	return found ? number : INDEX_NONE;
}

static void remember(struct frames *f, struct frame_text text, uint32_t number)
{
	uint64_t hash = text_hash(text);
	struct frame_slot *slot = cache_slot(f, hash);
	f->texts[number] = text;
	slot->number[1] = slot->number[0];
	slot->tag[1] = slot->tag[0];
	slot->number[0] = number + 1;
	slot->tag[0] = hash_tag(hash);
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
	return lines_error(l, err, E_FORMAT,
	    "expected an address such as 0x7f12ab34 in place of \"%s\"",
	    lines_quote(quoted, p, (size_t)(end - p)));
}

static int too_many(const struct frames *f, const struct lines *l, struct error *err)
{
	if (f->stack_n >= f->depth)
		return lines_error(l, err, E_LIMIT, "stack of more than %u frames", f->depth);
	return lines_error(l, err, E_LIMIT,
	    "more distinct addresses than memory or the limit of %zu MiB allows",
	    f->limit_bytes >> 20);
}

/* Reads one address as a number; 0: there is none to the end. */
static int read_slowly(struct frames *f, const struct lines *l, const char **at, const char *end, uint32_t *ret,
                       struct error *err)
{
	const char *start = *at;
	uint64_t address;
	int rc = any_address(l, at, end, &address, err);
	if (rc <= 0)
		return rc;
	uint32_t number = f->stack_n < f->depth ? find_or_add(f, address - (address > 0)) : INDEX_NONE;
	if (number == INDEX_NONE)
		return too_many(f, l, err);
	/* From these characters, from the blank to what follows, nothing else can be read. */
	if (*at - start == USUAL && *start == ' ')
		remember(f, usual_text(start), number);
	*ret = number;
	return 1;
}

int frames_read(struct frames *f, const struct lines *l, const char *at, const char *end,
                struct error *err)
{
	/* A frame takes two bytes at least. */
	size_t most = (size_t)(end - at) / 2 + 1;
	if (most > f->depth)
		most = f->depth;
	if (!memory_grow((void **)&f->stack, &f->stack_capacity, most, sizeof(*f->stack), most))
		return error_nomem(err, "a stack");
	for (f->stack_n = 0;; f->stack_n++) {
		uint32_t number = INDEX_NONE;
		if (end - at >= USUAL && *at == ' ' && f->stack_n < f->depth)
			number = look_up(f, usual_text(at));
		if (number != INDEX_NONE) {
			at += USUAL;
		} else {
			int rc = read_slowly(f, l, &at, end, &number, err);
			if (rc <= 0)
				return rc;
		}
		f->stack[f->stack_n] = number;
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
