/*
 * What separates a leak from a cache that warms up, a burst, a saw-tooth: the growth of the later half beside that of
 * the earlier, and how it is spread over the increments. A leak goes on; whatever else grows, stops or falls back.
 * Thresholds are in samples and in standard errors, so that a few samples make no shape.
 */
#include "profile/trend.h"

#include <math.h>
#include <stddef.h>

#define LATER_LEAST 0.5     /* of the earlier half's growth: less is slowing, or after that a plateau */
#define STEP_SHARE 0.7      /* of all growth in one increment */
#define STEP_TIMES 3        /* that much larger than any other */
#define SEEN_SAMPLES 3      /* what would have shown if it had been there: e^-3 is 5 % */
#define NOTABLE 3           /* samples, or standard errors: an amount that never grew by more needs no halves */
#define SAW_FALLS 2         /* that often back to the lowest quarter */
#define SAW_ERRORS 6        /* a fall is that many standard errors */

const char *shape_name(enum shape shape)
{
	static const char *const names[SHAPES] = {
		[SHAPE_NOISE] = "noise",     [SHAPE_FLAT] = "flat",           [SHAPE_GROWN] = "grown",
		[SHAPE_STEADY] = "steady",   [SHAPE_NEW] = "new",             [SHAPE_SLOWING] = "slowing",
		[SHAPE_PLATEAU] = "plateau", [SHAPE_STEP] = "step",           [SHAPE_SAW_TOOTH] = "saw-tooth",
		[SHAPE_SHRINKING] = "shrinking", [SHAPE_GONE] = "gone",
	};
	return names[shape];
}

static bool is_flat(const struct trend_points *p)
{
	for (size_t i = 1; i < p->n; i++)
		if (p->values[i].value != p->values[0].value)
			return false;
	return true;
}

/* What the samples are like. */
struct sampling {
	double weight;          /* of a sample, on average; 0: exact */
	double zero_weight;     /* of the largest */
	double error;           /* of a single value, on average */
};

static struct sampling sampling_of(const struct trend_points *p)
{
	struct sampling s = { 0 };
	double value = 0, variance = 0;
	for (size_t i = 0; i < p->n; i++) {
		value += fabs(p->values[i].value);
		variance += p->values[i].variance;
		s.zero_weight = fmax(s.zero_weight, p->values[i].weight);
	}
	s.weight = value > 0 ? variance / value : 0;
	s.error = sqrt(variance / (double)p->n);
	return s;
}

static double duration(const struct trend_points *p)
{
	return p->times[p->n - 1] - p->times[0];
}

static double growth(const struct trend_points *p, size_t from, size_t to)
{
	return p->values[to].value - p->values[from].value;
}

/* --- slopes --------------------------------------------------------------- */

/* As a diff of the two moments would have it, per time. */
static struct slope slope_between(const struct trend_points *p, size_t from, size_t to)
{
	struct estimate gained = p->values[to], lost = p->values[from], came = { 0 }, went = { 0 };
	double time = p->times[to] - p->times[from];
	for (size_t i = from; p->came && i < to; i++) {
		estimate_add(&came, p->came[i]);
		estimate_add(&went, p->went[i]);
	}
	if (p->came && came.variance + went.variance <= gained.variance + lost.variance) {
		gained = came;
		lost = went;
	}
	struct interval i = estimate_difference(gained, lost);
	return (struct slope){ growth(p, from, to) / time, { i.low / time, i.high / time },
		               estimate_p_value(gained, lost) };
}

static void find_slopes(const struct trend_points *p, const struct sampling *s, struct trend *t)
{
	if (p->n <= TREND_FEW) {
		t->slope = slope_between(p, 0, p->n - 1);
		return;
	}
	trend_slope(p, s->weight, s->zero_weight, &t->slope);
	double most = 0;
	for (size_t i = 0; i < p->n; i++)
		most = fmax(most, growth(p, 0, i));
	t->has_halves = t->slope.interval.low > 0 || most > NOTABLE * fmax(s->weight, s->error);
	if (t->has_halves)
		trend_halves(p, (p->n - 1) / 2, s->weight, s->zero_weight, &t->earlier, &t->later, &t->change);
}

/* --- shapes --------------------------------------------------------------- */

/* Moments at the start (or the end) with nothing. */
static size_t empty_moments(const struct trend_points *p, bool at_end)
{
	size_t n = 0;
	while (n < p->n && p->values[at_end ? p->n - 1 - n : n].value == 0)
		n++;
	return n;
}

