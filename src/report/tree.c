/*
 * The call tree as indented text. A node with one way down continues below it at the
 * same indent; only forks indent, so that ordinary deep stacks stay readable. What is
 * too small, or in a diff did not change, is summed up in a line of its own. The walk keeps its own stack: call
 * trees can be as deep as stacks are.
 */
#include "report/rank.h"
#include "report/table.h"
#include "report/words.h"

#include <math.h>
#include <stdlib.h>

enum branch { CONTINUES, FORK, LAST_FORK };

/* A node to be visited, or (hidden > 0) the line that stands for the hidden children of a node. */
struct item {
	uint32_t node;
	uint32_t parent;            /* number of its parent in the walk */
	uint32_t level;             /* forks above and at it */
	uint32_t hidden;            /* how many children this line stands for */
	enum branch branch;
};

struct walk {
	const struct view *v;
	const struct tree_options *o;
	struct tree tree;
	bool *moved;                /* of a diff, per node: something at or below it changed */
	bool *significant;          /* of a diff, per node */
	double cut;                 /* nodes below are hidden */
	struct item *items;         size_t n, capacity;
	uint32_t number;            /* of the item last visited, in order */
	bool failed;
};

static double size_of(const struct tree_node *n)
{
	return fmax(fabs(n->total.base), fabs(n->total.now));
}

static void push(struct walk *w, struct item item)
{
	struct item *slot = ARRAY_PUSH(w->items, w->n, w->capacity, UINT32_MAX);
	if (slot)
		*slot = item;
	else
		w->failed = true;
}

static bool is_shown(const struct walk *w, uint32_t i)
{
	const struct tree_node *n = &w->tree.nodes[i];
	return i == 0 || (size_of(n) >= w->cut && (!w->moved || w->moved[i]) &&
	                  !(w->o->max_depth && n->depth > w->o->max_depth));
}

/* Parents come before children, so one pass from the end carries it up. */
static bool find_moved(struct walk *w)
{
	const struct tree_node *nodes = w->tree.nodes;
	w->moved = calloc(w->tree.n + 1, sizeof *w->moved);
	for (size_t i = w->tree.n; w->moved && i-- > 0;) {
		w->moved[i] = w->moved[i] || amount_change(&nodes[i].total) != 0;
		w->moved[nodes[i].parent] |= w->moved[i];
	}
	return w->moved != NULL;
}

/* A node that is its caller's only child and all of it says the same again: one test for both. */
static bool repeats_parent(const struct tree_node *nodes, uint32_t i)
{
	const struct amount *a = &nodes[i].total, *b = &nodes[nodes[i].parent].total;
	return i > 0 && a->base == b->base && a->now == b->now && a->gained.variance == b->gained.variance &&
	       a->lost.variance == b->lost.variance;
}

/* Only what is shown is judged: a p-value costs more than a node. Parents come before children. */
static int find_verdicts(struct walk *w, struct error *err)
{
	const struct tree_node *nodes = w->tree.nodes;
	size_t n = w->tree.n, tested = 0;
	const struct amount **amounts = malloc((n + 1) * sizeof *amounts);
	bool *verdicts = malloc((n + 1) * sizeof *verdicts);
	w->significant = calloc(n + 1, sizeof *w->significant);
	bool ok = amounts && verdicts && w->significant && find_moved(w);
	for (uint32_t i = 0; ok && i < n; i++)
		if (is_shown(w, i) && !repeats_parent(nodes, i))
			amounts[tested++] = &nodes[i].total;
	ok = ok && rank_significant(w->v, amounts, tested, verdicts);
	tested = 0;
	for (uint32_t i = 0; ok && i < n; i++)
		if (is_shown(w, i))
			w->significant[i] = repeats_parent(nodes, i) ? w->significant[nodes[i].parent]
			                                             : verdicts[tested++];
	free(amounts);
	free(verdicts);
	return ok ? E_OK : error_nomem(err, "the call tree");
}

static int walk_init(struct walk *w, struct view *v, const struct tree_options *o, struct error *err)
{
	*w = (struct walk){ .v = v, .o = o };
	int code = view_tree(v, o->inverted, &w->tree, err);
	w->cut = o->min_fraction * fmax(fabs(v->total_all.base), fabs(v->total_all.now));
	if (!code && v->diff)
		code = find_verdicts(w, err);
	if (!code)
		push(w, (struct item){ .parent = UINT32_MAX });
	return code;
}

static void walk_finish(struct walk *w)
{
	tree_finish(&w->tree);
	free(w->items);
	free(w->significant);
	free(w->moved);
}

