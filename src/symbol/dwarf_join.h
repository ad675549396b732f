/*
 * Debug information joined with sorted addresses: which function each lies in, through which inlined calls, and its line.
 * The units that have some of the addresses are read once each, spread over threads, and nothing but the answers is kept.
 */
#ifndef SYMBOL_DWARF_JOIN_H
#define SYMBOL_DWARF_JOIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "symbol/elf_file.h"
#include "symbol/files.h"
#include "symbol/sections.h"
#include "symbol/symtab.h"

struct dwarf_input {
	const struct elf_file *binary;           /* knows where code can be */
	const struct elf_file *file;             /* has the debug information: the binary or its debug file */
	struct debug_sections *sections;         /* of file */
	struct debug_sections *alt;              /* dwz's common file, or NULL */
	const struct file_source *files;         /* for .dwo and .dwp; may be NULL */
	const struct symtab_hit *symbols;        /* per address */
	bool have_symtab;
	size_t threads;
};

/* Names point into the sections, or into memory of the result. */
struct dwarf_frame {
	const char *name;            /* linkage name, or plain; NULL: unknown */
	const char *scope;           /* what stands before a plain name ("ns::Class"); NULL: nothing or not known */
	const char *file;            /* a path; NULL: not known */
	uint32_t line, column, start_line;
	uint64_t entry;              /* where the function's code begins out of line; 0 when not known */
	bool is_linkage;
};

struct dwarf_answer {
	uint32_t first, n;           /* frames, innermost first; n 0: nothing */
	bool has_function;           /* false: the one frame has only a line */
};

struct dwarf_result {
	struct dwarf_answer *answers;        /* one per address */
	struct dwarf_frame *frames;
	size_t n_frames;
	bool damaged;
	void *storage;
};

/* Only running out of memory is an error; damage leaves answers empty. */
int dwarf_join(const struct dwarf_input *in, const uint64_t *addresses, size_t n, struct dwarf_result *ret, struct error *err);
void dwarf_result_finish(struct dwarf_result *r);

#endif
