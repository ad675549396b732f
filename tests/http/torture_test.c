/*
 * System calls that fail: the nth one of the server, for every n, with each of the reasons it may give; and calls that do only a byte at a
 * time. Making a server fails with a sentence and leaves nothing behind. A running one loses at most the connection that it happened to,
 * nothing where the reason is a passing one, and goes on.
 */
#include "http/server.h"

#include "../base/test.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>

/* --- the calls --- */

static struct {
	long fail_at;                   /* the how manieth call fails, from 1 on; 0: none */
	bool for_good;                  /* and all after it */
	int reason;
	bool one_byte;
	long calls;
	bool failed;
} fault;
static __thread bool tortured;          /* this thread's calls count */

static bool fails(void)
{
	if (!tortured)
		return false;
	fault.calls++;
	if (!fault.fail_at || (fault.for_good ? fault.calls < fault.fail_at : fault.calls != fault.fail_at))
		return false;
	fault.failed = true;
	errno = fault.reason;
	return true;
}

static size_t room(size_t n)
{
	return tortured && fault.one_byte && n > 1 ? 1 : n;
}

#define WRAP(type, name, failure, parameters, arguments)        \
	type __real_##name parameters;                          \
	type __wrap_##name parameters;                          \
	type __wrap_##name parameters                           \
	{                                                       \
		return fails() ? failure : __real_##name arguments; \
	}

WRAP(int, accept4, -1, (int fd, struct sockaddr *a, socklen_t *n, int flags), (fd, a, n, flags))
WRAP(ssize_t, recv, -1, (int fd, void *to, size_t n, int flags), (fd, to, room(n), flags))
WRAP(ssize_t, send, -1, (int fd, const void *bytes, size_t n, int flags), (fd, bytes, room(n), flags))
WRAP(ssize_t, sendfile, -1, (int to, int fd, off_t *at, size_t n), (to, fd, at, room(n)))
WRAP(int, poll, -1, (struct pollfd *fds, nfds_t n, int timeout), (fds, n, timeout))
WRAP(int, shutdown, -1, (int fd, int how), (fd, how))
WRAP(int, socketpair, -1, (int family, int type, int protocol, int pair[2]), (family, type, protocol, pair))
WRAP(void *, mmap, MAP_FAILED, (void *at, size_t n, int prot, int flags, int fd, off_t from), (at, n, prot, flags, fd, from))
WRAP(int, socket, -1, (int family, int type, int protocol), (family, type, protocol))
WRAP(int, bind, -1, (int fd, const struct sockaddr *a, socklen_t n), (fd, a, n))
WRAP(int, listen, -1, (int fd, int n), (fd, n))
WRAP(int, setsockopt, -1, (int fd, int level, int name, const void *v, socklen_t n), (fd, level, name, v, n))
WRAP(int, getsockname, -1, (int fd, struct sockaddr *a, socklen_t *n), (fd, a, n))
WRAP(int, fchmod, -1, (int fd, mode_t mode), (fd, mode))
WRAP(int, mkdir, -1, (const char *path, mode_t mode), (path, mode))
WRAP(int, lstat, -1, (const char *path, struct stat *st), (path, st))

/* --- making one --- */

static char folder[] = "/tmp/heapgauge-http-torture-XXXXXX";

static int make_folder(void **state)
{
	(void)state;
	return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
	(void)state;
	return rmdir(folder);
}

