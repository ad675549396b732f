/* One worker and its parent: how it begins, what they say to each other, and how it ends. For worker.c and standing.c. */
#ifndef SYMBOL_WORKER_PROCESS_H
#define SYMBOL_WORKER_PROCESS_H

#include "symbol/message.h"
#include "symbol/sandbox.h"
#include "symbol/worker.h"

/* --- inside --- */

/* What a worker does, from when it has no rights any more until its end. */
typedef void worker_main(void *context, const struct file_source *files);

/* What a task came to: rc 0 and a block, or an error. */
void worker_answer(int rc, uint32_t flags, const struct buf *block, const struct error *err);
/* Waits for a question, into room: its length. SIZE_MAX: there will be none. */
size_t worker_question(void *room, size_t bytes);

/* --- outside --- */

struct worker_process {
	pid_t pid;                   /* 0: there is none, or it was waited for (also after an answer: it is to be closed then) */
	int socket;
	int place;                   /* for an answer that is no text; -1: it hasn't asked for one */
	size_t requests;             /* so far */
};

/* What o comes to; of all tasks, or questions. */
struct worker_limits {
	uint32_t timeout_ms;
	struct sandbox_bounds bounds;
};
struct worker_limits worker_limits(const struct worker_options *o);
uint64_t worker_now_ms(void);

/* When it can't be, t has ended with the reason. p is to be closed in any case. */
void worker_process_start(struct worker_process *p, const struct worker_limits *l, worker_main *start, void *context, struct worker_task *t);
/*
 * Takes what it said, if it did: opens a file for it, or ends t, whose task it is at. *deadline_ms moves by what opening took.
 * False when t has ended. scratch is for the message.
 */
bool worker_process_attend(struct worker_process *p, const struct worker_limits *l, struct worker_task *t, uint64_t *deadline_ms,
                           struct message *scratch);
/* Kills it, if it is there; does not wait for that. */
void worker_process_kill(const struct worker_process *p);
/* There is nothing more to say. It is not waited for. */
void worker_process_close(struct worker_process *p);
/* Waits until it is gone. */
void worker_process_reap(pid_t *pid, int *ret_status);

/* t ends without an answer. */
void worker_task_end(struct worker_task *t, enum worker_end end, const char *format, ...) __attribute__((format(printf, 3, 4)));

#endif
