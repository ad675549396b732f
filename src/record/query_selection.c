#include "record/query_selection.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "record/query_selector.h"
#include "report/json.h"

#define INTERVAL_GUESS_MS 60000         /* of a series with one profile */
#define PATIENCE_MIN_MS 5000
#define PATIENCE_MAX_MS 3600000

struct selection_list {
	struct store_series_info *items;
	size_t n;
};

struct place_sum {
	double weight;
	int64_t interval_ms;
};

void param_selecting(struct params *p, const char *match, const char *series, struct selecting *ret)
{
	ret->n_match = param_list(p, match, &ret->match);
	ret->n_series = param_list(p, series, &ret->series);
}

/* --- finding --- */

static int find_list(struct query *q, const char *match, struct selection *s, struct error *err)
{
	struct selector *selector = NULL;
	struct selection_list *list = &s->lists[s->n_lists];
	int failed = 0;
	if (match) {
		selector = malloc(sizeof *selector);
		failed = selector ? selector_parse(match, selector, err) : error_nomem(err, "a selector");
	}
	if (!failed)
		failed = store_find_series(q->api->settings.store, selector ? selector->matchers : NULL, selector ? selector->n : 0, s->from_ms,
		                           s->to_ms, &list->items, &list->n, err);
	free(selector);
	if (!failed)
		s->n_lists++;
	return failed;
}

/* The numbers of parameter series, sorted. */
static int read_numbers(const struct selecting *what, uint32_t *ret, struct error *err)
{
	for (size_t i = 0; i < what->n_series; i++) {
		uint64_t value;
		const char *text = what->series[i];
		if (!text_parse_u64(text, strlen(text), 10, &value) || value > UINT32_MAX)
			return error_set(err, E_USAGE, "series: a number as /api/v1/series tells it, not '%.60s'", text);
		ret[i] = (uint32_t)value;
	}
	return 0;
}

static bool is_among(uint32_t series, const uint32_t *numbers, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (numbers[i] == series)
			return true;
	return n == 0;
}

static int64_t interval_of(const struct store_series_info *i)
{
	int64_t life = i->last_ms - i->first_ms;
	if (i->n_profiles < 2 || life <= 0)
		return INTERVAL_GUESS_MS;
	int64_t interval = life / (int64_t)(i->n_profiles - 1);
	return interval > 0 ? interval : 1;
}

static int by_series(const void *a, const void *b)
{
	const struct chosen *x = a, *y = b;
	return (x->info->series > y->info->series) - (x->info->series < y->info->series);
}

static int by_first(const void *a, const void *b)
{
	const struct chosen *x = a, *y = b;
	int order = (x->info->first_ms > y->info->first_ms) - (x->info->first_ms < y->info->first_ms);
	return order ? order : by_series(a, b);
}

/* All lists in one, each series once. */
static void join_lists(struct selection *s, const uint32_t *numbers, size_t n_numbers)
{
	size_t n = 0;
	for (size_t k = 0; k < s->n_lists; k++)
		for (size_t i = 0; i < s->lists[k].n; i++) {
			const struct store_series_info *info = &s->lists[k].items[i];
			if (!is_among(info->series, numbers, n_numbers))
				continue;
			s->items[n++] = (struct chosen){
				.info = info, .interval_ms = interval_of(info),
				.first_ms = info->first_ms > s->from_ms ? info->first_ms : s->from_ms,
				.last_ms = info->last_ms < s->to_ms ? info->last_ms : s->to_ms - 1,
			};
		}
	qsort(s->items, n, sizeof *s->items, by_series);
	for (size_t i = 0; i < n; i++)
		if (i == 0 || s->items[i].info->series != s->items[s->n - 1].info->series)
			s->items[s->n++] = s->items[i];
	qsort(s->items, s->n, sizeof *s->items, by_first);
	for (size_t i = 0; i < s->n; i++) {
		s->first_ms = i == 0 || s->items[i].first_ms < s->first_ms ? s->items[i].first_ms : s->first_ms;
		s->last_ms = i == 0 || s->items[i].last_ms > s->last_ms ? s->items[i].last_ms : s->last_ms;
	}
}

