/*
 * Two threads. The main one runs the server and answers from what is ready: descriptors of memory with the page and the blocks. The other
 * one looks after the profiles once a second, makes new blocks, and complete ones when somebody asks. They share what
 * lies under the lock of struct site; shown belongs to the second.
 */
#include "cli/serve.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "http/server.h"

#define TOKEN_BYTES 16
#define PATH_BYTES (2 * TOKEN_BYTES + 16)
#define WAITING_MAX 16              /* requests for a complete block at a time */
#define SOURCE_BYTES_MAX ((off_t)4 << 20)
#define END_MS 300                  /* how long the other thread may take to end */

/* Nothing but the page's own script and style, which its own policy names, and our data. */
static const char page_policy[] =
    "Content-Security-Policy: default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; connect-src 'self'; "
    "img-src data: blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'\r\nReferrer-Policy: no-referrer\r\n";

/* Bytes in memory that are sent as a file. */
struct ready {
	int fd;                         /* -1: none */
	uint64_t n;
};

enum { ROUTE_PAGE, ROUTE_DATA, ROUTE_VERSION, ROUTE_SOURCE, ROUTES };

struct site {
	const struct serve_settings *settings;
	struct shown *shown;            /* the second thread's */
	struct http_server *server;
	char token[2 * TOKEN_BYTES + 1];
	char paths[ROUTES][PATH_BYTES];
	struct http_route routes[ROUTES + 1];
	struct ready page;

	pthread_mutex_t lock;           /* of what follows */
	pthread_cond_t wake;
	bool stop, ended;
	struct ready block, complete;   /* complete: fd -1 until it was asked for */
	uint64_t version;
	struct strings sources;
	struct http_ticket waiting[WAITING_MAX];
	size_t n_waiting;
};

static int64_t now_ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000LL + t.tv_nsec / 1000000;
}

/* --- what is ready --- */

static void ready_finish(struct ready *r)
{
	if (r->fd >= 0)
		close(r->fd);
	r->fd = -1;
}

static int ready_make(const struct buf *bytes, struct ready *ret, struct error *err)
{
	int fd = file_in_memory("heapgauge-page", bytes->data, bytes->len);
	if (fd < 0)
		return error_set(err, E_IO, "there is no memory for %zu bytes of the page: %s", bytes->len, strerror(errno));
	*ret = (struct ready){ fd, bytes->len };
	return E_OK;
}

/* The answer's own descriptor, or -1. */
static int ready_copy(const struct ready *r)
{
	return r->fd < 0 ? -1 : fcntl(r->fd, F_DUPFD_CLOEXEC, 3);
}

static int make_block(struct site *x, size_t limit_bytes, struct ready *ret, bool *ret_complete, struct error *err)
{
	struct buf bytes;
	buf_init(&bytes, BUF_MAX_DEFAULT);
	int failed = shown_block(x->shown, limit_bytes, &bytes, ret_complete, err);
	if (!failed)
		failed = ready_make(&bytes, ret, err);
	buf_finish(&bytes);
	return failed;
}

/* A new block takes the place of the one before. */
static int renew(struct site *x, struct error *err)
{
	struct ready block, complete = { -1, 0 };
	struct strings sources;
	bool whole;
	int failed = make_block(x, x->settings->max_bytes, &block, &whole, err);
	if (failed)
		return failed;
	if (!shown_source_files(x->shown, &sources)) {
		ready_finish(&block);
		return error_nomem(err, "the names of source files");
	}
	if (whole)
		complete = (struct ready){ ready_copy(&block), block.n };
	pthread_mutex_lock(&x->lock);
	struct ready old_block = x->block, old_complete = x->complete;
	struct strings old_sources = x->sources;
	x->block = block;
	x->complete = complete;
	x->sources = sources;
	x->version++;
	pthread_mutex_unlock(&x->lock);
	ready_finish(&old_block);
	ready_finish(&old_complete);
	strings_finish(&old_sources);
	return E_OK;
}

/* --- answers, on the server's thread --- */

static void answer_page(void *context, struct http_exchange *e)
{
	struct site *x = context;
	int fd = ready_copy(&x->page);
	if (fd < 0)
		http_answer_text(e, 500, "There are no more descriptors.");
	else
		http_answer_fd(e, 200, "text/html; charset=utf-8", page_policy, fd, x->page.n);
}

static void answer_data(void *context, struct http_exchange *e)
{
	static const char type[] = "application/octet-stream";
	struct site *x = context;
	char all[8];
	bool want_all = http_query(http_exchange_request(e), "all", all, sizeof all) == 1 && all[0] == '1';
	pthread_mutex_lock(&x->lock);
	const struct ready *r = want_all ? &x->complete : &x->block;
	struct ready copy = { ready_copy(r), r->n };
	bool park = want_all && r->fd < 0 && x->n_waiting < WAITING_MAX;
	if (park) {
		x->waiting[x->n_waiting++] = http_park(e);
		pthread_cond_signal(&x->wake);
	}
	pthread_mutex_unlock(&x->lock);
	if (copy.fd >= 0)
		http_answer_fd(e, 200, type, NULL, copy.fd, copy.n);
	else if (!park)
		http_answer_text(e, 503, "Too much is asked at once; try again.");
}

