/*
 * One binary: symbol tables and debug information are joined with its addresses, then each address gets its frames. Debug
 * information's function wins over the symbol table's, because it sees through inlining; the tables name what it doesn't, and
 * .eh_frame tells at least where a function begins.
 *
 * Names are met again and again, always at the same place of a file, so they are told apart by pointer, demangled once each (by
 * several threads), and written once.
 */
#include "symbol/resolve.h"

#include <elf.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/processors.h"
#include "symbol/demangle.h"
#include "symbol/dwarf_join.h"
#include "symbol/eh_frame.h"
#include "symbol/sections.h"
#include "symbol/symtab.h"

#define THREADS_MAX 8
#define THREAD_STACK ((size_t)16 << 20)          /* the demangler recurses */
#define DECOMPRESSED_LIMIT ((uint64_t)4 << 30)
#define NAMES_MAX ((size_t)1 << 28)
#define FRAMES_BASE ((size_t)1 << 20)            /* of all addresses: a million and a hundred each */
#define FRAMES_PER_ADDRESS 100
#define NAME_BYTES_MAX ((size_t)64 << 10)        /* longer ones are damage */
#define NAMES_A_THREAD 256                       /* fewer are not worth one */

/* A name or path that frames have, by where it stands. */
struct text {
	const char *at;
	size_t length;               /* as asked: SIZE_MAX up to its NUL */
	size_t bytes;                /* that it has */
	bool demangled;              /* to be */
	uint16_t thread;             /* which buffer has the demangled form, and where */
	size_t plain, plain_length;
	uint32_t id, plain_id;       /* strings of the answers; plain_id is id for what isn't mangled */
};

struct job {
	const struct elf_file *binary;
	const uint64_t *addresses;
	size_t n, threads;
	const struct resolve_options *options;
	struct elf_file debug_file;          /* when there is one */
	bool has_debug_file;
	struct elf_file alt_file;
	bool has_alt_file;
	struct elf_image mini;               /* what .gnu_debugdata holds, when nothing better is there */
	uint8_t *mini_bytes;
	bool has_mini;
	struct symtab_hit *symbols;          /* per address */
	uint64_t *starts;                    /* per address: of its function, by .eh_frame */
	struct debug_sections sections, alt_sections;
	bool has_sections, has_alt_sections;
	struct dwarf_result dwarf;
	size_t n_entries;                    /* of dwarf: sorted, without repeats */
	struct symtab_hit *entry_symbols;    /* per entry: symbols may have the full names of what begins there */
	uint32_t **texts_of;                 /* per table of dwarf's: which of texts each is */
	uint32_t *symbol_texts;              /* per address: of its symbol's name; UINT32_MAX when that isn't wanted */
	struct text *texts;      size_t n_texts, texts_capacity;
	struct index text_index;
	struct buf plains[THREADS_MAX];
	struct answers_builder *out;
	bool overflowed;                     /* some address had too many frames */
	struct error *err;
};

/* --- files --- */

static bool open_other(struct job *j, const struct file_request *r, struct elf_file *ret)
{
	char path[PATH_MAX];
	const struct file_source *files = j->options->files;
	int fd = files ? files->open(files->context, r, path, sizeof path) : -1;
	if (fd < 0)
		return false;
	if (elf_file_open_fd(ret, fd, path, NULL) == 0)
		return true;
	elf_file_finish(ret);
	return false;
}

static void open_debug_file(struct job *j)
{
	const struct elf_file *f = j->binary;
	bool enough = f->has_debug_info || (j->options->depth == SYMBOL_TABLE && f->has_symtab);
	struct file_request r = { .kind = FILE_DEBUG, .of = f->path, .build_id = f->build_id };
	r.name = elf_file_debuglink(f, &r.crc);
	if (!enough)
		j->has_debug_file = open_other(j, &r, &j->debug_file);
}

