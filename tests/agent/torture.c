/*
 * What a program may do at the worst moment, with the library in it: torture NAME. Each line printed is "good WORDS" or "bad WORDS"; the driver
 * (torture.py) makes TAP of them. Linked with jemalloc, or with one of another prefix inside (PREFIXED).
 */
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <heapgauge.h>
#include <link.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <zlib.h>

#ifdef PREFIXED
void *hgt_malloc(size_t n);
hg_mallctl_function hgt_mallctl;
#define malloc hgt_malloc
#define mallctl hgt_mallctl
#else
hg_mallctl_function mallctl;
#endif

static void *kept[100000];
static atomic_bool over;
static int port;

__attribute__((format(printf, 2, 3)))
static int check(int good, const char *format, ...)
{
	va_list words;
	va_start(words, format);
	flockfile(stdout);
	fputs(good ? "good " : "bad ", stdout);
	vprintf(format, words);
	putchar('\n');
	fflush(stdout);
	funlockfile(stdout);
	va_end(words);
	return good;
}

/* --- a heap, an agent, and its clients ---------------------------------------- */

__attribute__((noinline)) static void *deep(unsigned path, unsigned depth, size_t bytes)
{
	void *block = depth == 0 ? malloc(bytes) : path & 1 ? deep(path >> 1, depth - 1, bytes) : NULL;
	if (depth && !(path & 1))
		block = deep(path >> 1, depth - 1, bytes);
	__asm__ volatile("" ::: "memory");
	return block;
}

/* So many stacks of their own, one block each. */
static void fill(unsigned stacks)
{
	for (unsigned i = 0; i < stacks; i++)
		kept[i] = deep(i, 14, 512);
}

static hg_agent *start_agent(void)
{
	char sentence[300] = "";
	hg_agent *agent = NULL;
	hg_agent_options o = HG_AGENT_OPTIONS_INIT;
	o.listen = "127.0.0.1:0";
	o.error = sentence;
	o.error_size = sizeof sentence;
	int rc = hg_agent_start(&o, &agent);
	if (rc)
		check(0, "the agent starts: %d %s", rc, sentence);
	else
		port = atoi(strrchr(hg_agent_url(agent), ':') + 1);
	return agent;
}

static int send_request(const char *what)
{
	char text[200];
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int n = snprintf(text, sizeof text, "%s HTTP/1.1\r\nHost: localhost\r\n\r\n", what);
	if (s < 0 || connect(s, (struct sockaddr *)&a, sizeof a) < 0 || send(s, text, (size_t)n, MSG_NOSIGNAL) != n) {
		if (s >= 0)
			close(s);
		return -1;
	}
	return s;
}

/* Status of the answer, whose begin is left in room; -1: none. */
static int read_answer(int s, char *room, size_t size)
{
	size_t n = 0;
	char rest[4096];
	for (ssize_t got; (got = recv(s, n < size - 1 ? room + n : rest, n < size - 1 ? size - 1 - n : sizeof rest, 0)) > 0;)
		n += n < size - 1 ? (size_t)got : 0;
	room[n] = '\0';
	close(s);
	return n > 12 ? atoi(room + 9) : -1;
}

/* What stands behind the head of an answer. */
static const char *body_of(const char *answer)
{
	const char *end = strstr(answer, "\r\n\r\n");
	return end ? end + 4 : "";
}

static int ask(const char *what, char *room, size_t size)
{
	int s = send_request(what);
	return s < 0 ? -1 : read_answer(s, room, size);
}

static void pause_ms(long ms)
{
	struct timespec t = { ms / 1000, ms % 1000 * 1000000 };
	nanosleep(&t, NULL);
}

static int active(void)
{
	hg_status_info s;
	hg_status(&s);
	return s.active;
}

static int becomes(int wanted, long ms)
{
	for (; active() != wanted && ms > 0; ms -= 10)
		pause_ms(10);
	return active() == wanted;
}

