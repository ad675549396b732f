/*
 * /tmp/perf-PID.map: where JIT compilers write, for perf, what they made. A line is "START SIZE NAME", both numbers
 * hexadecimal; the name goes to the end of the line. Lines are in the order of time: memory is used again, and what came later
 * counts. The file is some program's, so lines that mean nothing are skipped.
 */
#ifndef SYMBOL_PERF_MAP_H
#define SYMBOL_PERF_MAP_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"

#define PERF_MAP_BYTES_MAX ((size_t)512 << 20)

struct perf_map_entry;

struct perf_map {
	char *text;
	struct perf_map_entry *entries;      /* sorted by start; of one start only the last */
	size_t n, capacity;
};

/* E_IO when it can't be read or is no regular file, E_LIMIT when it is longer than PERF_MAP_BYTES_MAX. */
int perf_map_read(struct perf_map *m, const char *path, struct error *err);
/* Takes text, which has n bytes and a NUL behind them, and is free()d in any case. E_NOMEM. */
int perf_map_parse(struct perf_map *m, char *text, size_t n, struct error *err);
void perf_map_finish(struct perf_map *m);

/* The name, borrowed from m; NULL when no entry covers the address. Of several, the one that begins last. */
const char *perf_map_find(const struct perf_map *m, uint64_t address);

#endif
