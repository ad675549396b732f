/* /profile: what a selection had at a moment or over a range, less a base or not, in one of the formats. */
#include <string.h>

#include "format/format.h"
#include "profile/operations.h"
#include "record/query_routes.h"
#include "record/query_snapshot.h"
#include "report/report.h"

#define ROWS 100

enum { TO_PPROF, TO_FOLDED, TO_JSON, TO_CSV, TO_TOP, TO_TEXT, TO_SPEEDSCOPE, TO_CALLGRIND, TO_SVG, TO_DOT };

static const char *const formats[] = { "pprof", "folded", "json", "csv", "top", "text", "speedscope", "callgrind", "svg", "dot", NULL };
static const char *const granularities[] = { "function", "line", "file", "binary", "thread", "address", NULL };

struct rendering {
	int format;
	bool has_metric, names;
	enum metric metric;
	uint32_t n;
	struct view_options view;
};

static void param_rendering(struct params *p, struct rendering *ret)
{
	*ret = (struct rendering){
		.format = param_choice(p, "format", formats, TO_PPROF), .has_metric = param_given(p, "metric"), .names = true,
		.metric = param_metric(p, INUSE_SPACE), .n = (uint32_t)param_number(p, "n", ROWS, 0, UINT32_MAX),
	};
	if (param_given(p, "symbolize"))
		ret->names = param_flag(p, "symbolize");
	ret->view = (struct view_options){
		.by = (enum granularity)param_choice(p, "by", granularities, BY_FUNCTION), .column = -1,
		.focus = param_text(p, "focus"), .ignore = param_text(p, "ignore"), .hide = param_text(p, "hide"),
		.show = param_text(p, "show"), .show_from = param_text(p, "show_from"),
	};
}

static int render_view(struct query *q, const struct rendering *r, struct view *v, struct error *err)
{
	const struct top_options top = { .n = r->n, .sort = SORT_FLAT };
	const struct report_style plain = { .columns = 0 };
	const struct flame_options flame = { .title = q->api->settings.title };
	struct buf *out = &q->out;
	q->type = "text/plain; charset=utf-8";
	if (r->format == TO_JSON || r->format == TO_TOP || r->format == TO_SPEEDSCOPE)
		q->type = "application/json";
	switch (r->format) {
	case TO_FOLDED: return folded_write(v, out, err);
	case TO_JSON: return json_write(v, out, err);
	case TO_CSV: return csv_write(v, out, err);
	case TO_TOP: return v->diff ? report_diff_json(v, &top, out, err) : report_top_json(v, &top, out, err);
	case TO_TEXT: return v->diff ? report_diff(v, &top, &plain, out, err) : report_top(v, &top, &plain, out, err);
	case TO_SPEEDSCOPE: return speedscope_write(v, q->api->settings.title, out, err);
	case TO_CALLGRIND: return callgrind_write(v, q->api->settings.title, out, err);
	case TO_DOT: return report_dot(v, out, err);
	}
	q->type = "image/svg+xml";
	return report_flame_svg(v, &flame, out, err);
}

static int render(struct query *q, struct rendering *r, struct profile *p, struct error *err)
{
	static const struct pprof_write_options gzipped = { .gzip = true };
	struct view *v = NULL;
	if (!r->names)
		snapshot_forget_names(p);
	if (r->format == TO_PPROF) {
		q->type = "application/octet-stream";
		return pprof_write(p, &gzipped, &q->out, err);
	}
	if (r->has_metric)
		r->view.column = p->metric[r->metric];
	if (r->has_metric && r->view.column < 0)
		return query_missing(q, err, "the profile has no %s", metric_name(r->metric));
	int failed = view_new(p, &r->view, &v, err);
	if (!failed)
		failed = query_check(q, err);
	if (!failed)
		failed = render_view(q, r, v, err);
	view_free(v);
	return failed;
}

int query_profile(struct query *q, struct error *err)
{
	struct params p = { .q = q, .err = err };
	struct snapshot_of now_of, base_of;
	struct rendering r;
	struct buf notes;
	struct profile *now = NULL, *base = NULL, *both = NULL;
	param_snapshot(&p, &now_of);
	bool has_base = param_base(&p, &now_of, &base_of);
	param_rendering(&p, &r);
	if (p.failed)
		return p.failed;
	buf_init(&notes, 1 << 16);
	int failed = snapshot_read(q, &now_of, &now, &notes, err);
	if (!failed && has_base)
		failed = snapshot_read(q, &base_of, &base, &notes, err);
	if (!failed && has_base)
		failed = profile_diff(base, now, &both, err);
	if (!failed)
		failed = query_check(q, err);
	if (!failed)
		failed = render(q, &r, both ? both : now, err);
	profile_free(both);
	profile_free(base);
	profile_free(now);
	buf_finish(&notes);
	return failed;
}
