/* The whole: what is opened in which order, and ended in the opposite one. */
#include "record/recorder_private.h"

#include <heapgauge.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "record/page.h"

#define CONNECTIONS 1536                /* more than pushes that wait in the queue, reloads and queries together */
#define HEAD_MS 15000
#define IDLE_MS 20                      /* between looks at whether there is something to maintain */
#define LOOK_MS 1000
#define FLUSH_MS 250
#define SAID_MS 10000
#define SAID_MAX 20

static const char *const failure_names[FAILURES] = {
	"connection", "timeout", "status", "too_large", "format", "sample_limit", "settings", "process", "shed", "store",
};

const char *failure_name(enum failure f)
{
	return failure_names[f];
}

int64_t clock_ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000LL + t.tv_nsec / 1000000;
}

int64_t clock_wall_ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_REALTIME, &t);
	return t.tv_sec * 1000LL + t.tv_nsec / 1000000;
}

/* --- the log --- */

void recorder_say_lines(struct recorder *r, const struct buf *lines)
{
	if (!lines->len || !r->settings.say)
		return;
	pthread_mutex_lock(&r->log_lock);
	r->settings.say(lines);
	pthread_mutex_unlock(&r->log_lock);
}

void recorder_say(struct recorder *r, const char *format, ...)
{
	char text[1024];
	struct buf line;
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(text, sizeof text, format, arguments);
	va_end(arguments);
	buf_init(&line, sizeof text + 2);
	buf_printf(&line, "%s\n", text);
	recorder_say_lines(r, &line);
	buf_finish(&line);
}

/* A thousand targets may go down at once: of ten seconds only the first ones are said. */
void recorder_say_target(struct recorder *r, const struct target *x, const char *what)
{
	int64_t now_ms = clock_ms();
	pthread_mutex_lock(&r->log_lock);
	if (now_ms - r->said_since_ms > SAID_MS) {
		r->said_since_ms = now_ms;
		r->said = 0;
	}
	unsigned n = r->said++;
	pthread_mutex_unlock(&r->log_lock);
	if (n < SAID_MAX)
		recorder_say(r, "%s: %s", x->shown, what);
	else if (n == SAID_MAX)
		recorder_say(r, "more targets go down or up: /api/v1/targets has them all");
}

static void say_symbols(void *context, const char *line)
{
	recorder_say(context, "%s", line);
}

/* --- from the receiving threads --- */

void recorder_failed(struct recorder *r, struct target *x, int64_t began_wall_ms, int64_t began_ms, enum failure why, const char *error)
{
	struct target_outcome o = { .began_ms = began_wall_ms, .duration_ms = (uint32_t)(clock_ms() - began_ms), .error = error };
	count(&r->counters.failures[why], 1);
	if (targets_report(&r->targets, x, &o))
		recorder_say_target(r, x, error);
}

bool recorder_received(struct recorder *r, struct item *i)
{
	if (queue_add(&r->queue, i))
		return true;
	recorder_failed(r, i->target, i->time_ms, i->began_ms, FAILED_SHED, "the recorder has no time left to store it: more is coming in than it can "
	                "store (longer intervals, or fewer targets)");
	item_free(i);
	return false;
}

/* --- threads --- */

static void *serve(void *context)
{
	struct recorder *r = context;
	http_server_run(r->server);
	return NULL;
}

static void *ingest(void *context)
{
	struct recorder *r = context;
	ingest_run(r->ingest);
	return NULL;
}

/* True: the end. */
static bool wait_until(struct recorder *r, int64_t wait_ms)
{
	struct timespec until;
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += wait_ms / 1000;
	until.tv_nsec += wait_ms % 1000 * 1000000;
	if (until.tv_nsec >= 1000000000) {
		until.tv_sec++;
		until.tv_nsec -= 1000000000;
	}
	pthread_mutex_lock(&r->reload_lock);
	while (!atomic_load_explicit(&r->stopping, memory_order_acquire) && pthread_cond_timedwait(&r->wake, &r->reload_lock, &until) == 0) {
	}
	pthread_mutex_unlock(&r->reload_lock);
	return atomic_load_explicit(&r->stopping, memory_order_acquire);
}

static int64_t maintenance_now(const struct recorder *r)
{
	int64_t now = clock_wall_ms(), late = atomic_load_explicit(&r->late_ms, memory_order_relaxed);
	return clock_ms() < atomic_load_explicit(&r->late_until_ms, memory_order_relaxed) && late < now ? late : now;
}

