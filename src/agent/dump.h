/*
 * Dumps of this process. jemalloc writes its text through /proc/self/fd/N into a file without a name: in memory, or in a folder
 * on a disk. A thread of ours does that, so that the text can be converted while it is being written.
 *
 *   dump thread:  prof.dump -> text (memfd)
 *   caller:              ... follows the text -> samples -> gzip -> sink
 *
 * All functions here are for the one who holds the session (dump_lock).
 */
#ifndef AGENT_DUMP_H
#define AGENT_DUMP_H

#include "agent/jemalloc.h"
#include "base/error.h"

/* One session at a time in a process: HG_BUSY when there is one. Memory (agent/memory.h) begins and ends with it. */
int dump_lock(void);
/* Waits so long for it, and comes before who asks without waiting: a program that dumps one after the other keeps nobody out. */
int dump_lock_within(unsigned ms);
void dump_unlock(void);

/* Starts the dump thread if there is none: HG_NO_MEMORY when it can't be. dump_text does it, too. */
int dump_start_thread(void);
/* In a forked child, where there is neither thread nor session. */
void dump_after_fork(void);

struct dump_figures {
	uint64_t text_bytes;
	double dump_ms, whole_ms;       /* in jemalloc; all together */
	double inuse_bytes;             /* what the text's header estimates */
};

/*
 * Whole text, *ret_fd at offset 0. HG_INACTIVE when it holds nothing because nothing was ever sampled, unless that is fine, too (even_empty).
 * figures may be NULL.
 */
int dump_text(const struct jemalloc *j, const char *spool_dir, bool even_empty, int *ret_fd, uint64_t *ret_n,
              struct dump_figures *figures, struct error *err);

/* What the caller does with the gzipped bytes of a profile. */
typedef int dump_sink(void *context, const void *bytes, size_t n, struct error *err);
/* A sink into a descriptor: context is a pointer to it. */
int dump_to_fd(void *fd, const void *bytes, size_t n, struct error *err);

struct dump_options {
	const char *spool_dir;          /* NULL: memory */
	const char *default_type;       /* "alloc_space"; NULL: inuse_space */
};
/*
 * gzipped pprof without names. figures may be NULL. The text is given back while it is read: of it, too, there are never more than some
 * megabytes, but where nothing is being sampled.
 */
int dump_pprof(const struct jemalloc *j, const struct dump_options *o, dump_sink *sink, void *context,
               struct dump_figures *figures, struct error *err);
/* What was allocated between two texts and is still live at the second, which is now. base_fd -1: the first was empty. */
int dump_growth(const struct jemalloc *j, int base_fd, int now_fd, int64_t duration_nanos, dump_sink *sink, void *context,
                struct error *err);

/* A file without a name: in memory, or in folder. Negative, with a sentence. */
int dump_open_nameless(const char *folder, struct error *err);

#endif
