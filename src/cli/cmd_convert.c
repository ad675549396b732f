/*
 * convert: a profile in another tool's format. pprof carries the whole profile, all
 * types, unfiltered; the others are texts made from a view of one type.
 */
#include <string.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/load.h"
#include "cli/progress.h"
#include "cli/settings.h"
#include "cli/show.h"
#include "format/format.h"
#include "profile/operations.h"

#define BY_UNSET (-1)

enum target { TO_UNSET = -1, TO_PPROF, TO_FOLDED, TO_JSON, TO_CSV, TO_CALLGRIND, TO_SPEEDSCOPE, TO_DOT, TO_SVG };

struct convert_settings {
	struct load_settings load;
	struct view_settings view;
	int to;
	bool raw;
	const char *output, *title;
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
	{ ".svg", TO_SVG },
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

/* Formats whose frames have a place for file and line get them unless something else is asked for. */
static enum granularity granularity_of(const struct convert_settings *s, enum target to)
{
	if (s->view.by != BY_UNSET)
		return (enum granularity)s->view.by;
	return to == TO_CALLGRIND || to == TO_SPEEDSCOPE ? BY_LINE : BY_FUNCTION;
}

/* --- pprof --- */

static int refuse_view(const struct view_settings *v, struct error *err)
{
	const struct { const char *name; bool given; } filters[] = {
		{ "by", v->by > BY_FUNCTION }, { "metric", v->metric }, { "focus", v->focus },
		{ "ignore", v->ignore }, { "hide", v->hide }, { "show", v->show },
		{ "show-from", v->show_from }, { "tagfocus", v->tagfocus },
		{ "tagignore", v->tagignore }, { "no-inlines", v->no_inlines },
	};
	for (size_t i = 0; i < sizeof filters / sizeof *filters; i++)
		if (filters[i].given)
			return error_set(err, E_USAGE, "--%s has no meaning for pprof, which carries the whole profile: give "
			                 "it to the viewer, or choose another --to", filters[i].name);
	return 0;
}

static int to_pprof(const struct convert_settings *s, struct profile *p, struct buf *warnings,
                    struct buf *out, struct error *err)
{
	struct symbol_options o = load_symbol_options(&s->load);
	int failed = symbol_build_ids(p, &o, warnings, err);
	if (!failed && !s->raw)
		failed = load_symbols(&s->load, p, warnings, err);
	if (!failed && !s->view.show_allocator)
		failed = profile_trim_allocator(p, err);
	if (failed)
		return failed;
	struct pprof_write_options how = { .gzip = true, .show_allocator = s->view.show_allocator };
	progress_phase("writing pprof", 0);
	return pprof_write(p, &how, out, err);
}

/* --- texts --- */

static const char *program_name(const struct profile *p)
{
	return p->n_mappings ? profile_text(p, p->mappings[0].file) : "unknown";
}

static int write_view(const struct convert_settings *s, enum target to, struct view *v,
                      struct buf *out, struct error *err)
{
	struct flame_options flame = { .title = s->title };
	const struct profile *p = v->profile;
	switch (to) {
	case TO_FOLDED:
		return folded_write(v, out, err);
	case TO_JSON:
		return json_write(v, out, err);
	case TO_CSV:
		return csv_write(v, out, err);
	case TO_CALLGRIND:
		return callgrind_write(v, program_name(p), out, err);
	case TO_SPEEDSCOPE:
		return speedscope_write(v, s->title ? s->title : path_base(program_name(p)), out, err);
	case TO_DOT:
		return report_dot(v, out, err);
	case TO_SVG:
		return report_flame_svg(v, &flame, out, err);
	case TO_PPROF:
	case TO_UNSET:
		break;
	}
	return error_set(err, E_USAGE, "no text format was chosen");
}

static int to_text(const struct convert_settings *s, enum target to, struct profile *p,
                   struct buf *warnings, struct buf *out, struct error *err)
{
	struct view *v = NULL;
	struct view_settings view = s->view;
	view.by = granularity_of(s, to);
	int failed = load_symbols(&s->load, p, warnings, err);
	if (!failed) {
		progress_phase("writing", 0);
		failed = show_view(&view, p, &v, err);
	}
	if (!failed)
		failed = write_view(s, to, v, out, err);
	view_free(v);
	return failed;
}

/* --- the command --- */

static int check(const struct convert_settings *s, enum target to, struct error *err)
{
	if (to != TO_PPROF)
		return 0;
	if ((!s->output || strcmp(s->output, "-") == 0) && isatty(STDOUT_FILENO))
		return error_set(err, E_USAGE, "pprof is binary and standard output is a terminal: give -o FILE.pb.gz, or "
		                 "choose another --to");
	return refuse_view(&s->view, err);
}

static int convert(const struct convert_settings *s, enum target to, char **paths, size_t n,
                   struct buf *warnings, struct buf *out, struct error *err)
{
	struct profile *p = NULL;
	int failed = load_profiles(&s->load, paths, n, warnings, &p, err);
	if (!failed)
		failed = to == TO_PPROF ? to_pprof(s, p, warnings, out, err)
		                        : to_text(s, to, p, warnings, out, err);
	profile_free(p);
	return failed;
}

static int run(const void *settings, char **operands, size_t n, struct error *err)
{
	struct convert_settings s = *(const struct convert_settings *)settings;
	enum target to = s.to == TO_UNSET ? target_of(s.output) : (enum target)s.to;
	if (s.raw)
		s.load.symbols = SYMBOL_NONE;
	int failed = check(&s, to, err);
	if (failed)
		return failed;
	struct buf out, warnings;
	buf_init(&out, BUF_MAX_DEFAULT);
	buf_init(&warnings, 1 << 20);
	failed = convert(&s, to, operands, n, &warnings, &out, err);
	if (!failed)
		failed = write_whole(s.output, &out, err);
	if (!failed)
		print_warnings(&warnings);
	buf_finish(&out);
	buf_finish(&warnings);
	return failed;
}

static const struct option_spec own_options[] = {
	{ "to", 0, false, OPTION_CHOICE, "pprof|folded|json|csv|callgrind|speedscope|dot|svg",
	  "the format (default: what the suffix of -o says, else pprof)", offsetof(struct convert_settings, to) },
	{ "by", 0, false, OPTION_CHOICE, BY_WORDS,
	  "what counts as one place (default line for callgrind and speedscope, else function)",
	  offsetof(struct convert_settings, view.by) },
	{ "raw", 0, false, OPTION_ON, NULL, "without names; pprof then holds bare addresses and build ids, to be named later",
	  offsetof(struct convert_settings, raw) },
	{ "title", 0, false, OPTION_TEXT, "TEXT", "headline, where the format has one",
	  offsetof(struct convert_settings, title) },
	{ "output", 'o', false, OPTION_TEXT, "FILE", "write to FILE: whole or not at all",
	  offsetof(struct convert_settings, output) },
};

static const struct option_group groups[] = {
	{ "Options", own_options, sizeof own_options / sizeof *own_options, 0 },
	GROUP_VIEW_WITHOUT_BY(offsetof(struct convert_settings, view)),
	GROUP_BASE(offsetof(struct convert_settings, load)),
	GROUP_LOAD(offsetof(struct convert_settings, load)),
	{ NULL, NULL, 0, 0 },
};

static const struct convert_settings defaults = {
	.load = LOAD_DEFAULTS,
	.view = { .by = BY_UNSET },
	.to = TO_UNSET,
};

const struct command cmd_convert = {
	.name = "convert",
	.operands = "PROFILE…",
	.summary = "pprof, folded, JSON, CSV, callgrind, speedscope, dot, SVG",
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
