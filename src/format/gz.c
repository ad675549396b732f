/*
 * gzip. Streams go through zlib. Whole buffers go through libdeflate, which is two to three times as
 * fast but tells nothing about what is wrong; when it refuses, the stream reader goes over the same
 * bytes, throwing its output away, and says where and why.
 *
 * Bombs: deflate packs up to 1032:1, profiles pack 5:1 to 30:1. Past gzip_ratio_from bytes of output
 * more than gzip_ratio:1 is refused. A file's own statement of its last member's length (ISIZE, modulo
 * 2^32) is only a guess: for the room to reserve at first, and, when it is more than allowed, for not
 * beginning with the room but with finding out what is wrong.
 */
#include "format/format.h"

#include <inttypes.h>
#include <libdeflate.h>
#include <limits.h>
#include <stdlib.h>
#define ZLIB_CONST
#include <zlib.h>

#define GZIP_SMALLEST 18        /* header and trailer around the shortest deflate stream, nearly */
#define GZIP_WINDOW (15 + 16)   /* zlib: the largest window, gzip framing */
#define ROOM_LEAST ((size_t)4 << 10)
#define INPUT_BLOCK ((size_t)64 << 10)

bool gz_is(const uint8_t *head, size_t n)
{
	return n >= 2 && head[0] == 0x1f && head[1] == 0x8b;
}

/* --- limits --------------------------------------------------------------- */

/* Most bytes that n compressed ones may become. */
static uint64_t output_limit(const struct read_limits *limits, uint64_t n)
{
	uint64_t by_ratio;
	if (__builtin_mul_overflow(n, limits->gzip_ratio, &by_ratio))
		by_ratio = UINT64_MAX;
	if (by_ratio < limits->gzip_ratio_from)
		by_ratio = limits->gzip_ratio_from;
	return by_ratio < limits->input_bytes ? by_ratio : limits->input_bytes;
}

static int fail_limit(const char *name, const struct read_limits *limits, uint64_t limit,
                      struct error *err)
{
	if (limit == limits->input_bytes)
		return error_set(err, E_LIMIT, "%s: unpacks to more than the limit of %" PRIu64 " bytes",
		                 name, limit);
	return error_set(err, E_LIMIT,
	                 "%s: unpacks to more than %" PRIu32 " times its size, %" PRIu64
	                 " bytes and more; a profile does not, so it is refused as a gzip bomb",
	                 name, limits->gzip_ratio, limit);
}

static int fail_damage(const char *name, uint64_t offset, const char *cause, struct error *err)
{
	return error_set(err, E_FORMAT, "%s: the gzip data is damaged at or before byte %" PRIu64 " (%s)",
	                 name, offset, cause ? cause : "its checks fail");
}

static int fail_cut(const char *name, uint64_t offset, struct error *err)
{
	return error_set(err, E_TRUNCATED,
	                 "%s: the gzip data ends in the middle, at byte %" PRIu64 "; the file was cut",
	                 name, offset);
}

/* --- streams -------------------------------------------------------------- */

struct gunzip {
	z_stream z;
	struct stream *in;
	struct read_limits limits;
	uint64_t taken, given;          /* compressed bytes read, decompressed bytes handed out */
	bool in_member, in_ended, any;  /* any: a member was read to its end */
	struct error failure;           /* what came before it is handed out first */
	uint8_t block[INPUT_BLOCK];
};

static int gunzip_refill(struct gunzip *g)
{
	size_t n;
	if (g->z.avail_in > 0 || g->in_ended)
		return E_OK;
	int rc = stream_read(g->in, g->block, sizeof g->block, &n, &g->failure);
	if (rc)
		return rc;
	g->z.next_in = g->block;
	g->z.avail_in = (uInt)n;
	g->taken += n;
	g->in_ended = n == 0;
	return E_OK;
}

/* At the beginning of a member, or at the end of all. */
static int gunzip_begin(struct gunzip *g)
{
	uint64_t at = g->taken - g->z.avail_in;
	if (g->any && g->z.next_in[0] != 0x1f)
		return error_set(&g->failure, E_FORMAT,
		                 "%s: bytes that are not gzip follow the compressed data, from byte %" PRIu64
		                 " on",
		                 g->in->name, at);
	if (inflateReset(&g->z) != Z_OK)
		return error_nomem(&g->failure, "zlib's state");
	g->in_member = true;
	return E_OK;
}

/* Some output, or a failure, or neither yet. */
static int gunzip_step(struct gunzip *g, void *to, size_t room, size_t *ret_n)
{
	g->z.next_out = to;
	g->z.avail_out = room < UINT_MAX ? (uInt)room : UINT_MAX;
	size_t offered = g->z.avail_out;
	int status = inflate(&g->z, Z_NO_FLUSH);
	uint64_t at = g->taken - g->z.avail_in;
	*ret_n = offered - g->z.avail_out;
	g->given += *ret_n;
	uint64_t limit = output_limit(&g->limits, at);
	if (g->given > limit)
		return fail_limit(g->in->name, &g->limits, limit, &g->failure);
	if (status == Z_STREAM_END) {
		g->in_member = false;
		g->any = true;
	} else if (status == Z_MEM_ERROR) {
		return error_nomem(&g->failure, "zlib's window");
	} else if (status != Z_OK && status != Z_BUF_ERROR) {
		return fail_damage(g->in->name, at, g->z.msg, &g->failure);
	} else if (*ret_n == 0 && g->in_ended) {
		return fail_cut(g->in->name, at, &g->failure);
	}
	return E_OK;
}

