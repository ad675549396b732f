/*
 * Finding files: the binary a mapping came from, and the separate file with its debug
 * information. Build ids decide what matches; names only say where to look.
 */
#ifndef SYMBOL_LOCATE_H
#define SYMBOL_LOCATE_H

#include "symbol/elf_file.h"
#include "symbol/symbol.h"

/*
 * The file with f's debug information (or, failing that, its .symtab): in .build-id of the search
 * directories and of /usr/lib/debug, then where .gnu_debuglink points. False when there is none.
 */
bool locate_debug_file(const struct elf_file *f, const struct symbol_options *o,
                       struct elf_file *ret);

/* What is known of the file that was mapped. */
struct mapped_extent {
	uint64_t offset, bytes;
};

struct mapped_file {
	const char *path, *build_id;         /* build_id "" when unknown */
	const struct mapped_extent *extents; /* none when unknown */
	size_t n_extents;
};

/* Is f that file, as far as can be told? With neither build id nor extents it may be any. Otherwise the reason, which goes on behind "PATH ". */
bool locate_matches(const struct elf_file *f, const struct mapped_file *m, struct error *ret_reason);

/* Looks for it in the search directories: DIR/.build-id, DIR/path, DIR/name, or DIR itself when it is a file. */
bool locate_binary(const struct mapped_file *m, const struct symbol_options *o,
                   struct elf_file *ret);

#endif
