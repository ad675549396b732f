/*
 * heapgauge: heap profiles of the process you are in, from the jemalloc it runs on.
 *
 *     #include <heapgauge.h>
 *
 *     hg_agent *agent;
 *     hg_agent_options options = HG_AGENT_OPTIONS_INIT;
 *     options.listen = "127.0.0.1:6060";
 *     int rc = hg_agent_start(&options, &agent);      // then: go tool pprof http://127.0.0.1:6060/debug/pprof/heap
 *     if (rc)
 *         fprintf(stderr, "no heap profiles: %s\n", hg_strerror(rc));
 *
 * or, without an endpoint:
 *
 *     void *profile;
 *     size_t n;
 *     if (hg_dump_pprof(&profile, &n) == HG_OK) {
 *         ... n bytes of gzipped pprof ...
 *         hg_free(profile, n);
 *     }
 *
 * Results are HG_OK or one of the negative HG_ codes; hg_strerror() tells what to change. Outputs (ret_...) are
 * only written on success. Every function may be called from any thread at any time, except from a signal handler, from
 * inside an allocator's hook, or in the child of a vfork. After a fork the child has no agent, and all functions work in it.
 *
 * Nothing here takes memory from malloc, with one exception: starting a thread does (the C library's, some
 * hundred bytes). hg_agent_start() starts its threads, and the first dump starts one that stays: a library that has the static
 * one inside must not be unloaded (dlclose does nothing to the shared one).
 */
#ifndef HEAPGAUGE_H
#define HEAPGAUGE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define HG_API __attribute__((visibility("default")))
#else
#define HG_API
#endif

#define HG_VERSION "0.1.0"

/* The version of the library, as "0.1.0"; HG_VERSION is that of this header. */
HG_API const char *hg_version(void);

enum {
	HG_OK = 0,
	HG_NO_JEMALLOC = -1,    /* the process has no jemalloc that could be found */
	HG_NO_PROFILING = -2,   /* its jemalloc was built without profiling */
	HG_PROF_OFF = -3,       /* opt.prof is false: it can only be switched on when the program starts */
	HG_INACTIVE = -4,       /* nothing is being sampled: hg_activate() */
	HG_BUSY = -5,           /* another dump is on its way */
	HG_NO_MEMORY = -6,
	HG_IO = -7,             /* the system refused something: no /proc, a full disk, an address in use, ... */
	HG_INVALID = -8,        /* an argument that makes no sense */
	HG_UNSAFE = -9,         /* refused: a listener that others could reach, without a token or without allow_remote */
	HG_RUNNING = -10,       /* the agent runs already */
	HG_NO_SYMBOLIZER = -11, /* names were asked for, and no heapgauge program was found that could look them up */
	HG_FAILED = -12         /* jemalloc refused, or the dump could not be read */
};

/*
 * One sentence that says what is wrong and what to do about it; for HG_PROF_OFF with the environment variable that this
 * process' jemalloc reads. A static text, never NULL.
 */
HG_API const char *hg_strerror(int result);

/* --- jemalloc ----------------------------------------------------------------------------------- */

/* jemalloc's mallctl(), by whatever name. */
typedef int hg_mallctl_function(const char *name, void *oldp, size_t *oldlenp, void *newp, size_t newlen);

/*
 * jemalloc is found by itself under any prefix: mallctl, je_mallctl, _rjem_mallctl, ...; in the program,
 * in a library, or in the program's symbol table. Where that fails (stripped, a prefix inside a namespace), or to choose
 * one of several, name its mallctl. NULL: look again. conf_variable may be NULL: "MALLOC_CONF". HG_INVALID when
 * the function doesn't answer as jemalloc's does.
 */
HG_API int hg_use_mallctl(hg_mallctl_function *function, const char *conf_variable);

typedef struct hg_status_info {
	int found;                      /* 0: no jemalloc, and all that follows is empty */
	int profiling_built_in;         /* config.prof */
	int profiling_enabled;          /* opt.prof */
	int active;                     /* prof.active: allocations are being sampled */
	int accumulates;                /* opt.prof_accum: dumps hold alloc_space, too */
	unsigned lg_sample;             /* log2 of the mean number of bytes between two samples */
	uint64_t allocated, active_bytes, metadata, resident, mapped, retained; /* bytes: jemalloc's stats.* */
	char version[64];               /* of jemalloc: "5.3.0-0-g..." */
	char prefix[32];                /* of its functions: "", "je_", "_rjem_", ... */
	char conf_variable[48];         /* the environment variable it reads: "MALLOC_CONF", "_RJEM_MALLOC_CONF" */
	char path[256];                 /* the file it is in */
	char reserved[128];
} hg_status_info;

/* HG_OK also when there is no jemalloc: found says so. Refreshes jemalloc's statistics (its "epoch"). */
HG_API int hg_status(hg_status_info *ret_status);

/* Starts and stops sampling. Samples of what was allocated while active are kept until it is freed. */
HG_API int hg_activate(void);
HG_API int hg_deactivate(void);

/*
 * Forgets all samples and samples every 2^lg_sample bytes from now on (0 to 62; -1: at the rate it has). What is alive now
 * will never be in a profile again.
 */
