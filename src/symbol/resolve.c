/*
 * The addresses of one binary: offsets become addresses, sorted and without repeats; symbol
 * tables and DWARF are joined with them; then each address gets its frames. DWARF's function wins
 * over the symbol table's, because it sees through inlining; the tables name what DWARF doesn't.
 */
#include "symbol/resolve.h"

#include <stdlib.h>
#include <string.h>

#include "symbol/debug_info.h"
#include "symbol/locate.h"
#include "symbol/symtab.h"

/* Frames of one address, and of all: a million and a hundred an address. */
#define INLINED_MAX 512
#define FRAMES_BASE ((size_t)1 << 20)
#define FRAMES_PER_ADDRESS 100

struct place {
	uint64_t address;
	size_t asked;                /* index in file_offsets */
};

struct job {
	const struct elf_file *binary;
	struct elf_file debug_file;          /* when there is one */
	bool has_debug_file;
	Elf *mini;                           /* what .gnu_debugdata holds, when nothing better is there */
	uint8_t *mini_bytes;
	uint64_t *addresses;                 /* sorted, without repeats */
	size_t n;
	struct place *places;                /* every address asked that is in the file, sorted */
	size_t n_places;
	struct symtab_hit *symbols;          /* per address */
	bool have_symtab;
	struct debug_info debug;
	bool has_debug;
	struct names *names;
	struct symbol_answer *unique;        /* per address */
};

static int compare_places(const void *a, const void *b)
{
	const struct place *x = a, *y = b;
	if (x->address != y->address)
		return x->address < y->address ? -1 : 1;
	return x->asked < y->asked ? -1 : x->asked > y->asked;
}

static int sort_addresses(struct job *j, const uint64_t *file_offsets, size_t n, struct error *err)
{
	j->places = calloc(n + 1, sizeof(*j->places));
	j->addresses = calloc(n + 1, sizeof(*j->addresses));
	j->symbols = calloc(n + 1, sizeof(*j->symbols));
	j->unique = calloc(n + 1, sizeof(*j->unique));
	if (!j->places || !j->addresses || !j->symbols || !j->unique)
		return error_nomem(err, "addresses");
	for (size_t i = 0; i < n; i++) {
		uint64_t address;
		if (elf_file_address(j->binary, file_offsets[i], &address))
			j->places[j->n_places++] = (struct place){ address, i };
	}
	qsort(j->places, j->n_places, sizeof(*j->places), compare_places);
	for (size_t i = 0; i < j->n_places; i++)
		if (j->n == 0 || j->addresses[j->n - 1] != j->places[i].address)
			j->addresses[j->n++] = j->places[i].address;
	return 0;
}

static int join_symbols(void *job, const uint64_t *addresses, size_t n, struct symtab_hit *hits,
                        struct error *err)
{
	struct job *j = job;
	int rc = symtab_join(j->binary->elf, SYMTAB_FULL, addresses, n, hits, err);
	if (rc == 0 && j->has_debug_file)
		rc = symtab_join(j->debug_file.elf, SYMTAB_FULL, addresses, n, hits, err);
	if (rc == 0 && j->mini)
		rc = symtab_join(j->mini, SYMTAB_PART, addresses, n, hits, err);
	if (rc == 0)
		rc = symtab_join(j->binary->elf, SYMTAB_DYNAMIC, addresses, n, hits, err);
	return rc;
}

static int join_debug(struct job *j, bool *ret_damaged, struct error *err)
{
	const struct elf_file *file = j->binary->has_debug_info ? j->binary : &j->debug_file;
	if (file != j->binary && !j->has_debug_file)
		return 0;
	if (debug_info_open(&j->debug, file, j->binary, j->names)) {
		*ret_damaged = file->has_debug_info;
		return 0;
	}
	j->has_debug = true;
	int rc = debug_info_join(&j->debug, j->addresses, j->n, j->symbols, j->have_symtab, err);
	if (rc == 0)
		rc = debug_info_name(&j->debug, join_symbols, j, err);
	*ret_damaged = j->debug.damaged || j->debug.budget.exceeded;
	return rc;
}

static struct symbol_frame *push_frame(struct symbol_answers *a)
{
	struct symbol_frame *f = ARRAY_PUSH(a->frames, a->n_frames, a->frames_capacity, SIZE_MAX);
	if (f)
		memset(f, 0, sizeof(*f));
	return f;
}

static int add_symbol_frame(struct job *j, size_t i, struct symbol_answers *a, struct error *err)
{
	const struct symtab_hit *hit = &j->symbols[i];
	const struct code_place *place = j->has_debug ? &j->debug.places[i] : NULL;
	if (!hit->name && !(place && place->file))
		return 0;
	struct symbol_frame *f = push_frame(a);
	if (!f)
		return error_nomem(err, "frames");
	if (hit->name) {
		const char *name = names_keep(j->names, hit->name, hit->length);
		f->function = name ? names_demangled(j->names, name) : NULL;
		if (!f->function)
			return error_nomem(err, "function names");
		f->system_name = strcmp(f->function, name) ? name : NULL;
	}
	if (place && place->file) {
		f->file = place->file;
		f->line = place->line;
		f->column = place->column;
	}
	return 0;
}

