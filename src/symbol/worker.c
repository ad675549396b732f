/*
 * One thread of the parent watches all workers: it opens what they ask for, takes their answers, and looks at the clock. Each
 * worker has a socket of its own for messages (SOCK_SEQPACKET keeps them apart) and a memfd for its answer, which is sealed the moment
 * the worker says that it is done: whoever is in there can't change what is being checked.
 *
 * A message is a struct message and what its kind adds: a packed request, the words of an error, the path of a file.
 */
#include "symbol/worker.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <malloc.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/processors.h"
#include "symbol/file_request.h"
#include "symbol/sandbox.h"

#define AT_ONCE_MAX 8
#define REQUESTS_MAX 65536              /* a program has fewer units */
#define MEMORY_MAX ((uint64_t)1 << 46)
#define HEAP_BYTES (31 << 20)
#define HUGE_BYTES (4 << 20)
#define PAGE_BYTES ((size_t)64 << 10)  /* the biggest that systems have */
#define NULL_DEVICE "/dev/null"

enum message_kind { ASK, FILE_THERE, FILE_NOT_THERE, DONE, FAILED };

struct message {
	uint32_t kind;
	uint32_t flags;                 /* of DONE */
	int32_t code;                   /* of FAILED */
	char text[FILE_REQUEST_MAX];    /* as far as it was sent */
};

#define HEAD_BYTES offsetof(struct message, text)

/* --- messages --- */

/* fd < 0: without one. */
static bool send_message(int socket, const struct message *m, size_t text_bytes, int fd, int flags)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec bytes = { (void *)(uintptr_t)m, HEAD_BYTES + text_bytes };
	struct msghdr h = { .msg_iov = &bytes, .msg_iovlen = 1 };
	if (fd >= 0) {
		memset(&control, 0, sizeof control);
		h.msg_control = &control;
		h.msg_controllen = sizeof control;
		control.head = (struct cmsghdr){ .cmsg_len = CMSG_LEN(sizeof fd), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS };
		memcpy(CMSG_DATA(&control.head), &fd, sizeof fd);
	}
	ssize_t n;
	do
		n = sendmsg(socket, &h, MSG_NOSIGNAL | flags);
	while (n < 0 && errno == EINTR);
	return n == (ssize_t)bytes.iov_len;
}

/* ret_fd NULL: none is taken. The text gets a NUL behind it. -1 and errno: no whole message; 0: the other end is gone; else 1. */
static int receive_message(int socket, struct message *m, size_t *ret_text_bytes, int *ret_fd, int flags)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec bytes = { m, sizeof *m - 1 };
	struct msghdr h = { .msg_iov = &bytes, .msg_iovlen = 1 };
	if (ret_fd) {
		*ret_fd = -1;
		h.msg_control = &control;
		h.msg_controllen = sizeof control;
	}
	ssize_t n;
	do
		n = recvmsg(socket, &h, MSG_CMSG_CLOEXEC | flags);
	while (n < 0 && errno == EINTR);
	if (n == 0 || (n < 0 && (errno == ECONNRESET || errno == EPIPE)))
		return 0;
	const struct cmsghdr *c = n > 0 && ret_fd ? CMSG_FIRSTHDR(&h) : NULL;
	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS && c->cmsg_len == CMSG_LEN(sizeof(int)))
		memcpy(ret_fd, CMSG_DATA(c), sizeof(int));
	if (n < 0)
		return -1;
	if (n < (ssize_t)HEAD_BYTES || (h.msg_flags & MSG_TRUNC)) {
		errno = EPROTO;
		return -1;
	}
	*ret_text_bytes = (size_t)n - HEAD_BYTES;
	m->text[*ret_text_bytes] = '\0';
	return 1;
}

/* --- inside --- */

#define SOCKET 3
#define OUTPUT 4

/* One asks at a time; the message is too big for threads' stacks. */
struct asking {
	pthread_mutex_t lock;
	struct message message;         /* guarded by lock */
};

static int ask_parent(void *context, const struct file_request *r, char *ret_path, unsigned long size)
{
	struct asking *a = context;
	int fd = -1;
	pthread_mutex_lock(&a->lock);
	struct message *m = &a->message;
	size_t n = file_request_pack(r, m->text, sizeof m->text - 1);
	m->kind = ASK;
	if (n && send_message(SOCKET, m, n, -1, 0) && receive_message(SOCKET, m, &n, &fd, 0) != 1 && fd >= 0) {
		close(fd);
		fd = -1;
	}
	if (fd >= 0 && ret_path && size) {
		n = strnlen(m->text, n < size ? n : size - 1);
		memcpy(ret_path, m->text, n);
		ret_path[n] = '\0';
	}
	pthread_mutex_unlock(&a->lock);
	return fd;
}

