/*
 * Reading ahead: a second thread reads a dump in blocks of whole lines and, of each stack in them,
 * the frames, which is half of the work; lines are then handed out as if there were no thread. Whatever is
 * unusual (a line without end, a bad frame, the end of the input) it leaves to the reader: it stops before it, and the
 * reader goes on by itself from there. Private to src/format.
 */
#ifndef FORMAT_AHEAD_H
#define FORMAT_AHEAD_H

#include "format/frames.h"

#define AHEAD_BLOCK ((size_t)256 << 10)

/*
 * Right after lines_init, for an input whose end can't keep anyone waiting: a file. Until the thread has stopped (at the
 * latest when there are no more lines), f is its own and may only be used by way of ahead_stack; it may then have the
 * addresses of lines that are no stacks after all, behind those of the stacks. block_bytes: at most half of l's line_max.
 * When no thread can be had, nothing changes.
 * lines_finish stops the thread.
 */
void ahead_start(struct lines *l, struct frames *f, size_t block_bytes);

/* A stack that was read ahead; valid as long as its line is. */
struct ahead_stack {
	const uint32_t *frames;
	size_t n;
	uint64_t hash, next_hash;   /* profile_stack_hash of this one, and of the one after it (0: not known) */
	size_t addresses;           /* how many of f's addresses there are up to and with this stack */
};

/* The stack behind the "@" of a line of l; false when it was not read ahead. */
bool ahead_stack(const struct lines *l, const char *behind_at, struct ahead_stack *ret);

#endif
