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
	free(j->mini_bytes);
	free(j->symbols);
	free(j->starts);
	free(j->entry_symbols);
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
            struct buf *ret, struct resolve_result *ret_result, struct error *err)
{
	struct job j = { .binary = f, .addresses = addresses, .n = n, .options = o, .err = err, .threads = o->threads };
	bool overflowed = false;
	*ret_result = (struct resolve_result){ 0 };
	if (j.threads == 0)
		j.threads = processors_available();
	if (j.threads > THREADS_MAX)
		j.threads = THREADS_MAX;
	j.symbols = calloc(n + 1, sizeof(*j.symbols));
	int rc = j.symbols ? 0 : error_nomem(err, "addresses");
	if (rc == 0)
		rc = join_all(&j, ret_result);
	if (rc == 0) {
		struct compose_input in = {
			.path = f->path, .addresses = addresses, .n = n, .symbols = j.symbols, .starts = j.starts, .dwarf = &j.dwarf,
			.entries = j.dwarf.entries, .entry_symbols = j.entry_symbols, .n_entries = j.n_entries, .threads = j.threads,
		};
		rc = compose(&in, ret, &overflowed, err);
	}
	ret_result->damaged |= overflowed;
	finish(&j);
	return rc;
}
