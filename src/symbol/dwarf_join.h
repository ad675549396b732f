/*
 * Debug information joined with sorted addresses: which function each lies in, through which inlined calls, and its line.
 * The units that have some of the addresses are read once each, spread over threads, and nothing but the answers is kept. Where a few
 * addresses are asked again and again, what was read is indexed, and kept instead.
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

/* All of it stays the caller's until dwarf_close(). */
struct dwarf_input {
	const struct elf_file *binary;           /* knows where code can be */
	const struct elf_file *file;             /* has the debug information: the binary or its debug file */
	struct debug_sections *sections;         /* of file */
	struct debug_sections *alt;              /* dwz's common file, or NULL */
	const struct file_source *files;         /* for .dwo and .dwp; may be NULL */
	bool have_symtab;
	uint64_t kept_limit;                     /* bytes of what is kept for a few addresses; 0: 64 MiB, which is the most. With more, it begins anew */
};

struct dwarf;
/* The units are found; nothing else is read yet. E_NOMEM. */
int dwarf_open(struct dwarf **ret, const struct dwarf_input *in, struct error *err);
void dwarf_close(struct dwarf *d);

struct dwarf_question {
	const uint64_t *addresses;               /* sorted, without repeats */
	size_t n;
	const struct symtab_hit *symbols;        /* per address */
	size_t threads;
	bool few;                                /* so few that it pays to keep what was read for the next question; one thread is used */
};

/* A name or a path, in the sections or in memory of the result. Each thread has made a table of those that it met. */
struct dwarf_text {
	const char *at;
	bool is_name;
};

struct dwarf_texts {
	struct dwarf_text *items;
	size_t n;
};

#define DWARF_NO_TEXT UINT32_MAX

struct dwarf_frame {
	uint16_t table, file_table;  /* whose texts: name and scope, file */
	bool is_linkage;
	uint32_t name;               /* linkage name, or plain; or DWARF_NO_TEXT, like the others */
	uint32_t scope;              /* what stands before a plain name ("ns::Class"), when it is known */
	uint32_t file;               /* a path */
	uint32_t line, column, start_line;
	uint64_t entry;              /* where the code of a function with a plain name begins out of line; 0 when not known */
};

#define DWARF_FRAMES_MAX 512

struct dwarf_result {
	struct dwarf_texts *texts;   /* n_texts tables */
	size_t n_texts;
	uint64_t *entries;           /* those of all frames whose name is a plain one, in no order */
	size_t n_entries;
	bool damaged;
	bool too_big;                /* some of the split files' sections are: not for damage, but for memory */
	void *storage;
};

/* Frames of address i, innermost first, into room for DWARF_FRAMES_MAX; their number. One without any text: only a line. */
size_t dwarf_frames(const struct dwarf_result *r, size_t i, struct dwarf_frame *ret);
/* Has the outermost of them a name? */
bool dwarf_names_function(const struct dwarf_result *r, size_t i);

/* One question at a time, whose result is finished before the next. Only running out of memory is an error; damage leaves answers empty. */
int dwarf_join(struct dwarf *d, const struct dwarf_question *q, struct dwarf_result *ret, struct error *err);
void dwarf_result_finish(struct dwarf_result *r);

#endif
