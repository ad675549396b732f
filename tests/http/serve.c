/*
 * A server for the drivers of this folder: serve LISTEN [name=value ...]. Prints its address, serves until SIGTERM or the end of its standard
 * input, then prints what it counted. Allocations are counted from the moment it serves: by anybody in the process,
 * libc included.
 */
#include "http/server.h"

#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

/* --- allocations --- */

static atomic_bool counting;
static atomic_ulong allocations;

static void count_allocation(void)
{
	if (counting)
		allocations++;
}

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WITH_ASAN
#endif
#endif

#ifdef WITH_ASAN
#include <sanitizer/allocator_interface.h>

static void on_malloc(const volatile void *p, size_t n)
{
	(void)p;
	(void)n;
	count_allocation();
}

static void on_free(const volatile void *p)
{
	(void)p;
}

static void watch_allocations(void)
{
	if (!__sanitizer_install_malloc_and_free_hooks(on_malloc, on_free))
		abort();
}
#else
void *__libc_malloc(size_t n);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t n);

void *malloc(size_t n)
{
	count_allocation();
	return __libc_malloc(n);
}

void *calloc(size_t n, size_t size)
{
	count_allocation();
	return __libc_calloc(n, size);
}

void *realloc(void *p, size_t n)
{
	count_allocation();
	return __libc_realloc(p, n);
}

static void watch_allocations(void)
{
}
#endif

/* --- handlers --- */

#define BIG_BYTES ((uint64_t)100 << 20)
#define PARKED_MAX 32

struct parked {
	struct http_ticket ticket;
	int64_t due_ms;                 /* 0: none; INT64_MAX: when the client has gone */
	bool with_fd;
};

static struct {
	struct http_server *server;
	int big;
	pthread_mutex_t lock;
	struct parked parked[PARKED_MAX];
	unsigned long gone;             /* tickets whose clients went away */
	atomic_ulong engaged, over, unanswered;
	atomic_int helpers;             /* threads that run: starting one allocates */
} test = { .lock = PTHREAD_MUTEX_INITIALIZER };

struct upload {
	uint64_t n;
	uint32_t sum;
};

static int64_t now_ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void hello(void *context, struct http_exchange *x)
{
	(void)context;
	test.engaged++;
	http_answer_text(x, 200, "hello");
}

static void echo(void *context, struct http_exchange *x)
{
	(void)context;
	char text[64];
	test.engaged++;
	int n = http_query(http_exchange_request(x), "text", text, sizeof(text));
	if (n < 0)
		http_answer_text(x, 400, "text %s", n == -1 ? "is missing" : "is malformed");
	else
		http_answer(x, 200, "text/plain", "X-Echo: yes\r\n", text, (size_t)n);
}

static void raw(void *context, struct http_exchange *x)
{
	(void)context;
	struct http_text q = http_exchange_request(x)->query;
	test.engaged++;
	http_answer_text(x, 200, "%.*s", (int)q.n, q.n ? q.at : "");
}

static void big(void *context, struct http_exchange *x)
{
	(void)context;
	test.engaged++;
	http_answer_fd(x, 200, "application/octet-stream", NULL, dup(test.big), BIG_BYTES);
}

/* A file that ends before what was promised. */
static void cut(void *context, struct http_exchange *x)
{
	(void)context;
	test.engaged++;
	http_answer_fd(x, 200, "application/octet-stream", NULL, dup(test.big), BIG_BYTES + 1000);
}

static bool park_for(struct http_exchange *x, int64_t due_ms, bool with_fd)
{
	bool kept = false;
	pthread_mutex_lock(&test.lock);
	for (int i = 0; i < PARKED_MAX && !kept; i++) {
		if (test.parked[i].due_ms == 0) {
			test.parked[i] = (struct parked){ http_park(x), due_ms, with_fd };
			kept = true;
		}
	}
	pthread_mutex_unlock(&test.lock);
	return kept;
}

static void park(void *context, struct http_exchange *x)
{
	(void)context;
	char text[16], fd[4];
	test.engaged++;
	int n = http_query(http_exchange_request(x), "ms", text, sizeof(text));
	bool with_fd = http_query(http_exchange_request(x), "fd", fd, sizeof(fd)) >= 0;
	int64_t due = n > 0 ? now_ms() + strtoll(text, NULL, 10) : INT64_MAX;
	if (!park_for(x, due, with_fd))
		http_answer(x, 429, "text/plain", "Retry-After: 1\r\n", "busy\n", 5);
}

static void forget(void *context, struct http_exchange *x)
{
	(void)context;
	(void)x;
	test.engaged++;
}

