/*
 * Two processes, neither of which copies the host, however large it is: both borrow its memory (CLONE_VM) and run on stacks of ours.
 *
 *     this thread -> the keeper, a process without an exit signal -> the symbolizer, from its exec on
 *
 * The keeper is there since an exec gives its process the exit signal SIGCHLD, whatever it was cloned with. It stays in the host's memory and
 * shares its descriptors, starts the symbolizer as vfork would, waits for it, leaves its status in struct start, and ends;
 * and no wait() of the host without __WALL can see that, nor can it take the status away. All signals are blocked in it. It has
 * this thread's errno and its other thread-local variables: while it starts the other, this thread does nothing; later its one call
 * doesn't fail. For the same reason calls that pthread_cancel() may end are made with syscall(), which keeps no books on that.
 *
 * The answer goes straight into a memfd, whose size RLIMIT_FSIZE bounds; the pipe is for last words.
 */
#include "agent/child.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifndef CLONE_PIDFD
#define CLONE_PIDFD 0x1000
#endif
#ifndef SYS_pidfd_send_signal
#define SYS_pidfd_send_signal 424
#endif
#ifndef SYS_close_range
#define SYS_close_range 436
#endif

#define STACK_BYTES ((size_t)64 << 10)
#define GUARD_BYTES ((size_t)64 << 10)      /* a page, whatever its size */
#define STACKS_BYTES (2 * (GUARD_BYTES + STACK_BYTES))
#define ARGUMENTS_MAX 62
#define TICK_MS 100
#define BLIND_TICK_MS 10        /* without a pidfd nothing wakes us */
#define SIGNALS 64

/* --- the symbolizer, until its exec --- */

struct start {
	const char *program;
	char *arguments[ARGUMENTS_MAX + 2];
	int input, output, errors;      /* to become 0, 1, 2 */
	uint64_t output_max;
	char *stacks;                   /* the keeper's, then the symbolizer's, each behind a guard */
	pid_t host, keeper;
	/* What the other two leave here for this thread. */
	pid_t pid;
	int pidfd;                      /* of the symbolizer; -1: the kernel has none */
	int failed;                     /* errno of what went wrong before and in the exec */
	atomic_int started;             /* released by the keeper when all of that is settled; a futex */
	int status;                     /* good when ended is set */
	atomic_bool ended;              /* released by the keeper */
};

/* Names in /proc/self/fd, or if there is none all numbers that can be. */
static void close_one_by_one(void)
{
	char room[1024];
	int list = (int)syscall(SYS_openat, AT_FDCWD, "/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (list < 0) {
		struct rlimit most = { 1024, 1024 };
		(void)getrlimit(RLIMIT_NOFILE, &most);
		for (int fd = 3; fd < (int)(most.rlim_cur < 65536 ? most.rlim_cur : 65536); fd++)
			(void)syscall(SYS_close, fd);
		return;
	}
	/* Closing while reading may skip some: again until there is nothing to close. */
	for (bool closed = true; closed;) {
		closed = false;
		(void)lseek(list, 0, SEEK_SET);
		for (long n; (n = syscall(SYS_getdents64, list, room, sizeof room)) > 0;) {
			for (long at = 0; at < n;) {
				/* inode (8), offset (8), length (2), type (1), name */
				uint16_t length;
				memcpy(&length, room + at + 16, sizeof length);
				int fd = 0;
				for (const char *c = room + at + 19; *c >= '0' && *c <= '9'; c++)
					fd = fd * 10 + (*c - '0');
				if (fd > 2 && fd != list)
					closed |= syscall(SYS_close, fd) == 0;
				at += length;
			}
		}
	}
	(void)syscall(SYS_close, list);
}

/* The three may be any numbers, 0 to 2 among them: first out of the way, then into place. */
static bool place_descriptors(const struct start *s)
{
	int from[3] = { s->input, s->output, s->errors };
	for (int i = 0; i < 3; i++)
		if ((from[i] = fcntl(from[i], F_DUPFD_CLOEXEC, 3)) < 0)
			return false;
	for (int i = 0; i < 3; i++)
		if (dup2(from[i], i) < 0)
			return false;
	if (syscall(SYS_close_range, 3, ~0u, 0) < 0)
		close_one_by_one();
	return true;
}

