/* /page: the data block of the web page, of one profile, of two, or of the moments of a range. */
#include "report/page.h"

#include <stdlib.h>
#include <string.h>

#include "profile/operations.h"
#include "record/query_growth.h"
#include "record/query_routes.h"

#define BLOCK_BYTES 500000
#define BLOCK_BYTES_MIN 20000
#define COMMAND_BYTES ((size_t)1 << 20)
#define COMMAND_WORDS 256

/* The command line that gives the same: words that lie behind each other in text, each ended by a NUL. */
struct command_line {
	struct buf text;
	const char *words[COMMAND_WORDS];
	size_t n;
	size_t starts[COMMAND_WORDS];
};

struct paging {
	struct page_options options;
	bool names, has_metric;
	enum metric metric;
};

static void begin_word(struct command_line *c)
{
	if (c->n < COMMAND_WORDS)
		c->starts[c->n++] = c->text.len;
}

static void add_word(struct command_line *c, const char *word)
{
	begin_word(c);
	buf_add(&c->text, word, strlen(word) + 1);
}

static void add_snapshot_word(struct command_line *c, const struct query *q, const struct snapshot_of *of)
{
	begin_word(c);
	snapshot_add_url(q, of, &c->text);
	buf_addc(&c->text, '\0');
}

static void command_begin(struct command_line *c, const struct view_options *v)
{
	*c = (struct command_line){ .n = 0 };
	buf_init(&c->text, COMMAND_BYTES);
	add_word(c, "heapgauge");
	if (v->show_allocator)
		add_word(c, "--show-allocator");
	if (v->no_inlines)
		add_word(c, "--no-inlines");
}

static void command_end(struct command_line *c, struct page_options *o)
{
	size_t n = c->text.data && !c->text.failed ? c->n : 0;
	for (size_t i = 0; i < n; i++)
		c->words[i] = c->text.data + c->starts[i];
	o->command = c->words;
	o->n_command = n;
}

static void param_paging(struct params *p, struct paging *ret)
{
	bool all = param_flag(p, "all");
	*ret = (struct paging){
		.options = { .title = p->q->api->settings.title, .base = PROFILE_NONE },
		.names = !param_given(p, "symbolize") || param_flag(p, "symbolize"),
		.has_metric = param_given(p, "metric"), .metric = param_metric(p, INUSE_SPACE),
	};
	ret->options.limit_bytes = param_number(p, "max_bytes", BLOCK_BYTES, BLOCK_BYTES_MIN, SIZE_MAX / 2);
	if (all)
		ret->options.limit_bytes = 0;
	ret->options.view = (struct view_options){ .show_allocator = param_flag(p, "show_allocator"), .no_inlines = param_flag(p, "no_inlines") };
}

/* Notes of the store's side, and the block. */
static int add_block(struct query *q, struct paging *paging, struct profile *p, const struct buf *notes, struct error *err)
{
	int column = paging->has_metric ? p->metric[paging->metric] : profile_default_column(p);
	if (column < 0)
		return query_missing(q, err, "the profile has no %s", metric_name(paging->metric));
	if (!paging->names)
		snapshot_forget_names(p);
	paging->options.view.column = column;
	paging->options.notes = notes->len ? notes : NULL;
	q->type = "application/octet-stream";
	int failed = query_check_memory(q, 3 * snapshot_bytes(p), err);
	return failed ? failed : page_block(p, &paging->options, &q->out, NULL, err);
}

static int page_of_profile(struct query *q, struct params *params, struct paging *paging, struct error *err)
{
	struct snapshot_of now_of, base_of;
	struct profile *sides[2] = { NULL, NULL }, *both = NULL;
	struct command_line command;
	struct buf notes;
	param_snapshot(params, &now_of);
	bool has_base = param_base(params, &now_of, &base_of);
	if (params->failed)
		return params->failed;
	buf_init(&notes, 1 << 16);
	command_begin(&command, &paging->options.view);
	int failed = snapshot_read(q, &now_of, &sides[1], &notes, err);
	if (!failed && has_base) {
		failed = snapshot_read(q, &base_of, &sides[0], &notes, err);
		paging->options.base = 0;
		add_word(&command, "--base");
		add_snapshot_word(&command, q, &base_of);
	}
	if (!failed && has_base)
		failed = profile_series((const struct profile *const *)sides, 2, &both, err);
	add_snapshot_word(&command, q, &now_of);
	command_end(&command, &paging->options);
	if (!failed)
		failed = query_check(q, err);
	if (!failed)
		failed = add_block(q, paging, both ? both : sides[1], &notes, err);
	profile_free(both);
	profile_free(sides[0]);
	profile_free(sides[1]);
	buf_finish(&command.text);
	buf_finish(&notes);
	return failed;
}

/* Each moment is a PROFILE. */
static void add_moment_words(struct command_line *c, const struct query *q, const struct growth_of *of, const struct growth_read *g)
{
	for (size_t i = 0; i < g->n_times; i++) {
		struct snapshot_of moment = { .what = of->what, .at_ms = g->times_ms[i] };
		if (g->series == UINT32_MAX) {
			add_snapshot_word(c, q, &moment);
			continue;
		}
		begin_word(c);
		snapshot_add_series_url(q, g->series, g->times_ms[i], &c->text);
		buf_addc(&c->text, '\0');
	}
}

static int page_of_growth(struct query *q, struct params *params, struct paging *paging, struct error *err)
{
	static const char *const others[] = { "at", "mode", "base_match", "base_series", "base_at", "base_from", "base_to", NULL };
	struct growth_of of;
	struct growth_read g;
	struct command_line command;
	param_growth(params, &of);
	for (size_t i = 0; others[i]; i++)
		if (param_given(params, others[i]) && !params->failed)
			params->failed = error_set(err, E_USAGE, "%s: not with view=growth", others[i]);
	if (params->failed)
		return params->failed;
	int failed = growth_read(q, &of, &g, err);
	if (!failed) {
		command_begin(&command, &paging->options.view);
		add_moment_words(&command, q, &of, &g);
		command_end(&command, &paging->options);
		failed = add_block(q, paging, g.profile, &g.notes, err);
		buf_finish(&command.text);
	}
	growth_finish(&g);
	return failed;
}

int query_page(struct query *q, struct error *err)
{
	static const char *const views[] = { "profile", "growth", NULL };
	struct params params = { .q = q, .err = err };
	struct paging paging;
	bool growth = param_choice(&params, "view", views, 0) == 1;
	param_paging(&params, &paging);
	if (params.failed)
		return params.failed;
	return growth ? page_of_growth(q, &params, &paging, err) : page_of_profile(q, &params, &paging, err);
}
