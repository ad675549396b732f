/* traces: whole stacks, biggest first. */
#include "cli/command.h"
#include "cli/settings.h"
#include "cli/show.h"

struct traces_settings {
	struct show_settings show;
	uint32_t n;
};

static int render(struct view *v, const void *context, const struct report_style *style,
                  struct buf *out, struct error *err)
{
	const struct traces_settings *s = context;
	return s->show.text.json ? report_traces_json(v, s->n, out, err)
	                         : report_traces(v, s->n, style, out, err);
}

static int run(const void *settings, char **operands, size_t n, struct error *err)
{
	const struct traces_settings *s = settings;
	return show_profiles(&s->show, operands, n, render, s, err);
}

static const struct option_spec own_options[] = {
	{ "count", 'n', false, OPTION_NUMBER, "N", "stacks shown (default 10, 0: all)",
	  offsetof(struct traces_settings, n) },
};

static const struct option_group groups[] = {
	{ "Options", own_options, 1, 0 },
	GROUP_VIEW(offsetof(struct traces_settings, show.view)),
	GROUP_BASE(offsetof(struct traces_settings, show.load)),
	GROUP_LOAD(offsetof(struct traces_settings, show.load)),
	GROUP_TEXT(offsetof(struct traces_settings, show.text)),
	{ NULL, NULL, 0, 0 },
};

static const struct traces_settings defaults = { .show = SHOW_DEFAULTS, .n = 10 };

const struct command cmd_traces = {
	.name = "traces",
	.operands = "PROFILE…",
	.summary = "full stacks, biggest first",
	.description = "Shows whole stacks, the biggest first, the allocating function on top.\n",
	.example = "  heapgauge traces -n 3 --by line app.1234.0.f.heap\n",
	.groups = groups,
	.defaults = &defaults,
	.settings_bytes = sizeof defaults,
	.min_operands = 1,
	.max_operands = SIZE_MAX,
	.run = run,
};
