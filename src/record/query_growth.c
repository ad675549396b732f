#include "record/query_growth.h"

#include <stdlib.h>
#include <string.h>


#define HOUR_MS 3600000
#define MOMENTS 24
#define MOMENTS_MAX 200
#define PART_THERE 0.9                  /* of the range, to be taken with others */

void param_growth(struct params *p, struct growth_of *ret)
{
	int64_t to = param_time(p, "to", p->q->now_ms), from = param_time(p, "from", to - HOUR_MS);
	*ret = (struct growth_of){ .from_ms = from, .to_ms = to, .moments = param_number(p, "moments", MOMENTS, 2, MOMENTS_MAX) };
	param_selecting(p, "match", "series", &ret->what);
}

/* --- who is taken --- */

static int64_t life(const struct chosen *c)
{
	return c->last_ms - c->first_ms;
}

static bool is_double(const struct selection *s, size_t n, const struct chosen *c)
{
	uint64_t process = c->info->who.process;
	for (size_t i = 0; i < n && process; i++)
		if (s->items[i].info->who.process == process && strcmp(s->items[i].info->who.build_id, c->info->who.build_id) == 0)
			return true;
	return false;
}

static void note_left_out(size_t all, size_t taken, struct buf *notes)
{
	if (taken == all)
		return;
	buf_printf(notes, "%zu of %zu processes %s left out: %s not there nearly all of the time, and coming and going is no growth\n", all - taken,
	           all, all - taken == 1 ? "is" : "are", all - taken == 1 ? "it was" : "they were");
}

/* Those that were there all the time, else the one that was there longest: s->first_ms and last_ms become what they have in common. */
static void choose(struct selection *s, struct buf *notes)
{
	size_t all = s->n, n = 0, longest = 0;
	double wanted = PART_THERE * (double)(s->last_ms - s->first_ms);
	for (size_t i = 0; i < s->n; i++)
		if (life(&s->items[i]) > life(&s->items[longest]))
			longest = i;
	struct chosen only = s->items[longest];
	for (size_t i = 0; i < s->n; i++) {
		struct chosen c = s->items[i];
		if ((double)life(&c) >= wanted && !is_double(s, n, &c))
			s->items[n++] = c;
	}
	if (n == 0)
		s->items[n++] = only;
	s->n = n;
	for (size_t i = 0; i < n; i++) {
		const struct chosen *c = &s->items[i];
		s->first_ms = i == 0 || c->first_ms > s->first_ms ? c->first_ms : s->first_ms;
		s->last_ms = i == 0 || c->last_ms < s->last_ms ? c->last_ms : s->last_ms;
	}
	note_left_out(all, n, notes);
}

/* --- the moments --- */

/* All sources of a moment are of that time. */
static int read_moments(struct query *q, const struct selection *s, struct growth_read *g, struct error *err)
{
	int failed = snapshot_read_moments(q, s, g->times_ms, g->n_times, &g->profile, err);
	if (failed)
		return failed;
	for (size_t i = 0; i < g->profile->n_sources; i++) {
		struct source *source = &g->profile->sources[i];
		source->time_nanos = g->times_ms[source->snapshot] * 1000000;
	}
	return query_check(q, err);
}

int growth_read(struct query *q, const struct growth_of *of, struct growth_read *ret, struct error *err)
{
	struct selection s;
	*ret = (struct growth_read){ .series = UINT32_MAX };
	buf_init(&ret->notes, 1 << 16);
	int failed = selection_make(q, &of->what, of->from_ms, of->to_ms, &s, err);
	if (!failed && !s.n)
		failed = query_missing(q, err, "no process that matches has a profile in that range");
	if (!failed) {
		choose(&s, &ret->notes);
		ret->series = s.n == 1 ? s.items[0].info->series : UINT32_MAX;
		failed = store_moments(q->api->settings.store, s.items[0].info->series, s.first_ms, s.last_ms + 1, of->moments, &ret->times_ms,
		                       &ret->n_times, err);
	}
	if (!failed && ret->n_times < 2)
		failed = query_missing(q, err, "growth takes at least two profiles of one process, and there %s in that range",
		                       ret->n_times ? "is one" : "is none");
	if (!failed)
		failed = read_moments(q, &s, ret, err);
	selection_finish(&s);
	return failed;
}

void growth_finish(struct growth_read *g)
{
	profile_free(g->profile);
	free(g->times_ms);
	buf_finish(&g->notes);
	*g = (struct growth_read){ .profile = NULL };
}
