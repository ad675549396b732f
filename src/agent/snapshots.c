#include "agent/snapshots.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "agent/memory.h"
#include "base/text.h"

#define ENDING ".pb.gz"
#define KEPT_MAX 4096                   /* files of earlier processes that are looked at */

/* Where the file system has no unnamed files; one writer a process, so one such name. */
static void temporary_path(const struct snapshots *s, char *to, size_t room)
{
	snprintf(to, room, "%s/.%s.%ld.%lld.tmp", s->folder, s->name, s->pid, (long long)s->start);
}

static void path_of(const struct snapshots *s, unsigned number, char *to, size_t room)
{
	snprintf(to, room, "%s/%s.%ld.%lld.%06u" ENDING, s->folder, s->name, s->pid, (long long)s->start, number);
}

static void choose_name(struct snapshots *s)
{
	int fd = open("/proc/self/comm", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd >= 0 ? read(fd, s->name, sizeof s->name - 1) : 0;
	if (fd >= 0)
		close(fd);
	s->name[n > 0 ? n : 0] = '\0';
	for (char *at = s->name; *at; at++) {
		bool fine = (*at >= 'a' && *at <= 'z') || (*at >= 'A' && *at <= 'Z') || (*at >= '0' && *at <= '9') || *at == '-';
		if (*at == '\n')
			*at-- = '\0';
		else if (!fine)
			*at = '_';
	}
	if (!s->name[0])
		snprintf(s->name, sizeof s->name, "program");
}

/* --- what earlier processes left ------------------------------------------- */

struct entry {
	uint64_t ino;
	int64_t off;
	unsigned short reclen;
	unsigned char type;
	char name[];
};

/* "NAME.PID.START.SEQ.pb.gz" of ours, or ".NAME.PID.START.tmp": its START and SEQ. */
static bool is_ours(const struct snapshots *s, const char *name, int64_t *ret_start, unsigned *ret_number)
{
	size_t n = strlen(s->name);
	long pid;
	long long start;
	char ending[16] = "";
	if (strncmp(name, s->name, n) != 0 || name[n] != '.')
		return false;
	if (sscanf(name + n, ".%ld.%lld.%u%15s", &pid, &start, ret_number, ending) != 4 || strcmp(ending, ENDING) != 0)
		return false;
	*ret_start = start;
	return true;
}

static bool is_left_over(const struct snapshots *s, const char *name)
{
	size_t n = strlen(s->name), all = strlen(name);
	long pid;
	if (all < n + 6 || name[0] != '.' || strncmp(name + 1, s->name, n) != 0 || name[1 + n] != '.' ||
	    strcmp(name + all - 4, ".tmp") != 0 || sscanf(name + 2 + n, "%ld", &pid) != 1)
		return false;
	char path[32];
	snprintf(path, sizeof path, "/proc/%ld", pid);
	return pid == s->pid || access(path, F_OK) < 0;
}

struct old {
	int64_t start;
	unsigned number;
	char name[80];
};

static bool is_older(const struct old *a, const struct old *b)
{
	return a->start != b->start ? a->start < b->start : a->number < b->number;
}

/* One pass over the folder: how many there are, and the oldest. Unnamed leftovers go at once. */
static unsigned look(const struct snapshots *s, int folder, struct old *ret_oldest)
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
			at += e->reclen;
			if (is_left_over(s, e->name))
				unlinkat(folder, e->name, 0);
			if (strlen(e->name) >= sizeof o.name || !is_ours(s, e->name, &o.start, &o.number))
				continue;
			snprintf(o.name, sizeof o.name, "%s", e->name);
			if (n++ == 0 || is_older(&o, ret_oldest))
				*ret_oldest = o;
		}
	return n;
}

static void remove_old(const struct snapshots *s, int folder)
{
	struct old oldest;
	for (unsigned i = 0; i < KEPT_MAX && look(s, folder, &oldest) > s->count; i++)
		if (unlinkat(folder, oldest.name, 0) < 0)
			return;
}

int snapshots_open(struct snapshots *s, const char *folder, unsigned count, struct error *err)
{
	struct timespec now;
	*s = (struct snapshots){ .pid = (long)getpid(), .count = count };
	snprintf(s->folder, sizeof s->folder, "%s", folder);
	choose_name(s);
	clock_gettime(CLOCK_REALTIME, &now);
	s->start = now.tv_sec;
	if (mkdir(folder, 0700) < 0 && errno != EEXIST)
		return error_set(err, E_IO, "%.200s: cannot make this folder for snapshots: %s", folder, strerror(errno));
	int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || faccessat(fd, ".", W_OK | X_OK, 0) < 0) {
		error_set(err, E_IO, "%.200s: snapshots cannot be written there: %s", folder, strerror(errno));
		if (fd >= 0)
			close(fd);
		return E_IO;
	}
	remove_old(s, fd);
	close(fd);
	return E_OK;
}

/* --- writing one ------------------------------------------------------------ */

int snapshots_begin(struct snapshots *s, struct error *err)
{
	char path[PATH_MAX + 128];
	int fd = open(s->folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (fd < 0 && (errno == EOPNOTSUPP || errno == EISDIR || errno == ENOENT)) {
		temporary_path(s, path, sizeof path);
		fd = open(path, O_CREAT | O_TRUNC | O_RDWR | O_NOFOLLOW | O_CLOEXEC, 0600);
	}
	if (fd < 0)
		error_set(err, E_IO, "%.200s: no snapshot can be written there: %s", s->folder, strerror(errno));
	return fd;
}

static bool is_unnamed(int fd)
{
	struct stat st;
	return fstat(fd, &st) == 0 && st.st_nlink == 0;
}

static int give_name(struct snapshots *s, int fd, const char *path)
{
	char from[PATH_MAX + 128];
	if (!is_unnamed(fd)) {
		temporary_path(s, from, sizeof from);
		return rename(from, path);
	}
	snprintf(from, sizeof from, "/proc/self/fd/%d", fd);
	return linkat(AT_FDCWD, from, AT_FDCWD, path, AT_SYMLINK_FOLLOW);
}

int snapshots_commit(struct snapshots *s, int fd, struct error *err)
{
	char path[PATH_MAX + 128];
	path_of(s, s->next, path, sizeof path);
	if (fdatasync(fd) < 0 || give_name(s, fd, path) < 0) {
		error_set(err, E_IO, "%.200s: the snapshot could not be kept: %s", path, strerror(errno));
		snapshots_abort(s, fd);
		return E_IO;
	}
	close(fd);
	memcpy(s->last, path, sizeof s->last);
	s->next++;
	if (s->next > s->count) {
		path_of(s, s->next - s->count - 1, path, sizeof path);
		unlink(path);
	}
	return E_OK;
}

void snapshots_abort(struct snapshots *s, int fd)
{
	char path[PATH_MAX + 128];
	if (!is_unnamed(fd)) {
		temporary_path(s, path, sizeof path);
		unlink(path);
	}
	close(fd);
}
