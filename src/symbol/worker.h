/*
 * Jobs that read what strangers wrote, each in a process of its own: forked, without rights (sandbox.h), with no descriptor but a
 * socket, over which it asks its parent for further files and gets them opened, and hands over its answer. Whatever
 * happens in there (a crash, a loop, memory without end, lies), the parent has a block of bytes to validate, or an error to say.
 *
 * No exec: the job begins with all that the parent has read already. So it is forked from programs with several threads,
 * too, and then only what survives that may be used in a job: malloc does (glibc's and musl's, jemalloc and tcmalloc take their
 * locks around a fork), threads of its own do, memory and numbers do. Locks that another thread of the parent could hold at
 * that moment (of stdio, of the loader, the program's own) must not be touched: nothing may be printed, loaded, or logged.
 */
#ifndef SYMBOL_WORKER_H
#define SYMBOL_WORKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/error.h"
#include "symbol/files.h"

#define WORKER_TIMEOUT_MS 60000
#define WORKER_OUTPUT_MAX ((uint64_t)2 << 30)

/*
 * Runs in the worker. files is for it alone (its parent opens; from any thread), what it puts into block and *ret_flags is handed over when it
 * returns 0; otherwise err is.
 */
typedef int worker_job(void *context, const struct file_source *files, struct buf *block, uint32_t *ret_flags, struct error *err);

/*
 * For a job that will take many megabytes: most of them come in big pages from here on, where the system has those (glibc only; in
 * other places nothing happens). Touching memory for the first time is a sixth of reading a big file otherwise.
 */
void worker_take_big_pages(void);

enum worker_end {
	WORKER_ANSWERED,             /* the job returned 0 */
	WORKER_FAILED,               /* it returned an error of its own, or could not be started */
	WORKER_NO_MEMORY,            /* its memory limit was too little */
	WORKER_TIMEOUT,
	WORKER_DIED,                 /* it crashed, was killed, or did what the sandbox punishes */
};

struct worker_task {
	worker_job *job;
	void *context;               /* as it is when the task starts */
	const struct file_source *files;     /* asked in the parent, on the calling thread; NULL: there are none */

	enum worker_end end;
	void *block;                 /* nobody can write to it any more, and nobody has checked it; NULL when empty. Page-aligned */
	size_t block_bytes;
	uint32_t flags;
	struct error error;          /* why not, as a clause ("its reader was stopped after 60 s"); unless answered */
	pid_t pid;                   /* the worker's own: 0 when it is gone */
};

struct worker_options {
	uint32_t timeout_ms;         /* of wall time for all tasks, besides what opening files takes; 0: WORKER_TIMEOUT_MS */
	uint64_t memory_bytes;       /* of each; 0: SANDBOX_MEMORY */
	size_t at_once;              /* 0: as many as there are processors, at most 8 */
};

/* Runs them, the first ones first. Every task ends, and says how; its process may take until worker_task_finish() to be gone. */
void workers_run(struct worker_task *tasks, size_t n, const struct worker_options *o);
void worker_task_finish(struct worker_task *t);

#endif
