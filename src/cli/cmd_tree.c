/* tree: calls from the root down, or with --invert from the allocation up. */
#include "cli/command.h"
#include "cli/settings.h"
#include "cli/show.h"

struct tree_settings {
	struct show_settings show;
	struct tree_options own;
};

static int render(struct view *v, const void *context, const struct report_style *style,
                  struct buf *out, struct error *err)
{
	const struct tree_settings *s = context;
	return s->show.text.json ? report_tree_json(v, &s->own, out, err)
	                         : report_tree(v, &s->own, style, out, err);
}

static int run(const void *settings, char **operands, size_t n, struct error *err)
{
	const struct tree_settings *s = settings;
	return show_profiles(&s->show, operands, n, render, s, err);
}

static const struct option_spec own_options[] = {
	{ "invert", 0, false, OPTION_ON, NULL, "from the allocating function up to its callers",
	  offsetof(struct tree_settings, own.inverted) },
	{ "min", 0, false, OPTION_FRACTION, "PART",
	  "cut what is smaller than this part of the total (default 0.5%)",
	  offsetof(struct tree_settings, own.min_fraction) },
	{ "depth", 0, false, OPTION_NUMBER, "N", "cut below N levels (0: none)",
	  offsetof(struct tree_settings, own.max_depth) },
};

static const struct option_group groups[] = {
	{ "Options", own_options, 3, 0 },
	GROUP_VIEW(offsetof(struct tree_settings, show.view)),
	GROUP_BASE(offsetof(struct tree_settings, show.load)),
	GROUP_LOAD(offsetof(struct tree_settings, show.load)),
	GROUP_TEXT(offsetof(struct tree_settings, show.text)),
	{ NULL, NULL, 0, 0 },
};

static const struct tree_settings defaults = {
	.show = SHOW_DEFAULTS,
	.own = { .min_fraction = 0.005 },
};

const struct command cmd_tree = {
	.name = "tree",
	.operands = "PROFILE…",
	.summary = "call tree: which way the bytes were reached",
	.description =
	    "Shows the calls that led to the memory as a tree, biggest branch first.\n",
	.example = "  heapgauge tree --depth 12 app.1234.0.f.heap\n"
	           "  heapgauge tree --invert --focus 'std::vector' app.1234.0.f.heap\n",
	.groups = groups,
	.defaults = &defaults,
	.settings_bytes = sizeof defaults,
	.min_operands = 1,
	.max_operands = SIZE_MAX,
	.run = run,
};
