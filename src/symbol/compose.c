/*
 * Names are met again and again, always at the same place of a file, so they are told apart by pointer and demangled once each.
 *
 * Each thread has a part of the texts, by where they stand: those that debug information's threads met, each once, and demangled.
 * Then it has a part of the addresses, and puts their frames together; what names are found only then (symbols' where debug
 * information has none, scopes) it makes for itself. Strings are the parts' own, so the same one may be in several.
 */
#include "symbol/compose.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "symbol/answers.h"
#include "symbol/demangle.h"
#include "symbol/eh_frame.h"

#define THREAD_STACK ((size_t)16 << 20)          /* the demangler recurses */
#define NAMES_BITS 28
#define NAMES_MAX ((size_t)1 << NAMES_BITS)
#define FRAMES_BASE ((size_t)1 << 20)            /* of all addresses: a million and a hundred each */
#define FRAMES_PER_ADDRESS 100
#define NAME_BYTES_MAX ((size_t)64 << 10)        /* longer ones are damage */
#define A_THREAD 256                             /* addresses: fewer are not worth one */

/* A name or path that frames have, by where it stands. */
struct text {
	const char *at;
	size_t length;               /* as asked: SIZE_MAX up to its NUL */
	size_t bytes;                /* that it has */
	bool demangled;
	uint32_t id, plain_id;       /* strings of the part; plain_id is id for what isn't mangled */
	uint32_t plain_bytes;
};

struct texts {
	struct text *items;      size_t n, capacity;
	struct index index;
};

struct part {
	const struct composition *c;
	size_t number;
	struct texts debug;          /* its part of debug information's */
	struct texts own;            /* of its addresses' symbols */
	struct answers_builder out;
	size_t begin, end;           /* of the addresses */
	bool overflowed;
	struct error err;
};

struct composition {
	const struct compose_input *in;
	struct part parts[ANSWERS_PARTS_MAX];
	size_t n;
	uint32_t **texts_of;         /* per table of dwarf's: of which part each is, and which of its texts */
};

_Static_assert((uint64_t)ANSWERS_PARTS_MAX << NAMES_BITS <= (uint64_t)1 << 32, "part and text fit into 32 bits");

/* --- texts --- */

static int no_room(struct part *p, const char *what, size_t length)
{
	if (p->out.strings.len + length < p->out.strings.max)
		return error_nomem(&p->err, what);
	return error_set(&p->err, E_LIMIT, "%s: its names take more than 512 MiB: damaged", p->c->in->path);
}

static int keep(struct part *p, const char *text, size_t length, uint32_t *ret)
{
	*ret = answers_string(&p->out, text, length);
	return *ret == UINT32_MAX ? no_room(p, "names", length) : 0;
}

static int add_plain(struct part *p, struct text *t)
{
	struct buf *strings = &p->out.strings, name;
	size_t start = answers_string_begin(&p->out);
	t->demangled = true;
	if (t->bytes == 0)
		return 0;
	if (t->length == SIZE_MAX) {
		demangle(t->at, DEMANGLE_FULL, strings);
	} else {
		buf_init(&name, NAME_BYTES_MAX);
		buf_add(&name, t->at, t->bytes);
		if (name.failed)
			strings->failed = true;
		else
			demangle(name.data, DEMANGLE_FULL, strings);
		buf_finish(&name);
	}
	t->plain_bytes = (uint32_t)(strings->len - start);
	t->plain_id = answers_string_end(&p->out, start);
	return t->plain_id == UINT32_MAX ? no_room(p, "function names", 0) : 0;
}

struct wanted_text {
	const struct text *items;
	const char *at;
	size_t length;
};

static bool same_text(const void *context, uint32_t item)
{
	const struct wanted_text *w = context;
	const struct text *t = &w->items[item];
	return t->at == w->at && t->length == w->length;
}

