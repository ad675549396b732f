/*
 * Samples are walked in the order of their stacks, so that a stack is filtered and named once however many snapshots
 * there are. Each place has a row of cells, one per snapshot: sums of independent sampled amounts.
 */
#include "profile/series.h"

#include <math.h>
#include <stdlib.h>

#include "profile/view_private.h"

/* Rows of estimates by place: what it held (n a place) and, for few snapshots, what came and went (n - 1 a place). */
struct series_cells {
	struct estimate *values, *came, *went;
	size_t values_capacity, came_capacity, went_capacity;
	bool flows;                 /* came and went are known */
	uint32_t *place_of_entry;   /* by entry: place + 1, or 0 */
	struct index by_frames;     /* by stack */
	struct estimate *totals;    /* values, came, went of all places together */
};

/* One stack (and thread) at all snapshots. */
struct row {
	struct estimate *values, *came, *went;
	double *objects, *bytes, *alloc_objects, *alloc_bytes;
	uint64_t block_size;
	double rate;
};

struct walk {
	struct series *s;
	struct columns columns;
	struct row row;
	double *sums;               /* what row's numbers point into */
	uint32_t *seen;             /* by entry: row + 1 that last counted it */
};

/* --- places ----------------------------------------------------------------- */

/* Room for the cells of one more place, zeroed. */
static bool push_cells(struct series *s)
{
	struct series_cells *c = s->cells;
	size_t n = s->n_snapshots, place = s->n_places - 1;
	struct {
		struct estimate **cells;
		size_t *capacity, width;
		bool wanted;
	} all[] = {
		{ &c->values, &c->values_capacity, n, true },
		{ &c->came, &c->came_capacity, n - 1, c->flows },
		{ &c->went, &c->went_capacity, n - 1, c->flows },
	};
	for (size_t i = 0; i < 3; i++) {
		if (!all[i].wanted)
			continue;
		size_t need = (place + 1) * all[i].width;
		if (!memory_grow((void **)all[i].cells, all[i].capacity, need, sizeof **all[i].cells,
		                 SIZE_MAX / sizeof **all[i].cells))
			return false;
		memset(*all[i].cells + place * all[i].width, 0, all[i].width * sizeof **all[i].cells);
	}
	return true;
}

static uint32_t push_place(struct series *s, const struct growth *g)
{
	struct growth *slot = ARRAY_PUSH(s->places, s->n_places, s->places_capacity, INDEX_NONE - 1);
	if (!slot)
		return INDEX_NONE;
	*slot = *g;
	return push_cells(s) ? (uint32_t)(s->n_places - 1) : INDEX_NONE;
}

static uint32_t place_of_entry(struct series *s, uint32_t entry)
{
	uint32_t *known = &s->cells->place_of_entry[entry];
	if (!*known) {
		uint32_t place = push_place(s, &(struct growth){ .first_frame = entry, .n_frames = 1 });
		if (place == INDEX_NONE)
			return place;
		*known = place + 1;
	}
	return *known - 1;
}

struct frames_key {
	const struct series *s;
	const uint32_t *entries;
	size_t n;
};

static bool same_frames(const void *context, uint32_t item)
{
	const struct frames_key *k = context;
	const struct growth *g = &k->s->places[item];
	return g->n_frames == k->n && (k->n == 0 ||
	       memcmp(k->s->frames + g->first_frame, k->entries, k->n * sizeof *k->entries) == 0);
}

static uint32_t place_of_stack(struct series *s, const uint32_t *entries, size_t n)
{
	struct index *x = &s->cells->by_frames;
	uint64_t hash = hash_bytes(entries, n * sizeof *entries);
	struct frames_key key = { s, entries, n };
	uint32_t place = index_find(x, hash, same_frames, &key);
	if (place != INDEX_NONE)
		return place;
	if (!index_reserve(x) || !memory_grow((void **)&s->frames, &s->frames_capacity, s->n_frames + n + 1,
	                                      sizeof *s->frames, SIZE_MAX / sizeof *s->frames))
		return INDEX_NONE;
	if (n)
		memcpy(s->frames + s->n_frames, entries, n * sizeof *entries);
	place = push_place(s, &(struct growth){ .first_frame = s->n_frames, .n_frames = (uint32_t)n });
	if (place == INDEX_NONE)
		return place;
	s->n_frames += n;
	index_insert(x, hash, place);
	return place;
}

