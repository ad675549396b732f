/*
 * Every wall of the sandbox by itself and all together: a process goes in and tries what it must not be able to do.
 * What the kernel does not have is skipped, by name.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <netinet/in.h>
#include <unistd.h>

#include "symbol/sandbox.h"

static int count, failures;
static pid_t sibling;                   /* a process outside, of the same user */
static char folder[] = "/tmp/heapgauge-sandbox-XXXXXX";
static char written[64], made[64];
static struct sandbox kernel;
static int kept = -1;                   /* what is written, open before anything is given up */
static int talk[2];                     /* the one socket there may be talk over, and its other end */
static const struct sandbox_bounds bounds = { (uint64_t)512 << 20, 60, (uint64_t)1 << 20 };

/* --- what is tried: 0 it worked, else errno --- */

static int result(long rc)
{
	return rc < 0 ? errno : 0;
}

static int reads(const char *path)
{
	char byte;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? errno : result(read(fd, &byte, 1));
}

static int read_file(void) { return reads(written); }
static int read_system(void) { return reads("/etc/passwd"); }
static int read_folder(void) { return result(open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)); }
static int ask_size(void)
{
	struct stat st;
	return result(stat(written, &st));
}
static int send_elsewhere(void)
{
	struct iovec v = { (void *)(uintptr_t)"x", 1 };
	struct msghdr h = { .msg_iov = &v, .msg_iovlen = 1 };
	return result(sendmsg(talk[1], &h, MSG_NOSIGNAL));
}
static int share_memory(void)
{
	return mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0) == MAP_FAILED ? errno : 0;
}
static int write_file(void) { return result(open(written, O_WRONLY | O_CLOEXEC)); }
static int append_file(void) { return result(open(written, O_RDWR | O_APPEND | O_CLOEXEC)); }
static int empty_file(void) { return result(open(written, O_RDONLY | O_TRUNC | O_CLOEXEC)); }
static int make_file(void) { return result(open(made, O_RDONLY | O_CREAT | O_CLOEXEC, 0600)); }
static int make_nameless(void) { return result(open(folder, O_WRONLY | O_TMPFILE | O_CLOEXEC, 0600)); }
static int make_folder(void) { return result(mkdir(made, 0700)); }
static int make_link(void) { return result(symlink("/", made)); }
static int remove_file(void) { return result(unlink(written)); }
static int rename_file(void) { return result(rename(written, made)); }
static int change_mode(void) { return result(chmod(written, 0777)); }
static int cut_file(void) { return result(truncate(written, 0)); }
static int make_socket(void) { return result(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)); }
static int make_local_socket(void) { return result(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)); }
static int send_signal(void) { return result(kill(sibling, 0)); }
static int kill_other(void) { return result(kill(sibling, SIGCONT)); }
static int trace(void) { return result(ptrace(PTRACE_SEIZE, sibling, NULL, NULL)); }
static int opens_of_sibling(const char *name)
{
	char path[64];
	(void)snprintf(path, sizeof path, "/proc/%d/%s", (int)sibling, name);
	return result(open(path, O_RDONLY | O_CLOEXEC));
}

static int read_memory(void) { return opens_of_sibling("mem"); }
static int read_environment(void) { return opens_of_sibling("environ"); }
static int read_own_memory(void) { return reads("/proc/self/maps"); }
static int read_sysfs(void) { return reads("/sys/kernel/notes"); }
static int read_device(void) { return reads("/dev/zero"); }
static int raw_setuid(void) { return result(syscall(SYS_setuid, 0)); }
static int own_namespace(void) { return result(unshare(CLONE_NEWUTS)); }
static int ring(void) { return result(syscall(425, 1, NULL)); }
static int other_limits(void)
{
	struct rlimit none = { 0, 0 };
	return result(syscall(SYS_prlimit64, sibling, RLIMIT_CORE, &none, NULL));
}

static int connect_tcp(void)
{
	/* Nobody listens on port 1. */
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(1), .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	return result(connect(fd, (struct sockaddr *)&to, sizeof to));
}

static int peek_memory(void)
{
	char byte;
	struct iovec here = { &byte, 1 }, there = { &count, 1 };
	return result(process_vm_readv(sibling, &here, 1, &there, 1, 0));
}

