/*
 * What must be known of a program before it is started under jemalloc: is one inside it
 * or among its libraries, which environment variable does that one read, and if there
 * is none, which library can be put under it.
 */
#ifndef CLI_LAUNCH_H
#define CLI_LAUNCH_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include "attach/jemalloc_file.h"
#include "base/error.h"

/* A program or library that was looked into for jemalloc's own strings. */
struct jemalloc {
	char path[PATH_MAX];             /* "" : none found */
	char variables[JEMALLOC_VARIABLES][48];   /* "MALLOC_CONF", "_RJEM_MALLOC_CONF" … */
	size_t n_variables;
	char version[64];                /* "5.3.0-0-g54eaed1d"; "": not found */
	bool without_profiling;          /* looks like a build without --enable-prof */
	bool thread_names;               /* knows prof_sys_thread_name */
};

struct program {
	char path[PATH_MAX];             /* the file that runs, found in PATH */
	char real[PATH_MAX];             /* the ELF file: of a script its interpreter */
	bool dynamic, traceable;         /* has a loader; that is glibc's */
	struct jemalloc jemalloc;        /* what it would run with by itself */
	char preload[PATH_MAX];          /* library to put under it; "": not needed */
	struct jemalloc preloaded;
};

/*
 * Finds and looks into the program name; library (may be NULL) is what to preload instead of the
 * system's libjemalloc.so.2. E_IO: not found, and path is ""; E_UNSUPPORTED: cannot be profiled this way, and why.
 * glibc's loader is asked which libraries will be there (what ldd does); the program itself does not run.
 */
int launch_inspect(const char *name, const char *library, struct program *ret, struct error *err);

#endif
