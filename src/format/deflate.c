/*
 * Compressing. The input is cut into pieces of one size, whatever the machine, so that the output is always the
 * same; each becomes a run of deflate blocks that ends on a byte, and the runs one after the other are one gzip
 * member. A few threads take pieces as they come.
 */
#include "format/format.h"

#include <isa-l/crc.h>
#include <isa-l/igzip_lib.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#define PIECE ((size_t)2 << 20)
#define THREADS_MAX 4
#define LEVEL 2                 /* of 0 to 3: within 5 % of the smallest in half the time */

struct piece {
	uint8_t *bytes;
	size_t n;
	bool failed;
};

struct job {
	const uint8_t *bytes;
	size_t n;
	struct piece *pieces;
	size_t n_pieces;
	atomic_size_t next;         /* piece that nobody has taken; relaxed: the join orders the results */
};

static void compress_piece(struct job *j, size_t index, void *level_buffer)
{
	struct piece *piece = &j->pieces[index];
	size_t at = index * PIECE, n = j->n - at < PIECE ? j->n - at : PIECE;
	size_t room = n + n / 1024 + 1024;      /* stored blocks at worst */
	struct isal_zstream s;
	piece->failed = true;
	piece->bytes = malloc(room);
	if (!piece->bytes || !level_buffer)
		return;
	isal_deflate_init(&s);
	s.level = LEVEL;
	s.level_buf = level_buffer;
	s.level_buf_size = ISAL_DEF_LVL2_DEFAULT;
	s.end_of_stream = index + 1 == j->n_pieces;
	s.flush = FULL_FLUSH;
	s.next_in = n ? (uint8_t *)j->bytes + at : NULL;   /* only read */
	s.avail_in = (uint32_t)n;
	s.next_out = piece->bytes;
	s.avail_out = (uint32_t)room;
	piece->failed = isal_deflate(&s) != COMP_OK || s.avail_in > 0 || s.avail_out == 0;
	piece->n = s.total_out;
}

static void *work(void *context)
{
	struct job *j = context;
	void *level_buffer = malloc(ISAL_DEF_LVL2_DEFAULT);
	for (;;) {
		size_t index = atomic_fetch_add_explicit(&j->next, 1, memory_order_relaxed);
		if (index >= j->n_pieces)
			break;
		compress_piece(j, index, level_buffer);
	}
	free(level_buffer);
	return NULL;
}

/* All pieces, by this thread and as many others as there are processors and work for. */
static void compress_all(struct job *j)
{
	pthread_t threads[THREADS_MAX];
	size_t n = 0;
	long processors = sysconf(_SC_NPROCESSORS_ONLN);
	while (n + 1 < j->n_pieces && n + 1 < THREADS_MAX && (long)n + 1 < processors &&
	       pthread_create(&threads[n], NULL, work, j) == 0)
		n++;
	work(j);
	while (n > 0)
		pthread_join(threads[--n], NULL);
}

static void put_le32(struct buf *out, uint32_t value)
{
	uint8_t bytes[4] = { (uint8_t)value, (uint8_t)(value >> 8), (uint8_t)(value >> 16),
		             (uint8_t)(value >> 24) };
	buf_add(out, bytes, sizeof bytes);
}

int gz_deflate(const void *bytes, size_t n, struct buf *out, struct error *err)
{
	static const uint8_t header[10] = { 0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255 };
	struct job j = { .bytes = bytes, .n = n, .n_pieces = n ? (n + PIECE - 1) / PIECE : 1 };
	size_t before = out->len;
	bool failed = false;
	j.pieces = calloc(j.n_pieces, sizeof *j.pieces);
	if (!j.pieces)
		return error_nomem(err, "compressed data");
	compress_all(&j);
	buf_add(out, header, sizeof header);
	for (size_t i = 0; i < j.n_pieces; i++) {
		failed |= j.pieces[i].failed;
		if (!failed)
			buf_add(out, j.pieces[i].bytes, j.pieces[i].n);
		free(j.pieces[i].bytes);
	}
	free(j.pieces);
	put_le32(out, crc32_gzip_refl(0, bytes, n));
	put_le32(out, (uint32_t)n);
	if (!failed && !out->failed)
		return E_OK;
	out->len = before;
	return error_set(err, E_LIMIT, "no memory to compress %zu bytes, or the result is larger than %zu MiB", n,
	                 out->max >> 20);
}
