/*
 * The scraping thread. A round: reload if asked, look at discovery files, begin what is due, let curl work, hand on what has ended, sleep
 * until something happens. Nothing in it waits for a target: names are resolved and connections made inside curl.
 */
#include "record/recorder_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "record/discovery.h"
#include "record/schedule.h"
#include "record/transfer.h"

#define ROUND_MS 1000
#define METRICS_LIMIT ((size_t)4 << 20)
#define METRICS_REST 20
#define METRICS_MS 1000            /* that they may come later than the profile */
#define URL_BYTES 512

/* One scrape under way: two requests at once, or one. */
struct scrape {
	struct scrape *next;
	struct target *target;
	struct item *item;                  /* the bodies */
	struct transfer profile, metrics;
	unsigned open;                      /* requests that haven't ended */
	int64_t began_ms, began_wall_ms;
	int64_t give_up_ms;                 /* when its metrics aren't waited for any more; 0: the profile isn't there yet */
};

struct scraping {
	struct recorder *r;
	const struct curl_library *curl;
	CURLM *multi;
	pthread_t thread;
	struct scrape *first;
	size_t n, max;
	struct discovery *discovery;
};

/* --- one scrape --- */

static void unlink_scrape(struct scraping *s, struct scrape *x)
{
	struct scrape **at = &s->first;
	while (*at != x)
		at = &(*at)->next;
	*at = x->next;
	s->n--;
}

static void close_transfer(struct scraping *s, struct transfer *t)
{
	if (t->easy)
		s->curl->multi_remove_handle(s->multi, t->easy);
	transfer_finish(t);
}

/* Given up or handed on: its target may be scraped again. */
static void scrape_free(struct scraping *s, struct scrape *x)
{
	unlink_scrape(s, x);
	close_transfer(s, &x->profile);
	close_transfer(s, &x->metrics);
	x->target->busy = false;
	item_free(x->item);
	target_release(x->target);
	free(x);
}

static bool is_good(const struct transfer *t)
{
	return t->code == CURLE_OK && t->status == 200 && !t->too_much && !t->shed;
}

static void finish_scrape(struct scraping *s, struct scrape *x)
{
	struct error reason = { 0 };
	enum failure why;
	if (transfer_result(&x->profile, &why, &reason)) {
		recorder_failed(s->r, x->target, x->began_wall_ms, x->began_ms, why, reason.text);
		scrape_free(s, x);
		return;
	}
	if (x->metrics.curl && !is_good(&x->metrics)) {
		buf_reset(&x->item->metrics);
		if (x->metrics.code == CURLE_OK && x->metrics.status / 100 == 4)
			x->target->metrics_rest = METRICS_REST;
	}
	if (x->target->pid)
		process_metrics(x->target->pid, &x->item->metrics);
	struct item *item = x->item;
	x->item = NULL;
	count(&s->r->counters.scrape_bytes, item->body.len + item->metrics.len);
	scrape_free(s, x);
	item_count(item);
	recorder_received(s->r, item);
}

static int begin_transfer(struct scraping *s, struct scrape *x, struct transfer *t, const struct transfer_request *q, struct buf *to,
                          struct error *err)
{
	int failed = transfer_init(t, s->curl, q, to, &s->r->counters.body_bytes, x, err);
	if (failed)
		return failed;
	if (s->curl->multi_add_handle(s->multi, t->easy) != CURLM_OK)
		return error_nomem(err, "a connection");
	x->open++;
	return E_OK;
}

