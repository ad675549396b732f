/*
 * Sources stand for series: what store_merge gives has one for each, in the order of the range's. Over a range the values of what is in
 * use are then weighted, or the largest of a place taken, so that processes that followed each other are not added up; what was
 * allocated is the increase of each, and that may be added.
 */
#include "record/query_snapshot.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "profile/operations.h"

#define HOUR_MS 3600000
#define DAY_MS 86400000

/* --- parameters --- */

static const char *const modes[] = { "last", "average", "max", NULL };

void param_snapshot(struct params *p, struct snapshot_of *ret)
{
	int64_t now = p->q->now_ms;
	*ret = (struct snapshot_of){ .range = param_given(p, "from") || param_given(p, "to") || param_given(p, "mode"), .at_ms = now };
	param_selecting(p, "match", "series", &ret->what);
	if (ret->range && param_given(p, "at") && !p->failed)
		p->failed = error_set(p->err, E_USAGE, "at is one moment, from, to and mode are of a range: give one or the other");
	ret->at_ms = param_time(p, "at", now);
	ret->to_ms = param_time(p, "to", now);
	ret->from_ms = param_time(p, "from", ret->to_ms - HOUR_MS);
	ret->mode = (enum store_mode)param_choice(p, "mode", modes, STORE_AVERAGE);
}

bool param_base(struct params *p, const struct snapshot_of *now, struct snapshot_of *ret)
{
	struct selecting what;
	bool at = param_given(p, "base_at"), range = param_given(p, "base_from") || param_given(p, "base_to");
	*ret = *now;
	param_selecting(p, "base_match", "base_series", &what);
	if (what.n_match || what.n_series)
		ret->what = what;
	if (at && range && !p->failed)
		p->failed = error_set(p->err, E_USAGE, "base_at is one moment, base_from and base_to are a range: give one or the other");
	if (at)
		ret->range = false;
	if (range) {
		ret->range = true;
		ret->to_ms = param_time(p, "base_to", now->range ? now->to_ms : now->at_ms);
		ret->from_ms = param_time(p, "base_from", ret->to_ms - HOUR_MS);
	}
	ret->at_ms = param_time(p, "base_at", ret->at_ms);
	return at || range || what.n_match || what.n_series;
}

/* --- addresses --- */

void snapshot_add_url(const struct query *q, const struct snapshot_of *of, struct buf *out)
{
	const char *before = "?";
	buf_printf(out, "%s/api/v1/profile", q->api->settings.url);
	for (size_t i = 0; i < of->what.n_match; i++) {
		buf_printf(out, "%smatch=", before);
		text_add_url(out, of->what.match[i], strlen(of->what.match[i]));
		before = "&";
	}
	for (size_t i = 0; i < of->what.n_series; i++) {
		buf_printf(out, "%sseries=", before);
		text_add_url(out, of->what.series[i], strlen(of->what.series[i]));
		before = "&";
	}
	if (of->range)
		buf_printf(out, "%sfrom=%lld&to=%lld&mode=%s", before, (long long)of->from_ms, (long long)of->to_ms, store_mode_name(of->mode));
	else
		buf_printf(out, "%sat=%lld", before, (long long)of->at_ms);
}

void snapshot_add_series_url(const struct query *q, uint32_t series, int64_t at_ms, struct buf *out)
{
	buf_printf(out, "%s/api/v1/profile?series=%u&at=%lld", q->api->settings.url, series, (long long)at_ms);
}

/* --- profiles --- */

size_t snapshot_bytes(const struct profile *p)
{
	return p->strings.bytes_capacity + p->strings.starts_capacity * sizeof *p->strings.starts +
	       p->functions_capacity * sizeof *p->functions + p->lines_capacity * sizeof *p->lines +
	       p->locations_capacity * sizeof *p->locations + p->frames_capacity * sizeof *p->frames +
	       p->stacks_capacity * sizeof *p->stacks + p->labels_capacity * sizeof *p->labels +
	       p->label_sets_capacity * sizeof *p->label_sets + p->samples_capacity * sizeof *p->samples +
	       p->values_capacity * sizeof *p->values +
	       2 * sizeof(struct index_slot) * (p->function_index.n + p->location_index.n + p->stack_index.n + p->strings.n);
}