static void *maintain(void *context)
{
	struct recorder *r = context;
	bool failing = false, more = false;
	while (!wait_until(r, more ? IDLE_MS : LOOK_MS)) {
		struct error reason;
		more = false;
		int failed = store_maintain(r->store, maintenance_now(r), &more, &reason);
		count(&r->counters.maintain_steps, 1);
		count(&r->counters.maintain_failures, failed != 0);
		if (failed && !failing)
			recorder_say(r, "the store could not be looked after: %s; it is tried again every second", reason.text);
		failing = failed;
		more = more && !failed;
	}
	return NULL;
}

/* --- beginning --- */

static int copy_settings(struct recorder *r, const struct config *c, struct error *err)
{
	arena_init(&r->arena, (size_t)16 << 20);
	for (size_t i = 0; i < c->external_labels.n; i++) {
		const struct store_label *l = &c->external_labels.items[i];
		struct store_label *items = arena_grow(&r->arena, r->external_labels.items, i, sizeof *items);
		if (!items)
			break;
		items[i] = (struct store_label){ arena_text(&r->arena, l->name, strlen(l->name)), arena_text(&r->arena, l->value, strlen(l->value)) };
		r->external_labels = (struct config_labels){ items, i + 1 };
	}
	r->store_path = strdup(c->store.path);
	return r->arena.failed || !r->store_path ? error_nomem(err, "the recorder") : E_OK;
}

static int open_symbols(struct recorder *r, const struct config *c, struct error *err)
{
	const struct config_texts *dirs = &c->symbols.debug_dirs, *urls = &c->symbols.debuginfod;
	struct buf text;
	const char **search = arena_take(&r->arena, (dirs->n + 1) * sizeof *search);
	for (size_t i = 0; search && i < dirs->n; i++)
		search[i] = arena_text(&r->arena, dirs->items[i], strlen(dirs->items[i]));
	buf_init(&text, 1 << 20);
	if (c->symbols.upload_dir)
		buf_adds(&text, c->symbols.upload_dir);
	else
		buf_printf(&text, "%s.symbols", r->store_path);
	const char *folder = arena_text(&r->arena, text.data, text.len);
	buf_reset(&text);
	for (size_t i = 0; i < urls->n; i++)
		buf_printf(&text, "%s%s", i ? " " : "", urls->items[i]);
	const char *debuginfod = c->symbols.has_debuginfod ? arena_text(&r->arena, text.data ? text.data : "", text.len) : NULL;
	buf_finish(&text);
	struct symbols_settings s = { .store = r->store, .folder = folder, .search = search, .debuginfod = debuginfod,
	                              .folder_max_bytes = c->symbols.upload_limit, .say = say_symbols, .say_context = r };
	return r->arena.failed ? error_nomem(err, "the recorder") : symbols_new(&s, &r->symbols, err);
}

static int open_access(const struct config *c, struct http_access *a, struct error *err)
{
	struct buf hosts;
	if (c->web.token)
		snprintf(a->token, sizeof a->token, "%s", c->web.token);
	int failed = c->web.token_file ? http_read_token(c->web.token_file, a->token, err) : E_OK;
	buf_init(&hosts, 1 << 16);
	for (size_t i = 0; i < c->web.hosts.n; i++)
		buf_printf(&hosts, "%s%s", i ? "," : "", c->web.hosts.items[i]);
	if (!failed && hosts.len >= sizeof a->hosts)
		failed = error_set(err, E_USAGE, "web: hosts takes %zu bytes in all", sizeof a->hosts - 1);
	else
		snprintf(a->hosts, sizeof a->hosts, "%s", hosts.data ? hosts.data : "");
	buf_finish(&hosts);
	return failed;
}

static int open_api(struct recorder *r, const struct config *c, struct error *err)
{
	const char *url = c->web.external_url ? arena_text(&r->arena, c->web.external_url, strlen(c->web.external_url)) : NULL;
	struct api_settings s = { .store = r->store, .symbols = r->symbols, .url = url, .version = HG_VERSION };
	return api_new(&s, &r->api, err);
}

static int listen_on(struct recorder *r, const struct config *c, struct error *err)
{
	struct http_access access = { .local_socket = false };
	int failed = open_access(c, &access, err);
	if (!failed)
		failed = routes_make(r, err);
	if (failed)
		return failed;
	struct http_settings how = { .routes = r->routes, .context = r,
	                             .limits = { .connections = CONNECTIONS, .head_bytes = (size_t)32 << 10, .head_ms = HEAD_MS } };
	failed = http_server_new(c->web.listen, c->web.allow_remote, &access, &how, &r->server, err);
	explicit_bzero(&access, sizeof access);
	return failed;
}

