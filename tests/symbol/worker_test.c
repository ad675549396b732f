/*
 * Jobs in workers: honest ones get their files and hand over their block; the others try what the sandbox forbids, crash, loop, take
 * memory without end, send garbage, or never stop asking. Whatever they do, workers_run() returns soon with a reason.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "symbol/sandbox.h"
#include "symbol/worker.h"

static bool sanitized;
static struct sandbox kernel;

static double seconds(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Runs one job for at most 10 s. */
static void run(struct worker_task *t, worker_job *job, void *context, const struct file_source *files, uint64_t memory)
{
	struct worker_options o = { .timeout_ms = 10000, .memory_bytes = memory };
	*t = (struct worker_task){ .job = job, .context = context, .files = files };
	workers_run(t, 1, &o);
}

static size_t open_descriptors(void)
{
	size_t n = 0;
	for (int fd = 0; fd < 1024; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

/* --- honest work --- */

static int square(void *context, const struct file_source *files, struct buf *block, uint32_t *ret_flags, struct error *err)
{
	(void)files, (void)err;
	uint32_t n = *(uint32_t *)context;
	for (uint32_t i = 0; i < n; i++)
		buf_add(block, &(uint32_t){ i * i }, sizeof(uint32_t));
	*ret_flags = n;
	return 0;
}

static void an_answer_comes_back_whole(void **state)
{
	(void)state;
	static uint32_t sizes[] = { 0, 1, 1000, 3000000 };
	for (size_t i = 0; i < 4; i++) {
		struct worker_task t;
		run(&t, square, &sizes[i], NULL, 0);
		if (t.end != WORKER_ANSWERED)
			fail_msg("%s", t.error.text);
		assert_int_equal(t.flags, sizes[i]);
		assert_int_equal(t.block_bytes, sizes[i] * sizeof(uint32_t));
		assert_int_equal(t.block == NULL, sizes[i] == 0);
		if (sizes[i])
			assert_int_equal(((uint32_t *)t.block)[sizes[i] - 1], (sizes[i] - 1) * (sizes[i] - 1));
		worker_task_finish(&t);
	}
	worker_task_finish(NULL);
}

/* Maps the memory of an answer as soon as there is one, as a kernel does that moves memory: it can't be sealed then. */
static void *hold_place(void *context)
{
	atomic_bool *stop = context;
	while (!atomic_load(stop)) {
		for (int fd = 3; fd < 64; fd++) {
			char path[32], name[64] = "";
			snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
			if (readlink(path, name, sizeof name - 1) < 0 || !strstr(name, "heapgauge-names"))
				continue;
			void *held = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
			if (held != MAP_FAILED)
				return held;
		}
	}
	return NULL;
}

static void an_answer_that_cannot_be_sealed_is_its_workers_last(void **state)
{
	(void)state;
	struct worker_task t;
	pthread_t thread;
	atomic_bool stop = false;
	uint32_t n = 16 << 20;
	size_t descriptors = open_descriptors();
	void *held;
	assert_int_equal(pthread_create(&thread, NULL, hold_place, &stop), 0);
	run(&t, square, &n, NULL, 0);
	atomic_store(&stop, true);
	pthread_join(thread, &held);
	assert_int_equal(t.end, WORKER_ANSWERED);
	assert_int_equal(t.block_bytes, n * sizeof(uint32_t));
	assert_int_equal(((uint32_t *)t.block)[n - 1], (n - 1) * (n - 1));
	/* A thread that never had its turn while it was written has not held it. */
	if (held) {
		assert_int_equal(t.pid, 0);
		munmap(held, 4096);
	}
	worker_task_finish(&t);
	assert_int_equal(open_descriptors(), descriptors);
}

static void many_run_and_keep_their_places(void **state)
{
	(void)state;
	struct worker_task t[50] = { { 0 } };
	uint32_t sizes[50];
	size_t descriptors = open_descriptors();
	for (uint32_t i = 0; i < 50; i++) {
		sizes[i] = i * 100;
		t[i] = (struct worker_task){ .job = square, .context = &sizes[i] };
	}
	workers_run(t, 50, NULL);
	for (uint32_t i = 0; i < 50; i++) {
		assert_int_equal(t[i].end, WORKER_ANSWERED);
		assert_int_equal(t[i].flags, sizes[i]);
		assert_int_equal(t[i].block_bytes, sizes[i] * 4);
		worker_task_finish(&t[i]);
	}
	assert_int_equal(open_descriptors(), descriptors);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
}

static int complain(void *context, const struct file_source *files, struct buf *block, uint32_t *ret_flags, struct error *err)
{
	(void)files, (void)ret_flags;
	buf_adds(block, "half of an answer");
	return error_set(err, *(int *)context, "its numbers are odd");
}

static void an_error_comes_back_in_words(void **state)
{
	(void)state;
	struct worker_task t;
	int code = E_FORMAT;
	run(&t, complain, &code, NULL, 0);
	assert_int_equal(t.end, WORKER_FAILED);
	assert_string_equal(t.error.text, "its numbers are odd");
	assert_null(t.block);
	worker_task_finish(&t);
	code = E_NOMEM;
	run(&t, complain, &code, NULL, (uint64_t)64 << 20);
	assert_int_equal(t.end, WORKER_NO_MEMORY);
	assert_non_null(strstr(t.error.text, "out of memory (limit 64 MiB)"));
	worker_task_finish(&t);
}

/* --- files --- */

struct shelf {
	int opened;
};

/* Has what is called "there": a file with its folder's name in it. */
static int open_on_shelf(void *context, const struct file_request *r, char *ret_path, unsigned long size)
{
	struct shelf *s = context;
	s->opened++;
	if (!r->name || strcmp(r->name, "there"))
		return -1;
	int fd = memfd_create("there", MFD_CLOEXEC);
	const char *text = r->folder ? r->folder : "none";
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	snprintf(ret_path, size, "%s/%s/%d/%s/%08x", r->of, r->name, (int)r->kind, r->build_id, r->crc);
	return fd;
}

#define ASKERS 4

struct asker {
	const struct file_source *files;
	char text[64], path[256];
	bool found, refused;
};

static void *ask(void *context)
{
	struct asker *a = context;
	struct file_request r = { FILE_DWO, "/bin/x", "there", a->text, "", 0xabcdef01 };
	char read_text[64] = "";
	for (int i = 0; i < 50; i++) {
		int fd = a->files->open(a->files->context, &r, a->path, sizeof(a->path));
		a->found = fd >= 0 && pread(fd, read_text, sizeof(read_text) - 1, 0) > 0 && !strcmp(read_text, a->text);
		void *mapped = mmap(NULL, 64, PROT_READ, MAP_PRIVATE, fd, 0);
		struct stat st;
		if (mapped == MAP_FAILED || strcmp(mapped, a->text) || fstat(fd, &st) || st.st_size != (off_t)strlen(a->text))
			a->found = false;
		close(fd);
		if (!a->found)
			break;
	}
	r.name = "not there";
	a->refused = a->files->open(a->files->context, &r, a->path, 0) == -1;
	r.name = NULL;
	a->refused &= a->files->open(a->files->context, &r, a->path, 0) == -1;
	return NULL;
}

/* Several threads ask, all of them at once. */
static int fetch(void *context, const struct file_source *files, struct buf *block, uint32_t *ret_flags, struct error *err)
{
	(void)context, (void)err;
	struct asker askers[ASKERS];
	pthread_t threads[ASKERS];
	for (int i = 0; i < ASKERS; i++) {
		askers[i] = (struct asker){ .files = files };
		snprintf(askers[i].text, sizeof(askers[i].text), "folder %d", i);
		if (pthread_create(&threads[i], NULL, ask, &askers[i]))
			return error_set(err, E_IO, "no thread");
	}
	for (int i = 0; i < ASKERS; i++) {
		pthread_join(threads[i], NULL);
		*ret_flags += askers[i].found && askers[i].refused;
	}
	buf_adds(block, askers[0].path);
	return 0;
}

static void files_are_opened_outside(void **state)
{
	(void)state;
	struct shelf shelf = { 0 };
	struct file_source files = { open_on_shelf, &shelf };
	struct worker_task t;
	run(&t, fetch, NULL, &files, 0);
	if (t.end != WORKER_ANSWERED)
		fail_msg("%s", t.error.text);
	assert_int_equal(t.flags, ASKERS);
	assert_int_equal(shelf.opened, ASKERS * 52);
	assert_int_equal(t.block_bytes, strlen("/bin/x/there/2//abcdef01"));
	assert_memory_equal(t.block, "/bin/x/there/2//abcdef01", t.block_bytes);
	worker_task_finish(&t);
}

static int ask_at_length(void *context, const struct file_source *files, struct buf *block, uint32_t *ret_flags, struct error *err)
{
	(void)context, (void)block, (void)err;
	static char name[100000];
	struct file_request r = { FILE_DWO, "/bin/x", name, NULL, "", 0 };
	memset(name, 'a', sizeof(name) - 1);
	*ret_flags = files->open(files->context, &r, NULL, 0) == -1;
	return 0;
}

static void a_name_too_long_is_no_file(void **state)
{
	(void)state;
	struct shelf shelf = { 0 };
	struct file_source files = { open_on_shelf, &shelf };
	struct worker_task t;
	run(&t, ask_at_length, NULL, &files, 0);
	assert_int_equal(t.end, WORKER_ANSWERED);
	assert_int_equal(t.flags, 1);
	assert_int_equal(shelf.opened, 0);
	worker_task_finish(&t);
}

/* --- what the sandbox forbids, tried from inside --- */

static int tried_open(void) { return open("/etc/passwd", O_RDONLY | O_CLOEXEC); }
static int tried_raw_open(void) { return (int)syscall(SYS_openat, AT_FDCWD, "/etc/passwd", O_RDONLY, 0); }
static int tried_folder(void) { return open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC); }
static int tried_proc(void) { return open("/proc/self/mem", O_RDONLY | O_CLOEXEC); }
static int tried_write(void) { return open("/tmp/heapgauge-never", O_WRONLY | O_CREAT | O_CLOEXEC, 0600); }
static int tried_stat(void)
{
	struct stat st;
	return stat("/etc/passwd", &st);
}
static int tried_socket(void) { return socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0); }
static int tried_pair(void)
{
	int ends[2];
	return socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends);
}
static int tried_fork(void)
{
	pid_t pid = fork();
	if (pid == 0)
		_exit(0);
	return pid;
}
static int tried_exec(void)
{
	char *const none[] = { NULL };
	return execve("/bin/true", none, none);
}
static int tried_kill(void) { return kill(getppid(), 0); }
static int tried_code(void)
{
	return mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED ? -1 : 0;
}
static int tried_shared(void)
{
	return mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0) == MAP_FAILED ? -1 : 0;
}
static int tried_other_socket(void)
{
	struct msghdr h = { 0 };
	return (int)sendmsg(2, &h, 0) < 0 && errno == EPERM ? -1 : 0;
}