void snapshot_forget_names(struct profile *p)
{
	for (size_t i = 0; i < p->n_locations; i++)
		p->locations[i].n_lines = 0;
}

/* Sources are called as their process' labels say. */
static void name_source(struct profile *p, size_t source, const struct store_series_info *info)
{
	struct buf name;
	buf_init(&name, 1 << 16);
	selection_add_selector(&name, info);
	if (name.data)
		p->sources[source].name = profile_string(p, name.data, name.len);
	if (!p->sources[source].process)
		p->sources[source].process = info->who.process;
	buf_finish(&name);
}

static void set_times(struct profile *p, int64_t time_ms, int64_t duration_ms)
{
	for (size_t i = 0; i < p->n_sources; i++) {
		p->sources[i].time_nanos = time_ms * 1000000;
		p->sources[i].duration_nanos = duration_ms * 1000000;
	}
}

/* --- at a moment --- */

/* Sources are in the order of the moments that were found. */
static void name_sources(struct profile *p, const struct selection *s, const bool *found, size_t n)
{
	for (size_t i = 0, source = 0; i < n && source < p->n_sources; i++)
		if (found[i])
			name_source(p, source++, s->items[i % s->n].info);
}

int snapshot_read_moments(struct query *q, const struct selection *s, const int64_t *times_ms, size_t n_times, struct profile **ret,
                          struct error *err)
{
	size_t n = s->n * n_times;
	struct store_moment *moments = calloc(n + 1, sizeof *moments);
	bool *found = calloc(n + 1, sizeof *found);
	int failed = moments && found ? query_check(q, err) : error_nomem(err, "profiles");
	for (size_t i = 0; i < n && !failed; i++)
		moments[i] = (struct store_moment){ s->items[i % s->n].info->series, times_ms[i / s->n], (uint32_t)(i / s->n) };
	if (!failed)
		failed = store_read_moments(q->api->settings.store, moments, n, &q->budget, found, ret, err);
	if (failed == E_USAGE)
		failed = query_missing(q, err, "no process that matches has a profile of that time");
	if (!failed)
		name_sources(*ret, s, found, n);
	free(moments);
	free(found);
	return failed;
}

/* Says when there would be something. */
static int nothing_at(struct query *q, const struct snapshot_of *of, struct error *err)
{
	struct selection s;
	int failed = selection_make(q, &of->what, 0, of->at_ms + 1, &s, err);
	int64_t last_ms = s.last_ms;
	size_t n = s.n;
	selection_finish(&s);
	if (failed)
		return failed;
	if (!n)
		return query_missing(q, err, "no process matches that has a profile of that time or an earlier one");
	return query_missing(q, err, "no process that matches was there at that time: the last profile before it is of at=%lld", (long long)last_ms);
}

static int read_at(struct query *q, const struct snapshot_of *of, struct profile **ret, struct error *err)
{
	struct selection s;
	int failed = selection_make(q, &of->what, of->at_ms > DAY_MS ? of->at_ms - DAY_MS : 0, of->at_ms + 1, &s, err);
	if (!failed)
		selection_keep_alive(&s, of->at_ms);
	if (!failed && s.n)
		failed = snapshot_read_moments(q, &s, &of->at_ms, 1, ret, err);
	else if (!failed)
		failed = nothing_at(q, of, err);
	selection_finish(&s);
	return failed;
}

/* --- over a range --- */

static bool is_gauge(const struct profile *p, size_t column)
{
	return (int)column == p->metric[INUSE_OBJECTS] || (int)column == p->metric[INUSE_SPACE];
}

