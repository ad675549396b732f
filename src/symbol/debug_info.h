/*
 * DWARF, joined with sorted addresses: which function each lies in, through which inlined calls,
 * and its line. Every unit that has some of the addresses is walked once, whatever their number.
 *
 *   debug_info_join (units.c)   addresses -> units, by the units' ranges
 *     scan_unit (scan.c)        one unit's tree -> chains of code nodes per address
 *     line rows (lines.c)       the unit's line table -> file, line, column per address
 *   debug_info_name (naming.c)  code nodes -> names, call sites
 *     scopes_qualify (scopes.c) names of those that the linker has no name for
 *
 * libdw reads the format; it exits when out of memory. One handle belongs to one thread.
 */
#ifndef SYMBOL_DEBUG_INFO_H
#define SYMBOL_DEBUG_INFO_H

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "symbol/elf_file.h"
#include "symbol/names.h"
#include "symbol/symtab.h"

#define NODE_NONE UINT32_MAX
#define NODES_MAX ((size_t)1 << 28)
#define NAME_BYTES_MAX ((size_t)64 << 10)    /* longer names are damage */

/* A function or an inlined call whose code has some of the addresses. */
struct code_node {
	Dwarf_Die die;
	uint32_t parent;             /* the node it was inlined into; NODE_NONE for a function */
	uint32_t function_node;      /* the function it is in; itself for a function */
	uint64_t code_bytes;         /* functions: how much code it claims */
	/* Filled by debug_info_name: */
	const char *function, *system_name;
	const char *call_file;       /* where the parent calls it (inlined calls) */
	uint32_t call_line, call_column, start_line;
	bool used;                   /* some address ended up in it */
};

/* Where the out-of-line code of an inlined function begins: by its abstract entry. */
struct concrete {
	void *origin;
	uint64_t entry;
};

/* Asks the symbol tables about further addresses: sorted, without repeats. */
typedef int symbols_ask(void *context, const uint64_t *addresses, size_t n,
                        struct symtab_hit *hits, struct error *err);

/* What is known of one address. */
struct code_place {
	uint32_t node;               /* innermost, or NODE_NONE */
	const char *file;            /* NULL: no line */
	uint32_t line, column;
	bool has_unit;               /* some unit's ranges include it */
};

/*
 * Work that is still allowed, so that a damaged or hostile file can't keep us busy for hours: real files need a
 * small part of it.
 */
struct debug_budget {
	uint64_t entry_bytes;        /* of debug information entries, walked or stepped over */
	uint64_t ranges;             /* range list entries */
	uint64_t hits;               /* pairs of entry and address */
	uint64_t rows;               /* of line tables */
	double seconds;              /* of this thread's processor time, for what libdw does inside one call */
	bool exceeded;
};

/* Takes that much from what is allowed; false, and exceeded is set, when there isn't so much left. */
static inline bool debug_spend(struct debug_budget *b, uint64_t *left, uint64_t amount)
{
	if (*left < amount)
		b->exceeded = true;
	else
		*left -= amount;
	return !b->exceeded;
}

struct debug_info {
	Dwarf *dwarf;
	const struct elf_file *binary;       /* knows where code can be */
	const uint64_t *addresses;           /* sorted, without repeats */
	size_t n;
	const struct symtab_hit *symbols;    /* per address: tells padding from code */
	bool have_symtab;
	struct names *names;                 /* where answers live */
	struct concrete *concretes;          /* of the units walked, languages with mangled names only */
	size_t n_concretes, concretes_capacity;
	struct code_place *places;           /* per address */
	struct code_node *nodes;
	size_t n_nodes, nodes_capacity;
	struct debug_budget budget;
	bool damaged;                        /* some of it could not be read */
};

/* file has the DWARF (the binary itself or its separate debug file). d must be finished in any case. */
int debug_info_open(struct debug_info *d, const struct elf_file *file,
                    const struct elf_file *binary, struct names *names);
void debug_info_finish(struct debug_info *d);

/* Fills places and nodes. Only running out of memory is an error; damage leaves places empty. */
int debug_info_join(struct debug_info *d, const uint64_t *addresses, size_t n,
                    const struct symtab_hit *symbols, bool have_symtab, struct error *err);
/* ask: the symbol tables, for functions that only they know the full name of. */
int debug_info_name(struct debug_info *d, symbols_ask *ask, void *ask_context, struct error *err);

/* --- between the files of this module --- */

/* Addresses of one unit, sorted: indexes into addresses. */
struct asked {
	uint64_t address;
	uint32_t index;
};

struct asked_list {
	struct asked *items;
	size_t n, capacity;
};

/* The first of the addresses >= value. */
size_t asked_lower_bound(const struct asked *items, size_t n, uint64_t value);

/* The next range of an entry's code; false at the end. Ranges where no code can be are skipped. */
struct range_walk {
	ptrdiff_t at;
	Dwarf_Addr base, low, high;
};
bool range_next(struct debug_info *d, Dwarf_Die *die, struct range_walk *w);

/* Languages whose functions have scopes written with "::", and mangled names. */
bool language_has_scopes(int language);
/* The address a function begins at; false when it has no code. */
bool code_entry(struct debug_info *d, Dwarf_Die *die, uint64_t *ret_address);

int scan_unit(struct debug_info *d, Dwarf_Die *unit, const struct asked_list *asked,
              struct error *err);
int lines_unit(struct debug_info *d, Dwarf_Die *unit, const struct asked_list *asked,
               struct error *err);

/*
 * The kept form of a source path that libdw gave: relative ones go behind the unit's directory,
 * when that is absolute (it isn't where the build mapped its folders away). NULL: out of memory.
 */
const char *lines_path(struct debug_info *d, const char *folder, const char *path);
/* The directory a unit was compiled in, or NULL. */
const char *lines_folder(Dwarf_Die *unit);

/* Position of an entry in the preorder of a unit, moved by hand (libdw has no parents). */
struct die_cursor {
	Dwarf_Die die;
	uint32_t depth;              /* 1: directly below the unit's entry */
	unsigned char *end;          /* of the unit */
};

#define CURSOR_DEPTH_MAX 4096

enum cursor_step { CURSOR_AT, CURSOR_END, CURSOR_DAMAGED };

/* To the first entry below the unit's. */
enum cursor_step cursor_begin(struct die_cursor *c, Dwarf_Die *unit);
/* To the first child, or when there is none to what comes after it. */
enum cursor_step cursor_into(struct die_cursor *c);
/* To what comes after the whole of this entry: its sibling, or an ancestor's. */
enum cursor_step cursor_over(struct die_cursor *c);

/* Names still to be qualified: the entry that stands in its scope, and the node it is for. */
struct scope_wanted {
	Dwarf_Die die;
	uint32_t node;
};

/* For all of wanted (reorders it). */
int scopes_qualify(struct debug_info *d, struct scope_wanted *wanted, size_t n, struct error *err);

#endif
