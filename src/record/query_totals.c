/*
 * Numbers over time: profile totals, and the gauges beside them. All series share one grid of buckets. How several become one is
 * query_selection.h's.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "record/query_routes.h"
#include "record/query_selection.h"
#include "report/json.h"

#define BUCKETS_WANTED 300
#define BUCKETS_MAX 11000
#define LISTED 50
#define LISTED_MAX 1000
#define HOUR_MS 3600000

struct grid {
	int64_t first_ms, step_ms;          /* multiples of the step */
	size_t n;
};

/* One series' numbers: n each of mean, max, last; NAN: nothing is known. */
struct values {
	double *mean, *max, *last;
};

/* What one answer is made of. */
struct chart {
	struct query *q;
	struct selection s;
	struct grid grid;
	size_t listed;                      /* series, at most */
	struct values *of;                  /* per item of the selection */
	struct values total;
	double *memory;                     /* of all values */
	double *weights;
	bool *has;
	uint32_t *order;                    /* items, the largest first */
	bool counter;
	double *rates;                      /* of a counter, per item and bucket */
	uint32_t *item_of;                  /* series number -> item, by binary search */
};

/* --- the grid --- */

static int64_t nice_step(int64_t least_ms)
{
	static const int64_t steps[] = { 1000, 2000, 5000, 10000, 15000, 30000, 60000, 120000, 300000, 600000, 900000, 1800000, 3600000,
		                         7200000, 10800000, 21600000, 43200000, 86400000 };
	for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
		if (steps[i] >= least_ms)
			return steps[i];
	return (least_ms + 86399999) / 86400000 * 86400000;
}

static int by_number(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
	return (x > y) - (x < y);
}

/* The median of the processes' intervals; 0 when there is none. */
static int64_t median_interval(const struct selection *s)
{
	int64_t *all = s->n ? malloc(s->n * sizeof *all) : NULL, median;
	if (!all)
		return 0;
	for (size_t i = 0; i < s->n; i++)
		all[i] = s->items[i].interval_ms;
	qsort(all, s->n, sizeof *all, by_number);
	median = all[s->n / 2];
	free(all);
	return median;
}

static int make_grid(struct chart *c, int64_t step_ms, struct error *err)
{
	int64_t range = c->s.to_ms - c->s.from_ms, interval = median_interval(&c->s);
	if (!step_ms) {
		int64_t least = (range + BUCKETS_WANTED - 1) / BUCKETS_WANTED;
		step_ms = nice_step(least > interval ? least : interval);
	}
	int64_t first = c->s.from_ms / step_ms * step_ms;
	c->grid = (struct grid){ first, step_ms, (size_t)((c->s.to_ms - first + step_ms - 1) / step_ms) };
	if (c->grid.n > BUCKETS_MAX)
		return error_set(err, E_USAGE, "step: %zu buckets are more than %d: take a coarser step or a shorter range", c->grid.n, BUCKETS_MAX);
	return 0;
}

/* --- room --- */

static int make_room(struct chart *c, struct error *err)
{
	size_t n = c->grid.n, lines = c->s.n + 1, of_line = c->counter ? 4 : 3;
	int failed = query_check_memory(c->q, memory_product(memory_product(lines, n), of_line * sizeof(double)), err);
	if (failed)
		return failed;
	c->memory = calloc(lines * n * of_line + 1, sizeof *c->memory);
	c->of = calloc(lines, sizeof *c->of);
	c->weights = calloc(lines, sizeof *c->weights);
	c->has = calloc(lines, sizeof *c->has);
	c->order = calloc(lines, sizeof *c->order);
	c->item_of = calloc(lines, sizeof *c->item_of);
	if (!c->memory || !c->of || !c->weights || !c->has || !c->order || !c->item_of)
		return error_nomem(err, "numbers over time");
	for (size_t i = 0; i < lines; i++)
		c->of[i] = (struct values){ c->memory + i * 3 * n, c->memory + (i * 3 + 1) * n, c->memory + (i * 3 + 2) * n };
	c->total = c->of[c->s.n];
	c->rates = c->counter ? c->memory + lines * 3 * n : NULL;
	return 0;
}

static void clear(struct chart *c)
{
	size_t n = (c->s.n + 1) * c->grid.n * (c->counter ? 4 : 3);
	for (size_t i = 0; i < n; i++)
		c->memory[i] = NAN;
}

