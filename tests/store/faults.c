/*
 * Preloaded: system calls on files whose name has HEAPGAUGE_FAULT_FILE in it fail as the file HEAPGAUGE_FAULT_PLAN says, which is read
 * again at each call: "CALL ERRNO AFTER COUNT": after AFTER more such calls COUNT of them fail. CALL: open, write, sync, truncate, read,
 * any of the writing ones: change, or those of a file whose name ends like HEAPGAUGE_FAULT_FILE, not of the log beside it: main. Short
 * writes for ENOSPC: half is written first, as a full disk does. Each that failed is a line of HEAPGAUGE_FAULT_PLAN.felt.
 */
#undef _FILE_OFFSET_BITS           /* both widths have their own name here */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {                    /* lock */
	char call[16];
	int error;
	long after, count;
	char raw[64];
} plan;
static unsigned char watched[1024];     /* by descriptor */
enum { BESIDE = 1, MAIN };

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static void read_plan(void)
{
	char raw[64] = "";
	const char *path = getenv("HEAPGAUGE_FAULT_PLAN");
	int fd = path ? REAL(open)(path, O_RDONLY | O_CLOEXEC) : -1;
	if (fd < 0)
		return;
	ssize_t n = REAL(read)(fd, raw, sizeof raw - 1);
	REAL(close)(fd);
	if (n <= 0 || strcmp(raw, plan.raw) == 0)
		return;
	memcpy(plan.raw, raw, sizeof raw);
	if (sscanf(raw, "%15s %d %ld %ld", plan.call, &plan.error, &plan.after, &plan.count) != 4)
		plan.count = 0;
}

static void note(const char *call)
{
	char path[1024], line[24];
	snprintf(path, sizeof path, "%s.felt", getenv("HEAPGAUGE_FAULT_PLAN"));
	int n = snprintf(line, sizeof line, "%s\n", call);
	int fd = REAL(open)(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
	if (fd >= 0 && REAL(write)(fd, line, (size_t)n) == n)
		REAL(close)(fd);
}

/* fd: what is to be changed; -1: nothing. */
static bool fails(const char *call, int fd)
{
	pthread_mutex_lock(&lock);
	read_plan();
	bool is_meant = strcmp(plan.call, call) == 0 || (fd >= 0 && strcmp(plan.call, "change") == 0) ||
	                (fd >= 0 && watched[fd] == MAIN && strcmp(plan.call, "main") == 0);
	bool failing = is_meant && plan.count > 0 && plan.after-- <= 0;
	if (failing) {
		note(call);
		plan.count--;
		errno = plan.error;
	}
	pthread_mutex_unlock(&lock);
	return failing;
}

static bool is_watched(int fd)
{
	return fd >= 0 && fd < (int)sizeof watched && watched[fd];
}

static int opened(int fd, const char *path)
{
	const char *part = getenv("HEAPGAUGE_FAULT_FILE");
	const char *at = part ? strstr(path, part) : NULL;
	if (fd >= 0 && fd < (int)sizeof watched)
		watched[fd] = !at ? 0 : at[strlen(part)] ? BESIDE : MAIN;
	return fd;
}

static bool open_fails(const char *path)
{
	const char *part = getenv("HEAPGAUGE_FAULT_FILE");
	return part && strstr(path, part) && fails("open", -1);
}

#define OPEN(name)                                                          \
	int name(const char *path, int flags, ...)                          \
	{                                                                   \
		va_list args;                                               \
		va_start(args, flags);                                      \
		int mode = flags & O_CREAT ? va_arg(args, int) : 0;         \
		va_end(args);                                               \
		if (open_fails(path))                                       \
			return -1;                                          \
		return opened(REAL(name)(path, flags, mode), path);         \
	}
OPEN(open)
OPEN(open64)

int close(int fd)
{
	if (fd >= 0 && fd < (int)sizeof watched)
		watched[fd] = 0;
	return REAL(close)(fd);
}

ssize_t write(int fd, const void *bytes, size_t n)
{
	if (!is_watched(fd) || !fails("write", fd))
		return REAL(write)(fd, bytes, n);
	return plan.error == ENOSPC && n > 1 ? REAL(write)(fd, bytes, n / 2) : -1;
}

#define PWRITE(name, offset)                                                                          \
	ssize_t name(int fd, const void *bytes, size_t n, offset at)                                  \
	{                                                                                             \
		if (!is_watched(fd) || !fails("write", fd))                                         \
			return REAL(name)(fd, bytes, n, at);                                          \
		if (plan.error == ENOSPC && n > 1) {                                                  \
			REAL(name)(fd, bytes, n / 2, at);                                             \
			errno = ENOSPC;                                                               \
		}                                                                                     \
		return -1;                                                                            \
	}
PWRITE(pwrite, off_t)
PWRITE(pwrite64, off64_t)

#define PREAD(name, offset)                                                                           \
	ssize_t name(int fd, void *bytes, size_t n, offset at)                                        \
	{                                                                                             \
		return is_watched(fd) && fails("read", -1) ? -1 : REAL(name)(fd, bytes, n, at);    \
	}
PREAD(pread, off_t)
PREAD(pread64, off64_t)

int fsync(int fd)
{
	return is_watched(fd) && fails("sync", fd) ? -1 : REAL(fsync)(fd);
}

int fdatasync(int fd)
{
	return is_watched(fd) && fails("sync", fd) ? -1 : REAL(fdatasync)(fd);
}

int ftruncate(int fd, off_t n)
{
	return is_watched(fd) && fails("truncate", fd) ? -1 : REAL(ftruncate)(fd, n);
}

int ftruncate64(int fd, off64_t n)
{
	return is_watched(fd) && fails("truncate", fd) ? -1 : REAL(ftruncate64)(fd, n);
}
