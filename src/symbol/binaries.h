/*
 * The binaries of a profile: its mappings grouped by file, with the file on this machine that each
 * was, as far as that can be told.
 */
#ifndef SYMBOL_BINARIES_H
#define SYMBOL_BINARIES_H

#include "profile/profile.h"
#include "symbol/elf_file.h"
#include "symbol/locate.h"

enum binary_state {
	BINARY_NO_FILE,      /* [vdso], anonymous memory, memfd: nothing to read, nothing to say */
	BINARY_OPEN,
	BINARY_MISSING,      /* not on this machine */
	BINARY_REFUSED,      /* another file than the one mapped, or unreadable: why is in error */
};

struct binary {
	uint32_t file, build_id;             /* strings of the profile */
	bool is_main, deleted;
	struct mapped_extent *extents;       /* of its code; those that can't be real are left out */
	size_t n_extents, extents_capacity;
	enum binary_state state;
	struct elf_file elf;                 /* when open */
	struct error error;
};

struct binaries {
	struct binary *items;
	size_t n, capacity;
	uint32_t *of_mapping;                /* index into items of each mapping */
};

/* Groups the mappings. is_used (n_mappings flags) tells which have code of interest besides the executable ones. */
int binaries_init(struct binaries *b, const struct profile *p, const bool *is_used, struct error *err);
void binaries_finish(struct binaries *b);

/* Finds and opens the file. Only --binary's file (for the main program) may fail; the others get a state. */
int binary_open(struct binary *b, const struct profile *p, const struct symbol_options *o,
                struct error *err);

/* Which mappings have locations; free() it. NULL when out of memory. */
bool *binaries_used(const struct profile *p);

/* One warning line, made harmless for a terminal, unless it is already there. */
void binaries_warn(struct buf *warnings, const char *line);

#endif
