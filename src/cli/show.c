/*
 * The path from PROFILEs to output. Everything is rendered in memory before the output
 * is touched, so that a failure leaves no part of it; warnings come after success,
 * so that a failure says exactly one thing.
 */
#include "cli/show.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/file.h"
#include "cli/command.h"
#include "cli/load.h"
#include "cli/progress.h"

int show_options(const struct view_settings *s, const struct profile *p, struct view_options *ret, struct error *err)
{
	*ret = (struct view_options){
		.by = (enum granularity)s->by,
		.show_allocator = s->show_allocator,
		.no_inlines = s->no_inlines,
		.focus = s->focus,
		.ignore = s->ignore,
		.hide = s->hide,
		.show = s->show,
		.show_from = s->show_from,
		.tagfocus = s->tagfocus,
		.tagignore = s->tagignore,
	};
	return metric_column(p, s->metric, &ret->column, err);
}

int show_view(const struct view_settings *s, struct profile *p, struct view **ret, struct error *err)
{
	struct view_options o;
	int failed = show_options(s, p, &o, err);
	return failed ? failed : view_new(p, &o, ret, err);
}

static bool goes_to_terminal(const struct text_settings *s)
{
	return (!s->output || strcmp(s->output, "-") == 0) && isatty(STDOUT_FILENO);
}

static struct report_style text_style(const struct text_settings *s)
{
	struct report_style style = { 0 };
	bool terminal = goes_to_terminal(s);
	const char *no_colour = getenv("NO_COLOR"), *kind = getenv("TERM");
	if (s->colour == COLOUR_AUTO)
		style.colour = terminal && !(no_colour && *no_colour) && kind && strcmp(kind, "dumb") != 0;
	else
		style.colour = s->colour == COLOUR_ALWAYS;
	struct winsize size;
	if (s->width)
		style.columns = s->width;
	else if (terminal)
		style.columns = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col ? size.ws_col : 80;
	return style;
}

int write_whole(const char *path, const struct buf *text, struct error *err)
{
	struct output o;
	if (text->failed)
		return error_set(err, E_LIMIT, "the output is larger than %zu bytes or than memory: filter or "
		                 "shorten it", text->max);
	progress_stop();
	output_catch_signals();
	int failed = output_open(&o, path, err);
	if (failed)
		return failed;
	failed = output_write(&o, text->data, text->len, err);
	if (!failed)
		failed = output_commit(&o, err);
	output_abort(&o);
	return failed;
}

static int render_profile(const struct show_settings *s, struct profile *p, render_fn *render,
                          const void *context, struct buf *out, struct error *err)
{
	struct view *v = NULL;
	progress_phase("adding up", 0);
	int failed = show_view(&s->view, p, &v, err);
	if (failed)
		return failed;
	struct report_style style = text_style(&s->text);
	failed = render(v, context, &style, out, err);
	view_free(v);
	return failed;
}

int show_loaded(const struct show_settings *s, struct profile *p, struct buf *warnings, render_fn *render,
                const void *context, struct error *err)
{
	struct buf out;
	buf_init(&out, BUF_MAX_DEFAULT);
	int failed = load_symbols(&s->load, p, warnings, err);
	if (!failed)
		failed = render_profile(s, p, render, context, &out, err);
	if (!failed)
		failed = write_whole(s->text.output, &out, err);
	if (!failed)
		print_warnings(warnings);
	buf_finish(&out);
	return failed;
}

int show_profiles(const struct show_settings *s, char *const *paths, size_t n, render_fn *render,
                  const void *context, struct error *err)
{
	struct profile *p = NULL;
	struct buf warnings;
	buf_init(&warnings, 1 << 20);
	int failed = load_profiles(&s->load, paths, n, &warnings, &p, err);
	if (!failed)
		failed = show_loaded(s, p, &warnings, render, context, err);
	profile_free(p);
	buf_finish(&warnings);
	return failed;
}
