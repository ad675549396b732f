/* zlib's fastest level, as much as it likes at a time, handed on in blocks. */
#include "format/gz_sink.h"

#include <limits.h>
#include <stdlib.h>
#define ZLIB_CONST
#include <zlib.h>

#define LEVEL 1
#define WINDOW (15 + 16)        /* the largest, with gzip's framing */
#define MEMORY 9
#define BLOCK ((size_t)32 << 10)

struct gz_sink {
	z_stream z;
	pprof_sink *sink;
	void *context;
	struct error failure;
	uint8_t block[BLOCK];
};

static voidpf take(voidpf context, uInt n, uInt size)
{
	(void)context;
	return calloc(n, size);
}

static void give(voidpf context, voidpf block)
{
	(void)context;
	free(block);
}

struct gz_sink *gz_sink_new(pprof_sink *sink, void *context)
{
	struct gz_sink *g = malloc(sizeof(*g));
	if (!g)
		return NULL;
	g->z = (z_stream){ .zalloc = take, .zfree = give };
	g->sink = sink;
	g->context = context;
	g->failure = (struct error){ 0 };
	if (deflateInit2(&g->z, LEVEL, Z_DEFLATED, WINDOW, MEMORY, Z_DEFAULT_STRATEGY) != Z_OK) {
		free(g);
		return NULL;
	}
	return g;
}

void gz_sink_free(struct gz_sink *g)
{
	if (!g)
		return;
	deflateEnd(&g->z);
	free(g);
}

/* Until zlib has taken all of its input, or with Z_FINISH given all of its output. */
static int deflate_all(struct gz_sink *g, int flush, struct error *err)
{
	int status = Z_OK;
	while (!g->failure.code && status != Z_STREAM_END && (g->z.avail_in > 0 || flush == Z_FINISH)) {
		g->z.next_out = g->block;
		g->z.avail_out = BLOCK;
		status = deflate(&g->z, flush);
		size_t n = BLOCK - g->z.avail_out;
		if (status == Z_STREAM_ERROR)
			error_set(&g->failure, E_FORMAT, "zlib's state is damaged");
		else if (n > 0)
			g->failure.code = g->sink(g->context, g->block, n, &g->failure);
	}
	if (g->failure.code && err)
		*err = g->failure;
	return g->failure.code;
}

int gz_sink_add(struct gz_sink *g, const void *bytes, size_t n, struct error *err)
{
	int rc = g->failure.code;
	const uint8_t *at = bytes;
	if (rc && err)
		*err = g->failure;
	while (!rc && n > 0) {
		g->z.next_in = at;
		g->z.avail_in = n < UINT_MAX ? (uInt)n : UINT_MAX;
		at += g->z.avail_in;
		n -= g->z.avail_in;
		rc = deflate_all(g, Z_NO_FLUSH, err);
	}
	return rc;
}

int gz_sink_end(struct gz_sink *g, struct error *err)
{
	return deflate_all(g, Z_FINISH, err);
}
