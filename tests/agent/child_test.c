/* The symbolizer's process, with a shell in its place: what it is given, what is left of it, and what it may not disturb. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "agent/child.h"

/* --- every allocation of the process --- */

#if defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SANITIZED 1
#endif
#endif

static atomic_long allocations;

#if !defined(SANITIZED) && defined(__GLIBC__)
#define COUNTS_ALLOCATIONS 1
void *__libc_malloc(size_t n);
void *__libc_calloc(size_t n, size_t each);
void *__libc_realloc(void *block, size_t n);
void *malloc(size_t n) { allocations++; return __libc_malloc(n); }
void *calloc(size_t n, size_t each) { allocations++; return __libc_calloc(n, each); }
void *realloc(void *block, size_t n) { allocations++; return __libc_realloc(block, n); }
#endif

/* --- a run --- */

static char answer[65536];
static struct error error;

static int run_program(const char *program, const char *const *arguments, int input, uint64_t most, unsigned timeout_ms)
{
	struct child_request r = { .program = program, .arguments = arguments, .input = input, .output_max = most,
		                   .timeout_ms = timeout_ms };
	int fd = -1;
	uint64_t n = 0;
	memset(&error, 0, sizeof error);
	int failed = child_run(&r, &fd, &n, &error);
	answer[0] = '\0';
	if (failed)
		return failed;
	ssize_t got = read(fd, answer, sizeof answer - 1);
	close(fd);
	if (got < 0 || (uint64_t)got != (n < sizeof answer - 1 ? n : sizeof answer - 1))
		return -100;
	answer[got] = '\0';
	return 0;
}

static int run_script(const char *script)
{
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	int failed = run_program("/bin/sh", (const char *const[]){ "-c", script, NULL }, null, 1 << 20, 20000);
	close(null);
	return failed;
}

static size_t count(const char *folder)
{
	size_t n = 0;
	DIR *d = opendir(folder);
	while (d && readdir(d))
		n++;
	if (d)
		closedir(d);
	return n;
}

static void nothing_is_left(size_t descriptors)
{
	assert_int_equal(waitpid(-1, NULL, __WALL | WNOHANG), -1);
	assert_int_equal(errno, ECHILD);
	assert_int_equal(count("/proc/self/fd"), descriptors);
}

/* Runs it in a process that may spoil itself; true: passed. */
static void apart(bool (*body)(void))
{
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		_exit(body() ? 0 : 1);
	int status;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

/* --- what it is given --- */

static void reads_and_answers(void **state)
{
	(void)state;
	size_t before = count("/proc/self/fd");
	int file = memfd_create("input", MFD_CLOEXEC);
	assert_int_equal(write(file, "0123456789", 10), 10);
	lseek(file, 4, SEEK_SET);
	assert_int_equal(run_program("/bin/sh", (const char *const[]){ "-c", "cat; echo $0 $1", "a b", "c", NULL }, file, 100, 20000), 0);
	assert_string_equal(answer, "456789a b c\n");
	close(file);
	assert_int_equal(run_script(":"), 0);
	assert_string_equal(answer, "");
	nothing_is_left(before);
}

static void has_no_environment(void **state)
{
	(void)state;
	setenv("MALLOC_CONF", "prof:true", 1);
	setenv("LD_PRELOAD", "/nowhere/lib.so", 1);
	int failed = run_program("/usr/bin/env", (const char *const[]){ NULL }, 0, 1000, 20000);
	unsetenv("LD_PRELOAD");
	assert_int_equal(failed, 0);
	assert_string_equal(answer, "");
}

static void has_no_descriptors(void **state)
{
	(void)state;
	int many[100];
	for (int i = 0; i < 100; i++)
		assert_true((many[i] = dup(1)) >= 0);
	assert_int_equal(run_script("exec ls -C /proc/self/fd"), 0);
	for (int i = 0; i < 100; i++)
		close(many[i]);
	/* 3 is the folder that ls reads. */
	assert_string_equal(answer, "0  1  2  3\n");
}

static void has_default_signals(void **state)
{
	(void)state;
	sigset_t some, before;
	sigfillset(&some);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGUSR1, SIG_IGN);
	signal(SIGRTMIN + 3, SIG_IGN);
	pthread_sigmask(SIG_BLOCK, &some, &before);
	int failed = run_program("/bin/cat", (const char *const[]){ "/proc/self/status", NULL }, 0, 10000, 20000);
	sigset_t after;
	pthread_sigmask(SIG_SETMASK, &before, &after);
	for (int i = 1; i <= SIGRTMAX; i++)
		assert_true(sigismember(&after, i) == sigismember(&some, i) || i == SIGKILL || i == SIGSTOP);
	assert_ptr_equal(signal(SIGUSR1, SIG_DFL), SIG_IGN);
	signal(SIGPIPE, SIG_DFL);
	signal(SIGRTMIN + 3, SIG_DFL);
	assert_int_equal(failed, 0);
	static const char *const masks[] = { "SigPnd:\t", "SigBlk:\t", "SigIgn:\t", "SigCgt:\t" };
	for (size_t i = 0; i < 4; i++) {
		const char *line = strstr(answer, masks[i]);
		assert_non_null(line);
		assert_memory_equal(line + 8, "0000000000000000\n", 17);
	}
}