static uint32_t count_shown(const struct walk *w, const struct tree_node *node, uint32_t *ret_hidden)
{
	uint32_t shown = 0, hidden = 0;
	for (uint32_t c = node->first_child; c; c = w->tree.nodes[c].next_sibling) {
		if (is_shown(w, c))
			shown++;
		else
			hidden++;
	}
	*ret_hidden = hidden;
	return shown;
}

/* Pushes what stands below the item so that it is visited in order. */
static void push_children(struct walk *w, const struct item *at)
{
	const struct tree_node *node = &w->tree.nodes[at->node];
	uint32_t hidden, shown = count_shown(w, node, &hidden);
	uint32_t lines = shown + (hidden > 0);
	struct item below = {
		.parent = w->number,
		.level = at->level + (lines > 1),
		.branch = lines > 1 ? FORK : CONTINUES,
	};
	size_t first = w->n;
	for (uint32_t c = node->first_child; c; c = w->tree.nodes[c].next_sibling) {
		below.node = c;
		if (is_shown(w, c))
			push(w, below);
	}
	if (hidden) {
		below.node = at->node;
		below.hidden = hidden;
		push(w, below);
	}
	if (w->failed || w->n == first)
		return;
	if (lines > 1)
		w->items[w->n - 1].branch = LAST_FORK;
	for (size_t i = first, k = w->n - 1; i < k; i++, k--) {
		struct item swap = w->items[i];
		w->items[i] = w->items[k];
		w->items[k] = swap;
	}
}

static bool walk_next(struct walk *w, struct item *ret)
{
	if (w->failed || w->n == 0)
		return false;
	*ret = w->items[--w->n];
	w->number++;
	if (!ret->hidden)
		push_children(w, ret);
	return !w->failed;
}

/* What the hidden children of a node hold together. */
static struct amount hidden_amount(const struct walk *w, uint32_t node)
{
	struct amount sum = { 0 };
	for (uint32_t c = w->tree.nodes[node].first_child; c; c = w->tree.nodes[c].next_sibling)
		if (!is_shown(w, c))
			amount_add(&sum, &w->tree.nodes[c].total);
	return sum;
}

/* --- text ----------------------------------------------------------------- */

static const struct table_column single_columns[] = {
	{ "total", true, 0 }, { "±", true, 0 }, { "total%", true, 2 }, { "self", true, 3 },
	{ "", false, 0 },     { "", true, 0 },  { "", false, 0 },
};
static const struct table_column diff_columns[] = {
	{ "base", true, 4 },    { "new", true, 3 }, { "change", true, 0 }, { "±", true, 0 },
	{ "change%", true, 5 }, { "", false, 0 },   { "", false, 0 },
};
#define N_COLUMNS (sizeof single_columns / sizeof single_columns[0])

#define MOST_LEVELS 40          /* of forks drawn; deeper ones say their depth */

/* For each open fork: does a later sibling follow below? */
struct bars {
	bool *follows;
	size_t n, capacity;
	uint32_t most;              /* levels drawn */
	bool failed;
};

static void draw_indent(struct bars *b, const struct item *at, uint32_t depth, struct buf *out)
{
	size_t need = (size_t)at->level + 1;
	if (need > b->capacity &&
	    !memory_grow((void **)&b->follows, &b->capacity, need, sizeof *b->follows, UINT32_MAX)) {
		b->failed = true;
		return;
	}
	if (at->branch != CONTINUES)
		b->follows[at->level] = at->branch == FORK;
	uint32_t whole = at->branch == CONTINUES ? at->level : at->level - 1;
	for (uint32_t i = 1; i <= whole && i <= b->most; i++)
		buf_adds(out, b->follows[i] ? "│  " : "   ");
	if (whole > b->most)
		buf_printf(out, "[depth %u] ", depth);
	if (at->branch != CONTINUES)
		buf_adds(out, at->branch == FORK ? "├─ " : "└─ ");
}

/* self is NULL for what stands for hidden nodes: that needs no error either. */
static void value_cells(struct table *t, const struct walk *w, const struct amount *a, const struct amount *self,
                        const char *verdict)
{
	const struct view *v = w->v;
	if (v->diff) {
		words_amount(v, a->base, table_cell(t));
		words_amount(v, a->now, table_cell(t));
		words_change(v, amount_change(a), table_cell(t));
		if (amount_change(a) != 0)
			table_cell_tone(t, amount_change(a) > 0 ? TONE_GROWN : TONE_SHRUNK);
	} else {
		words_amount(v, a->now, table_cell(t));
	}
	struct buf *cell = table_cell(t);
	if (self)
		words_error(v, a, cell);
	cell = table_cell(t);
	if (v->diff) {
		words_change_percent(a, cell);
		buf_adds(table_cell(t), verdict);
		return;
	}
	words_percent(a->now, v->total_all.now, cell);
	cell = table_cell(t);
	if (self && self->now != 0 && !w->o->inverted)
		words_amount(v, self->now, cell);
	table_skip(t, 2);
}

