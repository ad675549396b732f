/*
 * Finding files: the binary a mapping came from, and the separate files with its debug
 * information. Build ids decide what matches; names only say where to look.
 */
#ifndef SYMBOL_LOCATE_H
#define SYMBOL_LOCATE_H

#include <pthread.h>

#include "symbol/elf_file.h"
#include "symbol/files.h"
#include "symbol/symbol.h"

/*
 * Answers requests for files that belong to a binary. In this order: the search directories; PPROF_BINARY_PATH; the places
 * of the system, below sysroot first: .build-id of /usr/lib/debug, then where the binary itself says; debuginfod. What
 * has another build id than asked for is not taken; a line in warnings (may be NULL) says so if nothing better is found.
 * From any thread; options and warnings stay the caller's.
 */
struct locator {
	const struct symbol_options *options;        /* NULL: none */
	struct buf *warnings;                        /* guarded by lock */
	pthread_mutex_t lock;
};
void locator_init(struct locator *l, const struct symbol_options *o, struct buf *warnings);
void locator_finish(struct locator *l);
struct file_source locator_files(struct locator *l);

/* The file with f's debug information, or failing that, with its .symtab. False when there is none. */
bool locate_debug_file(const struct elf_file *f, const struct symbol_options *o, struct elf_file *ret);

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

/*
 * Looks for it in the search directories (DIR/.build-id, DIR/path, DIR/name, or DIR itself when it is a file), in
 * PPROF_BINARY_PATH, and asks debuginfod.
 */
bool locate_binary(const struct mapped_file *m, const struct symbol_options *o,
                   struct elf_file *ret);

#endif
