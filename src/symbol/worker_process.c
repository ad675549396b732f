/*
 * A worker is forked, puts its descriptors in order, gives up its rights, and then only has its socket. An answer that is no longer than a
 * message is one; for a longer one the parent gives a memfd, which is sealed the moment the worker says that it is done: whoever
 * is in there can't change what is being checked.
 */
#include "symbol/worker_process.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <malloc.h>
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

#define REQUESTS_MAX 65536              /* a program has fewer units */
#define MEMORY_MAX ((uint64_t)1 << 46)
#define HEAP_BYTES (31 << 20)
#define HUGE_BYTES (4 << 20)
#define PAGE_BYTES ((size_t)64 << 10)  /* the biggest that systems have */
#define NULL_DEVICE "/dev/null"

/* --- inside --- */

#define SOCKET 3

/* One asks at a time; the message is too big for threads' stacks. */
struct asking {
	pthread_mutex_t lock;
	struct message message;         /* guarded by lock */
};

static struct asking asking = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* Sends what is in the message and takes the answer. The descriptor that came with it, or -1. */
static int ask_with(struct asking *a, size_t text_bytes, size_t *ret_bytes)
{
	int fd = -1;
	*ret_bytes = 0;
	if (message_send(SOCKET, &a->message, text_bytes, -1, 0) && message_receive(SOCKET, &a->message, ret_bytes, &fd, 0) != 1 && fd >= 0) {
		close(fd);
		fd = -1;
	}
	return fd;
}

static int ask_parent(void *context, const struct file_request *r, char *ret_path, unsigned long size)
{
	struct asking *a = context;
	pthread_mutex_lock(&a->lock);
	struct message *m = &a->message;
	size_t n = file_request_pack(r, m->text, sizeof m->text - 1);
	m->kind = MESSAGE_ASK;
	int fd = n ? ask_with(a, n, &n) : -1;
	if (fd >= 0 && ret_path && size) {
		n = strnlen(m->text, n < size ? n : size - 1);
		memcpy(ret_path, m->text, n);
		ret_path[n] = '\0';
	}
	pthread_mutex_unlock(&a->lock);
	return fd;
}

static bool write_out(int fd, const char *bytes, size_t n)
{
	while (n > 0) {
		ssize_t done = write(fd, bytes, n);
		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return false;
		bytes += done;
		n -= (size_t)done;
	}
	return true;
}

static bool hand_over(const struct buf *block)
{
	size_t n;
	asking.message.kind = MESSAGE_ROOM;
	int fd = ask_with(&asking, 0, &n);
	bool done = fd >= 0 && write_out(fd, block->data, block->len);
	if (fd >= 0)
		close(fd);
	return done;
}

void worker_answer(int rc, uint32_t flags, const struct buf *block, const struct error *err)
{
	struct message *m = &asking.message;
	struct error lost;
	if (rc == 0 && block->len > MESSAGE_TEXT_MAX && !hand_over(block)) {
		rc = error_set(&lost, E_IO, "its reader could not hand over what it found: %s", strerror(errno));
		err = &lost;
	}
	const char *text = rc ? err->text : block->data;
	size_t length = rc ? strlen(text) : block->len <= MESSAGE_TEXT_MAX ? block->len : 0;
	*m = (struct message){ .kind = rc ? MESSAGE_FAILED : MESSAGE_DONE, .flags = flags, .code = rc };
	memcpy(m->text, length ? text : "", length);
	if (!message_send(SOCKET, m, length, -1, 0))
		_exit(1);
}