/* --- rows ------------------------------------------------------------------- */

static void row_clear(struct walk *w)
{
	size_t n = w->s->n_snapshots;
	memset(w->row.values, 0, 3 * n * sizeof *w->row.values);
	memset(w->sums, 0, 4 * n * sizeof *w->sums);
	w->row.rate = 0;
	w->row.block_size = 0;
}

static void row_add(struct walk *w, size_t sample)
{
	const struct view *v = w->s->view;
	const struct profile *p = v->profile;
	const struct columns *c = &w->columns;
	const struct sample *s = &p->samples[sample];
	const struct source *source = &p->sources[s->source];
	uint64_t size = p->label_sets[s->labels].block_size;
	struct row *r = &w->row;
	double objects = view_value(p, sample, c->objects), bytes = view_value(p, sample, c->bytes);
	struct estimate e = { .value = view_value(p, sample, v->column) };
	if (c->heap)
		e = view_estimate(c, objects, bytes, size, source->rate);
	uint32_t k = source->snapshot;
	estimate_add(&r->values[k], e);
	if (r->rate == 0)
		r->block_size = size;
	else if (r->block_size != size)
		r->block_size = 0;
	r->rate = source->rate > 0 ? source->rate : 1;
	r->objects[k] += objects;
	r->bytes[k] += bytes;
	r->alloc_objects[k] += view_value(p, sample, c->other_objects);
	r->alloc_bytes[k] += view_value(p, sample, c->other_bytes);
}

/* What came and went between the snapshots, as in a diff of two moments of one process (view.c). */
static void row_flows(struct walk *w)
{
	struct row *r = &w->row;
	const struct columns *c = &w->columns;
	for (size_t k = 0; k + 1 < w->s->n_snapshots; k++) {
		double objects = r->objects[k + 1] - r->objects[k], bytes = r->bytes[k + 1] - r->bytes[k];
		double came = fmax(r->alloc_bytes[k + 1] - r->alloc_bytes[k], fmax(0, bytes));
		double came_objects = fmax(r->alloc_objects[k + 1] - r->alloc_objects[k], fmax(0, objects));
		r->came[k] = view_estimate(c, came_objects, came, r->block_size, r->rate);
		r->went[k] = (struct estimate){ .weight = 0 };
		if (!c->alloc)
			r->went[k] = view_estimate(c, came_objects - objects, came - bytes, r->block_size, r->rate);
	}
}

static void add_all(struct estimate *to, const struct estimate *from, size_t n)
{
	for (size_t i = 0; i < n; i++)
		estimate_add(&to[i], from[i]);
}

static bool row_into_place(struct walk *w, uint32_t place)
{
	struct series_cells *c = w->s->cells;
	size_t n = w->s->n_snapshots;
	if (place == INDEX_NONE)
		return false;
	add_all(c->values + place * n, w->row.values, n);
	if (c->flows) {
		add_all(c->came + place * (n - 1), w->row.came, n - 1);
		add_all(c->went + place * (n - 1), w->row.went, n - 1);
	}
	return true;
}

/* The row goes to its places; number: of the row, from 1. */
static bool row_end(struct walk *w, uint32_t stack, uint32_t labels, uint32_t number)
{
	struct series *s = w->s;
	struct view_row row = { .stack = stack, .labels = labels };
	const uint32_t *entries;
	size_t n = view_stack(s->view, &row, &entries);
	if (!entries)
		return false;
	if (s->cells->flows)
		row_flows(w);
	add_all(s->cells->totals, w->row.values, 3 * s->n_snapshots);
	if (s->options.by_stack)
		return row_into_place(w, place_of_stack(s, entries, n));
	for (size_t i = 0; i < n; i++) {
		if (i > 0 && s->options.sort == SORT_FLAT)
			break;
		if (w->seen[entries[i]] == number)
			continue;
		w->seen[entries[i]] = number;
		if (!row_into_place(w, place_of_entry(s, entries[i])))
			return false;
	}
	return true;
}

