#include "agent/snapshots.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "agent/memory.h"
#include "base/text.h"

#define ENDING ".pb.gz"
#define TEMPORARY_ENDING ".tmp"
#define NAME_ROOM 96
#define REMOVED_MAX 4096                /* files of earlier processes, at one start */

/* Where the file system has no unnamed files. One writer a process, so one such name. */
static void temporary_path(const struct snapshots *s, char *to)
{
	snprintf(to, SNAPSHOTS_PATH, "%s/.%s.%ld.%lld" TEMPORARY_ENDING, s->folder, s->name, s->pid, (long long)s->start);
}

static void path_of(const struct snapshots *s, unsigned number, char *to)
{
	snprintf(to, SNAPSHOTS_PATH, "%s/%s.%ld.%lld.%06u" ENDING, s->folder, s->name, s->pid, (long long)s->start, number);
}

static bool is_harmless(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
}

static void choose_name(struct snapshots *s)
{
	int fd = open("/proc/self/comm", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd >= 0 ? read(fd, s->name, sizeof s->name - 1) : 0;
	if (fd >= 0)
		close(fd);
	/* It ends in a newline. */
	s->name[n > 1 ? n - 1 : 0] = '\0';
	for (char *at = s->name; *at; at++)
		if (!is_harmless(*at))
			*at = '_';
	if (!s->name[0])
		snprintf(s->name, sizeof s->name, "program");
}

/* --- what earlier processes left ------------------------------------------- */

/* As the kernel lays it out. */
struct entry {
	uint64_t ino;
	int64_t off;
	unsigned short reclen;
	unsigned char type;
	char name[];
};

struct old {
	uint64_t pid, start, number;
	char name[NAME_ROOM];
};

/* ".123" at *at, which moves behind it. */
static bool take_number(const char **at, uint64_t *ret)
{
	if (**at != '.')
		return false;
	size_t n = strspn(*at + 1, "0123456789");
	if (n == 0 || !text_parse_u64(*at + 1, n, 10, ret))
		return false;
	*at += 1 + n;
	return true;
}

/* NAME.PID.START.SEQ.pb.gz, or .NAME.PID.START.tmp (its number is 0). */
static bool parse(const struct snapshots *s, const char *name, struct old *ret, bool *ret_temporary)
{
	size_t n = strlen(s->name);
	const char *at = name + (*name == '.');
	if (strlen(name) >= sizeof ret->name || strncmp(at, s->name, n) != 0)
		return false;
	at += n;
	*ret = (struct old){ .pid = 0 };
	*ret_temporary = *name == '.';
	snprintf(ret->name, sizeof ret->name, "%s", name);
	if (!take_number(&at, &ret->pid) || !take_number(&at, &ret->start))
		return false;
	return *ret_temporary ? strcmp(at, TEMPORARY_ENDING) == 0 : take_number(&at, &ret->number) && strcmp(at, ENDING) == 0;
}

/* It was ours when another process had our number, or that process is no more. */
static bool is_left_over(const struct snapshots *s, const struct old *o)
{
	if (o->pid == (uint64_t)s->pid)
		return true;
	return o->pid == 0 || o->pid > INT_MAX || (kill((pid_t)o->pid, 0) < 0 && errno == ESRCH);
}

static bool is_older(const struct old *a, const struct old *b)
{
	if (a->start != b->start)
		return a->start < b->start;
	return a->pid != b->pid ? a->pid < b->pid : a->number < b->number;
}

/* A pass over the folder: how many earlier processes left, and the oldest. Files that were never finished go at once. */
static unsigned look(struct snapshots *s, int folder, struct old *ret_oldest)
{
	_Alignas(8) char block[8192];
	unsigned n = 0;
	long got;
	if (lseek(folder, 0, SEEK_SET) < 0)
		return 0;
	while ((got = syscall(SYS_getdents64, folder, block, sizeof block)) > 0)
		for (long at = 0; at < got;) {
			const struct entry *e = (const struct entry *)(const void *)(block + at);
			struct old o;
			bool temporary;
			at += e->reclen;
			if (!parse(s, e->name, &o, &temporary) || !is_left_over(s, &o))
				continue;
			if (o.pid == (uint64_t)s->pid && o.start >= (uint64_t)s->start && o.start < INT64_MAX)
				s->start = (int64_t)o.start + 1;
			if (temporary)
				unlinkat(folder, e->name, 0);
			else if (n++ == 0 || is_older(&o, ret_oldest))
				*ret_oldest = o;
		}
	return n;
}

static void remove_old(struct snapshots *s, int folder)
{
	struct old oldest;
	for (unsigned i = 0; i < REMOVED_MAX && look(s, folder, &oldest) > s->count; i++)
		if (unlinkat(folder, oldest.name, 0) < 0)
			return;
}

/* --- the folder --------------------------------------------------------------- */

static int open_folder(const char *folder, struct error *err)
{
	if (mkdir(folder, 0700) < 0 && errno != EEXIST)
		return error_set(err, E_IO, "%.200s: cannot make this folder for snapshots: %s", folder, strerror(errno));
	int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd >= 0 && faccessat(fd, ".", W_OK | X_OK, AT_EACCESS) == 0)
		return fd;
	error_set(err, E_IO, "%.200s: snapshots cannot be written there: %s", folder, strerror(errno));
	if (fd >= 0)
		close(fd);
	return E_IO;
}