static void twice(void *context, struct http_exchange *x)
{
	(void)context;
	test.engaged++;
	http_answer_text(x, 200, "first");
	http_answer_fd(x, 200, "text/plain", NULL, dup(test.big), 10);
	http_answer_text(x, 200, "third");
}

static void too_long(void *context, struct http_exchange *x)
{
	(void)context;
	static const char zeros[HTTP_SHORT_MAX + 1];
	test.engaged++;
	http_answer(x, 200, "text/plain", NULL, zeros, sizeof(zeros));
}

static void longest(void *context, struct http_exchange *x)
{
	(void)context;
	static char letters[HTTP_SHORT_MAX];
	test.engaged++;
	memset(letters, 'x', sizeof(letters));
	http_answer(x, 200, "text/plain", NULL, letters, sizeof(letters));
}

static void upload_piece(void *context, struct http_exchange *x, const char *bytes, size_t n)
{
	(void)context;
	struct upload *u = http_exchange_user(x);
	if (u->n == 0)
		test.engaged++;
	u->n += n;
	for (size_t i = 0; i < n; i++)
		u->sum = u->sum * 31 + (unsigned char)bytes[i];
}

static void upload(void *context, struct http_exchange *x)
{
	(void)context;
	const struct upload *u = http_exchange_user(x);
	if (u->n == 0)
		test.engaged++;
	http_answer_text(x, 200, "%llu %u", (unsigned long long)u->n, u->sum);
}

static void early_piece(void *context, struct http_exchange *x, const char *bytes, size_t n)
{
	(void)context;
	(void)bytes;
	test.engaged++;
	http_answer_text(x, 400, "the first %zu bytes were enough", n ? (size_t)1 : 0);
}

static void count_over(void *context, struct http_exchange *x, bool answered)
{
	(void)context;
	(void)x;
	test.over++;
	test.unanswered += !answered;
}

static void state(void *context, struct http_exchange *x)
{
	(void)context;
	struct http_counters c;
	http_server_counters(test.server, &c);
	pthread_mutex_lock(&test.lock);
	unsigned long gone = test.gone;
	pthread_mutex_unlock(&test.lock);
	http_answer_text(x, 200,
	                 "{\"accepted\": %llu, \"evicted\": %llu, \"timeouts\": %llu, \"requests\": %llu, \"sent\": %llu, "
	                 "\"2xx\": %llu, \"4xx\": %llu, \"5xx\": %llu, \"gone\": %lu, \"engaged\": %lu, \"over\": %lu, "
	                 "\"unanswered\": %lu, \"allocations\": %lu}",
	                 (unsigned long long)c.accepted, (unsigned long long)c.evicted, (unsigned long long)c.timeouts,
	                 (unsigned long long)c.requests, (unsigned long long)c.bytes_sent, (unsigned long long)c.statuses[2],
	                 (unsigned long long)c.statuses[4], (unsigned long long)c.statuses[5], gone, (unsigned long)test.engaged,
	                 (unsigned long)test.over, (unsigned long)test.unanswered, (unsigned long)allocations);
	test.engaged++;
}

static const char *const echo_parameters[] = { "text", "again", NULL };
static const char *const park_parameters[] = { "ms", "fd", NULL };
static const struct http_route routes[] = {
	{ .path = "/hello", .methods = HTTP_GET, .handle = hello },
	{ .path = "/echo", .methods = HTTP_GET, .parameters = echo_parameters, .handle = echo },
	{ .path = "/raw", .methods = HTTP_GET, .raw_query = true, .handle = raw },
	{ .path = "/big", .methods = HTTP_GET, .handle = big },
	{ .path = "/cut", .methods = HTTP_GET, .handle = cut },
	{ .path = "/park", .methods = HTTP_GET | HTTP_POST, .parameters = park_parameters, .handle = park },
	{ .path = "/forget", .methods = HTTP_GET, .handle = forget },
	{ .path = "/twice", .methods = HTTP_GET, .handle = twice },
	{ .path = "/too-long", .methods = HTTP_GET, .handle = too_long },
	{ .path = "/longest", .methods = HTTP_GET, .handle = longest },
	{ .path = "/upload", .methods = HTTP_GET | HTTP_POST, .body_max = 8 << 20, .handle = upload, .body = upload_piece },
	{ .path = "/early", .methods = HTTP_POST, .body_max = 8 << 20, .handle = upload, .body = early_piece },
	{ .path = "/act", .methods = HTTP_POST, .handle = hello },
	{ .path = "/state", .methods = HTTP_GET, .handle = state },
	{ 0 },
};

