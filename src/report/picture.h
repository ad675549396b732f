/*
 * What the two pictures, flame graph and call graph, share: names as they are drawn, and
 * amounts as text. Everything appended here is harmless in one line of text; the place it
 * goes to (XML, JSON, dot) still escapes it once more.
 */
#ifndef REPORT_PICTURE_H
#define REPORT_PICTURE_H

#include "base/buf.h"
#include "profile/view.h"

/* Text of a profile: control and bidirectional characters are made visible, what XML forbids is replaced. */
void picture_text(const char *text, size_t n, struct buf *out);

/*
 * The frame's name, with the line or address when those tell frames apart. Never
 * empty.
 */
void picture_name(const struct view *v, uint32_t entry, struct buf *out);

/* "src/a.c:12" or "src/a.c"; nothing when unknown. */
void picture_place(const struct view *v, uint32_t entry, struct buf *out);

/*
 * The name without what fills most C++ and Rust names: template arguments become <…>, parameters
 * go. "std::map<int, long>::find(int const&)" -> "std::map<…>::find". "(anonymous namespace)",
 * "operator<", "operator()" and Rust's "<T as Trait>" stay. Of a frame without a name, "libc.so.6!0x12ab",
 * the address stays: the binary is in the colour.
 */
void picture_short(const char *name, size_t n, struct buf *out);

/* As much of the text as fits into that many columns, with … in place of what is cut; nothing below 3. */
void picture_fit(const char *text, size_t n, size_t columns, struct buf *out);
/* Columns on the safe side: what may be drawn double width counts 2. */
size_t picture_columns(const char *text, size_t n);

/* "12.3 MiB", "4,567", "12.3k nanoseconds". */
void picture_amount(const struct view *v, double value, struct buf *out);
/* The same with its sign: "+12.3 MiB", "-4,567"; "0 B" has none. */
void picture_change(const struct view *v, double value, struct buf *out);
/* "12.3 %"; "<0.1 %" when there is some; "–" when whole is 0. */
void picture_percent(double part, double whole, struct buf *out);
/* Number with at most 2 decimals, no locale. */
void picture_number(double value, struct buf *out);

/* How a diff's amount is drawn. */
enum picture_change {
	CHANGE_NONE,        /* exactly the same */
	CHANGE_NOISE,       /* the interval of the change includes 0 */
	CHANGE_GREW, CHANGE_SHRANK,
	CHANGE_NEW,         /* nothing in the base */
	CHANGE_GONE,        /* nothing now */
};

/* noise: what the caller's test over all its boxes said. */
enum picture_change picture_classify(const struct amount *a, bool noise);

/*
 * Which of n changes can't be told from sampling noise: the interval includes 0, or it wouldn't
 * survive being one of n judged together (Benjamini-Hochberg, 5 %). Without error bars nothing is
 * noise. False when out of memory. amounts: pointers, so that callers keep their own records.
 */
bool picture_noise(const struct view *v, const struct amount *const *amounts, size_t n, bool *ret_noise);

#endif