/* Its own errno; 0 when it worked. */
static int attempt(void *context, const struct file_source *files, struct buf *block, uint32_t *ret_flags, struct error *err)
{
	(void)files, (void)block, (void)err;
	int (*what)(void) = *(int (**)(void))context;
	errno = 0;
	*ret_flags = what() < 0 ? (uint32_t)errno : 0;
	return 0;
}

static void nothing_can_be_opened_connected_or_started_from_inside(void **state)
{
	(void)state;
	static const struct {
		int (*what)(void);
		bool deadly, landlock;
	} all[] = {
		{ tried_open, false, true }, { tried_raw_open, false, true }, { tried_folder, false, true }, { tried_proc, false, true },
		{ tried_write, false, true }, { tried_stat, false, false }, { tried_fork, false, false }, { tried_kill, false, false },
		{ tried_code, false, false }, { tried_shared, false, false }, { tried_other_socket, false, false },
		{ tried_socket, true, false }, { tried_pair, true, false }, { tried_exec, true, true },
	};
	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
		struct worker_task t;
		int (*what)(void) = all[i].what;
		if (!kernel.filter && !(all[i].landlock && kernel.landlock))
			continue;
		run(&t, attempt, &what, NULL, 0);
		if (all[i].deadly && kernel.filter) {
			if (t.end != WORKER_DIED || !strstr(t.error.text, "sandbox forbids"))
				fail_msg("%zu was not killed", i);
		} else if (t.end != WORKER_ANSWERED || (t.flags != EPERM && t.flags != EACCES)) {
			fail_msg("%zu: %s %s", i, strerror((int)t.flags), t.end ? t.error.text : "");
		}
		worker_task_finish(&t);
	}
	assert_int_equal(access("/tmp/heapgauge-never", F_OK), -1);
}