static void answer_version(void *context, struct http_exchange *e)
{
	struct site *x = context;
	char text[32];
	pthread_mutex_lock(&x->lock);
	int n = snprintf(text, sizeof text, "%llu\n", (unsigned long long)x->version);
	pthread_mutex_unlock(&x->lock);
	http_answer(e, 200, "application/json", NULL, text, (size_t)n);
}

/* A regular file of a sensible size, else -1. */
static int open_source(const char *path, uint64_t *ret_n)
{
	struct stat st;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size <= SOURCE_BYTES_MAX) {
		*ret_n = (uint64_t)st.st_size;
		return fd;
	}
	if (fd >= 0)
		close(fd);
	return -1;
}

/* Below --sysroot and the directories of --debug-dir, as binaries are looked for, and where the profile says. */
static int find_source(const struct names_settings *names, const char *path, uint64_t *ret_n)
{
	char below[PATH_MAX];
	int fd = -1;
	for (size_t i = 0; i <= names->debug_dir.n && fd < 0; i++) {
		const char *root = i == 0 ? names->sysroot : names->debug_dir.items[i - 1];
		int n = root ? snprintf(below, sizeof below, "%s/%s", root, path) : -1;
		if (n > 0 && (size_t)n < sizeof below)
			fd = open_source(below, ret_n);
	}
	return fd < 0 ? open_source(path, ret_n) : fd;
}

static void answer_source(void *context, struct http_exchange *e)
{
	struct site *x = context;
	char path[PATH_MAX];
	uint64_t bytes;
	int n = http_query(http_exchange_request(e), "path", path, sizeof path), fd = -1;
	pthread_mutex_lock(&x->lock);
	bool named = n > 0 && strings_find(&x->sources, path, (size_t)n) != INDEX_NONE;
	pthread_mutex_unlock(&x->lock);
	if (!named) {
		http_answer_text(e, 404, "The profile names no such source file.");
		return;
	}
	fd = find_source(&x->shown->settings.load->names, path, &bytes);
	if (fd < 0)
		http_answer_text(e, 404, "That source file is not on this machine, can't be read, or is larger than 4 MiB (--sysroot or "
		                 "--debug-dir may point to a copy).");
	else
		http_answer_fd(e, 200, "text/plain; charset=utf-8", NULL, fd, bytes);
}

/* --- the second thread --- */

/* Until there is something to do, a second at most. True: the end. */
static bool wait_for_work(struct site *x)
{
	struct timespec until;
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec++;
	pthread_mutex_lock(&x->lock);
	while (!x->stop && x->n_waiting == 0 && pthread_cond_timedwait(&x->wake, &x->lock, &until) == 0) {
	}
	bool stop = x->stop;
	pthread_mutex_unlock(&x->lock);
	return stop;
}

/* Those who wait for a complete block get it, or a sentence. */
static void answer_waiting(struct site *x)
{
	struct ready made = { -1, 0 };
	struct error err = { 0 };
	struct http_ticket waiting[WAITING_MAX];
	pthread_mutex_lock(&x->lock);
	size_t n = x->n_waiting;
	memcpy(waiting, x->waiting, n * sizeof *waiting);
	bool have = x->complete.fd >= 0;
	x->n_waiting = 0;
	pthread_mutex_unlock(&x->lock);
	if (n == 0)
		return;
	if (!have)
		make_block(x, 0, &made, NULL, &err);
	pthread_mutex_lock(&x->lock);
	if (!have)
		x->complete = made;
	struct ready complete = x->complete;
	pthread_mutex_unlock(&x->lock);
	for (size_t i = 0; i < n; i++) {
		int fd = ready_copy(&complete);
		if (fd >= 0)
			http_ticket_answer_fd(x->server, waiting[i], 200, "application/octet-stream", NULL, fd, complete.n);
		else
			http_ticket_answer(x->server, waiting[i], 500, "text/plain; charset=utf-8", NULL, err.text, strlen(err.text));
	}
}

static void *look_after(void *context)
{
	struct site *x = context;
	int64_t next_ms = now_ms() + 1000;
	while (!wait_for_work(x)) {
		answer_waiting(x);
		if (now_ms() < next_ms)
			continue;
		struct buf said;
		struct error err;
		buf_init(&said, 1 << 20);
		if (shown_refresh(x->shown, now_ms(), &said) && renew(x, &err))
			buf_printf(&said, "%s; what was there before is still shown\n", err.text);
		if (said.len)
			x->settings->say(&said);
		buf_finish(&said);
		next_ms = now_ms() + 1000;
	}
	pthread_mutex_lock(&x->lock);
	x->ended = true;
	pthread_mutex_unlock(&x->lock);
	return NULL;
}

/* --- life --- */

static struct http_server *stopping;    /* what the handler of signals stops */

