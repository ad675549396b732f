/* convert: a profile in another tool's format, which the name of the output may say. */
#include <string.h>

#include "cli/command.h"
#include "cli/target.h"
#include "profile/profile.h"

struct convert_settings {
	struct target_settings what;
	int to;
	const char *output;
};

/* --- which format --- */

static const struct {
	const char *suffix;
	enum target to;
} suffixes[] = {
	{ ".pb.gz", TO_PPROF }, { ".pb", TO_PPROF }, { ".pprof", TO_PPROF }, { ".gz", TO_PPROF },
	{ ".folded", TO_FOLDED }, { ".collapsed", TO_FOLDED }, { ".txt", TO_FOLDED },
	{ ".speedscope.json", TO_SPEEDSCOPE }, { ".speedscope", TO_SPEEDSCOPE }, { ".json", TO_JSON },
	{ ".csv", TO_CSV }, { ".callgrind", TO_CALLGRIND }, { ".dot", TO_DOT }, { ".gv", TO_DOT },
	{ ".svg", TO_SVG }, { ".html", TO_HTML }, { ".htm", TO_HTML },
};

/* What the file's name asks for; pprof when it asks for nothing known. */
static enum target target_of(const char *path)
{
	size_t length = path ? strlen(path) : 0;
	for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
		size_t n = strlen(suffixes[i].suffix);
		if (length > n && strcmp(path + length - n, suffixes[i].suffix) == 0)
			return suffixes[i].to;
	}
	if (path && strncmp(path_base(path), "callgrind.out", 13) == 0)
		return TO_CALLGRIND;
	return TO_PPROF;
}

/* --- the command --- */

static int run(const void *settings, char **operands, size_t n, struct error *err)
{
	const struct convert_settings *s = settings;
	enum target to = s->to == TO_UNSET ? target_of(s->output) : (enum target)s->to;
	return target_run(&s->what, to, s->output, operands, n, err);
}

static const struct option_spec own_options[] = {
	{ "to", 0, false, OPTION_CHOICE, "pprof|folded|json|csv|callgrind|speedscope|dot|svg|html",
	  "the format (default: what the suffix of -o says, else pprof)", offsetof(struct convert_settings, to) },
	{ "by", 0, false, OPTION_CHOICE, BY_WORDS,
	  "what counts as one place (default line for callgrind and speedscope, else function)",
	  offsetof(struct convert_settings, what.view.by) },
	{ "raw", 0, false, OPTION_ON, NULL, "without names; pprof then holds bare addresses and build ids, to be named later",
	  offsetof(struct convert_settings, what.raw) },
	{ "title", 0, false, OPTION_TEXT, "TEXT", "headline, where the format has one",
	  offsetof(struct convert_settings, what.title) },
	{ "output", 'o', false, OPTION_TEXT, "FILE", "write to FILE: whole or not at all",
	  offsetof(struct convert_settings, output) },
};

static const struct option_group groups[] = {
	{ "Options", own_options, sizeof own_options / sizeof *own_options, 0 },
	GROUP_VIEW_WITHOUT_BY(offsetof(struct convert_settings, what.view)),
	GROUP_BASE(offsetof(struct convert_settings, what.load)),
	GROUP_LOAD(offsetof(struct convert_settings, what.load)),
	{ NULL, NULL, 0, 0 },
};

static const struct convert_settings defaults = {
	.what = { .load = LOAD_DEFAULTS, .view = { .by = TARGET_BY_UNSET } },
	.to = TO_UNSET,
};

const struct command cmd_convert = {
	.name = "convert",
	.operands = "PROFILE…",
	.summary = "pprof, folded, JSON, CSV, callgrind, speedscope, dot, SVG, HTML",
	.description =
	    "Writes the profile in another format. pprof holds the whole profile, gzip-compressed, for\n"
	    "'go tool pprof', Pyroscope, Parca, Polar Signals and others; the rest are texts of one metric\n"
	    "(--metric), with the filters applied.\n",
	.example = "  heapgauge convert -o heap.pb.gz app.1234.0.f.heap\n"
	           "  heapgauge convert --to folded app.1234.0.f.heap | less\n",
	.groups = groups,
	.defaults = &defaults,
	.settings_bytes = sizeof defaults,
	.min_operands = 1,
	.max_operands = SIZE_MAX,
	.run = run,
};