static void init_locks(struct recorder *r)
{
	pthread_condattr_t monotonic;
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&r->wake, &monotonic);
	pthread_condattr_destroy(&monotonic);
	pthread_mutex_init(&r->log_lock, NULL);
	pthread_mutex_init(&r->reload_lock, NULL);
	targets_init(&r->targets);
	queue_init(&r->queue);
}

int recorder_new(const struct recorder_settings *s, struct config *c, struct recorder **ret, struct error *err)
{
	struct recorder *r = calloc(1, sizeof *r);
	if (!r)
		return error_nomem(err, "the recorder");
	r->settings = *s;
	r->started_ms = clock_wall_ms();
	r->counters.reload_ms = r->started_ms;
	init_locks(r);
	int failed = copy_settings(r, c, err);
	if (!failed)
		failed = store_open(c->store.path, &c->store.options, &r->store, err);
	if (!failed)
		failed = ingest_new(r, &r->ingest, err);
	if (!failed)
		failed = open_symbols(r, c, err);
	if (!failed)
		failed = open_api(r, c, err);
	if (!failed)
		failed = recorder_page_new(&r->page, err);
	if (!failed)
		failed = listen_on(r, c, err);
	if (failed) {
		recorder_free(r);
		return failed;
	}
	r->config = c;
	*ret = r;
	return E_OK;
}

static int start_thread(pthread_t *thread, void *(*run)(void *), struct recorder *r, bool *ret_runs, struct error *err)
{
	int code = pthread_create(thread, NULL, run, r);
	*ret_runs = code == 0;
	return code ? error_set(err, E_IO, "no thread can be started: %s", strerror(code)) : E_OK;
}

int recorder_start(struct recorder *r, struct error *err)
{
	int failed = start_thread(&r->ingest_thread, ingest, r, &r->ingest_runs, err);
	if (!failed)
		failed = attaching_start(r, err);
	if (!failed)
		failed = scraping_start(r, err);
	if (!failed)
		failed = api_start(r->api, r->server, err);
	if (!failed)
		failed = start_thread(&r->server_thread, serve, r, &r->server_runs, err);
	if (!failed)
		failed = start_thread(&r->maintenance_thread, maintain, r, &r->maintenance_runs, err);
	return failed;
}

/* --- the end --- */

void recorder_stop(struct recorder *r)
{
	pthread_mutex_lock(&r->reload_lock);
	atomic_store_explicit(&r->stopping, true, memory_order_release);
	pthread_cond_broadcast(&r->wake);
	pthread_mutex_unlock(&r->reload_lock);
	scraping_stop(r->scraping);
	attaching_stop(r->attaching);
	r->attaching = NULL;
	queue_close(&r->queue);
	if (r->ingest_runs)
		pthread_join(r->ingest_thread, NULL);
	if (r->server_runs) {
		/* Whoever has just been acknowledged may hear of it. */
		nanosleep(&(struct timespec){ .tv_nsec = FLUSH_MS * 1000000L }, NULL);
		http_server_stop(r->server);
		pthread_join(r->server_thread, NULL);
	}
	if (r->maintenance_runs)
		pthread_join(r->maintenance_thread, NULL);
	r->scraping = NULL;
	r->ingest_runs = r->server_runs = r->maintenance_runs = false;
}

void recorder_free(struct recorder *r)
{
	if (!r)
		return;
	api_free(r->api);
	symbols_free(r->symbols);
	http_server_free(r->server);
	recorder_page_free(r->page);
	queue_finish(&r->queue);
	ingest_free(r->ingest);
	targets_finish(&r->targets);
	store_close(r->store);
	config_free(r->config);
	free(r->routes);
	free(r->store_path);
	arena_finish(&r->arena);
	pthread_mutex_destroy(&r->log_lock);
	pthread_mutex_destroy(&r->reload_lock);
	pthread_cond_destroy(&r->wake);
	free(r);
}

/* --- from anywhere --- */

void recorder_reload(struct recorder *r)
{
	pthread_mutex_lock(&r->reload_lock);
	r->reload_wanted = true;
	pthread_mutex_unlock(&r->reload_lock);
	if (r->scraping)
		scraping_wake(r->scraping);
}

const char *recorder_url(const struct recorder *r)
{
	return http_server_url(r->server);
}
