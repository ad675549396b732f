/*
 * One binary: symbol tables and debug information are joined with its addresses, then each address gets its frames (compose.h). Debug
 * information's function wins over the symbol table's, because it sees through inlining; the tables name what it doesn't, and
 * .eh_frame tells at least where a function begins.
 */
#include "symbol/resolve.h"

#include <elf.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/processors.h"
#include "symbol/compose.h"
#include "symbol/dwarf_join.h"
#include "symbol/eh_frame.h"
#include "symbol/sections.h"
#include "symbol/symtab.h"

#define THREADS_MAX 8
#define DECOMPRESSED_LIMIT ((uint64_t)4 << 30)
#define TABLES 4                                 /* of symbols: at most */

struct resolver {
	const struct elf_file *binary;
	struct resolve_options options;
	size_t threads;
	size_t n_asked;                      /* questions */
	bool opened;                         /* what follows is there */
	struct elf_file debug_file;          /* when there is one */
	bool has_debug_file, has_symtab;
	struct elf_file alt_file;
	bool has_alt_file;
	struct elf_image mini;               /* what .gnu_debugdata holds, when nothing better is there */
	uint8_t *mini_bytes;
	bool has_mini;
	struct symtab tables[TABLES];        /* in the order in which they are asked */
	size_t n_tables;
	struct debug_sections sections, alt_sections;
	bool has_sections, has_alt_sections;
	struct dwarf *dwarf;
};

/* One question. */
struct job {
	struct resolver *resolver;
	const struct elf_file *binary;
	const uint64_t *addresses;
	size_t n, threads;
	bool few;
	struct symtab_hit *symbols;          /* per address */
	uint64_t *starts;                    /* per address: of its function, by .eh_frame */
	struct dwarf_result dwarf;
	size_t n_entries;                    /* of dwarf: sorted, without repeats */
	struct symtab_hit *entry_symbols;    /* per entry: symbols may have the full names of what begins there */
	struct error *err;
};

/* --- files --- */

static bool open_other(struct resolver *r, const struct file_request *request, struct elf_file *ret)
{
	char path[PATH_MAX];
	const struct file_source *files = r->options.files;
	int fd = files ? files->open(files->context, request, path, sizeof path) : -1;
	if (fd < 0)
		return false;
	if (elf_file_open_fd(ret, fd, path, NULL) == 0)
		return true;
	elf_file_finish(ret);
	return false;
}

static void open_debug_file(struct resolver *r)
{
	const struct elf_file *f = r->binary;
	bool enough = f->has_debug_info || (r->options.depth == SYMBOL_TABLE && f->has_symtab);
	struct file_request request = { .kind = FILE_DEBUG, .of = f->path, .build_id = f->build_id };
	request.name = elf_file_debuglink(f, &request.crc);
	if (!enough)
		r->has_debug_file = open_other(r, &request, &r->debug_file);
}

static const struct elf_file *debug_of(const struct resolver *r)
{
	if (r->binary->has_debug_info)
		return r->binary;
	return r->has_debug_file && r->debug_file.has_debug_info ? &r->debug_file : NULL;
}

static void open_alt_file(struct resolver *r, const struct elf_file *of)
{
	char id[BUILD_ID_TEXT];
	const char *name = elf_file_altlink(of, id);
	if (!name)
		return;
	r->has_alt_file = open_other(r, &(struct file_request){ .kind = FILE_ALT, .of = of->path, .name = name, .build_id = id }, &r->alt_file);
}

static void open_tables(struct resolver *r)
{
	symtab_init(&r->tables[r->n_tables++], &r->binary->image, SYMTAB_FULL);
	if (r->has_debug_file)
		symtab_init(&r->tables[r->n_tables++], &r->debug_file.image, SYMTAB_FULL);
	if (r->has_mini)
		symtab_init(&r->tables[r->n_tables++], &r->mini, SYMTAB_PART);
	symtab_init(&r->tables[r->n_tables++], &r->binary->image, SYMTAB_DYNAMIC);
}

static void open_sections(struct resolver *r, const struct elf_file *file)
{
	uint64_t limit = r->options.decompressed_limit ? r->options.decompressed_limit : DECOMPRESSED_LIMIT;
	open_alt_file(r, file);
	sections_init(&r->sections, &file->image, limit);
	r->has_sections = true;
	sections_unpack(&r->sections, r->threads);
	if (!r->has_alt_file)
		return;
	sections_init(&r->alt_sections, &r->alt_file.image, limit);
	r->has_alt_sections = true;
	sections_unpack(&r->alt_sections, r->threads);
}

/* Once, with the first question. */
static void open_files(struct resolver *r)
{
	if (r->opened)
		return;
	open_debug_file(r);
	r->has_symtab = r->binary->has_symtab || (r->has_debug_file && r->debug_file.has_symtab);
	if (!r->has_symtab)
		r->has_mini = elf_file_mini(r->binary, &r->mini, &r->mini_bytes);
	open_tables(r);
	const struct elf_file *file = r->options.depth == SYMBOL_FULL ? debug_of(r) : NULL;
	if (file)
		open_sections(r, file);
	r->opened = true;
}

