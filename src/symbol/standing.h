/*
 * A worker that stays: it answers one question after the other, and keeps what it has read meanwhile. As any other it has no rights, and
 * its memory limit is for its whole life; each question has its time.
 *
 * One that runs out of memory, dies, or has used the processor time that one question may take, is replaced by a new one, which is asked
 * the same once more; if that one fails, too, so does the question.
 */
#ifndef SYMBOL_STANDING_H
#define SYMBOL_STANDING_H

#include "symbol/worker.h"

#define STANDING_QUESTION_MAX ((size_t)8 << 10)         /* bytes */

/*
 * Runs in the worker, for each question, with files and results as of worker_job. context is as it was when the worker began, and what the job
 * left in it since. question is aligned to 8.
 */
typedef int standing_job(void *context, const struct file_source *files, const void *question, size_t n, struct buf *block,
                         uint32_t *ret_flags, struct error *err);

struct standing;
/* files as of worker_task; options (timeout_ms: of each question) may be NULL. The worker begins with the first question. E_NOMEM. */
int standing_new(struct standing **ret, standing_job *job, void *context, const struct file_source *files, const struct worker_options *o,
                 struct error *err);
/*
 * ret ends as a task of workers_run() does, and is to be finished; its job and context mean nothing. From one thread, which must live as
 * long as the conversation.
 */
void standing_ask(struct standing *s, const void *question, size_t n, struct worker_task *ret);
void standing_free(struct standing *s);

#endif