static int open_unnamed(const struct snapshots *s)
{
	return open(s->folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
}

static int link_to(int fd, const char *path)
{
	char from[40];
	snprintf(from, sizeof from, "/proc/self/fd/%d", fd);
	return linkat(AT_FDCWD, from, AT_FDCWD, path, AT_SYMLINK_FOLLOW);
}

/* Tried out: some file systems make such files and cannot name them. */
static bool can_be_unnamed(const struct snapshots *s)
{
	char path[SNAPSHOTS_PATH];
	int fd = open_unnamed(s);
	if (fd < 0)
		return false;
	temporary_path(s, path);
	bool can = link_to(fd, path) == 0;
	if (can)
		unlink(path);
	close(fd);
	return can;
}

int snapshots_open(struct snapshots *s, const char *folder, unsigned count, struct error *err)
{
	struct timespec now;
	*s = (struct snapshots){ .pid = (long)getpid(), .count = count };
	if (snprintf(s->folder, sizeof s->folder, "%s", folder) >= (int)sizeof s->folder)
		return error_set(err, E_IO, "%.200s...: this folder's path is too long", folder);
	choose_name(s);
	clock_gettime(CLOCK_REALTIME, &now);
	s->start = now.tv_sec;
	int fd = open_folder(folder, err);
	if (fd < 0)
		return fd;
	remove_old(s, fd);
	close(fd);
	s->unnamed = can_be_unnamed(s);
	return E_OK;
}

/* --- writing one ------------------------------------------------------------ */

int snapshots_begin(struct snapshots *s, struct error *err)
{
	char path[SNAPSHOTS_PATH];
	int fd;
	if (s->unnamed) {
		fd = open_unnamed(s);
	} else {
		temporary_path(s, path);
		unlink(path);
		fd = open(path, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
	}
	if (fd < 0)
		error_set(err, E_IO, "%.200s: no snapshot can be written there: %s", s->folder, strerror(errno));
	return fd;
}

static int give_name(const struct snapshots *s, int fd, const char *path)
{
	char from[SNAPSHOTS_PATH];
	if (s->unnamed)
		return link_to(fd, path);
	temporary_path(s, from);
	return rename(from, path);
}

int snapshots_commit(struct snapshots *s, int fd, struct error *err)
{
	char path[SNAPSHOTS_PATH];
	path_of(s, s->next, path);
	if (fdatasync(fd) < 0 || give_name(s, fd, path) < 0) {
		error_set(err, E_IO, "%.200s: the snapshot could not be kept: %s", path, strerror(errno));
		snapshots_abort(s, fd);
		return E_IO;
	}
	close(fd);
	memcpy(s->last, path, sizeof s->last);
	if (++s->next > s->count) {
		path_of(s, s->next - s->count - 1, path);
		unlink(path);
	}
	return E_OK;
}

void snapshots_abort(struct snapshots *s, int fd)
{
	char path[SNAPSHOTS_PATH];
	if (!s->unnamed) {
		temporary_path(s, path);
		unlink(path);
	}
	close(fd);
}
