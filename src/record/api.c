/*
 * The way of a query: handler (the server's thread) -> list -> one of the threads -> answer. All queries, waiting and running ones, are in
 * one list, oldest first. Heavy ones never take the last thread, so that the short questions of a page don't wait behind long work.
 */
#include "record/api_private.h"

#include <errno.h>
#include <malloc.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "record/symbols_private.h"
#include "report/json.h"

#define PARAMETERS_BYTES ((size_t)1 << 20)      /* of a query's parameters as they are read */
#define TRIM_BYTES ((size_t)8 << 20)            /* an answer whose work took more gives its memory back to the system */

/* What a route's handlers get. */
struct mounted {
	struct api *api;
	const struct api_query_route *route;
};

uint64_t api_clock_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

int64_t api_now_ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_REALTIME, &t);
	return t.tv_sec * 1000LL + t.tv_nsec / 1000000;
}

/* --- the list, under the lock --- */

static void list_add(struct api *a, struct query *q)
{
	struct query **end = &a->first;
	while (*end)
		end = &(*end)->next;
	*end = q;
	a->n_waiting++;
}

static void list_remove(struct api *a, struct query *q)
{
	struct query **at = &a->first;
	while (*at != q)
		at = &(*at)->next;
	*at = q->next;
}

/* The oldest one that may begin; heavy ones leave a thread to the others. */
static struct query *list_next(const struct api *a)
{
	bool heavy = a->n_threads == 1 || a->n_heavy + 1 < a->n_threads;
	for (struct query *q = a->first; q; q = q->next)
		if (!q->running && (heavy || q->route->class != QUERY_HEAVY))
			return q;
	return NULL;
}

/* --- queries --- */

static void query_free(struct query *q)
{
	if (!q)
		return;
	arena_finish(&q->arena);
	buf_finish(&q->out);
	free(q);
}