static void stop(int signal_number)
{
	(void)signal_number;
	http_server_stop(stopping);
}

static const int ends[] = { SIGINT, SIGTERM, SIGHUP };

/* NULL: from now on they just end the program. */
static void catch_signals(struct http_server *server)
{
	struct sigaction action = { .sa_handler = server ? stop : SIG_DFL, .sa_flags = SA_RESTART | (int)SA_RESETHAND }, before;
	sigemptyset(&action.sa_mask);
	for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
		if (sigaction(ends[i], NULL, &before) == 0 && before.sa_handler != SIG_IGN)
			sigaction(ends[i], &action, NULL);
	signal(SIGPIPE, SIG_IGN);
}

static int make_token(struct site *x, struct error *err)
{
	unsigned char bytes[TOKEN_BYTES];
	static const char *const names[ROUTES] = { "", "data", "version", "source" };
	static const char *const of_data[] = { "all", NULL }, *const of_source[] = { "path", NULL };
	static void (*const handlers[ROUTES])(void *, struct http_exchange *) = { answer_page, answer_data, answer_version, answer_source };
	if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
		return error_set(err, E_IO, "the system has no random numbers: %s", strerror(errno));
	for (size_t i = 0; i < TOKEN_BYTES; i++)
		snprintf(x->token + 2 * i, 3, "%02x", bytes[i]);
	for (size_t i = 0; i < ROUTES; i++) {
		snprintf(x->paths[i], sizeof x->paths[i], "/%s/%s", x->token, names[i]);
		x->routes[i] = (struct http_route){
			.path = x->paths[i], .methods = HTTP_GET, .handle = handlers[i],
			.parameters = i == ROUTE_DATA ? of_data : i == ROUTE_SOURCE ? of_source : NULL,
		};
	}
	return E_OK;
}

static int open_site(struct site *x, struct error *err)
{
	struct buf page;
	struct http_access access = { .local_socket = false };
	const struct http_settings how = { .routes = x->routes, .context = x, .limits = { .head_bytes = (size_t)20 << 10 } };
	if (strncmp(x->settings->listen, "unix:", 5) == 0)
		return error_set(err, E_USAGE, "--listen takes ADDRESS:PORT of this machine, like 127.0.0.1:6061: browsers open no sockets");
	buf_init(&page, BUF_MAX_DEFAULT);
	int failed = page_served(&page, err);
	if (!failed)
		failed = ready_make(&page, &x->page, err);
	buf_finish(&page);
	if (!failed)
		failed = renew(x, err);
	if (!failed)
		failed = make_token(x, err);
	return failed ? failed : http_server_new(x->settings->listen, false, &access, &how, &x->server, err);
}

/* Serves; *ret_busy as in serve.h. */
static int run_site(struct site *x, bool *ret_busy, struct error *err)
{
	pthread_t thread;
	sigset_t for_us, before;
	char url[512];
	stopping = x->server;
	catch_signals(x->server);
	sigemptyset(&for_us);
	for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
		sigaddset(&for_us, ends[i]);
	pthread_sigmask(SIG_BLOCK, &for_us, &before);
	int failed = pthread_create(&thread, NULL, look_after, x);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (failed)
		return error_set(err, E_IO, "no thread can be started: %s", strerror(failed));
	snprintf(url, sizeof url, "%s/%s/", http_server_url(x->server), x->token);
	x->settings->started(url, x->settings->context);
	http_server_run(x->server);
	catch_signals(NULL);
	pthread_mutex_lock(&x->lock);
	x->stop = true;
	pthread_cond_signal(&x->wake);
	pthread_mutex_unlock(&x->lock);
	for (int waited = 0; waited < END_MS; waited += 10) {
		pthread_mutex_lock(&x->lock);
		bool ended = x->ended;
		pthread_mutex_unlock(&x->lock);
		if (ended)
			return pthread_join(thread, NULL);
		nanosleep(&(struct timespec){ .tv_nsec = 10000000 }, NULL);
	}
	*ret_busy = true;
	return 0;
}

static void close_site(struct site *x)
{
	http_server_free(x->server);
	ready_finish(&x->page);
	ready_finish(&x->block);
	ready_finish(&x->complete);
	strings_finish(&x->sources);
	pthread_cond_destroy(&x->wake);
	pthread_mutex_destroy(&x->lock);
	free(x);
}

int serve(struct shown *shown, const struct serve_settings *s, bool *ret_busy, struct error *err)
{
	struct site *x = calloc(1, sizeof *x);
	pthread_condattr_t monotonic;
	*ret_busy = false;
	if (!x)
		return error_nomem(err, "the server");
	x->settings = s;
	x->shown = shown;
	x->page.fd = x->block.fd = x->complete.fd = -1;
	pthread_mutex_init(&x->lock, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&x->wake, &monotonic);
	pthread_condattr_destroy(&monotonic);
	int failed = open_site(x, err);
	if (!failed)
		failed = run_site(x, ret_busy, err);
	if (!*ret_busy)
		close_site(x);
	return failed;
}
