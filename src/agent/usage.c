#include "agent/usage.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "agent/memory.h"
#include "base/text.h"

#define FILE_MAX 8192
#define PATH_ROOM (PATH_MAX + 64)

/* --- small files ------------------------------------------------------------ */

/* A small file's text, cut at room - 1; false when there is none. */
static bool read_file(const char *directory, const char *name, char *to, size_t room)
{
	char path[PATH_ROOM];
	size_t n = 0;
	ssize_t got = -1;
	if (snprintf(path, sizeof path, "%s/%s", directory, name) >= (int)sizeof path)
		return false;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	while (n + 1 < room && ((got = read(fd, to + n, room - 1 - n)) > 0 || (got < 0 && errno == EINTR)))
		n += got > 0 ? (size_t)got : 0;
	close(fd);
	to[n] = '\0';
	return n > 0;
}

/* The number at the beginning of a text, blanks before it left out. */
static bool number_at(const char *text, uint64_t *ret)
{
	while (*text == ' ' || *text == '\t')
		text++;
	size_t n = strspn(text, "0123456789");
	return n > 0 && text_parse_u64(text, n, 10, ret);
}

static bool read_number(const char *directory, const char *name, uint64_t *ret)
{
	char text[64];
	return read_file(directory, name, text, sizeof text) && number_at(text, ret);
}

/* The number behind a word that begins a line; 0 when it isn't there. */
static uint64_t value_of(const char *text, const char *word)
{
	size_t n = strlen(word);
	uint64_t value;
	for (const char *at = text; *at; at += strcspn(at, "\n"), at += *at == '\n')
		if (strncmp(at, word, n) == 0 && number_at(at + n, &value))
			return value;
	return 0;
}

/* --- limits ------------------------------------------------------------------ */

static uint64_t minus(uint64_t from, uint64_t n)
{
	return from > n ? from - n : 0;
}

double usage_fraction(const struct usage_limit *l)
{
	return (double)l->used_bytes / (double)l->limit_bytes;
}

const struct usage_limit *usage_fullest(const struct usage *u)
{
	const struct usage_limit *best = NULL;
	for (size_t i = 0; i < u->n_limits; i++)
		if (!best || usage_fraction(&u->limits[i]) > usage_fraction(best))
			best = &u->limits[i];
	return best;
}

const char *usage_kind_name(enum usage_kind kind)
{
	return kind == USAGE_CGROUP ? "cgroup" : kind == USAGE_RLIMIT ? "RLIMIT_AS" : "machine";
}

/* Without room the emptiest goes. */
static void consider(struct usage *u, enum usage_kind kind, uint64_t limit_bytes, uint64_t used)
{
	struct usage_limit l = { kind, limit_bytes, used }, *place = u->limits;
	if (u->n_limits < USAGE_LIMITS) {
		u->limits[u->n_limits++] = l;
		return;
	}
	for (size_t i = 1; i < USAGE_LIMITS; i++)
		if (usage_fraction(&u->limits[i]) < usage_fraction(place))
			place = &u->limits[i];
	if (usage_fraction(place) < usage_fraction(&l))
		*place = l;
}

struct names {
	const char *limit, *second, *usage, *inactive, *active, *slab;
};
/* memory.high stops a process without killing it: it counts where there is no memory.max. */
static const struct names version1 = { "memory.limit_in_bytes", NULL, "memory.usage_in_bytes", "total_inactive_file ",
	                               "total_active_file ", "total_slab_reclaimable " };
static const struct names version2 = { "memory.max", "memory.high", "memory.current", "inactive_file ", "active_file ",
	                               "slab_reclaimable " };

/* "max", v1's nearly 2^63, and what can't be read are no limits. */
static bool limit_of(const char *directory, const char *name, uint64_t *ret)
{
	return name && read_number(directory, name, ret) && *ret > 0 && *ret < (uint64_t)1 << 62;
}