static void dies_first(void **state)
{
	(void)state;
	char ours[16] = "";
	assert_int_equal(run_script("cat /proc/self/oom_score_adj"), 0);
	assert_string_equal(answer, "1000\n");
	int fd = open("/proc/self/oom_score_adj", O_RDONLY | O_CLOEXEC);
	assert_true(read(fd, ours, sizeof ours - 1) > 0);
	close(fd);
	assert_string_not_equal(ours, "1000\n");
}

/* --- hosts --- */

static void host_ignores_children(void **state)
{
	(void)state;
	size_t before = count("/proc/self/fd");
	signal(SIGCHLD, SIG_IGN);
	int good = run_script("echo fine"), bad = run_script("exit 3");
	signal(SIGCHLD, SIG_DFL);
	assert_int_equal(good, 0);
	assert_int_equal(bad, E_FORMAT);
	nothing_is_left(before);
}

static volatile sig_atomic_t children_ended;
static void on_child(int number)
{
	(void)number;
	children_ended++;
}

static atomic_bool stop_waiting;
static atomic_int wait_flags, taken;

static void *wait_all(void *unused)
{
	(void)unused;
	while (!stop_waiting)
		if (waitpid(-1, NULL, WNOHANG | wait_flags) > 0)
			taken++;
	return NULL;
}

static void host_waits_for_all(void **state)
{
	(void)state;
	pthread_t waiter;
	signal(SIGCHLD, on_child);
	stop_waiting = false;
	wait_flags = 0;
	taken = 0;
	assert_int_equal(pthread_create(&waiter, NULL, wait_all, NULL), 0);
	int failed = 0;
	for (int i = 0; i < 20 && !failed; i++)
		failed = run_script("echo fine");
	stop_waiting = true;
	pthread_join(waiter, NULL);
	signal(SIGCHLD, SIG_DFL);
	assert_int_equal(failed, 0);
	assert_string_equal(answer, "fine\n");
	assert_int_equal(taken, 0);
	assert_int_equal(children_ended, 0);
}

/* __WALL takes any child, and there is nothing in it to be missed. */
static void host_takes_any_child(void **state)
{
	(void)state;
	pthread_t waiter;
	size_t before = count("/proc/self/fd");
	stop_waiting = false;
	wait_flags = __WALL;
	taken = 0;
	assert_int_equal(pthread_create(&waiter, NULL, wait_all, NULL), 0);
	int failed = 0;
	for (int i = 0; i < 50 && !failed; i++)
		failed = run_script("echo fine") || run_script("exit 1") != E_FORMAT ||
		         run_program("/nowhere/heapgauge", (const char *const[]){ NULL }, 0, 10, 100) != E_UNSUPPORTED;
	stop_waiting = true;
	pthread_join(waiter, NULL);
	assert_int_equal(failed, 0);
	assert_true(taken > 0);
	nothing_is_left(before);
}

static bool without_standard_descriptors(void)
{
	close(0);
	close(1);
	close(2);
	size_t before = count("/proc/self/fd");
	if (run_script("ls -C /proc/self/fd && ls -l /proc/self/fd/0 | grep -c null && echo last >&2 && exit 7") != E_FORMAT)
		return false;
	if (!strstr(error.text, "failed: last"))
		return false;
	if (run_script("ls -C /proc/self/fd; readlink /proc/self/fd/0") != 0)
		return false;
	return strcmp(answer, "0  1  2  3\n/dev/null\n") == 0 && count("/proc/self/fd") == before;
}

static void host_closed_the_first_three(void **state)
{
	(void)state;
	apart(without_standard_descriptors);
}

static bool refuse_calls(const int *calls, size_t n)
{
	struct sock_filter code[32] = { BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0) };
	unsigned short at = 1;
	for (size_t i = 0; i < n; i++) {
		code[at++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)calls[i], 0, 1);
		code[at++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS);
	}
	code[at++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	struct sock_fprog program = { at, code };
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) == 0;
}