struct ordered {
	uint32_t stack, thread, sample;
};

static int compare_ordered(const void *a, const void *b)
{
	const struct ordered *x = a, *y = b;
	if (x->stack != y->stack)
		return x->stack < y->stack ? -1 : 1;
	if (x->thread != y->thread)
		return x->thread < y->thread ? -1 : 1;
	return (x->sample > y->sample) - (x->sample < y->sample);
}

/* By stack, then by thread. ends: one per stack and one. */
static void order_samples(const struct view *v, struct ordered *order, size_t *ends)
{
	const struct profile *p = v->profile;
	for (size_t i = 0; i < p->n_samples; i++)
		ends[p->samples[i].stack + 1]++;
	for (size_t i = 1; i <= p->n_stacks; i++)
		ends[i] += ends[i - 1];
	for (size_t i = 0; i < p->n_samples; i++)
		order[ends[p->samples[i].stack]++] = (struct ordered){ p->samples[i].stack, v->private->thread_key[p->samples[i].labels], (uint32_t)i };
	for (size_t i = 0, end; i < p->n_samples; i = end) {
		bool sorted = true;
		for (end = i + 1; end < p->n_samples && order[end].stack == order[i].stack; end++)
			sorted = sorted && order[end - 1].thread <= order[end].thread;
		if (!sorted)
			qsort(order + i, end - i, sizeof *order, compare_ordered);
	}
}

static bool walk_samples(struct walk *w, struct ordered *order, const bool *keep_labels)
{
	struct view *v = w->s->view;
	const struct profile *p = v->profile;
	uint32_t number = 0;
	for (size_t i = 0, end; i < p->n_samples; i = end) {
		uint32_t stack = order[i].stack, labels = 0;
		bool any = false;
		row_clear(w);
		for (end = i; end < p->n_samples && order[end].stack == stack && order[end].thread == order[i].thread; end++) {
			uint32_t own = p->samples[order[end].sample].labels;
			if (!keep_labels[own])
				continue;
			row_add(w, order[end].sample);
			labels = own;
			any = true;
		}
		if (any && view_filter_stack(v, stack) && !row_end(w, stack, labels, ++number))
			return false;
	}
	return true;
}

static int fill(struct series *s, const struct view_options *vo, struct error *err)
{
	const struct profile *p = s->view->profile;
	size_t n = s->n_snapshots;
	struct walk w = { .s = s, .columns = view_columns(p, s->view->column) };
	bool *keep = malloc(p->n_label_sets * sizeof *keep);
	struct ordered *order = malloc((p->n_samples + 1) * sizeof *order);
	size_t *ends = calloc(p->n_stacks + 2, sizeof *ends);
	w.seen = calloc(s->view->n_entries + 1, sizeof *w.seen);
	w.sums = malloc(4 * n * sizeof *w.sums);
	w.row.values = malloc(3 * n * sizeof *w.row.values);
	s->cells->flows = n <= TREND_FEW && s->view->has_error && (w.columns.alloc || w.columns.other_bytes >= 0);
	int code = E_OK;
	if (!keep || !order || !ends || !w.seen || !w.sums || !w.row.values) {
		code = error_nomem(err, "the series");
	} else {
		w.row.came = w.row.values + n;
		w.row.went = w.row.came + n;
		w.row.objects = w.sums;
		w.row.bytes = w.sums + n;
		w.row.alloc_objects = w.sums + 2 * n;
		w.row.alloc_bytes = w.sums + 3 * n;
		code = view_filter_labels(p, vo, keep, err);
		order_samples(s->view, order, ends);
		if (!code && !walk_samples(&w, order, keep))
			code = error_nomem(err, "the series");
	}
	free(keep);
	free(order);
	free(ends);
	free(w.seen);
	free(w.sums);
	free(w.row.values);
	return code;
}

/* --- growth ----------------------------------------------------------------- */