/* A name that cancel knows it by: E_USAGE when it is none. */
static int read_id(const struct http_request *r, char to[QUERY_ID_MAX + 1], struct error *err)
{
	static const char fine[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
	int n = http_query(r, "id", to, QUERY_ID_MAX + 1);
	if (n == -1 || (n > 0 && to[strspn(to, fine)] == '\0'))
		return 0;
	return error_set(err, E_USAGE, "id: a name of letters, digits, '-', '_' and '.', at most %d", QUERY_ID_MAX);
}

static struct query *query_new(struct api *a, const struct api_query_route *route, const struct http_request *r, struct error *err)
{
	struct query *q = calloc(1, sizeof *q);
	if (!q) {
		error_nomem(err, "a query");
		return NULL;
	}
	q->api = a;
	q->route = route;
	q->now_ms = api_now_ms();
	q->begun_ns = api_clock_ns();
	q->type = "application/json";
	arena_init(&q->arena, PARAMETERS_BYTES);
	buf_init(&q->out, a->settings.max_bytes);
	q->budget = (struct store_budget){
		.deadline_ns = q->begun_ns + (uint64_t)a->settings.timeout_ms * 1000000u, .max_bytes = a->settings.max_bytes,
		.cancelled = &q->cancelled,
	};
	const char *copy = arena_text(&q->arena, r->query.n ? r->query.at : "", r->query.n);
	int failed = copy ? read_id(r, q->id, err) : error_nomem(err, "a query");
	if (failed) {
		query_free(q);
		return NULL;
	}
	q->request = (struct http_request){ .method = HTTP_GET, .query = { copy, r->query.n } };
	return q;
}

int query_missing(struct query *q, struct error *err, const char *format, ...)
{
	char text[sizeof err->text];
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(text, sizeof text, format, arguments);
	va_end(arguments);
	q->status = 404;
	return error_set(err, E_USAGE, "%s", text);
}

int query_check(const struct query *q, struct error *err)
{
	if (atomic_load_explicit(&q->cancelled, memory_order_relaxed))
		return error_set(err, E_LIMIT, "cancelled");
	if (api_clock_ns() > q->budget.deadline_ns)
		return error_set(err, E_LIMIT, "not answered within %u s: ask for a shorter range, fewer series or a coarser step",
		                 q->api->settings.timeout_ms / 1000);
	return 0;
}

int query_check_memory(const struct query *q, size_t bytes, struct error *err)
{
	if (bytes <= q->budget.max_bytes)
		return 0;
	return error_set(err, E_LIMIT, "the answer needs more than %zu MiB of memory: ask for a shorter range, fewer series or moments",
	                 q->budget.max_bytes >> 20);
}

/* --- answers --- */

static int status_of(const struct query *q, int code)
{
	if (!code)
		return 200;
	if (atomic_load(&q->cancelled))
		return 503;
	if (q->status)
		return q->status;
	switch (code) {
	case E_USAGE:
	case E_UNSUPPORTED: return 400;
	case E_LIMIT: return api_clock_ns() > q->budget.deadline_ns ? 408 : 413;
	case E_NOMEM: return 503;
	}
	return 500;
}

static void send_answer(struct query *q, int status)
{
	struct http_server *server = q->api->server;
	static const char none[] = "{\"error\":\"out of memory for the answer\"}\n";
	if (q->out.len <= HTTP_SHORT_MAX) {
		http_ticket_answer(server, q->ticket, status, q->type, q->headers, q->out.data ? q->out.data : "", q->out.len);
		return;
	}
	int fd = file_in_memory("heapgauge-answer", q->out.data, q->out.len);
	if (fd < 0)
		http_ticket_answer(server, q->ticket, 503, "application/json", NULL, none, sizeof none - 1);
	else
		http_ticket_answer_fd(server, q->ticket, status, q->type, q->headers, fd, q->out.len);
}

static int answer(struct query *q, int code, struct error *err)
{
	if (!code && q->out.failed)
		code = query_check_memory(q, SIZE_MAX, err);
	/* Not all of the work looks at the clock: what is ready too late is as little an answer as what was given up. */
	if (!code)
		code = query_check(q, err);
	int status = status_of(q, code);
	if (code) {
		const char *text = status == 503 && atomic_load(&q->cancelled) ? "cancelled" : err->text;
		buf_reset(&q->out);
		api_add_error(&q->out, text);
		q->type = "application/json";
		q->headers = NULL;
	}
	send_answer(q, status);
	return status;
}

void api_add_error(struct buf *out, const char *text)
{
	struct json j = { .out = out };
	json_open(&j, NULL, '{');
	json_cstring(&j, "error", text);
	json_close(&j, '}');
	buf_addc(out, '\n');
}

void api_answer_json(struct http_exchange *x, const struct buf *body)
{
	if (body->failed || body->len > HTTP_SHORT_MAX)
		api_answer_error(x, 503, "out of memory, or too long an answer");
	else
		http_answer(x, 200, "application/json", NULL, body->data, body->len);
}

void api_answer_error(struct http_exchange *x, int status, const char *format, ...)
{
	char text[512];
	struct buf body;
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(text, sizeof text, format, arguments);
	va_end(arguments);
	buf_init(&body, HTTP_SHORT_MAX);
	api_add_error(&body, text);
	http_answer(x, status, "application/json", status == 429 ? "Retry-After: 1\r\n" : NULL, body.data, body.failed ? 0 : body.len);
	buf_finish(&body);
}

bool api_check_parameters(struct http_exchange *x, const char *const *names)
{
	struct http_text unknown;
	if (http_query_known(http_exchange_request(x), names, &unknown))
		return true;
	api_answer_error(x, 400, "there is no parameter '%.*s' here", unknown.n < 64 ? (int)unknown.n : 64, unknown.at);
	return false;
}

/* --- on the server's thread --- */

static void handle_query(void *context, struct http_exchange *x)
{
	const struct mounted *m = context;
	struct api *a = m->api;
	struct error err = { 0 };
	if (!api_check_parameters(x, m->route->parameters))
		return;
	struct query *q = query_new(a, m->route, http_exchange_request(x), &err);
	if (!q) {
		api_answer_error(x, err.code == E_USAGE ? 400 : 503, "%s", err.text);
		return;
	}
	pthread_mutex_lock(&a->lock);
	bool room = a->n_waiting < a->settings.waiting && !a->stop;
	a->totals.refused += !room;
	q->number = ++a->last_number;
	pthread_mutex_unlock(&a->lock);
	if (!room) {
		api_answer_error(x, 429, "%u queries are waiting already: try again", a->settings.waiting);
		query_free(q);
		return;
	}
	memcpy(http_exchange_user(x), &q->number, sizeof q->number);
	q->ticket = http_park(x);
	pthread_mutex_lock(&a->lock);
	list_add(a, q);
	pthread_cond_signal(&a->wake);
	pthread_mutex_unlock(&a->lock);
}

/* A client that is gone: nobody wants to know any more. */
static void query_over(void *context, struct http_exchange *x, bool answered)
{
	const struct mounted *m = context;
	struct api *a = m->api;
	uint64_t number;
	memcpy(&number, http_exchange_user(x), sizeof number);
	if (answered || !number)
		return;
	pthread_mutex_lock(&a->lock);
	for (struct query *q = a->first; q; q = q->next)
		if (q->number == number) {
			atomic_store(&q->cancelled, true);
			a->totals.gone++;
		}
	pthread_mutex_unlock(&a->lock);
}

static void handle_queries(void *context, struct http_exchange *x)
{
	const struct mounted *m = context;
	struct api *a = m->api;
	struct buf body;
	struct json j = { .out = &body };
	uint64_t now = api_clock_ns();
	unsigned left = 24;             /* a short answer's worth */
	buf_init(&body, HTTP_SHORT_MAX);
	json_open(&j, NULL, '{');
	json_open(&j, "queries", '[');
	pthread_mutex_lock(&a->lock);
	for (const struct query *q = a->first; q && left; q = q->next, left--) {
		json_open(&j, NULL, '{');
		if (q->id[0])
			json_cstring(&j, "id", q->id);
		else
			json_null(&j, "id");
		json_cstring(&j, "route", q->route->path);
		json_bool(&j, "running", q->running);
		json_integer(&j, "age_ms", (int64_t)((now - q->begun_ns) / 1000000));
		json_close(&j, '}');
	}
	pthread_mutex_unlock(&a->lock);
	json_close(&j, ']');
	json_close(&j, '}');
	buf_addc(&body, '\n');
	api_answer_json(x, &body);
	buf_finish(&body);
}

static void handle_cancel(void *context, struct http_exchange *x)
{
	const struct mounted *m = context;
	struct api *a = m->api;
	struct error err;
	struct buf body;
	char id[QUERY_ID_MAX + 1];
	unsigned n = 0;
	static const char *const names[] = { "id", NULL };
	if (!api_check_parameters(x, names))
		return;
	if (read_id(http_exchange_request(x), id, &err) || !id[0]) {
		api_answer_error(x, 400, "%s", id[0] ? err.text : "which id?");
		return;
	}
	pthread_mutex_lock(&a->lock);
	for (struct query *q = a->first; q; q = q->next)
		if (strcmp(q->id, id) == 0 && !atomic_exchange(&q->cancelled, true))
			n++;
	a->totals.cancelled += n;
	pthread_mutex_unlock(&a->lock);
	buf_init(&body, HTTP_SHORT_MAX);
	buf_printf(&body, "{\"cancelled\":%u}\n", n);
	api_answer_json(x, &body);
	buf_finish(&body);
}

/* --- the threads --- */

/* What a large answer took would stay with the thread. */
static void give_back(void)
{
#ifdef __GLIBC__
	if (mallinfo2().fordblks > TRIM_BYTES)
		malloc_trim(TRIM_BYTES / 4);
#endif
}

/* Under the lock, which is given up meanwhile. */
static void work(struct api *a, struct query *q)
{
	struct error err = { 0 };
	bool heavy = q->route->class == QUERY_HEAVY;
	q->running = true;
	a->n_waiting--;
	a->n_running++;
	a->n_heavy += heavy;
	pthread_mutex_unlock(&a->lock);
	int code = query_check(q, &err);
	if (!code)
		code = q->route->run(q, &err);
	int status = answer(q, code, &err);
	uint64_t ns = api_clock_ns() - q->begun_ns;
	pthread_mutex_lock(&a->lock);
	list_remove(a, q);
	a->n_running--;
	a->n_heavy -= heavy;
	a->totals.queries++;
	a->totals.ns += ns;
	a->totals.late += status == 408;
	a->totals.large += status == 413;
	a->totals.failed += status >= 500 && !atomic_load(&q->cancelled);
	if (heavy)
		pthread_cond_signal(&a->wake);
	pthread_mutex_unlock(&a->lock);
	query_free(q);
	if (heavy)
		give_back();
	pthread_mutex_lock(&a->lock);
}

static void *answer_queries(void *context)
{
	struct api *a = context;
	pthread_mutex_lock(&a->lock);
	while (!a->stop) {
		struct query *q = list_next(a);
		if (q)
			work(a, q);
		else
			pthread_cond_wait(&a->wake, &a->lock);
	}
	pthread_mutex_unlock(&a->lock);
	return NULL;
}

/* --- life --- */

static void mount(struct api *a, const struct http_route *r, const struct api_query_route *of)
{
	struct mounted *m = &a->mounted[a->n_routes];
	struct http_route *to = &a->routes[a->n_routes++];
	*m = (struct mounted){ a, of };
	*to = *r;
	to->raw_query = true;
	if (!to->context)
		to->context = m;
}

static int mount_all(struct api *a, struct error *err)
{
	size_t n_queries = 0, n_symbols;
	const struct http_route *of_symbols = symbols_routes(a->settings.symbols, &n_symbols);
	while (api_query_routes[n_queries].path)
		n_queries++;
	a->routes = calloc(n_queries + n_symbols + 2, sizeof *a->routes);
	a->mounted = calloc(n_queries + n_symbols + 2, sizeof *a->mounted);
	if (!a->routes || !a->mounted)
		return error_nomem(err, "the routes");
	for (size_t i = 0; i < n_queries; i++)
		mount(a, &(struct http_route){ .path = api_query_routes[i].path, .methods = HTTP_GET, .handle = handle_query, .over = query_over },
		      &api_query_routes[i]);
	mount(a, &(struct http_route){ .path = "/api/v1/queries", .methods = HTTP_GET, .handle = handle_queries }, NULL);
	mount(a, &(struct http_route){ .path = "/api/v1/cancel", .methods = HTTP_POST, .handle = handle_cancel }, NULL);
	for (size_t i = 0; i < n_symbols; i++)
		mount(a, &of_symbols[i], NULL);
	return 0;
}

int api_new(const struct api_settings *s, struct api **ret, struct error *err)
{
	struct api *a = calloc(1, sizeof *a);
	if (!a)
		return error_nomem(err, "the query API");
	a->settings = *s;
	a->settings.title = s->title ? s->title : "heapgauge";
	a->settings.version = s->version ? s->version : "";
	a->settings.threads = s->threads ? s->threads : 2;
	a->settings.waiting = s->waiting ? s->waiting : 64;
	a->settings.timeout_ms = s->timeout_ms ? s->timeout_ms : 30000;
	a->settings.max_bytes = s->max_bytes ? s->max_bytes : (size_t)256 << 20;
	pthread_mutex_init(&a->lock, NULL);
	pthread_cond_init(&a->wake, NULL);
	a->threads = calloc(a->settings.threads, sizeof *a->threads);
	int failed = a->threads ? mount_all(a, err) : error_nomem(err, "the query API's threads");
	if (failed) {
		api_free(a);
		return failed;
	}
	*ret = a;
	return 0;
}

const struct http_route *api_routes(const struct api *a, size_t *ret_n)
{
	*ret_n = a->n_routes;
	return a->routes;
}

int api_start(struct api *a, struct http_server *server, struct error *err)
{
	a->server = server;
	symbols_set_server(a->settings.symbols, server);
	if (!a->settings.url)
		a->settings.url = http_server_url(server);
	pthread_mutex_lock(&a->lock);
	int failed = 0;
	while (a->n_threads < a->settings.threads && !failed) {
		failed = pthread_create(&a->threads[a->n_threads], NULL, answer_queries, a);
		a->n_threads += !failed;
	}
	pthread_mutex_unlock(&a->lock);
	return failed ? error_set(err, E_IO, "no thread can be started: %s", strerror(failed)) : 0;
}

void api_free(struct api *a)
{
	if (!a)
		return;
	pthread_mutex_lock(&a->lock);
	a->stop = true;
	for (struct query *q = a->first; q; q = q->next)
		atomic_store(&q->cancelled, true);
	pthread_cond_broadcast(&a->wake);
	pthread_mutex_unlock(&a->lock);
	for (unsigned i = 0; i < a->n_threads; i++)
		pthread_join(a->threads[i], NULL);
	while (a->first) {
		struct query *q = a->first;
		a->first = q->next;
		query_free(q);
	}
	pthread_cond_destroy(&a->wake);
	pthread_mutex_destroy(&a->lock);
	free(a->threads);
	free(a->routes);
	free(a->mounted);
	free(a);
}

void api_metrics(struct api *a, struct buf *out)
{
	pthread_mutex_lock(&a->lock);
	struct api_totals t = a->totals;
	unsigned waiting = a->n_waiting, running = a->n_running;
	pthread_mutex_unlock(&a->lock);
	const struct {
		const char *name, *help;
		uint64_t value;
	} counters[] = {
		{ "queries_total", "Queries answered.", t.queries },
		{ "queries_refused_total", "Queries answered 429, as too many were waiting.", t.refused },
		{ "queries_cancelled_total", "Queries cancelled by name.", t.cancelled },
		{ "queries_abandoned_total", "Queries whose client had gone.", t.gone },
		{ "queries_late_total", "Queries that passed their time limit.", t.late },
		{ "queries_large_total", "Queries that passed their memory limit.", t.large },
		{ "queries_failed_total", "Queries that failed here.", t.failed },
	};
	for (size_t i = 0; i < sizeof counters / sizeof *counters; i++)
		buf_printf(out, "# HELP heapgauge_api_%s %s\n# TYPE heapgauge_api_%s counter\nheapgauge_api_%s %llu\n", counters[i].name,
		           counters[i].help, counters[i].name, counters[i].name, (unsigned long long)counters[i].value);
	buf_printf(out, "# HELP heapgauge_api_query_seconds_total Time from request to answer, summed.\n"
	           "# TYPE heapgauge_api_query_seconds_total counter\nheapgauge_api_query_seconds_total %llu.%06llu\n",
	           (unsigned long long)(t.ns / 1000000000u), (unsigned long long)(t.ns / 1000 % 1000000u));
	buf_printf(out, "# HELP heapgauge_api_queries Queries at hand.\n# TYPE heapgauge_api_queries gauge\n"
	           "heapgauge_api_queries{state=\"waiting\"} %u\nheapgauge_api_queries{state=\"running\"} %u\n", waiting, running);
}
