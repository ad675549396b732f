/*
 * Which rows of a diff stand first, and what to say when none stands out: the changes
 * that sampling alone does not explain, biggest first, then the noise.
 */
#ifndef REPORT_RANK_H
#define REPORT_RANK_H

#include "report/header.h"

/* Of all the rows looked at, this part of those called significant may be false. */
#define RANK_FALSE_DISCOVERY 0.05

struct rank {
	uint32_t *order;        /* entries to show */
	size_t n;
	/* Of the amounts sorted by: moved beyond noise, moved within it, held something but did not move. */
	size_t significant, noise, unchanged;
};

/*
 * Single profile: every entry that holds something, in the order of totals. Diff: those that changed
 * (flat or cum; with sorted_only just what is sorted by), significant ones first.
 */
int rank_entries(const struct view *v, const struct view_totals *totals, enum view_sort sort, bool sorted_only,
                 struct rank *ret, struct error *err);
void rank_finish(struct rank *r);

static inline const struct amount *rank_amount(const struct entry_total *t, enum view_sort sort)
{
	return sort == SORT_FLAT ? &t->flat : &t->cum;
}

/* Benjamini-Hochberg over the amounts of a diff that moved. False when out of memory. */
bool rank_significant(const struct view *v, const struct amount *const *amounts, size_t n, bool *ret_significant);

/* "3 of 17 rows are noise: ..." for the header. */
void rank_note(const struct view *v, const struct rank *r, struct notes *n);
/*
 * "Not enough samples yet: ..." with what would suffice to tell the largest change of all (that of
 * order[0]) from noise four times in five; nothing when some change is significant or the view has no errors.
 */
void rank_advice(const struct view *v, const struct view_totals *totals, enum view_sort sort,
                 const struct rank *r, struct buf *out);
/* The same as a paragraph of a text report. */
void rank_advice_text(const struct view *v, const struct view_totals *totals, enum view_sort sort,
                      const struct rank *r, const struct report_style *s, struct buf *out);
/* How many standard errors a change, alone among n rows, must be to show four times in five. */
double rank_wanted_errors(size_t n);
/* "a rate about 4 times finer (jemalloc: lg_prof_sample:17 instead of 19)" */
void rank_advise_rate(double rate, double times, struct buf *out);
/* "p_value" and "significant" of a row of a diff, null without errors; nothing in a single profile. */
void rank_json_verdict(struct json *j, const struct view *v, const struct entry_total *e);

/* "noise", or "" in a profile without errors and for what is significant. */
const char *rank_verdict(const struct view *v, bool significant, const struct amount *a);

#endif
