/* Is a stopped thread somewhere where it may be made to call the allocator? */
#ifndef ATTACH_STACK_H
#define ATTACH_STACK_H

#include "attach/code.h"
#include "attach/tracee.h"

enum stack_verdict {
	STACK_SAFE,
	STACK_IN_ALLOCATOR, /* a frame of the allocator, the loader or fork is on it, or may be */
	STACK_FOREIGN, /* not the stack that the thread was started with: a signal's, a coroutine's; or too little room */
};

/*
 * map: the process's regions as they are now. at_entry: it stands at the first instruction of an allocator's function.
 */
enum stack_verdict stack_check(const struct tracee *t, const struct process *map, const struct code *code,
                               bool at_entry);

#endif
