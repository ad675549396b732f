/* top: the table of places by flat or cumulative bytes. */
#include "cli/command.h"
#include "cli/settings.h"
#include "cli/show.h"

struct top_settings {
	struct show_settings show;
	struct { uint32_t n; int sort; } own;
};

static int render(struct view *v, const void *context, const struct report_style *style,
                  struct buf *out, struct error *err)
{
	const struct top_settings *s = context;
	struct top_options o = { s->own.n, (enum view_sort)s->own.sort };
	return s->show.text.json ? report_top_json(v, &o, out, err)
	                         : report_top(v, &o, style, out, err);
}

static int run(const void *settings, char **operands, size_t n, struct error *err)
{
	const struct top_settings *s = settings;
	return show_profiles(&s->show, operands, n, render, s, err);
}

static const struct option_spec own_options[] = {
	{ "count", 'n', false, OPTION_NUMBER, "N", "rows shown (default 30, 0: all)",
	  offsetof(struct top_settings, own.n) },
	{ "sort", 0, false, OPTION_CHOICE, "flat|cum",
	  "by what the place holds itself (default) or with its callees", offsetof(struct top_settings, own.sort) },
};

static const struct option_group groups[] = {
	{ "Options", own_options, 2, 0 },
	GROUP_VIEW(offsetof(struct top_settings, show.view)),
	GROUP_BASE(offsetof(struct top_settings, show.load)),
	GROUP_LOAD(offsetof(struct top_settings, show.load)),
	GROUP_TEXT(offsetof(struct top_settings, show.text)),
	{ NULL, NULL, 0, 0 },
};

static const struct top_settings defaults = { .show = SHOW_DEFAULTS, .own = { .n = 30 } };

const struct command cmd_top = {
	.name = "top",
	.operands = "PROFILE…",
	.summary = "table of functions (lines, files, …) by the bytes they hold",
	.description =
	    "Shows who holds the memory: for every function what it allocated itself (flat) and\n"
	    "what it and everything it called allocated (cum), each with its 95 % sampling error.\n",
	.example = "  heapgauge top app.1234.0.f.heap\n"
	           "  heapgauge top --by line --sort cum -n 10 --focus parse heap.pb.gz\n",
	.groups = groups,
	.defaults = &defaults,
	.settings_bytes = sizeof defaults,
	.min_operands = 1,
	.max_operands = SIZE_MAX,
	.run = run,
};