/* Its number, or UINT32_MAX and the part's error. length SIZE_MAX: up to its NUL. */
static uint32_t add_text(struct part *p, struct texts *texts, const char *at, size_t length, bool is_name)
{
	struct wanted_text w = { texts->items, at, length };
	uint64_t hash = hash_mix(hash_u64((uintptr_t)at), length);
	uint32_t found = index_find(&texts->index, hash, same_text, &w);
	if (found == INDEX_NONE) {
		struct text *t = index_reserve(&texts->index) ? ARRAY_PUSH(texts->items, texts->n, texts->capacity, NAMES_MAX) : NULL;
		if (!t) {
			error_nomem(&p->err, "function names");
			return UINT32_MAX;
		}
		*t = (struct text){ .at = at, .length = length };
		t->bytes = strnlen(at, length < NAME_BYTES_MAX ? length : NAME_BYTES_MAX);
		if (t->bytes == NAME_BYTES_MAX)
			t->bytes = 0;
		found = (uint32_t)(texts->n - 1);
		index_insert(&texts->index, hash, found);
		if (keep(p, at, t->bytes, &t->id))
			return UINT32_MAX;
		t->plain_id = t->id;
	}
	struct text *t = &texts->items[found];
	return is_name && !t->demangled && add_plain(p, t) ? UINT32_MAX : found;
}

static void *collect_part(void *context)
{
	struct part *p = context;
	const struct dwarf_result *dwarf = p->c->in->dwarf;
	for (size_t t = 0; t < dwarf->n_texts; t++) {
		const struct dwarf_texts *table = &dwarf->texts[t];
		for (size_t i = 0; i < table->n; i++) {
			const struct dwarf_text *text = &table->items[i];
			if (hash_u64((uintptr_t)text->at) % p->c->n != p->number)
				continue;
			uint32_t found = add_text(p, &p->debug, text->at, SIZE_MAX, text->is_name);
			if (found == UINT32_MAX)
				return NULL;
			p->c->texts_of[t][i] = (uint32_t)p->number << NAMES_BITS | found;
		}
	}
	return NULL;
}

static const struct text *debug_text(const struct part *p, size_t table, uint32_t text)
{
	if (text == DWARF_NO_TEXT)
		return NULL;
	uint32_t found = p->c->texts_of[table][text];
	return &p->c->parts[found >> NAMES_BITS].debug.items[found & (NAMES_MAX - 1)];
}

/* Of a symbol; NULL and the part's error: no memory. Valid until the next. */
static const struct text *symbol_text(struct part *p, const struct symtab_hit *hit)
{
	uint32_t found = add_text(p, &p->own, hit->name, hit->length, true);
	return found == UINT32_MAX ? NULL : &p->own.items[found];
}

/* --- frames --- */

static void name_by_text(struct answer_frame *f, const struct text *t)
{
	f->function = t->plain_id;
	f->system_name = t->plain_id == t->id ? 0 : t->id;
}

/* The mangled symbol at exactly that address, or NULL. */
static const struct symtab_hit *entry_symbol(const struct compose_input *in, uint64_t entry)
{
	size_t i = entry ? lower_bound_u64(in->entries, in->n_entries, entry) : in->n_entries;
	const struct symtab_hit *hit = i < in->n_entries && in->entries[i] == entry ? &in->entry_symbols[i] : NULL;
	return hit && hit->name && hit->start == entry && name_is_mangled(hit->name) ? hit : NULL;
}

/*
 * The name of the symbol where the function begins. Identical functions share their code and the symbol may be the other one's, so
 * debug information's plain name must be part of it. *ret: whether it is.
 */
