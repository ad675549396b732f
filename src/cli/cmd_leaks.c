/* leaks: what grows over a series of profiles of one process, and a gate for CI. */
#include <math.h>
#include <string.h>

#include "base/text.h"
#include "cli/command.h"
#include "cli/series.h"
#include "cli/settings.h"
#include "cli/show.h"

#define BY_STACK_WORDS "stack|" BY_WORDS

struct leaks_settings {
	struct show_settings show;
	struct {
		uint32_t n;
		bool all, markdown;
		int by, sort;
		uint64_t limit;
		const char *fail_above, *interval;
	} own;
};

/* What the options mean, and what came of it. */
struct leaks_run {
	const struct leaks_settings *settings;
	double interval_seconds;            /* 0: none */
	struct leaks_gate gate;             /* when there is one */
	struct buf notes;
	bool *ret_tripped;
};

/* --- numbers with units --- */

/* "10s", "5min", "1h". */
static int interval_parse(const char *text, double *ret, struct error *err)
{
	size_t n = strspn(text, "0123456789");
	uint64_t count;
	double unit;
	if (!n || !text_parse_u64(text, n, 10, &count) || count == 0 || !leaks_time_unit(text + n, &unit))
		return error_set(err, E_USAGE, "--interval takes a time like 10s, 5min or 1h, not '%s'", text);
	*ret = (double)count * unit;
	return 0;
}

/* --- the run --- */

static int render(struct view *v, const void *context, const struct report_style *style, struct buf *out,
                  struct error *err)
{
	const struct leaks_run *r = context;
	const struct leaks_settings *s = r->settings;
	struct series_options how = { s->own.by == 0, (enum view_sort)s->own.sort, r->interval_seconds };
	struct leaks_options o = { .n = s->own.n, .all = s->own.all, .limit = (double)s->own.limit, .gate = s->own.fail_above,
		                   .fail_above = -1, .notes = r->notes.data };
	struct view_options vo;
	struct series *series = NULL;
	int failed = show_options(&s->show.view, v->profile, &vo, err);
	if (!failed)
		failed = series_new(v, &vo, &how, &series, err);
	if (!failed && o.gate)
		failed = leaks_gate_rate(&r->gate, series, &o.fail_above, err);
	if (!failed)
		failed = s->show.text.json  ? report_leaks_json(series, &o, out, err)
		         : s->own.markdown ? report_leaks_markdown(series, &o, out, err)
		                           : report_leaks(series, &o, style, out, err);
	if (!failed)
		*r->ret_tripped = report_leaks_tripped(series, &o);
	series_free(series);
	return failed;
}

static int finish_notes(struct buf *notes, struct error *err)
{
	buf_addc(notes, '\0');
	return notes->failed ? error_nomem(err, "the notes") : 0;
}

static int run(const void *settings, char **operands, size_t n, struct error *err)
{
	struct leaks_settings s = *(const struct leaks_settings *)settings;
	bool tripped = false;
	struct leaks_run r = { .settings = &s, .ret_tripped = &tripped };
	struct profile *p = NULL;
	struct buf warnings;
	if (s.show.load.merge)
		return error_set(err, E_USAGE, "--merge: leaks looks at one process at a time");
	if (s.own.by > 0)
		s.show.view.by = s.own.by - 1;
	int failed = 0;
	if (s.own.fail_above && !leaks_gate_parse(s.own.fail_above, &r.gate))
		failed = error_set(err, E_USAGE, "--fail-above takes a size per time, like 1M/h, 100k/min or 64k/snapshot, not '%s'",
		                   s.own.fail_above);
	if (!failed && s.own.interval)
		failed = interval_parse(s.own.interval, &r.interval_seconds, err);
	if (failed)
		return failed;
	buf_init(&warnings, 1 << 20);
	buf_init(&r.notes, 1 << 20);
	failed = load_series(&s.show.load, operands, n, 2, &warnings, &r.notes, &p, err);
	if (!failed)
		failed = finish_notes(&r.notes, err);
	if (!failed)
		failed = show_loaded(&s.show, p, &warnings, render, &r, err);
	profile_free(p);
	buf_finish(&r.notes);
	buf_finish(&warnings);
	return failed ? failed : tripped ? EXIT_GATE : EXIT_DONE;
}

#define OWN(field) offsetof(struct leaks_settings, own.field)

static const struct option_spec own_options[] = {
	{ "count", 'n', false, OPTION_NUMBER, "N", "rows shown (default 20, 0: all)", OWN(n) },
	{ "all", 0, false, OPTION_ON, NULL, "also what is noise, and what shrank", OWN(all) },
	{ "by", 0, false, OPTION_CHOICE, BY_STACK_WORDS, "what counts as one place (default stack)", OWN(by) },
	{ "sort", 0, false, OPTION_CHOICE, "flat|cum",
	  "but by stack: the growth of what the place holds itself (default) or with its callees", OWN(sort) },
	{ "limit", 0, false, OPTION_SIZE, "SIZE", "tell when the total will have grown to SIZE", OWN(limit) },
	{ "fail-above", 0, false, OPTION_TEXT, "RATE",
	  "exit with 3 when a place grows steadily by more than RATE beyond doubt: 1M/h, 100k/min, 64k/snapshot", OWN(fail_above) },
	{ "interval", 0, false, OPTION_TEXT, "TIME", "the profiles are so far apart, whatever their dates: 10s, 5min, 1h", OWN(interval) },
	{ "markdown", 0, false, OPTION_ON, NULL, "Markdown for a comment on a change", OWN(markdown) },
};

static const struct option_group groups[] = {
	{ "Options", own_options, sizeof own_options / sizeof *own_options, 0 },
	GROUP_VIEW_WITHOUT_BY(offsetof(struct leaks_settings, show.view)),
	GROUP_LOAD(offsetof(struct leaks_settings, show.load)),
	GROUP_TEXT(offsetof(struct leaks_settings, show.text)),
	{ NULL, NULL, 0, 0 },
};

static const struct leaks_settings defaults = { .show = SHOW_DEFAULTS, .own = { .n = 20 } };

const struct command cmd_leaks = {
	.name = "leaks",
	.operands = "PROFILE…",
	.summary = "what grows over a series of one process' profiles, and how surely",
	.description =
	    "Ranks stacks by how fast they grow over the PROFILEs, which are moments of one process: bytes per\n"
	    "hour with a 95 % interval, and whether the growth goes on (steady), slows, stands (plateau), came\n"
	    "at once (step) or falls back (saw-tooth). Five profiles are the least, ten or more are better.\n",
	.example = "  heapgauge leaks --limit 2G app.1234.*.heap\n"
	           "  heapgauge leaks --fail-above 1M/h --markdown -o comment.md app.1234.*.heap\n",
	.groups = groups,
	.defaults = &defaults,
	.settings_bytes = sizeof defaults,
	.min_operands = 1,
	.max_operands = SIZE_MAX,
	.run = run,
};