static int open_dwarf(struct resolver *r, struct error *err)
{
	struct dwarf_input in = {
		.binary = r->binary, .file = debug_of(r), .sections = &r->sections, .alt = r->has_alt_sections ? &r->alt_sections : NULL,
		.files = r->options.files, .have_symtab = r->has_symtab, .kept_limit = r->options.kept_limit,
	};
	return r->dwarf ? 0 : dwarf_open(&r->dwarf, &in, err);
}

/* --- joins --- */

static int join_symbols(struct job *j, const uint64_t *addresses, size_t n, struct symtab_hit *hits)
{
	struct resolver *r = j->resolver;
	int rc = 0;
	for (size_t i = 0; i < r->n_tables && rc == 0; i++)
		rc = symtab_join(&r->tables[i], addresses, n, j->few, hits, j->err);
	return rc;
}

static int join_debug(struct job *j, struct resolve_result *result)
{
	struct resolver *r = j->resolver;
	struct dwarf_question q = { .addresses = j->addresses, .n = j->n, .symbols = j->symbols, .threads = j->threads, .few = j->few };
	if (!r->has_sections)
		return 0;
	int rc = open_dwarf(r, j->err);
	if (rc == 0)
		rc = dwarf_join(r->dwarf, &q, &j->dwarf, j->err);
	result->has_debug = true;
	result->damaged = j->dwarf.damaged || r->sections.damaged || (r->has_alt_sections && r->alt_sections.damaged);
	if (rc == 0 && (j->dwarf.too_big || r->sections.too_big || (r->has_alt_sections && r->alt_sections.too_big)))
		rc = error_set(j->err, E_NOMEM, "%s: its debug information, unpacked, is more than there is memory for", r->binary->path);
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

/* --- all of it --- */

static void finish(struct job *j)
{
	dwarf_result_finish(&j->dwarf);
	free(j->symbols);
	free(j->starts);
	free(j->entry_symbols);
}

static int join_all(struct job *j, struct resolve_result *result)
{
	open_files(j->resolver);
	result->has_symtab = j->resolver->has_symtab;
	int rc = join_symbols(j, j->addresses, j->n, j->symbols);
	if (rc == 0)
		rc = join_debug(j, result);
	if (rc == 0)
		rc = join_entries(j);
	if (rc == 0)
		rc = find_starts(j);
	return rc;
}

int resolver_ask(struct resolver *r, const uint64_t *addresses, size_t n, struct buf *ret, struct resolve_result *ret_result,
                 struct error *err)
{
	struct job j = { .resolver = r, .binary = r->binary, .addresses = addresses, .n = n, .threads = r->threads, .err = err };
	bool overflowed = false;
	*ret_result = (struct resolve_result){ 0 };
	/* Whoever asks once is answered soonest if nothing is kept. */
	j.few = r->n_asked++ > 0 && n <= RESOLVER_FEW;
	j.symbols = calloc(n + 1, sizeof(*j.symbols));
	int rc = j.symbols ? 0 : error_nomem(err, "addresses");
	if (rc == 0)
		rc = join_all(&j, ret_result);
	if (rc == 0) {
		struct compose_input in = {
			.path = r->binary->path, .addresses = addresses, .n = n, .symbols = j.symbols, .starts = j.starts, .dwarf = &j.dwarf,
			.entries = j.dwarf.entries, .entry_symbols = j.entry_symbols, .n_entries = j.n_entries, .threads = j.threads,
		};
		rc = compose(&in, ret, &overflowed, err);
	}
	ret_result->damaged |= overflowed;
	finish(&j);
	return rc;
}

int resolver_open(struct resolver **ret, const struct elf_file *f, const struct resolve_options *o, struct error *err)
{
	struct resolver *r = calloc(1, sizeof(*r));
	if (!r)
		return error_nomem(err, "a reader");
	r->binary = f;
	r->options = *o;
	r->threads = o->threads ? o->threads : processors_available();
	r->threads = r->threads < THREADS_MAX ? r->threads : THREADS_MAX;
	*ret = r;
	return 0;
}

void resolver_close(struct resolver *r)
{
	if (!r)
		return;
	dwarf_close(r->dwarf);
	for (size_t i = 0; i < r->n_tables; i++)
		symtab_finish(&r->tables[i]);
	if (r->has_sections)
		sections_finish(&r->sections);
	if (r->has_alt_sections)
		sections_finish(&r->alt_sections);
	if (r->has_alt_file)
		elf_file_finish(&r->alt_file);
	if (r->has_debug_file)
		elf_file_finish(&r->debug_file);
	if (r->has_mini)
		elf_image_close(&r->mini);
	free(r->mini_bytes);
	free(r);
}

int resolve(const struct elf_file *f, const uint64_t *addresses, size_t n, const struct resolve_options *o,
            struct buf *ret, struct resolve_result *ret_result, struct error *err)
{
	struct resolver *r = NULL;
	int rc = resolver_open(&r, f, o, err);
	*ret_result = (struct resolve_result){ 0 };
	if (rc == 0)
		rc = resolver_ask(r, addresses, n, ret, ret_result, err);
	resolver_close(r);
	return rc;
}