static void chart_finish(struct chart *c)
{
	selection_finish(&c->s);
	free(c->memory);
	free(c->of);
	free(c->weights);
	free(c->has);
	free(c->order);
	free(c->item_of);
}

static int by_series_number(const void *a, const void *b, void *context)
{
	const struct chart *c = context;
	uint32_t x = c->s.items[*(const uint32_t *)a].info->series, y = c->s.items[*(const uint32_t *)b].info->series;
	return (x > y) - (x < y);
}

/* The parameters that both routes have, and the room. Finish the chart in any case. */
static int chart_init(struct chart *c, struct params *p, struct error *err)
{
	struct selecting what;
	int64_t to = param_time(p, "to", c->q->now_ms), from = param_time(p, "from", to - HOUR_MS);
	int64_t step = param_duration(p, "step", 0);
	c->listed = param_number(p, "limit", LISTED, 0, LISTED_MAX);
	param_selecting(p, "match", "series", &what);
	int failed = p->failed;
	if (!failed)
		failed = selection_make(c->q, &what, from, to, &c->s, err);
	if (!failed)
		failed = make_grid(c, step, err);
	if (!failed)
		failed = make_room(c, err);
	if (failed)
		return failed;
	for (size_t i = 0; i < c->s.n; i++)
		c->item_of[i] = (uint32_t)i;
	qsort_r(c->item_of, c->s.n, sizeof *c->item_of, by_series_number, c);
	return 0;
}

/* All series of the selection, in the order of their numbers; the caller frees it. */
static uint32_t *series_numbers(const struct chart *c, struct error *err)
{
	uint32_t *numbers = calloc(c->s.n + 1, sizeof *numbers);
	if (!numbers)
		error_nomem(err, "numbers over time");
	for (size_t i = 0; numbers && i < c->s.n; i++)
		numbers[i] = c->s.items[c->item_of[i]].info->series;
	return numbers;
}

static struct values *values_of(const struct chart *c, uint32_t series)
{
	size_t low = 0, high = c->s.n;
	while (low < high) {
		size_t middle = (low + high) / 2;
		if (c->s.items[c->item_of[middle]].info->series < series)
			low = middle + 1;
		else
			high = middle;
	}
	bool found = low < c->s.n && c->s.items[c->item_of[low]].info->series == series;
	return found ? &c->of[c->item_of[low]] : NULL;
}

/* Later ones of a bucket win its last. */
static void put(const struct chart *c, uint32_t series, int64_t time_ms, double mean, double max, double last)
{
	struct values *v = values_of(c, series);
	int64_t k = (time_ms - c->grid.first_ms) / c->grid.step_ms;
	if (!v || time_ms < c->grid.first_ms || k >= (int64_t)c->grid.n || isnan(last))
		return;
	v->mean[k] = mean;
	v->max[k] = fmax(v->max[k], max);       /* of a NAN and a number: the number */
	v->last[k] = last;
}

/* --- several become one --- */

/* Is it there at the end of the bucket, or of all that is known? */
static bool there_at(const struct chart *c, size_t item, int64_t end_ms)
{
	const struct chosen *x = &c->s.items[item];
	int64_t end = end_ms - 1 < c->s.last_ms ? end_ms - 1 : c->s.last_ms;
	return x->info->last_ms + chosen_patience_ms(x) >= end;
}

struct top_of_place {
	double max, last;
	int64_t first_ms;                   /* of the series that last is of */
};

static void total_bucket(struct chart *c, size_t k, struct top_of_place *places)
{
	int64_t from = c->grid.first_ms + (int64_t)k * c->grid.step_ms, to = from + c->grid.step_ms;
	int64_t clipped_from = from > c->s.from_ms ? from : c->s.from_ms, clipped_to = to < c->s.to_ms ? to : c->s.to_ms;
	double mean = 0, max = 0, last = 0;
	bool any = false;
	for (size_t i = 0; i < c->s.n; i++) {
		c->has[i] = !isnan(c->of[i].last[k]);
		any = any || c->has[i];
	}
	if (!any)
		return;
	selection_weights(&c->s, clipped_from, clipped_to, c->has, c->weights);
	for (unsigned i = 0; i < c->s.n_places; i++)
		places[i] = (struct top_of_place){ 0, 0, INT64_MIN };
	for (size_t i = 0; i < c->s.n; i++) {
		struct top_of_place *place = &places[c->s.items[i].place];
		if (!c->has[i])
			continue;
		mean += c->weights[i] * c->of[i].mean[k];
		place->max = fmax(place->max, c->of[i].max[k]);
		if (c->s.items[i].info->first_ms >= place->first_ms) {
			place->first_ms = c->s.items[i].info->first_ms;
			place->last = there_at(c, i, clipped_to) ? c->of[i].last[k] : 0;
		}
	}
	for (unsigned i = 0; i < c->s.n_places; i++) {
		max += places[i].max;
		last += places[i].last;
	}
	c->total.mean[k] = mean;
	c->total.max[k] = max;
	c->total.last[k] = last;
}

