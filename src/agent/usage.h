/*
 * What this process uses of what it may use: read from /proc and from the cgroup file system, v1, v2, or both. Files are opened anew each
 * time: a process may be moved. Nothing is allocated.
 *
 * Limits come from the process' memory cgroup and all above it, from RLIMIT_AS, and from the machine itself. What the kernel can drop by
 * itself (pages of files) isn't counted as used: at a full limit it goes first, and only then somebody is killed.
 */
#ifndef AGENT_USAGE_H
#define AGENT_USAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define USAGE_LIMITS 8

enum usage_kind { USAGE_CGROUP, USAGE_RLIMIT, USAGE_MACHINE };

struct usage_limit {
	enum usage_kind kind;
	uint64_t limit_bytes;       /* > 0 */
	uint64_t used_bytes;        /* by all in the cgroup; address space with USAGE_RLIMIT; by all processes with USAGE_MACHINE */
};

struct usage {
	uint64_t rss_bytes;
	struct usage_limit limits[USAGE_LIMITS];    /* that apply; the fullest if there are more */
	size_t n_limits;
	bool has_pressure;
	uint64_t stalled_us;        /* a counter: time in which some task waited for memory; of the cgroup (v2), else of the machine */
};

void usage_read(struct usage *ret);
/*
 * Only what this process has, at next to no price: resident bytes, by a file that stays open. A host may close it, as it closes all that it doesn't
 * know, and give its number to another file: then it is opened anew, and the other left alone.
 */
struct usage_rss {
	int fd;
	dev_t device;
	ino_t inode;
};
/* Without /proc nothing is open, and reading it is 0. */
void usage_rss_open(struct usage_rss *r);
uint64_t usage_rss_read(struct usage_rss *r);
void usage_rss_close(struct usage_rss *r);

/* The process as a whole; false without /proc. */
struct usage_process {
	uint64_t rss_bytes;
	int64_t started_ms;         /* since 1970; clocks that are set make it differ a little from time to time */
};
bool usage_process_read(struct usage_process *ret);

/* The used part of a limit. */
double usage_fraction(const struct usage_limit *l);
/* The limit that is nearest to being full; NULL: there is none. */
const struct usage_limit *usage_fullest(const struct usage *u);
/* "cgroup", "RLIMIT_AS", "machine" */
const char *usage_kind_name(enum usage_kind kind);

/* --- for tests: with other roots than /proc and /sys/fs/cgroup --- */
void usage_read_at(const char *proc, const char *cgroups, struct usage *ret);

#endif
