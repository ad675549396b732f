/*
 * The amounts of a dump, by stack and thread, to be taken off a later one. Private to jeheap_*.c.
 */
#ifndef FORMAT_JEHEAP_BASE_H
#define FORMAT_JEHEAP_BASE_H

#include "format/jeheap.h"

/* A stack and a thread as they are in every dump of a process: by the addresses and the thread's number. */
struct base_key {
	uint64_t stack;                 /* hash of the stack's addresses, see base_key_stack */
	uint64_t thread;                /* its number, or UINT64_MAX: none */
};

/* addresses: room for those of the stack that f has read. */
uint64_t base_key_stack(const struct frames *f, uint64_t *addresses);

/* columns: values of a sample, 2 or 4, of which the last two are what is in use. */
struct jeheap_base *base_new(size_t columns, size_t limit_bytes);
/* Once more of the same key adds up. False when out of memory or past the limit. */
bool base_add(struct jeheap_base *b, struct base_key key, uint64_t block_size, const int64_t *values);
/*
 * Takes off values, as far as they go, what the base has under that key, which is less then; *block_size becomes 0 when the base's
 * differs. False: nothing is left of the values.
 */
bool base_take(struct jeheap_base *b, struct base_key key, uint64_t *block_size, int64_t *values, size_t columns);

#endif
