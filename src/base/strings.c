/*
 * The bytes of all strings lie one behind the other, each with its NUL; the index
 * finds a string by its hash. Nothing is ever removed, so numbers stay valid.
 */
#include "base/strings.h"

#include <stdlib.h>

struct sought {
	const struct strings *strings;
	const char *text;
	size_t length;
};

static bool same(const void *context, uint32_t item)
{
	const struct sought *x = context;
	return strings_length(x->strings, item) == x->length &&
	       memcmp(strings_get(x->strings, item), x->text, x->length) == 0;
}

/* Puts the string behind the last one and enters it in the index; all or nothing. */
static uint32_t append(struct strings *s, uint64_t hash, const char *text, size_t length,
                       size_t max_bytes)
{
	size_t need;
	if (s->n >= INDEX_NONE - 1 || __builtin_add_overflow(s->bytes_n, length, &need) ||
	    need >= max_bytes)
		return INDEX_NONE;
	need++;
	/* The text may be one of ours, and growing moves them. */
	bool own = s->bytes && text >= s->bytes && text < s->bytes + s->bytes_n;
	size_t own_at = own ? (size_t)(text - s->bytes) : 0;
	if (!memory_grow((void **)&s->bytes, &s->bytes_capacity, need, 1, max_bytes) ||
	    !memory_grow((void **)&s->starts, &s->starts_capacity, s->n + 2, sizeof(*s->starts),
	                 INDEX_NONE) ||
	    !index_reserve(&s->index))
		return INDEX_NONE;
	if (own)
		text = s->bytes + own_at;
	if (length)
		memcpy(s->bytes + s->bytes_n, text, length);
	s->bytes[need - 1] = '\0';
	uint32_t id = (uint32_t)s->n;
	s->starts[id] = s->bytes_n;
	s->starts[id + 1] = need;
	s->bytes_n = need;
	s->n++;
	index_insert(&s->index, hash, id);
	return id;
}

bool strings_init(struct strings *s)
{
	*s = (struct strings){ 0 };
	if (append(s, hash_bytes("", 0), "", 0, SIZE_MAX) == INDEX_NONE) {
		strings_finish(s);
		return false;
	}
	return true;
}

void strings_finish(struct strings *s)
{
	if (!s)
		return;
	free(s->bytes);
	free(s->starts);
	index_finish(&s->index);
	*s = (struct strings){ 0 };
}

uint32_t strings_find(const struct strings *s, const char *text, size_t length)
{
	struct sought sought = { s, text, length };
	return index_find(&s->index, hash_bytes(text, length), same, &sought);
}

uint32_t strings_add(struct strings *s, const char *text, size_t length, size_t max_bytes)
{
	struct sought sought = { s, text, length };
	uint64_t hash = hash_bytes(text, length);
	uint32_t id = index_find(&s->index, hash, same, &sought);
	return id != INDEX_NONE ? id : append(s, hash, text, length, max_bytes);
}
