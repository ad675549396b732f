/*
 * Many moments of one series become one: sums, largest and last values per row, and what was allocated between them. Rolling up a bucket and
 * merging a range are both this, so that a range tells the same whether it is read from profiles or from buckets.
 *
 * Allocated amounts are compared with those of the profile before, the one before the range included, in the row's base: the row of the same
 * stack and labels without the block size, which comes and goes. An amount that fell was set to zero in between. What was
 * allocated before a series' first profile isn't known to be of any range, and is never counted.
 */
#ifndef STORE_SQLITE_FOLD_H
#define STORE_SQLITE_FOLD_H

#include "store/numbers.h"
#include "store/sqlite_translate.h"

struct fold_row {
	int64_t sum[2], max[2];         /* objects and bytes in use */
	int64_t increase[2];            /* allocated: at base rows */
	int64_t last[METRICS];          /* when last_in is the fold's epoch */
	int64_t before[2];              /* allocated, of the last profile seen: base rows, when before_in is the last epoch */
	uint32_t count;                 /* profiles it was in */
	uint32_t last_in, before_in;
	uint32_t base;                  /* place of its base; INDEX_NONE: not asked for yet */
	uint32_t matrix;                /* of the chunk at hand: row of the matrix, when matrix_in is the epoch */
	uint32_t matrix_in;
};

struct fold {
	struct connection *c;
	struct spending *spending;
	struct numbers rows;
	uint32_t next;                  /* where the chunk's next row probably is in rows: its rows come as those of the chunk before did */
	struct fold_row *at;            /* by place in rows */
	size_t at_capacity;
	uint32_t epoch;                 /* chunks folded */
	bool has_before;                /* a profile was seen, so there is something to compare the next with */
	bool only_last;                 /* no sums are wanted */
	unsigned metrics;               /* of any slot */
	struct chunk_slot total;        /* n, times, and totals of all slots */
	struct slot_info info;          /* of the last slot; comments point into info_bytes */
	struct buf info_bytes;
	double rate;                    /* the coarsest; 0 when one is unknown */
	struct chunk_reader reader;
	int64_t *matrix;                /* base rows * slots * 2 */
	size_t matrix_capacity, matrix_rows;
};

void fold_init(struct fold *f, struct connection *c, struct spending *s);
/* Forgets everything but the memory. */
void fold_reset(struct fold *f);
void fold_finish(struct fold *f);
/* Slots first .. end of a chunk. With first > 0 the slot before is what the first is compared with. E_FORMAT without the place. */
int fold_chunk(struct fold *f, const struct chunk_head *h, const void *body, size_t n, unsigned first, unsigned end, struct error *err);

#define SCAN_BODY 3

/* What is found in a series and tier by time. */
struct scan {
	struct connection *c;
	uint32_t series;
	int tier;
	int64_t from_ms, to_ms;
	/* Slots first .. end are in the range. The body is column SCAN_BODY of q, and isn't read from the disk before. What isn't 0 ends the scan. */
	int (*visit)(void *context, const struct chunk_head *h, sqlite3_stmt *q, unsigned first, unsigned end, struct error *err);
	void *context;
	bool with_before;               /* also the chunk with the last slot before from_ms: then perhaps first == end */
	bool heads;                     /* there is no body */
};
/* Raw: sealed chunks, then open profiles. */
int scan_chunks(const struct scan *s, struct error *err);

#endif