/* Where a process' endpoint is now: changes what is asked. */
static bool find_endpoint(struct scraping *s, const struct target *t, struct transfer_request *profile, struct transfer_request *metrics,
                          char *urls, char *socket)
{
	char found[URL_BYTES];
	struct recorder_processes *p = &s->r->settings.processes;
	if (!p->endpoint || !p->endpoint(t->pid, found, sizeof found))
		return false;
	bool is_unix = strncmp(found, "unix:", 5) == 0;
	const char *host = is_unix ? "http://localhost" : found;
	size_t n = strlen(host);
	while (n && host[n - 1] == '/')
		n--;
	if (is_unix) {
		snprintf(socket, URL_BYTES, "%s", found + 5);
		profile->socket = metrics->socket = socket;
	}
	snprintf(urls, 2 * URL_BYTES, "%.*s%s", (int)n, host, t->profile_url);
	snprintf(urls + 2 * URL_BYTES, 2 * URL_BYTES, "%.*s%s", (int)n, host, t->metrics_url ? t->metrics_url : "");
	profile->url = urls;
	metrics->url = t->metrics_url ? urls + 2 * URL_BYTES : NULL;
	return true;
}

static struct scrape *scrape_new(struct scraping *s, struct target *t, int64_t now_ms)
{
	struct scrape *x = calloc(1, sizeof *x);
	struct item *item = item_new(&s->r->counters.body_bytes);
	if (!x || !item) {
		free(x);
		item_free(item);
		return NULL;
	}
	uint64_t limit = t->job->body_limit ? t->job->body_limit : BUF_MAX_DEFAULT;
	item->body.max = limit < BUF_MAX_DEFAULT ? (size_t)limit : BUF_MAX_DEFAULT;
	item->metrics.max = METRICS_LIMIT;
	item->body_limit = limit;
	item->sample_limit = t->job->sample_limit;
	item->target = target_take(t);
	item->time_ms = clock_wall_ms();
	item->began_ms = now_ms;
	*x = (struct scrape){ .next = s->first, .target = target_take(t), .item = item, .began_ms = now_ms, .began_wall_ms = item->time_ms };
	s->first = x;
	s->n++;
	t->busy = true;
	return x;
}

static void begin_attach(struct scraping *s, struct target *t, int64_t now_ms)
{
	if (attaching_add(s->r->attaching, t))
		return;
	recorder_failed(s->r, t, clock_wall_ms(), now_ms, FAILED_SHED, "too many processes without an endpoint wait for being attached to");
}

static void begin(struct scraping *s, struct target *t, int64_t now_ms)
{
	char urls[4 * URL_BYTES], socket[URL_BYTES];
	struct error reason = { 0 };
	struct transfer_request profile = { .url = t->profile_url, .socket = t->socket, .access = &t->job->access,
	                                    .timeout_ms = t->timeout_ms, .accept = "application/octet-stream, */*;q=0.5" };
	struct transfer_request metrics = profile;
	metrics.url = t->metrics_url;
	metrics.accept = "text/plain;version=0.0.4, */*;q=0.5";
	count(&s->r->counters.scrapes, 1);
	if (t->pid && !find_endpoint(s, t, &profile, &metrics, urls, socket)) {
		begin_attach(s, t, now_ms);
		return;
	}
	struct scrape *x = scrape_new(s, t, now_ms);
	if (!x) {
		recorder_failed(s->r, t, clock_wall_ms(), now_ms, FAILED_SHED, "no memory for a scrape");
		return;
	}
	int failed = begin_transfer(s, x, &x->profile, &profile, &x->item->body, &reason);
	if (!failed && metrics.url && t->metrics_rest == 0 &&
	    begin_transfer(s, x, &x->metrics, &metrics, &x->item->metrics, &(struct error){ 0 }))
		transfer_finish(&x->metrics);
	t->metrics_rest -= t->metrics_rest > 0;
	if (failed) {
		recorder_failed(s->r, t, x->began_wall_ms, now_ms, FAILED_SETTINGS, reason.text);
		scrape_free(s, x);
	}
}

/* --- rounds --- */