/* came and went: when they are known. */
static void find_growth(const struct series *s, struct growth *g, struct estimate *values, const struct estimate *came,
                        const struct estimate *went)
{
	double unseen = 0;
	for (size_t k = 0; k < s->n_snapshots; k++)
		unseen = fmax(unseen, values[k].weight);
	/* What was not seen may still have been there, a little. */
	for (size_t k = 0; k < s->n_snapshots; k++)
		values[k].weight = fmax(values[k].weight, values[k].value == 0 ? unseen : 0);
	struct trend_points p = { values, s->times, s->n_snapshots, came, went };
	g->values = values;
	trend_find(&p, &g->trend);
}

/* Growth that is a matter of chance when so many places are looked at. grew_first: its earlier half surely grew. */
static void demote(struct growth *g, bool few, bool grew_first)
{
	enum shape shape = g->trend.shape;
	if (g->significant || (shape == SHAPE_PLATEAU && grew_first))
		return;
	g->trend.steady = false;
	if (shape == SHAPE_STEADY || shape == SHAPE_SLOWING || shape == SHAPE_PLATEAU || shape == SHAPE_GROWN || shape == SHAPE_SHRINKING ||
	    (few && shape == SHAPE_NEW))
		g->trend.shape = SHAPE_NOISE;
}

static int find_all(struct series *s, struct error *err)
{
	struct series_cells *c = s->cells;
	size_t n = s->n_snapshots;
	double *p_values = malloc((s->n_places + 1) * sizeof *p_values), *earlier = malloc((s->n_places + 1) * sizeof *earlier);
	bool *significant = malloc((s->n_places + 1) * sizeof *significant), *first = malloc((s->n_places + 1) * sizeof *first);
	bool ok = p_values && significant && earlier && first;
	for (size_t i = 0; ok && i < s->n_places; i++) {
		find_growth(s, &s->places[i], c->values + i * n, c->flows ? c->came + i * (n - 1) : NULL,
		            c->flows ? c->went + i * (n - 1) : NULL);
		const struct trend *t = &s->places[i].trend;
		p_values[i] = t->slope.p_value;
		earlier[i] = t->has_halves ? t->earlier.p_value : 1;
	}
	ok = ok && estimate_significant(p_values, s->n_places, SERIES_FALSE_DISCOVERY, significant) &&
	     estimate_significant(earlier, s->n_places, SERIES_FALSE_DISCOVERY, first);
	for (size_t i = 0; ok && i < s->n_places; i++) {
		s->places[i].significant = significant[i];
		demote(&s->places[i], n <= TREND_FEW, first[i]);
	}
	find_growth(s, &s->total, c->totals, c->flows ? c->totals + n : NULL, c->flows ? c->totals + 2 * n : NULL);
	s->total.significant = s->total.trend.slope.p_value <= SERIES_FALSE_DISCOVERY;
	demote(&s->total, n <= TREND_FEW, true);
	free(p_values);
	free(earlier);
	free(significant);
	free(first);
	return ok ? E_OK : error_nomem(err, "the trends");
}

enum rank { RANK_STEADY, RANK_GROWN, RANK_NOISE, RANK_SHRUNK };

static enum rank rank_of(const struct series *s, const struct growth *g)
{
	bool few = s->n_snapshots <= TREND_FEW;     /* all that can be said there is how much */
	switch (g->trend.shape) {
	case SHAPE_NOISE:
	case SHAPE_FLAT:
		return RANK_NOISE;
	case SHAPE_SHRINKING:
	case SHAPE_GONE:
		return RANK_SHRUNK;
	default:
		return g->trend.steady || few ? RANK_STEADY : RANK_GROWN;
	}
}