/* Increase since the bucket before in which the series was seen; less than before: it began anew, and nothing is known. */
static void find_rates(struct chart *c)
{
	double *total = c->rates + c->s.n * c->grid.n;
	for (size_t i = 0; i < c->s.n; i++) {
		double *rates = c->rates + i * c->grid.n;
		size_t before = SIZE_MAX;
		for (size_t k = 0; k < c->grid.n; k++) {
			double last = c->of[i].last[k];
			if (isnan(last))
				continue;
			double more = before == SIZE_MAX ? NAN : last - c->of[i].last[before];
			if (more >= 0) {
				rates[k] = more / ((double)(k - before) * (double)c->grid.step_ms / 1000);
				total[k] = (isnan(total[k]) ? 0 : total[k]) + rates[k];
			}
			before = k;
		}
	}
}

static int total_all(struct chart *c, struct error *err)
{
	struct top_of_place *places = c->counter ? NULL : calloc(c->s.n_places + 1, sizeof *places);
	if (c->counter) {
		find_rates(c);
		return 0;
	}
	if (!places)
		return error_nomem(err, "numbers over time");
	int failed = 0;
	for (size_t k = 0; k < c->grid.n && !failed; k++) {
		total_bucket(c, k, places);
		if (k % 64 == 0)
			failed = query_check(c->q, err);
	}
	free(places);
	return failed;
}

/* --- the answer --- */

static double largest(const double *numbers, size_t n)
{
	double most = -1;
	for (size_t i = 0; i < n; i++)
		most = fmax(most, numbers[i]);
	return most;
}

static int by_size(const void *a, const void *b, void *context)
{
	const struct chart *c = context;
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	return (c->weights[x] < c->weights[y]) - (c->weights[x] > c->weights[y]);
}

/* c->order: items that have numbers, the largest first. Returns how many. */
static size_t put_in_order(struct chart *c)
{
	size_t n = 0;
	for (size_t i = 0; i < c->s.n; i++) {
		c->weights[i] = largest(c->counter ? c->of[i].last : c->of[i].max, c->grid.n);
		if (c->weights[i] >= 0)
			c->order[n++] = (uint32_t)i;
	}
	qsort_r(c->order, n, sizeof *c->order, by_size, c);
	return n;
}

static void add_numbers(struct json *j, const char *key, const double *numbers, size_t n, bool whole)
{
	json_open(j, key, '[');
	for (size_t i = 0; i < n; i++) {
		if (isnan(numbers[i]))
			json_null(j, NULL);
		else if (whole)
			json_amount_number(j, NULL, numbers[i]);
		else
			json_number(j, NULL, numbers[i]);
	}
	json_close(j, ']');
}

static void add_values(struct json *j, const struct chart *c, size_t item)
{
	const struct values *v = &c->of[item];
	size_t n = c->grid.n;
	if (c->counter) {
		add_numbers(j, "rate", c->rates + item * n, n, false);
		if (item < c->s.n)
			add_numbers(j, "last", v->last, n, true);
		return;
	}
	add_numbers(j, "mean", v->mean, n, true);
	add_numbers(j, "max", v->max, n, true);
	add_numbers(j, "last", v->last, n, true);
}

static void add_chart(struct json *j, struct chart *c)
{
	size_t n = put_in_order(c);
	json_open(j, "total", '{');
	add_values(j, c, c->s.n);
	json_close(j, '}');
	json_integer(j, "series_total", (int64_t)n);
	json_open(j, "series", '[');
	for (size_t i = 0; i < n && i < c->listed; i++) {
		const struct store_series_info *info = c->s.items[c->order[i]].info;
		json_open(j, NULL, '{');
		json_integer(j, "id", info->series);
		selection_add_labels(j, "labels", info);
		add_values(j, c, c->order[i]);
		json_close(j, '}');
	}
	json_close(j, ']');
}

