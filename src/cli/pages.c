/*
 * The page is made from all types of a profile and filters by itself: of the view's options it only gets to know.
 */
#include "cli/pages.h"

#include <stdlib.h>
#include <string.h>

#include "cli/load.h"
#include "cli/progress.h"

#define WORDS_MAX 32            /* besides PROFILEs, and debug-dir's */

/* "--name", "value" unless there is none. */
static size_t add_option(const char **words, size_t n, const char *name, const char *value)
{
	if (value) {
		words[n++] = name;
		words[n++] = value;
	}
	return n;
}

/* What the profile was made with, so that another command gets the same. */
static size_t add_options(const struct page_settings *s, const char **words, size_t n)
{
	static const char *const depths[] = { "none", "table", "full" }, *const demangle[] = { "full", "templates", "simple", "none" };
	const struct load_settings *l = s->load;
	const struct view_settings *v = s->view;
	if (v->show_allocator)
		words[n++] = "--show-allocator";
	if (v->no_inlines)
		words[n++] = "--no-inlines";
	n = add_option(words, n, "--tagfocus", v->tagfocus);
	n = add_option(words, n, "--tagignore", v->tagignore);
	n = add_option(words, n, "--symbols", l->symbols == SYMBOL_FULL ? NULL : depths[l->symbols]);
	n = add_option(words, n, "--demangle", l->demangle == 0 ? NULL : demangle[l->demangle]);
	n = add_option(words, n, "--binary", l->binary);
	n = add_option(words, n, "--perf-map", l->perf_map);
	n = add_option(words, n, "--sysroot", l->names.sysroot);
	for (size_t i = 0; i < l->names.debug_dir.n; i++)
		n = add_option(words, n, "--debug-dir", l->names.debug_dir.items[i]);
	n = add_option(words, n, "--token-file", l->token_file);
	n = add_option(words, n, "--base", l->base);
	if (l->merge)
		words[n++] = "--merge";
	if (l->partial)
		words[n++] = "--partial";
	return n;
}

int page_plan_make(const struct page_settings *s, char *const *paths, size_t n, const struct profile *p, uint32_t base,
                   const struct buf *notes, struct page_plan *ret, struct error *err)
{
	const struct view_settings *v = s->view;
	*ret = (struct page_plan){ .words = calloc(WORDS_MAX + 2 * s->load->names.debug_dir.n + n, sizeof(char *)) };
	if (!ret->words)
		return error_nomem(err, "the page's command line");
	size_t words = 0;
	ret->words[words++] = "heapgauge";
	words = add_options(s, ret->words, words);
	for (size_t i = 0; i < n; i++)
		ret->words[words++] = paths[i];
	ret->options = (struct page_options){
		.title = s->title, .inverted = s->inverted, .base = base, .notes = notes, .command = ret->words, .n_command = words,
		.view = {
			.by = v->by < 0 ? BY_FUNCTION : (enum granularity)v->by,
			.show_allocator = v->show_allocator, .no_inlines = v->no_inlines,
			.focus = v->focus, .ignore = v->ignore, .hide = v->hide, .show = v->show, .show_from = v->show_from,
			.tagfocus = v->tagfocus, .tagignore = v->tagignore,
		},
	};
	return metric_column(p, v->metric, &ret->options.view.column, err);
}

void page_plan_finish(struct page_plan *plan)
{
	free(plan->words);
	plan->words = NULL;
}

int page_render(const struct page_settings *s, size_t max_bytes, char *const *paths, size_t n, struct buf *warnings,
                struct buf *out, struct error *err)
{
	struct profile *p = NULL;
	struct page_plan plan = { .words = NULL };
	uint32_t base;
	int failed = page_available(err);
	if (!failed)
		failed = load_snapshots(s->load, paths, n, warnings, &p, &base, err);
	if (!failed)
		failed = load_symbols(s->load, p, warnings, err);
	if (!failed) {
		progress_phase("writing", 0);
		failed = page_plan_make(s, paths, n, p, base, warnings, &plan, err);
	}
	if (!failed)
		failed = page_file(p, &plan.options, max_bytes, out, err);
	page_plan_finish(&plan);
	profile_free(p);
	return failed;
}