static const struct elf_file *debug_of(const struct job *j)
{
	if (j->binary->has_debug_info)
		return j->binary;
	return j->has_debug_file && j->debug_file.has_debug_info ? &j->debug_file : NULL;
}

static void open_alt_file(struct job *j, const struct elf_file *of)
{
	char id[BUILD_ID_TEXT];
	const char *name = elf_file_altlink(of, id);
	if (!name)
		return;
	j->has_alt_file = open_other(j, &(struct file_request){ .kind = FILE_ALT, .of = of->path, .name = name, .build_id = id }, &j->alt_file);
}

/* --- joins --- */

static int join_symbols(struct job *j, const uint64_t *addresses, size_t n, struct symtab_hit *hits)
{
	int rc = symtab_join(&j->binary->image, SYMTAB_FULL, addresses, n, hits, j->err);
	if (rc == 0 && j->has_debug_file)
		rc = symtab_join(&j->debug_file.image, SYMTAB_FULL, addresses, n, hits, j->err);
	if (rc == 0 && j->has_mini)
		rc = symtab_join(&j->mini, SYMTAB_PART, addresses, n, hits, j->err);
	if (rc == 0)
		rc = symtab_join(&j->binary->image, SYMTAB_DYNAMIC, addresses, n, hits, j->err);
	return rc;
}

static int join_debug(struct job *j, struct resolve_result *result)
{
	const struct elf_file *file = debug_of(j);
	if (!file || j->options->depth != SYMBOL_FULL)
		return 0;
	uint64_t limit = j->options->decompressed_limit ? j->options->decompressed_limit : DECOMPRESSED_LIMIT;
	open_alt_file(j, file);
	sections_init(&j->sections, &file->image, limit);
	j->has_sections = true;
	sections_unpack(&j->sections, j->threads);
	if (j->has_alt_file) {
		sections_init(&j->alt_sections, &j->alt_file.image, limit);
		j->has_alt_sections = true;
		sections_unpack(&j->alt_sections, j->threads);
	}
	struct dwarf_input in = {
		.binary = j->binary, .file = file, .sections = &j->sections, .alt = j->has_alt_sections ? &j->alt_sections : NULL,
		.files = j->options->files, .symbols = j->symbols, .have_symtab = result->has_symtab, .threads = j->threads,
	};
	int rc = dwarf_join(&in, j->addresses, j->n, &j->dwarf, j->err);
	result->has_debug = true;
	result->damaged = j->dwarf.damaged || j->sections.damaged || (j->has_alt_sections && j->alt_sections.damaged);
	return rc;
}

static int compare_entries(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return x < y ? -1 : x > y;
}

/* GCC leaves the linker's name out for what isn't exported: the symbol where the function begins has it. */
static int join_entries(struct job *j)
{
	uint64_t *entries = j->dwarf.entries;
	size_t n = j->dwarf.n_entries;
	if (n == 0)
		return 0;
	qsort(entries, n, sizeof(*entries), compare_entries);
	for (size_t i = 0; i < n; i++)
		if (j->n_entries == 0 || entries[j->n_entries - 1] != entries[i])
			entries[j->n_entries++] = entries[i];
	j->entry_symbols = calloc(j->n_entries, sizeof(*j->entry_symbols));
	if (!j->entry_symbols)
		return error_nomem(j->err, "function names");
	return join_symbols(j, entries, j->n_entries, j->entry_symbols);
}

/* The mangled symbol at exactly that address, or NULL. */
static const struct symtab_hit *entry_symbol(const struct job *j, uint64_t entry)
{
	const uint64_t *entries = j->dwarf.entries, *found = NULL;
	if (entry && j->n_entries)
		found = bsearch(&entry, entries, j->n_entries, sizeof(entry), compare_entries);
	const struct symtab_hit *hit = found ? &j->entry_symbols[found - entries] : NULL;
	return hit && hit->name && hit->start == entry && name_is_mangled(hit->name) ? hit : NULL;
}