static int gunzip_fill(struct stream *s, void *to, size_t room, size_t *ret_n, struct error *err)
{
	struct gunzip *g = s->context;
	int rc = g->failure.code;
	*ret_n = 0;
	while (!rc && *ret_n == 0) {
		rc = gunzip_refill(g);
		if (!rc && !g->in_member) {
			if (g->in_ended)
				break;
			rc = gunzip_begin(g);
		}
		if (!rc)
			rc = gunzip_step(g, to, room, ret_n);
	}
	if (!rc && *ret_n == 0 && !g->any)
		rc = error_set(&g->failure, E_TRUNCATED, "%s: empty, not gzip data", g->in->name);
	if (*ret_n > 0 && rc != E_LIMIT)
		return E_OK;            /* a failure waits for the next call */
	*ret_n = 0;
	if (rc && err)
		*err = g->failure;
	return rc;
}

static void gunzip_close(struct stream *s)
{
	struct gunzip *g = s->context;
	inflateEnd(&g->z);
	free(g);
}

int gz_stream(struct stream *in, const struct read_limits *limits, struct stream *ret_out,
              struct error *err)
{
	struct gunzip *g = calloc(1, sizeof *g);
	if (!g || inflateInit2(&g->z, GZIP_WINDOW) != Z_OK) {
		free(g);
		return error_nomem(err, "zlib's state");
	}
	g->in = in;
	g->limits = *limits;
	*ret_out = (struct stream){
		.fill = gunzip_fill,
		.close = gunzip_close,
		.name = in->name,
		.context = g,
		.fd = -1,
	};
	return E_OK;
}

/* --- whole buffers -------------------------------------------------------- */

struct member {
	const uint8_t *bytes;           /* where it begins */
	size_t n;                       /* to the end of the input; after reading, its own bytes */
};

/* Why these bytes can't be unpacked. */
static int diagnose(const uint8_t *bytes, size_t n, const char *name, const struct read_limits *limits,
                    struct error *err)
{
	static const size_t step = 32 << 10;
	struct stream in, s;
	uint8_t *scratch = malloc(step);
	stream_open_memory(&in, name, bytes, n);
	int rc = scratch ? gz_stream(&in, limits, &s, err) : error_nomem(err, "unpacking");
	if (!rc) {
		size_t got = 1;
		while (!rc && got > 0)
			rc = stream_read(&s, scratch, step, &got, err);
		stream_close(&s);
		if (!rc)
			rc = fail_damage(name, n, NULL, err);
	}
	stream_close(&in);
	free(scratch);
	return rc;
}

static size_t stated_length(const uint8_t *bytes, size_t n)
{
	const uint8_t *isize = bytes + n - 4;
	return n < GZIP_SMALLEST ? 0
	                         : (size_t)isize[0] | (size_t)isize[1] << 8 | (size_t)isize[2] << 16 |
	                               (size_t)isize[3] << 24;
}

#define REFUSED 1       /* libdeflate's only word */

/* One member behind what out holds; room: the first guess. limit: of what it may become. */
static int inflate_member(struct libdeflate_decompressor *d, struct member *m, size_t room,
                          const char *name, const struct read_limits *limits, uint64_t limit,
                          uint64_t whole_limit, struct buf *out, struct error *err)
{
	for (;;) {
		if (room > limit)
			room = (size_t)limit;
		if (!buf_reserve(out, room))
			return error_set(err, E_LIMIT, "%s: no memory for %zu unpacked bytes", name, room);
		size_t used, got;
		enum libdeflate_result result = libdeflate_gzip_decompress_ex(
		    d, m->bytes, m->n, out->data + out->len, room, &used, &got);
		if (result == LIBDEFLATE_SUCCESS) {
			m->n = used;
			out->len += got;
			out->data[out->len] = '\0';
			return E_OK;
		}
		if (result != LIBDEFLATE_INSUFFICIENT_SPACE)
			return REFUSED;
		if (room >= limit)
			return fail_limit(name, limits, whole_limit, err);
		room = room > SIZE_MAX / 2 ? SIZE_MAX : room * 2;
	}
}

static int inflate_members(struct libdeflate_decompressor *d, const uint8_t *bytes, size_t n,
                           const char *name, const struct read_limits *limits, struct buf *out,
                           struct error *err)
{
	uint64_t whole = output_limit(limits, n), before = out->len;
	size_t guess = stated_length(bytes, n);
	if (guess > whole)
		return diagnose(bytes, n, name, limits, err);
	if (guess < ROOM_LEAST)
		guess = ROOM_LEAST;
	for (size_t at = 0; at < n;) {
		struct member m = { bytes + at, n - at };
		int rc = gz_is(m.bytes, m.n) ? inflate_member(d, &m, guess, name, limits,
		                                              whole - (out->len - before), whole, out, err)
		                             : REFUSED;
		if (rc)
			return rc == REFUSED ? diagnose(bytes, n, name, limits, err) : rc;
		at += m.n;
	}
	return E_OK;
}

int gz_inflate(const void *bytes, size_t n, const char *name, const struct read_limits *limits,
               struct buf *out, struct error *err)
{
	if (!gz_is(bytes, n))
		return error_set(err, E_FORMAT, "%s: not gzip data", name);
	struct libdeflate_decompressor *d = libdeflate_alloc_decompressor();
	if (!d)
		return error_nomem(err, "the decompressor");
	int rc = inflate_members(d, bytes, n, name, limits, out, err);
	libdeflate_free_decompressor(d);
	return rc;
}
