/*
 * Rates are told per hour, whatever the snapshots' distance, so that two reports can be compared; their error is a
 * size, since the question is whether the lower end is above nothing.
 */
#include "report/leaks_words.h"

#include <math.h>
#include <string.h>

#include "base/text.h"
#include "report/rank.h"
#include "report/words.h"

#define HOUR 3600.0
#define LOPSIDED 1.3            /* sides of an interval that differ by more are both told */
#define TIMES_MOST 100          /* more of the same is no advice */

static const struct view *view_of(const struct leaks *l)
{
	return l->s->view;
}

/* --- what is shown ---------------------------------------------------------- */

static void note_lines(struct notes *n, const char *lines)
{
	for (const char *at = lines ? lines : ""; *at;) {
		size_t length = strcspn(at, "\n");
		buf_add(notes_begin(n), at, length);
		notes_end(n);
		at += length + (at[length] == '\n');
	}
}

static void note_times(struct leaks *l)
{
	if (l->s->timed)
		return;
	buf_adds(notes_begin(&l->notes), "the snapshots don't tell when they were taken, one after the other: rates are per "
	                                 "snapshot (--interval says how far apart they are)");
	notes_end(&l->notes);
}

static void note_error(struct leaks *l)
{
	const struct view *v = view_of(l);
	if (l->s->n_snapshots <= TREND_FEW) {
		buf_printf(notes_begin(&l->notes), "%zu snapshots tell what grew, but not whether it goes on: that takes %d, better "
		           "10; ± is the sampling error only", l->s->n_snapshots, TREND_FEW + 1);
		notes_end(&l->notes);
	}
	if (v->has_error || !header_metric_meaning(v))
		return;
	buf_adds(notes_begin(&l->notes), "the profiles don't say their sampling rate: ± comes from the scatter of the values alone");
	notes_end(&l->notes);
}

void leaks_init(struct leaks *l, const struct series *s, const struct leaks_options *o)
{
	*l = (struct leaks){ .s = s, .o = o };
	notes_init(&l->notes);
	note_lines(&l->notes, o->notes);
	note_times(l);
	note_error(l);
	l->shown = o->all ? s->n_places : s->n_steady + s->n_grown;
	if (o->n && l->shown > o->n)
		l->shown = o->n;
	for (size_t i = 0; o->fail_above >= 0 && i < s->n_places; i++)
		l->exceeding += growth_exceeds(&s->places[i], o->fail_above);
}

void leaks_finish(struct leaks *l)
{
	notes_finish(&l->notes);
}

const char *leaks_places(const struct leaks *l)
{
	return l->s->options.by_stack ? "stack" : words_granularity(view_of(l)->by);
}

bool report_leaks_tripped(const struct series *s, const struct leaks_options *o)
{
	bool tripped = o->fail_above >= 0 && growth_exceeds(&s->total, o->fail_above);
	for (size_t i = 0; o->fail_above >= 0 && i < s->n_places && !tripped; i++)
		tripped = growth_exceeds(&s->places[i], o->fail_above);
	return tripped;
}

/* --- words ------------------------------------------------------------------ */

static double per(const struct leaks *l)
{
	return l->s->timed ? HOUR : 1;
}

void leaks_rate(const struct leaks *l, double rate, struct buf *out)
{
	words_change(view_of(l), rate * per(l), out);
	buf_adds(out, l->s->timed ? "/h" : "/snapshot");
}

void leaks_rate_error(const struct leaks *l, const struct slope *slope, struct buf *out)
{
	double below = (slope->rate - slope->interval.low) * per(l), above = (slope->interval.high - slope->rate) * per(l);
	if (!(fmax(below, above) >= 0.5))
		return;     /* no byte an hour */
	if (fmax(below, above) <= LOPSIDED * fmin(below, above)) {
		buf_adds(out, "±");
		words_amount(view_of(l), (below + above) / 2, out);
		return;
	}
	buf_addc(out, '-');
	words_amount(view_of(l), below, out);
	buf_adds(out, "/+");
	words_amount(view_of(l), above, out);
}

static double range(const struct leaks *l)
{
	return l->s->times[l->s->n_snapshots - 1];
}

void leaks_range(const struct leaks *l, struct buf *out)
{
	buf_printf(out, "%zu snapshots", l->s->n_snapshots);
	if (!l->s->timed)
		return;
	buf_adds(out, " over ");
	words_duration(range(l), out);
}

void leaks_place(const struct leaks *l, const struct growth *g, size_t most, struct buf *out)
{
	if (!l->s->options.by_stack) {
		words_entry(view_of(l), (uint32_t)g->first_frame, out);
		return;
	}
	size_t n;
	const uint32_t *frames = series_frames(l->s, g, &n);
	for (size_t i = 0; i < n && i < most; i++) {
		if (i)
			buf_adds(out, " ← ");
		words_entry(view_of(l), frames[i], out);
	}
	if (n > most)
		buf_adds(out, " ← …");
	if (n == 0)
		buf_adds(out, "(no frames)");
}

/* --- the limit -------------------------------------------------------------- */