/* A symbol without a size that is exported from where a function begins is the function's: how far that reaches, .eh_frame says. */
static void name_by_starts(struct job *j)
{
	struct elf_symbols walk;
	struct elf_symbol s;
	if (!elf_symbols_begin(&walk, &j->binary->image, true))
		return;
	while (elf_symbols_next(&walk, &s)) {
		if (s.bytes || s.section == SHN_UNDEF || s.type != STT_FUNC || !*s.name)
			continue;
		for (size_t i = lower_bound_u64(j->addresses, j->n, s.value); i < j->n && j->starts[i] == s.value; i++)
			if (!j->symbols[i].name)
				j->symbols[i] = (struct symtab_hit){ s.name, strlen(s.name), s.value, SYMTAB_DYNAMIC };
	}
}

static int find_starts(struct job *j)
{
	j->starts = malloc((j->n + 1) * sizeof(*j->starts));
	if (!j->starts)
		return error_nomem(j->err, "addresses");
	bool any = false;
	for (size_t i = 0; i < j->n; i++) {
		j->starts[i] = EH_FRAME_NONE;
		any |= !j->symbols[i].name;
	}
	if (any) {
		eh_frame_starts(&j->binary->image, j->addresses, j->n, j->starts);
		name_by_starts(j);
	}
	return 0;
}

/* --- texts --- */

struct wanted_text {
	const struct job *job;
	const char *at;
	size_t length;
};

static bool same_text(const void *context, uint32_t item)
{
	const struct wanted_text *w = context;
	const struct text *t = &w->job->texts[item];
	return t->at == w->at && t->length == w->length;
}

/* length SIZE_MAX: up to its NUL. */
static struct text *text_at(struct job *j, const char *at, size_t length)
{
	struct wanted_text w = { j, at, length };
	uint64_t hash = hash_mix(hash_u64((uintptr_t)at), length);
	uint32_t found = index_find(&j->text_index, hash, same_text, &w);
	if (found != INDEX_NONE)
		return &j->texts[found];
	struct text *t = index_reserve(&j->text_index) ? ARRAY_PUSH(j->texts, j->n_texts, j->texts_capacity, NAMES_MAX) : NULL;
	if (!t)
		return NULL;
	*t = (struct text){ .at = at, .length = length };
	t->bytes = strnlen(at, length < NAME_BYTES_MAX ? length : NAME_BYTES_MAX);
	if (t->bytes == NAME_BYTES_MAX)
		t->bytes = 0;
	index_insert(&j->text_index, hash, (uint32_t)(j->n_texts - 1));
	return t;
}

static uint32_t add_name(struct job *j, const char *at, size_t length)
{
	struct text *t = text_at(j, at, length);
	if (!t)
		return UINT32_MAX;
	t->demangled = true;
	return (uint32_t)(t - j->texts);
}

/* Of every thread's table, so that a name that several met is demangled once. */
static bool collect_debug(struct job *j)
{
	j->texts_of = calloc(j->dwarf.n_texts + 1, sizeof(*j->texts_of));
	for (size_t t = 0; t < j->dwarf.n_texts && j->texts_of; t++) {
		const struct dwarf_texts *table = &j->dwarf.texts[t];
		j->texts_of[t] = malloc((table->n + 1) * sizeof(**j->texts_of));
		for (size_t i = 0; i < table->n; i++) {
			struct text *text = j->texts_of[t] ? text_at(j, table->items[i].at, SIZE_MAX) : NULL;
			if (!text)
				return false;
			text->demangled |= table->items[i].is_name;
			j->texts_of[t][i] = (uint32_t)(text - j->texts);
		}
	}
	return j->texts_of != NULL;
}

