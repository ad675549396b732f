/*
 * A chunk: what one series had at up to CHUNK_SLOTS_MAX moments (or in as many buckets), per row. A row is a stack with its labels, known by
 * its number in the store. Turned so that each row's values over time lie together: they mostly stay, and a run of equal ones
 * is kept once.
 *
 *   head      version, number of slots, metrics; of each slot its time, samples, profiles and totals. With a CRC; not compressed:
 *             totals over time are read without opening anything.
 *   body      zstd, with its checksum, of
 *               what each slot says of where it is from (infos: blobs, equal ones once)
 *               row numbers, ascending, as differences
 *               runs: length << 1 | present, until all slots of a row are told
 *               one stream of values for each column, one per present run
 *
 * The same for one open profile (one slot), for sealed ones, and for tiers, which only have other columns.
 */
#ifndef STORE_CHUNK_H
#define STORE_CHUNK_H

#include "base/buf.h"
#include "base/error.h"
#include "profile/profile.h"
#include "store/varint.h"

#define CHUNK_SLOTS_MAX 1024
#define CHUNK_COLUMNS_MAX 12
#define CHUNK_BODY_MAX ((size_t)1 << 30)        /* uncompressed */

/*
 * The columns of a row's slot. Raw: one per metric, in the order of enum metric. Tier: first the count of profiles it was in, times two,
 * plus one when it was in the last one; then for each metric in use sum, max, last, and for each allocated one increase and last.
 */
struct chunk_layout {
	unsigned metrics;               /* bits */
	bool tier;
	unsigned n;                     /* columns */
	int8_t sum[METRICS], max[METRICS], last[METRICS];    /* the column, or -1. Raw: all the same one. Allocated: sum is the increase, max -1 */
};
struct chunk_layout chunk_layout(unsigned metrics, bool tier);

struct chunk_slot {
	int64_t time_ms;                /* of the profile; of a bucket its beginning */
	int64_t last_ms;                /* of the (last) profile */
	uint32_t n;                     /* profiles */
	uint64_t samples;               /* of the profile; of a bucket: rows */
	/* Totals of one profile. Bucket: sum over its profiles (allocated: the increase), the largest, that of the last. */
	double sum[METRICS], max[METRICS], last[METRICS];
};

struct chunk_head {
	struct chunk_layout layout;
	struct chunk_slot *slots;
	size_t n;
};
void chunk_head_write(const struct chunk_head *h, struct buf *out);
/* E_FORMAT without the place. Freed by chunk_head_finish. */
int chunk_head_read(const void *bytes, size_t n, struct chunk_head *ret, struct error *err);
void chunk_head_finish(struct chunk_head *h);

/* --- writing the body: infos of all slots, then rows by ascending number --- */

struct chunk_writer {
	struct chunk_layout layout;
	unsigned slots;
	uint32_t rows, previous;
	struct buf infos, ids, runs, values[CHUNK_COLUMNS_MAX];
	struct buf whole;               /* before compression */
	void *compressor;
};
void chunk_writer_init(struct chunk_writer *w);
/* Begins the next chunk; the memory of the last is used again. */
void chunk_writer_begin(struct chunk_writer *w, struct chunk_layout layout, unsigned slots);
void chunk_writer_finish(struct chunk_writer *w);
void chunk_add_info(struct chunk_writer *w, const void *bytes, size_t n);
/* One slot, one row: the whole of an open profile is this. */
void chunk_add_single(struct chunk_writer *w, uint32_t row, const int64_t *values);
/* The same for n rows by ascending number. Of each column c, values[at * stride + from[c]] is the value of a row. */
struct chunk_single {
	uint32_t row, at;
};
void chunk_add_singles(struct chunk_writer *w, const struct chunk_single *rows, size_t n, const int64_t *values, size_t stride,
                       const int *from);
/* present: a byte per slot; values: slots * columns. */
void chunk_add_row(struct chunk_writer *w, uint32_t row, const uint8_t *present, const int64_t *values);
/* Appends the body to out. E_NOMEM, E_LIMIT. */
int chunk_writer_end(struct chunk_writer *w, int level, struct buf *out, struct error *err);

/* --- reading it --- */

struct chunk_reader {
	struct chunk_layout layout;
	unsigned slots;
	uint32_t rows, next;            /* rows handed out */
	uint32_t row;                   /* the current one */
	bool failed;                    /* damaged; then there are no more rows */
	struct varint_reader infos, ids, runs, values[CHUNK_COLUMNS_MAX];
	uint8_t *bytes;                 /* decompressed */
	size_t capacity;
	void *decompressor;
	bool borrowed;                  /* the decompressor is somebody else's */
};

/* For a head that was read. E_FORMAT without the place. The reader's memory is used again by the next open. */
int chunk_open(struct chunk_reader *r, const struct chunk_head *h, const void *body, size_t n, struct error *err);
void chunk_reader_finish(struct chunk_reader *r);
/* The infos in the order they were added, before the rows. NULL: damaged. */
const uint8_t *chunk_next_info(struct chunk_reader *r, size_t *ret_n);

static inline bool chunk_next_row(struct chunk_reader *r)
{
	if (r->next == r->rows || r->failed)
		return false;
	uint64_t more = varint_next(&r->ids);
	uint64_t row = r->next++ ? r->row + more : more;
	if (r->ids.failed || row > UINT32_MAX || (r->next > 1 && !more)) {
		r->failed = true;
		return false;
	}
	r->row = (uint32_t)row;
	return true;
}

/*
 * The next run of the current row, which begins at slot at; false when damaged. The values of a present one come next in all columns: they are
 * read, or skipped some time before the next that are read, those of many runs and rows together.
 */
static inline bool chunk_next_length(struct chunk_reader *r, unsigned at, unsigned *ret_n, bool *ret_present)
{
	uint64_t run = varint_next(&r->runs);
	if (run < 2 || run >> 1 > r->slots - at || r->runs.failed) {
		r->failed = true;
		return false;
	}
	*ret_n = (unsigned)(run >> 1);
	*ret_present = run & 1;
	return true;
}

static inline void chunk_next_values(struct chunk_reader *r, int64_t *values)
{
	for (unsigned c = 0; c < r->layout.n; c++)
		values[c] = varint_next_signed(&r->values[c]);
}

static inline void chunk_skip_values(struct chunk_reader *r, size_t runs)
{
	for (unsigned c = 0; c < r->layout.n; c++)
		varint_skip(&r->values[c], runs);
}

/* Both: values, one per column, only of present ones. */
static inline bool chunk_next_run(struct chunk_reader *r, unsigned at, unsigned *ret_n, bool *ret_present, int64_t *values)
{
	if (!chunk_next_length(r, at, ret_n, ret_present))
		return false;
	if (*ret_present)
		chunk_next_values(r, values);
	return true;
}

/* All slots of the current row: present and slots * columns values (0 where it isn't). False when damaged. */
bool chunk_read_row(struct chunk_reader *r, uint8_t *present, int64_t *values);

#endif
