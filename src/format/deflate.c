/*
 * Compressing. The input comes in pieces whose sizes depend on nothing but the data, so that the output is always
 * the same; each becomes a run of deflate blocks that ends on a byte, and the runs one after the other are one gzip
 * member. Pieces are compressed by a few threads while the next ones are being made, or made by them in the first
 * place; the caller lends a hand when they pile up, and at the end.
 */
#include "format/format.h"
#include "base/processors.h"

#include <isa-l/crc.h>
#include <isa-l/igzip_lib.h>
#include <pthread.h>
#include <stdlib.h>
#include <zlib.h>

#define THREADS_MAX 3           /* besides the caller's */
#define WAITING_MAX 4           /* pieces */
#define LEVEL 2                 /* of 0 to 3: within 5 % of the smallest in half the time */

struct piece {
	struct piece *next;
	gz_make *make;          /* NULL: the bytes are there */
	const void *context;
	size_t first, n;
	struct buf in;
	size_t in_n;
	uint32_t crc;
	uint8_t *out;           /* compressed */
	size_t out_n;
	bool last, failed;
};

struct gz_writer {
	struct buf *out;
	struct piece *first, *end;      /* in order */
	pthread_t threads[THREADS_MAX];
	size_t n_threads;
	bool started, failed;
	struct workspace *workspace;    /* the caller's */
	/* What the threads share. */
	pthread_mutex_t lock;
	pthread_cond_t wake;
	struct piece *waiting;  /* the first that nobody has taken; those behind it are free, too */
	size_t n_waiting;
	struct buf spare;       /* of a piece that is done, for a next one */
	bool ended;             /* no more pieces will come */
};

/* What compressing needs besides; too much for a thread's stack. */
struct workspace {
	struct isal_zstream stream;
	uint8_t level[ISAL_DEF_LVL2_DEFAULT];
};

static void compress_piece(struct piece *piece, struct workspace *workspace)
{
	size_t room = piece->in.len + piece->in.len / 1024 + 1024;      /* stored blocks at worst */
	struct isal_zstream *s = &workspace->stream;
	piece->failed = true;
	piece->in_n = piece->in.len;
	piece->crc = crc32_gzip_refl(0, (const uint8_t *)piece->in.data, piece->in.len);
	piece->out = malloc(room);
	if (!piece->out || room > UINT32_MAX || piece->in.failed)
		return;
	isal_deflate_init(s);
	s->level = LEVEL;
	s->level_buf = workspace->level;
	s->level_buf_size = ISAL_DEF_LVL2_DEFAULT;
	s->end_of_stream = piece->last;
	s->flush = FULL_FLUSH;
	s->next_in = piece->in.len ? (uint8_t *)piece->in.data : NULL;
	s->avail_in = (uint32_t)piece->in.len;
	s->next_out = piece->out;
	s->avail_out = (uint32_t)room;
	piece->failed = isal_deflate(s) != COMP_OK || s->avail_in > 0 || s->avail_out == 0;
	piece->out_n = s->total_out;
}

/* An empty buffer, with memory that was used before if there is any. */
static void take_spare(struct gz_writer *g, struct buf *ret)
{
	*ret = g->spare;
	ret->max = BUF_MAX_DEFAULT;
	buf_reset(ret);
	g->spare = (struct buf){ 0 };
}

/* Compresses waiting pieces until no more than that many are left. Called, and returns, with the lock held. */
static void compress_waiting(struct gz_writer *g, size_t left, struct workspace *workspace)
{
	while (g->n_waiting > left) {
		struct piece *piece = g->waiting;
		g->waiting = piece->next;
		g->n_waiting--;
		if (piece->make)
			take_spare(g, &piece->in);
		pthread_mutex_unlock(&g->lock);
		if (piece->make)
			piece->make(piece->context, piece->first, piece->n, &piece->in);
		compress_piece(piece, workspace);
		pthread_mutex_lock(&g->lock);
		buf_finish(&g->spare);
		g->spare = piece->in;
		piece->in = (struct buf){ 0 };
	}
}

static void *work(void *context)
{
	struct gz_writer *g = context;
	struct workspace *workspace = malloc(sizeof *workspace);
	pthread_mutex_lock(&g->lock);
	while (workspace && !(g->ended && g->n_waiting == 0)) {
		compress_waiting(g, 0, workspace);
		if (!g->ended)
			pthread_cond_wait(&g->wake, &g->lock);
	}
	pthread_mutex_unlock(&g->lock);
	free(workspace);
	return NULL;
}

/* As many threads as there are other processors. Without any, the caller does it all. */
static void start(struct gz_writer *g)
{
	unsigned processors = processors_available();
	g->started = true;
	while (g->n_threads < THREADS_MAX && g->n_threads + 1 < processors &&
	       pthread_create(&g->threads[g->n_threads], NULL, work, g) == 0)
		g->n_threads++;
}