/* Handlers are the parent's, whose files and terminal they look after. */
static void default_signals(void)
{
	struct sigaction normal = { .sa_handler = SIG_DFL };
	sigset_t none;
	for (int i = 1; i < NSIG; i++)
		(void)sigaction(i, &normal, NULL);
	sigemptyset(&none);
	(void)pthread_sigmask(SIG_SETMASK, &none, NULL);
}

/* When memory runs out, it is to be this one. */
static void die_first(void)
{
	int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	(void)!write(fd, "1000", 4);
	close(fd);
}

/* The two may be any numbers, those that others get among them: first out of the way, then into place. */
static bool place_descriptors(int socket, int output)
{
	int nothing = open(NULL_DEVICE, O_RDWR | O_CLOEXEC);
	int from[2] = { fcntl(socket, F_DUPFD_CLOEXEC, OUTPUT + 1), fcntl(output, F_DUPFD_CLOEXEC, OUTPUT + 1) };
	for (int i = 0; i < 3; i++)
		if (nothing < 0 || dup2(nothing, i) < 0)
			close(i);
	if (from[0] < 0 || from[1] < 0 || dup2(from[0], SOCKET) < 0 || dup2(from[1], OUTPUT) < 0)
		return false;
	if (syscall(SYS_close_range, OUTPUT + 1, ~0u, 0) == 0)
		return true;
	long most = sysconf(_SC_OPEN_MAX);
	for (int fd = OUTPUT + 1; fd < (most > 0 && most < 65536 ? most : 65536); fd++)
		close(fd);
	return true;
}

static bool write_out(const char *bytes, size_t n)
{
	while (n > 0) {
		ssize_t done = write(OUTPUT, bytes, n);
		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return false;
		bytes += done;
		n -= (size_t)done;
	}
	return true;
}

/*
 * One heap for all threads, the next HEAP_BYTES of which are advised to be big pages. They are taken only as far as they are
 * touched. What is bigger than HUGE_BYTES is mapped by itself, so that it grows without being copied.
 */
void worker_take_big_pages(void)
{
#ifdef M_ARENA_MAX
	(void)mallopt(M_ARENA_MAX, 1);
	(void)mallopt(M_TRIM_THRESHOLD, INT_MAX);
	(void)mallopt(M_MMAP_THRESHOLD, HEAP_BYTES + (1 << 20));
	char *heap = malloc(HEAP_BYTES);
	if (heap)
		(void)madvise(heap + (-(uintptr_t)heap & (PAGE_BYTES - 1)), HEAP_BYTES - PAGE_BYTES, MADV_HUGEPAGE);
	free(heap);
	(void)mallopt(M_MMAP_THRESHOLD, HUGE_BYTES);
#endif
}

__attribute__((noreturn))
static void work(const struct worker_task *t, int socket, int output, const struct sandbox_bounds *bounds, pid_t parent)
{
	static struct asking asking = { .lock = PTHREAD_MUTEX_INITIALIZER };
	const struct file_source files = { ask_parent, &asking };
	struct sandbox got;
	struct buf block;
	struct error err = { 0 };
	uint32_t flags = 0;
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	if (getppid() != parent)
		_exit(1);
	default_signals();
	die_first();
	if (!place_descriptors(socket, output))
		_exit(1);
	sandbox_enter(bounds, SOCKET, &got);
	buf_init(&block, WORKER_OUTPUT_MAX);
	int rc = t->job(t->context, &files, &block, &flags, &err);
	if (rc == 0 && !write_out(block.data, block.len))
		rc = error_set(&err, E_IO, "its reader could not hand over what it found: %s", strerror(errno));
	struct message *m = &asking.message;
	*m = (struct message){ .kind = rc ? FAILED : DONE, .flags = flags, .code = rc };
	size_t length = strlen(err.text);
	memcpy(m->text, err.text, length);
	_exit(send_message(SOCKET, m, rc ? length : 0, -1, 0) ? 0 : 1);
}

/* --- outside --- */

struct running {
	struct worker_task *task;
	int socket, output;
	size_t requests;
};

struct watch {
	struct worker_task *tasks;
	size_t n, next;
	struct running running[AT_ONCE_MAX];
	size_t n_running, at_once;
	uint32_t timeout_ms;
	uint64_t deadline_ms;
	struct sandbox_bounds bounds;
	struct message message;
};

