/*
 * The pieces every report is worded with: amounts in the view's unit, their error,
 * shares, times, and the name of an entry. Everything is appended; entry names and
 * other text from profiles are escaped for the terminal.
 */
#ifndef REPORT_WORDS_H
#define REPORT_WORDS_H

#include "base/buf.h"
#include "profile/view.h"

/* "12.3 MiB", "1,234", "350 ms": by the view's unit (bytes, nanoseconds and its kin, else a count). */
void words_amount(const struct view *v, double value, struct buf *out);
/* The same with its sign: "+12.3 MiB", "-3", and "0 B" for none. */
void words_change(const struct view *v, double change, struct buf *out);
/* A part that could not be written makes the whole a failure: nothing is left out silently. */
static inline void words_finish_part(struct buf *part, struct buf *out)
{
	out->failed = out->failed || part->failed;
	buf_finish(part);
}

/* What a report shows of an amount: now, or in a diff the signed change. */
void words_value(const struct view *v, const struct amount *a, struct buf *out);

/* "73.6%"; "" when whole is 0. */
void words_percent(double part, double whole, struct buf *out);
/* Of a diff: "+80.1%" of base, "new", "gone", "" when nothing changed. */
void words_change_percent(const struct amount *a, struct buf *out);

/* report_error_text in the view's unit; "" when the view has no errors. */
void words_error(const struct view *v, const struct amount *a, struct buf *out);

/* "2026-11-21 03:33:10 UTC"; "" when 0. */
void words_time(int64_t nanos, struct buf *out);
/* "350 ms", "12.3 s", "5.20 min", "3.10 h", "4.20 days". */
void words_duration(double seconds, struct buf *out);
/* value with that many decimals (0-3), whatever the locale. */
void words_decimal(double value, unsigned decimals, struct buf *out);

/* "name", by line "name file:line", by address "binary!0x12 name file:line"; "(inline)" behind inlined ones. */
void words_entry(const struct view *v, uint32_t entry, struct buf *out);
/* Title of the column of names: "function", "line", ... */
const char *words_granularity(enum granularity by);

/*
 * Text that is already safe, as a paragraph: broken at blanks where a line would pass columns (0: never),
 * the lines after the first indented. Ends with a newline; at is the column the text begins in.
 */
void words_paragraph(const char *text, size_t length, size_t at, size_t indent, size_t columns, struct buf *out);

/* Which column of values holds the objects of a space metric, or the bytes of an objects metric; -1: none. */
int words_companion_column(const struct view *v);
bool words_is_bytes(const struct view *v);

#endif
