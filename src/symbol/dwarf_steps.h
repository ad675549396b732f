/* Stepping over entries, inlined into the walks. */
#ifndef SYMBOL_DWARF_STEPS_H
#define SYMBOL_DWARF_STEPS_H

#include "symbol/dwarf.h"

/* What to do with an entry's attributes, one after the other. */
enum { OP_END, OP_FIXED, OP_STRING, OP_BLOCK1, OP_BLOCK2, OP_BLOCK4, OP_BLOCK, OP_NUMBER, OP_INDIRECT, OP_UNKNOWN, OP_WANT, OP_WANT_VARIABLE };

/* Values of the wanted attributes; present has a bit for each. */
struct entry_values {
	struct attribute of[WANTED];
	uint32_t present;
};

/* By operations. values may be NULL. NULL at damage. */
const uint8_t *entry_read(const struct abbrevs *a, uint64_t code, const struct unit *u, const uint8_t *p, const uint8_t *end,
                          struct entry_values *values);

/* p is behind the entry's code, before end; behind its attributes afterwards, maybe past end by less than SPAN_SLACK. NULL at damage. */
static inline const uint8_t *entry_skip(const struct abbrevs *a, uint64_t code, const struct unit *u, const uint8_t *p,
                                        const uint8_t *end)
{
	const struct step *s = &a->steps[code];
	p += s->size;
	if (__builtin_expect(s->kind == STEP_FIXED, 1))
		return p;
	if (s->kind == STEP_GENERAL)
		return entry_read(a, code, u, p - s->size, end, NULL);
	if (s->kind == STEP_UNKNOWN || p >= end)
		return NULL;
	if (s->kind == STEP_NUMBER) {
		skip_leb(&p);
	} else if (s->kind == STEP_BLOCK) {
		uint64_t n = read_uleb(&p);
		if (p > end || n > (uint64_t)(end - p))
			return NULL;
		p += n;
	} else {
		p = memchr(p, 0, (size_t)(end - p));
		if (!p)
			return NULL;
		p++;
	}
	return p + s->more;
}

#endif