/* Only samples that have a value stay. */
static void drop_empty(struct profile *p)
{
	size_t n = 0;
	for (size_t i = 0; i < p->n_samples; i++) {
		bool any = false;
		for (size_t k = 0; k < p->n_types; k++)
			any = any || p->values[i * p->n_types + k];
		if (!any)
			continue;
		p->samples[n] = p->samples[i];
		memmove(p->values + n * p->n_types, p->values + i * p->n_types, p->n_types * sizeof *p->values);
		n++;
	}
	p->n_samples = n;
	p->n_values = n * p->n_types;
}

static void weight_sources(struct profile *p, const double *weights)
{
	for (size_t i = 0; i < p->n_samples; i++) {
		double weight = weights[p->samples[i].source];
		for (size_t k = 0; k < p->n_types && weight < 1; k++)
			if (is_gauge(p, k)) {
				int64_t *v = &p->values[i * p->n_types + k];
				*v = llrint((double)*v * weight);
			}
	}
	drop_empty(p);
}

struct sorting {
	const struct profile *p;
	const struct chosen *of_source;
};

static int by_place(const void *a, const void *b, void *context)
{
	const struct sorting *s = context;
	const struct sample *x = &s->p->samples[*(const uint32_t *)a], *y = &s->p->samples[*(const uint32_t *)b];
	unsigned p = s->of_source[x->source].place, q = s->of_source[y->source].place;
	if (p != q)
		return p < q ? -1 : 1;
	if (x->stack != y->stack)
		return x->stack < y->stack ? -1 : 1;
	return (x->labels > y->labels) - (x->labels < y->labels);
}

/* Of one place, stack and label set the largest value in use stays, in the first of them; the others have none. */
static int largest_of_places(struct profile *p, const struct chosen *of_source, struct error *err)
{
	struct sorting s = { p, of_source };
	uint32_t *order = malloc((p->n_samples + 1) * sizeof *order);
	if (!order)
		return error_nomem(err, "the largest values");
	for (size_t i = 0; i < p->n_samples; i++)
		order[i] = (uint32_t)i;
	qsort_r(order, p->n_samples, sizeof *order, by_place, &s);
	for (size_t i = 1, first = 0; i < p->n_samples; i++) {
		if (by_place(&order[first], &order[i], &s) != 0) {
			first = i;
			continue;
		}
		for (size_t k = 0; k < p->n_types; k++) {
			int64_t *most = &p->values[order[first] * p->n_types + k], *other = &p->values[order[i] * p->n_types + k];
			if (!is_gauge(p, k))
				continue;
			*most = *other > *most ? *other : *most;
			*other = 0;
		}
	}
	free(order);
	drop_empty(p);
	return 0;
}

/* 1 for who was there at the end, else 0. */
static void weights_of_last(struct selection *s, double *weights)
{
	for (size_t i = 0; i < s->n; i++) {
		const struct chosen *c = &s->items[i];
		weights[i] = s->last_ms - c->last_ms <= chosen_patience_ms(c);
		for (size_t k = i + 1; k < s->n && weights[i] > 0; k++)
			if (s->items[k].place == c->place || selection_same_labels(s->items[k].info, c->info))
				weights[i] = 0;
	}
}

static int put_together(const struct snapshot_of *of, struct selection *s, struct profile *p, struct error *err)
{
	double *weights;
	int failed = 0;
	if (p->n_sources != s->n)
		return error_set(err, E_FORMAT, "the store gave %zu sources for %zu series", p->n_sources, s->n);
	for (size_t i = 0; i < s->n; i++)
		name_source(p, i, s->items[i].info);
	set_times(p, s->last_ms, s->last_ms - s->first_ms);
	if (of->mode == STORE_MAX)
		return largest_of_places(p, s->items, err);
	weights = calloc(s->n + 1, sizeof *weights);
	if (!weights)
		failed = error_nomem(err, "the selection");
	if (!failed && of->mode == STORE_LAST)
		weights_of_last(s, weights);
	else if (!failed)
		selection_weights(s, of->from_ms, of->to_ms, NULL, weights);
	if (!failed)
		weight_sources(p, weights);
	free(weights);
	return failed;
}

