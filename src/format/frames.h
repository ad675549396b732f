/*
 * The frames of a text profile: addresses become dense numbers while the stacks are read, and
 * locations, with the same numbers, once the mappings are known (they come last in a dump).
 * Private to src/format.
 */
#ifndef FORMAT_FRAMES_H
#define FORMAT_FRAMES_H

#include "format/format.h"
#include "format/lines.h"

#define FRAMES_CACHE_BITS 14

/*
 * How an address was written: its first and last eight characters, in the usual form and with the
 * one behind it.
 */
struct frame_text {
	uint64_t first, last;
};

/* Two addresses seen lately whose texts' hashes begin alike: numbers + 1, and more of the hashes. */
struct frame_slot {
	uint32_t number[2], tag[2];
};

struct frames {
	uint64_t *addresses;        size_t n, capacity;           /* distinct ones */
	struct frame_text *texts;   size_t texts_capacity;        /* of each */
	uint32_t *stack;            size_t stack_n, stack_capacity;   /* numbers of the stack last read, leaf first */
	struct index index;
	struct frame_slot *cache;   /* by their text's hash */
	size_t limit_bytes;
	uint32_t depth;             /* most frames of a stack */
};

int frames_init(struct frames *f, const struct read_limits *limits, struct error *err);
void frames_finish(struct frames *f);

/*
 * Reads " 0x1234 0xabcd ..." up to end, where the line has its newline, into f->stack. What is kept
 * is the return address - 1, inside the call; 0 stays 0. Errors name the line.
 */
int frames_read(struct frames *f, const struct lines *l, const char *at, const char *end,
                struct error *err);

/* Makes the locations 0 .. n - 1 of p, which has none yet, after maps_finish. */
int frames_locate(const struct frames *f, const struct maps *m, struct profile *p, struct error *err);

#endif