static int add_code_frames(struct job *j, size_t i, struct symbol_answers *a, struct error *err)
{
	const struct code_place *place = &j->debug.places[i];
	const char *file = place->file;
	uint32_t line = place->line, column = place->column;
	size_t depth = 0;
	for (uint32_t n = place->node; n != NODE_NONE && depth < INLINED_MAX; depth++) {
		const struct code_node *node = &j->debug.nodes[n];
		struct symbol_frame *f = push_frame(a);
		if (!f)
			return error_nomem(err, "frames");
		*f = (struct symbol_frame){ node->function, node->system_name, file, line, column,
			                    node->start_line };
		file = node->call_file;
		line = node->call_line;
		column = node->call_column;
		n = node->parent;
		/* A function without any name in DWARF: the symbol table may know it. */
		if (n == NODE_NONE && !f->function && j->symbols[i].name) {
			const struct symtab_hit *hit = &j->symbols[i];
			const char *name = names_keep(j->names, hit->name, hit->length);
			f->function = name ? names_demangled(j->names, name) : NULL;
			if (!f->function)
				return error_nomem(err, "function names");
			f->system_name = strcmp(f->function, name) ? name : NULL;
		}
	}
	return 0;
}

static int make_frames(struct job *j, struct symbol_answers *a, bool *ret_damaged, struct error *err)
{
	size_t most = FRAMES_BASE + FRAMES_PER_ADDRESS * j->n;
	for (size_t i = 0; i < j->n; i++) {
		size_t first = a->n_frames;
		bool code = j->has_debug && j->debug.places[i].node != NODE_NONE;
		if (code && first > most) {
			*ret_damaged = true;             /* no program inlines like that */
			code = false;
		}
		int rc = code ? add_code_frames(j, i, a, err) : add_symbol_frame(j, i, a, err);
		if (rc)
			return rc;
		j->unique[i] = (struct symbol_answer){ (uint32_t)first, (uint32_t)(a->n_frames - first) };
	}
	for (size_t i = 0, k = 0; i < j->n_places; i++) {
		while (j->addresses[k] != j->places[i].address)
			k++;
		a->answers[j->places[i].asked] = j->unique[k];
	}
	return 0;
}

static int give_addresses(const struct job *j, size_t n, uint64_t **ret, struct error *err)
{
	if (!ret)
		return 0;
	uint64_t *addresses = malloc((n + 1) * sizeof(*addresses));
	if (!addresses)
		return error_nomem(err, "addresses");
	for (size_t i = 0; i < n; i++)
		addresses[i] = NO_ADDRESS;
	for (size_t i = 0; i < j->n_places; i++)
		addresses[j->places[i].asked] = j->places[i].address;
	*ret = addresses;
	return 0;
}

static void finish(struct job *j)
{
	debug_info_finish(&j->debug);
	if (j->has_debug_file)
		elf_file_finish(&j->debug_file);
	elf_end(j->mini);
	free(j->mini_bytes);
	free(j->places);
	free(j->addresses);
	free(j->symbols);
	free(j->unique);
}

int resolve_file(const struct elf_file *f, const uint64_t *file_offsets, size_t n,
                 enum symbol_depth depth, const struct symbol_options *o,
                 struct symbol_answers *ret, uint64_t **ret_addresses, bool *ret_damaged,
                 struct error *err)
{
	struct symbol_answers a = { 0 };
	struct job j = { .binary = f };
	bool damaged = false;
	int rc = 0;
	a.answers = calloc(n + 1, sizeof(*a.answers));
	a.storage = j.names = calloc(1, sizeof(*j.names));
	if (!a.answers || !j.names)
		rc = error_nomem(err, "answers");
	else
		names_init(j.names);
	if (rc == 0)
		rc = sort_addresses(&j, file_offsets, n, err);
	if (rc == 0 && depth != SYMBOL_NONE && j.n) {
		bool all_here = f->has_debug_info || (depth == SYMBOL_TABLE && f->has_symtab);
		j.has_debug_file = !all_here && locate_debug_file(f, o, &j.debug_file);
		j.have_symtab = f->has_symtab || (j.has_debug_file && j.debug_file.has_symtab);
		if (!j.have_symtab)
			j.mini = elf_file_mini(f, &j.mini_bytes);
		rc = join_symbols(&j, j.addresses, j.n, j.symbols, err);
		if (rc == 0 && depth == SYMBOL_FULL)
			rc = join_debug(&j, &damaged, err);
		if (rc == 0)
			rc = make_frames(&j, &a, &damaged, err);
	}
	if (rc == 0)
		rc = give_addresses(&j, n, ret_addresses, err);
	finish(&j);
	if (rc == E_NOMEM && j.names && j.names->full)
		rc = error_set(err, E_LIMIT, "%s: its names take more than 1 GiB: damaged", f->path);
	if (rc) {
		symbol_answers_finish(&a);
		return rc;
	}
	*ret = a;
	if (ret_damaged)
		*ret_damaged = damaged;
	return 0;
}

void symbol_answers_finish(struct symbol_answers *a)
{
	if (!a)
		return;
	names_finish(a->storage);
	free(a->storage);
	free(a->answers);
	free(a->frames);
	memset(a, 0, sizeof(*a));
}

int symbol_resolve(const char *path, const char *build_id, const uint64_t *file_offsets, size_t n,
                   enum symbol_depth depth, const struct symbol_options *o,
                   struct symbol_answers *ret, struct error *err)
{
	struct elf_file f;
	int rc = elf_file_open(&f, path, err);
	if (rc == 0 && build_id && *build_id && *f.build_id && strcmp(build_id, f.build_id))
		rc = error_set(err, E_FORMAT,
		               "%s is not the file the profile was taken from (build id %s, profile has %s)",
		               path, f.build_id, build_id);
	if (rc == 0)
		rc = resolve_file(&f, file_offsets, n, depth, o, ret, NULL, NULL, err);
	elf_file_finish(&f);
	return rc;
}
