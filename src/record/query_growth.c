#include "record/query_growth.h"

#include <stdio.h>
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

/* --- the processes of a moment become one --- */

struct sum {
	struct profile *p;
	struct index index;             /* of samples that are kept */
	uint32_t *becomes;              /* by source: which one it is added to */
	uint32_t *processes;            /* by source: how many it is of */
};

static bool goes_with(const struct source *a, const struct source *b)
{
	return a->snapshot == b->snapshot && a->rate == b->rate && !a->raw_counts && !b->raw_counts;
}

/* Sources of a moment follow each other. Counts that jemalloc left biased can't be added up before they are corrected: these stay by themselves. */
static void join_sources(struct sum *s)
{
	struct profile *p = s->p;
	size_t n = 0;
	for (size_t i = 0; i < p->n_sources; i++) {
		size_t to = n;
		while (to > 0 && p->sources[to - 1].snapshot == p->sources[i].snapshot && !goes_with(&p->sources[to - 1], &p->sources[i]))
			to--;
		bool new = to == 0 || !goes_with(&p->sources[to - 1], &p->sources[i]);
		to = new ? n++ : to - 1;
		if (new)
			p->sources[to] = p->sources[i];
		s->becomes[i] = (uint32_t)to;
		s->processes[to] = new ? 1 : s->processes[to] + 1;
	}
	p->n_sources = n;
	for (size_t i = 0; i < n; i++) {
		struct source *source = &p->sources[i];
		char name[32];
		if (s->processes[i] == 1)
			continue;
		snprintf(name, sizeof name, "%u processes", s->processes[i]);
		source->name = profile_cstring(p, name);
		source->process = source->pid = 0;
		source->header_objects = source->header_bytes = -1;
	}
}

static bool same_sample(const void *context, uint32_t item)
{
	const struct sum *s = context;
	/* The one that is looked for lies behind all that are kept. */
	const struct sample *wanted = &s->p->samples[s->p->n_samples], *there = &s->p->samples[item];
	return there->stack == wanted->stack && there->labels == wanted->labels && there->source == wanted->source;
}

static bool join_samples(struct sum *s)
{
	struct profile *p = s->p;
	size_t all = p->n_samples, types = p->n_types;
	p->n_samples = 0;
	for (size_t i = 0; i < all; i++) {
		struct sample sample = p->samples[i];
		sample.source = s->becomes[sample.source];
		p->samples[p->n_samples] = sample;
		uint64_t hash = hash_mix((uint64_t)sample.stack << 32 | sample.labels, sample.source);
		uint32_t at = index_find(&s->index, hash, same_sample, s);
		if (at == INDEX_NONE) {
			if (!index_reserve(&s->index))
				return false;
			at = (uint32_t)p->n_samples++;
			index_insert(&s->index, hash, at);
			memmove(p->values + at * types, p->values + i * types, types * sizeof *p->values);
			continue;
		}
		for (size_t k = 0; k < types; k++)
			p->values[at * types + k] = value_sum(p->values[at * types + k], p->values[i * types + k]);
	}
	p->n_values = p->n_samples * types;
	return true;
}

/* Of many processes nearly all of it. */
static void give_back(struct profile *p)
{
	struct sample *samples = realloc(p->samples, (p->n_samples + 1) * sizeof *samples);
	if (samples) {
		p->samples = samples;
		p->samples_capacity = p->n_samples + 1;
	}
	int64_t *values = realloc(p->values, (p->n_values + 1) * sizeof *values);
	if (values) {
		p->values = values;
		p->values_capacity = p->n_values + 1;
	}
}

/* What all of them hold at a place, as if it were one process: so many times less to look at. */
static int add_up(struct profile *p, struct error *err)
{
	struct sum s = { .p = p, .becomes = calloc(p->n_sources + 1, sizeof *s.becomes), .processes = calloc(p->n_sources + 1, sizeof *s.processes) };
	bool ok = s.becomes && s.processes;
	if (ok) {
		join_sources(&s);
		ok = join_samples(&s);
		give_back(p);
	}
	index_finish(&s.index);
	free(s.becomes);
	free(s.processes);
	return ok ? p->failure.code : error_nomem(err, "what the processes hold");
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
	if (s->n > 1)
		failed = add_up(g->profile, err);
	return failed ? failed : query_check(q, err);
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
