/*
 * A running process, seen from outside through /proc: which files it has mapped, where its jemalloc is, under which prefix, and where the
 * functions are that must be known to call it safely. Files are opened through /proc/PID (map_files, root, exe), so mount namespaces,
 * deleted and replaced files do no harm. Nothing is stopped here. Also used by doctor.
 */
#ifndef ATTACH_PROCESS_H
#define ATTACH_PROCESS_H

#include <limits.h>
#include <sys/types.h>

#include "base/elf_image.h"
#include "base/error.h"

struct region {
	uint64_t start, end, offset;
	uint64_t inode;
	bool executable, writable, readable;
	uint32_t path;                      /* offset in process.paths */
};

/* A jemalloc in the process. */
struct process_jemalloc {
	char path[PATH_MAX];                /* of the file it is in, as the process sees it */
	char prefix[32];                    /* "", "je_", "_rjem_" */
	char conf_variable[48];             /* "MALLOC_CONF" */
	char version[64];                   /* "" when it can't be told from outside */
	uint64_t mallctl;                   /* addresses in the process; 0: not found (stripped) */
	uint64_t entries[8];                /* malloc, calloc, ... of it: where a breakpoint is at an allocator's entry */
	size_t n_entries;
	bool library;                       /* a file of its own: all of its code is the allocator's */
	bool profiling_built_in;            /* as far as its strings tell */
};

#define PROCESS_JEMALLOCS 4

struct process {
	pid_t pid;
	char exe[PATH_MAX];
	struct region *regions;             size_t n_regions, regions_capacity;
	char *paths;                        size_t paths_n, paths_capacity;
	struct process_jemalloc jemallocs[PROCESS_JEMALLOCS];
	size_t n_jemallocs;
	bool is_static;                     /* has no loader */
	bool musl;                          /* its loader is musl's */
	uint16_t machine;                   /* EM_ of its program */
	bool is64;
	char endpoint[256];                 /* of our agent in it, "unix:/path" or "http://127.0.0.1:1234"; "": none */
};

/* E_IO with what to do: no such process, no permission, no /proc. */
int process_open(struct process *p, pid_t pid, struct error *err);
void process_close(struct process *p);

/*
 * The agent's endpoint, read from the name of a descriptor that the agent keeps open for this: /proc/PID/fd/N -> "/memfd:heapgauge:URL (deleted)".
 * False: there is none, or it can't be read.
 */
bool process_endpoint(pid_t pid, char *to, size_t room);

#endif