static size_t entries(const char *path)
{
	DIR *d = opendir(path);
	size_t n = 0;
	while (d && readdir(d))
		n++;
	if (d)
		closedir(d);
	return n;
}

/* Descriptors of this process that are the library's, by the names of its memfds, or sockets. */
static size_t foreign_descriptors(char *ret_name, size_t room)
{
	size_t n = 0;
	DIR *d = opendir("/proc/self/fd");
	for (struct dirent *e; d && (e = readdir(d));) {
		char path[300], link[300];
		snprintf(path, sizeof path, "/proc/self/fd/%s", e->d_name);
		ssize_t got = readlink(path, link, sizeof link - 1);
		link[got > 0 ? got : 0] = '\0';
		if (!strstr(link, "heapgauge-dump") && !strstr(link, "memfd:heapgauge:") && !strstr(link, "eventfd"))
			continue;
		n++;
		snprintf(ret_name, room, "%s", link);
	}
	if (d)
		closedir(d);
	return n;
}

static void *run_dumps(void *bad)
{
	while (!atomic_load(&over)) {
		void *bytes;
		size_t n;
		int rc = hg_dump_pprof(&bytes, &n);
		if (rc == HG_OK)
			hg_free(bytes, n);
		else if (rc != HG_BUSY)
			atomic_fetch_add((atomic_int *)bad, 1);
	}
	return NULL;
}

static void *run_requests(void *answered)
{
	static const char *const all[] = {
		"GET /debug/pprof/heap", "GET /metrics", "GET /debug/pprof/heap?format=jeheap", "GET /pprof/symbol?0x10+0x20", "GET /heapgauge/status",
		"GET /debug/pprof/heap?seconds=9", "POST /heapgauge/activate",
	};
	for (unsigned i = 0; !atomic_load(&over); i++) {
		char room[256];
		const char *what = all[i % (sizeof all / sizeof *all)];
		if (strstr(what, "seconds")) {
			int s = send_request(what);
			if (s >= 0)
				close(s);
		} else if (ask(what, room, sizeof room) > 0) {
			atomic_fetch_add((atomic_int *)answered, 1);
		}
	}
	return NULL;
}

/* --- forks --------------------------------------------------------------------- */

static int count_object(struct dl_phdr_info *info, size_t size, void *n)
{
	(void)info;
	(void)size;
	++*(int *)n;
	return 0;
}

enum { CHILD_LEAKS = 3, CHILD_STATUS, CHILD_DUMP, CHILD_LOADER };

static void in_child(int i)
{
	char name[300];
	int objects = 0;
	void *bytes;
	size_t n;
	hg_status_info s;
	alarm(20);
	dl_iterate_phdr(count_object, &objects);
	if (objects < 2)
		_exit(CHILD_LOADER);
	if (foreign_descriptors(name, sizeof name)) {
		fprintf(stderr, "a child has %s\n", name);
		_exit(CHILD_LEAKS);
	}
	if (hg_status(&s) || !s.found)
		_exit(CHILD_STATUS);
	if (i % 8 == 1 && hg_dump_pprof(&bytes, &n))
		_exit(CHILD_DUMP);
	_exit(0);
}

static void fork_storm(int children)
{
	for (int i = 0; i < children; i++) {
		int status = -1;
		pid_t child = fork();
		if (child == 0 && i % 2)
			in_child(i);
		if (child == 0) {
			execl("/bin/true", "true", (char *)NULL);
			_exit(9);
		}
		waitpid(child, &status, 0);
		if (status)
			check(0, "child %d, which %s: status %x", i, i % 2 ? "goes on" : "executes another program", (unsigned)status);
	}
}