static int count_descriptors(void)
{
	DIR *d = opendir("/proc/self/fd");
	int n = 0;
	assert_non_null(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

static const struct http_route no_routes[] = { { 0 } };

static int make(const char *text, struct http_server **ret, struct error *err)
{
	struct http_access a = { 0 };
	struct http_settings s = { .routes = no_routes };
	tortured = true;
	int rc = http_server_new(text, false, &a, &s, ret, err);
	tortured = false;
	return rc;
}

static void making_one(void **state)
{
	(void)state;
	char parent[100], path[sizeof(parent) + 8], local[sizeof(path) + 8];
	snprintf(parent, sizeof(parent), "%s/new", folder);
	snprintf(path, sizeof(path), "%s/socket", parent);
	snprintf(local, sizeof(local), "unix:%s", path);
	const char *const listens[] = { "127.0.0.1:0", local };
	for (int i = 0; i < 2; i++) {
		long n = 0;
		int rc;
		do {
			struct http_server *s = NULL;
			struct error err = { 0 };
			int before = count_descriptors();
			fault.fail_at = ++n;
			fault.calls = fault.failed = 0;
			fault.reason = EPROTO;
			rc = make(listens[i], &s, &err);
			if (rc) {
				assert_true(fault.failed);
				assert_null(s);
				assert_non_null(strstr(err.text, rc == E_NOMEM ? "out of memory" : strerror(EPROTO)));
				assert_null(strchr(err.text, '\n'));
			} else {
				assert_false(fault.failed);
				http_server_free(s);
			}
			assert_int_equal(count_descriptors(), before);
			/* A socket whose number could not be asked for stays. */
			assert_true(access(path, F_OK) < 0 || strstr(err.text, "was removed"));
			unlink(path);
			rmdir(parent);
		} while (rc);
		assert_true(n > 5);
	}
	fault.fail_at = 0;
}

/* --- a running one --- */

#define FILE_BYTES (100 << 10)

static struct {
	struct http_server *server;
	uint16_t port;
	int file;
	struct http_ticket ticket;
	atomic_int parked;
	atomic_int engaged, over;
} run;

static void hello(void *context, struct http_exchange *x)
{
	(void)context;
	run.engaged++;
	http_answer_text(x, 200, "hello");
}

static void file(void *context, struct http_exchange *x)
{
	(void)context;
	run.engaged++;
	http_answer_fd(x, 200, "text/plain", NULL, dup(run.file), FILE_BYTES);
}

static void park(void *context, struct http_exchange *x)
{
	(void)context;
	run.engaged++;
	run.ticket = http_park(x);
	run.parked = 1;
}

static void piece(void *context, struct http_exchange *x, const char *bytes, size_t n)
{
	(void)context;
	(void)bytes;
	size_t *got = http_exchange_user(x);
	run.engaged += *got == 0;
	*got += n;
}

static void upload(void *context, struct http_exchange *x)
{
	(void)context;
	http_answer_text(x, *(size_t *)http_exchange_user(x) == 1000 ? 200 : 400, "thanks");
}

static void over(void *context, struct http_exchange *x, bool answered)
{
	(void)context;
	(void)x;
	(void)answered;
	run.over++;
}

static const struct http_route routes[] = {
	{ .path = "/hello", .methods = HTTP_GET, .handle = hello },
	{ .path = "/file", .methods = HTTP_GET, .handle = file },
	{ .path = "/park", .methods = HTTP_GET, .handle = park },
	{ .path = "/upload", .methods = HTTP_POST, .body_max = 1000, .handle = upload, .body = piece },
	{ 0 },
};

static void *serve(void *unused)
{
	(void)unused;
	tortured = true;
	http_server_run(run.server);
	tortured = false;
	return NULL;
}

static int open_client(void)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = run.port, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct timeval patience = { .tv_sec = 10 };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_true(fd >= 0);
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)), 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	return fd;
}

/* Sends that, takes what comes; the status when the answer has so many bytes of body, else 0. Never hangs. */
static int finish(int fd, size_t body)
{
	static char answer[FILE_BYTES + 4096];
	size_t n = 0;
	ssize_t k;
	while ((k = recv(fd, answer + n, sizeof(answer) - 1 - n, 0)) > 0)
		n += (size_t)k;
	assert_true(k == 0 || (errno != EAGAIN && errno != EWOULDBLOCK));
	close(fd);
	answer[n] = '\0';
	const char *head = answer;
	if (strncmp(head, "HTTP/1.1 100 Continue\r\n\r\n", 25) == 0)
		head += 25;
	const char *end = strstr(head, "\r\n\r\n");
	return end && (size_t)(answer + n - end - 4) == body ? (int)strtol(head + 9, NULL, 10) : 0;
}

static int ask(const char *text, size_t n, size_t body)
{
	int fd = open_client();
	send(fd, text, n, MSG_NOSIGNAL);
	return finish(fd, body);
}

#define ASK(text, body) ask(text, sizeof(text) - 1, body)