/* A container runtime that does not know calls younger than itself. */
static bool under_an_old_filter(void)
{
	static const int young[] = { 435 /* clone3 */, 436 /* close_range */, 424 /* pidfd_send_signal */, 434 /* pidfd_open */ };
	for (int i = 0; i < 100; i++)
		if (dup(1) < 0)
			return false;
	if (!refuse_calls(young, 4) || run_script("exec ls -C /proc/self/fd") != 0 || strcmp(answer, "0  1  2  3\n") != 0)
		return false;
	int failed = run_program("/bin/sleep", (const char *const[]){ "60", NULL }, 0, 1000, 200);
	return failed == E_LIMIT && waitpid(-1, NULL, __WALL | WNOHANG) < 0 && errno == ECHILD;
}

static void host_has_an_old_filter(void **state)
{
	(void)state;
	apart(under_an_old_filter);
}

static bool without_clone(void)
{
	static const int calls[] = { SYS_clone, SYS_clone3 };
	size_t before = count("/proc/self/fd");
	return refuse_calls(calls, 2) && run_script(":") == E_UNSUPPORTED && strstr(error.text, "cannot be started") &&
	       count("/proc/self/fd") == before;
}

static void host_may_not_start_anything(void **state)
{
	(void)state;
	apart(without_clone);
}

static bool in_a_child(void)
{
	return run_script("echo fine") == 0 && strcmp(answer, "fine\n") == 0;
}

static void works_after_fork(void **state)
{
	(void)state;
	apart(in_a_child);
}

static void host_is_left_as_it_was(void **state)
{
	(void)state;
	size_t descriptors = count("/proc/self/fd"), threads = count("/proc/self/task"), maps_before = 0, maps = 0;
	assert_int_equal(run_script("echo once"), 0);
	long before = allocations;
	for (int i = 0; i < 50; i++) {
		FILE *f = NULL;
		if (i == 1 || i == 49) {
			f = fopen("/proc/self/maps", "re");
			maps = 0;
			for (int c; (c = getc(f)) != EOF;)
				maps += c == '\n';
			fclose(f);
			maps_before = maps_before ? maps_before : maps;
			before = i == 1 ? allocations : before;
		}
		if (i % 3 == 0)
			assert_int_equal(run_script("echo fine"), 0);
		else if (i % 3 == 1)
			assert_int_equal(run_script("echo bad >&2; exit 1"), E_FORMAT);
		else
			assert_int_equal(run_program("/nowhere/heapgauge", (const char *const[]){ NULL }, 0, 10, 100), E_UNSUPPORTED);
	}
	assert_int_equal(maps, maps_before);
	assert_int_equal(count("/proc/self/task"), threads);
	nothing_is_left(descriptors);
}

static void allocates_nothing(void **state)
{
	(void)state;
#ifdef COUNTS_ALLOCATIONS
	free(malloc(1));
	long before = allocations;
	assert_true(before > 0);
	for (int i = 0; i < 20; i++) {
		(void)run_script(i % 2 ? "echo fine" : "echo bad >&2; exit 1");
		(void)run_program("/nowhere/heapgauge", (const char *const[]){ NULL }, 0, 10, 100);
	}
	char path[PATH_MAX];
	child_find_program(NULL, path, sizeof path);
	assert_int_equal(allocations, before);
#else
	skip();
#endif
}

/* R: still running. A zombie counts as gone. */
static bool runs(pid_t pid)
{
	char path[64], text[256];
	snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
	FILE *f = fopen(path, "re");
	if (!f)
		return false;
	bool alive = fgets(text, sizeof text, f) && strrchr(text, ')')[2] != 'Z';
	fclose(f);
	return alive;
}

static void dies_with_the_host(void **state)
{
	(void)state;
	int ends[2], symbolizer = 0;
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	pid_t host = fork();
	if (host == 0) {
		char script[100];
		/* Its descriptors are closed, but /proc has ours. */
		snprintf(script, sizeof script, "echo $$ > /proc/%d/fd/%d; exec sleep 60", (int)getpid(), ends[1]);
		(void)run_script(script);
		_exit(0);
	}
	char text[32] = "";
	assert_true(read(ends[0], text, sizeof text - 1) > 0);
	assert_int_equal(sscanf(text, "%d", &symbolizer), 1);
	assert_true(runs(symbolizer));
	kill(host, SIGKILL);
	assert_int_equal(waitpid(host, NULL, 0), host);
	for (int i = 0; i < 500 && runs(symbolizer); i++)
		nanosleep(&(struct timespec){ 0, 10000000 }, NULL);
	assert_false(runs(symbolizer));
	close(ends[0]);
	close(ends[1]);
}

