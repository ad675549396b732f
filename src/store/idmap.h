/*
 * A bounded memory of which number the store gave to something, by a 128-bit hash of it with a key of our own. When it is full the older
 * half is forgotten; whoever doesn't find a number here asks the store. Not for several threads at once.
 */
#ifndef STORE_IDMAP_H
#define STORE_IDMAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct idmap_entry {
	uint64_t high, low;
	uint32_t id;                    /* never 0 */
	uint32_t day;                   /* the caller's */
};

struct idmap {
	struct idmap_entry *tables[2];  /* the one that is filled, and the one before */
	size_t n, slots, max_slots;     /* of the first; slots a power of two */
	size_t old_slots;
};

/* max: entries of one half, rounded up to a power of two. */
void idmap_init(struct idmap *m, size_t max);
void idmap_finish(struct idmap *m);
void idmap_clear(struct idmap *m);
/* NULL: not known (any more). Valid until the next put. */
struct idmap_entry *idmap_find(struct idmap *m, uint64_t high, uint64_t low);
/* Forgetting is no failure: without memory it isn't kept. */
void idmap_put(struct idmap *m, uint64_t high, uint64_t low, uint32_t id, uint32_t day);

static inline void idmap_prefetch(const struct idmap *m, uint64_t low)
{
	if (m->slots)
		__builtin_prefetch(&m->tables[0][low & (m->slots - 1)]);
}

#endif
