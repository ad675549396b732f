/* peek: one function between its callers and its callees. */
#include "cli/command.h"
#include "cli/settings.h"
#include "cli/show.h"

struct peek_context {
	const struct show_settings *show;
	const char *regex;
};

static int render(struct view *v, const void *context, const struct report_style *style,
                  struct buf *out, struct error *err)
{
	const struct peek_context *c = context;
	return c->show->text.json ? report_peek_json(v, c->regex, out, err)
	                          : report_peek(v, c->regex, style, out, err);
}

static int run(const void *settings, char **operands, size_t n, struct error *err)
{
	struct peek_context context = { settings, operands[0] };
	return show_profiles(settings, operands + 1, n - 1, render, &context, err);
}

static const struct option_group groups[] = {
	GROUP_VIEW(offsetof(struct show_settings, view)),
	GROUP_BASE(offsetof(struct show_settings, load)),
	GROUP_LOAD(offsetof(struct show_settings, load)),
	GROUP_TEXT(offsetof(struct show_settings, text)),
	{ NULL, NULL, 0, 0 },
};

static const struct show_settings defaults = SHOW_DEFAULTS;

const struct command cmd_peek = {
	.name = "peek",
	.operands = "RE PROFILE…",
	.summary = "callers and callees of the functions that match RE",
	.description =
	    "Shows every function whose name matches the extended regular expression RE, with who\n"
	    "called it above and what it called below, each with its share.\n",
	.example = "  heapgauge peek '^zmalloc$' redis-server.1234.0.f.heap\n",
	.groups = groups,
	.defaults = &defaults,
	.settings_bytes = sizeof defaults,
	.min_operands = 2,
	.max_operands = SIZE_MAX,
	.run = run,
};