static void test_forks(void)
{
	pthread_t threads[4];
	atomic_int bad = 0, answered = 0;
	char room[256];
	fill(3000);
	hg_agent *agent = start_agent();
	for (int i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, i < 2 ? run_dumps : run_requests, i < 2 ? &bad : &answered);
	fork_storm(200);
	atomic_store(&over, true);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	check(1, "200 forks during dumps and requests: all children came to their end");
	check(atomic_load(&bad) == 0, "no dump of the parent's failed: %d", atomic_load(&bad));
	check(atomic_load(&answered) > 4, "and its endpoint answered all the time: %d", atomic_load(&answered));
	check(ask("GET /debug/pprof/heap", room, sizeof room) == 200, "and answers still");
	hg_agent_stop(agent);
}

/* With prof_active:false. */
static void test_fork_in_span(void)
{
	char name[300] = "";
	hg_agent *agent = start_agent();
	int s = send_request("GET /debug/pprof/heap?seconds=60"), status = -1;
	check(becomes(1, 5000), "the span samples");
	pid_t child = fork();
	if (child == 0) {
		void *bytes;
		size_t n;
		alarm(20);
		if (foreign_descriptors(name, sizeof name)) {
			fprintf(stderr, "a child has %s\n", name);
			_exit(CHILD_LEAKS);
		}
		int rc = hg_dump_pprof(&bytes, &n);
		_exit(active() ? 7 : rc == HG_INACTIVE || rc == HG_OK ? 0 : 8);
	}
	waitpid(child, &status, 0);
	check(status == 0, "a child made in the middle of it doesn't, and has none of its files: status %x", (unsigned)status);
	check(active() == 1, "the parent does");
	close(s);
	check(becomes(0, 5000), "until its client has gone");
	hg_agent_stop(agent);
}

/* --- ends ------------------------------------------------------------------------ */

static void exit_after(void (*prepare)(void), int how)
{
	pid_t child = fork();
	if (child == 0) {
		alarm(30);
		prepare();
		pause_ms(20 + 7 * (rand() % 10));
		if (how == 1)
			execl("/bin/true", "true", (char *)NULL);
		exit(0);
	}
	int status = -1;
	waitpid(child, &status, 0);
	if (status)
		check(0, "%s: status %x", how == 1 ? "exec" : "exit", (unsigned)status);
}

static atomic_int dumped;

static void begin_dumps(void)
{
	pthread_t t;
	start_agent();
	pthread_create(&t, NULL, run_dumps, &dumped);
	pthread_create(&t, NULL, run_requests, &dumped);
}

static void begin_span(void)
{
	start_agent();
	send_request("GET /debug/pprof/heap?seconds=60");
	pause_ms(50);
}

static void test_exit(void)
{
	fill(5000);
	for (int i = 0; i < 10; i++) {
		exit_after(begin_dumps, 0);
		exit_after(begin_dumps, 1);
		exit_after(begin_span, 0);
		exit_after(begin_span, 1);
	}
	check(1, "10 times each: exit and exec while dumps and requests run, and in a span");
}

static void test_start_stop(void)
{
	pthread_t threads[3];
	atomic_int bad = 0, answered = 0;
	fill(500);
	hg_agent_stop(start_agent());
	void *bytes;
	size_t n;
	if (hg_dump_pprof(&bytes, &n) == HG_OK)
		hg_free(bytes, n);
	size_t fds = entries("/proc/self/fd"), tasks = entries("/proc/self/task");
	for (int i = 0; i < 3; i++)
		pthread_create(&threads[i], NULL, i < 1 ? run_dumps : run_requests, i < 1 ? &bad : &answered);
	for (int i = 0; i < 200; i++) {
		hg_agent *agent = start_agent();
		if (!agent)
			break;
		pause_ms(i % 8);
		hg_agent_stop(agent);
	}
	atomic_store(&over, true);
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	check(atomic_load(&bad) == 0, "200 starts and stops under requests: dumps went on");
	/* A thread that was joined is in /proc a moment longer. */
	for (int i = 0; i < 100 && entries("/proc/self/task") != tasks; i++)
		pause_ms(10);
	check(entries("/proc/self/fd") == fds && entries("/proc/self/task") == tasks, "descriptors and threads are as before: %zu %zu, %zu %zu",
	      fds, entries("/proc/self/fd"), tasks, entries("/proc/self/task"));
	check(active(), "and so is sampling");
}

