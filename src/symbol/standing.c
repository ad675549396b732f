#include "symbol/standing.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "symbol/worker_process.h"

struct standing {
	standing_job *job;
	void *context;
	const struct file_source *files;
	struct worker_limits limits;
	struct worker_process process;
	size_t n_answered;                   /* by that process */
	struct message message;
};

/* --- inside --- */

static void stand(void *context, const struct file_source *files)
{
	static _Alignas(8) char question[STANDING_QUESTION_MAX];
	const struct standing *s = context;
	size_t n;
	while ((n = worker_question(question, sizeof question)) != SIZE_MAX) {
		struct buf block;
		struct error err = { 0 };
		uint32_t flags = 0;
		buf_init(&block, WORKER_OUTPUT_MAX);
		int rc = s->job(s->context, files, question, n, &block, &flags, &err);
		worker_answer(rc, flags, &block, &err);
		buf_finish(&block);
	}
}

/* --- outside --- */

static void stop(struct standing *s)
{
	int status;
	worker_process_kill(&s->process);
	worker_process_close(&s->process);
	worker_process_reap(&s->process.pid, &status);
	s->n_answered = 0;
}

static void wait_for_answer(struct standing *s, struct worker_task *t)
{
	uint64_t deadline = worker_now_ms() + s->limits.timeout_ms;
	for (bool working = true; working;) {
		uint64_t now = worker_now_ms();
		struct pollfd event = { s->process.socket, POLLIN, 0 };
		if (now >= deadline) {
			worker_task_end(t, WORKER_TIMEOUT, "its reader was stopped after %u s", (s->limits.timeout_ms + 999) / 1000);
			return;
		}
		uint64_t patience = deadline - now;
		if (poll(&event, 1, patience < 3600000 ? (int)patience : 3600000) > 0)
			working = worker_process_attend(&s->process, &s->limits, t, &deadline, &s->message);
	}
}

static void ask_once(struct standing *s, const void *question, size_t n, struct worker_task *t)
{
	*t = (struct worker_task){ .files = s->files };
	if (s->process.pid == 0) {
		worker_process_start(&s->process, &s->limits, stand, s, t);
		if (s->process.pid == 0) {
			worker_process_close(&s->process);
			return;
		}
	}
	s->message.kind = MESSAGE_QUESTION;
	memcpy(s->message.text, question, n);
	/* One that is gone doesn't take it, and its end is what comes next. */
	(void)message_send(s->process.socket, &s->message, n, -1, MSG_DONTWAIT);
	wait_for_answer(s, t);
	s->n_answered++;
	/* An error of the job's own leaves it as it was. */
	if (s->process.pid == 0 || (t->end != WORKER_ANSWERED && t->end != WORKER_FAILED))
		stop(s);
}

void standing_ask(struct standing *s, const void *question, size_t n, struct worker_task *ret)
{
	bool fresh = s->n_answered == 0;
	if (n > STANDING_QUESTION_MAX) {
		*ret = (struct worker_task){ .files = s->files };
		worker_task_end(ret, WORKER_FAILED, "too much was asked at once");
		return;
	}
	uint64_t before = worker_now_ms();
	ask_once(s, question, n, ret);
	/* It may be that there was too much behind it. Not so if the time of this question was what it took. */
	bool in_time = worker_now_ms() - before < s->limits.timeout_ms;
	if (ret->end != WORKER_ANSWERED && ret->end != WORKER_FAILED && !fresh && in_time)
		ask_once(s, question, n, ret);
}

int standing_new(struct standing **ret, standing_job *job, void *context, const struct file_source *files, const struct worker_options *o,
                 struct error *err)
{
	struct standing *s = calloc(1, sizeof *s);
	if (!s)
		return error_nomem(err, "a worker");
	s->job = job;
	s->context = context;
	s->files = files;
	s->limits = worker_limits(o);
	s->process.socket = s->process.place = -1;
	*ret = s;
	return 0;
}

void standing_free(struct standing *s)
{
	if (!s)
		return;
	stop(s);
	free(s);
}
