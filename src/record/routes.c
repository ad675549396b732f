/* The recorder's own routes, and the table of all: those of the queries beside them. */
#include "record/recorder_private.h"

#include <errno.h>
#include <heapgauge.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "record/page.h"
#include "report/json.h"

#define ANSWER_MAX ((size_t)1 << 30)
#define PER_TARGET_MAX 20000            /* targets that /metrics lists one by one */

/* --- answers of any size --- */

static void answer_buf(struct http_exchange *x, const char *type, const struct buf *b)
{
	int fd = b->failed ? -1 : file_in_memory("heapgauge-answer", b->data, b->len);
	if (fd < 0)
		http_answer_text(x, 503, "There is no memory for this answer.");
	else
		http_answer_fd(x, 200, type, NULL, fd, b->len);
}

/* --- targets --- */

static void add_labels(struct json *j, const char *key, const struct store_label *labels, size_t n)
{
	json_open(j, key, '{');
	for (size_t i = 0; i < n; i++)
		json_cstring(j, labels[i].name, labels[i].value);
	json_close(j, '}');
}

/* "2026-11-21T20:15:01.250Z"; the year 1 for never, as Prometheus has it. */
static void add_time(struct json *j, const char *key, int64_t ms)
{
	time_t seconds = ms / 1000;
	struct tm t;
	char text[40] = "0001-01-01T00:00:00Z";
	size_t n = ms && gmtime_r(&seconds, &t) ? strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &t) : 0;
	if (n)
		snprintf(text + n, sizeof text - n, ".%03dZ", (int)(ms % 1000));
	json_cstring(j, key, text);
}

static void add_duration(struct json *j, const char *key, uint32_t ms)
{
	char text[16];
	snprintf(text, sizeof text, "%" PRIu32 "ms", ms);
	json_cstring(j, key, text);
}

static void add_target(struct json *j, const struct target_state *t)
{
	json_open(j, NULL, '{');
	add_labels(j, "discoveredLabels", t->discovered, t->n_discovered);
	add_labels(j, "labels", t->labels, t->n_labels);
	json_cstring(j, "scrapePool", t->job);
	json_cstring(j, "scrapeUrl", t->url);
	json_cstring(j, "globalUrl", t->url);
	json_cstring(j, "lastError", t->error);
	json_cstring(j, "health", target_health_name(t->health));
	add_time(j, "lastScrape", t->last_ms);
	json_number(j, "lastScrapeDuration", t->duration_ms / 1e3);
	add_duration(j, "scrapeInterval", t->interval_ms);
	add_duration(j, "scrapeTimeout", t->timeout_ms);
	json_close(j, '}');
}

static void add_known(struct json *j, const char *key, bool known, int64_t value)
{
	if (known)
		json_integer(j, key, value);
	else
		json_null(j, key);
}

/* As the page has it: times in milliseconds, names of our own. */
static void add_state(struct json *j, const struct target_state *t)
{
	json_open(j, NULL, '{');
	json_cstring(j, "job", t->job);
	json_cstring(j, "url", t->url);
	add_labels(j, "labels", t->labels, t->n_labels);
	json_cstring(j, "health", target_health_name(t->health));
	json_cstring(j, "error", t->error);
	add_known(j, "last_ms", t->last_ms, t->last_ms);
	add_known(j, "next_ms", t->next_ms, t->next_ms);
	add_known(j, "series", t->series != TARGET_NO_SERIES, t->series);
	json_integer(j, "duration_ms", t->duration_ms);
	json_integer(j, "interval_ms", t->interval_ms);
	json_integer(j, "timeout_ms", t->timeout_ms);
	json_integer(j, "samples", (int64_t)t->samples);
	json_integer(j, "bytes", (int64_t)t->bytes);
	json_integer(j, "scrapes", (int64_t)t->scrapes);
	json_integer(j, "failures", (int64_t)t->failures);
	json_integer(j, "restarts", (int64_t)t->restarts);
	json_close(j, '}');
}