bool leaks_time_to_limit(const struct leaks *l, const struct growth *g, double *ret_value, struct interval *ret_interval)
{
	double room = l->o->limit - l->s->total.values[l->s->n_snapshots - 1].value;
	const struct slope *slope = &g->trend.slope;
	if (!(l->o->limit > 0) || !(room > 0) || !(slope->rate > 0) ||
	    !(g->trend.steady || g->trend.shape == SHAPE_GROWN))
		return false;
	*ret_value = room / slope->rate;
	ret_interval->low = room / slope->interval.high;
	ret_interval->high = slope->interval.low > 0 ? room / slope->interval.low : INFINITY;
	return true;
}

static void add_time(const struct leaks *l, double time, struct buf *out)
{
	if (l->s->timed)
		words_duration(time, out);
	else
		text_add_count(out, time);
}

void leaks_time_text(const struct leaks *l, double value, struct interval i, struct buf *out)
{
	add_time(l, value, out);
	buf_adds(out, " (");
	if (isinf(i.high))
		buf_adds(out, "at least ");
	add_time(l, i.low, out);
	if (!isinf(i.high) && i.high > i.low) {
		buf_adds(out, " to ");
		add_time(l, i.high, out);
	}
	buf_adds(out, l->s->timed ? ")" : " snapshots)");
}

/* --- advice ----------------------------------------------------------------- */

/* How much of its growth is beyond doubt, in errors. */
static double errors_of(const struct growth *g)
{
	double arm = g->trend.slope.rate - g->trend.slope.interval.low;
	return arm > 0 ? g->trend.slope.rate / arm : 0;
}

/* What most likely is more than chance. */
static const struct growth *likeliest_noise(const struct series *s)
{
	const struct growth *best = NULL;
	for (size_t i = 0; i < s->n_places; i++) {
		const struct growth *g = &s->places[i];
		if (g->trend.shape == SHAPE_NOISE && g->trend.slope.rate > 0 && (!best || errors_of(g) > errors_of(best)))
			best = g;
	}
	return best;
}

/* Is its error that of the samples? Else it is the program's own coming and going, and a finer rate is no help. */
static bool sampling_rules(const struct leaks *l, const struct growth *g)
{
	double variance = 0, error = (g->trend.slope.rate - g->trend.slope.interval.low) / ESTIMATE_Z95;
	size_t n = l->s->n_snapshots;
	for (size_t k = 0; k < n; k++)
		variance += g->values[k].variance / (double)n;
	return view_of(l)->has_error && header_rate(view_of(l)) > 1 && error * range(l) <= 2 * sqrt(2 * variance);
}

static void advise_more(const struct leaks *l, const struct growth *g, struct buf *out)
{
	const struct slope *slope = &g->trend.slope;
	double rate = header_rate(view_of(l)), arm = slope->rate - slope->interval.low;
	double times = fmax(2, pow(rank_wanted_errors(l->s->n_places) * arm / ESTIMATE_Z95 / slope->rate, 2));
	buf_adds(out, "The likeliest growth that may still be chance is ");
	leaks_rate(l, slope->rate, out);
	buf_addc(out, ' ');
	leaks_rate_error(l, slope, out);
	buf_adds(out, " in ");
	leaks_place(l, g, 1, out);
	buf_adds(out, ". If it is real, ");
	bool finer = sampling_rules(l, g);
	if (times > TIMES_MOST && !finer) {
		buf_adds(out, "it is too small beside what comes and goes there to be told in reasonable time.");
		return;
	}
	if (times <= TIMES_MOST) {
		buf_adds(out, "about ");
		add_time(l, range(l) * (times - 1), out);
		buf_adds(out, l->s->timed ? " more" : " more snapshots");
	}
	if (finer) {
		buf_adds(out, times <= TIMES_MOST ? " or " : "");
		rank_advise_rate(rate, times, out);
	}
	buf_adds(out, " would tell four times in five.");
}

void leaks_advice(const struct leaks *l, struct buf *out)
{
	double rate = header_rate(view_of(l)), wanted = rank_wanted_errors(l->s->n_places ? l->s->n_places : 1);
	if (l->s->n_steady)
		return;
	const struct growth *g = likeliest_noise(l->s);
	buf_printf(out, "No %s grows steadily beyond doubt%s. ", leaks_places(l), !l->s->total.trend.steady ? ""
	           : ", but all together do: --by file, or --by function --sort cum, may show who");
	if (g)
		advise_more(l, g, out);
	/* A leak of small blocks, by its sampling alone: k samples have an error of their root. */
	if (view_of(l)->has_error && rate > 1 && words_is_bytes(view_of(l))) {
		buf_adds(out, g ? " A leak of " : "A leak of ");
		leaks_rate(l, wanted * wanted * rate / range(l), out);
		buf_adds(out, " where nothing else comes and goes would have shown four times in five.");
	}
}

void leaks_verdict(const struct leaks *l, struct buf *out)
{
	if (l->o->fail_above < 0)
		return;
	bool total = growth_exceeds(&l->s->total, l->o->fail_above);
	if (l->exceeding)
		buf_printf(out, "FAILED: %zu %s%s steadily by more than %s", l->exceeding, leaks_places(l),
		           l->exceeding == 1 ? " grows" : "s grow", l->o->gate);
	else if (total)
		buf_printf(out, "FAILED: all together grow steadily by more than %s", l->o->gate);
	else
		buf_printf(out, "passed: nothing grows steadily by more than %s beyond doubt", l->o->gate);
}
