/*
 * A lane is one binary's share of the call sites: 4^5 call paths, one per number below
 * LANE_PATHS. The digits of the number (base 4, least significant first) choose which function of
 * each level is called, so every path is a stack of its own whose function names spell its number:
 * linked_0_3 -> linked_1_0 -> ... Before the levels come path % 5 turns of a recursive function.
 *
 * The last level allocates, by malloc, calloc, realloc or aligned_alloc (in C++: operator new).
 */
#ifndef TRUTH_LANE_H
#define TRUTH_LANE_H

#include <stddef.h>

#define LANE_LEVELS 5
#define LANE_PATHS 1024

#ifdef __cplusplus
extern "C" {
#endif

typedef void *lane_function(unsigned path, size_t size);

void *main_allocate(unsigned path, size_t size);
void *linked_allocate(unsigned path, size_t size);
void *cplusplus_allocate(unsigned path, size_t size);
/* loaded_allocate, of the same source as linked_allocate, is found by dlsym. */

#ifdef __cplusplus
}
#endif

#endif