/* --- callers ---------------------------------------------------------------------- */

static int is_whole_gzip(const void *bytes, size_t n)
{
	char room[4096];
	z_stream z = { .next_in = (Bytef *)bytes, .avail_in = (uInt)n };
	int rc = inflateInit2(&z, 31);
	while (rc == Z_OK) {
		z.next_out = (Bytef *)room;
		z.avail_out = sizeof room;
		rc = inflate(&z, Z_NO_FLUSH);
	}
	inflateEnd(&z);
	return rc == Z_STREAM_END && z.avail_in == 0;
}

static void *dump_and_look(void *counts)
{
	atomic_int *c = counts;
	for (int i = 0; i < 200; i++) {
		void *bytes;
		size_t n;
		int rc = hg_dump_pprof(&bytes, &n);
		atomic_fetch_add(&c[rc == HG_OK ? is_whole_gzip(bytes, n) ? 0 : 1 : rc == HG_BUSY ? 2 : 3], 1);
		if (rc == HG_OK)
			hg_free(bytes, n);
	}
	return NULL;
}

static void test_two_dumps(void)
{
	pthread_t threads[2];
	atomic_int counts[4] = { 0 };
	fill(1000);
	for (int i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, dump_and_look, counts);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	check(counts[0] > 0 && counts[1] == 0 && counts[3] == 0, "two threads, 200 dumps each: %d whole, %d damaged, %d HG_BUSY, %d others",
	      counts[0], counts[1], counts[2], counts[3]);
}

static void *on_small_stack(void *unused)
{
	void *bytes;
	size_t n;
	char room[64];
	(void)unused;
	int rc = hg_dump_pprof(&bytes, &n);
	check(rc == HG_OK && is_whole_gzip(bytes, n), "pprof from there: %d", rc);
	rc = hg_dump_jeheap(&bytes, &n);
	check(rc == HG_OK, "jemalloc's text: %d", rc);
	rc = hg_dump_named("folded", &bytes, &n);
	check(rc == HG_OK || rc == HG_NO_SYMBOLIZER, "names: %d", rc);
	hg_agent *agent = start_agent();
	check(ask("GET /metrics", room, sizeof room) == 200, "an agent started there answers");
	hg_agent_stop(agent);
	return NULL;
}

static void test_small_stack(void)
{
	pthread_attr_t a;
	pthread_t t;
	sigset_t all;
	fill(1000);
	pthread_attr_init(&a);
	pthread_attr_setstacksize(&a, 64 << 10);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, NULL);
	check(pthread_create(&t, &a, on_small_stack, NULL) == 0, "a thread with 64 KiB of stack and all signals blocked");
	pthread_join(t, NULL);
}

static void *read_slowly(void *fd)
{
	static char room[1 << 20];
	size_t n = 0;
	for (ssize_t got; (got = read(*(int *)fd, room + n, 4096)) > 0; pause_ms(1))
		n += (size_t)got;
	return (void *)(uintptr_t)(is_whole_gzip(room, n) ? n : 0);
}

