/* Totals over time, from the heads of chunks alone. */
#include <math.h>
#include <stdlib.h>

#include "store/sqlite_plan.h"
#include "store/sqlite_reads.h"

struct points {
	struct store_point *items;
	size_t n, capacity, first;      /* first: of the series at hand */
	uint32_t series;
	int64_t step_ms;
	struct spending spending;
};

/* The point that time belongs to: a new one, or, in steps, perhaps the last one. */
static struct store_point *point_at(struct points *p, int64_t time_ms, struct error *err)
{
	int64_t begin = p->step_ms ? round_down(time_ms, p->step_ms) : time_ms;
	struct store_point *last = p->n > p->first ? &p->items[p->n - 1] : NULL;
	if (last && p->step_ms && last->time_ms == begin)
		return last;
	if (spend(&p->spending, sizeof *last, err))
		return NULL;
	struct store_point *slot = ARRAY_PUSH(p->items, p->n, p->capacity, SIZE_MAX / sizeof *p->items);
	if (!slot) {
		error_nomem(err, "totals");
		return NULL;
	}
	*slot = (struct store_point){ .series = p->series, .time_ms = begin };
	for (int m = 0; m < METRICS; m++)
		slot->mean[m] = slot->max[m] = slot->last[m] = NAN;
	return slot;
}

/* While a point grows its mean is a sum. What counts up has no mean: its last value stands for all three. */
static void add_slot(struct store_point *p, const struct chunk_slot *s, unsigned metrics)
{
	for (int m = 0; m < METRICS; m++) {
		if (!(metrics & 1u << m))
			continue;
		if (m < INUSE_OBJECTS) {
			p->mean[m] = p->max[m] = s->last[m];
		} else {
			p->mean[m] = isnan(p->mean[m]) ? s->sum[m] : p->mean[m] + s->sum[m];
			p->max[m] = fmax(p->max[m], s->max[m]);
		}
		p->last[m] = s->last[m];
	}
	p->n += s->n;
}

static int visit(void *context, const struct chunk_head *h, sqlite3_stmt *q, unsigned first, unsigned end, struct error *err)
{
	struct points *p = context;
	(void)q;
	for (unsigned i = first; i < end; i++) {
		struct store_point *to = point_at(p, h->slots[i].time_ms, err);
		if (!to)
			return err->code;
		add_slot(to, &h->slots[i], h->layout.metrics);
	}
	return 0;
}

static int add_series(struct points *p, struct connection *c, const struct store_range *r, struct error *err)
{
	struct plan plan;
	p->first = p->n;
	int failed = plan_range(c, PLAN_PROFILES, p->series, r->from_ms, r->to_ms, plan_coarsest(p->step_ms), &plan, err);
	for (size_t i = 0; i < plan.n && !failed; i++) {
		const struct piece *piece = &plan.pieces[i];
		failed = scan_chunks(&(struct scan){ c, p->series, piece->tier, piece->from_ms, piece->to_ms, visit, p, .heads = true }, err);
	}
	for (size_t i = p->first; i < p->n; i++)
		for (int m = INUSE_OBJECTS; m < METRICS; m++)
			p->items[i].mean[m] /= p->items[i].n;
	return failed;
}

int sqlite_totals(struct store *store, const struct store_range *r, int64_t step_ms, const struct store_budget *b, struct store_point **ret,
                  size_t *ret_n, struct error *err)
{
	struct sqlite_store *s = (struct sqlite_store *)store;
	struct error unasked;
	err = err ? err : &unasked;
	if (step_ms < 0)
		return error_set(err, E_USAGE, "a step of less than nothing");
	struct points p = { .step_ms = step_ms, .spending = { .budget = b } };
	struct connection *c = db_begin_read(s, err);
	if (!c)
		return err->code;
	int failed = 0;
	for (size_t i = 0; i < r->n_series && !failed; i++) {
		p.series = r->series[i];
		failed = add_series(&p, c, r, err);
	}
	db_end_read(s, c);
	if (failed) {
		free(p.items);
		return failed;
	}
	*ret = p.items;
	*ret_n = p.n;
	return 0;
}
