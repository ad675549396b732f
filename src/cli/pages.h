/*
 * From a command line to the web page: `flame`, `convert` and `symbolize` write it as a file, `view` serves it.
 */
#ifndef CLI_PAGES_H
#define CLI_PAGES_H

#include "cli/settings.h"
#include "report/page.h"

#define PAGE_SIZE_DEFAULT 2000000       /* bytes of a file with its data */

struct page_settings {
	const struct load_settings *load;
	const struct view_settings *view;
	const char *title;
	bool inverted;
};

/*
 * What report/page.h wants to know of them: the page begins with the view's metric, granularity and filters. The command line for it is made of
 * paths (borrowed, as all texts are). E_USAGE for a metric that p doesn't have. Finish it, also after a failure.
 */
struct page_plan {
	struct page_options options;
	const char **words;
};
int page_plan_make(const struct page_settings *s, char *const *paths, size_t n, const struct profile *p, uint32_t base,
                   const struct buf *notes, struct page_plan *ret, struct error *err);
void page_plan_finish(struct page_plan *plan);

/* Reads the PROFILEs as snapshots and names them; the file, at most max_bytes large (0: complete), is appended to out. */
int page_render(const struct page_settings *s, size_t max_bytes, char *const *paths, size_t n, struct buf *warnings,
                struct buf *out, struct error *err);

#endif
