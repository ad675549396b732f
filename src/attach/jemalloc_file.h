/*
 * Is jemalloc inside an ELF file? Told by strings that no stripping removes: the name of an option of its own, and the
 * environment variable it reads, whose beginning is the prefix it was built with (_RJEM_MALLOC_CONF in Rust programs).
 * Shared by what starts programs and what looks into running ones.
 */
#ifndef ATTACH_JEMALLOC_FILE_H
#define ATTACH_JEMALLOC_FILE_H

#include "base/elf_image.h"

#define JEMALLOC_VARIABLES 4

struct jemalloc_file {
	char variables[JEMALLOC_VARIABLES][48];     /* "MALLOC_CONF", "_RJEM_MALLOC_CONF", ... */
	size_t n_variables;
	char version[64];                           /* "5.3.0-0-g54ea...", "" when it isn't there */
	bool without_profiling; /* surely built without --enable-prof; before 5.3 it can't be told */
	bool thread_names;                          /* knows prof_sys_thread_name */
};

/* False, *ret untouched: no jemalloc in it. Reads all that the file has loaded, once for each string looked for. */
bool jemalloc_file_look(const struct elf_image *e, struct jemalloc_file *ret);

/*
 * What the functions of a jemalloc that reads that variable begin with: "", "_rjem_". "" too when it doesn't fit into
 * room.
 */
void jemalloc_file_prefix(const char *variable, char *to, size_t room);

#endif
