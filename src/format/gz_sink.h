/*
 * gzip as a stream, by zlib alone and without threads, for what runs inside other programs: zlib's memory comes from this
 * file's malloc, too. Private to src/format.
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