static int merge_series(struct query *q, const struct snapshot_of *of, const struct chosen *items, size_t n, struct profile **ret,
                        struct error *err)
{
	uint32_t *numbers = calloc(n + 1, sizeof *numbers);
	if (!numbers)
		return error_nomem(err, "the selection");
	for (size_t i = 0; i < n; i++)
		numbers[i] = items[i].info->series;
	struct store_range range = { numbers, n, of->from_ms, of->to_ms };
	int failed = store_merge(q->api->settings.store, &range, of->mode, &q->budget, ret, err);
	free(numbers);
	return failed;
}

/* Series that pause during the range have no source: they go. */
static int drop_pausing(struct query *q, const struct snapshot_of *of, struct selection *s, struct error *err)
{
	size_t n = 0;
	int failed = 0;
	for (size_t i = 0; i < s->n && !failed; i++) {
		struct profile *p = NULL;
		failed = query_check(q, err);
		if (!failed)
			failed = merge_series(q, of, &s->items[i], 1, &p, err);
		profile_free(p);
		if (!failed)
			s->items[n++] = s->items[i];
		failed = failed == E_USAGE ? 0 : failed;
	}
	s->n = n;
	if (!failed && n == 0)
		failed = query_missing(q, err, "no process that matches has a profile in that range");
	return failed;
}

static int merge(struct query *q, const struct snapshot_of *of, struct selection *s, struct profile **ret, struct error *err)
{
	struct profile *p = NULL;
	int failed = merge_series(q, of, s->items, s->n, &p, err);
	if (failed == E_USAGE)
		return query_missing(q, err, "no process that matches has a profile in that range");
	if (!failed && p->n_sources < s->n) {
		failed = drop_pausing(q, of, s, err);
		profile_free(p);
		p = NULL;
		if (!failed)
			failed = merge_series(q, of, s->items, s->n, &p, err);
	}
	if (!failed)
		failed = put_together(of, s, p, err);
	if (failed)
		profile_free(p);
	else
		*ret = p;
	return failed;
}

/* One process under several names counts once. */
static void drop_doubles(struct selection *s, struct buf *notes)
{
	size_t n = 0, doubles = 0;
	for (size_t i = 0; i < s->n; i++) {
		uint64_t process = s->items[i].info->who.process;
		bool again = false;
		for (size_t k = 0; k < n && process && !again; k++)
			again = s->items[k].info->who.process == process && s->items[k].last_ms >= s->items[i].first_ms &&
			        strcmp(s->items[k].info->who.build_id, s->items[i].info->who.build_id) == 0;
		if (!again)
			s->items[n++] = s->items[i];
		doubles += again;
	}
	s->n = n;
	if (doubles)
		buf_printf(notes, "%zu of the matching series %s of a process that is recorded under another name too, and left out\n", doubles,
		           doubles == 1 ? "is" : "are");
}

static int read_range(struct query *q, const struct snapshot_of *of, struct profile **ret, struct buf *notes, struct error *err)
{
	struct selection s;
	int failed = selection_make(q, &of->what, of->from_ms, of->to_ms, &s, err);
	if (!failed && !s.n)
		failed = query_missing(q, err, "no process that matches has a profile in that range");
	if (!failed) {
		drop_doubles(&s, notes);
		failed = merge(q, of, &s, ret, err);
	}
	if (!failed && of->mode == STORE_MAX)
		buf_adds(notes, "the largest value of each stack, which need not have been at one moment: the total is more than there ever was\n");
	selection_finish(&s);
	return failed;
}

int snapshot_read(struct query *q, const struct snapshot_of *of, struct profile **ret, struct buf *notes, struct error *err)
{
	return of->range ? read_range(q, of, ret, notes, err) : read_at(q, of, ret, err);
}
