/*
 * A table of distinct strings: each is stored once and named by a small number.
 * Number 0 is the empty string. Strings may hold any byte but are NUL-terminated
 * for convenience; embedded NULs are kept and counted by strings_length().
 */
#ifndef BASE_STRINGS_H
#define BASE_STRINGS_H

#include "base/memory.h"

struct strings {
	char *bytes;
	size_t bytes_n, bytes_capacity;
	uint64_t *starts;         /* n + 1 entries: string i is bytes[starts[i] .. starts[i+1] - 1) and a NUL */
	size_t n, starts_capacity;
	struct index index;
};

bool strings_init(struct strings *s);
void strings_finish(struct strings *s);

/* The number of that string, added when new; INDEX_NONE when out of memory or past max_bytes in all. */
uint32_t strings_add(struct strings *s, const char *text, size_t length, size_t max_bytes);
uint32_t strings_find(const struct strings *s, const char *text, size_t length); /* or INDEX_NONE */

static inline const char *strings_get(const struct strings *s, uint32_t id)
{
	return s->bytes + s->starts[id];
}

static inline size_t strings_length(const struct strings *s, uint32_t id)
{
	return (size_t)(s->starts[id + 1] - s->starts[id] - 1);
}

#endif