static void consider_group(const char *directory, const struct names *n, struct usage *u)
{
	char stat[FILE_MAX];
	uint64_t limit, used;
	if ((!limit_of(directory, n->limit, &limit) && !limit_of(directory, n->second, &limit)) ||
	    !read_number(directory, n->usage, &used))
		return;
	if (read_file(directory, "memory.stat", stat, sizeof stat))
		used = minus(used, value_of(stat, n->inactive) + value_of(stat, n->active) + value_of(stat, n->slab));
	consider(u, USAGE_CGROUP, limit, used);
}

/*
 * The group and all above it. In a container the path is often the host's, and the group itself is the root of what is mounted: the
 * root is looked at in any case.
 */
static void walk_up(const char *root, const char *group, const struct names *n, struct usage *u)
{
	char directory[PATH_MAX];
	size_t root_n = strlen(root);
	if (snprintf(directory, sizeof directory, "%s%s", root, group) >= (int)sizeof directory)
		return;
	for (;;) {
		consider_group(directory, n, u);
		char *slash = strrchr(directory, '/');
		if (!slash || slash < directory + root_n)
			break;
		*slash = '\0';
	}
}

/* Is it one of "cpu,memory,pids"? */
static bool has_memory(const char *controllers)
{
	for (const char *at = controllers; *at; at += strspn(at, ",")) {
		size_t n = strcspn(at, ",");
		if (n == 6 && strncmp(at, "memory", n) == 0)
			return true;
		at += n;
	}
	return false;
}

static void read_pressure(const char *directory, const char *name, struct usage *u)
{
	char text[256];
	const char *at = NULL;
	if (!u->has_pressure && read_file(directory, name, text, sizeof text) && strncmp(text, "some ", 5) == 0)
		at = strstr(text, "total=");
	u->has_pressure |= at && number_at(at + 6, &u->stalled_us);
}

/* A line of /proc/self/cgroup: "4:memory:/group" (v1), "0::/group" (v2). */
static void read_group(const char *cgroups, const char *controllers, const char *group, struct usage *u)
{
	char path[PATH_MAX];
	if (*controllers) {
		if (has_memory(controllers) && snprintf(path, sizeof path, "%s/memory", cgroups) < (int)sizeof path)
			walk_up(path, group, &version1, u);
		return;
	}
	/* v2 alone, or beside v1. */
	const char *const roots[] = { "", "/unified" };
	for (size_t i = 0; i < sizeof roots / sizeof *roots; i++) {
		if (snprintf(path, sizeof path, "%s%s", cgroups, roots[i]) >= (int)sizeof path)
			continue;
		walk_up(path, group, &version2, u);
		size_t n = strlen(path);
		if (snprintf(path + n, sizeof path - n, "%s", group) < (int)(sizeof path - n))
			read_pressure(path, "memory.pressure", u);
	}
}

static void read_groups(const char *proc, const char *cgroups, struct usage *u)
{
	char text[FILE_MAX];
	if (!read_file(proc, "self/cgroup", text, sizeof text))
		return;
	for (char *line = text, *next; line && *line; line = next) {
		next = strchr(line, '\n');
		if (next)
			*next++ = '\0';
		char *controllers = strchr(line, ':'), *group = controllers ? strchr(controllers + 1, ':') : NULL;
		if (!group || group[1] != '/')
			continue;
		*group++ = '\0';
		read_group(cgroups, controllers + 1, strcmp(group, "/") == 0 ? "" : group, u);
	}
}

/* --- the process and the machine ------------------------------------------- */

static uint64_t page_bytes(void)
{
	return (uint64_t)sysconf(_SC_PAGESIZE);
}

/* statm: "size resident ..." in pages. */
static bool parse_pages(const char *text, uint64_t *ret_size, uint64_t *ret_resident)
{
	return number_at(text, ret_size) && number_at(text + strcspn(text, " "), ret_resident);
}

