/* What the generated functions of the benchmark's program share: a random walk through them. */
#ifndef BENCH_WALK_H
#define BENCH_WALK_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

struct walk {
	uint64_t number;        /* of the stack: its digits in base 3 decide the first calls, so that no two */
	                        /* stacks of equal depth are the same; those deep enough for their number */
	uint64_t random;        /* decides the rest */
	unsigned left;          /* calls still to make before allocating */
	size_t size;
};

typedef void *step(struct walk *w);

static inline unsigned walk_choice(struct walk *w)
{
	if (w->number) {
		unsigned digit = (unsigned)(w->number % 3);
		w->number /= 3;
		return digit;
	}
	w->random = w->random * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)(w->random >> 33) % 3;
}

static inline void *walk_allocate(struct walk *w)
{
	return malloc(w->size);
}

#include "functions.h"

#endif
