/*
 * A running process, seen from outside through /proc: which files it has mapped, where its jemalloc is, under which
 * prefix, and where the functions are that must be known to call it safely. Files are opened through /proc/PID
 * (map_files, root, exe), so mount namespaces, deleted and replaced files do no harm. Nothing is stopped here. Also
 * used by doctor.
 */
#ifndef ATTACH_PROCESS_H
#define ATTACH_PROCESS_H

#include <limits.h>
#include <sys/types.h>

#include "base/elf_image.h"
#include "base/error.h"

struct region {
	uint64_t start, end, offset;
	uint64_t inode, device;             /* 0: no file */
	bool executable, writable, readable;
	uint32_t path;                      /* offset in process.paths */
};

#define PROCESS_ENTRIES 8

/* A jemalloc in the process. */
struct process_jemalloc {
	char path[PATH_MAX];                /* of the file it is in, as the process sees it */
	char prefix[32];                    /* "", "je_", "_rjem_" */
	char conf_variable[48];             /* "MALLOC_CONF" */
	char version[64];                   /* "" when it can't be told from outside */
	uint64_t mallctl;                   /* addresses in the process; 0: not found (stripped) */
	uint64_t entries
		[PROCESS_ENTRIES]; /* malloc, free, ... of it, the busiest first: where a breakpoint is at its entry */
	size_t n_entries;
	bool library;                       /* a file of its own: all of its code is the allocator's */
	bool profiling_built_in;            /* as far as its strings tell */
	bool serves_malloc;                 /* what the program calls malloc is this one's */
	size_t region;                      /* the first executable one of its file */
};

#define PROCESS_JEMALLOCS 4

struct process {
	pid_t pid;
	char exe[PATH_MAX];
	struct region *regions;             size_t n_regions, regions_capacity;
	char *paths;                        size_t paths_n, paths_capacity;
	struct process_jemalloc jemallocs[PROCESS_JEMALLOCS];    /* those with mallctl and profiling first */
	size_t n_jemallocs;
	bool is_static;                     /* has no loader */
	bool musl;                          /* its loader is musl's */
	uint16_t machine;                   /* EM_ of its program */
	bool is64;
	char endpoint[256];                 /* of our agent in it, "unix:/path" or "http://127.0.0.1:1234"; "": none */
};

/*
 * pid may also be that of a thread. E_IO with what to do: no such process, one that has ended, a kernel thread, no
 * permission, no /proc. p is safe to close in any case.
 */
int process_open(struct process *p, pid_t pid, struct error *err);
/* Only the regions and their paths, as they are now. */
int process_open_map(struct process *p, pid_t pid, struct error *err);
void process_close(struct process *p);

/* The path of a region, "" when it has none; as the process sees it, without " (deleted)". */
const char *process_path(const struct process *p, const struct region *r);

/* A descriptor of the file behind a region, whatever has happened to its name; negative: the error's code. */
int process_file(const struct process *p, const struct region *r, struct error *err);
/* The ELF tables in it. */
int process_image(const struct process *p, const struct region *r, struct elf_image *ret, struct error *err);

/* What must be added to the file's addresses; false when the region isn't one of the file's loaded segments. */
bool process_bias(const struct region *r, const struct elf_image *e, uint64_t *ret_bias);

/* The region with that address; NULL when nothing is there. */
const struct region *process_region_at(const struct process *p, uint64_t address);

/*
 * The agent's endpoint, read from the name of a descriptor that the agent keeps open for this: /proc/PID/fd/N ->
 * "/memfd:heapgauge:URL (deleted)". False: there is none, or it can't be read.
 */
bool process_endpoint(pid_t pid, char *to, size_t room);

/* A number in /proc/PID/status or /proc/PID/task/TID/status ("Tgid", 10; "SigIgn", 16); false when it isn't there. */
bool process_status_number(pid_t pid, pid_t thread, const char *key, unsigned base, uint64_t *ret);

#endif