static void *run_some(void *context)
{
	const char *const *arguments = context;
	struct child_request r = { .program = "/bin/sh", .arguments = arguments, .output_max = 100, .timeout_ms = 20000 };
	for (int i = 0; i < 10; i++) {
		char text[16] = "";
		int fd = -1;
		uint64_t n = 0;
		if (child_run(&r, &fd, &n, NULL) || read(fd, text, sizeof text) != (ssize_t)n || strcmp(text, arguments[2]) != 0)
			return context;
		close(fd);
	}
	return NULL;
}

static void several_at_once(void **state)
{
	(void)state;
	size_t before = count("/proc/self/fd");
	pthread_t threads[4];
	static const char *const arguments[4][4] = {
		{ "-c", "printf $0", "a" }, { "-c", "printf $0", "b" }, { "-c", "printf $0", "c" }, { "-c", "printf $0", "d" },
	};
	for (size_t i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, run_some, (void *)(uintptr_t)arguments[i]), 0);
	for (size_t i = 0; i < 4; i++) {
		void *bad;
		pthread_join(threads[i], &bad);
		assert_null(bad);
	}
	nothing_is_left(before);
}

/* --- failures --- */

static void says_why_it_cannot_start(void **state)
{
	(void)state;
	size_t before = count("/proc/self/fd");
	char file[] = "/tmp/heapgauge-child-XXXXXX";
	int fd = mkstemp(file);
	assert_true(fd >= 0);
	const struct { const char *path, *why; } cases[] = {
		{ "/nowhere/heapgauge", "/nowhere/heapgauge cannot be started: No such file or directory" },
		{ file, "cannot be started: Permission denied" },
		{ "/tmp", "/tmp cannot be started: Permission denied" },
		{ "", "cannot be started: No such file" },
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		assert_int_equal(run_program(cases[i].path, (const char *const[]){ NULL }, 0, 10, 1000), E_UNSUPPORTED);
		assert_non_null(strstr(error.text, cases[i].why));
		assert_non_null(strstr(error.text, "option symbolizer"));
	}
	close(fd);
	unlink(file);
	nothing_is_left(before);
}

static void says_why_it_failed(void **state)
{
	(void)state;
	const struct { const char *script, *why; } cases[] = {
		{ "echo first >&2; printf 'heapgauge: a.so: cut\\n' >&2; exit 1", "the symbolizer failed: a.so: cut" },
		{ "printf 'no newline' >&2; exit 1", "the symbolizer failed: no newline" },
		{ "printf 'wrong\\n\\nTry help.\\n' >&2; exit 2", "the symbolizer failed: Try help." },
		{ "printf \"wrong\\nTry 'heapgauge help x'.\\n\" >&2; exit 2", "the symbolizer failed: wrong" },
		{ "printf '\\033[31mred\\377!\\n' >&2; exit 1", "the symbolizer failed: ?[31mred?!" },
		{ "exit 1", "the symbolizer failed: it did not say why" },
		{ "head -c 300000 /dev/zero | tr '\\0' x >&2; exit 1", "the symbolizer failed: xxxx" },
		{ "kill -SEGV $$", "ended by signal 11" },
		{ "kill -KILL $$", "was killed" },
		{ "kill -XCPU $$", "more processor time" },
		{ "kill -SYS $$", "system call that its sandbox forbids" },
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		assert_true(run_script(cases[i].script) < 0);
		if (!strstr(error.text, cases[i].why))
			fail_msg("%s: %s", cases[i].script, error.text);
	}
}

static void its_answer_is_bounded(void **state)
{
	(void)state;
	size_t before = count("/proc/self/fd");
	assert_int_equal(run_program("/usr/bin/head", (const char *const[]){ "-c", "5000", "/dev/zero", NULL }, 0, 5000, 20000), 0);
	assert_int_equal(run_program("/usr/bin/head", (const char *const[]){ "-c", "5001", "/dev/zero", NULL }, 0, 5000, 20000), E_LIMIT);
	assert_non_null(strstr(error.text, "larger than 5000 bytes"));
	nothing_is_left(before);
}

static uint64_t now_ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static void its_time_is_bounded(void **state)
{
	(void)state;
	size_t before = count("/proc/self/fd");
	uint64_t begin = now_ms();
	assert_int_equal(run_program("/bin/sleep", (const char *const[]){ "60", NULL }, 0, 10, 300), E_LIMIT);
	assert_non_null(strstr(error.text, "longer than 1 s"));
	assert_in_range(now_ms() - begin, 300, 5000);
	nothing_is_left(before);
}

