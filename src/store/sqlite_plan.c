/* Buckets of a tier are whole numbers of the finer one's, so a range's pieces never overlap. */
#include "store/sqlite_plan.h"

const int64_t tier_bucket_ms[TIERS] = { 1, 300000, 3600000, 86400000 };

int64_t round_down(int64_t t, int64_t bucket)
{
	int64_t rest = t % bucket;
	return rest < 0 ? t - rest - bucket : t - rest;
}

int64_t round_up(int64_t t, int64_t bucket)
{
	int64_t down = round_down(t, bucket);
	return down == t ? t : down > INT64_MAX - bucket ? INT64_MAX : down + bucket;
}

/* One number, if there is one. */
static int ask(struct connection *c, enum sqlite_statement s, uint32_t series, int tier, int64_t *ret, struct error *err)
{
	sqlite3_stmt *q = db_statement(c, s, err);
	if (!q)
		return err->code;
	sqlite3_bind_int64(q, 1, series);
	if (tier >= 0)
		sqlite3_bind_int(q, 2, tier);
	int rc = db_step(c, q, "reading", err);
	if (rc > 0) {
		*ret = sqlite3_column_int64(q, 0);
		sqlite3_reset(q);
	}
	return rc < 0 ? rc : 0;
}

int plan_rolled_until(struct connection *c, enum plan_what what, uint32_t series, int tier, int64_t *ret, struct error *err)
{
	int64_t last = INT64_MIN;
	int failed = ask(c, what == PLAN_GAUGES ? S_END_GAUGES : S_END_CHUNK, series, tier, &last, err);
	if (!failed)
		*ret = last == INT64_MIN ? last : last + tier_bucket_ms[tier];
	return failed;
}

/* What there is of each tier. */
struct stock {
	int64_t first[TIERS], end[TIERS];       /* first INT64_MAX: nothing */
	int64_t began;                          /* the series' first profile, long gone perhaps; INT64_MAX: unknown */
	struct plan *plan;
};

static int take_stock(struct connection *c, enum plan_what what, uint32_t series, struct stock *s, struct error *err)
{
	int failed = 0;
	s->began = INT64_MAX;
	if (what == PLAN_PROFILES)
		failed = ask(c, S_SERIES_BEGAN, series, -1, &s->began, err);
	for (int t = TIER_RAW; t < TIERS && !failed; t++) {
		s->first[t] = INT64_MAX;
		s->end[t] = t == TIER_RAW ? INT64_MAX : INT64_MIN;
		failed = ask(c, what == PLAN_GAUGES ? S_FIRST_GAUGES : S_FIRST_CHUNK, series, t, &s->first[t], err);
		if (!failed && t == TIER_RAW && what == PLAN_PROFILES && s->first[t] == INT64_MAX)
			failed = ask(c, S_FIRST_OPEN, series, -1, &s->first[t], err);
		if (!failed && t > TIER_RAW)
			failed = plan_rolled_until(c, what, series, t, &s->end[t], err);
	}
	return failed;
}

static void add_piece(struct plan *p, int tier, int64_t from, int64_t to)
{
	if (from < to && p->n < PIECES_MAX)
		p->pieces[p->n++] = (struct piece){ tier, from, to };
}

/* Tiers tier and finer, down to finest, which takes what is left. Goes as deep as there are tiers. */
static void cover(struct stock *s, int tier, int finest, int64_t from, int64_t to)
{
	if (from >= to)
		return;
	if (tier == finest) {
		add_piece(s->plan, tier, from, to);
		return;
	}
	int64_t bucket = tier_bucket_ms[tier];
	int64_t low = round_up(from > s->first[tier] ? from : s->first[tier], bucket);
	int64_t high = round_down(to, bucket);
	high = high < s->end[tier] ? high : s->end[tier];
	if (low >= high) {
		cover(s, tier - 1, finest, from, to);
		return;
	}
	cover(s, tier - 1, finest, from, low);
	add_piece(s->plan, tier, low, high);
	cover(s, tier - 1, finest, high, to);
}

/*
 * Since when the tier is the finest there is: INT64_MIN when it has all there ever was. Else a bucket of a coarser one that knows more than
 * what is left of this one is not cut in two.
 */
static int64_t finest_since(const struct stock *s, int t)
{
	int64_t since = s->first[t];
	if (since == INT64_MAX)
		return since;
	bool dropped = s->began != INT64_MAX && round_down(s->began, tier_bucket_ms[t]) < since, whole = !dropped;
	for (int k = t + 1; k < TIERS; k++) {
		int64_t same = round_down(s->first[t], tier_bucket_ms[k]);
		whole = whole && s->first[k] >= same;
		if (s->end[k] > s->first[t] && (s->first[k] < same || (s->first[k] == same && dropped)))
			since = round_up(since, tier_bucket_ms[k]);
	}
	return whole ? INT64_MIN : since;
}

int plan_range(struct connection *c, enum plan_what what, uint32_t series, int64_t from_ms, int64_t to_ms, int coarsest, struct plan *ret,
               struct error *err)
{
	struct stock s = { .plan = ret };
	ret->n = 0;
	int failed = take_stock(c, what, series, &s, err);
	if (failed)
		return failed;
	int64_t since[TIERS];
	for (int t = TIER_RAW; t < TIERS; t++)
		since[t] = finest_since(&s, t);
	int64_t from = from_ms;
	for (int t = TIER_DAY; t >= TIER_RAW; t--) {
		int64_t until = INT64_MAX;
		for (int k = TIER_RAW; k < t; k++)
			until = since[k] < until ? since[k] : until;
		if (s.first[t] == INT64_MAX || until <= from || to_ms <= since[t] || from >= to_ms)
			continue;
		int64_t least = since[t] > s.first[t] ? since[t] : s.first[t];
		int64_t low = round_down(from > least ? from : least, tier_bucket_ms[t]);
		int64_t high = until < to_ms ? until : round_up(to_ms, tier_bucket_ms[t]);
		cover(&s, coarsest > t ? coarsest : t, t, low, high);
		from = high;
	}
	return 0;
}

int plan_coarsest(int64_t step_ms)
{
	int tier = TIER_RAW;
	while (tier + 1 < TIERS && step_ms >= tier_bucket_ms[tier + 1] && step_ms % tier_bucket_ms[tier + 1] == 0)
		tier++;
	return tier;
}
