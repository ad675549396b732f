/*
 * measure SECONDS OUTPUT COMMAND…: runs the command with its standard output into OUTPUT and prints, on one line,
 * wall seconds, processor seconds, peak KiB of its largest process, and its status: its exit code, 128 + the
 * signal, or "timeout" when it took longer than SECONDS and was killed with all its children.
 *
 * A program of its own because a child's peak is never below what its parent had when it forked.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
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

static void become(char **argv)
{
	int out = open(argv[2], O_WRONLY | O_CREAT | O_TRUNC, 0644);
	int null = open("/dev/null", O_RDWR);
	if (out < 0 || null < 0 || dup2(null, 0) < 0 || dup2(out, 1) < 0 || dup2(null, 2) < 0)
		_exit(126);
	execvp(argv[3], argv + 3);
	_exit(127);
}

int main(int argc, char **argv)
{
	struct timespec start, end;
	struct rusage usage;
	unsigned limit;
	int status;

	if (argc < 4 || sscanf(argv[1], "%u", &limit) != 1) {
		fprintf(stderr, "usage: measure SECONDS OUTPUT COMMAND...\n");
		return 2;
	}
	signal(SIGALRM, on_alarm);
	clock_gettime(CLOCK_MONOTONIC, &start);
	pid_t pid = fork();
	if (pid < 0)
		return 1;
	setpgid(pid, pid);
	if (pid == 0)
		become(argv);
	child = pid;
	alarm(limit);
	while (wait4(pid, &status, 0, &usage) < 0)
		if (errno != EINTR)
			return 1;
	clock_gettime(CLOCK_MONOTONIC, &end);
	printf("%.6f %.6f %ld ", (double)(end.tv_sec - start.tv_sec) + (double)(end.tv_nsec - start.tv_nsec) / 1e9,
	       seconds(usage.ru_utime) + seconds(usage.ru_stime), usage.ru_maxrss);
	if (timed_out)
		puts("timeout");
	else
		printf("%d\n", WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status));
	return 0;
}