static int fork_process(void)
{
	pid_t pid = fork();
	if (pid == 0)
		_exit(0);
	return result(pid);
}

static int execute(void)
{
	char *const arguments[] = { (char *)(uintptr_t)"true", NULL }, *const none[] = { NULL };
	return result(execve("/bin/true", arguments, none));
}

static int fork_and_execute(void)
{
	int failed = fork_process();
	return failed ? failed : execute();
}

static int make_code(void)
{
	return mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED ? errno : 0;
}

static int turn_to_code(void)
{
	void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return page == MAP_FAILED ? 0 : result(mprotect(page, 4096, PROT_READ | PROT_EXEC));
}

static int type_for_user(void)
{
	return result(ioctl(0, TIOCSTI, "x"));
}

static int signal_through_descriptor(void)
{
	return result(fcntl(0, F_SETOWN, sibling));
}

static int much_memory(void)
{
	return mmap(NULL, (size_t)1 << 30, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0) == MAP_FAILED
	           ? errno : 0;
}

static int much_output(void)
{
	static char block[64 << 10];
	signal(SIGXFSZ, SIG_IGN);
	for (int i = 0; i < 32; i++)
		if (write(kept, block, sizeof block) < 0)
			return errno;
	return 0;
}

static void *nothing(void *context)
{
	return context;
}

static int start_thread(void)
{
	pthread_t thread;
	int failed = pthread_create(&thread, NULL, nothing, NULL);
	return failed ? failed : pthread_join(thread, NULL);
}

/* Reading what is open, memory, threads, and words over the socket: what must go on working. */
static int honest_work(void)
{
	char *block = malloc((size_t)100 << 20), text[8] = "";
	struct stat st;
	struct iovec v = { (void *)(uintptr_t)"x", 1 };
	struct msghdr h = { .msg_iov = &v, .msg_iovlen = 1 };
	if (!block || fstat(kept, &st) || st.st_size != 4 || pread(kept, text, 4, 0) != 4 || strcmp(text, "text"))
		return EFAULT;
	void *mapped = mmap(NULL, 4, PROT_READ, MAP_PRIVATE, kept, 0);
	if (mapped == MAP_FAILED || memcmp(mapped, "text", 4) || sendmsg(talk[0], &h, MSG_NOSIGNAL) != 1)
		return EFAULT;
	free(block);
	return start_thread();
}

static volatile sig_atomic_t came;
static void on_signal(int number)
{
	came = number;
}

static int signal_itself(void)
{
	signal(SIGUSR1, on_signal);
	raise(SIGUSR1);
	return came == SIGUSR1 ? 0 : ESRCH;
}

/* --- trying it in a process --- */

enum wall { NO_WALL, LIMITS, LANDLOCK, FILTER, ALL };
static const char *const wall_names[] = { "no sandbox", "limits", "Landlock", "filter", "all" };

static void go_in(enum wall wall)
{
	struct sandbox got;
	if (wall == LIMITS)
		sandbox_limits(&bounds);
	if (wall == LANDLOCK && (!sandbox_no_privileges() || !sandbox_landlock()))
		_exit(250);
	if (wall == FILTER && !sandbox_filter(talk[0]))
		_exit(250);
	if (wall == ALL)
		sandbox_enter(&bounds, talk[0], &got);
}

#define KILLED 1000

/* As it was before the last try. */
static void tidy(void)
{
	(void)unlink(made);
	(void)rmdir(made);
	int fd = open(written, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd >= 0 && write(fd, "text", 4) == 4)
		close(fd);
}

/* errno of the try, or KILLED. */
static int try_in(enum wall wall, int (*what)(void))
{
	int status;
	tidy();
	pid_t pid = fork();
	if (pid == 0) {
		kept = open(written, O_RDWR | O_CLOEXEC);
		go_in(wall);
		_exit(what());
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return -1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status) == SIGSYS ? KILLED : -WTERMSIG(status);
}

static void check(bool good, enum wall wall, const char *what, int got)
{
	count++;
	failures += !good;
	printf("%s %d - %s: %s (%s)\n", good ? "ok" : "not ok", count, wall_names[wall], what,
	       got == 0 ? "works" : got == KILLED ? "killed" : got < 0 ? "ended by a signal" : strerror(got));
}