/* Handlers are gone with the exec anyway; ignored ones would stay ignored. */
static void default_signals(void)
{
	/* As the kernel has it: the C library keeps two signals for itself and lets nobody touch them, but a host may have got them ignored. */
	struct { uintptr_t handler, flags, restorer; uint64_t mask; } normal = { 0 };
	uint64_t none = 0;
	for (int i = 1; i <= SIGNALS; i++)
		(void)syscall(SYS_rt_sigaction, i, &normal, NULL, sizeof none);
	(void)syscall(SYS_rt_sigprocmask, SIG_SETMASK, &none, NULL, sizeof none);
}

/* When memory runs out, it is to be this one. The kernel keeps the value from who shares our memory while that waits in vfork. */
static void die_first(void)
{
	int fd = (int)syscall(SYS_openat, AT_FDCWD, "/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	(void)syscall(SYS_write, fd, "1000", (size_t)4);
	(void)syscall(SYS_close, fd);
}

__attribute__((no_sanitize("address", "undefined")))
static int symbolizer_main(void *context)
{
	struct start *s = context;
	char *const no_environment[] = { NULL };
	struct rlimit most = { s->output_max, s->output_max };
	struct rlimit now;
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	if (getppid() != s->keeper)
		_exit(126);
	(void)setsid();
	die_first();
	if (getrlimit(RLIMIT_FSIZE, &now) == 0 && now.rlim_max > most.rlim_max)
		(void)setrlimit(RLIMIT_FSIZE, &most);
	if (place_descriptors(s)) {
		default_signals();
		execve(s->program, s->arguments, no_environment);
	}
	s->failed = errno ? errno : EINVAL;
	_exit(127);
}

/* --- the keeper --- */

__attribute__((no_sanitize("address", "undefined")))
static int keeper_main(void *context)
{
	struct start *s = context;
	/* A host that ignores SIGCHLD has us ignore it, too, and then there would be nothing to wait for. */
	struct sigaction normal = { .sa_handler = SIG_DFL };
	(void)sigaction(SIGCHLD, &normal, NULL);
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	if (getppid() != s->host)
		_exit(126);
	s->keeper = getpid();
	s->pid = clone(symbolizer_main, s->stacks + STACKS_BYTES, CLONE_VM | CLONE_VFORK | CLONE_PIDFD | SIGCHLD, s, &s->pidfd);
	if (s->pid < 0)
		s->failed = errno;
	atomic_store_explicit(&s->started, 1, memory_order_release);
	(void)syscall(SYS_futex, &s->started, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
	if (s->pid > 0 && syscall(SYS_wait4, s->pid, &s->status, __WALL, NULL) == s->pid)
		atomic_store_explicit(&s->ended, true, memory_order_release);
	_exit(0);
}

/* --- starting --- */

/* What is ours of a run. */
struct child {
	struct start start;
	pid_t keeper;
	int answer, errors;             /* the memfd; our end of the pipe, -1 after its end */
};

static int refuse_start(const struct child_request *r, int code, struct error *err)
{
	if (code == ENOENT || code == EACCES || code == ENOEXEC || code == ENOTDIR || code == EISDIR)
		return error_set(err, E_UNSUPPORTED, "%.200s cannot be started: %s; names need the heapgauge program: install it, or name "
		                 "it with the option symbolizer", r->program, strerror(code));
	return error_set(err, E_UNSUPPORTED, "%.200s cannot be started: %s", r->program, strerror(code));
}

/* Is the keeper gone? With wait, not before. */
static bool keeper_ended(const struct child *c, bool wait)
{
	pid_t got;
	do
		got = waitpid(c->keeper, NULL, __WALL | (wait ? 0 : WNOHANG));
	while (got < 0 && errno == EINTR);
	/* -1: the host has a wait() that takes any; then it is gone, too. */
	return got != 0;
}

/* Until errno is this thread's alone again. */
static void wait_for_start(struct child *c)
{
	struct timespec tick = { 0, TICK_MS * 1000000 };
	while (!atomic_load_explicit(&c->start.started, memory_order_acquire)) {
		(void)syscall(SYS_futex, &c->start.started, FUTEX_WAIT_PRIVATE, 0, &tick, NULL, 0);
		if (!atomic_load_explicit(&c->start.started, memory_order_acquire) &&
		    syscall(SYS_wait4, c->keeper, NULL, __WALL | WNOHANG, NULL) != 0)
			break;
	}
}

/* All signals are blocked, so no handler of the host runs in the keeper, which has the host's memory. */
static int start_keeper(struct child *c)
{
	sigset_t all, before;
	int cancelling;
	sigfillset(&all);
	(void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancelling);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before);
	c->keeper = clone(keeper_main, c->start.stacks + STACKS_BYTES / 2, CLONE_VM | CLONE_FILES, &c->start);
	int code = c->keeper < 0 ? errno : 0;
	if (!code)
		wait_for_start(c);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	(void)pthread_setcancelstate(cancelling, NULL);
	return code;
}

static int start(const struct child_request *r, int errors, struct child *c, struct error *err)
{
	struct start *s = &c->start;
	size_t n = 0;
	s->program = r->program;
	s->input = r->input;
	s->output = c->answer;
	s->errors = errors;
	s->output_max = r->output_max;
	s->host = getpid();
	s->arguments[n++] = (char *)(uintptr_t)"heapgauge";
	for (size_t i = 0; r->arguments[i]; i++) {
		if (i == ARGUMENTS_MAX)
			return error_set(err, E_USAGE, "a symbolizer takes at most %d arguments", ARGUMENTS_MAX);
		s->arguments[n++] = (char *)(uintptr_t)r->arguments[i];
	}
	char *stacks = mmap(NULL, STACKS_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
	if (stacks == MAP_FAILED)
		return error_nomem(err, "the symbolizer's stack");
	s->stacks = stacks;
	(void)mprotect(stacks, GUARD_BYTES, PROT_NONE);
	(void)mprotect(stacks + STACKS_BYTES / 2, GUARD_BYTES, PROT_NONE);
	int code = start_keeper(c);
	if (!code && !s->failed)
		return 0;
	if (!code)
		(void)keeper_ended(c, true);
	return refuse_start(r, code ? code : s->failed, err);
}

/* --- its last words --- */

struct words {
	char line[320], last[320];      /* the one that is coming in; the last that said something */
	size_t n;
};

static void words_end_line(struct words *w)
{
	w->line[w->n] = '\0';
	/* "Try 'heapgauge help symbolize'." is for somebody at a terminal. */
	if (w->n > 0 && strncmp(w->line, "Try '", 5) != 0)
		memcpy(w->last, w->line, w->n + 1);
	w->n = 0;
}

/* Bytes that could act on a terminal or a page do not pass. */
static void words_add(struct words *w, const char *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		char c = bytes[i];
		if (c == '\n')
			words_end_line(w);
		else if (w->n + 1 < sizeof w->line)
			w->line[w->n++] = c >= ' ' && c <= '~' ? c : '?';
	}
}

static void read_words(struct child *c, struct words *w)
{
	char bytes[512];
	while (c->errors >= 0) {
		ssize_t n = read(c->errors, bytes, sizeof bytes);
		if (n > 0) {
			words_add(w, bytes, (size_t)n);
		} else if (n < 0 && errno == EINTR) {
			continue;
		} else {
			if (n == 0 || errno != EAGAIN) {
				close(c->errors);
				c->errors = -1;
			}
			return;
		}
	}
}

/* --- waiting --- */

static uint64_t now_ms(void)
{
	struct timespec t;
	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static void kill_symbolizer(struct child *c)
{
	const struct start *s = &c->start;
	if (s->pidfd >= 0 && syscall(SYS_pidfd_send_signal, s->pidfd, SIGKILL, NULL, 0) == 0)
		return;
	if (!atomic_load_explicit(&s->ended, memory_order_acquire))
		(void)kill(s->pid, SIGKILL);
}

static int wait_for_end(const struct child_request *r, struct child *c, struct words *w, struct error *err)
{
	uint64_t end = now_ms() + r->timeout_ms;
	int pidfd = c->start.pidfd;
	for (;;) {
		struct pollfd events[2] = { { pidfd, POLLIN, 0 }, { c->errors, POLLIN, 0 } };
		(void)poll(events, 2, pidfd >= 0 ? TICK_MS : BLIND_TICK_MS);
		read_words(c, w);
		if (events[0].revents || pidfd < 0) {
			if (keeper_ended(c, pidfd >= 0)) {
				read_words(c, w);
				words_end_line(w);
				return 0;
			}
		}
		if (r->cancelled && r->cancelled(r->context)) {
			kill_symbolizer(c);
			(void)keeper_ended(c, true);
			return error_set(err, E_LIMIT, "nobody waits for the names any more");
		}
		if (now_ms() >= end) {
			kill_symbolizer(c);
			(void)keeper_ended(c, true);
			return error_set(err, E_LIMIT, "the names took longer than %u s; the same profile without names can be named "
			                 "elsewhere", (r->timeout_ms + 999) / 1000);
		}
	}
}

static int judge_signal(const struct child_request *r, int signal, struct error *err)
{
	switch (signal) {
	case SIGXFSZ:
		return error_set(err, E_LIMIT, "the profile with names is larger than %llu bytes", (unsigned long long)r->output_max);
	case SIGXCPU:
		return error_set(err, E_LIMIT, "the symbolizer used more processor time than its sandbox allows");
	case SIGKILL:
		return error_set(err, E_FORMAT, "the symbolizer was killed; when memory is short, the kernel takes it first");
	case SIGSYS:
		return error_set(err, E_FORMAT, "the symbolizer made a system call that its sandbox forbids, and was stopped");
	default:
		return error_set(err, E_FORMAT, "the symbolizer was ended by signal %d while it read the program's debug "
		                 "information", signal);
	}
}

static int judge(const struct child_request *r, const struct child *c, const struct words *w, uint64_t *ret_n, struct error *err)
{
	struct stat st;
	int status = c->start.status;
	if (!atomic_load_explicit(&c->start.ended, memory_order_acquire)) {
		/* Somebody killed the keeper, and with it the symbolizer, which is our child now if we are who adopts orphans. */
		if (c->start.pid > 0)
			(void)waitpid(c->start.pid, NULL, __WALL);
		status = SIGKILL;
	}
	if (WIFSIGNALED(status))
		return judge_signal(r, WTERMSIG(status), err);
	if (WEXITSTATUS(status) != 0) {
		const char *said = strncmp(w->last, "heapgauge: ", 11) == 0 ? w->last + 11 : w->last;
		return error_set(err, E_FORMAT, "the symbolizer failed: %s", *said ? said : "it did not say why");
	}
	if (fstat(c->answer, &st) < 0 || lseek(c->answer, 0, SEEK_SET) < 0)
		return error_set(err, E_IO, "the symbolizer's answer is lost: %s", strerror(errno));
	*ret_n = (uint64_t)st.st_size;
	if (*ret_n > r->output_max)
		return judge_signal(r, SIGXFSZ, err);
	return 0;
}

/* --- all of it --- */

static int run(const struct child_request *r, struct child *c, uint64_t *ret_n, struct error *err)
{
	struct words words = { .n = 0 };
	int pipe_ends[2];
	c->answer = memfd_create("heapgauge-answer", MFD_CLOEXEC);
	if (c->answer < 0)
		return error_set(err, E_IO, "the symbolizer's answer has no place: memfd_create: %s", strerror(errno));
	if (pipe2(pipe_ends, O_CLOEXEC) < 0)
		return error_set(err, E_IO, "no pipe for the symbolizer: %s", strerror(errno));
	c->errors = pipe_ends[0];
	/* Ours alone: who writes faster than we read has to wait, not to fail. */
	int failed = fcntl(c->errors, F_SETFL, O_NONBLOCK) < 0 ? error_set(err, E_IO, "no pipe for the symbolizer: %s", strerror(errno))
	                                                       : start(r, pipe_ends[1], c, err);
	close(pipe_ends[1]);
	if (!failed)
		failed = wait_for_end(r, c, &words, err);
	return failed ? failed : judge(r, c, &words, ret_n, err);
}

int child_run(const struct child_request *r, int *ret_fd, uint64_t *ret_n, struct error *err)
{
	struct child c = { .start = { .pid = -1, .pidfd = -1 }, .answer = -1, .errors = -1 };
	int failed = run(r, &c, ret_n, err);
	if (c.start.stacks)
		(void)munmap(c.start.stacks, STACKS_BYTES);
	if (c.start.pidfd >= 0)
		close(c.start.pidfd);
	if (c.errors >= 0)
		close(c.errors);
	if (!failed)
		*ret_fd = c.answer;
	else if (c.answer >= 0)
		close(c.answer);
	return failed;
}

/* --- finding the program --- */

static bool is_program(const char *path)
{
	struct stat st;
	return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0;
}

/* The folder of a path, absolute and without links; "" when it can't be told. */
static void folder_of(const char *path, char *to, size_t room)
{
	char folder[PATH_MAX], link[64];
	const char *slash = strrchr(path, '/');
	ssize_t n = -1;
	to[0] = '\0';
	if (!slash || (size_t)(slash - path) + 2 > sizeof folder)
		return;
	memcpy(folder, path, (size_t)(slash - path) + 1);
	folder[slash - path + 1] = '\0';
	int fd = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return;
	(void)snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	n = readlink(link, to, room - 1);
	close(fd);
	if (n <= 0 || n == (ssize_t)room - 1 || to[0] != '/')
		(void)snprintf(to, room, "%s", folder);
	else
		to[n] = '\0';
}

/* Where this code is: the shared library, or the program it is linked into. */
static void own_folder(char *to, size_t room)
{
	Dl_info info;
	char path[PATH_MAX];
	to[0] = '\0';
	if (dladdr((const void *)(uintptr_t)&child_find_program, &info) && info.dli_fname && strchr(info.dli_fname, '/'))
		folder_of(info.dli_fname, to, room);
	if (to[0])
		return;
	ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
	if (n <= 0)
		return;
	path[n] = '\0';
	folder_of(path, to, room);
}

void child_find_program(const char *configured, char *to, size_t room)
{
	/* From lib, lib/x86_64-linux-gnu and lib/x86_64-linux-gnu/heapgauge; the build tree's src/cli beside src/agent; the very folder. */
	static const char *const beside[] = { "/../bin/heapgauge", "/../../bin/heapgauge", "/../../../bin/heapgauge", "/../cli/heapgauge",
		                              "/heapgauge" };
	static const char *const usual[] = { "/usr/local/bin/heapgauge", "/usr/bin/heapgauge" };
	char folder[PATH_MAX], path[PATH_MAX + 32];
	if (configured && *configured) {
		(void)snprintf(to, room, "%s", configured);
		return;
	}
	own_folder(folder, sizeof folder);
	for (size_t i = 0; *folder && i < sizeof beside / sizeof *beside; i++) {
		(void)snprintf(path, sizeof path, "%s%s", folder, beside[i]);
		if (strlen(path) < room && is_program(path)) {
			(void)snprintf(to, room, "%s", path);
			return;
		}
	}
	for (size_t i = 0; i < sizeof usual / sizeof *usual; i++) {
		if (strlen(usual[i]) < room && is_program(usual[i])) {
			(void)snprintf(to, room, "%s", usual[i]);
			return;
		}
	}
	to[0] = '\0';
}
