/*
 * Which frames are on a stack, by the call frame tables of the process's files: what a look at bare words cannot tell
 * apart.
 */
#ifndef ATTACH_UNWIND_H
#define ATTACH_UNWIND_H

#include "attach/code.h"
#include "attach/tracee.h"

struct unwinder;

/* Opens the files; takes milliseconds, so not while something stands. NULL: it can't be done. */
struct unwinder *unwinder_new(const struct process *p);
void unwinder_free(struct unwinder *u);

/*
 * True: each frame up to the outermost is known by its table, and none is in code that is unsafe. Reads memory that
 * may change meanwhile unless the thread stands, see unwinder_still_holds. at_entry: the first frame is an entry of
 * the allocator, which is all right.
 */
bool unwinder_is_clear(struct unwinder *u, const struct tracee *t, const struct code *code, bool at_entry);

/* Is what the last answer came from, registers and words of memory, the same now? Then so is the answer. */
bool unwinder_still_holds(const struct unwinder *u, const struct tracee *t);

#endif
