/*
 * Preloaded: system calls on files whose name has HEAPGAUGE_FAULT_FILE in it fail as the file HEAPGAUGE_FAULT_PLAN says, which is read
 * again at each call: "CALL ERRNO AFTER COUNT": after AFTER more such calls COUNT of them fail. CALL: open, write, sync, truncate, read,
 * or any of the writing ones: change. Short writes for ENOSPC: half is written first, as a full disk does.
 */
#undef _FILE_OFFSET_BITS           /* both widths have their own name here */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

static struct {
	char call[16];
	int error;
	long after, count;
	char raw[64];
} plan;
static unsigned char watched[1024];

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

static bool fails(const char *call, bool changes)
{
	read_plan();
	if (plan.count <= 0 || (strcmp(plan.call, call) != 0 && !(changes && strcmp(plan.call, "change") == 0)))
		return false;
	if (plan.after-- > 0)
		return false;
	plan.count--;
	errno = plan.error;
	return true;
}

static bool is_watched(int fd)
{
	return fd >= 0 && fd < (int)sizeof watched && watched[fd];
}

static int opened(int fd, const char *path)
{
	const char *part = getenv("HEAPGAUGE_FAULT_FILE");
	if (fd >= 0 && fd < (int)sizeof watched)
		watched[fd] = part && strstr(path, part) != NULL;
	return fd;
}

static bool open_fails(const char *path)
{
	const char *part = getenv("HEAPGAUGE_FAULT_FILE");
	return part && strstr(path, part) && fails("open", false);
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
	if (!is_watched(fd) || !fails("write", true))
		return REAL(write)(fd, bytes, n);
	return plan.error == ENOSPC && n > 1 ? REAL(write)(fd, bytes, n / 2) : -1;
}

#define PWRITE(name, offset)                                                                          \
	ssize_t name(int fd, const void *bytes, size_t n, offset at)                                  \
	{                                                                                             \
		if (!is_watched(fd) || !fails("write", true))                                         \
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
		return is_watched(fd) && fails("read", false) ? -1 : REAL(name)(fd, bytes, n, at);    \
	}
PREAD(pread, off_t)
PREAD(pread64, off64_t)

int fsync(int fd)
{
	return is_watched(fd) && fails("sync", true) ? -1 : REAL(fsync)(fd);
}

int fdatasync(int fd)
{
	return is_watched(fd) && fails("sync", true) ? -1 : REAL(fdatasync)(fd);
}

int ftruncate(int fd, off_t n)
{
	return is_watched(fd) && fails("truncate", true) ? -1 : REAL(ftruncate)(fd, n);
}

int ftruncate64(int fd, off64_t n)
{
	return is_watched(fd) && fails("truncate", true) ? -1 : REAL(ftruncate64)(fd, n);
}
