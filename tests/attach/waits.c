/*
 * waits MODE: the main thread waits in one system call again and again, and counts what a program must never see of
 * being attached to: EINTR without a signal, and waits that end too early. It ends when its standard input does, and
 * says "MODE waits=N eintr=N early=N"; status 1 when the latter are not 0. Linked with jemalloc.
 */
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static volatile bool over;
static unsigned long n_waits, n_eintr, n_early;
static int wake[2], listener, queue, semaphore;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t turned = PTHREAD_COND_INITIALIZER;
static pthread_t main_thread;

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void waited(int answer, double begun, double at_least)
{
	n_waits++;
	if (answer < 0 && errno == EINTR)
		n_eintr++;
	/* Two clocks' ticks of mercy. */
	if (!over && now() - begun < at_least - 0.005)
		n_early++;
}

#define FOREVER 1e9

static void in_read(void)
{
	char c;
	double t = now();
	waited((int)read(wake[0], &c, 1), t, FOREVER);
}

static void in_poll(void)
{
	struct pollfd p = { wake[0], POLLIN, 0 };
	double t = now();
	waited(poll(&p, 1, -1), t, FOREVER);
}

static void in_poll_limit(void)
{
	struct pollfd p = { wake[0], POLLIN, 0 };
	double t = now();
	waited(poll(&p, 1, 300), t, 0.3);
}

static void in_select(void)
{
	fd_set set;
	FD_ZERO(&set);
	FD_SET(wake[0], &set);
	struct timeval limit = { 0, 300000 };
	double t = now();
	waited(select(wake[0] + 1, &set, NULL, NULL, &limit), t, 0.3);
}

static int epoll_fd(void)
{
	static int fd = -1;
	struct epoll_event e = { .events = EPOLLIN };
	if (fd < 0) {
		fd = epoll_create1(EPOLL_CLOEXEC);
		epoll_ctl(fd, EPOLL_CTL_ADD, wake[0], &e);
	}
	return fd;
}

static void in_epoll(void)
{
	struct epoll_event e;
	int fd = epoll_fd();
	double t = now();
	waited(epoll_wait(fd, &e, 1, -1), t, FOREVER);
}

static void in_epoll_limit(void)
{
	struct epoll_event e;
	int fd = epoll_fd();
	double t = now();
	waited(epoll_wait(fd, &e, 1, 300), t, 0.3);
}

static void in_nanosleep(void)
{
	struct timespec limit = { 0, 300000000 };
	double t = now();
	waited(nanosleep(&limit, NULL), t, 0.3);
}

static void in_futex(void)
{
	double t = now();
	pthread_mutex_lock(&lock);
	if (!over)
		pthread_cond_wait(&turned, &lock);
	pthread_mutex_unlock(&lock);
	waited(0, t, FOREVER);
}

static void in_accept(void)
{
	double t = now();
	int fd = accept(listener, NULL, NULL);
	waited(fd, t, FOREVER);
	close(fd);
}

/* The kernel answers EINTR here, not ERESTARTSYS, because of the time limit. */
static void in_recv_limit(void)
{
	static int ends[2];
	struct timeval limit = { 0, 300000 };
	char c;
	if (!ends[0]) {
		socketpair(AF_UNIX, SOCK_STREAM, 0, ends);
		setsockopt(ends[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
	}
	double t = now();
	waited((int)recv(ends[0], &c, 1, 0), t, 0.3);
}

static void in_sigtimedwait(void)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	double t = now();
	waited(sigwaitinfo(&set, NULL), t, FOREVER);
}

static void in_semop(void)
{
	struct sembuf down = { 0, -1, 0 };
	double t = now();
	waited(semop(semaphore, &down, 1), t, FOREVER);
}

static void in_msgrcv(void)
{
	struct { long type; char c; } m;
	double t = now();
	waited((int)msgrcv(queue, &m, 1, 0, 0), t, FOREVER);
}

static const struct {
	const char *name;
	void (*wait)(void);
} modes[] = {
	{ "read", in_read },
	{ "poll", in_poll },
	{ "poll_limit", in_poll_limit },
	{ "select", in_select },
	{ "epoll", in_epoll },
	{ "epoll_limit", in_epoll_limit },
	{ "nanosleep", in_nanosleep },
	{ "futex", in_futex },
	{ "accept", in_accept },
	{ "recv_limit", in_recv_limit },
	{ "sigtimedwait", in_sigtimedwait },
	{ "semop", in_semop },
	{ "msgrcv", in_msgrcv },
};

/* Waits for the end of standard input, and then ends whatever the main thread waits in. */
static void *watch(void *unused)
{
	char c;
	while (read(STDIN_FILENO, &c, 1) > 0) {
	}
	pthread_mutex_lock(&lock);
	over = true;
	pthread_cond_signal(&turned);
	pthread_mutex_unlock(&lock);
	struct { long type; char c; } m = { 1, 'x' };
	struct sembuf up = { 0, 1, 0 };
	struct sockaddr_in to;
	socklen_t n = sizeof to;
	if (write(wake[1], "x", 1) != 1)
		abort();
	msgsnd(queue, &m, 1, 0);
	semop(semaphore, &up, 1);
	getsockname(listener, (struct sockaddr *)&to, &n);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	connect(fd, (struct sockaddr *)&to, n);
	pthread_kill(main_thread, SIGUSR2);
	return unused;
}

static void prepare(void)
{
	struct sockaddr_in any = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	queue = msgget(IPC_PRIVATE, 0600);
	semaphore = semget(IPC_PRIVATE, 1, 0600);
	if (pipe(wake) < 0 || bind(listener, (struct sockaddr *)&any, sizeof any) < 0 || listen(listener, 1) < 0 ||
	    queue < 0 || semaphore < 0)
		abort();
}

int main(int argc, char **argv)
{
	size_t mode = 0;
	while (argc > 1 && mode < sizeof modes / sizeof *modes && strcmp(modes[mode].name, argv[1]) != 0)
		mode++;
	if (argc < 2 || mode == sizeof modes / sizeof *modes)
		return 2;
	void *volatile kept = malloc(100000);
	pthread_t watcher;
	prepare();
	main_thread = pthread_self();
	pthread_create(&watcher, NULL, watch, NULL);
	printf("ready %d\n", (int)getpid());
	fflush(stdout);
	errno = 4711;
	while (!over)
		modes[mode].wait();
	pthread_join(watcher, NULL);
	msgctl(queue, IPC_RMID, NULL);
	semctl(semaphore, 0, IPC_RMID);
	free(kept);
	printf("%s waits=%lu eintr=%lu early=%lu\n", argv[1], n_waits, n_eintr, n_early);
	return n_eintr || n_early;
}
