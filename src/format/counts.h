/*
 * "OBJECTS: BYTES [OBJECTS: BYTES]": in use, then accumulated. Private to src/format.
 */
#ifndef FORMAT_COUNTS_H
#define FORMAT_COUNTS_H

#include "format/lines.h"

struct counts {
	uint64_t objects, bytes, accum_objects, accum_bytes;
};

static inline bool counts_equal(const struct counts *a, const struct counts *b)
{
	return memcmp(a, b, sizeof(*a)) == 0;
}

/*
 * Reads the counts at the beginning of [at, end) of the current line; *ret_rest is what stands
 * behind them.
 */
int counts_parse(const struct lines *l, const char *at, const char *end, struct counts *ret,
                 const char **ret_rest, struct error *err);
/* Checked: E_FORMAT names the line. */
int counts_add(const struct lines *l, struct counts *sum, const struct counts *c, struct error *err);

#endif
