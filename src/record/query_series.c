/* What there is: labels, processes, restarts, moments. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/strings.h"
#include "record/query_routes.h"
#include "record/query_selection.h"
#include "report/json.h"

#define ALL_MS ((int64_t)1 << 53)
#define TEXTS_BYTES ((size_t)64 << 20)
#define MOMENTS 1000
#define MOMENTS_MAX 10000

static int done(struct query *q)
{
	buf_addc(&q->out, '\n');
	return 0;
}

/* The selection that parameters say, of all times when none is given. */
static int read_selection(struct params *p, struct selection *ret)
{
	struct selecting what;
	int64_t to = param_time(p, "to", ALL_MS), from = param_time(p, "from", 0);
	param_selecting(p, "match", "series", &what);
	*ret = (struct selection){ .n = 0 };
	return p->failed ? p->failed : selection_make(p->q, &what, from, to, ret, p->err);
}

static void add_text_or_null(struct json *j, const char *key, const char *text)
{
	if (text && *text)
		json_cstring(j, key, text);
	else
		json_null(j, key);
}

static void add_time_or_null(struct json *j, const char *key, int64_t ms)
{
	if (ms > 0)
		json_integer(j, key, ms);
	else
		json_null(j, key);
}

/* --- labels --- */

struct counted {
	uint32_t string, n;
};

static int by_text(const void *a, const void *b, void *context)
{
	const struct strings *s = context;
	const struct counted *x = a, *y = b;
	return strcmp(strings_get(s, x->string), strings_get(s, y->string));
}

/* Names of labels (name NULL), or the values of one, each with how many series have it; sorted. The caller frees both. */
static int count_texts(const struct selection *s, const char *name, struct strings *ret_texts, struct counted **ret, size_t *ret_n,
                       struct error *err)
{
	size_t n_labels = 0;
	for (size_t i = 0; i < s->n; i++)
		n_labels += s->items[i].info->who.n_labels;
	*ret_n = 0;
	*ret = calloc(n_labels + 2, sizeof **ret);
	if (!*ret || !strings_init(ret_texts)) {
		free(*ret);
		return error_nomem(err, "labels");
	}
	for (size_t i = 0; i < s->n; i++)
		for (size_t k = 0; k < s->items[i].info->who.n_labels; k++) {
			const struct store_label *l = &s->items[i].info->who.labels[k];
			const char *text = name ? l->value : l->name;
			if (name && strcmp(l->name, name) != 0)
				continue;
			uint32_t string = strings_add(ret_texts, text, strlen(text), TEXTS_BYTES);
			if (string == INDEX_NONE || !string)
				continue;
			(*ret)[string - 1].string = string;
			(*ret)[string - 1].n++;
			*ret_n = string > *ret_n ? string : *ret_n;
		}
	qsort_r(*ret, *ret_n, sizeof **ret, by_text, ret_texts);
	return 0;
}

int query_labels(struct query *q, struct error *err)
{
	struct params p = { .q = q, .err = err };
	struct json j = { .out = &q->out };
	struct selection s;
	struct strings texts;
	struct counted *names;
	size_t n;
	int failed = read_selection(&p, &s);
	if (!failed)
		failed = count_texts(&s, NULL, &texts, &names, &n, err);
	selection_finish(&s);
	if (failed)
		return failed;
	json_open(&j, NULL, '{');
	json_open(&j, "labels", '[');
	for (size_t i = 0; i < n; i++)
		json_cstring(&j, NULL, strings_get(&texts, names[i].string));
	json_close(&j, ']');
	json_close(&j, '}');
	strings_finish(&texts);
	free(names);
	return done(q);
}

int query_label_values(struct query *q, struct error *err)
{
	struct params p = { .q = q, .err = err };
	struct json j = { .out = &q->out };
	struct selection s = { .n = 0 };
	struct strings texts;
	struct counted *values;
	size_t n;
	const char *name = param_text(&p, "name");
	if (!p.failed && !name)
		p.failed = error_set(err, E_USAGE, "name: of which label?");
	int failed = read_selection(&p, &s);
	if (!failed)
		failed = count_texts(&s, name, &texts, &values, &n, err);
	selection_finish(&s);
	if (failed)
		return failed;
	json_open(&j, NULL, '{');
	json_cstring(&j, "name", name);
	json_open(&j, "values", '[');
	for (size_t i = 0; i < n; i++) {
		json_open(&j, NULL, '{');
		json_cstring(&j, "value", strings_get(&texts, values[i].string));
		json_integer(&j, "series", values[i].n);
		json_close(&j, '}');
	}
	json_close(&j, ']');
	json_close(&j, '}');
	strings_finish(&texts);
	free(values);
	return done(q);
}

