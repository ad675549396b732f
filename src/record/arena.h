/* Memory that is given back as a whole: what a configuration or a list of states is made of. Born with a maximum. */
#ifndef RECORD_ARENA_H
#define RECORD_ARENA_H

#include <stdbool.h>
#include <stddef.h>

struct arena_block;

struct arena {
	struct arena_block *last;
	size_t bytes, max;
	bool failed;                        /* sticky: out of memory, or past the maximum */
};

void arena_init(struct arena *a, size_t max);
void arena_finish(struct arena *a);
/* n zero bytes, aligned for anything; NULL (and failed) when there are none. */
void *arena_take(struct arena *a, size_t n);
/* The n bytes and a NUL; NULL as above. */
char *arena_text(struct arena *a, const char *text, size_t n);
/* An array with room for one more item than n (doubled at powers of two); the old one stays where it was until the end. NULL as above. */
void *arena_grow(struct arena *a, void *items, size_t n, size_t item_bytes);

#endif
