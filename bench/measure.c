/*
 * measure [-i INPUT] [-l MIB] [-a] SECONDS OUTPUT COMMAND…: runs the command with its standard output into OUTPUT and prints,
 * on one line, wall seconds, processor seconds, peak KiB of its largest process, and its status: its exit code, 128 + the
 * signal, or "timeout" when it took longer than SECONDS and was killed with all its children.
 *
 * -i: its standard input; -l: the address space it may use; -a: prints one number more, the peak KiB of memory that is not of
 * files (RssAnon + RssShmem) of it and its children together, seen every millisecond: what disturbs, so the times then mean little.
 *
 * A program of its own because a child's peak is never below what its parent had when it forked.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t timed_out;
static volatile sig_atomic_t child;

static void on_alarm(int signal)
{
	(void)signal;
	timed_out = 1;
	kill(-child, SIGKILL);
}

static double seconds(struct timeval t)
{
	return (double)t.tv_sec + (double)t.tv_usec / 1e6;
}

static void become(const char *input, rlim_t limit, char **argv)
{
	int in = open(input, O_RDONLY);
	int out = open(argv[1], O_WRONLY | O_CREAT | O_TRUNC, 0644);
	int null = open("/dev/null", O_RDWR);
	struct rlimit room = { limit, limit };
	if (in < 0 || out < 0 || null < 0 || dup2(in, 0) < 0 || dup2(out, 1) < 0 || dup2(null, 2) < 0 || setrlimit(RLIMIT_AS, &room) < 0)
		_exit(126);
	execvp(argv[2], argv + 2);
	_exit(127);
}

static size_t read_text(const char *format, pid_t pid, char *to, size_t room)
{
	char path[64];
	snprintf(path, sizeof(path), format, (int)pid, (int)pid);
	int fd = open(path, O_RDONLY);
	ssize_t n = fd < 0 ? 0 : read(fd, to, room - 1);
	if (fd >= 0)
		close(fd);
	to[n > 0 ? n : 0] = '\0';
	return n > 0 ? (size_t)n : 0;
}

/* Of the process and its children, at this moment. */
static long anonymous_kib(pid_t pid)
{
	char text[8192];
	long kib = 0;
	read_text("/proc/%d/status", pid, text, sizeof(text));
	const char *anonymous = strstr(text, "RssAnon:"), *shared = strstr(text, "RssShmem:");
	kib += anonymous ? strtol(anonymous + 8, NULL, 10) : 0;
	kib += shared ? strtol(shared + 9, NULL, 10) : 0;
	read_text("/proc/%d/task/%d/children", pid, text, sizeof(text));
	for (char *at = text, *end; *at; at = end) {
		long inner = strtol(at, &end, 10);
		if (end == at)
			break;
		kib += anonymous_kib((pid_t)inner);
	}
	return kib;
}

static long watch(pid_t pid)
{
	struct timespec pause = { 0, 1000000 };
	siginfo_t info = { 0 };
	long peak = 0;
	while (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT | WNOHANG) == 0 && info.si_pid == 0) {
		long kib = anonymous_kib(pid);
		peak = kib > peak ? kib : peak;
		nanosleep(&pause, NULL);
	}
	return peak;
}

int main(int argc, char **argv)
{
	struct timespec start, end;
	struct rusage usage;
	unsigned limit;
	int status, watched = 0;
	const char *input = "/dev/null";
	rlim_t room = RLIM_INFINITY;
	long peak = 0;

	for (int c; (c = getopt(argc, argv, "+i:l:a")) >= 0;) {
		if (c == 'i')
			input = optarg;
		else if (c == 'l')
			room = (rlim_t)strtoul(optarg, NULL, 10) << 20;
		else
			watched = c == 'a';
	}
	argv += optind;
	if (argc - optind < 3 || sscanf(argv[0], "%u", &limit) != 1) {
		fprintf(stderr, "usage: measure [-i INPUT] [-l MIB] [-a] SECONDS OUTPUT COMMAND...\n");
		return 2;
	}
	signal(SIGALRM, on_alarm);
	clock_gettime(CLOCK_MONOTONIC, &start);
	pid_t pid = fork();
	if (pid < 0)
		return 1;
	setpgid(pid, pid);
	if (pid == 0)
		become(input, room, argv);
	child = pid;
	alarm(limit);
	if (watched)
		peak = watch(pid);
	while (wait4(pid, &status, 0, &usage) < 0)
		if (errno != EINTR)
			return 1;
	clock_gettime(CLOCK_MONOTONIC, &end);
	printf("%.6f %.6f %ld ", (double)(end.tv_sec - start.tv_sec) + (double)(end.tv_nsec - start.tv_nsec) / 1e9,
	       seconds(usage.ru_utime) + seconds(usage.ru_stime), usage.ru_maxrss);
	if (timed_out)
		printf("timeout");
	else
		printf("%d", WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status));
	if (watched)
		printf(" %ld", peak);
	printf("\n");
	return 0;
}