static void test_descriptors(void)
{
	int ends[2];
	pthread_t t;
	void *got = NULL;
	sigset_t pending;
	fill(3000);
	if (pipe2(ends, O_CLOEXEC))
		return;
	close(ends[0]);
	check(hg_dump_pprof_fd(ends[1]) == HG_IO && hg_dump_jeheap_fd(ends[1]) == HG_IO, "a pipe whose reader has gone is HG_IO, and no signal");
	close(ends[1]);
	sigpending(&pending);
	check(!sigismember(&pending, SIGPIPE), "none stays behind");
	if (pipe2(ends, O_CLOEXEC | O_NONBLOCK))
		return;
	fcntl(ends[0], F_SETFL, 0);
	pthread_create(&t, NULL, read_slowly, &ends[0]);
	int rc = hg_dump_pprof_fd(ends[1]);
	close(ends[1]);
	pthread_join(t, &got);
	close(ends[0]);
	check(rc == HG_OK && got, "a pipe that doesn't block and is read slowly gets it whole: %d", rc);
	struct rlimit whole, little = { 4096, RLIM_INFINITY };
	getrlimit(RLIMIT_FSIZE, &whole);
	setrlimit(RLIMIT_FSIZE, &little);
	void *bytes;
	size_t n;
	rc = hg_dump_pprof(&bytes, &n);
	int text = hg_dump_jeheap(&bytes, &n);
	setrlimit(RLIMIT_FSIZE, &whole);
	check(rc == HG_IO && text == HG_IO, "files of 4 KiB at most: HG_IO, and no signal: %d %d", rc, text);
	check(hg_dump_pprof(&bytes, &n) == HG_OK, "and afterwards all is well");
	check(hg_dump_pprof_fd(-1) == HG_INVALID && hg_dump_pprof_fd(999) == HG_INVALID, "no descriptor is HG_INVALID");
	check(hg_dump_named(NULL, &bytes, &n) == HG_INVALID, "no form is HG_INVALID");
}

