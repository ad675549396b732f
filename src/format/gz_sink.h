/*
 * gzip as a stream, for what runs inside other programs: without threads, in 250 KB of memory, fast enough to run beside
 * jemalloc's own writing; about a seventh larger than zlib's fastest. Private to src/format.
 */
#ifndef FORMAT_GZ_SINK_H
#define FORMAT_GZ_SINK_H

#include "format/format.h"

/* NULL when out of memory. */
struct gz_sink *gz_sink_new(pprof_sink *sink, void *context);
/* Takes the bytes; the first failure stays, and nothing is done then. */
int gz_sink_add(struct gz_sink *g, const void *bytes, size_t n, struct error *err);
/* The end of the file, without which it isn't one. */
int gz_sink_end(struct gz_sink *g, struct error *err);
void gz_sink_free(struct gz_sink *g);

#endif