static int collect(struct job *j)
{
	bool ok = collect_debug(j);
	j->symbol_texts = malloc((j->n + 1) * sizeof(*j->symbol_texts));
	ok = ok && j->symbol_texts;
	for (size_t i = 0; i < j->n_entries && ok; i++)
		if (j->entry_symbols[i].name)
			ok = add_name(j, j->entry_symbols[i].name, j->entry_symbols[i].length) != UINT32_MAX;
	/* The same symbol has many addresses, one after the other; most are of functions that have a better name. */
	const struct symtab_hit *last = NULL;
	for (size_t i = 0; i < j->n && ok; i++) {
		const struct symtab_hit *hit = &j->symbols[i];
		bool wanted = hit->name && !(j->dwarf.storage && dwarf_names_function(&j->dwarf, i));
		j->symbol_texts[i] = UINT32_MAX;
		if (!wanted)
			continue;
		j->symbol_texts[i] = last && hit->name == last->name ? j->symbol_texts[last - j->symbols] : add_name(j, hit->name, hit->length);
		last = hit;
		ok = j->symbol_texts[i] != UINT32_MAX;
	}
	return ok ? 0 : error_nomem(j->err, "function names");
}

struct part {
	struct job *job;
	size_t begin, end;
	uint16_t number;
};

static void *demangle_part(void *context)
{
	const struct part *p = context;
	struct buf *out = &p->job->plains[p->number], name;
	buf_init(&name, BUF_MAX_DEFAULT);
	for (size_t i = p->begin; i < p->end && !out->failed; i++) {
		struct text *t = &p->job->texts[i];
		if (!t->demangled)
			continue;
		t->thread = p->number;
		t->plain = out->len;
		if (t->length == SIZE_MAX && t->bytes) {
			demangle(t->at, DEMANGLE_FULL, out);
		} else if (t->bytes) {
			buf_reset(&name);
			buf_add(&name, t->at, t->bytes);
			if (!name.failed)
				demangle(name.data, DEMANGLE_FULL, out);
		}
		t->plain_length = out->len - t->plain;
	}
	if (name.failed)
		out->failed = true;
	buf_finish(&name);
	return NULL;
}

static void demangle_all(struct job *j)
{
	struct part parts[THREADS_MAX];
	pthread_t threads[THREADS_MAX];
	pthread_attr_t attributes;
	size_t n = 1 + j->n_texts / NAMES_A_THREAD, started = 1;
	if (n > j->threads)
		n = j->threads;
	for (size_t i = 0; i < n; i++)
		parts[i] = (struct part){ j, j->n_texts * i / n, j->n_texts * (i + 1) / n, (uint16_t)i };
	if (n > 1 && pthread_attr_init(&attributes) == 0) {
		pthread_attr_setstacksize(&attributes, THREAD_STACK);
		while (started < n && pthread_create(&threads[started], &attributes, demangle_part, &parts[started]) == 0)
			started++;
		pthread_attr_destroy(&attributes);
	}
	demangle_part(&parts[0]);
	for (size_t i = started; i < n; i++)
		demangle_part(&parts[i]);
	for (size_t i = 1; i < started; i++)
		pthread_join(threads[i], NULL);
}

static int keep(struct job *j, const char *text, size_t length, uint32_t *ret)
{
	*ret = answers_string(j->out, text, length);
	if (*ret != UINT32_MAX)
		return 0;
	if (j->out->strings.len + length < j->out->strings.max)
		return error_nomem(j->err, "names");
	return error_set(j->err, E_LIMIT, "%s: its names take more than 1 GiB: damaged", j->binary->path);
}

static int write_texts(struct job *j)
{
	for (size_t i = 0; i < j->n_texts; i++) {
		struct text *t = &j->texts[i];
		int rc = keep(j, t->at, t->bytes, &t->id);
		t->plain_id = t->id;
		if (rc == 0 && t->demangled) {
			if (j->plains[t->thread].failed)
				return error_nomem(j->err, "function names");
			rc = keep(j, j->plains[t->thread].data + t->plain, t->plain_length, &t->plain_id);
		}
		if (rc)
			return rc;
	}
	return 0;
}