static void add_list(struct json *j, const char *key, const struct target_list *list, void (*add)(struct json *, const struct target_state *))
{
	json_open(j, key, '[');
	for (size_t i = 0; i < list->n; i++)
		add(j, &list->items[i]);
	json_close(j, ']');
}

/* Twice: as the page has it, and as clients of Prometheus read it. */
static void answer_targets(void *context, struct http_exchange *x)
{
	struct recorder *r = context;
	struct target_list list;
	struct error reason;
	struct buf b;
	struct json j = { .out = &b };
	if (targets_list(&r->targets, &list, &reason)) {
		http_answer_text(x, 503, "%s", reason.text);
		return;
	}
	buf_init(&b, ANSWER_MAX);
	json_open(&j, NULL, '{');
	add_list(&j, "targets", &list, add_state);
	json_integer(&j, "dropped", (int64_t)list.n_dropped);
	json_cstring(&j, "status", "success");
	json_open(&j, "data", '{');
	add_list(&j, "activeTargets", &list, add_target);
	json_open(&j, "droppedTargets", '[');
	json_close(&j, ']');
	json_integer(&j, "droppedTargetCounts", (int64_t)list.n_dropped);
	json_close(&j, '}');
	json_close(&j, '}');
	buf_addc(&b, '\n');
	answer_buf(x, "application/json", &b);
	buf_finish(&b);
	target_list_finish(&list);
}

/* --- metrics --- */

static void metric(struct buf *b, const char *name, const char *type, const char *help, double value)
{
	buf_printf(b, "# HELP %s %s\n# TYPE %s %s\n%s %.16g\n", name, help, name, type, name, value);
}

static void add_failures(struct buf *b, const char *name, const char *help, const _Atomic uint64_t *counts)
{
	buf_printf(b, "# HELP %s %s\n# TYPE %s counter\n", name, help, name);
	for (int i = 0; i < FAILURES; i++)
		buf_printf(b, "%s{reason=\"%s\"} %" PRIu64 "\n", name, failure_name((enum failure)i), counted(&counts[i]));
}

static void add_quoted(struct buf *b, const char *text)
{
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			buf_addc(b, '\\');
		if (*text == '\n')
			buf_adds(b, "\\n");
		else
			buf_addc(b, *text);
	}
}

static void add_up(struct buf *b, struct recorder *r)
{
	struct target_list list;
	struct error ignored;
	size_t by_health[3] = { 0 };
	if (targets_list(&r->targets, &list, &ignored))
		return;
	for (size_t i = 0; i < list.n; i++)
		by_health[list.items[i].health]++;
	buf_adds(b, "# HELP heapgauge_targets Targets by health.\n# TYPE heapgauge_targets gauge\n");
	for (int i = 0; i < 3; i++)
		buf_printf(b, "heapgauge_targets{health=\"%s\"} %zu\n", target_health_name((enum target_health)i), by_health[i]);
	buf_adds(b, "# HELP heapgauge_target_up 1: its last scrape is in the store.\n# TYPE heapgauge_target_up gauge\n");
	for (size_t i = 0; i < list.n && i < PER_TARGET_MAX; i++) {
		const struct target_state *t = &list.items[i];
		buf_adds(b, "heapgauge_target_up{");
		for (size_t k = 0; k < t->n_labels; k++) {
			buf_printf(b, "%s%s=\"", k ? "," : "", t->labels[k].name);
			add_quoted(b, t->labels[k].value);
			buf_addc(b, '"');
		}
		buf_printf(b, "} %d\n", t->health == TARGET_UP);
	}
	target_list_finish(&list);
}

