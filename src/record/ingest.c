/*
 * The ingest thread. What was received becomes profiles, a batch of them one transaction; only when that is on the disk are pushes
 * acknowledged and targets called up. A batch that the store refuses for one profile's sake is tried again one by one, so that each gets
 * what it deserves; one that the store can't write is lost as a whole, counted, and the next one tries again.
 */
#include "record/recorder_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/format.h"
#include "record/metrics_text.h"

#define BATCH 32
#define BATCH_BYTES ((size_t)4 << 20)
#define PROFILE_BYTES ((size_t)512 << 20)
#define PUSHERS_MAX ((size_t)8192)

/* A label set that pushes come with. */
struct pusher {
	uint64_t labels;                    /* hash */
	struct feed feed;
};

#define LATE_MS 60000               /* a push that was taken so long ago likely has others behind it */

struct ingest {
	struct recorder *r;
	struct pusher pushers[PUSHERS_MAX]; /* slots by hash; a newer one takes an older one's: then the series is looked up again */
};

/* An item on its way. */
struct work {
	struct item *item;
	struct profile *profile;
	struct metrics_text metrics;
	uint32_t series;
	int64_t time_ms;
	uint64_t samples;
	bool restarted;
	int failed;
	enum failure why;
	struct error err;
};

static int fail(struct work *w, enum failure why, int failed)
{
	w->failed = failed;
	w->why = why;
	return failed;
}

/* --- one item --- */

/* What it was read as is for errors; in the store it is called after where it came from. */
static void name_sources(struct profile *p, const char *name)
{
	uint32_t text = profile_cstring(p, name);
	for (size_t k = 0; k < p->n_sources; k++)
		p->sources[k].name = text;
}

static int parse(struct work *w)
{
	struct item *i = w->item;
	struct read_limits limits = read_limits_default;
	struct stream in;
	limits.profile_bytes = PROFILE_BYTES;
	if (i->body_limit < limits.input_bytes)
		limits.input_bytes = (size_t)i->body_limit;
	stream_open_memory(&in, i->target ? "the answer" : "the body", i->body.data ? i->body.data : "", i->body.len);
	int failed = format_read(&in, &limits, NULL, &w->profile, &w->err);
	stream_close(&in);
	if (failed)
		return fail(w, failed == E_LIMIT ? FAILED_TOO_LARGE : FAILED_FORMAT, failed);
	name_sources(w->profile, i->target ? i->target->shown : "a push");
	w->samples = w->profile->n_samples;
	if (i->sample_limit && w->samples > i->sample_limit)
		return fail(w, FAILED_LIMIT, error_set(&w->err, E_LIMIT, "the profile has %llu samples, the sample_limit is %llu",
		                                       (unsigned long long)w->samples, (unsigned long long)i->sample_limit));
	if (i->metrics.len && metrics_text_read(i->metrics.data, i->metrics.len, &w->metrics, &(struct error){ 0 }))
		w->metrics.n = 0;
	return E_OK;
}

static struct feed *feed_of(struct ingest *g, struct item *i)
{
	uint64_t h = 1;
	if (i->target)
		return &i->target->feed;
	for (size_t k = 0; k < i->n_labels; k++)
		h = hash_mix(hash_mix(h, hash_bytes(i->labels[k].name, strlen(i->labels[k].name))),
		             hash_bytes(i->labels[k].value, strlen(i->labels[k].value)));
	struct pusher *p = &g->pushers[h % PUSHERS_MAX];
	if (p->labels != h)
		*p = (struct pusher){ .labels = h };
	return &p->feed;
}

/* A push may be of long ago, from a queue or a folder: it is of when it was taken. A clock that is ahead has no say. */
static int64_t moment_of(const struct item *i, const struct profile *p)
{
	int64_t own = p->n_sources ? p->sources[0].time_nanos / 1000000 : 0;
	return i->target || own <= 0 || own > i->time_ms ? i->time_ms : own;
}

/* For a minute the store is looked after as if it were then. */
static void note_late(struct recorder *r, int64_t taken_ms)
{
	int64_t now = clock_ms(), before = atomic_load_explicit(&r->late_ms, memory_order_relaxed);
	if (now > atomic_load_explicit(&r->late_until_ms, memory_order_relaxed) || taken_ms < before)
		atomic_store_explicit(&r->late_ms, taken_ms, memory_order_relaxed);
	atomic_store_explicit(&r->late_until_ms, now + LATE_MS, memory_order_relaxed);
}

static int find_series(struct ingest *g, struct work *w)
{
	struct item *i = w->item;
	struct feed_process now;
	const struct store_label *labels = i->target ? i->target->labels : i->labels;
	size_t n = i->target ? i->target->n_labels : i->n_labels;
	feed_process_of(w->profile, w->metrics.started_ms, &now);
	int64_t taken_ms = w->time_ms = moment_of(i, w->profile);
	int failed = feed_series(feed_of(g, i), g->r->store, labels, n, &now, i->target, &w->time_ms, &w->restarted, &w->err);
	if (failed)
		return fail(w, failed == E_LIMIT ? FAILED_PROCESS : failed == E_USAGE ? FAILED_FORMAT : FAILED_STORE, failed);
	/* Out of order, or the same again: then of when it came. */
	if (w->time_ms != taken_ms && w->time_ms < i->time_ms)
		w->time_ms = i->time_ms;
	if (w->time_ms < i->time_ms - LATE_MS)
		note_late(g->r, w->time_ms);
	w->series = feed_of(g, i)->series;
	feed_of(g, i)->last_ms = w->time_ms;
	return E_OK;
}

/* --- a batch --- */

