/*
 * What `view` shows: the PROFILEs of its command line, as they are now and, of living ones, were. Files are read again when they change, living
 * PROFILEs are asked now and then; whatever fails then leaves what was there before.
 */
#ifndef CLI_SHOWN_H
#define CLI_SHOWN_H

#include <sys/stat.h>

#include "base/strings.h"
#include "cli/pages.h"

#define SHOWN_SNAPSHOTS_MAX 60          /* of one living PROFILE */

struct shown_input {
	const char *path;                   /* borrowed */
	bool live, base, followed;          /* followed: a file that can be read again */
	struct stat seen;                   /* the file as it was read, or tried, last */
	struct profile *now;                /* NULL once a snapshot has it */
	struct buf warnings;                /* of what is shown */
	char failure[sizeof(((struct error *)0)->text)];     /* why it isn't the newest; "": it is */
};

/* Snapshots of one PROFILE, or of all with --merge: oldest first, one of what doesn't live. */
struct shown_line {
	struct profile **snapshots;
	size_t n, capacity;
	bool live;
};

struct shown {
	struct page_settings settings;
	char *const *paths;
	size_t n_paths;
	struct shown_input *inputs;  size_t n_inputs;        /* the base, when there is one, then paths */
	struct shown_line *lines;    size_t n_lines;
	struct profile *base;
	struct profile *all;                                 /* joined and named */
	struct buf notes;
	int64_t refresh_ms;                                  /* of living ones; 0: never */
	int64_t refreshed_ms;
};

/* Reads everything, for the first time: any failure is one. Finish it in any case. now_ms: of a clock that never goes back. */
int shown_init(struct shown *s, const struct page_settings *settings, int64_t refresh_ms, int64_t now_ms, char *const *paths, size_t n,
               struct buf *warnings, struct error *err);
void shown_finish(struct shown *s);

/* Looks for what is new. True: there is, and blocks will be other ones. Failures are whole lines in said, each once. */
bool shown_refresh(struct shown *s, int64_t now_ms, struct buf *said);

/* The block (report/page.h) within limit_bytes (0: complete). */
int shown_block(struct shown *s, size_t limit_bytes, struct buf *out, bool *ret_complete, struct error *err);
/* All source files that functions name; the caller's to finish. False: out of memory. */
bool shown_source_files(const struct shown *s, struct strings *ret);

#endif
