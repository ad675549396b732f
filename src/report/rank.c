/*
 * Verdicts come from p-values that are corrected for how many rows were looked at. The
 * advice turns the formula around: the standard error shrinks with the root of the
 * rate; a steady growth gains on it with the root of time at least, since the variance
 * of what lies in between grows no faster than time.
 */
#include "report/rank.h"

#include "base/text.h"
#include "report/words.h"

#include <math.h>
#include <stdlib.h>

#define POWER_80 0.8416         /* normal quantile of 0.8 */
#define LG_NOTICED 16           /* finer rates than 2^16 are felt: CPU +10 % and more, page-sized samples */

static bool holds(const struct amount *a)
{
	return a->base != 0 || a->now != 0;
}

static int rank_single(const struct view_totals *totals, struct rank *r)
{
	for (size_t i = 0; i < totals->n; i++)
		if (holds(&totals->entries[totals->order[i]].cum))
			r->order[r->n++] = totals->order[i];
	return E_OK;
}

static bool shown_in_diff(const struct entry_total *t, enum view_sort sort, bool sorted_only)
{
	return amount_change(rank_amount(t, sort)) != 0 ||
	       (!sorted_only && (amount_change(&t->flat) != 0 || amount_change(&t->cum) != 0));
}

static int rank_diff(const struct view_totals *totals, enum view_sort sort, bool sorted_only, struct rank *r)
{
	for (int pass = 0; pass < 2; pass++)
		for (size_t i = 0; i < totals->n; i++) {
			const struct entry_total *t = &totals->entries[totals->order[i]];
			if (t->significant == (pass == 0) && shown_in_diff(t, sort, sorted_only))
				r->order[r->n++] = totals->order[i];
		}
	for (size_t i = 0; i < totals->n; i++) {
		const struct entry_total *t = &totals->entries[i];
		const struct amount *a = rank_amount(t, sort);
		if (amount_change(a) == 0)
			r->unchanged += holds(a);
		else if (t->significant)
			r->significant++;
		else
			r->noise++;
	}
	return E_OK;
}

int rank_entries(const struct view *v, const struct view_totals *totals, enum view_sort sort, bool sorted_only,
                 struct rank *ret, struct error *err)
{
	struct rank r = { .order = malloc((totals->n + 1) * sizeof *r.order) };
	if (!r.order)
		return error_nomem(err, "the rows");
	if (v->diff)
		rank_diff(totals, sort, sorted_only, &r);
	else
		rank_single(totals, &r);
	*ret = r;
	return E_OK;
}

void rank_finish(struct rank *r)
{
	free(r->order);
	*r = (struct rank){ 0 };
}

bool rank_significant(const struct view *v, const struct amount *const *amounts, size_t n, bool *ret_significant)
{
	double *p_values = calloc(n + 1, sizeof *p_values);
	if (!p_values)
		return false;
	size_t tested = 0;
	for (size_t i = 0; i < n; i++)
		if (holds(amounts[i]))
			p_values[tested++] = v->has_error ? estimate_p_value(amounts[i]->gained, amounts[i]->lost)
			                                  : (amount_change(amounts[i]) == 0);
	/* Answers come for the tested ones, packed at the front: spread them from the back. */
	bool ok = estimate_significant(p_values, tested, RANK_FALSE_DISCOVERY, ret_significant);
	free(p_values);
	for (size_t i = n; ok && i-- > 0;)
		ret_significant[i] = holds(amounts[i]) ? ret_significant[--tested] : false;
	return ok;
}

const char *rank_verdict(const struct view *v, bool significant, const struct amount *a)
{
	return v->diff && v->has_error && !significant && amount_change(a) != 0 ? "noise" : "";
}

void rank_note(const struct view *v, const struct rank *r, struct notes *n)
{
	size_t changed = r->significant + r->noise;
	if (!v->diff || !v->has_error || r->noise == 0 || header_rate(v) <= 1)
		return;
	struct buf *b = notes_begin(n);
	if (changed == 1)
		buf_adds(b, "the only changed row is noise");
	else if (r->noise == changed)
		buf_printf(b, "all %zu changed rows are noise", changed);
	else
		buf_printf(b, "%zu of %zu changed rows %s noise", r->noise, changed, r->noise == 1 ? "is" : "are");
	buf_adds(b, ": noise is what sampling alone would do (95%, corrected for the number of rows)");
	notes_end(n);
}