static int append_all(struct ingest *g, struct work *works, size_t n, struct error *err)
{
	struct store_profile profiles[BATCH];
	size_t good = 0;
	for (size_t i = 0; i < n; i++)
		if (!works[i].failed)
			profiles[good++] = (struct store_profile){ works[i].series, works[i].time_ms, works[i].profile };
	return good ? store_append(g->r->store, profiles, good, err) : E_OK;
}

/* What its time belongs to was folded meanwhile and takes nothing more: then, as all that is out of order, it is of when it came. */
static int append_one(struct ingest *g, struct work *w)
{
	int failed = append_all(g, w, 1, &w->err);
	if (failed != E_USAGE || w->time_ms >= w->item->time_ms)
		return failed;
	struct feed *f = feed_of(g, w->item);
	w->time_ms = w->item->time_ms > f->last_ms ? w->item->time_ms : f->last_ms + 1;
	failed = append_all(g, w, 1, &w->err);
	if (!failed)
		f->last_ms = w->time_ms;
	return failed;
}

static void append_each(struct ingest *g, struct work *works, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct work *w = &works[i];
		int failed = w->failed ? E_OK : append_one(g, w);
		if (failed)
			fail(w, failed == E_USAGE || failed == E_FORMAT ? FAILED_FORMAT : FAILED_STORE, failed);
	}
}

/* The store's health, said when it changes. */
static void note_store(struct recorder *r, bool failing, const struct error *err)
{
	uint64_t before = atomic_exchange_explicit(&r->counters.store_failing, failing, memory_order_relaxed);
	if (failing && !before)
		recorder_say(r, "%s; what comes in is lost until the store can be written again", err->text);
	else if (!failing && before)
		recorder_say(r, "the store can be written again");
}

static void append(struct ingest *g, struct work *works, size_t n)
{
	struct error err = { 0 };
	size_t good = 0;
	for (size_t i = 0; i < n; i++)
		good += !works[i].failed;
	if (!good)
		return;
	int failed = append_all(g, works, n, &err);
	count(&g->r->counters.batches, 1);
	if (failed && failed != E_IO && failed != E_NOMEM) {
		append_each(g, works, n);
		failed = E_OK;
	}
	for (size_t i = 0; failed && i < n; i++) {
		if (works[i].failed)
			continue;
		works[i].err = err;
		fail(&works[i], FAILED_STORE, failed);
	}
	for (size_t i = 0; i < n && !failed; i++)
		if (works[i].failed && works[i].why == FAILED_STORE) {
			failed = works[i].failed;
			err = works[i].err;
		}
	note_store(g->r, failed, &err);
}

static void append_gauges(struct ingest *g, const struct work *w)
{
	struct error ignored;
	if (w->failed || !w->metrics.n)
		return;
	if (store_append_gauges(g->r->store, w->series, w->time_ms, w->metrics.gauges, w->metrics.n, &ignored))
		count(&g->r->counters.gauges_lost, w->metrics.n);
	else
		count(&g->r->counters.gauges, w->metrics.n);
}

/* --- answers --- */

static void answer_push(struct recorder *r, const struct work *w)
{
	char text[sizeof w->err.text + 2];
	bool ours = w->failed && w->why == FAILED_STORE;
	int status = !w->failed ? 204 : ours ? 503 : w->why == FAILED_TOO_LARGE || w->why == FAILED_LIMIT ? 413 : 400;
	int n = w->failed ? snprintf(text, sizeof text, "%s\n", w->err.text) : 0;
	http_ticket_answer(r->server, w->item->ticket, status, "text/plain; charset=utf-8", ours ? "Retry-After: 5\r\n" : NULL, text,
	                   (size_t)n);
	if (w->failed)
		count(&r->counters.push_failures[w->why], 1);
	else
		count(&r->counters.pushes, 1);
}

static void report(struct recorder *r, const struct work *w)
{
	const struct item *i = w->item;
	if (!w->failed) {
		count(&r->counters.stored, 1);
		count(&r->counters.samples, w->samples);
		count(&r->counters.restarts, w->restarted);
	}
	if (!i->target) {
		answer_push(r, w);
		return;
	}
	if (w->failed) {
		recorder_failed(r, i->target, i->time_ms, i->began_ms, w->why, w->err.text);
		return;
	}
	struct target_outcome o = { .began_ms = i->time_ms, .duration_ms = (uint32_t)(clock_ms() - i->began_ms), .series = w->series,
	                            .samples = w->samples, .bytes = i->body.len, .restarted = w->restarted };
	if (targets_report(&r->targets, i->target, &o))
		recorder_say_target(r, i->target, "up again");
}

static void run_batch(struct ingest *g, struct item *items)
{
	struct work *works = calloc(BATCH, sizeof *works);
	size_t n = 0;
	for (struct item *i = items, *next; i; i = next) {
		next = i->next;
		if (!works) {
			recorder_say(g->r, "no memory to read profiles; some are lost");
			item_free(i);
			continue;
		}
		struct work *w = &works[n++];
		w->item = i;
		if (!parse(w))
			find_series(g, w);
	}
	if (!works)
		return;
	append(g, works, n);
	for (size_t i = 0; i < n; i++) {
		append_gauges(g, &works[i]);
		report(g->r, &works[i]);
		profile_free(works[i].profile);
		item_free(works[i].item);
	}
	free(works);
}

int ingest_new(struct recorder *r, struct ingest **ret, struct error *err)
{
	struct ingest *g = calloc(1, sizeof *g);
	if (!g)
		return error_nomem(err, "the table of pushers");
	g->r = r;
	*ret = g;
	return E_OK;
}

void ingest_free(struct ingest *g)
{
	free(g);
}

void ingest_run(struct ingest *g)
{
	struct item *items;
	while ((items = queue_take(&g->r->queue, BATCH, BATCH_BYTES)))
		run_batch(g, items);
}
