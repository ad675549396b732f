/*
 * What the text formats written from a view share: frames numbered in order of their names,
 * and the view's rows with equal stacks merged, in a fixed order.
 */
#ifndef FORMAT_EXPORT_H
#define FORMAT_EXPORT_H

#include "base/buf.h"
#include "profile/view.h"

enum export_frames {
	/* A frame is its text, as ';'-joined stacks have it: ';' is ':' there, control characters are blanks. */
	EXPORT_BY_TEXT,
	/* A frame is an entry of the view: equal names in different files stay apart. */
	EXPORT_BY_ENTRY,
};

/* Text of a frame in export.text. */
struct export_frame {
	size_t at;
	uint32_t length;
	uint32_t entry;             /* one that has this text; PROFILE_NONE: "(no frames)" */
};

/* frames[first .. first + n) of the export: frame numbers, root first. */
struct export_stack {
	uint64_t first;
	uint32_t n;
	uint32_t thread;            /* string; 0: none, or not asked for */
	uint64_t block_size;
	struct amount amount;
};

struct export {
	struct view *v;
	struct buf text;
	struct export_frame *names;  size_t n_names;    /* those in use, ordered by text, then file and line */
	uint32_t *name_of_entry;     /* while it is made: entry -> names; [n_entries]: "(no frames)" */
	uint32_t *frames;            size_t n_frames, frames_capacity;
	struct export_stack *stacks; size_t n_stacks, stacks_capacity;
};

/*
 * labels: rows of different threads or block sizes stay apart. Rows of nothing (0 in the base and now) are left out. A row
 * without frames gets one that is called "(no frames)". Stacks are ordered frame by frame from the root.
 */
int export_make(struct view *v, enum export_frames by, bool labels, struct export *ret, struct error *err);
void export_finish(struct export *x);

static inline const char *export_name(const struct export *x, uint32_t name)
{
	return x->text.data + x->names[name].at;
}

/*
 * Formats that only know amounts >= 0 get a change as several columns: grew, shrank, base, new.
 * A profile with values below 0 (somebody's subtraction) has grew and shrank.
 */
struct export_column {
	const char *name;           /* NULL: the metric itself */
	double (*value)(const struct amount *a);
};

#define EXPORT_COLUMNS 4

size_t export_columns(const struct view *v, struct export_column ret[EXPORT_COLUMNS]);

/* For lines of text: control characters become blanks, malformed UTF-8 U+FFFD. */
void export_add_clean(const char *s, size_t n, struct buf *out);
/* The nearest whole number, without an exponent. */
void export_integer(struct buf *out, double value);
/* The format's complaint about a buffer that failed, or E_OK. */
int export_check(const struct buf *out, const char *format, struct error *err);

#endif