static int name_by_entry(struct part *p, const struct dwarf_frame *d, const char *name, struct answer_frame *f, bool *ret)
{
	const struct symtab_hit *hit = entry_symbol(p->c->in, d->entry);
	*ret = false;
	if (!hit)
		return 0;
	const struct text *t = symbol_text(p, hit);
	if (!t)
		return p->err.code;
	size_t length = strncmp(name, "operator", 8) ? strcspn(name, "<") : strlen("operator");
	if (t->plain_id == t->id || !memmem(answers_string_text(&p->out, t->plain_id), t->plain_bytes, name, length))
		return 0;
	*ret = true;
	/* The symbol may be of a part or a copy ("f.isra.0"), which the function itself is not. */
	name_by_text(f, t);
	size_t stem = demangle_without_suffix(t->at);
	return stem >= t->bytes ? 0 : keep(p, t->at, stem, &f->system_name);
}

static int name_by_scope(struct part *p, const struct text *scope, const struct text *name, struct answer_frame *f)
{
	struct buf *strings = &p->out.strings;
	size_t start = answers_string_begin(&p->out);
	buf_add(strings, scope->at, scope->bytes);
	buf_adds(strings, "::");
	buf_add(strings, name->at, name->bytes);
	f->function = answers_string_end(&p->out, start);
	return f->function == UINT32_MAX ? no_room(p, "function names", 0) : 0;
}

static int give_name(struct part *p, const struct dwarf_frame *d, struct answer_frame *f)
{
	const struct text *name = debug_text(p, d->table, d->name), *scope = debug_text(p, d->table, d->scope);
	bool done = !name;
	int rc = name && d->entry ? name_by_entry(p, d, name->at, f, &done) : 0;
	if (done || rc)
		return rc;
	if (!d->is_linkage && scope)
		return name_by_scope(p, scope, name, f);
	name_by_text(f, name);
	return 0;
}

static int name_by_symbol(struct part *p, size_t i, struct answer_frame *f)
{
	const struct text *t = symbol_text(p, &p->c->in->symbols[i]);
	if (t)
		name_by_text(f, t);
	return t ? 0 : p->err.code;
}

/* What debug information has; the symbol names a function that it has no name for. */
static int add_debug(struct part *p, size_t i, const struct dwarf_frame *frames, size_t n)
{
	const struct compose_input *in = p->c->in;
	struct answer_frame out[DWARF_FRAMES_MAX];
	int rc = 0;
	for (size_t k = 0; k < n && rc == 0; k++) {
		const struct dwarf_frame *d = &frames[k];
		const struct text *file = debug_text(p, d->file_table, d->file);
		out[k] = (struct answer_frame){ .file = file ? file->id : 0, .line = d->line, .column = d->column, .start_line = d->start_line };
		rc = give_name(p, d, &out[k]);
	}
	if (rc == 0 && !out[n - 1].function && in->symbols[i].name && !dwarf_names_function(in->dwarf, i))
		rc = name_by_symbol(p, i, &out[n - 1]);
	return rc ? rc : answers_add(&p->out, in->addresses[i], ANSWER_DEBUG, out, n, &p->err);
}

/* Of an address without debug information. */
static int add_poor(struct part *p, size_t i)
{
	const struct compose_input *in = p->c->in;
	struct answer_frame f = { 0 };
	if (in->symbols[i].name) {
		int rc = name_by_symbol(p, i, &f);
		enum answer_quality quality = in->symbols[i].kind == SYMTAB_DYNAMIC ? ANSWER_EXPORTED : ANSWER_SYMBOL;
		return rc ? rc : answers_add(&p->out, in->addresses[i], quality, &f, 1, &p->err);
	}
	if (in->starts[i] == EH_FRAME_NONE)
		return answers_add(&p->out, in->addresses[i], ANSWER_NOTHING, NULL, 0, &p->err);
	char name[32];
	int length = snprintf(name, sizeof name, "fn_%llx", (unsigned long long)in->starts[i]);
	int rc = keep(p, name, (size_t)length, &f.function);
	return rc ? rc : answers_add(&p->out, in->addresses[i], ANSWER_START, &f, 1, &p->err);
}