static void test_no_descriptors(void)
{
	char room[2048];
	void *bytes;
	size_t n;
	int taken[4096], n_taken = 0, spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
	struct rlimit whole, little = { 40, 0 };
	fill(500);
	hg_agent *agent = start_agent();
	hg_dump_pprof(&bytes, &n);
	getrlimit(RLIMIT_NOFILE, &whole);
	little.rlim_max = whole.rlim_max;
	setrlimit(RLIMIT_NOFILE, &little);
	while (n_taken < 4096 && (taken[n_taken] = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0)
		n_taken++;
	int pprof = hg_dump_pprof(&bytes, &n), text = hg_dump_jeheap(&bytes, &n), named = hg_dump_named("text", &bytes, &n);
	check(pprof == HG_IO && text == HG_IO && named == HG_IO, "no descriptor left: HG_IO: %d %d %d", pprof, text, named);
	/* One for the client, one for the connection. */
	close(spare);
	close(taken[--n_taken]);
	int status = ask("GET /debug/pprof/heap", room, sizeof room);
	check(status == 500 && strstr(room, "Too many open files"), "the endpoint says so: %d %.*s", status, (int)strcspn(body_of(room), "\n"),
	      body_of(room));
	while (n_taken > 0)
		close(taken[--n_taken]);
	setrlimit(RLIMIT_NOFILE, &whole);
	check(hg_dump_pprof(&bytes, &n) == HG_OK && ask("GET /debug/pprof/heap", room, sizeof room) == 200, "then both work again");
	hg_agent_stop(agent);
}

static void test_no_memory(void)
{
	struct rlimit whole, little;
	char text[128] = "";
	unsigned long pages = 0;
	void *bytes;
	size_t n, worked = 0, refused = 0;
	fill(3000);
	hg_dump_pprof(&bytes, &n);
	int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
	if (fd < 0 || read(fd, text, sizeof text - 1) <= 0 || sscanf(text, "%lu", &pages) != 1)
		return;
	close(fd);
	getrlimit(RLIMIT_AS, &whole);
	for (size_t more = 0; more < 6u << 20; more += 64 << 10) {
		little = (struct rlimit){ pages * 4096 + more, whole.rlim_max };
		setrlimit(RLIMIT_AS, &little);
		int rc = hg_dump_pprof(&bytes, &n);
		if (rc == HG_OK)
			hg_free(bytes, n);
		setrlimit(RLIMIT_AS, &whole);
		worked += rc == HG_OK;
		refused += rc == HG_NO_MEMORY;
		if (rc != HG_OK && rc != HG_NO_MEMORY)
			check(0, "%zu KiB: %d %s", more >> 10, rc, hg_strerror(rc));
	}
	check(worked > 0 && refused > 0, "address space by the piece: %zu dumps out of memory, %zu not", refused, worked);
	check(hg_dump_pprof(&bytes, &n) == HG_OK, "and then one that works");
}

static void *cancelled(void *unused)
{
	void *bytes;
	size_t n;
	(void)unused;
	for (;;) {
		if (hg_dump_pprof(&bytes, &n) == HG_OK)
			hg_free(bytes, n);
		pthread_testcancel();
	}
	return NULL;
}

static void test_cancel(void)
{
	fill(1000);
	for (int i = 0; i < 20; i++) {
		pthread_t t;
		void *bytes;
		size_t n;
		pthread_create(&t, NULL, cancelled, NULL);
		pause_ms(3 + i);
		pthread_cancel(t);
		pthread_join(t, NULL);
		int rc = hg_dump_pprof(&bytes, &n);
		if (rc)
			check(0, "after a cancelled thread: %d", rc);
		else
			hg_free(bytes, n);
	}
	check(1, "20 threads cancelled in the middle of dumps");
}

/* --- jemalloc ---------------------------------------------------------------------- */

static int yes_man(const char *name, void *oldp, size_t *oldlenp, void *newp, size_t newlen)
{
	(void)name, (void)oldp, (void)oldlenp, (void)newp, (void)newlen;
	return 0;
}

static int no_man(const char *name, void *oldp, size_t *oldlenp, void *newp, size_t newlen)
{
	(void)name, (void)oldp, (void)oldlenp, (void)newp, (void)newlen;
	return ENOENT;
}

/* Says that a pointer is where none is. */
static int liar(const char *name, void *oldp, size_t *oldlenp, void *newp, size_t newlen)
{
	(void)name, (void)newp, (void)newlen;
	if (oldp && oldlenp)
		memset(oldp, 0x55, *oldlenp);
	return 0;
}

static int another_name(const char *name, void *oldp, size_t *oldlenp, void *newp, size_t newlen)
{
	return mallctl(name, oldp, oldlenp, newp, newlen);
}

static void test_use_mallctl(void)
{
	pthread_t threads[3];
	atomic_int bad = 0, answered = 0;
	fill(1000);
	check(hg_use_mallctl(yes_man, NULL) == HG_INVALID && hg_use_mallctl(no_man, NULL) == HG_INVALID &&
	      hg_use_mallctl(liar, NULL) == HG_INVALID, "what isn't mallctl is HG_INVALID");
	check(active(), "and changes nothing");
	hg_agent *agent = start_agent();
	for (int i = 0; i < 3; i++)
		pthread_create(&threads[i], NULL, i < 2 ? run_dumps : run_requests, i < 2 ? &bad : &answered);
	int rc = HG_OK;
	for (int i = 0; i < 3000 && rc == HG_OK; i++) {
		rc = hg_use_mallctl(i % 3 == 0 ? NULL : i % 3 == 1 ? mallctl : another_name, i % 2 ? NULL : "MY_CONF");
		pause_ms(i % 50 == 0);
	}
	atomic_store(&over, true);
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	check(rc == HG_OK && atomic_load(&bad) == 0, "3000 changes of it during dumps: %d, %d dumps failed", rc, atomic_load(&bad));
	hg_agent_stop(agent);
}

/* With prof_active:false. */
static void test_sampling(void)
{
	char room[2048];
	hg_agent *agent = start_agent();
	int status = ask("GET /debug/pprof/survivors?activate=1&wait=1", room, sizeof room);
	check(status == 200, "survivors of a second in which nothing was allocated: an empty profile, not an error: %d %s", status,
	      status == 200 ? "" : body_of(room));
	int s = send_request("GET /debug/pprof/heap?seconds=2");
	check(becomes(1, 5000) && hg_activate() == HG_OK, "the program activates during a span");
	status = read_answer(s, room, sizeof room);
	check(status == 200 && becomes(1, 1000), "and that is how it stays: %d", status);
	s = send_request("GET /debug/pprof/heap?seconds=2");
	pause_ms(300);
	hg_deactivate();
	read_answer(s, room, sizeof room);
	check(!active(), "or the other way round");
	hg_agent_stop(agent);
}

static void test_reset_in_span(void)
{
	char room[1 << 16];
	fill(20000);
	hg_agent *agent = start_agent();
	int s = send_request("GET /debug/pprof/heap?seconds=2&format=folded&symbolize=0");
	pause_ms(500);
	check(ask("POST /heapgauge/reset?lg_sample=9", room, sizeof room) == 200 && strstr(room, "\"lg_sample\":9"), "a reset in a span");
	for (int i = 0; i < 100; i++)
		kept[20000 + i] = deep(1, 14, 10000);
	int status = read_answer(s, room, sizeof room);
	unsigned long long sum = 0;
	for (const char *line = body_of(room); line && *line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
		const char *end = strchrnul(line, '\n');
		while (end > line && end[-1] != ' ')
			end--;
		sum += strtoull(end, NULL, 10);
	}
	if (status == 501)
		check(1, "(no symbolizer here)");
	else
		check(status == 200 && sum > 900000 && sum < 1200000, "what came after it is there, and nothing of before: %d, %llu bytes", status, sum);
	hg_agent_stop(agent);
}

/* --- calls that fail (fail_calls.c is under the program) ------------------------------ */

void fail_arm(long n, int persistent) __attribute__((weak));
int fail_disarm(const char **ret_name) __attribute__((weak));

/* All that may be said of what failed. */
static int is_word(int rc)
{
	return rc == HG_OK || rc == HG_NO_MEMORY || rc == HG_IO || rc == HG_FAILED || rc == HG_BUSY;
}

static int fail_pprof(void)
{
	void *bytes;
	size_t n;
	int rc = hg_dump_pprof(&bytes, &n);
	if (rc)
		return rc;
	rc = is_whole_gzip(bytes, n) ? HG_OK : -100;
	hg_free(bytes, n);
	return rc;
}

static int fail_jeheap(void)
{
	void *bytes;
	size_t n;
	int rc = hg_dump_jeheap(&bytes, &n);
	if (rc)
		return rc;
	rc = n > 100 && !memcmp(bytes, "heap_v2/", 8) && memmem(bytes, n, "MAPPED_LIBRARIES:", 17) ? HG_OK : -100;
	hg_free(bytes, n);
	return rc;
}

static int fail_into_file(void)
{
	int fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
	int rc = hg_dump_pprof_fd(fd);
	close(fd);
	return rc;
}

static hg_agent *lasting;

/* An answer, or none: both are fine. An answer of 200 has to be right. */
static int asked(const char *what, const char *begin)
{
	char room[4096];
	int s = send_request(what);
	struct timeval most = { 0, 150000 };
	if (s < 0)
		return HG_OK;
	setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof most);
	int status = read_answer(s, room, sizeof room);
	if (status == -1 || status == 500 || status == 429 || status == 503)
		return HG_OK;
	size_t n = strlen(begin);
	return status == 200 && (!*body_of(room) || !strncmp(body_of(room), begin, n)) ? HG_OK : -status;
}