/* Nothing but its socket and /dev/null is open. */
static int list_descriptors(void *context, const struct file_source *files, struct buf *block, uint32_t *ret_flags, struct error *err)
{
	(void)context, (void)files, (void)block, (void)err;
	struct stat st, null;
	*ret_flags = 0;
	if (fstat(0, &null) || !S_ISCHR(null.st_mode))
		*ret_flags = 1000;
	for (int fd = 0; fd < 1024; fd++)
		*ret_flags += fstat(fd, &st) == 0 && !(S_ISCHR(st.st_mode) && st.st_rdev == null.st_rdev);
	return 0;
}

static void no_descriptor_comes_along(void **state)
{
	(void)state;
	struct worker_task t;
	int kept[3];
	for (int i = 0; i < 3; i++)
		kept[i] = open("/etc/passwd", O_RDONLY);
	run(&t, list_descriptors, NULL, NULL, 0);
	assert_int_equal(t.end, WORKER_ANSWERED);
	assert_int_equal(t.flags, 1);
	worker_task_finish(&t);
	for (int i = 0; i < 3; i++)
		close(kept[i]);
}

/* --- harm --- */

static int crash(void *context, const struct file_source *files, struct buf *block, uint32_t *ret_flags, struct error *err)
{
	(void)files, (void)block, (void)ret_flags, (void)err;
	signal(*(int *)context, SIG_DFL);
	raise(*(int *)context);
	return 0;
}