static void read_process(const char *proc, struct usage *u)
{
	uint64_t size, resident;
	struct rlimit limit;
	char text[256];
	if (!read_file(proc, "self/statm", text, sizeof text) || !parse_pages(text, &size, &resident))
		return;
	u->rss_bytes = resident * page_bytes();
	if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY && limit.rlim_cur > 0)
		consider(u, USAGE_RLIMIT, limit.rlim_cur, size * page_bytes());
}

/* Memory and swap together: as long as there is swap nobody is killed. */
static void read_machine(const char *proc, struct usage *u)
{
	char text[FILE_MAX];
	if (!read_file(proc, "meminfo", text, sizeof text))
		return;
	uint64_t all = value_of(text, "MemTotal:") + value_of(text, "SwapTotal:");
	uint64_t left = value_of(text, "MemAvailable:") + value_of(text, "SwapFree:");
	if (all > 0 && left > 0)
		consider(u, USAGE_MACHINE, all * 1024, minus(all, left) * 1024);
}

void usage_read_at(const char *proc, const char *cgroups, struct usage *ret)
{
	*ret = (struct usage){ .n_limits = 0 };
	read_process(proc, ret);
	read_machine(proc, ret);
	read_groups(proc, cgroups, ret);
	read_pressure(proc, "pressure/memory", ret);
}

void usage_read(struct usage *ret)
{
	usage_read_at("/proc", "/sys/fs/cgroup", ret);
}

/* --- the resident size alone ------------------------------------------------- */

void usage_rss_open(struct usage_rss *r)
{
	struct stat st = { .st_ino = 0 };
	r->fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
	if (r->fd >= 0)
		fstat(r->fd, &st);
	r->device = st.st_dev;
	r->inode = st.st_ino;
}

static bool is_ours(const struct usage_rss *r)
{
	struct stat st;
	return r->fd >= 0 && fstat(r->fd, &st) == 0 && st.st_dev == r->device && st.st_ino == r->inode;
}

uint64_t usage_rss_read(struct usage_rss *r)
{
	char text[256];
	uint64_t size, resident;
	if (!is_ours(r))
		usage_rss_open(r);
	ssize_t n = r->fd >= 0 ? pread(r->fd, text, sizeof text - 1, 0) : 0;
	text[n > 0 ? n : 0] = '\0';
	return parse_pages(text, &size, &resident) ? resident * page_bytes() : 0;
}

void usage_rss_close(struct usage_rss *r)
{
	if (is_ours(r))
		close(r->fd);
	r->fd = -1;
}

/* The n-th word of a text, from 0, as a number. */
static bool word_at(const char *text, unsigned n, uint64_t *ret)
{
	for (; n; n--) {
		text += strcspn(text, " ");
		text += strspn(text, " ");
	}
	return number_at(text, ret);
}

bool usage_process_read(struct usage_process *ret)
{
	char text[1024];
	struct timespec wall, running;
	uint64_t pages, ticks;
	if (!read_file("/proc/self", "statm", text, sizeof text) || !word_at(text, 1, &pages) ||
	    !read_file("/proc/self", "stat", text, sizeof text))
		return false;
	/* The name may hold blanks and brackets: what follows the last bracket is numbers. */
	char *after = strrchr(text, ')');
	if (!after || !after[1] || !word_at(after + 2, 19, &ticks) || clock_gettime(CLOCK_REALTIME, &wall) ||
	    clock_gettime(CLOCK_BOOTTIME, &running))
		return false;
	int64_t ago_ms = (running.tv_sec - wall.tv_sec) * 1000LL + (running.tv_nsec - wall.tv_nsec) / 1000000;
	ret->rss_bytes = pages * (uint64_t)sysconf(_SC_PAGESIZE);
	ret->started_ms = (int64_t)(ticks * 1000 / (uint64_t)sysconf(_SC_CLK_TCK)) - ago_ms;
	return true;
}
