/*
 * A crowd's answers are many megabytes of text: they are put together by several threads, piece by piece, and each waits with
 * its piece until those before are written.
 */
#include "cli/addr_text.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/processors.h"

#define MEASURED ((size_t)8 << 10)
#define PIECE ((size_t)256)          /* addresses: their text fits into the cache of a processor */
#define THREADS_MAX 4

/* A text that answers have, and that has been looked at: names and paths come back again and again. By where they stand. */
struct addr_measured {
	const char *text;
	const char *linked;          /* the linker's form of it that was looked at last */
	uint32_t bytes;
	bool has_clone;              /* that is "f.cold": see add_clones() */
};

bool addr_text_begin(struct addr_text *t, const struct addr_form *form)
{
	*t = (struct addr_text){ .form = form, .measured = calloc(MEASURED, sizeof(*t->measured)) };
	return t->measured != NULL;
}

void addr_text_finish(struct addr_text *t)
{
	if (!t)
		return;
	free(t->measured);
	t->measured = NULL;
}

void addr_text_forget(struct addr_text *t)
{
	memset(t->measured, 0, MEASURED * sizeof(*t->measured));
}

/* --- one answer --- */

/* What GNU's demangler shows of the suffixes that our names have not: "f.cold" is "f() [clone .cold]". */
static void add_clones(struct buf *b, const char *name)
{
	for (const char *c = name + demangle_without_suffix(name); *c;) {
		size_t n = 1 + strcspn(c + 1, ".");
		while (c[n] == '.' && c[n + 1] >= '0' && c[n + 1] <= '9')
			n += 1 + strspn(c + n + 1, "0123456789");
		buf_adds(b, " [clone ");
		buf_add(b, c, n);
		buf_addc(b, ']');
		c += n;
	}
}

/* Of at least that many digits. */
static void add_number(struct buf *b, uint64_t value, unsigned base, size_t digits)
{
	char text[24];
	size_t at = sizeof text;
	do {
		text[--at] = "0123456789abcdef"[value % base];
		value /= base;
	} while (value || sizeof text - at < digits);
	buf_add(b, text + at, sizeof text - at);
}

void addr_text_address(const struct addr_form *form, uint64_t address, struct buf *b)
{
	if (!form->addresses)
		return;
	buf_adds(b, "0x");
	add_number(b, address, 16, form->wide ? 16 : 8);
	buf_adds(b, form->pretty ? ": " : "\n");
}

static const char *function_of(const struct addr_form *form, const struct symbol_frame *f)
{
	const char *linked = f->system_name ? f->system_name : f->function;
	if (!linked || !*linked)
		return "??";
	return form->mode == DEMANGLE_NONE ? linked : f->function;
}

/* linked may be NULL. */
static struct addr_measured measure(struct addr_text *t, const char *text, const char *linked)
{
	/* Texts lie one behind the other, so their places are as good as a hash. */
	struct addr_measured *m = &t->measured[((uintptr_t)text * 0x9e3779b97f4a7c15u >> 40) % MEASURED];
	if (m->text != text)
		*m = (struct addr_measured){ .text = text, .bytes = (uint32_t)strlen(text) };
	if (m->linked != linked) {
		m->linked = linked;
		m->has_clone = linked && name_is_mangled(linked) && linked[demangle_without_suffix(linked)];
	}
	return *m;
}

static void add_frame(struct addr_text *t, const struct symbol_frame *f, struct buf *b)
{
	const struct addr_form *form = t->form;
	struct addr_measured function = { .text = "" }, file = measure(t, f->file ? f->file : "??", NULL);
	if (form->functions)
		function = measure(t, function_of(form, f), form->mode == DEMANGLE_FULL ? f->system_name : NULL);
	const char *path = form->basenames ? path_base(file.text) : file.text;
	size_t path_bytes = file.bytes - (size_t)(path - file.text);
	if (!buf_reserve(b, function.bytes + path_bytes + 8))
		return;
	memcpy(b->data + b->len, function.text, function.bytes);
	b->len += function.bytes;
	if (form->functions) {
		if (function.has_clone)
			add_clones(b, f->system_name);
		buf_adds(b, form->pretty ? " at " : "\n");
	}
	buf_add(b, path, path_bytes);
	buf_addc(b, ':');
	if (f->line)
		add_number(b, f->line, 10, 1);
	else
		buf_addc(b, '?');
	buf_addc(b, '\n');
}