/* z with two-sided p = erfc(z / sqrt 2), by bisection. */
static double normal_quantile_two_sided(double p)
{
	double low = 0, high = 40;
	for (int i = 0; i < 80; i++) {
		double middle = (low + high) / 2;
		if (erfc(middle / M_SQRT2) > p)
			low = middle;
		else
			high = middle;
	}
	return low;
}

double rank_wanted_errors(size_t n)
{
	return normal_quantile_two_sided(RANK_FALSE_DISCOVERY / (double)n) + POWER_80;
}

/* How many times finer the rate must be for that change, alone among n rows, to show four times in five. */
static double times_finer(const struct amount *a, size_t n)
{
	struct interval i = amount_interval(a);
	double change = amount_change(a);
	double arm = change > 0 ? change - i.low : i.high - change;
	double sigma = arm / ESTIMATE_Z95;
	return pow(rank_wanted_errors(n) * sigma / fabs(change), 2);
}

void rank_advise_rate(double rate, double times, struct buf *out)
{
	unsigned now = header_lg(rate), lg = header_lg(rate / times);
	if (lg >= now && lg > 0)
		lg = now - 1;
	buf_adds(out, "a rate about ");
	text_add_count(out, exp2(now - lg) > times ? exp2(now - lg) : times);
	buf_printf(out, " times finer (jemalloc: lg_prof_sample:%u instead of %u%s)", lg, now,
	           lg < LG_NOTICED ? "; the program will feel a rate this fine" : "");
}

static void advise_time(const struct view *v, double times, struct buf *out)
{
	double seconds = header_seconds_between(v);
	buf_adds(out, "; so would at most ");
	text_add_count(out, ceil(times));
	buf_adds(out, " times as long between the two");
	if (seconds > 0) {
		buf_adds(out, " (");
		words_duration(seconds * times, out);
		buf_adds(out, " instead of ");
		words_duration(seconds, out);
		buf_addc(out, ')');
	}
	buf_adds(out, ", if it keeps growing like this");
}

void rank_advice(const struct view *v, const struct view_totals *totals, enum view_sort sort,
                 const struct rank *r, struct buf *out)
{
	double rate = header_rate(v);
	if (!v->diff || !v->has_error || r->significant || !r->noise || !r->n || rate <= 1)
		return;
	const struct amount *a = rank_amount(&totals->entries[r->order[0]], sort);
	double times = fmax(2, times_finer(a, r->noise + r->unchanged));
	buf_adds(out, "Not enough samples yet: even the largest change (");
	words_change(v, amount_change(a), out);
	buf_adds(out, ", ");
	words_entry(v, r->order[0], out);
	buf_adds(out, ") is no more than sampling alone would do. If it is real, ");
	rank_advise_rate(rate, times, out);
	buf_adds(out, " would tell four times in five");
	if (header_one_process(v) && amount_change(a) > 0)
		advise_time(v, times, out);
	buf_addc(out, '.');
}

void rank_advice_text(const struct view *v, const struct view_totals *totals, enum view_sort sort,
                      const struct rank *r, const struct report_style *s, struct buf *out)
{
	struct buf text;
	buf_init(&text, 1 << 24);
	rank_advice(v, totals, sort, r, &text);
	if (text.len) {
		buf_addc(out, '\n');
		words_paragraph(text.data, text.len, 0, 0, s->columns, out);
	}
	words_finish_part(&text, out);
}

void rank_json_verdict(struct json *j, const struct view *v, const struct entry_total *e)
{
	if (v->diff && v->has_error) {
		json_number(j, "p_value", e->p_value);
		json_bool(j, "significant", e->significant);
	} else if (v->diff) {
		json_null(j, "p_value");
		json_null(j, "significant");
	}
}
