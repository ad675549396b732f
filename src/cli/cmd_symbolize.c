/*
 * symbolize: a profile with names, as a file or as a picture. It is also what the agent starts for an
 * answer with names: then with the profile on its standard input.
 */
#include "cli/command.h"
#include "cli/target.h"

struct symbolize_settings {
	struct target_settings what;
	int to;                         /* index in targets */
	const char *output;
};

#define TO_WORDS "pprof|folded|svg|html|text|json"
static const enum target targets[] = { TO_PPROF, TO_FOLDED, TO_SVG, TO_HTML, TO_TEXT, TO_JSON };

static int run(const void *settings, char **operands, size_t n, struct error *err)
{
	const struct symbolize_settings *s = settings;
	return target_run(&s->what, targets[s->to], s->output, operands, n, err);
}

static const struct option_spec own_options[] = {
	{ "to", 0, false, OPTION_CHOICE, TO_WORDS, "the form: a profile, or a report made from it (default pprof)",
	  offsetof(struct symbolize_settings, to) },
	{ "title", 0, false, OPTION_TEXT, "TEXT", "headline of a picture", offsetof(struct symbolize_settings, what.title) },
	{ "name", 0, false, OPTION_TEXT, "TEXT", "what reports call a profile that comes through standard input",
	  offsetof(struct symbolize_settings, what.load.stdin_name) },
	{ "output", 'o', false, OPTION_TEXT, "FILE", "write to FILE: whole or not at all",
	  offsetof(struct symbolize_settings, output) },
};

static const struct option_group groups[] = {
	{ "Options", own_options, sizeof own_options / sizeof *own_options, 0 },
	GROUP_VIEW(offsetof(struct symbolize_settings, what.view)),
	GROUP_BASE(offsetof(struct symbolize_settings, what.load)),
	GROUP_LOAD(offsetof(struct symbolize_settings, what.load)),
	{ NULL, NULL, 0, 0 },
};

static const struct symbolize_settings defaults = { .what = { .load = LOAD_DEFAULTS, .view = { .by = TARGET_BY_UNSET } } };

const struct command cmd_symbolize = {
	.name = "symbolize",
	.operands = "PROFILE…",
	.summary = "add names, files, lines and inlined calls to a profile",
	.description =
	    "Looks up what a profile's addresses are called, in the binaries it names or those with the\n"
	    "same build ids, and writes it again, or a report made from it.\n",
	.example = "  curl -s localhost:6060/debug/pprof/heap | heapgauge symbolize - > named.pb.gz\n"
	           "  heapgauge symbolize --to html stranger.pb.gz > heap.html\n",
	.groups = groups,
	.defaults = &defaults,
	.settings_bytes = sizeof defaults,
	.min_operands = 1,
	.max_operands = SIZE_MAX,
	.run = run,
};
