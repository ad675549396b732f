/*
 * /proc/PID/task/TID/stat has the state, /proc/PID/task/TID/syscall number and arguments of the call that it waits in.
 */
#include "attach/threads.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "attach/tracee.h"
#include "base/memory.h"
#include "base/text.h"

#define THREADS_MAX 100000

static bool read_small(const char *path, char *to, size_t room)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd >= 0 ? read(fd, to, room - 1) : -1;
	if (fd >= 0)
		close(fd);
	to[n > 0 ? n : 0] = '\0';
	return n > 0;
}

/* A call on a file of a file system may not be started again at will (FUSE answers EINTR too). */
static bool is_on_a_file(pid_t process, uint64_t fd)
{
	char path[64];
	struct stat st;
	snprintf(path, sizeof path, "/proc/%d/fd/%llu", (int)process, (unsigned long long)fd);
	return stat(path, &st) < 0 || S_ISREG(st.st_mode) || S_ISDIR(st.st_mode);
}

static bool takes_fd(uint64_t call)
{
	return call == SYS_read || call == SYS_readv || call == SYS_write || call == SYS_writev;
}

/* Does the call end at a time that was given as an argument, from its start? */
static bool has_time_limit(uint64_t call, const uint64_t arguments[6])
{
	switch (call) {
	case SYS_epoll_wait:
	case SYS_epoll_pwait:
		return (int)arguments[3] >= 0;
	case SYS_rt_sigtimedwait:
		return arguments[2] != 0;
	case SYS_semtimedop:
		return arguments[3] != 0;
	default:
		return tracee_restarts_by_hand(call);
	}
}

/* "number 0xarg ... 0xsp 0xpc", or "running", or "-1 0xsp 0xpc". */
static void look_at_call(pid_t process, struct thread *t)
{
	char path[64], text[256];
	uint64_t numbers[7];
	snprintf(path, sizeof path, "/proc/%d/task/%d/syscall", (int)process, (int)t->id);
	if (!read_small(path, text, sizeof text))
		return;
	const char *at = text;
	for (size_t i = 0; i < 7; i++) {
		size_t skipped = i ? 2 : 0, n = strcspn(at, " \n");
		if (n <= skipped || !text_parse_u64(at + skipped, n - skipped, i ? 16 : 10, &numbers[i]))
			return;
		at += n + (at[n] == ' ');
	}
	if (!tracee_can_wait_in(numbers[0]) || (takes_fd(numbers[0]) && is_on_a_file(process, numbers[1])))
		return;
	t->waits = true;
	t->trouble = !tracee_restarts_by_hand(numbers[0]) ? 0 : has_time_limit(numbers[0], numbers + 1) ? 2 : 1;
}

static void look_at(pid_t process, struct thread *t)
{
	char path[64], text[1024];
	snprintf(path, sizeof path, "/proc/%d/task/%d/stat", (int)process, (int)t->id);
	const char *end = read_small(path, text, sizeof text) ? strrchr(text, ')') : NULL;
	t->state = end && end[1] == ' ' ? end[2] : 'Z';
	if (t->state == 'S')
		look_at_call(process, t);
}

static int by_trouble(const void *a, const void *b)
{
	const struct thread *x = a, *y = b;
	if (x->waits != y->waits)
		return x->waits ? -1 : 1;
	if (x->trouble != y->trouble)
		return x->trouble < y->trouble ? -1 : 1;
	return x->id < y->id ? -1 : x->id > y->id;
}

int threads_list(struct threads *t, pid_t process, struct error *err)
{
	char path[64];
	t->n = 0;
	snprintf(path, sizeof path, "/proc/%d/task", (int)process);
	DIR *d = opendir(path);
	if (!d)
		return error_set(err, E_IO, "process %d has ended", (int)process);
	const struct dirent *e;
	bool memory = true;
	while (memory && (e = readdir(d))) {
		uint64_t id;
		if (!text_parse_u64(e->d_name, strlen(e->d_name), 10, &id) || id > INT_MAX)
			continue;
		struct thread *to = ARRAY_PUSH(t->items, t->n, t->capacity, THREADS_MAX);
		memory = to != NULL;
		if (to) {
			*to = (struct thread){ .id = (pid_t)id };
			look_at(process, to);
		}
	}
	closedir(d);
	if (!memory)
		return error_nomem(err, "the threads of the process");
	if (t->n)
		qsort(t->items, t->n, sizeof *t->items, by_trouble);
	return 0;
}

void threads_finish(struct threads *t)
{
	free(t->items);
	*t = (struct threads){ 0 };
}