static bool has(enum wall wall)
{
	return wall == LANDLOCK ? kernel.landlock > 0 : wall == FILTER ? kernel.filter : true;
}

static void skip(enum wall wall, const char *what, const char *why)
{
	printf("ok %d - %s: %s # SKIP %s\n", ++count, wall_names[wall], what, why);
}

/* It can be done outside (or fails there for another reason than here), and not behind the wall. */
static void refused(enum wall wall, const char *what, int (*how)(void), int wanted)
{
	if (!has(wall) || (wall == ALL && wanted == KILLED && !kernel.filter)) {
		skip(wall, what, "this kernel has none");
		return;
	}
	int outside = try_in(NO_WALL, how), inside = try_in(wall, how);
	if (outside == inside) {
		skip(wall, what, "not even outside");
		return;
	}
	check(inside == wanted, wall, what, inside);
}

static void works(enum wall wall, const char *what, int (*how)(void))
{
	int got = try_in(wall, how);
	if (has(wall))
		check(got == 0, wall, what, got);
	else
		skip(wall, what, "this kernel has none");
}

/* --- the tables --- */

struct attempt {
	const char *what;
	int (*how)(void);
	int landlock, filter;           /* what each answers; 0: lets it pass */
};

static const struct attempt attempts[] = {
	{ "reading a file", read_file, EACCES, EPERM },
	{ "reading a file of the system", read_system, EACCES, EPERM },
	{ "reading a folder", read_folder, EACCES, EPERM },
	{ "asking for a file's size", ask_size, 0, EPERM },
	{ "a message through another socket", send_elsewhere, 0, EPERM },
	{ "memory that is shared", share_memory, 0, EPERM },
	{ "opening a file for writing", write_file, EACCES, EPERM },
	{ "opening it to append", append_file, EACCES, EPERM },
	{ "emptying it with O_TRUNC", empty_file, EACCES, EPERM },
	{ "making a file", make_file, EACCES, EPERM },
	{ "making a nameless file", make_nameless, EACCES, EPERM },
	{ "making a folder", make_folder, EACCES, EPERM },
	{ "making a link", make_link, EACCES, EPERM },
	{ "removing a file", remove_file, EACCES, EPERM },
	{ "renaming a file", rename_file, EACCES, EPERM },
	{ "changing its mode", change_mode, 0, EPERM },
	{ "truncate()", cut_file, 0, EPERM },
	{ "a TCP socket", make_socket, 0, KILLED },
	{ "a local socket", make_local_socket, 0, KILLED },
	{ "fork", fork_process, 0, EPERM },
	{ "execve", execute, EACCES, KILLED },
	{ "fork and execve", fork_and_execute, EACCES, EPERM },
	{ "ptrace", trace, EPERM, KILLED },
	{ "asking for another process", send_signal, 0, EPERM },
	{ "a signal to another process", kill_other, 0, EPERM },
	{ "process_vm_readv of another process", peek_memory, EPERM, KILLED },
	{ "opening another process' memory in /proc", read_memory, EACCES, EPERM },
	{ "opening its environment", read_environment, EACCES, EPERM },
	{ "reading its own /proc/self/maps", read_own_memory, EACCES, EPERM },
	{ "reading /sys", read_sysfs, EACCES, EPERM },
	{ "reading a device", read_device, EACCES, EPERM },
	{ "setuid", raw_setuid, 0, EPERM },
	{ "a namespace of its own", own_namespace, 0, KILLED },
	{ "io_uring", ring, 0, KILLED },
	{ "limits of another process", other_limits, 0, EPERM },
	{ "memory that can be written and executed", make_code, 0, EPERM },
	{ "making memory executable", turn_to_code, 0, EPERM },
	{ "typing for the user (TIOCSTI)", type_for_user, 0, EPERM },
	{ "signals through a descriptor (F_SETOWN)", signal_through_descriptor, 0, EPERM },
};

/* A call that is younger than the filter: as if the kernel had none such. */
static int future_call(void)
{
	return result(syscall(451, -1, -1, -1, -1, -1, -1));
}

