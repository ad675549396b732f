/*
 * One thread of the parent watches all workers: it opens what they ask for, takes their answers, and looks at the clock.
 */
#include "symbol/worker.h"

#include <poll.h>
#include <sys/mman.h>

#include "base/processors.h"
#include "symbol/worker_process.h"

#define AT_ONCE_MAX 8

/* --- inside --- */

static void work(void *context, const struct file_source *files)
{
	const struct worker_task *t = context;
	struct buf block;
	struct error err = { 0 };
	uint32_t flags = 0;
	buf_init(&block, WORKER_OUTPUT_MAX);
	int rc = t->job(t->context, files, &block, &flags, &err);
	worker_answer(rc, flags, &block, &err);
}

/* --- outside --- */

struct running {
	struct worker_task *task;
	struct worker_process process;
};

struct watch {
	struct worker_task *tasks;
	size_t n, next;
	struct running running[AT_ONCE_MAX];
	size_t n_running, at_once;
	struct worker_limits limits;
	uint64_t deadline_ms;
	struct message message;
};

/* Both have no more to say to each other. */
static void forget(struct watch *w, size_t i)
{
	struct running *r = &w->running[i];
	worker_process_kill(&r->process);
	worker_process_close(&r->process);
	r->task->pid = r->process.pid;
	w->running[i] = w->running[--w->n_running];
}

static void start(struct watch *w, struct worker_task *t)
{
	struct running *r = &w->running[w->n_running];
	r->task = t;
	worker_process_start(&r->process, &w->limits, work, t, t);
	if (r->process.pid > 0)
		w->n_running++;
	else
		worker_process_close(&r->process);
}

static void time_out(struct watch *w)
{
	unsigned seconds = (w->limits.timeout_ms + 999) / 1000;
	for (; w->n_running > 0; forget(w, 0))
		worker_task_end(w->running[0].task, WORKER_TIMEOUT, "its reader was stopped after %u s", seconds);
	for (; w->next < w->n; w->next++)
		worker_task_end(&w->tasks[w->next], WORKER_TIMEOUT, "there was no time left to read it after %u s", seconds);
}

static void wait_for_messages(struct watch *w, uint64_t patience_ms)
{
	struct pollfd events[AT_ONCE_MAX];
	size_t n = w->n_running;
	for (size_t i = 0; i < n; i++)
		events[i] = (struct pollfd){ w->running[i].process.socket, POLLIN, 0 };
	if (poll(events, n, patience_ms < 3600000 ? (int)patience_ms : 3600000) <= 0)
		return;
	/* From the end: who goes is replaced by the last, which had its turn. */
	for (size_t i = n; i-- > 0;) {
		struct running *r = &w->running[i];
		if (events[i].revents && !worker_process_attend(&r->process, &w->limits, r->task, &w->deadline_ms, &w->message))
			forget(w, i);
	}
}

void workers_run(struct worker_task *tasks, size_t n, const struct worker_options *o)
{
	struct watch w = { .tasks = tasks, .n = n, .limits = worker_limits(o) };
	w.at_once = o && o->at_once ? o->at_once : processors_available();
	w.at_once = w.at_once < AT_ONCE_MAX ? w.at_once : AT_ONCE_MAX;
	w.deadline_ms = worker_now_ms() + w.limits.timeout_ms;
	while (w.next < n || w.n_running > 0) {
		uint64_t now = worker_now_ms();
		if (now >= w.deadline_ms)
			time_out(&w);
		else if (w.next < n && w.n_running < w.at_once)
			start(&w, &tasks[w.next++]);
		else
			wait_for_messages(&w, w.deadline_ms - now);
	}
}

void worker_task_finish(struct worker_task *t)
{
	int status;
	if (!t)
		return;
	if (t->block)
		(void)munmap(t->block, t->block_bytes);
	worker_process_reap(&t->pid, &status);
	t->block = NULL;
	t->block_bytes = 0;
}
