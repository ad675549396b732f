/*
 * Calls the jemalloc of a process that has no endpoint: a thread of it is stopped with ptrace where that is safe, made
 * to call mallctl, and put back as it was. See attach.c for what "safe" means and why anything less deadlocks.
 */
#ifndef ATTACH_ATTACH_H
#define ATTACH_ATTACH_H

#include "attach/process.h"

struct attach_options {
	unsigned wait_ms;                   /* for a safe point; 0: 2000 */
	unsigned limit_ms;                  /* for one call's answer; 0: 5 s, a dump 120 s */
	bool breakpoint_only, blocked_only, no_restorer;    /* for tests */
};

struct attach_times {
	double stopped_ms;                  /* how long the thread was stopped, the dump itself not counted */
	double dump_ms;                     /* inside prof.dump */
	bool at_breakpoint;                 /* not in a system call */
	pid_t thread;
	unsigned tried;                     /* threads and moments that were not safe */
};

struct attach;

/*
 * Everything that can be found out without stopping the process. E_UNSUPPORTED: no jemalloc, no symbols, another
 * architecture, a process that is traced already, ...; each with its own sentence that says what to do. E_IO: not
 * permitted (names yama's setting, the capability, the user).
 */
int attach_open(struct attach **ret, pid_t pid, const struct attach_options *o, struct error *err); /* o may be NULL */
void attach_close(struct attach *a);

enum attach_answer { ATTACH_OK, ATTACH_REFUSED };

struct attach_status {
	bool profiling_built_in, profiling_enabled, active, accumulates;
	uint64_t lg_sample;
	char version[64];
};

/*
 * Each stops a thread once. times may be NULL. E_UNSUPPORTED with the reason when no safe point came in time, or
 * jemalloc refused.
 */
int attach_get_status(struct attach *a, struct attach_status *ret, struct attach_times *times, struct error *err);
int attach_set_active(struct attach *a, bool active, struct attach_times *times, struct error *err);
int attach_reset(struct attach *a, int lg_sample, struct attach_times *times, struct error *err);   /* -1: as it is */
/* The dump's text, in a memfd that the caller closes. */
int attach_dump(struct attach *a, int *ret_fd, struct attach_times *times, struct error *err);

const struct process *attach_process(const struct attach *a);
/* The one that is spoken to: of several, once one was spoken to, that with profiling enabled. */
const struct process_jemalloc *attach_jemalloc(const struct attach *a);

#endif