static uint64_t now_ms(void)
{
	struct timespec t;
	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static void end_task(struct worker_task *t, enum worker_end end, const char *format, ...) __attribute__((format(printf, 3, 4)));
static void end_task(struct worker_task *t, enum worker_end end, const char *format, ...)
{
	char text[sizeof t->error.text];
	va_list arguments;
	va_start(arguments, format);
	(void)vsnprintf(text, sizeof text, format, arguments);
	va_end(arguments);
	t->end = end;
	(void)error_set(&t->error, end == WORKER_NO_MEMORY ? E_NOMEM : end == WORKER_TIMEOUT ? E_LIMIT : E_FORMAT, "%s", text);
}

/* Both have no more to say to each other. */
static void forget(struct watch *w, size_t i)
{
	close(w->running[i].socket);
	close(w->running[i].output);
	w->running[i] = w->running[--w->n_running];
}

static pid_t fork_quietly(void)
{
	sigset_t all, before;
	sigfillset(&all);
	/* No handler of the parent may run in the child. */
	(void)pthread_sigmask(SIG_SETMASK, &all, &before);
	pid_t pid = fork();
	if (pid != 0)
		(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	return pid;
}

static void start(struct watch *w, struct worker_task *t)
{
	int ends[2] = { -1, -1 };
	int output = memfd_create("heapgauge-names", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	pid_t parent = getpid();
	if (output < 0 || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0 || (t->pid = fork_quietly()) < 0) {
		end_task(t, WORKER_FAILED, "no process can be started to read it: %s", strerror(errno));
		t->pid = 0;
		if (output >= 0)
			close(output);
		if (ends[0] >= 0)
			close(ends[0]);
		if (ends[1] >= 0)
			close(ends[1]);
		return;
	}
	if (t->pid == 0)
		work(t, ends[1], output, &w->bounds, parent);
	close(ends[1]);
	w->running[w->n_running++] = (struct running){ .task = t, .socket = ends[0], .output = output };
}

static void reap(struct worker_task *t, int *ret_status)
{
	while (t->pid > 0 && waitpid(t->pid, ret_status, 0) < 0 && errno == EINTR)
		continue;
	t->pid = 0;
}

/* It ended without a last word. */
static void judge(const struct watch *w, struct worker_task *t)
{
	int status = 0;
	reap(t, &status);
	int number = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
	if (number == SIGXCPU)
		end_task(t, WORKER_TIMEOUT, "its reader used more than %llu s of processor time", (unsigned long long)w->bounds.cpu_seconds);
	else if (number == SIGXFSZ)
		end_task(t, WORKER_FAILED, "its names take more than %llu MiB", (unsigned long long)WORKER_OUTPUT_MAX >> 20);
	else if (number == SIGSYS)
		end_task(t, WORKER_DIED, "its reader made a system call that its sandbox forbids, and was stopped");
	else if (number == SIGKILL)
		end_task(t, WORKER_DIED, "its reader was killed; when memory is short, the kernel takes it first");
	else if (number)
		end_task(t, WORKER_DIED, "its reader crashed (signal %d): this file is damaged, or heapgauge is", number);
	else
		end_task(t, WORKER_DIED, "its reader ended without a word");
}

/* What it wrote is nobody's to change from here on. */
static void take_block(struct worker_task *t, const struct message *m, int output)
{
	struct stat st;
	if (fcntl(output, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) < 0 || fstat(output, &st) < 0 ||
	    st.st_size < 0 || (uint64_t)st.st_size > WORKER_OUTPUT_MAX) {
		end_task(t, WORKER_DIED, "its reader did not let go of its answer");
		return;
	}
	void *block = NULL;
	if (st.st_size > 0)
		block = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE | MAP_POPULATE, output, 0);
	if (block == MAP_FAILED) {
		end_task(t, WORKER_FAILED, "no memory for its names");
		return;
	}
	t->block = block;
	t->block_bytes = (size_t)st.st_size;
	t->flags = m->flags;
	t->end = WORKER_ANSWERED;
}

static void take_failure(const struct watch *w, struct worker_task *t, struct message *m)
{
	m->text[sizeof t->error.text - 1] = '\0';
	if (m->code == E_NOMEM)
		end_task(t, WORKER_NO_MEMORY, "its reader ran out of memory (limit %llu MiB)", (unsigned long long)w->bounds.memory_bytes >> 20);
	else
		end_task(t, WORKER_FAILED, "%s", m->text);
}

/* False: it asks for nonsense, or doesn't take the answer. */
static bool open_for(struct watch *w, struct running *r, size_t text_bytes)
{
	struct file_request request;
	struct message *m = &w->message;
	char path[FILE_REQUEST_MAX / 2] = "";
	int fd = -1;
	if (++r->requests > REQUESTS_MAX || !file_request_unpack(m->text, text_bytes, &request))
		return false;
	uint64_t before = now_ms();
	if (r->task->files)
		fd = r->task->files->open(r->task->files->context, &request, path, sizeof path);
	w->deadline_ms += now_ms() - before;
	m->kind = fd >= 0 ? FILE_THERE : FILE_NOT_THERE;
	size_t length = strnlen(path, sizeof path - 1);
	memcpy(m->text, path, length);
	bool sent = send_message(r->socket, m, length, fd, MSG_DONTWAIT);
	if (fd >= 0)
		close(fd);
	return sent;
}

static void kill_task(struct worker_task *t)
{
	if (t->pid > 0)
		(void)kill(t->pid, SIGKILL);
}

/* Something came from the i-th that runs, or its end is near. */
static void attend(struct watch *w, size_t i)
{
	struct running *r = &w->running[i];
	struct worker_task *t = r->task;
	size_t text_bytes = 0;
	int got = receive_message(r->socket, &w->message, &text_bytes, NULL, MSG_DONTWAIT);
	if (got < 0 && errno == EAGAIN)
		return;
	uint32_t kind = w->message.kind;
	if (got == 1 && kind == ASK && open_for(w, r, text_bytes))
		return;
	if (got == 0) {
		judge(w, t);
	} else {
		if (got == 1 && kind == DONE)
			take_block(t, &w->message, r->output);
		else if (got == 1 && kind == FAILED)
			take_failure(w, t, &w->message);
		else
			end_task(t, WORKER_DIED, "its reader asked for what no reader asks for, and was stopped");
		kill_task(t);
	}
	forget(w, i);
}

static void time_out(struct watch *w)
{
	for (; w->n_running > 0; forget(w, 0)) {
		kill_task(w->running[0].task);
		end_task(w->running[0].task, WORKER_TIMEOUT, "its reader was stopped after %u s", (w->timeout_ms + 999) / 1000);
	}
	for (; w->next < w->n; w->next++)
		end_task(&w->tasks[w->next], WORKER_TIMEOUT, "there was no time left to read it after %u s", (w->timeout_ms + 999) / 1000);
}

static void wait_for_messages(struct watch *w, uint64_t patience_ms)
{
	struct pollfd events[AT_ONCE_MAX];
	size_t n = w->n_running;
	for (size_t i = 0; i < n; i++)
		events[i] = (struct pollfd){ w->running[i].socket, POLLIN, 0 };
	if (poll(events, n, patience_ms < 3600000 ? (int)patience_ms : 3600000) <= 0)
		return;
	/* From the end: who goes is replaced by the last, which had its turn. */
	for (size_t i = n; i-- > 0;)
		if (events[i].revents)
			attend(w, i);
}

void workers_run(struct worker_task *tasks, size_t n, const struct worker_options *o)
{
	static const struct worker_options defaults;
	struct watch w = { .tasks = tasks, .n = n };
	size_t processors = processors_available();
	o = o ? o : &defaults;
	w.at_once = o->at_once ? o->at_once : processors;
	w.at_once = w.at_once < AT_ONCE_MAX ? w.at_once : AT_ONCE_MAX;
	w.timeout_ms = o->timeout_ms ? o->timeout_ms : WORKER_TIMEOUT_MS;
	w.deadline_ms = now_ms() + w.timeout_ms;
	w.bounds.memory_bytes = o->memory_bytes ? o->memory_bytes : SANDBOX_MEMORY;
	w.bounds.memory_bytes = w.bounds.memory_bytes < MEMORY_MAX ? w.bounds.memory_bytes : MEMORY_MAX;
	w.bounds.cpu_seconds = (w.timeout_ms / 1000 + 2) * processors;
	w.bounds.output_bytes = WORKER_OUTPUT_MAX;
	while (w.next < n || w.n_running > 0) {
		uint64_t now = now_ms();
		if (now >= w.deadline_ms)
			time_out(&w);
		else if (w.next < n && w.n_running < w.at_once)
			start(&w, &tasks[w.next++]);
		else
			wait_for_messages(&w, w.deadline_ms - now);
	}
}

void worker_task_finish(struct worker_task *t)
{
	int status;
	if (!t)
		return;
	if (t->block)
		(void)munmap(t->block, t->block_bytes);
	reap(t, &status);
	t->block = NULL;
	t->block_bytes = 0;
}