static bool at_the_third(void *context)
{
	return ++*(int *)context == 3;
}

static void can_be_cancelled(void **state)
{
	(void)state;
	size_t before = count("/proc/self/fd");
	int asked = 0, fd = -1;
	uint64_t n, begin = now_ms();
	struct child_request r = { .program = "/bin/sleep", .arguments = (const char *const[]){ "60", NULL }, .output_max = 10,
		                   .timeout_ms = 60000, .cancelled = at_the_third, .context = &asked };
	assert_int_equal(child_run(&r, &fd, &n, &error), E_LIMIT);
	assert_int_equal(asked, 3);
	assert_int_equal(fd, -1);
	assert_in_range(now_ms() - begin, 0, 5000);
	nothing_is_left(before);
}

/* --- finding it --- */

typedef void find_fn(const char *configured, char *to, size_t room);

/* A copy of the code in a library at folder/where finds the program that lies at folder/program, or none. */
static void finds(const char *folder, const char *where, const char *program, const char *wanted)
{
	char command[4 * PATH_MAX], library[PATH_MAX], expected[PATH_MAX], found[PATH_MAX];
	snprintf(command, sizeof command, "cd %s && rm -rf t && mkdir -p t/%s t/bin t/cli && cp %s t/%s/libchild.so && "
	         "{ echo '#!/bin/sh' > t/%s; chmod 755 t/%s; }", folder, where, getenv("CHILD_LIBRARY"), where, program, program);
	assert_int_equal(system(command), 0);
	snprintf(library, sizeof library, "%s/t/%s/libchild.so", folder, where);
	void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
	if (!handle)
		fail_msg("%s", dlerror());
	find_fn *find;
	*(void **)&find = dlsym(handle, "child_find_program");
	assert_non_null(find);
	find(NULL, found, sizeof found);
	dlclose(handle);
	snprintf(expected, sizeof expected, "%s/t/%s", folder, wanted);
	char real[PATH_MAX];
	if (!*wanted)
		assert_true(*found == '\0' || strncmp(found, "/usr/", 5) == 0);
	else if (!realpath(expected, real) || !realpath(found, expected) || strcmp(real, expected) != 0)
		fail_msg("%s: %s", where, found);
}

static void is_found(void **state)
{
	(void)state;
	char folder[] = "/tmp/heapgauge-child-XXXXXX", found[64], command[64];
	child_find_program("/opt/hg", found, sizeof found);
	assert_string_equal(found, "/opt/hg");
	if (!getenv("CHILD_LIBRARY"))
		skip();
	assert_non_null(mkdtemp(folder));
	finds(folder, "lib", "bin/heapgauge", "bin/heapgauge");
	finds(folder, "lib/x86_64-linux-gnu", "bin/heapgauge", "bin/heapgauge");
	finds(folder, "lib/x86_64-linux-gnu/heapgauge", "bin/heapgauge", "bin/heapgauge");
	finds(folder, "agent", "cli/heapgauge", "cli/heapgauge");
	finds(folder, "same", "same/heapgauge", "same/heapgauge");
	finds(folder, "lib", "bin/other", "");
	assert_int_equal(chdir(folder), 0);
	finds(".", "lib", "bin/heapgauge", "bin/heapgauge");
	assert_int_equal(chdir("/"), 0);
	snprintf(command, sizeof command, "rm -rf %s", folder);
	assert_int_equal(system(command), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_and_answers), cmocka_unit_test(has_no_environment), cmocka_unit_test(has_no_descriptors),
		cmocka_unit_test(has_default_signals), cmocka_unit_test(dies_first), cmocka_unit_test(host_ignores_children),
		cmocka_unit_test(host_waits_for_all), cmocka_unit_test(host_takes_any_child),
		cmocka_unit_test(host_closed_the_first_three), cmocka_unit_test(host_has_an_old_filter),
		cmocka_unit_test(host_may_not_start_anything), cmocka_unit_test(works_after_fork),
		cmocka_unit_test(host_is_left_as_it_was), cmocka_unit_test(allocates_nothing),
		cmocka_unit_test(dies_with_the_host), cmocka_unit_test(several_at_once),
		cmocka_unit_test(says_why_it_cannot_start), cmocka_unit_test(says_why_it_failed),
		cmocka_unit_test(its_answer_is_bounded), cmocka_unit_test(its_time_is_bounded),
		cmocka_unit_test(can_be_cancelled), cmocka_unit_test(is_found),
	};
	return cmocka_run_group_tests_name("child", tests, NULL, NULL);
}