static int compare_growth(const void *a, const void *b, void *context)
{
	const struct series *s = context;
	uint32_t i = *(const uint32_t *)a, k = *(const uint32_t *)b;
	const struct growth *g = &s->places[i], *h = &s->places[k];
	enum rank x = rank_of(s, g), y = rank_of(s, h);
	if (x != y)
		return x < y ? -1 : 1;
	size_t last = s->n_snapshots - 1;
	double p = g->values[last].value - g->values[0].value, q = h->values[last].value - h->values[0].value;
	if (x == RANK_STEADY) {
		p = g->trend.slope.interval.low;
		q = h->trend.slope.interval.low;
	} else if (x == RANK_SHRUNK) {
		p = -p;
		q = -q;
	}
	if (p != q)
		return p > q ? -1 : 1;
	return (i > k) - (i < k);
}

static int rank(struct series *s, struct error *err)
{
	s->order = malloc((s->n_places + 1) * sizeof *s->order);
	if (!s->order)
		return error_nomem(err, "the ranking");
	for (size_t i = 0; i < s->n_places; i++) {
		s->order[i] = (uint32_t)i;
		enum rank r = rank_of(s, &s->places[i]);
		s->n_steady += r == RANK_STEADY;
		s->n_grown += r == RANK_GROWN;
		s->n_shrunk += r == RANK_SHRUNK;
	}
	qsort_r(s->order, s->n_places, sizeof *s->order, compare_growth, s);
	return E_OK;
}

const uint32_t *series_frames(const struct series *s, const struct growth *g, size_t *ret_n)
{
	*ret_n = g->n_frames;
	return s->frames + g->first_frame;
}

bool growth_exceeds(const struct growth *g, double rate)
{
	return g->significant && g->trend.steady && g->trend.has_halves && g->trend.slope.interval.low > rate &&
	       g->trend.later.interval.low > rate;
}

/* --- life ------------------------------------------------------------------- */

static void find_times(struct series *s)
{
	const struct profile *p = s->view->profile;
	int64_t first = 0;
	s->timed = true;
	for (size_t i = 0; i < p->n_sources; i++) {
		const struct source *source = &p->sources[i];
		if (i == 0)
			first = source->time_nanos;
		s->times[source->snapshot] = (double)(source->time_nanos - first) * 1e-9;
		s->timed = s->timed && source->time_nanos > 0;
	}
	for (size_t k = 1; k < s->n_snapshots; k++)
		s->timed = s->timed && s->times[k] > s->times[k - 1];
	double step = s->options.interval_seconds;
	if (s->timed && !(step > 0))
		return;
	s->timed = step > 0;
	for (size_t k = 0; k < s->n_snapshots; k++)
		s->times[k] = (double)k * (s->timed ? step : 1);
}

int series_new(struct view *v, const struct view_options *vo, const struct series_options *o, struct series **ret,
               struct error *err)
{
	size_t n = 0;
	for (size_t i = 0; i < v->profile->n_sources; i++)
		n = v->profile->sources[i].snapshot + 1 > n ? v->profile->sources[i].snapshot + 1 : n;
	if (n < 2)
		return error_set(err, E_USAGE, "growth takes at least two snapshots of one process");
	struct series *s = calloc(1, sizeof *s);
	struct series_cells *c = s ? s->cells = calloc(1, sizeof *c) : NULL;
	if (c) {
		*s = (struct series){ .view = v, .options = *o, .n_snapshots = n, .cells = c };
		s->times = calloc(n, sizeof *s->times);
		c->totals = calloc(3 * n, sizeof *c->totals);
		c->place_of_entry = calloc(v->n_entries + 1, sizeof *c->place_of_entry);
	}
	int code = c && s->times && c->totals && c->place_of_entry ? E_OK : error_nomem(err, "the series");
	if (!code) {
		find_times(s);
		code = fill(s, vo, err);
	}
	if (!code)
		code = find_all(s, err);
	if (!code)
		code = rank(s, err);
	if (code) {
		series_free(s);
		return code;
	}
	*ret = s;
	return E_OK;
}

void series_free(struct series *s)
{
	if (!s)
		return;
	if (s->cells) {
		free(s->cells->values);
		free(s->cells->came);
		free(s->cells->went);
		free(s->cells->place_of_entry);
		free(s->cells->totals);
		index_finish(&s->cells->by_frames);
	}
	free(s->cells);
	free(s->times);
	free(s->places);
	free(s->order);
	free(s->frames);
	free(s);
}
