/* diff: what grew and shrank between two profiles. */
#include "cli/command.h"
#include "cli/settings.h"
#include "cli/show.h"

struct diff_settings {
	struct show_settings show;
	struct { uint32_t n; int sort; } own;
};

static int render(struct view *v, const void *context, const struct report_style *style,
                  struct buf *out, struct error *err)
{
	const struct diff_settings *s = context;
	struct top_options o = { s->own.n, (enum view_sort)s->own.sort };
	return s->show.text.json ? report_diff_json(v, &o, out, err)
	                         : report_diff(v, &o, style, out, err);
}

static int run(const void *settings, char **operands, size_t n, struct error *err)
{
	struct diff_settings s = *(const struct diff_settings *)settings;
	s.show.load.base = operands[0];
	return show_profiles(&s.show, operands + 1, n - 1, render, &s, err);
}

static const struct option_spec own_options[] = {
	{ "count", 'n', false, OPTION_NUMBER, "N", "rows shown (default 30, 0: all)",
	  offsetof(struct diff_settings, own.n) },
	{ "sort", 0, false, OPTION_CHOICE, "flat|cum",
	  "by the change of what the place holds itself (default) or with its callees",
	  offsetof(struct diff_settings, own.sort) },
};

static const struct option_group groups[] = {
	{ "Options", own_options, 2, 0 },
	GROUP_VIEW(offsetof(struct diff_settings, show.view)),
	GROUP_LOAD(offsetof(struct diff_settings, show.load)),
	GROUP_TEXT(offsetof(struct diff_settings, show.text)),
	{ NULL, NULL, 0, 0 },
};

static const struct diff_settings defaults = { .show = SHOW_DEFAULTS, .own = { .n = 30 } };

const struct command cmd_diff = {
	.name = "diff",
	.operands = "BASE PROFILE…",
	.summary = "what grew and shrank since BASE, noise marked",
	.description =
	    "Subtracts BASE from PROFILE: two moments of one process, or two processes. A change that\n"
	    "sampling alone explains is marked as noise and listed last. Frames are matched by file and\n"
	    "offset or by name, so restarts and address randomization do no harm. Several PROFILEs\n"
	    "after BASE need --merge. Every other report shows differences too, with --base.\n",
	.example = "  heapgauge diff app.1234.0.i0.heap app.1234.9.i9.heap\n",
	.groups = groups,
	.defaults = &defaults,
	.settings_bytes = sizeof defaults,
	.min_operands = 2,
	.max_operands = SIZE_MAX,
	.run = run,
};