static void a_crash_is_a_reason(void **state)
{
	(void)state;
	static const struct {
		int signal;
		const char *words;
	} all[] = { { SIGSEGV, "crashed (signal 11)" }, { SIGBUS, "crashed (signal 7)" }, { SIGABRT, "crashed (signal 6)" },
		    { SIGKILL, "was killed" }, { SIGTERM, "signal 15" } };
	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
		struct worker_task t;
		int number = all[i].signal;
		run(&t, crash, &number, NULL, 0);
		assert_int_equal(t.end, WORKER_DIED);
		if (!strstr(t.error.text, all[i].words))
			fail_msg("%s", t.error.text);
		assert_null(t.block);
		worker_task_finish(&t);
	}
}

static int leave(void *context, const struct file_source *files, struct buf *block, uint32_t *ret_flags, struct error *err)
{
	(void)context, (void)files, (void)block, (void)ret_flags, (void)err;
	_exit(0);
}

static int loop(void *context, const struct file_source *files, struct buf *block, uint32_t *ret_flags, struct error *err)
{
	(void)context, (void)files, (void)block, (void)ret_flags, (void)err;
	for (volatile unsigned i = 0;; i++)
		continue;
	return 0;
}

static void a_loop_ends_with_the_time(void **state)
{
	(void)state;
	struct worker_task t[5] = { { 0 } };
	uint32_t one = 1;
	struct worker_options o = { .timeout_ms = 300, .at_once = 2 };
	for (int i = 0; i < 5; i++)
		t[i] = (struct worker_task){ .job = i == 0 ? square : loop, .context = &one };
	double before = seconds();
	workers_run(t, 5, &o);
	assert_true(seconds() - before > 0.25 && seconds() - before < 5);
	assert_int_equal(t[0].end, WORKER_ANSWERED);
	for (int i = 1; i < 5; i++) {
		assert_int_equal(t[i].end, WORKER_TIMEOUT);
		assert_non_null(strstr(t[i].error.text, "after 1 s"));
	}
	for (int i = 0; i < 5; i++)
		worker_task_finish(&t[i]);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	run(t, leave, NULL, NULL, 0);
	assert_int_equal(t->end, WORKER_DIED);
	assert_non_null(strstr(t->error.text, "without a word"));
	worker_task_finish(t);
}