/* What is due; milliseconds until the next is. */
static int64_t begin_due(struct scraping *s, int64_t now_ms)
{
	struct targets *all = &s->r->targets;
	int64_t next_ms = now_ms + ROUND_MS;
	for (size_t i = 0; i < all->n; i++) {
		struct target *t = all->items[i];
		uint64_t missed;
		if (t->refused)
			continue;
		if (t->due_ms <= now_ms && s->n < s->max) {
			uint64_t late = (uint64_t)(now_ms - t->due_ms);
			if (late > counted(&s->r->counters.late_ms_max))
				atomic_store_explicit(&s->r->counters.late_ms_max, late, memory_order_relaxed);
			/* The first turn may have come early: then the place in the interval is found now. */
			int64_t wait_ms = schedule_first(t->id, t->interval_ms, clock_wall_ms());
			int64_t due_ms = schedule_next(t->due_ms, t->interval_ms, now_ms, &missed);
			if (!t->begun)
				due_ms = now_ms + (wait_ms < t->interval_ms / 2 ? wait_ms + t->interval_ms : wait_ms);
			t->begun = true;
			count(&s->r->counters.missed_turns, missed + t->busy);
			targets_next(all, t, due_ms, clock_wall_ms() + due_ms - now_ms);
			if (!t->busy)
				begin(s, t, now_ms);
		}
		if (t->due_ms < next_ms)
			next_ms = t->due_ms;
	}
	return next_ms > now_ms ? next_ms - now_ms : 1;
}

static void hand_on(struct scraping *s)
{
	CURLMsg *message;
	int left;
	while ((message = s->curl->multi_info_read(s->multi, &left))) {
		char *private = NULL;
		CURLcode code = message->data.result;
		CURL *easy = message->easy_handle;
		if (message->msg != CURLMSG_DONE)
			continue;
		s->curl->easy_getinfo(easy, CURLINFO_PRIVATE, &private);
		struct transfer *t = (struct transfer *)(void *)private;
		struct scrape *x = t->owner;
		s->curl->multi_remove_handle(s->multi, easy);
		if (transfer_ended(t, code) && s->curl->multi_add_handle(s->multi, easy) == CURLM_OK)
			continue;
		t->done = true;
		/* When there is no profile nobody waits for the metrics. */
		if (--x->open == 0 || (t == &x->profile && !is_good(t)))
			finish_scrape(s, x);
		else if (t == &x->profile)
			x->give_up_ms = clock_ms() + METRICS_MS;
	}
	for (struct scrape *x = s->first, *next; x; x = next) {
		next = x->next;
		if (x->give_up_ms && clock_ms() >= x->give_up_ms)
			finish_scrape(s, x);
	}
}

/* Scrapes of targets that are no more. */
static void drop_scrapes(struct scraping *s, bool all)
{
	for (struct scrape *x = s->first, *next; x; x = next) {
		next = x->next;
		if (all || !x->target->kept)
			scrape_free(s, x);
	}
}

static int update_targets(struct scraping *s, struct config *c, struct discovery *d, struct error *err)
{
	struct buf lines;
	buf_init(&lines, 1 << 16);
	int failed = targets_update(&s->r->targets, c, discovery_found(d), discovery_n(d), clock_ms(), clock_wall_ms(), &lines, err);
	recorder_say_lines(s->r, &lines);
	buf_finish(&lines);
	if (!failed)
		drop_scrapes(s, false);
	return failed;
}

static int reload(struct scraping *s, struct error *err)
{
	struct recorder *r = s->r;
	struct config *c;
	struct discovery *d;
	if (!r->settings.config_path)
		return error_set(err, E_USAGE, "there is nothing to reload: this recorder was started without a configuration file");
	int failed = config_read(r->settings.config_path, &c, err);
	if (failed)
		return failed;
	failed = discovery_new(c, &d, err);
	if (!failed) {
		discovery_look(d, r, clock_ms());
		failed = update_targets(s, c, d, err);
		if (failed)
			discovery_free(d);
	}
	if (failed) {
		config_free(c);
		return failed;
	}
	discovery_free(s->discovery);
	s->discovery = d;
	config_free(r->config);
	r->config = c;
	return E_OK;
}