/* Nothing for a third of the time, though that much would have shown. */
static bool is_new(const struct trend_points *p, const struct sampling *s)
{
	size_t n = empty_moments(p, false);
	if (n < 1 || n == p->n)
		return false;
	double share = (p->times[n - 1] - p->times[0]) / duration(p);
	return share >= 1.0 / 3 && p->values[p->n - 1].value * share > SEEN_SAMPLES * s->weight;
}

static bool is_gone(const struct trend_points *p, const struct sampling *s)
{
	size_t n = empty_moments(p, true);
	if (n < 1 || n == p->n)
		return false;
	double mean = 0, share = (p->times[p->n - 1] - p->times[p->n - n]) / duration(p);
	for (size_t i = 0; i + n < p->n; i++)
		mean += p->values[i].value / (double)(p->n - n);
	return (share >= 1.0 / 3 || p->n <= TREND_FEW) && mean > SEEN_SAMPLES * s->weight;
}

/* Rises that outnumber the falls, and falls to near the lowest. */
static bool is_saw_tooth(const struct trend_points *p, const struct sampling *s)
{
	double low = INFINITY, high = -INFINITY, top = -INFINITY;
	size_t rises = 0, falls = 0, deep = 0;
	for (size_t i = 0; i < p->n; i++) {
		low = fmin(low, p->values[i].value);
		high = fmax(high, p->values[i].value);
	}
	double deep_enough = fmax((high - low) / 2, SAW_ERRORS * s->error);
	for (size_t i = 0; i < p->n; i++) {
		double value = p->values[i].value;
		if (i > 0) {
			rises += value > p->values[i - 1].value;
			falls += value < p->values[i - 1].value;
		}
		top = fmax(top, value);
		if (top - value >= deep_enough && value <= low + (high - low) / 4) {
			deep++;
			top = value;
		}
	}
	return deep >= SAW_FALLS && 2 * rises >= 3 * falls;
}

static bool is_step(const struct trend_points *p, const struct sampling *s)
{
	double most = 0, next = 0, all = growth(p, 0, p->n - 1);
	for (size_t i = 0; i + 1 < p->n; i++) {
		double d = growth(p, i, i + 1);
		if (d > most) {
			next = fmax(next, most);
			most = d;
		} else {
			next = fmax(next, fabs(d));
		}
	}
	return most >= STEP_SHARE * all && most >= STEP_TIMES * next && most > (SEEN_SAMPLES + 2) * s->weight;
}

/* Of what grew by the halves: did it go on? */
static enum shape shape_of_growth(const struct trend *t)
{
	if (t->later.rate >= LATER_LEAST * t->earlier.rate)
		return SHAPE_STEADY;
	return t->later.interval.low > 0 ? SHAPE_SLOWING : SHAPE_PLATEAU;
}

static enum shape find_shape(const struct trend_points *p, const struct sampling *s, const struct trend *t)
{
	bool grows = t->slope.interval.low > 0, shrinks = t->slope.interval.high < 0;
	if (is_flat(p))
		return SHAPE_FLAT;
	if (is_gone(p, s))
		return SHAPE_GONE;
	if (p->n <= TREND_FEW && grows)
		return p->values[0].value == 0 ? SHAPE_NEW : SHAPE_GROWN;
	if (p->n <= TREND_FEW)
		return shrinks ? SHAPE_SHRINKING : SHAPE_NOISE;
	if (is_new(p, s))
		return SHAPE_NEW;
	if (is_saw_tooth(p, s))
		return SHAPE_SAW_TOOTH;
	if (is_step(p, s))
		return SHAPE_STEP;
	if (grows)
		return shape_of_growth(t);
	/* The whole is uncertain because growth was uneven: it grew, and then stood. */
	if (t->has_halves && t->earlier.interval.low > 0 && t->change.interval.high < 0)
		return SHAPE_PLATEAU;
	return shrinks ? SHAPE_SHRINKING : SHAPE_NOISE;
}

static void find_trend(const struct trend_points *p, struct trend *t)
{
	struct sampling s = sampling_of(p);
	*t = (struct trend){ .has_halves = false };
	find_slopes(p, &s, t);
	t->shape = find_shape(p, &s, t);
	t->steady = t->shape == SHAPE_STEADY;
}

void trend_find(const struct trend_points *p, struct trend *ret)
{
	find_trend(p, ret);
	if (ret->shape != SHAPE_NEW)
		return;
	size_t from = empty_moments(p, false) - 1;
	struct trend_points since = { p->values + from, p->times + from, p->n - from, NULL, NULL };
	struct trend t;
	find_trend(&since, &t);
	ret->steady = t.steady;
}