/* Takes memory as context says, and touches all of it. */
static int devour(void *context, const struct file_source *files, struct buf *block, uint32_t *ret_flags, struct error *err)
{
	(void)files, (void)block;
	for (size_t step = (size_t)1 << 20;; (*ret_flags)++) {
		char *more = *(int *)context == 0 ? malloc(step)
		             : mmap(NULL, step, PROT_READ | PROT_WRITE,
		                    *(int *)context == 1 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED | MAP_ANONYMOUS, -1, 0);
		if (!more || more == MAP_FAILED)
			return error_nomem(err, "more");
		memset(more, 1, step);
	}
}

static void memory_without_end_has_one(void **state)
{
	(void)state;
	if (sanitized || !kernel.limits)
		return;
	for (int how = 0; how < 3; how++) {
		struct worker_task t;
		if (how == 2 && !kernel.filter)
			continue;
		run(&t, devour, &how, NULL, (uint64_t)32 << 20);
		assert_int_equal(t.end, WORKER_NO_MEMORY);
		worker_task_finish(&t);
	}
}

static int ask_forever(void *context, const struct file_source *files, struct buf *block, uint32_t *ret_flags, struct error *err)
{
	(void)context, (void)block, (void)err, (void)ret_flags;
	struct file_request r = { FILE_DWO, "/bin/x", "there", "folder", "", 0 };
	for (;;) {
		int fd = files->open(files->context, &r, NULL, 0);
		if (fd >= 0)
			close(fd);
	}
	return 0;
}

static void questions_without_end_are_cut_off(void **state)
{
	(void)state;
	struct shelf shelf = { 0 };
	struct file_source files = { open_on_shelf, &shelf };
	struct worker_task t;
	size_t descriptors = open_descriptors();
	/* 65,536 times to and fro: a second, and more than ten on a machine that does something else. */
	struct worker_options o = { .timeout_ms = 100000 };
	t = (struct worker_task){ .job = ask_forever, .files = &files };
	workers_run(&t, 1, &o);
	assert_int_equal(t.end, WORKER_DIED);
	assert_non_null(strstr(t.error.text, "asked for what no reader asks for"));
	assert_int_equal(shelf.opened, 65536);
	worker_task_finish(&t);
	assert_int_equal(open_descriptors(), descriptors);
}

/* Bytes over the socket (it is descriptor 3) that are no message, or lies. */
static int babble(void *context, const struct file_source *files, struct buf *block, uint32_t *ret_flags, struct error *err)
{
	(void)files, (void)block, (void)ret_flags, (void)err;
	static char bytes[40000];
	int how = *(int *)context;
	size_t n = how == 0 ? 1 : how == 1 ? 12 : how == 2 ? sizeof(bytes) : how == 3 ? 12 + 30 : 12 + 12;
	memset(bytes, how < 3 ? 0xa5 : 0, sizeof(bytes));
	if (how >= 4) {
		/* A request with texts that have no end, or of no kind. */
		uint32_t head[] = { 0, 0, 0, how == 4 ? 0 : 99, 0, 9 };
		memcpy(bytes, head, sizeof(head));
	}
	struct iovec v = { bytes, n };
	struct msghdr h = { .msg_iov = &v, .msg_iovlen = 1 };
	for (;;)
		if (sendmsg(3, &h, MSG_NOSIGNAL) < 0)
			_exit(1);
}