/* --- places --- */

struct place {
	int64_t end_ms;
	const struct store_series_info *last;
};

/* A place that is free before first_ms: that of a process of the same labels, else the one left last. */
static unsigned find_place(const struct place *places, unsigned n, const struct chosen *c)
{
	unsigned best = n;
	for (unsigned i = 0; i < n; i++) {
		if (places[i].end_ms >= c->info->first_ms)
			continue;
		if (selection_same_labels(places[i].last, c->info))
			return i;
		if (best == n || places[i].end_ms > places[best].end_ms)
			best = i;
	}
	return best;
}

static int give_places(struct selection *s, struct error *err)
{
	struct place *places = calloc(s->n + 1, sizeof *places);
	if (!places)
		return error_nomem(err, "the selection");
	for (size_t i = 0; i < s->n; i++) {
		unsigned place = find_place(places, s->n_places, &s->items[i]);
		s->n_places += place == s->n_places;
		s->items[i].place = place;
		places[place] = (struct place){ s->items[i].info->last_ms, s->items[i].info };
	}
	free(places);
	s->sums = calloc(s->n_places + 1, sizeof *s->sums);
	return s->sums ? 0 : error_nomem(err, "the selection");
}

int selection_make(struct query *q, const struct selecting *what, int64_t from_ms, int64_t to_ms, struct selection *ret, struct error *err)
{
	size_t n = 0;
	uint32_t *numbers = calloc(what->n_series + 1, sizeof *numbers);
	*ret = (struct selection){ .from_ms = from_ms, .to_ms = to_ms };
	ret->lists = calloc(what->n_match + 1, sizeof *ret->lists);
	int failed = numbers && ret->lists ? read_numbers(what, numbers, err) : error_nomem(err, "the selection");
	if (!failed && from_ms >= to_ms)
		failed = error_set(err, E_USAGE, "the range is empty: from has to be before to");
	for (size_t i = 0; i < what->n_match && !failed; i++)
		failed = find_list(q, what->match[i], ret, err);
	if (!failed && !what->n_match)
		failed = find_list(q, NULL, ret, err);
	for (size_t i = 0; i < ret->n_lists; i++)
		n += ret->lists[i].n;
	if (!failed) {
		ret->items = calloc(n + 1, sizeof *ret->items);
		failed = ret->items ? 0 : error_nomem(err, "the selection");
	}
	if (!failed) {
		join_lists(ret, numbers, what->n_series);
		failed = give_places(ret, err);
	}
	if (!failed)
		failed = query_check(q, err);
	free(numbers);
	return failed;
}

void selection_finish(struct selection *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->n_lists; i++)
		store_series_free(s->lists[i].items, s->lists[i].n);
	free(s->lists);
	free(s->items);
	free(s->sums);
	*s = (struct selection){ .n = 0 };
}

/* --- who is there --- */

int64_t chosen_patience_ms(const struct chosen *c)
{
	int64_t patience = 3 * c->interval_ms;
	if (c->info->n_profiles < 2)
		return 5 * INTERVAL_GUESS_MS;
	return patience < PATIENCE_MIN_MS ? PATIENCE_MIN_MS : patience > PATIENCE_MAX_MS ? PATIENCE_MAX_MS : patience;
}

/* Does b, which began later or at once, stand for the same process or the same target as a? */
static bool replaces(const struct store_series_info *b, const struct store_series_info *a)
{
	return (a->who.process && a->who.process == b->who.process && strcmp(a->who.build_id, b->who.build_id) == 0) ||
	       selection_same_labels(a, b);
}