struct gz_writer *gz_writer_new(struct buf *out)
{
	struct gz_writer *g = calloc(1, sizeof *g);
	struct workspace *workspace = malloc(sizeof *workspace);
	if (!g || !workspace) {
		free(g);
		free(workspace);
		return NULL;
	}
	g->out = out;
	g->workspace = workspace;
	pthread_mutex_init(&g->lock, NULL);
	pthread_cond_init(&g->wake, NULL);
	return g;
}

/* Called with the lock held, and only by the thread that owns g. */
static void append(struct gz_writer *g, struct piece *piece)
{
	if (g->end)
		g->end->next = piece;
	else
		g->first = piece;
	g->end = piece;
	if (!g->waiting)
		g->waiting = piece;
	g->n_waiting++;
	pthread_cond_broadcast(&g->wake);
}

static void add_piece(struct gz_writer *g, struct buf *bytes, bool last)
{
	struct piece *piece = calloc(1, sizeof *piece);
	size_t max = bytes->max;
	g->failed |= !piece;
	if (!piece) {
		buf_reset(bytes);
		return;
	}
	piece->last = last;
	pthread_mutex_lock(&g->lock);
	piece->in = *bytes;
	take_spare(g, bytes);
	bytes->max = max;
	append(g, piece);
	compress_waiting(g, last ? 0 : WAITING_MAX, g->workspace);
	pthread_mutex_unlock(&g->lock);
}

void gz_writer_add(struct gz_writer *g, struct buf *bytes)
{
	if (!g->started)
		start(g);
	add_piece(g, bytes, false);
}

void gz_writer_add_later(struct gz_writer *g, gz_make *make, const void *context, size_t first, size_t n)
{
	struct piece *piece = calloc(1, sizeof *piece);
	g->failed |= !piece;
	if (!piece)
		return;
	*piece = (struct piece){ .make = make, .context = context, .first = first, .n = n };
	if (!g->started)
		start(g);
	pthread_mutex_lock(&g->lock);
	append(g, piece);
	pthread_mutex_unlock(&g->lock);
}

static void put_le32(struct buf *out, uint32_t value)
{
	uint8_t bytes[4] = { (uint8_t)value, (uint8_t)(value >> 8), (uint8_t)(value >> 16),
		             (uint8_t)(value >> 24) };
	buf_add(out, bytes, sizeof bytes);
}

/* Appends what the pieces became; frees them. */
static void join_pieces(struct gz_writer *g)
{
	static const uint8_t header[10] = { 0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255 };
	uLong crc = 0;
	uint32_t size = 0;      /* modulo 2^32, as gzip has it */
	size_t n = sizeof header + 8;
	for (const struct piece *piece = g->first; piece; piece = piece->next)
		n += piece->failed ? 0 : piece->out_n;
	if (!buf_reserve(g->out, n))
		g->failed = true;
	buf_add(g->out, header, sizeof header);
	for (struct piece *piece = g->first, *next; piece; piece = next) {
		next = piece->next;
		g->failed |= piece->failed;
		if (!g->failed)
			buf_add(g->out, piece->out, piece->out_n);
		crc = crc32_combine(crc, piece->crc, (z_off_t)piece->in_n);
		size += (uint32_t)piece->in_n;
		buf_finish(&piece->in);
		free(piece->out);
		free(piece);
	}
	put_le32(g->out, (uint32_t)crc);
	put_le32(g->out, size);
}

int gz_writer_finish(struct gz_writer *g, struct buf *bytes, struct error *err)
{
	size_t before = g->out->len, max = g->out->max;
	add_piece(g, bytes, true);
	pthread_mutex_lock(&g->lock);
	g->ended = true;
	pthread_cond_broadcast(&g->wake);
	pthread_mutex_unlock(&g->lock);
	while (g->n_threads > 0)
		pthread_join(g->threads[--g->n_threads], NULL);
	join_pieces(g);
	bool failed = g->failed || g->out->failed;
	if (failed)
		buf_cut(g->out, before);
	buf_finish(&g->spare);
	free(g->workspace);
	pthread_mutex_destroy(&g->lock);
	pthread_cond_destroy(&g->wake);
	free(g);
	return failed ? error_set(err, E_LIMIT, "no memory to compress, or the result is larger than %zu MiB", max >> 20)
	              : E_OK;
}

int gz_deflate(const void *bytes, size_t n, struct buf *out, struct error *err)
{
	struct gz_writer *g = gz_writer_new(out);
	struct buf piece;
	if (!g)
		return error_nomem(err, "compressed data");
	buf_init(&piece, BUF_MAX_DEFAULT);
	size_t at = 0;
	for (; n - at > GZ_PIECE; at += GZ_PIECE) {
		buf_add(&piece, (const char *)bytes + at, GZ_PIECE);
		gz_writer_add(g, &piece);
	}
	if (n > at)
		buf_add(&piece, (const char *)bytes + at, n - at);
	int rc = gz_writer_finish(g, &piece, err);
	buf_finish(&piece);
	return rc;
}