HG_API int hg_reset(int lg_sample);

/* --- dumps -------------------------------------------------------------------------------------- */

/*
 * The heap profile of this process: pprof's gzipped profile.proto, or jemalloc's own text (heap_v2). The bytes belong to the
 * caller: hg_free(). While jemalloc writes, threads that sample a new stack wait for it, some 15 us for each stack there is; the conversion
 * runs beside that. pprof profiles carry build ids and no names: every pprof viewer finds them where it has the binaries.
 * HG_INACTIVE only when nothing was ever sampled.
 */
HG_API int hg_dump_pprof(void **ret_bytes, size_t *ret_n);
HG_API int hg_dump_jeheap(void **ret_bytes, size_t *ret_n);
HG_API void hg_free(void *bytes, size_t n);

/*
 * The same, written to fd from its position on: a file, a pipe or a socket, blocking or not. HG_IO when that fails, without SIGPIPE or SIGXFSZ; what
 * was written stays. It is made whole first, so a slow reader keeps nobody else waiting.
 */
HG_API int hg_dump_pprof_fd(int fd);
HG_API int hg_dump_jeheap_fd(int fd);

/*
 * With names, inlined calls and lines, which a short-lived child process looks up (the heapgauge program: beside the
 * library, or where hg_agent_options.symbolizer said): nothing of that is in this process' memory. format: "pprof" (named),
 * "folded", "svg" (a flame graph), "html", "text" or "json".
 */
HG_API int hg_dump_named(const char *format, void **ret_bytes, size_t *ret_n);

/* --- the agent: an HTTP endpoint and snapshots --------------------------------------------------- */

/*
 * Zero means the default everywhere. Texts are copied. Always begin with HG_AGENT_OPTIONS_INIT: later versions
 * add fields at the end.
 */
typedef struct hg_agent_options {
	size_t size;                    /* sizeof(hg_agent_options): HG_AGENT_OPTIONS_INIT sets it */

	/*
	 * "unix:/path" (mode 0600, only this user and root may connect), "127.0.0.1:6060", "[::1]:0", "localhost:6060"; port 0: any.
	 * NULL: a unix socket in $XDG_RUNTIME_DIR/heapgauge or /tmp/heapgauge-UID. "none": no endpoint.
	 */
	const char *listen;
	const char *token_file;         /* clients must send it, as Bearer or as http://any:TOKEN@host; a file of mode 0600, 16 bytes or more */
	int allow_remote;               /* lets listen name an address that is not loopback; needs token_file */
	const char *allow_hosts;        /* more names that a Host header may have (behind a proxy): "a.example,b:8080" */
	int serve_arguments;            /* cmdline tells the program's arguments, too: they may hold secrets */

	const char *spool_dir;          /* a dump's text goes into an unnamed file there instead of memory */
	const char *symbolizer;         /* the heapgauge program; NULL: looked for beside the library, then in /usr/local/bin, /usr/bin */

	/*
	 * Snapshots: pprof files NAME.PID.START.SEQ.pb.gz, kept before memory runs out. Each trigger is off when 0. A file is there whole or
	 * not at all; the oldest goes when there are more than snapshot_count (default 5). What earlier processes left is kept up to as many.
	 */
	const char *snapshot_dir;
	unsigned snapshot_count;
	unsigned snapshot_interval_s;   /* not more often than this, nor for more than a tenth of the time; default 10 */
	uint64_t watch_rss_bytes;       /* resident memory passes this, and every further eighth of it */
	/*
	 * Of a memory limit (the cgroup's and those above it, v1 and v2; RLIMIT_AS; the machine), and each time half of what is left is gone, then
	 * sooner than the interval says. Default 80 when there is a directory; 101: off.
	 */
	unsigned watch_limit_percent;
	unsigned watch_psi_percent;     /* of the time some task waited for memory, over 2 s (memory.pressure, /proc/pressure/memory) */
	uint64_t watch_growth_bytes;    /* allocated since the last snapshot, or since the lowest point after it */

	char *error;                    /* room for a sentence about this failure, or NULL */
	size_t error_size;
	void *reserved[8];
} hg_agent_options;

#define HG_AGENT_OPTIONS_INIT { sizeof(hg_agent_options), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, { 0 } }

typedef struct hg_agent hg_agent;

/*
 * Starts the agent: its threads (all signals blocked), its listener, its watch. Works without jemalloc, too: every answer then says why
 * there is no profile. There is one agent in a process. HG_RUNNING, HG_INVALID, HG_UNSAFE, HG_IO, HG_NO_MEMORY.
 */
HG_API int hg_agent_start(const hg_agent_options *options, hg_agent **ret_agent);

/* Where it listens: "http://127.0.0.1:6060" or "unix:/path"; "" for none. Good until hg_agent_stop(). */
HG_API const char *hg_agent_url(const hg_agent *agent);

/* Ends connections, threads and listener; a dump on its way is waited for. NULL is fine. Never from a signal handler. */
HG_API void hg_agent_stop(hg_agent *agent);

#ifdef __cplusplus
}
#endif

#endif