static void garbage_ends_the_talk(void **state)
{
	(void)state;
	for (int how = 0; how < 6; how++) {
		struct worker_task t;
		run(&t, babble, &how, NULL, 0);
		assert_int_equal(t.end, WORKER_DIED);
		worker_task_finish(&t);
	}
}

static atomic_bool stop;

static void *allocate(void *context)
{
	while (!atomic_load(&stop)) {
		void *volatile p = malloc(1 + (uintptr_t)context % 5000);
		free(p);
	}
	return context;
}

static void *allocate_once(void *context)
{
	return malloc((uintptr_t)context);
}

static int allocate_inside(void *context, const struct file_source *files, struct buf *block, uint32_t *ret_flags, struct error *err)
{
	pthread_t thread;
	for (int i = 0; i < 100; i++)
		buf_add(block, "0123456789", 10);
	for (int i = 0; i < 2; i++)
		if (pthread_create(&thread, NULL, allocate_once, (void *)(uintptr_t)1000) || pthread_join(thread, NULL))
			return error_set(err, E_IO, "no thread");
	(void)context, (void)files, (void)ret_flags;
	return 0;
}

/* A program whose other threads are in malloc at the moment of the fork. */
static void workers_start_from_busy_programs(void **state)
{
	(void)state;
	pthread_t threads[4];
	struct worker_task t[8];
	/* A sanitizer's malloc takes no locks around a fork. */
	if (sanitized)
		return;
	for (uintptr_t i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, allocate, (void *)(i * 1500));
	for (int round = 0; round < 10; round++) {
		struct worker_options o = { .timeout_ms = 20000 };
		for (int i = 0; i < 8; i++)
			t[i] = (struct worker_task){ .job = allocate_inside };
		workers_run(t, 8, &o);
		for (int i = 0; i < 8; i++) {
			if (t[i].end != WORKER_ANSWERED)
				fail_msg("%s", t[i].error.text);
			assert_int_equal(t[i].block_bytes, 1000);
			worker_task_finish(&t[i]);
		}
	}
	atomic_store(&stop, true);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
}

static void without_descriptors_there_is_a_reason(void **state)
{
	(void)state;
	struct rlimit before, none;
	struct worker_task t;
	uint32_t one = 1;
	getrlimit(RLIMIT_NOFILE, &before);
	none = before;
	none.rlim_cur = 0;
	setrlimit(RLIMIT_NOFILE, &none);
	run(&t, square, &one, NULL, 0);
	setrlimit(RLIMIT_NOFILE, &before);
	assert_int_equal(t.end, WORKER_FAILED);
	assert_non_null(strstr(t.error.text, "no process can be started"));
	worker_task_finish(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_answer_comes_back_whole),
		cmocka_unit_test(an_answer_that_cannot_be_sealed_is_its_workers_last),
		cmocka_unit_test(many_run_and_keep_their_places),
		cmocka_unit_test(an_error_comes_back_in_words),
		cmocka_unit_test(files_are_opened_outside),
		cmocka_unit_test(a_name_too_long_is_no_file),
		cmocka_unit_test(nothing_can_be_opened_connected_or_started_from_inside),
		cmocka_unit_test(no_descriptor_comes_along),
		cmocka_unit_test(a_crash_is_a_reason),
		cmocka_unit_test(a_loop_ends_with_the_time),
		cmocka_unit_test(memory_without_end_has_one),
		cmocka_unit_test(questions_without_end_are_cut_off),
		cmocka_unit_test(garbage_ends_the_talk),
		cmocka_unit_test(workers_start_from_busy_programs),
		cmocka_unit_test(without_descriptors_there_is_a_reason),
	};
	const char *value = getenv("SANITIZED");
	sanitized = value && *value;
	if (!sandbox_probe(&kernel))
		return 1;
	printf("# this kernel gives: %s%sLandlock ABI %d\n", kernel.limits ? "limits, " : "", kernel.filter ? "seccomp, " : "", kernel.landlock);
	return cmocka_run_group_tests_name("worker", tests, NULL, NULL);
}