void addr_text_answer(struct addr_text *t, const struct symbol_frame *frames, size_t n, struct buf *b)
{
	const struct addr_form *form = t->form;
	if (n == 1 && frames->is_start)
		n = 0;
	if (n == 0 && form->functions)
		buf_adds(b, form->pretty ? "?? " : "??\n");
	if (n == 0)
		buf_adds(b, "??:0\n");
	for (size_t i = 0; i < n && (i == 0 || form->inlines); i++) {
		if (i && form->pretty)
			buf_adds(b, " (inlined by) ");
		add_frame(t, &frames[i], b);
	}
}

int addr_text_flush(struct buf *b, struct error *err)
{
	if (b->failed)
		return error_nomem(err, "answers");
	if (b->len && (fwrite(b->data, 1, b->len, stdout) != b->len || fflush(stdout)))
		return error_set(err, E_IO, "standard output: cannot write: %s", strerror(errno));
	buf_reset(b);
	return 0;
}

/* --- a crowd's --- */

struct crowd {
	const struct addr_form *form;
	const uint64_t *addresses;
	const struct symbol_answers *answers;
	pthread_mutex_t lock;
	pthread_cond_t turned;
	size_t next;                 /* piece that nobody has; guarded by lock, as what follows */
	size_t turn;                 /* piece that is to be written */
	int failed;
	struct error *err;           /* of who has the turn */
};

static void put_together(struct addr_text *t, const struct crowd *c, size_t piece, struct buf *b)
{
	struct symbol_frame frames[SYMBOL_FRAMES_MAX];
	size_t end = (piece + 1) * PIECE < c->answers->n ? (piece + 1) * PIECE : c->answers->n;
	for (size_t i = piece * PIECE; i < end; i++) {
		symbol_answer_expect(c->answers, i);
		size_t n = symbol_answer(c->answers, i, frames);
		addr_text_address(c->form, c->addresses[i], b);
		addr_text_answer(t, frames, n, b);
	}
}

static bool take_piece(struct crowd *c, size_t *ret)
{
	pthread_mutex_lock(&c->lock);
	bool took = !c->failed && c->next * PIECE < c->answers->n;
	if (took)
		*ret = c->next++;
	pthread_mutex_unlock(&c->lock);
	return took;
}

static void write_piece(struct crowd *c, size_t piece, struct buf *b)
{
	pthread_mutex_lock(&c->lock);
	while (c->turn != piece && !c->failed)
		pthread_cond_wait(&c->turned, &c->lock);
	bool good = !c->failed;
	pthread_mutex_unlock(&c->lock);
	int failed = good ? addr_text_flush(b, c->err) : 0;
	pthread_mutex_lock(&c->lock);
	if (good) {
		c->failed = failed;
		c->turn++;
		pthread_cond_broadcast(&c->turned);
	}
	pthread_mutex_unlock(&c->lock);
}

/* A thread without memory takes nothing, so the others do it; the first one says that there is none. */
static void *print_pieces(void *context)
{
	struct crowd *c = context;
	struct addr_text text;
	struct buf b;
	size_t piece;
	buf_init(&b, BUF_MAX_DEFAULT);
	bool good = addr_text_begin(&text, c->form);
	while (good && take_piece(c, &piece)) {
		put_together(&text, c, piece, &b);
		write_piece(c, piece, &b);
	}
	buf_finish(&b);
	addr_text_finish(&text);
	return NULL;
}

int addr_text_print(const struct addr_form *form, const uint64_t *addresses, const struct symbol_answers *answers, struct error *err)
{
	struct crowd c = { .form = form, .addresses = addresses, .answers = answers, .err = err };
	pthread_t threads[THREADS_MAX];
	size_t n = (answers->n + PIECE - 1) / PIECE, started = 1;
	n = n < processors_available() ? n : processors_available();
	n = n < THREADS_MAX ? n : THREADS_MAX;
	pthread_mutex_init(&c.lock, NULL);
	pthread_cond_init(&c.turned, NULL);
	while (started < n && pthread_create(&threads[started], NULL, print_pieces, &c) == 0)
		started++;
	print_pieces(&c);
	for (size_t i = 1; i < started; i++)
		pthread_join(threads[i], NULL);
	pthread_cond_destroy(&c.turned);
	pthread_mutex_destroy(&c.lock);
	if (!c.failed && c.turn * PIECE < answers->n)
		return error_nomem(err, "answers");
	return c.failed;
}
