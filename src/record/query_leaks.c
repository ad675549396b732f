/* /leaks: what grows over a range. */
#include <string.h>

#include "base/text.h"
#include "record/query_growth.h"
#include "record/query_routes.h"
#include "report/report.h"

#define ROWS 50

static const char *const places[] = { "stack", "function", "line", "file", "binary", "thread", "address", NULL };
static const char *const sorts[] = { "flat", "cum", NULL };
static const char *const formats[] = { "json", "text", "markdown", NULL };
static const char *const metrics[] = { "inuse_objects", "inuse_space", NULL };

struct ranking {
	int format;
	enum metric metric;
	bool gated;
	struct leaks_gate gate;
	struct leaks_options options;
	struct series_options series;
	struct view_options view;
};

static void param_ranking(struct params *p, struct ranking *ret)
{
	int by = param_choice(p, "by", places, 0);
	const char *limit = param_text(p, "limit"), *gate = param_text(p, "fail_above");
	uint64_t bytes = 0;
	*ret = (struct ranking){
		.format = param_choice(p, "format", formats, 0), .gated = gate,
		.metric = param_choice(p, "metric", metrics, 1) ? INUSE_SPACE : INUSE_OBJECTS,
		.options = { .n = (uint32_t)param_number(p, "n", ROWS, 0, UINT32_MAX), .all = param_flag(p, "every"), .fail_above = -1, .gate = gate },
		.series = { .by_stack = by == 0, .sort = (enum view_sort)param_choice(p, "sort", sorts, SORT_FLAT) },
		.view = {
			.by = by ? (enum granularity)(by - 1) : BY_FUNCTION, .column = -1,
			.focus = param_text(p, "focus"), .ignore = param_text(p, "ignore"),
		},
	};
	if (limit && !p->failed && !text_parse_bytes(limit, &bytes))
		p->failed = error_set(p->err, E_USAGE, "limit: a size like 2G, not '%.60s'", limit);
	if (gate && !p->failed && !leaks_gate_parse(gate, &ret->gate))
		p->failed = error_set(p->err, E_USAGE, "fail_above: a size per time like 1M/h or 64k/snapshot, not '%.60s'", gate);
	ret->options.limit = (double)bytes;
}

static int report(struct query *q, struct ranking *r, const struct series *s, struct error *err)
{
	static const struct report_style plain = { .columns = 0 };
	int failed = r->gated ? leaks_gate_rate(&r->gate, s, &r->options.fail_above, err) : 0;
	if (failed)
		return failed;
	if (r->format == 0)
		return report_leaks_json(s, &r->options, &q->out, err);
	q->type = r->format == 1 ? "text/plain; charset=utf-8" : "text/markdown; charset=utf-8";
	return r->format == 1 ? report_leaks(s, &r->options, &plain, &q->out, err) : report_leaks_markdown(s, &r->options, &q->out, err);
}

static int rank(struct query *q, struct ranking *r, struct growth_read *g, struct error *err)
{
	struct view *v = NULL;
	struct series *s = NULL;
	r->view.column = g->profile->metric[r->metric];
	if (r->view.column < 0)
		return query_missing(q, err, "the profiles have no %s", metric_name(r->metric));
	buf_addc(&g->notes, '\0');
	r->options.notes = g->notes.data;
	int failed = view_new(g->profile, &r->view, &v, err);
	if (!failed)
		failed = query_check(q, err);
	if (!failed)
		failed = series_new(v, &r->view, &r->series, &s, err);
	if (!failed)
		failed = query_check(q, err);
	if (!failed)
		failed = report(q, r, s, err);
	series_free(s);
	view_free(v);
	return failed;
}

int query_leaks(struct query *q, struct error *err)
{
	struct params p = { .q = q, .err = err };
	struct growth_of of;
	struct growth_read g;
	struct ranking r;
	param_growth(&p, &of);
	param_ranking(&p, &r);
	if (p.failed)
		return p.failed;
	int failed = growth_read(q, &of, &g, err);
	if (!failed)
		failed = rank(q, &r, &g, err);
	growth_finish(&g);
	return failed;
}