void selection_keep_alive(struct selection *s, int64_t time_ms)
{
	size_t n = 0;
	for (size_t i = 0; i < s->n; i++) {
		const struct chosen *c = &s->items[i];
		bool alive = c->info->first_ms <= time_ms && time_ms - c->info->last_ms <= chosen_patience_ms(c);
		for (size_t k = i + 1; k < s->n && alive; k++)
			alive = s->items[k].info->first_ms > time_ms || !replaces(s->items[k].info, c->info);
		if (alive)
			s->items[n++] = *c;
	}
	s->n = n;
}

/* --- weights --- */

static int64_t overlap(int64_t a_from, int64_t a_to, int64_t b_from, int64_t b_to)
{
	int64_t from = a_from > b_from ? a_from : b_from, to = a_to < b_to ? a_to : b_to;
	return to > from ? to - from : 0;
}

/* Scrapes are not at the very ends of a range: what lacks at most two intervals of it counts whole. */
static double place_scale(const struct place_sum *p, int64_t whole_ms)
{
	if (p->weight <= 0 || (p->weight < 1 && (1 - p->weight) * (double)whole_ms > 2.0 * (double)p->interval_ms))
		return 1;
	return 1 / p->weight;
}

static void complete_places(const struct selection *s, int64_t whole_ms, double *weights)
{
	memset(s->sums, 0, s->n_places * sizeof *s->sums);
	for (size_t i = 0; i < s->n; i++) {
		struct place_sum *p = &s->sums[s->items[i].place];
		p->weight += weights[i];
		if (weights[i] > 0 && s->items[i].interval_ms > p->interval_ms)
			p->interval_ms = s->items[i].interval_ms;
	}
	for (size_t i = 0; i < s->n; i++)
		weights[i] *= place_scale(&s->sums[s->items[i].place], whole_ms);
}

void selection_weights(const struct selection *s, int64_t from_ms, int64_t to_ms, const bool *has, double *ret)
{
	int64_t end_ms = s->first_ms;
	for (size_t i = 0; i < s->n; i++) {
		int64_t end = s->items[i].info->last_ms + s->items[i].interval_ms;
		end_ms = end > end_ms ? end : end_ms;
	}
	from_ms = from_ms > s->first_ms ? from_ms : s->first_ms;
	to_ms = to_ms < end_ms ? to_ms : end_ms;
	int64_t whole_ms = to_ms > from_ms ? to_ms - from_ms : 1;
	for (size_t i = 0; i < s->n; i++) {
		const struct chosen *c = &s->items[i];
		int64_t part = overlap(c->info->first_ms, c->info->last_ms + c->interval_ms, from_ms, to_ms);
		/* A profile at the very end is there for a moment, too. */
		ret[i] = has && !has[i] ? 0 : (double)(part > 0 ? part : 1) / (double)whole_ms;
	}
	complete_places(s, whole_ms, ret);
}

/* --- labels --- */

bool selection_same_labels(const struct store_series_info *a, const struct store_series_info *b)
{
	if (a->who.n_labels != b->who.n_labels)
		return false;
	for (size_t i = 0; i < a->who.n_labels; i++)
		if (strcmp(a->who.labels[i].name, b->who.labels[i].name) || strcmp(a->who.labels[i].value, b->who.labels[i].value))
			return false;
	return true;
}

void selection_add_labels(struct json *j, const char *key, const struct store_series_info *info)
{
	json_open(j, key, '{');
	for (size_t i = 0; i < info->who.n_labels; i++)
		json_cstring(j, info->who.labels[i].name, info->who.labels[i].value);
	json_close(j, '}');
}

static void add_quoted(struct buf *out, const char *text)
{
	buf_addc(out, '"');
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			buf_addc(out, '\\');
		if (*text == '\n')
			buf_adds(out, "\\n");
		else
			buf_addc(out, *text);
	}
	buf_addc(out, '"');
}

void selection_add_selector(struct buf *out, const struct store_series_info *info)
{
	buf_addc(out, '{');
	for (size_t i = 0; i < info->who.n_labels; i++) {
		buf_printf(out, "%s%s=", i ? "," : "", info->who.labels[i].name);
		add_quoted(out, info->who.labels[i].value);
	}
	buf_addc(out, '}');
}
