/*
 * Put under a program (LD_PRELOAD): the nth of the system's calls that libheapgauge makes fails, or that one and all that follow. Others' calls,
 * jemalloc's among them, go through; so does fstat, which doesn't fail on a descriptor that is open. The program arms it with fail_arm, and is told by fail_disarm whether it came to that.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

void fail_arm(long n, int persistent);
int fail_disarm(const char **ret_name);

static atomic_long left;
static atomic_int keeps_failing, failed;
static _Atomic(const char *) failed_name;
static uintptr_t start, end;

static int find_library(struct dl_phdr_info *info, size_t size, void *unused)
{
	(void)size;
	(void)unused;
	if (!strstr(info->dlpi_name, "libheapgauge.so"))
		return 0;
	for (unsigned i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *h = &info->dlpi_phdr[i];
		if (h->p_type == PT_LOAD && (h->p_flags & PF_X)) {
			start = info->dlpi_addr + h->p_vaddr;
			end = start + h->p_memsz;
		}
	}
	return 1;
}

__attribute__((constructor)) static void begin(void)
{
	atomic_store(&left, 0);
	dl_iterate_phdr(find_library, NULL);
}

void fail_arm(long n, int persistent)
{
	atomic_store(&failed, 0);
	atomic_store(&keeps_failing, persistent);
	atomic_store(&left, n);
}

int fail_disarm(const char **ret_name)
{
	atomic_store(&left, 0);
	*ret_name = atomic_load(&failed_name);
	return atomic_load(&failed);
}

/* left counts down to 1, where it stays when all that follows is to fail. */
static int fails(const void *caller, const char *name)
{
	uintptr_t at = (uintptr_t)caller;
	if (at < start || at >= end)
		return 0;
	long n = atomic_load(&left);
	while (n > 1 && !atomic_compare_exchange_weak(&left, &n, n - 1)) {
	}
	if (n != 1)
		return 0;
	if (!atomic_load(&keeps_failing) && !atomic_compare_exchange_strong(&left, &n, 0))
		return 0;
	if (!atomic_exchange(&failed, 1))
		atomic_store(&failed_name, name);
	return 1;
}

#define REAL(name) ({ static __typeof__(&name) real; if (!real) real = (__typeof__(&name))dlsym(RTLD_NEXT, #name); real; })

#define WRAP(type, name, code, failure, parameters, arguments)     \
	type name parameters;                                          \
	type name parameters                                           \
	{                                                              \
		if (fails(__builtin_return_address(0), #name)) {           \
			errno = code;                                          \
			return failure;                                        \
		}                                                          \
		return REAL(name) arguments;                               \
	}

WRAP(void *, mmap64, ENOMEM, MAP_FAILED, (void *at, size_t n, int protection, int flags, int fd, off64_t offset),
     (at, n, protection, flags, fd, offset))
WRAP(int, memfd_create, EMFILE, -1, (const char *name, unsigned flags), (name, flags))
WRAP(ssize_t, pread64, EIO, -1, (int fd, void *to, size_t n, off64_t at), (fd, to, n, at))
WRAP(ssize_t, read, EIO, -1, (int fd, void *to, size_t n), (fd, to, n))
WRAP(ssize_t, write, ENOSPC, -1, (int fd, const void *at, size_t n), (fd, at, n))
WRAP(off64_t, lseek64, EIO, -1, (int fd, off64_t at, int whence), (fd, at, whence))
WRAP(ssize_t, sendfile64, EIO, -1, (int to, int from, off64_t *at, size_t n), (to, from, at, n))
WRAP(int, pipe2, EMFILE, -1, (int ends[2], int flags), (ends, flags))
WRAP(int, eventfd, EMFILE, -1, (unsigned value, int flags), (value, flags))
WRAP(int, socket, EMFILE, -1, (int family, int type, int protocol), (family, type, protocol))
WRAP(int, bind, EADDRINUSE, -1, (int fd, const struct sockaddr *a, socklen_t n), (fd, a, n))
WRAP(int, listen, EADDRINUSE, -1, (int fd, int n), (fd, n))
WRAP(int, accept4, EMFILE, -1, (int fd, struct sockaddr *a, socklen_t *n, int flags), (fd, a, n, flags))
WRAP(int, setsockopt, ENOPROTOOPT, -1, (int fd, int level, int name, const void *value, socklen_t n), (fd, level, name, value, n))
WRAP(int, getsockname, ENOBUFS, -1, (int fd, struct sockaddr *a, socklen_t *n), (fd, a, n))
WRAP(ssize_t, send, ECONNRESET, -1, (int fd, const void *at, size_t n, int flags), (fd, at, n, flags))
WRAP(ssize_t, recv, ECONNRESET, -1, (int fd, void *to, size_t n, int flags), (fd, to, n, flags))
WRAP(int, poll, ENOMEM, -1, (struct pollfd *all, nfds_t n, int ms), (all, n, ms))
WRAP(int, access, ENOENT, -1, (const char *path, int mode), (path, mode))
WRAP(int, pthread_create, EAGAIN, EAGAIN, (pthread_t *ret, const pthread_attr_t *a, void *(*run)(void *), void *context), (ret, a, run, context))

void *mremap(void *at, size_t had, size_t n, int flags, ...)
{
	va_list rest;
	va_start(rest, flags);
	void *to = flags & MREMAP_FIXED ? va_arg(rest, void *) : NULL;
	va_end(rest);
	if (fails(__builtin_return_address(0), "mremap")) {
		errno = ENOMEM;
		return MAP_FAILED;
	}
	return REAL(mremap)(at, had, n, flags, to);
}

int open64(const char *path, int flags, ...)
{
	va_list rest;
	va_start(rest, flags);
	mode_t mode = flags & (O_CREAT | __O_TMPFILE) ? va_arg(rest, mode_t) : 0;
	va_end(rest);
	if (fails(__builtin_return_address(0), "open64")) {
		errno = EMFILE;
		return -1;
	}
	return REAL(open64)(path, flags, mode);
}