/* --- frames --- */

static void name_by_text(struct answer_frame *f, const struct text *t)
{
	f->function = t->plain_id;
	f->system_name = t->plain_id == t->id ? 0 : t->id;
}

/*
 * The name of the symbol where the function begins. Identical functions share their code and the symbol may be the other one's, so
 * debug information's plain name must be part of it.
 */
static bool name_by_entry(struct job *j, const struct dwarf_frame *d, const char *name, struct answer_frame *f)
{
	const struct symtab_hit *hit = entry_symbol(j, d->entry);
	const struct text *t = hit ? text_at(j, hit->name, hit->length) : NULL;
	size_t length = strncmp(name, "operator", 8) ? strcspn(name, "<") : strlen("operator");
	if (!t || t->plain_id == t->id || !memmem(j->plains[t->thread].data + t->plain, t->plain_length, name, length))
		return false;
	/* The symbol may be of a part or a copy ("f.isra.0"), which the function itself is not. */
	name_by_text(f, t);
	size_t stem = demangle_without_suffix(t->at);
	return stem >= t->bytes || keep(j, t->at, stem, &f->system_name) == 0;
}

static int name_by_scope(struct job *j, const struct text *scope, const struct text *name, struct answer_frame *f)
{
	struct buf b;
	buf_init(&b, BUF_MAX_DEFAULT);
	buf_add(&b, scope->at, scope->bytes);
	buf_adds(&b, "::");
	buf_add(&b, name->at, name->bytes);
	int rc = b.failed ? error_nomem(j->err, "function names") : keep(j, b.data, b.len, &f->function);
	buf_finish(&b);
	return rc;
}

static const struct text *debug_text(const struct job *j, size_t table, uint32_t text)
{
	return text == DWARF_NO_TEXT ? NULL : &j->texts[j->texts_of[table][text]];
}

static int give_name(struct job *j, const struct dwarf_frame *d, struct answer_frame *f)
{
	const struct text *name = debug_text(j, d->table, d->name), *scope = debug_text(j, d->table, d->scope);
	if (!name || (d->entry && name_by_entry(j, d, name->at, f)))
		return 0;
	if (!d->is_linkage && scope)
		return name_by_scope(j, scope, name, f);
	name_by_text(f, name);
	return 0;
}

static enum answer_quality quality_of(const struct symtab_hit *hit)
{
	return hit->kind == SYMTAB_DYNAMIC ? ANSWER_EXPORTED : ANSWER_SYMBOL;
}

/* Of the symbol that covers an address; NULL when there is none, or debug information has a better name. */
static const struct text *symbol_text(const struct job *j, size_t i)
{
	return j->symbol_texts[i] == UINT32_MAX ? NULL : &j->texts[j->symbol_texts[i]];
}

/* What debug information has; the symbol names a function that it has no name for. */
static int add_debug(struct job *j, size_t i, const struct dwarf_frame *frames, size_t n)
{
	struct answer_frame out[DWARF_FRAMES_MAX];
	for (size_t k = 0; k < n; k++) {
		const struct dwarf_frame *d = &frames[k];
		const struct text *file = debug_text(j, d->file_table, d->file);
		out[k] = (struct answer_frame){ .file = file ? file->id : 0, .line = d->line, .column = d->column, .start_line = d->start_line };
		int rc = give_name(j, d, &out[k]);
		if (rc)
			return rc;
	}
	const struct text *symbol = symbol_text(j, i);
	if (!out[n - 1].function && symbol)
		name_by_text(&out[n - 1], symbol);
	return answers_add(j->out, j->addresses[i], ANSWER_DEBUG, out, n, j->err);
}