static void add_receiving(struct buf *b, struct recorder *r)
{
	struct counters *c = &r->counters;
	size_t n, bytes;
	queue_size(&r->queue, &n, &bytes);
	metric(b, "heapgauge_scrapes_total", "counter", "Scrapes begun.", (double)counted(&c->scrapes));
	add_failures(b, "heapgauge_scrape_failures_total", "Scrapes that brought no profile into the store.", c->failures);
	metric(b, "heapgauge_scrape_bytes_total", "counter", "Bytes of scraped bodies.", (double)counted(&c->scrape_bytes));
	metric(b, "heapgauge_missed_turns_total", "counter", "Turns left out, as the scrape before was under way or the recorder late.",
	       (double)counted(&c->missed_turns));
	metric(b, "heapgauge_scrape_late_seconds_max", "gauge", "The latest a scrape has begun, since the start.",
	       (double)counted(&c->late_ms_max) / 1e3);
	metric(b, "heapgauge_pushes_total", "counter", "Pushes acknowledged.", (double)counted(&c->pushes));
	add_failures(b, "heapgauge_push_failures_total", "Pushes refused.", c->push_failures);
	metric(b, "heapgauge_push_bytes_total", "counter", "Bytes of pushed bodies.", (double)counted(&c->push_bytes));
	metric(b, "heapgauge_queue_items", "gauge", "Received, not stored yet.", (double)n);
	metric(b, "heapgauge_queue_bytes", "gauge", "Of those.", (double)bytes);
	metric(b, "heapgauge_body_bytes", "gauge", "Bodies at hand, those that are coming in too.", (double)counted(&c->body_bytes));
}

static void add_storing(struct buf *b, struct recorder *r)
{
	struct counters *c = &r->counters;
	struct store_info info;
	struct error ignored;
	metric(b, "heapgauge_profiles_stored_total", "counter", "Profiles stored.", (double)counted(&c->stored));
	metric(b, "heapgauge_samples_stored_total", "counter", "Samples of those.", (double)counted(&c->samples));
	metric(b, "heapgauge_batches_total", "counter", "Transactions of profiles.", (double)counted(&c->batches));
	metric(b, "heapgauge_gauges_stored_total", "counter", "Numbers from targets' metrics stored.", (double)counted(&c->gauges));
	metric(b, "heapgauge_gauges_lost_total", "counter", "Numbers that the store could not take.", (double)counted(&c->gauges_lost));
	metric(b, "heapgauge_restarts_total", "counter", "New processes seen at a known target.", (double)counted(&c->restarts));
	metric(b, "heapgauge_store_failing", "gauge", "1: the last write to the store failed.", (double)counted(&c->store_failing));
	metric(b, "heapgauge_maintenance_steps_total", "counter", "Steps of looking after the store.", (double)counted(&c->maintain_steps));
	metric(b, "heapgauge_maintenance_failures_total", "counter", "Steps that failed.", (double)counted(&c->maintain_failures));
	if (!store_info(r->store, &info, &ignored)) {
		metric(b, "heapgauge_store_bytes", "gauge", "Size of the store.", (double)info.bytes);
		metric(b, "heapgauge_store_free_bytes", "gauge", "Of it, free for use.", (double)info.free_bytes);
		metric(b, "heapgauge_store_series", "gauge", "Series in the store.", (double)info.n_series);
		metric(b, "heapgauge_store_stacks", "gauge", "Distinct stacks in the store.", (double)info.n_stacks);
		metric(b, "heapgauge_store_open_profiles", "gauge", "Profiles not in chunks yet.", (double)info.n_open);
	}
}

static void add_process(struct buf *b, struct recorder *r)
{
	struct counters *c = &r->counters;
	struct http_counters h = { 0 };
	metric(b, "heapgauge_reloads_total", "counter", "Configurations read again.", (double)counted(&c->reloads));
	metric(b, "heapgauge_reload_failures_total", "counter", "Configurations refused.", (double)counted(&c->reload_failures));
	metric(b, "heapgauge_last_reload_timestamp_seconds", "gauge", "When the configuration was read.",
	       (double)atomic_load_explicit(&c->reload_ms, memory_order_relaxed) / 1e3);
	metric(b, "heapgauge_discovery_failures_total", "counter", "Files of targets that could not be read.",
	       (double)counted(&c->discovery_failures));
	http_server_counters(r->server, &h);
	metric(b, "heapgauge_http_requests_total", "counter", "Requests.", (double)h.requests);
	metric(b, "heapgauge_http_rejected_total", "counter", "Requests answered 4xx.", (double)h.statuses[4]);
	metric(b, "heapgauge_http_errors_total", "counter", "Requests answered 5xx.", (double)h.statuses[5]);
	metric(b, "heapgauge_http_sent_bytes_total", "counter", "Bytes sent.", (double)h.bytes_sent);
	process_metrics((uint64_t)getpid(), b);
	buf_adds(b, "heapgauge_build_info{version=\"" HG_VERSION "\"} 1\n");
}

