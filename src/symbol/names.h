/*
 * Strings of one batch of answers: each kept once, at an address that doesn't move, with its
 * demangled form worked out at most once.
 */
#ifndef SYMBOL_NAMES_H
#define SYMBOL_NAMES_H

#include <stdbool.h>

#include "base/memory.h"

struct name;

struct names {
	struct name *items;      size_t n, capacity;
	struct index index;
	char **blocks;           size_t n_blocks, blocks_capacity;
	char *at;                /* free room in the newest block */
	size_t left;
	size_t bytes;            /* in all blocks */
	bool full;               /* the limit was passed */
};

void names_init(struct names *n);
void names_finish(struct names *n);

/* The kept copy of a text; NULL when out of memory or past the limit of 1 GiB. */
const char *names_keep(struct names *n, const char *text, size_t length);

/* The kept demangled form; the kept text itself when it isn't a mangled name. NULL as above. */
const char *names_demangled(struct names *n, const char *text);

#endif