static void add_line(const struct walk *w, const struct item *at, struct bars *bars, struct table *t)
{
	const struct tree_node *node = &w->tree.nodes[at->node];
	struct amount amount = at->hidden ? hidden_amount(w, at->node) : node->total;
	const char *verdict = "";
	if (!at->hidden && w->significant)
		verdict = rank_verdict(w->v, w->significant[at->node], &amount);
	table_row(t, at->hidden || *verdict ? TONE_DIM : TONE_PLAIN);
	value_cells(t, w, &amount, at->hidden ? NULL : &node->self, verdict);
	struct buf *cell = table_cell(t);
	draw_indent(bars, at, node->depth + (at->hidden > 0), cell);
	table_cell_lead(t);
	if (at->hidden)
		buf_printf(cell, "(%u more)", at->hidden);
	else if (node->entry == PROFILE_NONE)
		buf_adds(cell, "(all)");
	else
		words_entry(w->v, node->entry, cell);
}

static int print_tree(struct walk *w, const struct report_style *s, struct buf *out, struct error *err)
{
	struct table_column columns[N_COLUMNS];
	struct table table;
	struct bars bars = { .most = s->columns < 52 ? 4 : (s->columns - 20) / 8 };
	if (s->columns == 0 || bars.most > MOST_LEVELS)
		bars.most = MOST_LEVELS;
	memcpy(columns, w->v->diff ? diff_columns : single_columns, sizeof columns);
	columns[N_COLUMNS - 1].title = w->o->inverted ? "what allocates, callers below" : "call tree";
	table_init(&table, columns, N_COLUMNS);
	struct item at;
	while (walk_next(w, &at))
		add_line(w, &at, &bars, &table);
	int code = w->failed || bars.failed ? error_nomem(err, "the call tree") : E_OK;
	if (!code)
		code = table_print(&table, s, out, err);
	table_finish(&table);
	free(bars.follows);
	return code;
}

int report_tree(struct view *v, const struct tree_options *o, const struct report_style *s, struct buf *out,
                struct error *err)
{
	struct walk w;
	int code = walk_init(&w, v, o, err);
	if (!code) {
		report_header(v, s, out);
		code = print_tree(&w, s, out, err);
	}
	walk_finish(&w);
	return code;
}

/* --- JSON ----------------------------------------------------------------- */

/* Nodes stand in a list, not in each other: parsers have limits on nesting that stacks don't have. */
static void json_node(struct json *j, const struct walk *w, const struct item *at)
{
	const struct tree_node *node = &w->tree.nodes[at->node];
	json_open(j, NULL, '{');
	json_integer(j, "id", (int64_t)w->number - 1);
	if (at->parent == UINT32_MAX)
		json_null(j, "parent");
	else
		json_integer(j, "parent", (int64_t)at->parent - 1);
	json_integer(j, "depth", node->depth + (at->hidden > 0));
	if (at->hidden) {
		struct amount amount = hidden_amount(w, at->node);
		json_integer(j, "hidden", at->hidden);
		json_amount(j, "total", w->v, &amount);
	} else {
		if (node->entry != PROFILE_NONE)
			json_entry(j, w->v, node->entry);
		json_amount(j, "total", w->v, &node->total);
		if (!w->o->inverted)
			json_amount(j, "self", w->v, &node->self);
		if (w->significant && w->v->has_error)
			json_bool(j, "significant", w->significant[at->node]);
	}
	json_close(j, '}');
}

int report_tree_json(struct view *v, const struct tree_options *o, struct buf *out, struct error *err)
{
	struct walk w;
	struct notes notes;
	struct json j = { .out = out };
	notes_init(&notes);
	int code = walk_init(&w, v, o, err);
	if (!code) {
		header_notes(v, &notes);
		header_json(v, "tree", &notes, &j);
		json_bool(&j, "inverted", o->inverted);
		json_number(&j, "min_fraction", o->min_fraction);
		json_open(&j, "nodes", '[');
		struct item at;
		while (walk_next(&w, &at))
			json_node(&j, &w, &at);
		json_close(&j, ']');
		json_close(&j, '}');
		buf_addc(out, '\n');
		if (w.failed || out->failed)
			code = error_nomem(err, "the report");
	}
	notes_finish(&notes);
	walk_finish(&w);
	return code;
}
