/*
 * One function for each way: the whole profile, as pprof, a view and the writer that fits, or the web page, which filters by
 * itself. Writers of pictures and tables are in report, those of files in format.
 */
#include "cli/target.h"

#include <string.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/load.h"
#include "cli/pages.h"
#include "cli/progress.h"
#include "cli/show.h"
#include "format/format.h"
#include "profile/operations.h"

#define TEXT_ROWS 30            /* as top has them */

/* Formats whose frames have a place for file and line get them unless something else is asked for. */
static enum granularity granularity_of(const struct target_settings *s, enum target to)
{
	if (s->view.by != TARGET_BY_UNSET)
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

static int to_pprof(const struct target_settings *s, struct profile *p, struct buf *warnings,
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

/* --- views --- */

static const char *program_name(const struct profile *p)
{
	return p->n_mappings ? profile_text(p, p->mappings[0].file) : "unknown";
}

static int write_view(const struct target_settings *s, enum target to, struct view *v,
                      struct buf *out, struct error *err)
{
	struct flame_options flame = { .title = s->title };
	struct top_options table = { .n = TEXT_ROWS };
	struct report_style plain = { 0 };
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
	case TO_TEXT:
		return report_top(v, &table, &plain, out, err);
	case TO_PPROF:
	case TO_HTML:
	case TO_UNSET:
		break;
	}
	return error_set(err, E_USAGE, "no text format was chosen");
}

static int to_view(const struct target_settings *s, enum target to, struct profile *p,
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

/* --- both --- */

static int check(const struct target_settings *s, enum target to, const char *output, struct error *err)
{
	if (to != TO_PPROF)
		return 0;
	if ((!output || strcmp(output, "-") == 0) && isatty(STDOUT_FILENO))
		return error_set(err, E_USAGE, "pprof is binary and standard output is a terminal: give -o FILE.pb.gz, or "
		                 "choose another --to");
	return refuse_view(&s->view, err);
}

static int make(const struct target_settings *s, enum target to, char **paths, size_t n, struct buf *warnings,
                struct buf *out, struct error *err)
{
	struct profile *p = NULL;
	const struct page_settings page = { .load = &s->load, .view = &s->view, .title = s->title };
	if (to == TO_HTML)
		return page_render(&page, PAGE_SIZE_DEFAULT, paths, n, warnings, out, err);
	int failed = load_profiles(&s->load, paths, n, warnings, &p, err);
	if (!failed)
		failed = to == TO_PPROF ? to_pprof(s, p, warnings, out, err) : to_view(s, to, p, warnings, out, err);
	profile_free(p);
	return failed;
}

int target_run(const struct target_settings *settings, enum target to, const char *output, char **paths, size_t n,
               struct error *err)
{
	struct target_settings s = *settings;
	if (s.raw)
		s.load.symbols = SYMBOL_NONE;
	int failed = check(&s, to, output, err);
	if (failed)
		return failed;
	struct buf out, warnings;
	buf_init(&out, BUF_MAX_DEFAULT);
	buf_init(&warnings, 1 << 20);
	failed = make(&s, to, paths, n, &warnings, &out, err);
	if (!failed)
		failed = write_whole(output, &out, err);
	if (!failed)
		print_warnings(&warnings);
	buf_finish(&out);
	buf_finish(&warnings);
	return failed;
}
