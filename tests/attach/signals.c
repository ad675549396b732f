/*
 * signals MODE: a program that lives on signals and notices when one is lost, comes twice, or ends a wait without
 * having come. It says "ready PID", runs until its standard input ends, then "MODE …" with its counts; status 1 when
 * they don't agree. Linked with jemalloc.
 *
 *   queue    a child sends numbered signals; each must come, in order, while main waits in nanosleep and a profiling timer runs
 *   wake     main waits in epoll_pwait, which lets in one signal; only its EINTR tells that there is work, and who sent it waits for
 *            the answer: a lost EINTR stands still for ever
 *   children main waits for children that end all the time, and for nothing else
 */
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t n_queued, n_missing, n_timer, n_wake;
static unsigned long n_eintr, n_rounds, bad;

static void ready(void)
{
	printf("ready %d\n", (int)getpid());
	fflush(stdout);
}

static bool input_ended(void)
{
	struct timeval none = { 0, 0 };
	fd_set set;
	char c;
	FD_ZERO(&set);
	FD_SET(STDIN_FILENO, &set);
	return select(1, &set, NULL, NULL, &none) > 0 && read(STDIN_FILENO, &c, 1) <= 0;
}

static void handle(int signal, void (*handler)(int, siginfo_t *, void *), int flags)
{
	struct sigaction a = { .sa_sigaction = handler, .sa_flags = SA_SIGINFO | flags };
	sigfillset(&a.sa_mask);
	if (sigaction(signal, &a, NULL) < 0)
		abort();
}

/* --- queue --- */

static void on_queued(int signal, siginfo_t *info, void *context)
{
	(void)signal, (void)context;
	if (info->si_value.sival_int != n_queued)
		n_missing++;
	n_queued = info->si_value.sival_int + 1;
}

static void on_timer(int signal, siginfo_t *info, void *context)
{
	(void)signal, (void)info, (void)context;
	n_timer++;
}

static void send_numbers(pid_t to, int tells)
{
	struct timespec pause = { 0, 200000 };
	int n = 0;
	for (; !input_ended(); n++) {
		union sigval value = { .sival_int = n };
		while (sigqueue(to, SIGRTMIN + 1, value) < 0 && errno == EAGAIN)
			nanosleep(&pause, NULL);
		nanosleep(&pause, NULL);
	}
	if (write(tells, &n, sizeof n) != sizeof n)
		abort();
	_exit(0);
}

static int queue(void)
{
	int ends[2], sent = -1;
	struct itimerval often = { { 0, 1000 }, { 0, 1000 } };
	pid_t me = getpid();
	handle(SIGRTMIN + 1, on_queued, 0);
	handle(SIGALRM, on_timer, 0);
	if (pipe(ends) < 0)
		return 2;
	ready();
	pid_t child = fork();
	if (child == 0)
		send_numbers(me, ends[1]);
	setitimer(ITIMER_REAL, &often, NULL);
	while (waitpid(child, NULL, WNOHANG) == 0) {
		struct timespec pause = { 0, 5000000 };
		void *volatile p = malloc(100 + n_rounds % 5000);
		free(p);
		/* What nanosleep says must agree with what came. */
		sig_atomic_t before = n_queued + n_timer;
		if (nanosleep(&pause, NULL) < 0 && (errno != EINTR || n_queued + n_timer == before))
			bad++;
		n_rounds++;
	}
	if (read(ends[0], &sent, sizeof sent) != sizeof sent || sent != n_queued || n_missing)
		bad++;
	printf("queue sent=%d came=%d out_of_order=%d timer=%d bad=%lu\n", sent, (int)n_queued, (int)n_missing,
	       (int)n_timer, bad);
	return bad || !n_timer;
}

/* --- wake --- */

static void on_wake(int signal, siginfo_t *info, void *context)
{
	(void)signal, (void)info, (void)context;
	n_wake++;
}

static void send_and_wait(pid_t to, int answers)
{
	char c;
	do {
		struct timespec pause = { 0, 300000 };
		nanosleep(&pause, NULL);
		kill(to, SIGUSR1);
	} while (read(answers, &c, 1) == 1);
	_exit(0);
}

static int wake(void)
{
	sigset_t all, but_one;
	int answers[2], input = epoll_create1(EPOLL_CLOEXEC);
	struct epoll_event e = { .events = EPOLLIN };
	pid_t me = getpid();
	sigemptyset(&all);
	sigaddset(&all, SIGUSR1);
	sigprocmask(SIG_BLOCK, &all, &but_one);
	handle(SIGUSR1, on_wake, 0);
	epoll_ctl(input, EPOLL_CTL_ADD, STDIN_FILENO, &e);
	if (pipe(answers) < 0)
		return 2;
	pid_t child = fork();
	if (child == 0) {
		close(answers[1]);
		send_and_wait(me, answers[0]);
	}
	ready();
	for (;;) {
		sig_atomic_t before = n_wake;
		int n = epoll_pwait(input, &e, 1, -1, &but_one);
		if (n > 0)
			break;
		if (errno != EINTR || n_wake != before + 1)
			bad++;          /* an EINTR without its signal */
		n_eintr++;
		if (write(answers[1], "x", 1) != 1)
			abort();
	}
	close(answers[1]);
	waitpid(child, NULL, 0);
	printf("wake signals=%d eintr=%lu bad=%lu\n", (int)n_wake, n_eintr, bad);
	return bad || n_eintr < 100;
}

/* --- children --- */

static int children(void)
{
	ready();
	while (!input_ended()) {
		struct timespec life = { 0, 3000000 };
		int status = 1;
		pid_t child = fork();
		if (child == 0) {
			nanosleep(&life, NULL);
			_exit(7);
		}
		if (waitpid(child, &status, 0) != child || !WIFEXITED(status) || WEXITSTATUS(status) != 7)
			bad++;
		n_rounds++;
	}
	printf("children ended=%lu bad=%lu\n", n_rounds, bad);
	return bad != 0;
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";
	if (strcmp(mode, "queue") == 0)
		return queue();
	if (strcmp(mode, "wake") == 0)
		return wake();
	return strcmp(mode, "children") == 0 ? children() : 2;
}
