#include "agent/usage.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "agent/memory.h"

#define FILE_MAX 8192

/* A small file's text, cut at room - 1; false when it can't be read. */
static bool read_file(const char *path, char *to, size_t room)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t n = 0;
	ssize_t got = -1;
	if (fd < 0)
		return false;
	while (n + 1 < room && (got = read(fd, to + n, room - 1 - n)) > 0)
		n += (size_t)got;
	close(fd);
	to[n] = '\0';
	return n > 0;
}

/* "max", and v1's nearly 2^63, are no limit. */
static uint64_t limit_of(const char *text)
{
	unsigned long long value;
	return sscanf(text, "%llu", &value) == 1 && value < (1ull << 62) ? value : UINT64_MAX;
}

static bool read_number(const char *directory, const char *name, uint64_t *ret)
{
	char path[PATH_MAX + 64], text[64];
	snprintf(path, sizeof path, "%s/%s", directory, name);
	if (!read_file(path, text, sizeof text))
		return false;
	*ret = limit_of(text);
	return true;
}

/* The value behind a word at the beginning of a line. */
static uint64_t value_of(const char *text, const char *word)
{
	size_t n = strlen(word);
	unsigned long long value;
	for (const char *at = text; at; at = strchr(at, '\n'), at += at != NULL)
		if (strncmp(at, word, n) == 0 && sscanf(at + n, " %llu", &value) == 1)
			return value;
	return 0;
}

static uint64_t droppable(const char *directory, const char *word)
{
	char path[PATH_MAX + 64], text[FILE_MAX];
	snprintf(path, sizeof path, "%s/memory.stat", directory);
	return read_file(path, text, sizeof text) ? value_of(text, word) : 0;
}

struct names {
	const char *limit, *usage, *inactive;
};
static const struct names version1 = { "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file" };
static const struct names version2 = { "memory.max", "memory.current", "inactive_file" };

/* That group's limit, if it is the tightest so far. */
static void consider(const char *directory, const struct names *n, struct usage *u)
{
	uint64_t limit, used;
	if (!read_number(directory, n->limit, &limit) || limit == UINT64_MAX ||
	    !read_number(directory, n->usage, &used) || used == UINT64_MAX)
		return;
	uint64_t rest = droppable(directory, n->inactive);
	used -= rest < used ? rest : used;
	/* What is nearest to being full counts. */
	if (u->limit_bytes != UINT64_MAX &&
	    (double)used / (double)limit <= (double)u->used_bytes / (double)u->limit_bytes)
		return;
	u->limit_bytes = limit;
	u->used_bytes = used;
	u->limit_is_rlimit = false;
}

/*
 * The group and all above it. In a container the path is the host's, and the group itself is the root of what is mounted: so
 * the root is looked at in any case.
 */
static void walk_up(const char *root, const char *path, const struct names *n, struct usage *u)
{
	char directory[PATH_MAX];
	size_t root_n = strlen(root);
	if (snprintf(directory, sizeof directory, "%s%s", root, path) >= (int)sizeof directory)
		return;
	for (;;) {
		consider(directory, n, u);
		char *slash = strrchr(directory, '/');
		if (strlen(directory) <= root_n || !slash || slash < directory + root_n)
			break;
		*slash = '\0';
	}
}

static void read_cgroups(const char *proc_self, const char *cgroups, struct usage *u)
{
	char path[PATH_MAX], text[FILE_MAX], root[PATH_MAX];
	snprintf(path, sizeof path, "%s/cgroup", proc_self);
	if (!read_file(path, text, sizeof text))
		return;
	for (char *line = text, *next; line && *line; line = next) {
		next = strchr(line, '\n');
		if (next)
			*next++ = '\0';
		char *controllers = strchr(line, ':'), *group = controllers ? strchr(controllers + 1, ':') : NULL;
		if (!group)
			continue;
		*group++ = '\0';
		if (strcmp(controllers + 1, "memory") == 0) {
			snprintf(root, sizeof root, "%s/memory", cgroups);
			walk_up(root, group, &version1, u);
		} else if (!controllers[1]) {
			walk_up(cgroups, group, &version2, u);
			snprintf(root, sizeof root, "%s/unified", cgroups);
			walk_up(root, group, &version2, u);
		}
	}
}

static void read_memory(const char *proc_self, struct usage *u)
{
	char path[PATH_MAX], text[256];
	unsigned long long size, resident;
	struct rlimit limit;
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	snprintf(path, sizeof path, "%s/statm", proc_self);
	if (!read_file(path, text, sizeof text) || sscanf(text, "%llu %llu", &size, &resident) != 2)
		return;
	u->rss_bytes = resident * page;
	if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
		u->limit_bytes = limit.rlim_cur;
		u->used_bytes = size * page;
		u->limit_is_rlimit = true;
	}
}

void usage_read_at(const char *proc_self, const char *cgroups, const char *pressure, struct usage *ret)
{
	char text[256];
	unsigned long long total;
	*ret = (struct usage){ .limit_bytes = UINT64_MAX };
	read_memory(proc_self, ret);
	read_cgroups(proc_self, cgroups, ret);
	if (read_file(pressure, text, sizeof text)) {
		const char *at = strstr(text, "total=");
		ret->has_pressure = at && sscanf(at, "total=%llu", &total) == 1;
		ret->stalled_us = ret->has_pressure ? total : 0;
	}
}

void usage_read(struct usage *ret)
{
	usage_read_at("/proc/self", "/sys/fs/cgroup", "/proc/pressure/memory", ret);
}