static void answer_metrics(void *context, struct http_exchange *x)
{
	struct recorder *r = context;
	struct buf b;
	buf_init(&b, ANSWER_MAX);
	add_receiving(&b, r);
	add_storing(&b, r);
	add_process(&b, r);
	api_metrics(r->api, &b);
	symbols_metrics(r->symbols, &b);
	add_up(&b, r);
	answer_buf(x, "text/plain; version=0.0.4; charset=utf-8", &b);
	buf_finish(&b);
}

/* --- states --- */

static void answer_ready(void *context, struct http_exchange *x)
{
	struct recorder *r = context;
	bool ends = atomic_load_explicit(&r->stopping, memory_order_relaxed);
	if (ends)
		http_answer_text(x, 503, "The recorder is ending.");
	else if (counted(&r->counters.store_failing))
		http_answer_text(x, 503, "The store can't be written.");
	else
		http_answer_text(x, 200, "The recorder is ready.");
}

static void answer_healthy(void *context, struct http_exchange *x)
{
	(void)context;
	http_answer_text(x, 200, "The recorder is alive.");
}

static void answer_reload(void *context, struct http_exchange *x)
{
	struct recorder *r = context;
	/* At the end the scraping thread goes first, once stopping is set under this lock. */
	pthread_mutex_lock(&r->reload_lock);
	bool ends = atomic_load_explicit(&r->stopping, memory_order_relaxed), fits = !ends && r->n_reloads < RELOADS_WAITING;
	if (fits) {
		r->reloads[r->n_reloads++] = http_park(x);
		r->reload_wanted = true;
		scraping_wake(r->scraping);
	}
	pthread_mutex_unlock(&r->reload_lock);
	if (ends)
		http_answer_text(x, 503, "The recorder is ending.");
	else if (!fits)
		http_answer_text(x, 429, "The configuration is being read; try again.");
}

int routes_make(struct recorder *r, struct error *err)
{
	const struct http_route own[] = {
		{ .path = "/api/v1/push", .methods = HTTP_POST, .raw_query = true, .body_max = PUSH_BODY_MAX, .handle = push_handle,
		  .body = push_body, .patient = true, .over = push_over },
		{ .path = "/api/v1/targets", .methods = HTTP_GET, .raw_query = true, .handle = answer_targets },
		{ .path = "/metrics", .methods = HTTP_GET, .raw_query = true, .handle = answer_metrics },
		{ .path = "/-/ready", .methods = HTTP_GET, .handle = answer_ready },
		{ .path = "/-/healthy", .methods = HTTP_GET, .handle = answer_healthy },
		{ .path = "/-/reload", .methods = HTTP_POST, .handle = answer_reload },
	};
	size_t n_own = sizeof own / sizeof *own, n_api, n_page;
	const struct http_route *api = api_routes(r->api, &n_api), *page = recorder_page_routes(r->page, &n_page);
	r->routes = calloc(n_own + n_api + n_page + 1, sizeof *r->routes);
	if (!r->routes)
		return error_nomem(err, "the routes");
	memcpy(r->routes, own, sizeof own);
	for (size_t i = 0; i < n_own; i++)
		r->routes[i].context = r;
	if (n_api)
		memcpy(r->routes + n_own, api, n_api * sizeof *api);
	if (n_page)
		memcpy(r->routes + n_own + n_api, page, n_page * sizeof *page);
	return E_OK;
}