static void try_all(void)
{
	if (kernel.filter)
		check(try_in(ALL, future_call) == ENOSYS, ALL, "a call younger than the filter", ENOSYS);
	else
		skip(ALL, "a call younger than the filter", "this kernel has no seccomp");
	for (size_t i = 0; i < sizeof attempts / sizeof *attempts; i++) {
		const struct attempt *a = &attempts[i];
		if (a->landlock)
			refused(LANDLOCK, a->what, a->how, a->landlock);
		if (a->filter)
			refused(FILTER, a->what, a->how, a->filter);
		/* The filter comes first; where there is none, Landlock answers. */
		if (a->filter && kernel.filter)
			refused(ALL, a->what, a->how, a->filter);
		else if (a->landlock && kernel.landlock)
			refused(ALL, a->what, a->how, a->landlock);
	}
	if (kernel.landlock >= 4)
		refused(LANDLOCK, "connecting over TCP", connect_tcp, EACCES);
	else
		skip(LANDLOCK, "connecting over TCP", "its ABI is below 4");
	if (kernel.landlock >= 6)
		refused(LANDLOCK, "a signal to another process", kill_other, EPERM);
	else
		skip(LANDLOCK, "a signal to another process", "its ABI is below 6");
}

/* --- limits and rights --- */

static int limits_are_low(void)
{
	struct rlimit r;
	getrlimit(RLIMIT_CORE, &r);
	if (r.rlim_max != 0)
		return 1;
	getrlimit(RLIMIT_CPU, &r);
	if (r.rlim_cur > bounds.cpu_seconds || r.rlim_max > bounds.cpu_seconds + 5)
		return 2;
	getrlimit(RLIMIT_NOFILE, &r);
	return r.rlim_max > SANDBOX_DESCRIPTORS ? 3 : 0;
}

static int is_private(void)
{
	return prctl(PR_GET_DUMPABLE) == 0 && prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 ? 0 : 1;
}

static int stays_lower(void)
{
	struct rlimit r = { 100, 200 };
	setrlimit(RLIMIT_NOFILE, &r);
	sandbox_limits(&bounds);
	getrlimit(RLIMIT_NOFILE, &r);
	return r.rlim_cur == 200 && r.rlim_max == 200 ? 0 : 1;
}

/* prctl() itself is behind the filter. */
static int enters_privately(void)
{
	sandbox_no_privileges();
	return is_private();
}

int main(void)
{
	setbuf(stdout, NULL);
	if (!mkdtemp(folder) || !sandbox_probe(&kernel) || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, talk) < 0)
		return 1;
	printf("# this kernel gives: %s%s%s", kernel.limits ? "limits, " : "", kernel.no_privileges ? "no new privileges, " : "",
	       kernel.filter ? "the seccomp filter, " : "");
	printf("Landlock ABI %d\n", kernel.landlock);
	(void)snprintf(written, sizeof written, "%s/file", folder);
	(void)snprintf(made, sizeof made, "%s/made", folder);
	sibling = fork();
	if (sibling == 0)
		for (;;)
			pause();
	for (enum wall wall = LANDLOCK; wall <= ALL; wall++) {
		works(wall, "reading what is open, memory, threads, messages", honest_work);
		works(wall, "a signal to itself", signal_itself);
	}
	try_all();
	check(kernel.limits && try_in(LIMITS, limits_are_low) == 0, LIMITS, "core, processor time and descriptors", 0);
	check(try_in(ALL, limits_are_low) == 0, ALL, "core, processor time and descriptors", 0);
	check(try_in(NO_WALL, stays_lower) == 0, LIMITS, "lower ones stay", 0);
	check(kernel.no_privileges && try_in(NO_WALL, enters_privately) == 0, NO_WALL, "no new privileges, not dumpable", 0);
	int much = try_in(LIMITS, much_memory);
	const char *sanitized = getenv("SANITIZED");
	if (much == 0 && sanitized && *sanitized)
		skip(LIMITS, "address space", "not under a sanitizer");
	else
		check(much == ENOMEM, LIMITS, "address space", much);
	int output = try_in(LIMITS, much_output);
	check(output == EFBIG, LIMITS, "output", output);
	kill(sibling, SIGKILL);
	waitpid(sibling, NULL, 0);
	tidy();
	(void)unlink(written);
	(void)rmdir(folder);
	printf("1..%d\n", count);
	return failures > 0;
}