static bool wait_parked(void)
{
	for (int i = 0; i < 2000 && !run.parked; i++)
		nanosleep(&(struct timespec){ 0, 100000 }, NULL);
	return run.parked;
}

/* One that is answered from here, or one that leaves; false when it wasn't answered. */
static bool parked_client(bool stays)
{
	static const char text[] = "GET /park HTTP/1.1\r\nHost: localhost\r\n\r\n";
	run.parked = 0;
	int fd = open_client();
	send(fd, text, sizeof(text) - 1, MSG_NOSIGNAL);
	shutdown(fd, stays ? SHUT_WR : SHUT_RD);
	bool there = wait_parked();
	if (!stays) {
		close(fd);
		return true;
	}
	if (there)
		http_ticket_answer(run.server, run.ticket, 200, "text/plain", NULL, "later", 5);
	return finish(fd, 5) == 200;
}

/* Every kind of exchange; how many went as they should. */
#define EXCHANGES 7
static int all_kinds(void)
{
	static const char h[] = "Host: localhost\r\n";
	char post[1200];
	int n = snprintf(post, sizeof(post), "POST /upload HTTP/1.1\r\n%sContent-Length: 1000\r\nExpect: 100-continue\r\n\r\n", h);
	int good = ASK("GET /hello HTTP/1.1\r\nHost: localhost\r\n\r\n", 6) == 200;
	good += ASK("GET /file HTTP/1.1\r\nHost: localhost\r\n\r\n", FILE_BYTES) == 200;
	good += parked_client(true);
	good += parked_client(false);
	int fd = open_client();
	send(fd, post, (size_t)n, MSG_NOSIGNAL);
	nanosleep(&(struct timespec){ 0, 1000000 }, NULL);
	memset(post, 'x', 1000);
	send(fd, post, 1000, MSG_NOSIGNAL);
	good += finish(fd, 7) == 200;
	good += ASK("GET /hello HTTP/1.1\r\nHost: localhost\r\n\r\nGET /hello HTTP/1.1\r\n", 6) == 200;
	good += ASK("GET /hello\n", strlen("The request is malformed.\n")) == 400;
	return good;
}

/* A server from its first call to its last. Returns how many exchanges went well. */
static int one_run(long fail_at, int reason)
{
	struct http_access a = { 0 };
	struct http_settings settings = { .routes = routes, .over = over };
	struct error err;
	pthread_t thread;
	int before = count_descriptors();
	assert_int_equal(http_server_new("127.0.0.1:0", false, &a, &settings, &run.server, &err), E_OK);
	run.port = htons((uint16_t)strtoul(strrchr(http_server_url(run.server), ':') + 1, NULL, 10));
	run.engaged = run.over = 0;
	fault.fail_at = fail_at;
	fault.reason = reason;
	fault.calls = fault.failed = 0;
	assert_int_equal(pthread_create(&thread, NULL, serve, NULL), 0);
	int good = all_kinds();
	/* It goes on; when the call to fail comes only here, for the second one. */
	if (ASK("GET /hello HTTP/1.1\r\nHost: localhost\r\n\r\n", 6) != 200)
		assert_int_equal(ASK("GET /hello HTTP/1.1\r\nHost: localhost\r\n\r\n", 6), 200);
	http_server_stop(run.server);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(run.engaged, run.over);
	http_server_free(run.server);
	assert_int_equal(count_descriptors(), before);
	return good;
}

static void none_fails(void **state)
{
	(void)state;
	assert_int_equal(one_run(0, 0), EXCHANGES);
	assert_true(fault.calls > 30);
}

static void a_byte_at_a_time(void **state)
{
	(void)state;
	fault.one_byte = true;
	assert_int_equal(one_run(0, 0), EXCHANGES);
	fault.one_byte = false;
}

/* Reasons that only say "not now": nothing is lost. */
static void passing_reasons(void **state)
{
	(void)state;
	static const int reasons[] = { EINTR, EAGAIN };
	for (size_t i = 0; i < 2; i++) {
		long n = 0;
		do {
			int good = one_run(++n, reasons[i]);
			if (good != EXCHANGES)
				fail_msg("call %ld fails with %s: %d of %d", n, strerror(reasons[i]), good, EXCHANGES);
		} while (fault.failed);
		assert_true(n > 30);
	}
}

