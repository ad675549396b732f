/* Blocks of gauges: one raw moment, or many, or many buckets of a tier. */
#ifndef STORE_SQLITE_GAUGES_H
#define STORE_SQLITE_GAUGES_H

#include "store/numbers.h"
#include "store/sqlite_plan.h"

#define GAUGE_COLUMNS 3         /* raw: the value. Tiers: mean, max, last */

struct gauge_block {
	size_t slots, n_names;
	unsigned columns;
	int64_t *times;
	uint32_t *counts;               /* moments in each bucket; 1 */
	uint32_t *names;                /* strings of the store */
	double *values;                 /* by name, column, slot; NAN: not there */
};

bool gauge_block_init(struct gauge_block *b, size_t slots, size_t names, unsigned columns);
void gauge_block_finish(struct gauge_block *b);
double *gauge_value(const struct gauge_block *b, size_t name, unsigned column, size_t slot);
void gauge_block_write(const struct gauge_block *b, struct buf *out);
int gauge_block_read(const void *bytes, size_t n, struct gauge_block *ret, struct error *err);
int gauge_block_insert(struct connection *c, uint32_t series, int tier, const struct gauge_block *b, struct error *err);

#endif