/* --- series --- */

static void add_metrics(struct json *j, unsigned metrics)
{
	json_open(j, "metrics", '[');
	for (int m = 0; m < METRICS; m++)
		if (metrics & 1u << m)
			json_cstring(j, NULL, metric_name((enum metric)m));
	json_close(j, ']');
}

static void add_series(struct json *j, const struct store_series_info *info)
{
	char hex[24];
	snprintf(hex, sizeof hex, "0x%llx", (unsigned long long)info->who.process);
	json_open(j, NULL, '{');
	json_integer(j, "id", info->series);
	selection_add_labels(j, "labels", info);
	json_integer(j, "first_ms", info->first_ms);
	json_integer(j, "last_ms", info->last_ms);
	add_time_or_null(j, "started_ms", info->who.started_ms);
	add_text_or_null(j, "build_id", info->who.build_id);
	add_text_or_null(j, "process", info->who.process ? hex : NULL);
	json_integer(j, "profiles", (int64_t)info->n_profiles);
	add_metrics(j, info->metrics);
	json_close(j, '}');
}

int query_series(struct query *q, struct error *err)
{
	struct params p = { .q = q, .err = err };
	struct json j = { .out = &q->out };
	struct selection s;
	(void)err;
	int failed = read_selection(&p, &s);
	if (!failed) {
		json_open(&j, NULL, '{');
		json_open(&j, "series", '[');
		for (size_t i = 0; i < s.n; i++)
			add_series(&j, s.items[i].info);
		json_close(&j, ']');
		json_close(&j, '}');
		done(q);
	}
	selection_finish(&s);
	return failed;
}

/* --- restarts --- */

struct event {
	const struct store_series_info *now, *before;
};

static int compare_labels(const struct store_series_info *a, const struct store_series_info *b)
{
	for (size_t i = 0; i < a->who.n_labels && i < b->who.n_labels; i++) {
		int order = strcmp(a->who.labels[i].name, b->who.labels[i].name);
		if (!order)
			order = strcmp(a->who.labels[i].value, b->who.labels[i].value);
		if (order)
			return order;
	}
	return (a->who.n_labels > b->who.n_labels) - (a->who.n_labels < b->who.n_labels);
}

static int by_labels_and_time(const void *a, const void *b)
{
	const struct store_series_info *x = ((const struct event *)a)->now, *y = ((const struct event *)b)->now;
	int order = compare_labels(x, y);
	return order ? order : (x->first_ms > y->first_ms) - (x->first_ms < y->first_ms);
}

static int by_time(const void *a, const void *b)
{
	const struct store_series_info *x = ((const struct event *)a)->now, *y = ((const struct event *)b)->now;
	return (x->first_ms > y->first_ms) - (x->first_ms < y->first_ms);
}

static const char *kind_of(const struct event *e)
{
	if (!e->before)
		return "start";
	const char *a = e->before->who.build_id, *b = e->now->who.build_id;
	return *a && *b && strcmp(a, b) != 0 ? "deploy" : "restart";
}

static void add_event(struct json *j, const struct event *e)
{
	json_open(j, NULL, '{');
	json_integer(j, "time_ms", e->now->first_ms);
	json_cstring(j, "kind", kind_of(e));
	json_integer(j, "series", e->now->series);
	if (e->before)
		json_integer(j, "before", e->before->series);
	else
		json_null(j, "before");
	add_text_or_null(j, "build_id", e->now->who.build_id);
	add_text_or_null(j, "before_build_id", e->before ? e->before->who.build_id : NULL);
	selection_add_labels(j, "labels", e->now);
	json_close(j, '}');
}

int query_builds(struct query *q, struct error *err)
{
	struct params p = { .q = q, .err = err };
	struct json j = { .out = &q->out };
	struct selection s = { .n = 0 };
	struct selecting what;
	int64_t to = param_time(&p, "to", ALL_MS), from = param_time(&p, "from", 0);
	param_selecting(&p, "match", "series", &what);
	/* Those before the range, too: they tell what a start in it follows. */
	int failed = p.failed ? p.failed : selection_make(q, &what, 0, to, &s, err);
	struct event *events = failed ? NULL : calloc(s.n + 1, sizeof *events);
	if (!failed && !events)
		failed = error_nomem(err, "events");
	if (!failed) {
		for (size_t i = 0; i < s.n; i++)
			events[i].now = s.items[i].info;
		qsort(events, s.n, sizeof *events, by_labels_and_time);
		for (size_t i = 1; i < s.n; i++)
			if (selection_same_labels(events[i - 1].now, events[i].now))
				events[i].before = events[i - 1].now;
		qsort(events, s.n, sizeof *events, by_time);
		json_open(&j, NULL, '{');
		json_open(&j, "events", '[');
		for (size_t i = 0; i < s.n; i++)
			if (events[i].now->first_ms >= from && events[i].now->first_ms < to)
				add_event(&j, &events[i]);
		json_close(&j, ']');
		json_close(&j, '}');
		done(q);
	}
	free(events);
	selection_finish(&s);
	return failed;
}

