/*
 * Paths where a file may be, shown one after the other until the visitor takes one.
 */
#ifndef SYMBOL_CANDIDATES_H
#define SYMBOL_CANDIDATES_H

#include <stdbool.h>

#define DEBUG_ROOT "/usr/lib/debug"

/* True: taken, no more. */
typedef bool candidate_fn(void *context, const char *path);

/* A path too long is passed over. */
bool candidate(candidate_fn *take, void *context, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* root/.build-id/ab/cdef...suffix; nothing for a text that is no build id. */
bool candidate_by_id(candidate_fn *take, void *context, const char *root, const char *build_id, const char *suffix);

/* Where pprof looks for a program or its debug file: in the folders of PPROF_BINARY_PATH, or else $HOME/pprof/binaries. */
bool candidates_of_pprof(candidate_fn *take, void *context, const char *path, const char *build_id);

#endif