static void *answer_part(void *context)
{
	struct part *p = context;
	const struct dwarf_result *dwarf = p->c->in->dwarf;
	struct dwarf_frame frames[DWARF_FRAMES_MAX];
	size_t most = FRAMES_BASE / p->c->n + FRAMES_PER_ADDRESS * (p->end - p->begin);
	for (size_t i = p->begin; i < p->end && !p->err.code; i++) {
		size_t n = dwarf->storage ? dwarf_frames(dwarf, i, frames) : 0;
		/* No program inlines like that. */
		if (p->out.n_frames + n > most) {
			p->overflowed = true;
			n = 0;
		}
		(void)(n ? add_debug(p, i, frames, n) : add_poor(p, i));
	}
	return NULL;
}

/* --- all of it --- */

/* The first error of a part, if there is one. */
static int run(struct composition *c, void *(*work)(void *), struct error *err)
{
	pthread_t threads[ANSWERS_PARTS_MAX];
	pthread_attr_t attributes;
	size_t started = 1;
	if (c->n > 1 && pthread_attr_init(&attributes) == 0) {
		pthread_attr_setstacksize(&attributes, THREAD_STACK);
		while (started < c->n && pthread_create(&threads[started], &attributes, work, &c->parts[started]) == 0)
			started++;
		pthread_attr_destroy(&attributes);
	}
	work(&c->parts[0]);
	for (size_t i = started; i < c->n; i++)
		work(&c->parts[i]);
	for (size_t i = 1; i < started; i++)
		pthread_join(threads[i], NULL);
	for (size_t i = 0; i < c->n; i++)
		if (c->parts[i].err.code)
			return error_set(err, c->parts[i].err.code, "%s", c->parts[i].err.text);
	return 0;
}

static int begin(struct composition *c, struct error *err)
{
	const struct compose_input *in = c->in;
	c->n = 1 + in->n / A_THREAD < in->threads ? 1 + in->n / A_THREAD : in->threads;
	c->n = c->n < 1 ? 1 : c->n < ANSWERS_PARTS_MAX ? c->n : ANSWERS_PARTS_MAX;
	for (size_t i = 0; i < c->n; i++) {
		c->parts[i] = (struct part){ .c = c, .number = i, .begin = in->n * i / c->n, .end = in->n * (i + 1) / c->n };
		answers_begin_part(&c->parts[i].out, i);
	}
	c->texts_of = calloc(in->dwarf->n_texts + 1, sizeof(*c->texts_of));
	for (size_t t = 0; t < in->dwarf->n_texts && c->texts_of; t++) {
		c->texts_of[t] = malloc((in->dwarf->texts[t].n + 1) * sizeof(**c->texts_of));
		if (!c->texts_of[t])
			return error_nomem(err, "function names");
	}
	return c->texts_of ? 0 : error_nomem(err, "function names");
}

static void finish(struct composition *c)
{
	for (size_t t = 0; t < c->in->dwarf->n_texts && c->texts_of; t++)
		free(c->texts_of[t]);
	free(c->texts_of);
	for (size_t i = 0; i < c->n; i++) {
		struct part *p = &c->parts[i];
		index_finish(&p->debug.index);
		index_finish(&p->own.index);
		free(p->debug.items);
		free(p->own.items);
		answers_end(&p->out);
	}
}

int compose(const struct compose_input *in, struct buf *ret, bool *ret_overflowed, struct error *err)
{
	struct composition *c = calloc(1, sizeof(*c));
	const struct answers_builder *parts[ANSWERS_PARTS_MAX];
	if (!c)
		return error_nomem(err, "function names");
	c->in = in;
	int rc = begin(c, err);
	if (rc == 0)
		rc = run(c, collect_part, err);
	if (rc == 0)
		rc = run(c, answer_part, err);
	*ret_overflowed = false;
	for (size_t i = 0; i < c->n; i++) {
		parts[i] = &c->parts[i].out;
		*ret_overflowed |= c->parts[i].overflowed;
	}
	if (rc == 0)
		rc = answers_write(parts, c->n, ret, err);
	finish(c);
	free(c);
	return rc;
}
