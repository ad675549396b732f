/*
 * What this process uses of what it may use, read from /proc and the cgroup file system, v1 and v2. Files are opened anew each time: a process
 * may be moved, and a limit changed. Nothing is allocated.
 */
#ifndef AGENT_USAGE_H
#define AGENT_USAGE_H

#include <stdbool.h>
#include <stdint.h>

struct usage {
	uint64_t rss_bytes;
	uint64_t limit_bytes;       /* the lowest of all that apply, UINT64_MAX: none */
	uint64_t used_bytes;        /* of that limit; without file pages that the kernel can drop */
	bool limit_is_rlimit;       /* RLIMIT_AS: used is address space */
	uint64_t stalled_us;        /* time in which some task waited for memory, a counter */
	bool has_pressure;
};

void usage_read(struct usage *ret);

/* --- for tests: with other roots than /proc/self and /sys/fs/cgroup --- */
void usage_read_at(const char *proc_self, const char *cgroups, const char *pressure, struct usage *ret);

#endif