/* --- the thread that answers what was parked --- */

static bool settle(struct parked *p)
{
	char text[32];
	if (http_ticket_gone(test.server, p->ticket)) {
		test.gone++;
		if (p->with_fd)         /* an answer to nobody is closed */
			http_ticket_answer_fd(test.server, p->ticket, 200, "text/plain", NULL, dup(test.big), 10);
		return true;
	}
	if (p->due_ms > now_ms())
		return false;
	int n = snprintf(text, sizeof(text), "parked\n");
	if (p->with_fd)
		http_ticket_answer_fd(test.server, p->ticket, 200, "text/plain", NULL, dup(test.big), 1000);
	else
		http_ticket_answer(test.server, p->ticket, 200, "text/plain", NULL, text, (size_t)n);
	return true;
}

static void *answer_parked(void *unused)
{
	(void)unused;
	test.helpers++;
	for (;;) {
		pthread_mutex_lock(&test.lock);
		for (int i = 0; i < PARKED_MAX; i++) {
			if (test.parked[i].due_ms && settle(&test.parked[i]))
				test.parked[i].due_ms = 0;
		}
		pthread_mutex_unlock(&test.lock);
		nanosleep(&(struct timespec){ 0, 5000000 }, NULL);
	}
	return NULL;
}

static void *wait_for_input(void *unused)
{
	(void)unused;
	char c;
	test.helpers++;
	while (read(0, &c, 1) > 0)
		;
	pthread_mutex_lock(&test.lock);
	http_server_stop(test.server);
	pthread_mutex_unlock(&test.lock);
	return NULL;
}

static void on_term(int signal)
{
	(void)signal;
	http_server_stop(test.server);
}

/* --- start --- */

static int make_big(void)
{
	static char block[1 << 20];
	int fd = memfd_create("big", MFD_CLOEXEC);
	for (size_t i = 0; i < sizeof(block); i++)
		block[i] = (char)(i * 7 >> 3);
	for (uint64_t i = 0; i < BIG_BYTES / sizeof(block); i++) {
		if (write(fd, block, sizeof(block)) != (ssize_t)sizeof(block))
			return -1;
	}
	return fd;
}

static void setting(const char *text, struct http_access *a, struct http_limits *l, bool *remote)
{
	size_t n = strcspn(text, "=");
	const char *value = text[n] ? text + n + 1 : "";
	if (strncmp(text, "token", n) == 0)
		snprintf(a->token, sizeof(a->token), "%s", value);
	else if (strncmp(text, "hosts", n) == 0)
		snprintf(a->hosts, sizeof(a->hosts), "%s", value);
	else if (strncmp(text, "connections", n) == 0)
		l->connections = (unsigned)strtoul(value, NULL, 10);
	else if (strncmp(text, "head_ms", n) == 0)
		l->head_ms = (unsigned)strtoul(value, NULL, 10);
	else if (strncmp(text, "idle_ms", n) == 0)
		l->idle_ms = (unsigned)strtoul(value, NULL, 10);
	else if (strncmp(text, "remote", n) == 0)
		*remote = true;
}

int main(int argc, char **argv)
{
	struct http_access access = { 0 };
	struct http_settings settings = { .routes = routes, .over = count_over };
	struct error err;
	bool remote = false;
	pthread_t helper;
	if (argc < 2)
		return 2;
	for (int i = 2; i < argc; i++)
		setting(argv[i], &access, &settings.limits, &remote);
	test.big = make_big();
	if (test.big < 0 || http_server_new(argv[1], remote, &access, &settings, &test.server, &err)) {
		fprintf(stderr, "%s\n", test.big < 0 ? "no room for the big file" : err.text);
		return 1;
	}
	signal(SIGTERM, on_term);
	pthread_create(&helper, NULL, answer_parked, NULL);
	pthread_create(&helper, NULL, wait_for_input, NULL);
	while (test.helpers < 2)
		nanosleep(&(struct timespec){ 0, 1000000 }, NULL);
	printf("%s\n", http_server_url(test.server));
	fflush(stdout);
	watch_allocations();
	counting = true;
	http_server_run(test.server);
	counting = false;
	printf("allocations %lu engaged %lu over %lu\n", (unsigned long)allocations, (unsigned long)test.engaged,
	       (unsigned long)test.over);
	fflush(stdout);
	pthread_mutex_lock(&test.lock);         /* and keep it: nobody answers, or stops, any more */
	http_server_free(test.server);
	_exit(allocations != 0 || test.engaged != test.over);
}