/* Reasons that end something: one connection at most. */
static void lasting_reasons(void **state)
{
	(void)state;
	static const int reasons[] = { ENOMEM, ECONNRESET };
	for (size_t i = 0; i < 2; i++) {
		long n = 0;
		do {
			int good = one_run(++n, reasons[i]);
			if (good < EXCHANGES - 1)
				fail_msg("call %ld fails with %s: %d of %d", n, strerror(reasons[i]), good, EXCHANGES);
		} while (fault.failed);
		assert_true(n > 30);
	}
}

/* Nothing works any more: it can be stopped. */
static void for_good(void **state)
{
	(void)state;
	struct http_access a = { 0 };
	struct http_settings settings = { .routes = routes, .over = over };
	struct error err;
	pthread_t thread;
	fault.for_good = true;
	for (long n = 1; n < 14; n++) {
		assert_int_equal(http_server_new("127.0.0.1:0", false, &a, &settings, &run.server, &err), E_OK);
		run.port = htons((uint16_t)strtoul(strrchr(http_server_url(run.server), ':') + 1, NULL, 10));
		run.engaged = run.over = 0;
		fault.fail_at = n;
		fault.reason = ENOMEM;
		fault.calls = fault.failed = 0;
		assert_int_equal(pthread_create(&thread, NULL, serve, NULL), 0);
		int fds[3];
		static const char text[] = "GET /file HTTP/1.1\r\nHost: localhost\r\n\r\n";
		for (int i = 0; i < 3; i++) {
			fds[i] = open_client();
			send(fds[i], text, sizeof(text) - 1, MSG_NOSIGNAL);
		}
		nanosleep(&(struct timespec){ 0, 50000000 }, NULL);
		http_server_stop(run.server);
		assert_int_equal(pthread_join(thread, NULL), 0);
		/* It rests between the calls that fail: what it would have done in a spin is thousands. */
		if (!fault.failed || fault.calls > 500)
			fail_msg("from call %ld on: %ld calls", n, fault.calls);
		assert_int_equal(run.engaged, run.over);
		http_server_free(run.server);
		for (int i = 0; i < 3; i++)
			close(fds[i]);
	}
	fault.for_good = false;
	fault.fail_at = 0;
}

/*
 * The host closes what it doesn't know, as daemons do, and opens files of its own, which get the numbers: they are neither written
 * to nor closed, there is no spinning, and the server can be stopped.
 */
static void host_closes_all(void **state)
{
	(void)state;
	struct http_access a = { 0 };
	struct http_settings settings = { .routes = routes, .over = over };
	struct error err;
	pthread_t thread;
	int before = open("/dev/null", O_RDONLY | O_CLOEXEC);
	assert_int_equal(http_server_new("127.0.0.1:0", false, &a, &settings, &run.server, &err), E_OK);
	int after = open("/dev/null", O_RDONLY | O_CLOEXEC), n = after - before - 1;
	assert_int_equal(n, 3);
	fault.calls = fault.fail_at = 0;
	assert_int_equal(pthread_create(&thread, NULL, serve, NULL), 0);
	nanosleep(&(struct timespec){ 0, 50000000 }, NULL);
	for (int i = 1; i <= n; i++) {
		close(before + i);
		assert_int_equal(memfd_create("host", MFD_CLOEXEC), before + i);
	}
	http_server_stop(run.server);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_true(fault.calls < 20);
	http_server_free(run.server);
	for (int i = 1; i <= n; i++) {
		struct stat st;
		assert_int_equal(fstat(before + i, &st), 0);
		assert_int_equal(st.st_size, 0);
		close(before + i);
	}
	close(before);
	close(after);
}

static int make_file(void **state)
{
	(void)state;
	run.file = memfd_create("file", MFD_CLOEXEC);
	return run.file < 0 || ftruncate(run.file, FILE_BYTES) < 0 ? -1 : make_folder(state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(making_one), cmocka_unit_test(none_fails), cmocka_unit_test(a_byte_at_a_time),
		cmocka_unit_test(passing_reasons), cmocka_unit_test(lasting_reasons), cmocka_unit_test(for_good),
		cmocka_unit_test(host_closes_all),
	};
	return cmocka_run_group_tests(tests, make_file, remove_folder);
}