static void reload_when_asked(struct scraping *s)
{
	struct recorder *r = s->r;
	struct http_ticket tickets[RELOADS_WAITING];
	struct error reason = { 0 };
	char text[sizeof reason.text + 128];
	pthread_mutex_lock(&r->reload_lock);
	bool wanted = r->reload_wanted;
	size_t n = r->n_reloads;
	memcpy(tickets, r->reloads, n * sizeof *tickets);
	r->reload_wanted = false;
	r->n_reloads = 0;
	pthread_mutex_unlock(&r->reload_lock);
	if (!wanted)
		return;
	int failed = reload(s, &reason);
	if (failed) {
		count(&r->counters.reload_failures, 1);
		snprintf(text, sizeof text, "%s; the configuration from before holds\n", reason.text);
	} else {
		count(&r->counters.reloads, 1);
		atomic_store_explicit(&r->counters.reload_ms, clock_wall_ms(), memory_order_relaxed);
		snprintf(text, sizeof text, "the configuration was read again: %zu targets\n", r->targets.n);
	}
	recorder_say(r, "%.*s", (int)strlen(text) - 1, text);
	for (size_t i = 0; i < n; i++)
		http_ticket_answer(r->server, tickets[i], failed ? 500 : 200, "text/plain; charset=utf-8", NULL, text, strlen(text));
}

static void *scrape_forever(void *context)
{
	struct scraping *s = context;
	struct recorder *r = s->r;
	struct error reason;
	while (!atomic_load_explicit(&r->stopping, memory_order_acquire)) {
		int running;
		reload_when_asked(s);
		if (discovery_look(s->discovery, r, clock_ms()) && update_targets(s, r->config, s->discovery, &reason))
			recorder_say(r, "%s", reason.text);
		int64_t wait_ms = begin_due(s, clock_ms());
		s->curl->multi_perform(s->multi, &running);
		hand_on(s);
		s->curl->multi_poll(s->multi, NULL, 0, (int)wait_ms, NULL);
		s->curl->multi_perform(s->multi, &running);
		hand_on(s);
	}
	drop_scrapes(s, true);
	return NULL;
}

/* --- life --- */

static size_t most_at_once(void)
{
	struct rlimit l;
	size_t descriptors = getrlimit(RLIMIT_NOFILE, &l) == 0 && l.rlim_cur != RLIM_INFINITY && l.rlim_cur < 65536 ? (size_t)l.rlim_cur : 65536;
	/* Two connections each; the rest is for the server, files and the store. */
	return descriptors > 1024 ? (descriptors - 640) / 2 : descriptors / 8 + 1;
}

static void scraping_free(struct scraping *s)
{
	discovery_free(s->discovery);
	if (s->multi)
		s->curl->multi_cleanup(s->multi);
	free(s);
}

int scraping_start(struct recorder *r, struct error *err)
{
	struct scraping *s = calloc(1, sizeof *s);
	if (!s)
		return error_nomem(err, "the scraping thread");
	s->r = r;
	s->max = most_at_once();
	int failed = curl_library_load("recording", &s->curl, err);
	if (!failed)
		failed = discovery_new(r->config, &s->discovery, err);
	if (!failed) {
		s->multi = s->curl->multi_init();
		discovery_look(s->discovery, r, clock_ms());
		failed = s->multi ? update_targets(s, r->config, s->discovery, err) : error_nomem(err, "the scraping thread");
	}
	int code = failed ? 0 : pthread_create(&s->thread, NULL, scrape_forever, s);
	if (code)
		failed = error_set(err, E_IO, "no thread can be started: %s", strerror(code));
	if (failed)
		scraping_free(s);
	else
		r->scraping = s;
	return failed;
}

void scraping_wake(struct scraping *s)
{
	s->curl->multi_wakeup(s->multi);
}

void scraping_stop(struct scraping *s)
{
	if (!s)
		return;
	s->curl->multi_wakeup(s->multi);
	pthread_join(s->thread, NULL);
	scraping_free(s);
}