static int add_answer(struct job *j, size_t i)
{
	struct dwarf_frame frames[DWARF_FRAMES_MAX];
	struct answer_frame f = { 0 };
	size_t n = j->dwarf.storage ? dwarf_frames(&j->dwarf, i, frames) : 0;
	/* No program inlines like that. */
	if (j->out->n_frames + n > FRAMES_BASE + FRAMES_PER_ADDRESS * j->n) {
		j->overflowed = true;
		n = 0;
	}
	if (n)
		return add_debug(j, i, frames, n);
	const struct text *symbol = symbol_text(j, i);
	if (symbol) {
		name_by_text(&f, symbol);
		return answers_add(j->out, j->addresses[i], quality_of(&j->symbols[i]), &f, 1, j->err);
	}
	if (j->starts[i] == EH_FRAME_NONE)
		return answers_add(j->out, j->addresses[i], ANSWER_NOTHING, NULL, 0, j->err);
	char name[32];
	int length = snprintf(name, sizeof name, "fn_%llx", (unsigned long long)j->starts[i]);
	int rc = keep(j, name, (size_t)length, &f.function);
	return rc ? rc : answers_add(j->out, j->addresses[i], ANSWER_START, &f, 1, j->err);
}

/* --- all of it --- */

static void finish(struct job *j)
{
	size_t n_tables = j->dwarf.n_texts;
	dwarf_result_finish(&j->dwarf);
	if (j->has_sections)
		sections_finish(&j->sections);
	if (j->has_alt_sections)
		sections_finish(&j->alt_sections);
	if (j->has_alt_file)
		elf_file_finish(&j->alt_file);
	if (j->has_debug_file)
		elf_file_finish(&j->debug_file);
	if (j->has_mini)
		elf_image_close(&j->mini);
	for (size_t i = 0; i < THREADS_MAX; i++)
		buf_finish(&j->plains[i]);
	free(j->mini_bytes);
	free(j->symbols);
	free(j->starts);
	free(j->entry_symbols);
	for (size_t i = 0; j->texts_of && i < n_tables; i++)
		free(j->texts_of[i]);
	free(j->texts_of);
	free(j->symbol_texts);
	free(j->texts);
	index_finish(&j->text_index);
}

static int join_all(struct job *j, struct resolve_result *result)
{
	open_debug_file(j);
	result->has_symtab = j->binary->has_symtab || (j->has_debug_file && j->debug_file.has_symtab);
	if (!result->has_symtab)
		j->has_mini = elf_file_mini(j->binary, &j->mini, &j->mini_bytes);
	int rc = join_symbols(j, j->addresses, j->n, j->symbols);
	if (rc == 0)
		rc = join_debug(j, result);
	if (rc == 0)
		rc = join_entries(j);
	if (rc == 0)
		rc = find_starts(j);
	return rc;
}

int resolve(const struct elf_file *f, const uint64_t *addresses, size_t n, const struct resolve_options *o,
            struct answers_builder *ret, struct resolve_result *ret_result, struct error *err)
{
	struct job j = { .binary = f, .addresses = addresses, .n = n, .options = o, .out = ret, .err = err, .threads = o->threads };
	*ret_result = (struct resolve_result){ 0 };
	if (j.threads == 0)
		j.threads = processors_available();
	if (j.threads > THREADS_MAX)
		j.threads = THREADS_MAX;
	for (size_t i = 0; i < THREADS_MAX; i++)
		buf_init(&j.plains[i], BUF_MAX_DEFAULT);
	j.symbols = calloc(n + 1, sizeof(*j.symbols));
	int rc = j.symbols ? 0 : error_nomem(err, "addresses");
	if (rc == 0)
		rc = join_all(&j, ret_result);
	if (rc == 0)
		rc = collect(&j);
	if (rc == 0) {
		demangle_all(&j);
		rc = write_texts(&j);
	}
	for (size_t i = 0; i < n && rc == 0; i++)
		rc = add_answer(&j, i);
	ret_result->damaged |= j.overflowed;
	finish(&j);
	return rc;
}
