/*
 * A binary that is looked up again and again, a few addresses each time: its cache stays open, and the worker that reads it stays
 * (standing.h) with all that it has read. Many addresses at once have workers of their own, as lookups_run() does it.
 *
 * Where the worker fails over debug information, a question is answered by a second one that reads symbol tables only. After a few such
 * questions, or one that took all its time, debug information is given up for the rest of the conversation.
 */
#ifndef SYMBOL_TALK_H
#define SYMBOL_TALK_H

#include "symbol/lookup.h"

struct talk;

/* binary and what o points to stay the caller's, until talk_end(). The first question starts a worker, or none. E_NOMEM. */
int talk_begin(struct talk **ret, const struct elf_file *binary, const struct symbol_options *o, struct error *err);
/* l was begun for that binary; it gets what lookups_run() would give it, and is ended before the talk. E_NOMEM. */
int talk_ask(struct talk *t, struct lookup *l, struct error *err);
/* New answers that the cache hasn't been told are told now. */
void talk_end(struct talk *t);

#endif