static int fail_profile(void)
{
	return asked("GET /debug/pprof/heap", "\x1f\x8b");
}

static int fail_symbols(void)
{
	char what[100];
	snprintf(what, sizeof what, "GET /pprof/symbol?0x%lx", (unsigned long)&fail_profile);
	return asked(what, "0x");
}

static int fail_agent(void)
{
	hg_agent *agent;
	hg_agent_options o = HG_AGENT_OPTIONS_INIT;
	char sentence[300] = "";
	o.listen = "127.0.0.1:0";
	o.error = sentence;
	o.error_size = sizeof sentence;
	int rc = hg_agent_start(&o, &agent);
	if (rc)
		return sentence[0] ? rc : -100;
	hg_agent_stop(agent);
	return HG_OK;
}

static size_t virtual_kib(void)
{
	char text[128] = "";
	unsigned long pages = 0;
	int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
	if (fd >= 0 && read(fd, text, sizeof text - 1) > 0)
		sscanf(text, "%lu", &pages);
	close(fd);
	return pages * 4;
}

static void fail_each(const char *what, int (*act)(void), int persistent)
{
	long n = 1, bad = 0, words = 0;
	const char *name = "";
	act();
	size_t fds = entries("/proc/self/fd"), kib = virtual_kib();
	for (int fired = 1; fired && n < 5000; n++) {
		fail_arm(n, persistent);
		int rc = act();
		fired = fail_disarm(&name);
		if (!is_word(rc) || (!fired && rc))
			bad += check(0, "%s, call %ld (%s) fails%s: %d", what, n, name, persistent ? " and all others" : "", rc) + 1;
		words += rc != HG_OK;
		/* A client that went away after 150 ms leaves its request under way; on a machine that stalls it has been for seconds. */
		for (int i = 0; i < 2000 && entries("/proc/self/fd") != fds; i++)
			pause_ms(10);
		if (entries("/proc/self/fd") != fds)
			bad += check(0, "%s, call %ld (%s) fails%s: %zu descriptors, %zu before", what, n, name, persistent ? " and all others" : "",
			             entries("/proc/self/fd"), fds) + 1;
		fds = entries("/proc/self/fd");
		if (bad > 3)
			break;
	}
	check(n > 4 && n < 5000 && bad == 0, "%s: each of %ld calls fails%s, %ld times that was an error", what, n - 2,
	      persistent ? ", and all after it" : "", words);
	check(virtual_kib() < kib + 4096, "%s: and leaves nothing behind: %zu KiB, %zu before", what, virtual_kib(), kib);
	check(act() == HG_OK, "%s: then it works", what);
}