size_t worker_question(void *room, size_t bytes)
{
	struct message *m = &asking.message;
	size_t n;
	if (message_receive(SOCKET, m, &n, NULL, 0) != 1 || m->kind != MESSAGE_QUESTION || n > bytes)
		return SIZE_MAX;
	memcpy(room, m->text, n);
	return n;
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

/* The socket may be any number, one that others get among them: first out of the way, then into place. */
static bool place_descriptors(int socket)
{
	int nothing = open(NULL_DEVICE, O_RDWR | O_CLOEXEC);
	int from = fcntl(socket, F_DUPFD_CLOEXEC, SOCKET + 1);
	for (int i = 0; i < 3; i++)
		if (nothing < 0 || dup2(nothing, i) < 0)
			close(i);
	if (from < 0 || dup2(from, SOCKET) < 0)
		return false;
	if (syscall(SYS_close_range, SOCKET + 1, ~0u, 0) == 0)
		return true;
	long most = sysconf(_SC_OPEN_MAX);
	for (int fd = SOCKET + 1; fd < (most > 0 && most < 65536 ? most : 65536); fd++)
		close(fd);
	return true;
}

__attribute__((noreturn))
static void work(worker_main *start, void *context, int socket, const struct sandbox_bounds *bounds, pid_t parent)
{
	const struct file_source files = { ask_parent, &asking };
	struct sandbox got;
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	if (getppid() != parent)
		_exit(1);
	default_signals();
	die_first();
	if (!place_descriptors(socket))
		_exit(1);
	sandbox_enter(bounds, SOCKET, &got);
	start(context, &files);
	_exit(0);
}

/* --- outside: its beginning and its end --- */

uint64_t worker_now_ms(void)
{
	struct timespec t;
	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

struct worker_limits worker_limits(const struct worker_options *o)
{
	struct worker_limits l = { .timeout_ms = o && o->timeout_ms ? o->timeout_ms : WORKER_TIMEOUT_MS };
	l.bounds.memory_bytes = o && o->memory_bytes ? o->memory_bytes : SANDBOX_MEMORY;
	l.bounds.memory_bytes = l.bounds.memory_bytes < MEMORY_MAX ? l.bounds.memory_bytes : MEMORY_MAX;
	l.bounds.cpu_seconds = (l.timeout_ms / 1000 + 2) * (uint64_t)processors_available();
	l.bounds.output_bytes = WORKER_OUTPUT_MAX;
	return l;
}

void worker_task_end(struct worker_task *t, enum worker_end end, const char *format, ...)
{
	char text[sizeof t->error.text];
	va_list arguments;
	va_start(arguments, format);
	(void)vsnprintf(text, sizeof text, format, arguments);
	va_end(arguments);
	t->end = end;
	(void)error_set(&t->error, end == WORKER_NO_MEMORY ? E_NOMEM : end == WORKER_TIMEOUT ? E_LIMIT : E_FORMAT, "%s", text);
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

void worker_process_start(struct worker_process *p, const struct worker_limits *l, worker_main *start, void *context, struct worker_task *t)
{
	int ends[2] = { -1, -1 };
	pid_t parent = getpid();
	*p = (struct worker_process){ .socket = -1, .place = -1 };
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0)
		p->pid = fork_quietly();
	if (ends[0] < 0 || p->pid < 0) {
		worker_task_end(t, WORKER_FAILED, "no process can be started to read it: %s", strerror(errno));
		p->pid = 0;
		if (ends[0] >= 0)
			close(ends[0]);
	} else if (p->pid == 0) {
		work(start, context, ends[1], &l->bounds, parent);
	} else {
		p->socket = ends[0];
	}
	if (ends[1] >= 0)
		close(ends[1]);
}

void worker_process_kill(const struct worker_process *p)
{
	if (p->pid > 0)
		(void)kill(p->pid, SIGKILL);
}

void worker_process_close(struct worker_process *p)
{
	if (p->socket >= 0)
		close(p->socket);
	if (p->place >= 0)
		close(p->place);
	p->socket = p->place = -1;
}

void worker_process_reap(pid_t *pid, int *ret_status)
{
	while (*pid > 0 && waitpid(*pid, ret_status, 0) < 0 && errno == EINTR)
		continue;
	*pid = 0;
}

/* It ended without a last word. */
static void judge(struct worker_process *p, const struct worker_limits *l, struct worker_task *t)
{
	int status = 0;
	worker_process_reap(&p->pid, &status);
	int number = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
	if (number == SIGXCPU)
		worker_task_end(t, WORKER_TIMEOUT, "its reader used more than %llu s of processor time", (unsigned long long)l->bounds.cpu_seconds);
	else if (number == SIGXFSZ)
		worker_task_end(t, WORKER_FAILED, "its names take more than %llu MiB", (unsigned long long)WORKER_OUTPUT_MAX >> 20);
	else if (number == SIGSYS)
		worker_task_end(t, WORKER_DIED, "its reader made a system call that its sandbox forbids, and was stopped");
	else if (number == SIGKILL)
		worker_task_end(t, WORKER_DIED, "its reader was killed; when memory is short, the kernel takes it first");
	else if (number)
		worker_task_end(t, WORKER_DIED, "its reader crashed (signal %d): this file is damaged, or heapgauge is", number);
	else
		worker_task_end(t, WORKER_DIED, "its reader ended without a word");
}

/* --- outside: what it says --- */

/* False: it asks for nonsense, or doesn't take the answer. */
static bool open_for(struct worker_process *p, const struct worker_task *t, size_t text_bytes, uint64_t *deadline_ms, struct message *m)
{
	struct file_request request;
	char path[FILE_REQUEST_MAX / 2] = "";
	int fd = -1;
	if (++p->requests > REQUESTS_MAX || !file_request_unpack(m->text, text_bytes, &request))
		return false;
	uint64_t before = worker_now_ms();
	if (t->files)
		fd = t->files->open(t->files->context, &request, path, sizeof path);
	*deadline_ms += worker_now_ms() - before;
	m->kind = fd >= 0 ? MESSAGE_THERE : MESSAGE_NOT_THERE;
	size_t length = strnlen(path, sizeof path - 1);
	memcpy(m->text, path, length);
	bool sent = message_send(p->socket, m, length, fd, MSG_DONTWAIT);
	if (fd >= 0)
		close(fd);
	return sent;
}

/* False: it has one. Without a descriptor left, it is told so by getting none. */
static bool give_place(struct worker_process *p, struct message *m)
{
	if (p->place >= 0)
		return false;
	p->place = memfd_create("heapgauge-names", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	m->kind = p->place >= 0 ? MESSAGE_THERE : MESSAGE_NOT_THERE;
	return message_send(p->socket, m, 0, p->place, MSG_DONTWAIT);
}

static void take_block(struct worker_task *t, void *block, size_t bytes, uint32_t flags)
{
	if (block == MAP_FAILED) {
		worker_task_end(t, WORKER_FAILED, "no memory for its names");
		return;
	}
	t->block = block;
	t->block_bytes = bytes;
	t->flags = flags;
	t->end = WORKER_ANSWERED;
}

static void take_text(struct worker_task *t, const struct message *m, size_t n)
{
	void *block = n ? mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) : NULL;
	if (n && block != MAP_FAILED)
		memcpy(block, m->text, n);
	take_block(t, block, n, m->flags);
}

/*
 * What it wrote is nobody's to change from here on. A kernel that moves memory about can have a page of it in its hands, and then it isn't
 * sealed: the worker ends, and with it the only one who could write there.
 */
static bool seal(struct worker_process *p)
{
	int status;
	if (fcntl(p->place, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) == 0)
		return true;
	if (errno != EBUSY)
		return false;
	worker_process_kill(p);
	worker_process_reap(&p->pid, &status);
	return true;
}

static void take_place(struct worker_process *p, struct worker_task *t, const struct message *m)
{
	struct stat st;
	if (!seal(p) || fstat(p->place, &st) < 0 || st.st_size < 0 || (uint64_t)st.st_size > WORKER_OUTPUT_MAX) {
		worker_task_end(t, WORKER_DIED, "its reader did not let go of its answer");
	} else {
		size_t n = (size_t)st.st_size;
		take_block(t, n ? mmap(NULL, n, PROT_READ, MAP_PRIVATE | MAP_POPULATE, p->place, 0) : NULL, n, m->flags);
	}
	close(p->place);
	p->place = -1;
}

static void take_failure(const struct worker_limits *l, struct worker_task *t, struct message *m)
{
	m->text[sizeof t->error.text - 1] = '\0';
	if (m->code == E_NOMEM)
		worker_task_end(t, WORKER_NO_MEMORY, "its reader ran out of memory (limit %llu MiB)", (unsigned long long)l->bounds.memory_bytes >> 20);
	else
		worker_task_end(t, WORKER_FAILED, "%s", m->text);
}

bool worker_process_attend(struct worker_process *p, const struct worker_limits *l, struct worker_task *t, uint64_t *deadline_ms,
                           struct message *scratch)
{
	struct message *m = scratch;
	size_t n = 0;
	int got = message_receive(p->socket, m, &n, NULL, MSG_DONTWAIT);
	if (got < 0 && errno == EAGAIN)
		return true;
	if (got == 1 && ((m->kind == MESSAGE_ASK && open_for(p, t, n, deadline_ms, m)) || (m->kind == MESSAGE_ROOM && give_place(p, m))))
		return true;
	if (got == 0)
		judge(p, l, t);
	else if (got == 1 && m->kind == MESSAGE_DONE && p->place >= 0)
		take_place(p, t, m);
	else if (got == 1 && m->kind == MESSAGE_DONE)
		take_text(t, m, n);
	else if (got == 1 && m->kind == MESSAGE_FAILED)
		take_failure(l, t, m);
	else
		worker_task_end(t, WORKER_DIED, "its reader asked for what no reader asks for, and was stopped");
	return false;
}
