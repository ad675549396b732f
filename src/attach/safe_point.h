/* Finds a thread that may be made to call the allocator, and stops it there. */
#ifndef ATTACH_SAFE_POINT_H
#define ATTACH_SAFE_POINT_H

#include "attach/code.h"
#include "attach/tracee.h"
#include "attach/unwind.h"

struct safe_point_search {
	const struct process *process;
	const struct process_jemalloc *jemalloc;
	const struct code *code;
	struct unwinder **unwinder;     /* made when it is needed; the caller's to free */
	bool blocked_only, breakpoint_only;
	double wait_ms;
	unsigned ret_tried;             /* threads and moments that were not safe */
	bool ret_at_breakpoint;         /* not in a system call */
};

/*
 * *ret stands at a safe point; everything else runs. E_UNSUPPORTED: none came in time; E_IO: not permitted, or the
 * process has ended. Signals must be blocked by the caller: between here and tracee_let_go() this program must not
 * end.
 */
int safe_point_find(struct safe_point_search *s, struct tracee *ret, struct error *err);

#endif