/* --- moments --- */

int query_moments(struct query *q, struct error *err)
{
	struct params p = { .q = q, .err = err };
	struct json j = { .out = &q->out };
	int64_t *times = NULL;
	size_t n = 0;
	int64_t to = param_time(&p, "to", ALL_MS), from = param_time(&p, "from", 0);
	uint64_t series = param_number(&p, "series", UINT64_MAX, 0, UINT32_MAX);
	uint64_t most = param_number(&p, "limit", MOMENTS, 1, MOMENTS_MAX);
	if (!p.failed && series == UINT64_MAX)
		p.failed = error_set(err, E_USAGE, "series: of which one?");
	int failed = p.failed;
	if (!failed)
		failed = store_moments(q->api->settings.store, (uint32_t)series, from, to, most, &times, &n, err);
	if (failed)
		return failed;
	json_open(&j, NULL, '{');
	json_integer(&j, "series", (int64_t)series);
	json_open(&j, "times_ms", '[');
	for (size_t i = 0; i < n; i++)
		json_integer(&j, NULL, times[i]);
	json_close(&j, ']');
	json_close(&j, '}');
	free(times);
	return done(q);
}

/* --- all of it --- */

static void add_tiers(struct json *j, const struct store_info *info)
{
	json_open(j, "tiers", '[');
	for (int t = 0; t < TIERS; t++) {
		json_open(j, NULL, '{');
		json_cstring(j, "name", store_tier_name((enum store_tier)t));
		json_integer(j, "profiles", (int64_t)info->tiers[t].profiles);
		json_integer(j, "samples", (int64_t)info->tiers[t].samples);
		json_integer(j, "bytes", (int64_t)info->tiers[t].bytes);
		add_time_or_null(j, "first_ms", info->tiers[t].first_ms);
		add_time_or_null(j, "last_ms", info->tiers[t].last_ms);
		json_close(j, '}');
	}
	json_close(j, ']');
}

static void add_store(struct json *j, const struct store_info *info)
{
	json_open(j, "store", '{');
	json_integer(j, "bytes", (int64_t)info->bytes);
	json_integer(j, "free_bytes", (int64_t)info->free_bytes);
	json_integer(j, "profiles", (int64_t)info->n_profiles);
	json_integer(j, "stacks", (int64_t)info->n_stacks);
	json_integer(j, "frames", (int64_t)info->n_frames);
	json_integer(j, "builds", (int64_t)info->n_builds);
	json_integer(j, "open", (int64_t)info->n_open);
	json_integer(j, "pinned", (int64_t)info->pinned);
	add_tiers(j, info);
	json_close(j, '}');
}

int query_info(struct query *q, struct error *err)
{
	struct json j = { .out = &q->out };
	struct selection s;
	struct store_info info;
	unsigned metrics = 0;
	int failed = selection_make(q, &(struct selecting){ .n_match = 0 }, 0, ALL_MS, &s, err);
	if (!failed)
		failed = store_info(q->api->settings.store, &info, err);
	if (!failed) {
		for (size_t i = 0; i < s.n; i++)
			metrics |= s.items[i].info->metrics;
		json_open(&j, NULL, '{');
		json_cstring(&j, "title", q->api->settings.title);
		json_cstring(&j, "version", q->api->settings.version);
		json_integer(&j, "now_ms", q->now_ms);
		add_time_or_null(&j, "first_ms", s.n ? s.first_ms : 0);
		add_time_or_null(&j, "last_ms", s.n ? s.last_ms : 0);
		json_integer(&j, "series", (int64_t)s.n);
		add_metrics(&j, metrics);
		json_bool(&j, "uploads", q->api->settings.symbols != NULL);
		add_store(&j, &info);
		json_close(&j, '}');
		done(q);
	}
	selection_finish(&s);
	return failed;
}
