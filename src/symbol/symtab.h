/*
 * Function symbols of an ELF file, joined with sorted addresses.
 *
 * A symbol names an address only if its size covers it. Of several that do: a function before an
 * untyped label, then the one that begins last (the innermost), then global before local, then the
 * plainest name. Hand-written assembly without sizes: in .symtab, which knows every label, such a
 * symbol reaches up to the next symbol (at most UNSIZED_MAX bytes); in .dynsym, which knows only
 * what is exported, it names nothing.
 */
#ifndef SYMBOL_SYMTAB_H
#define SYMBOL_SYMTAB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/elf_image.h"
#include "base/error.h"
#include "symbol/intervals.h"

#define UNSIZED_MAX 65536

enum symtab_kind {
	SYMTAB_FULL,         /* .symtab */
	SYMTAB_PART,         /* .symtab that lacks what .dynsym has */
	SYMTAB_DYNAMIC,      /* .dynsym */
};

struct symtab_hit {
	const char *name;    /* borrowed from the ELF file; NULL: none */
	size_t length;       /* of the name without its version ("@@GLIBC_2.2.5") */
	uint64_t start;
	enum symtab_kind kind;       /* of the table that named it */
};

/* A table that may be asked several times. */
struct symtab {
	const struct elf_image *image;       /* borrowed */
	enum symtab_kind kind;
	bool opened, exists;
	struct elf_symbols symbols;
	uint64_t *ends;                      /* of executable sections, by section number; 0: not executable */
	size_t n_ends;
	struct intervals sorted;             /* symbols that may name code, by their number; made for the first few addresses */
	bool is_sorted, cannot_sort;
};

/* Nothing is read before the first question. */
void symtab_init(struct symtab *s, const struct elf_image *image, enum symtab_kind kind);
void symtab_finish(struct symtab *s);

/*
 * Fills those of hits[0..n) that have no name yet. addresses is sorted, without repeats. A table that
 * is damaged or absurdly overlapping fills nothing. few: the table is sorted, and kept so, instead of gone through; the
 * answers are the same. E_NOMEM.
 */
int symtab_join(struct symtab *s, const uint64_t *addresses, size_t n, bool few, struct symtab_hit *hits, struct error *err);

#endif
