/*
 * The web page on a profile: its data block (docs/page.md), and the HTML file around it. The page itself is built from web/ and lies in
 * the program as it is.
 */
#ifndef REPORT_PAGE_H
#define REPORT_PAGE_H

#include "base/buf.h"
#include "profile/view.h"

struct page_options {
	const char *title;                  /* NULL: none */
	/*
	 * How the page begins; show_allocator, no_inlines, tagfocus and tagignore are applied when the block is made. Expressions that
	 * are none are E_USAGE.
	 */
	struct view_options view;
	bool inverted;
	uint32_t base;                      /* snapshot that is subtracted, or PROFILE_NONE */
	const char *const *command;         /* see docs/page.md */
	size_t n_command;
	const struct buf *notes;            /* whole lines for the user; NULL: none */
	/*
	 * What the block may have, compressed; 0: no limit. Stacks beyond it, those with the least of the default type in any snapshot, are
	 * added up in (other) rows: totals stay exact. What even the names of a few stacks don't fit in is E_LIMIT.
	 */
	size_t limit_bytes;
};

/*
 * Appends the block. p: one profile, or several joined by profile_series; none of its sources is a base. Its strings may get more.
 * *ret_complete (may be NULL): nothing was left out. E_NOMEM, E_USAGE, E_LIMIT.
 */
int page_block(struct profile *p, const struct page_options *o, struct buf *out, bool *ret_complete, struct error *err);

/* The page as one file with its block inside, at most limit_bytes in all (0: none); o->limit_bytes is not looked at. */
int page_file(struct profile *p, const struct page_options *o, size_t limit_bytes, struct buf *out, struct error *err);
/* The page for a server that has the block at the relative address "data". */
int page_served(struct buf *out, struct error *err);
/* The page for a recorder: it asks for what it shows below the relative address "api/v1/" (docs/openapi.yaml). */
int page_recorder(struct buf *out, struct error *err);

/* E_UNSUPPORTED with what to do, when the program was built without the page. */
int page_available(struct error *err);

#endif
