/*
 * Memory for the code that runs inside other programs: never from malloc, whose profile it makes. The modules that the library
 * needs (base, profile, format, http) are compiled a second time with this file included first, so that their malloc is ours; so are
 * the few functions of libc that would allocate behind our back.
 *
 * Blocks come from mappings of our own and belong to the session at hand: everything a dump needed is given back, whole, at
 * its end. One session at a time in a process; only its thread allocates.
 */
#ifndef AGENT_MEMORY_H
#define AGENT_MEMORY_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* limit_bytes: of all blocks together; past it allocations fail. */
void agent_memory_begin(size_t limit_bytes);
/* Gives everything back. Between sessions there is none to be had. */
void agent_memory_end(void);
/* In a forked child, which has none of the blocks: whatever state it is in, begins anew. */
void agent_memory_forget(void);

void *agent_malloc(size_t n);
void *agent_calloc(size_t n, size_t each);
void *agent_realloc(void *block, size_t n);
void agent_free(void *block);
char *agent_strdup(const char *text);

typedef int agent_compare(const void *a, const void *b);
typedef int agent_compare_r(const void *a, const void *b, void *context);
/* In place: glibc's qsort takes memory for long arrays. */
void agent_sort(void *items, size_t n, size_t each, agent_compare *compare);
void agent_sort_r(void *items, size_t n, size_t each, agent_compare_r *compare, void *context);

/* Of the C library's strerror, without its catalogues. */
const char *agent_strerror(int number);

#ifndef AGENT_MEMORY_PLAIN
#define malloc(n) agent_malloc(n)
#define calloc(n, each) agent_calloc(n, each)
#define realloc(block, n) agent_realloc(block, n)
#define free(block) agent_free(block)
#define strdup(text) agent_strdup(text)
#define qsort(items, n, each, compare) agent_sort(items, n, each, compare)
#define qsort_r(items, n, each, compare, context) agent_sort_r(items, n, each, compare, context)
#define strerror(number) agent_strerror(number)
#endif

#endif