static void add_grid(struct json *j, const struct chart *c)
{
	json_integer(j, "from_ms", c->s.from_ms);
	json_integer(j, "to_ms", c->s.to_ms);
	json_integer(j, "step_ms", c->grid.step_ms);
	json_open(j, "times_ms", '[');
	for (size_t k = 0; k < c->grid.n; k++)
		json_integer(j, NULL, c->grid.first_ms + (int64_t)k * c->grid.step_ms);
	json_close(j, ']');
}

/* --- /totals --- */

static int read_totals(struct chart *c, enum metric m, struct error *err)
{
	struct store_point *points = NULL;
	size_t n = 0;
	uint32_t *numbers = series_numbers(c, err);
	if (!numbers)
		return E_NOMEM;
	struct store_range range = { numbers, c->s.n, c->s.from_ms, c->s.to_ms };
	int failed = c->s.n ? store_totals(c->q->api->settings.store, &range, c->grid.step_ms, &c->q->budget, &points, &n, err) : 0;
	for (size_t i = 0; i < n && !failed; i++)
		put(c, points[i].series, points[i].time_ms, points[i].mean[m], points[i].max[m], points[i].last[m]);
	free(points);
	free(numbers);
	return failed;
}

int query_totals(struct query *q, struct error *err)
{
	struct params p = { .q = q, .err = err };
	struct chart c = { .q = q };
	struct json j = { .out = &q->out };
	enum metric m = param_metric(&p, INUSE_SPACE);
	c.counter = m == ALLOC_OBJECTS || m == ALLOC_SPACE;
	int failed = chart_init(&c, &p, err);
	if (!failed) {
		clear(&c);
		failed = read_totals(&c, m, err);
	}
	if (!failed)
		failed = total_all(&c, err);
	if (!failed) {
		json_open(&j, NULL, '{');
		json_cstring(&j, "metric", metric_name(m));
		json_cstring(&j, "unit", m == ALLOC_OBJECTS || m == INUSE_OBJECTS ? "count" : "bytes");
		json_cstring(&j, "kind", c.counter ? "counter" : "gauge");
		add_grid(&j, &c);
		add_chart(&j, &c);
		json_close(&j, '}');
		buf_addc(&q->out, '\n');
	}
	chart_finish(&c);
	return failed;
}

/* --- /gauges --- */

static bool is_wanted(const char *name, const char **names, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(names[i], name) == 0)
			return true;
	return n == 0;
}

static int add_gauge(struct json *j, struct chart *c, const struct store_gauges *g, uint32_t name, struct error *err)
{
	clear(c);
	for (size_t i = 0; i < g->n_points; i++) {
		const struct store_gauge_point *p = &g->points[i];
		if (p->name == name)
			put(c, p->series, p->time_ms, p->mean, p->max, p->last);
	}
	int failed = total_all(c, err);
	if (failed)
		return failed;
	json_open(j, NULL, '{');
	json_cstring(j, "name", g->names[name]);
	add_chart(j, c);
	json_close(j, '}');
	return 0;
}

int query_gauges(struct query *q, struct error *err)
{
	struct params p = { .q = q, .err = err };
	struct chart c = { .q = q };
	struct store_gauges g = { .n_names = 0 };
	struct json j = { .out = &q->out };
	const char **names;
	size_t n = param_list(&p, "name", &names);
	int failed = chart_init(&c, &p, err);
	uint32_t *numbers = failed ? NULL : series_numbers(&c, err);
	if (!failed && !numbers)
		failed = E_NOMEM;
	struct store_range range = { numbers, c.s.n, c.s.from_ms, c.s.to_ms };
	if (!failed && c.s.n)
		failed = store_read_gauges(q->api->settings.store, &range, c.grid.step_ms, &q->budget, &g, err);
	if (!failed) {
		json_open(&j, NULL, '{');
		add_grid(&j, &c);
		json_open(&j, "gauges", '[');
		for (uint32_t i = 0; i < g.n_names && !failed; i++)
			failed = is_wanted(g.names[i], names, n) ? add_gauge(&j, &c, &g, i, err) : 0;
		json_close(&j, ']');
		json_close(&j, '}');
		buf_addc(&q->out, '\n');
	}
	store_gauges_finish(&g);
	free(numbers);
	chart_finish(&c);
	return failed;
}
