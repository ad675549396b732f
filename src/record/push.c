/*
 * POST /api/v1/push?label=value…: a profile that somebody brings. Its bytes are kept as they come, within what all bodies together may
 * take; then the request is parked until the ingest thread has the profile in the store.
 */
#include "record/recorder_private.h"

#include <string.h>

#include "record/relabel.h"

#define TOO_MUCH "Retry-After: 1\r\n"
#define NAME_MAX_BYTES 128
#define VALUE_MAX_BYTES 4096

struct push_user {
	struct item *item;                  /* ours until it is in the queue */
};

static void answer_too_much(struct recorder *r, struct http_exchange *x)
{
	static const char text[] = "More is coming in than can be stored; try again in a second.\n";
	count(&r->counters.push_failures[FAILED_SHED], 1);
	http_answer(x, 429, "text/plain; charset=utf-8", TOO_MUCH, text, sizeof text - 1);
}

void push_body(void *context, struct http_exchange *x, const char *bytes, size_t n)
{
	struct recorder *r = context;
	struct push_user *u = http_exchange_user(x);
	if (!u->item) {
		u->item = item_new(&r->counters.body_bytes);
		if (u->item)
			u->item->body.max = (size_t)PUSH_BODY_MAX;
	}
	if (u->item)
		buf_add(&u->item->body, bytes, n);
	if (!u->item || u->item->body.failed) {
		answer_too_much(r, x);
		return;
	}
	item_count(u->item);
	if (counted(&r->counters.body_bytes) > BODY_BYTES_MAX)
		answer_too_much(r, x);
}

/* --- labels --- */

static int digit(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10 : -1;
}

/* Percent-decoded into to; false: malformed, or too long. */
static bool decode(const char *at, size_t n, char *to, size_t room)
{
	size_t length = 0;
	for (size_t i = 0; i < n; i++) {
		char c = at[i] == '+' ? ' ' : at[i];
		if (c == '%') {
			if (n - i < 3)
				return false;
			int high = digit(at[i + 1]), low = digit(at[i + 2]);
			if (high < 0 || low < 0 || high + low == 0)
				return false;
			c = (char)(high * 16 + low);
			i += 2;
		}
		if (length + 1 >= room)
			return false;
		to[length++] = c;
	}
	to[length] = '\0';
	return true;
}

static int add_label(struct labels *l, const char *at, size_t n, struct error *err)
{
	char name[NAME_MAX_BYTES], value[VALUE_MAX_BYTES];
	const char *equals = memchr(at, '=', n);
	size_t name_n = equals ? (size_t)(equals - at) : n;
	if (!decode(at, name_n, name, sizeof name) || !decode(at + name_n + (equals != NULL), n - name_n - (equals != NULL), value, sizeof value))
		return error_set(err, E_USAGE, "the query is malformed, or a label too long");
	if (!label_name_valid(name) || strncmp(name, "__", 2) == 0)
		return error_set(err, E_USAGE, "'%.60s' is no name of a label: letters, digits and '_', no digit and no '__' first", name);
	if (*labels_get(l, name))
		return error_set(err, E_USAGE, "the label '%.60s' is there twice", name);
	if (l->n >= PUSH_LABELS_MAX)
		return error_set(err, E_USAGE, "more than %d labels", PUSH_LABELS_MAX);
	labels_set(l, name, value);
	return E_OK;
}

static int take_labels(struct recorder *r, struct item *i, struct http_text query, struct error *err)
{
	struct labels l = { .arena = &i->arena };
	int failed = E_OK;
	for (size_t at = 0; at < query.n && !failed;) {
		const char *end = memchr(query.at + at, '&', query.n - at);
		size_t n = end ? (size_t)(end - query.at) - at : query.n - at;
		if (n)
			failed = add_label(&l, query.at + at, n, err);
		at += n + 1;
	}
	if (!failed && l.n == 0)
		failed = error_set(err, E_USAGE, "say whose profile it is by labels, like ?job=build&instance=7");
	for (size_t k = 0; k < r->external_labels.n && !failed; k++)
		if (!*labels_get(&l, r->external_labels.items[k].name))
			labels_set(&l, r->external_labels.items[k].name, r->external_labels.items[k].value);
	if (!failed && i->arena.failed)
		failed = error_set(err, E_LIMIT, "the labels take too much memory");
	labels_sort(&l);
	i->labels = l.items;
	i->n_labels = l.n;
	return failed;
}

void push_handle(void *context, struct http_exchange *x)
{
	struct recorder *r = context;
	struct push_user *u = http_exchange_user(x);
	struct item *i = u->item;
	struct error reason;
	if (!i) {
		count(&r->counters.push_failures[FAILED_FORMAT], 1);
		http_answer_text(x, 400, "The body is empty: send a profile.");
		return;
	}
	if (take_labels(r, i, http_exchange_request(x)->query, &reason)) {
		count(&r->counters.push_failures[FAILED_SETTINGS], 1);
		http_answer_text(x, 400, "%s", reason.text);
		return;
	}
	count(&r->counters.push_bytes, i->body.len);
	i->time_ms = clock_wall_ms();
	i->began_ms = clock_ms();
	i->body_limit = PUSH_UNPACKED_MAX;
	i->ticket = http_park(x);
	u->item = NULL;
	if (queue_add(&r->queue, i))
		return;
	bool ends = atomic_load_explicit(&r->stopping, memory_order_relaxed);
	static const char text[] = "More is coming in than can be stored; try again in a second.\n", ending[] = "The recorder is ending.\n";
	count(&r->counters.push_failures[FAILED_SHED], 1);
	http_ticket_answer(r->server, i->ticket, ends ? 503 : 429, "text/plain; charset=utf-8", TOO_MUCH, ends ? ending : text,
	                   ends ? sizeof ending - 1 : sizeof text - 1);
	item_free(i);
}

void push_over(void *context, struct http_exchange *x, bool answered)
{
	struct push_user *u = http_exchange_user(x);
	(void)context;
	(void)answered;
	item_free(u->item);
	u->item = NULL;
}