static void test_faults(void)
{
	static const struct { const char *what; int (*act)(void); } all[] = {
		{ "pprof", fail_pprof }, { "jemalloc's text", fail_jeheap }, { "into a file", fail_into_file }, { "starting and stopping", fail_agent },
		{ "a profile by HTTP", fail_profile }, { "names by HTTP", fail_symbols },
	};
	if (!fail_arm) {
		check(0, "fail_calls is under the program");
		return;
	}
	fill(1000);
	for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
		if (all[i].act == fail_profile)
			lasting = start_agent();
		fail_each(all[i].what, all[i].act, 0);
		fail_each(all[i].what, all[i].act, 1);
	}
	hg_agent_stop(lasting);
}

int main(int n, char **words)
{
	static const struct { const char *name; void (*run)(void); } all[] = {
		{ "forks", test_forks }, { "fork-in-span", test_fork_in_span }, { "exit", test_exit }, { "start-stop", test_start_stop },
		{ "two-dumps", test_two_dumps }, { "small-stack", test_small_stack }, { "descriptors", test_descriptors },
		{ "no-descriptors", test_no_descriptors }, { "no-memory", test_no_memory }, { "cancel", test_cancel },
		{ "use-mallctl", test_use_mallctl }, { "sampling", test_sampling }, { "reset-in-span", test_reset_in_span },
		{ "faults", test_faults },
	};
	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		if (n == 2 && strcmp(words[1], all[i].name) == 0) {
			alarm(120);
			all[i].run();
			check(1, "(came to its end)");
			return 0;
		}
	return 2;
}
