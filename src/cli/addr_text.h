/*
 * What addr answers, in words: to the byte those of GNU addr2line 2.40.
 */
#ifndef CLI_ADDR_TEXT_H
#define CLI_ADDR_TEXT_H

#include "base/buf.h"
#include "symbol/symbol.h"

struct addr_form {
	enum demangle_mode mode;
	bool addresses, basenames, functions, inlines, pretty;
	bool wide;                   /* addresses have 64 bits */
};

struct addr_measured;

/* Who puts words together; each thread has one of its own. */
struct addr_text {
	const struct addr_form *form;        /* borrowed */
	struct addr_measured *measured;      /* texts of answers that it came across */
};

/* False: out of memory; t is safe to finish in any case. */
bool addr_text_begin(struct addr_text *t, const struct addr_form *form);
void addr_text_finish(struct addr_text *t);
/* To be told when answers are gone: others may stand where their texts did. */
void addr_text_forget(struct addr_text *t);

/* The line of -a. */
void addr_text_address(const struct addr_form *form, uint64_t address, struct buf *b);
/* The lines behind it. Where a function begins is no name: jeprof and others look for one elsewhere when there is none. */
void addr_text_answer(struct addr_text *t, const struct symbol_frame *frames, size_t n, struct buf *b);

/* All of the answers, with their addresses, to standard output; by as many threads as that is worth. */
int addr_text_print(const struct addr_form *form, const uint64_t *addresses, const struct symbol_answers *answers, struct error *err);

/* What b holds to standard output; b is empty then. */
int addr_text_flush(struct buf *b, struct error *err);

#endif
