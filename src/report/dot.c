/*
 * The call graph for Graphviz, trimmed in pprof's way: functions below a part of the total go,
 * then all but the most telling (where much arrives from and leaves to several places, or stays),
 * then thin edges. Over what went, callers and callees stay joined by dashed "residual"
 * edges, unless another way between them is drawn.
 */
#include "report/report.h"

#include "report/picture.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MOST_NODES 80
#define NODE_FRACTION 0.005
#define EDGE_FRACTION 0.001

struct edge {
	uint32_t from, to;          /* entries: caller, callee */
	bool residual;              /* somewhere frames between the two were left out */
	uint32_t row;               /* the last row counted, + 1: recursion counts once */
	struct amount amount;
};

struct node {
	uint32_t entry;
	double score;
};

struct graph {
	struct view *v;
	struct view_totals totals;
	double whole;               /* what fractions refer to */
	bool *kept;                 /* per entry */
	struct node *nodes;
	size_t n_nodes, nodes_capacity;
	struct edge *edges;
	size_t n_edges, edges_capacity;
	struct index index;
};

/* What a box or edge weighs: in a diff how much it changed. */
static double weight(const struct graph *g, const struct amount *a)
{
	return fabs(g->v->diff ? amount_change(a) : a->now);
}

static double node_weight(const struct graph *g, uint32_t entry)
{
	return weight(g, &g->totals.entries[entry].cum);
}

/* --- edges --- */

struct edge_key {
	const struct edge *edges;
	uint32_t from, to;
};

static bool same_edge(const void *context, uint32_t item)
{
	const struct edge_key *k = context;
	return k->edges[item].from == k->from && k->edges[item].to == k->to;
}

static bool add_edge(struct graph *g, uint32_t from, uint32_t to, bool residual, size_t row)
{
	uint64_t hash = hash_u64((uint64_t)from << 32 | to);
	struct edge_key key = { g->edges, from, to };
	uint32_t id = index_find(&g->index, hash, same_edge, &key);
	if (id == INDEX_NONE) {
		struct edge *e = index_reserve(&g->index)
		                     ? ARRAY_PUSH(g->edges, g->n_edges, g->edges_capacity, INDEX_NONE - 1)
		                     : NULL;
		if (!e)
			return false;
		*e = (struct edge){ .from = from, .to = to };
		id = (uint32_t)(g->n_edges - 1);
		index_insert(&g->index, hash, id);
	}
	struct edge *e = &g->edges[id];
	e->residual |= residual;
	if (e->row == row + 1)
		return true;
	e->row = (uint32_t)row + 1;
	amount_add(&e->amount, &g->v->rows[row].amount);
	return true;
}

/* Edges between the kept entries, over whatever lies between them. */
static bool join(struct graph *g)
{
	g->n_edges = 0;
	index_finish(&g->index);
	g->index = (struct index){ 0 };
	for (size_t row = 0; row < g->v->n_rows; row++) {
		const uint32_t *stack;
		size_t n = view_stack(g->v, &g->v->rows[row], &stack);
		uint32_t caller = PROFILE_NONE;
		bool residual = false;
		while (n-- > 0) {
			if (!g->kept[stack[n]]) {
				residual = true;
				continue;
			}
			if (caller != PROFILE_NONE && !(residual && caller == stack[n]) &&
			    !add_edge(g, caller, stack[n], residual, row))
				return false;
			caller = stack[n];
			residual = false;
		}
	}
	return true;
}

/* --- which nodes --- */

static bool keep_heavy(struct graph *g)
{
	for (size_t i = 0; i < g->v->n_rows; i++)
		g->whole += weight(g, &g->v->rows[i].amount);
	for (size_t i = 0; i < g->v->n_entries; i++) {
		double w = node_weight(g, (uint32_t)i);
		g->kept[i] = w > 0 && w >= NODE_FRACTION * g->whole;
		struct node *node = g->kept[i] ? ARRAY_PUSH(g->nodes, g->n_nodes, g->nodes_capacity, UINT32_MAX)
		                               : NULL;
		if (g->kept[i] && !node)
			return false;
		if (node)
			node->entry = (uint32_t)i;
	}
	return true;
}

static double part_entropy(double part, double whole)
{
	return part > 0 && whole > 0 ? -(part / whole) * log2(part / whole) : 0;
}

/*
 * Where memory spreads out or comes together is more telling than a function that only passes it
 * on: cumulative weight times the entropy of the edges in and out (1 where there are none), and
 * the function's own weight.
 */
static bool score_nodes(struct graph *g)
{
	size_t n = g->v->n_entries;
	double *sums = calloc(4 * n + 1, sizeof(*sums));   /* weight in, out; entropy in, out */
	if (!sums)
		return false;
	double *in = sums, *out = sums + n, *in_entropy = sums + 2 * n, *out_entropy = sums + 3 * n;
	for (size_t i = 0; i < g->n_edges; i++) {
		in[g->edges[i].to] += weight(g, &g->edges[i].amount);
		out[g->edges[i].from] += weight(g, &g->edges[i].amount);
	}
	for (size_t i = 0; i < g->n_edges; i++) {
		const struct edge *e = &g->edges[i];
		double w = weight(g, &e->amount), flat = weight(g, &g->totals.entries[e->from].flat);
		in_entropy[e->to] += part_entropy(w, in[e->to]);
		out_entropy[e->from] += part_entropy(w, out[e->from] + flat);
	}
	for (size_t i = 0; i < g->n_nodes; i++) {
		uint32_t id = g->nodes[i].entry;
		double flat = weight(g, &g->totals.entries[id].flat);
		double entropy = (in[id] > 0 ? in_entropy[id] : 1) +
		                 (out[id] > 0 ? out_entropy[id] + part_entropy(flat, out[id] + flat) : 1);
		g->nodes[i].score = node_weight(g, id) * entropy + flat;
	}
	free(sums);
	return true;
}

static int compare_names(const struct graph *g, uint32_t a, uint32_t b)
{
	const struct entry *x = &g->v->entries[a], *y = &g->v->entries[b];
	const struct profile *p = g->v->profile;
	int order = strcmp(profile_text(p, x->name), profile_text(p, y->name));
	if (order == 0)
		order = strcmp(profile_text(p, x->file), profile_text(p, y->file));
	if (order == 0)
		order = (x->line > y->line) - (x->line < y->line);
	if (order == 0)
		order = (x->address > y->address) - (x->address < y->address);
	return order;
}

static int compare_scores(const void *a, const void *b, void *context)
{
	const struct node *x = a, *y = b;
	if (x->score != y->score)
		return x->score > y->score ? -1 : 1;
	return compare_names(context, x->entry, y->entry);
}

static void keep_telling(struct graph *g)
{
	if (g->n_nodes)
		qsort_r(g->nodes, g->n_nodes, sizeof(*g->nodes), compare_scores, g);
	for (size_t i = MOST_NODES; i < g->n_nodes; i++)
		g->kept[g->nodes[i].entry] = false;
	if (g->n_nodes > MOST_NODES)
		g->n_nodes = MOST_NODES;
}

/* --- which edges --- */

static int compare_edges(const void *a, const void *b, void *context)
{
	const struct edge *x = a, *y = b;
	const struct graph *g = context;
	double wx = weight(g, &x->amount), wy = weight(g, &y->amount);
	if (wx != wy)
		return wx > wy ? -1 : 1;
	int order = compare_names(g, x->from, y->from);
	return order ? order : compare_names(g, x->to, y->to);
}

/* Is there a way from its caller to its callee over other edges? seen: per entry. */
static bool is_redundant(const struct graph *g, size_t edge, uint32_t *pile, bool *seen)
{
	const struct edge *e = &g->edges[edge];
	size_t n = 0;
	for (size_t i = 0; i < g->n_nodes; i++)
		seen[g->nodes[i].entry] = false;
	pile[n++] = e->from;
	seen[e->from] = true;
	while (n > 0) {
		uint32_t at = pile[--n];
		for (size_t i = 0; i < g->n_edges; i++) {
			if (i == edge || g->edges[i].from != at || seen[g->edges[i].to])
				continue;
			if (g->edges[i].to == e->to)
				return true;
			seen[g->edges[i].to] = true;
			pile[n++] = g->edges[i].to;
		}
	}
	return false;
}

/* A residual edge is only removed where no lighter real edge leads to the same callee. */
static bool lighter_real_edge(const struct graph *g, size_t edge)
{
	for (size_t i = edge + 1; i < g->n_edges; i++)
		if (g->edges[i].to == g->edges[edge].to && !g->edges[i].residual)
			return true;
	return false;
}

static bool trim_edges(struct graph *g)
{
	size_t kept = 0;
	for (size_t i = 0; i < g->n_edges; i++)
		if (weight(g, &g->edges[i].amount) >= EDGE_FRACTION * g->whole)
			g->edges[kept++] = g->edges[i];
	g->n_edges = kept;
	if (g->n_edges)
		qsort_r(g->edges, g->n_edges, sizeof(*g->edges), compare_edges, g);
	uint32_t *pile = calloc(g->v->n_entries + 1, sizeof(*pile));
	bool *seen = calloc(g->v->n_entries + 1, sizeof(*seen));
	bool ok = pile && seen;
	for (size_t i = g->n_edges; ok && i-- > 0;) {
		if (!g->edges[i].residual || lighter_real_edge(g, i) || !is_redundant(g, i, pile, seen))
			continue;
		memmove(&g->edges[i], &g->edges[i + 1], (g->n_edges - i - 1) * sizeof(*g->edges));
		g->n_edges--;
	}
	free(pile);
	free(seen);
	return ok;
}

/* --- text --- */

/*
 * Inside of a dot string: quotes and backslashes would end or change it, & begins an entity. Newlines become dot's
 * \n, what is left of control characters nothing.
 */
static void add_dot(struct buf *out, const char *s, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (s[i] == '"' || s[i] == '\\') {
			buf_addc(out, '\\');
			buf_addc(out, s[i]);
		} else if (s[i] == '&') {
			buf_adds(out, "&amp;");
		} else if (s[i] == '\n') {
			buf_adds(out, "\\n");
		} else if ((unsigned char)s[i] >= 0x20) {
			buf_addc(out, s[i]);
		}
	}
}

/* Breaks long names after "::" so that boxes stay narrow. */
static void break_name(const struct buf *name, struct buf *out)
{
	size_t line = 0;
	for (size_t i = 0; i < name->len; i++) {
		buf_addc(out, name->data[i]);
		line++;
		if (line > 24 && i + 1 < name->len && name->data[i] == ':' && name->data[i - 1] == ':') {
			buf_addc(out, '\n');
			line = 0;
		}
	}
}

static void add_value(const struct graph *g, const struct amount *a, struct buf *out)
{
	if (g->v->diff)
		picture_change(g->v, amount_change(a), out);
	else
		picture_amount(g->v, a->now, out);
}

/* "name / 1.2 MiB (3 %) / of 4.5 MiB (12 %)" */
static void add_node_label(const struct graph *g, const struct node *node, struct buf *out)
{
	const struct entry_total *t = &g->totals.entries[node->entry];
	struct buf name, text;
	buf_init(&name, 1 << 20);
	buf_init(&text, 1 << 20);
	picture_name(g->v, node->entry, &text);
	picture_short(text.data, text.len, &name);
	buf_reset(&text);
	break_name(&name, &text);
	buf_addc(&text, '\n');
	add_value(g, &t->flat, &text);
	buf_adds(&text, " (");
	picture_percent(weight(g, &t->flat), g->whole, &text);
	buf_addc(&text, ')');
	if (t->cum.now != t->flat.now || t->cum.base != t->flat.base) {
		buf_adds(&text, "\nof ");
		add_value(g, &t->cum, &text);
		buf_adds(&text, " (");
		picture_percent(weight(g, &t->cum), g->whole, &text);
		buf_addc(&text, ')');
	}
	add_dot(out, text.data ? text.data : "", text.len);
	out->failed |= text.failed || name.failed;
	buf_finish(&name);
	buf_finish(&text);
}

static unsigned mix(unsigned from, unsigned to, double part)
{
	return (unsigned)lround(from + ((double)to - from) * part);
}

/* From nearly white to orange by the part of the whole; a diff: orange, blue, or grey for noise. */
static void add_node_colour(const struct graph *g, const struct amount *a, bool noise, struct buf *out)
{
	static const unsigned orange[3] = { 0xf5, 0x95, 0x3d }, blue[3] = { 0x6b, 0xae, 0xe0 },
	                      pale[3] = { 0xfc, 0xf7, 0xf0 };
	double part = g->whole > 0 ? fmin(1, weight(g, a) / g->whole) : 0;
	const unsigned *to = g->v->diff && amount_change(a) < 0 ? blue : orange;
	double strength = sqrt(part);
	if (noise)
		buf_adds(out, ", fillcolor=\"#d4d4d4\", style=\"filled,dashed\"");
	else
		buf_printf(out, ", fillcolor=\"#%02x%02x%02x\"", mix(pale[0], to[0], strength),
		           mix(pale[1], to[1], strength), mix(pale[2], to[2], strength));
}

static void add_node(const struct graph *g, size_t i, bool noise, struct buf *out)
{
	const struct node *node = &g->nodes[i];
	const struct entry_total *t = &g->totals.entries[node->entry];
	double part = g->whole > 0 ? fmin(1, weight(g, &t->flat) / g->whole) : 0;
	buf_printf(out, "N%zu [label=\"", i + 1);
	add_node_label(g, node, out);
	buf_printf(out, "\", fontsize=%ld, tooltip=\"", lround(9 + 15 * sqrt(part)));
	struct buf text;
	buf_init(&text, 1 << 20);
	picture_name(g->v, node->entry, &text);
	buf_adds(&text, g->v->entries[node->entry].inlined ? " (inlined)\n" : "\n");
	picture_place(g->v, node->entry, &text);
	if (noise)
		buf_adds(&text, "\nwithin sampling noise");
	add_dot(out, text.data ? text.data : "", text.len);
	out->failed |= text.failed;
	buf_finish(&text);
	buf_addc(out, '"');
	add_node_colour(g, &t->cum, noise, out);
	buf_adds(out, "]\n");
}

static void add_edge_line(const struct graph *g, const struct edge *e, const uint32_t *number, struct buf *out)
{
	double part = g->whole > 0 ? fmin(1, weight(g, &e->amount) / g->whole) : 0;
	buf_printf(out, "N%u -> N%u [label=\" ", number[e->from], number[e->to]);
	struct buf text;
	buf_init(&text, 4096);
	add_value(g, &e->amount, &text);
	add_dot(out, text.data ? text.data : "", text.len);
	buf_finish(&text);
	buf_printf(out, "\", weight=%ld, penwidth=", lround(1 + 99 * part));
	picture_number(1 + 5 * part, out);
	if (g->v->diff && amount_change(&e->amount) != 0)
		buf_printf(out, ", color=\"%s\"", amount_change(&e->amount) > 0 ? "#b35806" : "#2166ac");
	buf_adds(out, e->residual ? ", style=dashed]\n" : "]\n");
}

static void add_legend(const struct graph *g, size_t entries, struct buf *out)
{
	struct buf text;
	buf_init(&text, 1 << 16);
	const struct view *v = g->v;
	picture_text(v->type, strlen(v->type), &text);
	buf_adds(&text, v->diff ? ", what changed: " : ": ");
	if (v->diff) {
		picture_amount(v, v->total.base, &text);
		buf_adds(&text, " to ");
	}
	picture_amount(v, v->total.now, &text);
	buf_printf(&text, "\n%zu of %zu frames; below ", g->n_nodes, entries);
	picture_amount(v, NODE_FRACTION * g->whole, &text);
	buf_adds(&text, " (edges ");
	picture_amount(v, EDGE_FRACTION * g->whole, &text);
	buf_adds(&text, ") not shown\ndashed edge: frames between were left out");
	if (v->diff && v->has_error)
		buf_adds(&text, "\ngrey, dashed box: within sampling noise");
	buf_adds(out, "legend [shape=note, fontsize=14, fillcolor=\"#f4f4f4\", label=\"");
	add_dot(out, text.data ? text.data : "", text.len);
	buf_adds(out, "\"]\n");
	buf_finish(&text);
}

static bool write_graph(const struct graph *g, size_t entries, struct buf *out)
{
	const struct amount **amounts = calloc(g->n_nodes + 1, sizeof(*amounts));
	bool *noise = calloc(g->n_nodes + 1, sizeof(*noise));
	uint32_t *number = calloc(g->v->n_entries + 1, sizeof(*number));
	bool ok = amounts && noise && number;
	for (size_t i = 0; ok && i < g->n_nodes; i++) {
		amounts[i] = &g->totals.entries[g->nodes[i].entry].cum;
		number[g->nodes[i].entry] = (uint32_t)i + 1;
	}
	ok = ok && picture_noise(g->v, amounts, g->n_nodes, noise);
	if (ok) {
		buf_adds(out, "digraph heapgauge {\n"
		              "node [shape=box, style=filled, fontname=\"Helvetica\", color=\"#5c5c5c\"]\n"
		              "edge [fontname=\"Helvetica\", fontsize=11, color=\"#5c5c5c\"]\n");
		add_legend(g, entries, out);
		for (size_t i = 0; i < g->n_nodes; i++)
			add_node(g, i, noise[i], out);
		for (size_t i = 0; i < g->n_edges; i++)
			add_edge_line(g, &g->edges[i], number, out);
		buf_adds(out, "}\n");
	}
	free(amounts);
	free(noise);
	free(number);
	return ok;
}

static size_t count_used(const struct graph *g)
{
	size_t used = 0;
	for (size_t i = 0; i < g->v->n_entries; i++)
		used += g->totals.entries[i].cum.now != 0 || g->totals.entries[i].cum.base != 0;
	return used;
}

int report_dot(struct view *v, struct buf *out, struct error *err)
{
	struct graph g = { .v = v };
	int code = view_totals(v, SORT_CUM, &g.totals, err);
	if (code)
		return code;
	g.kept = calloc(v->n_entries + 1, sizeof(*g.kept));
	bool ok = g.kept && keep_heavy(&g) && join(&g) && score_nodes(&g);
	if (ok) {
		keep_telling(&g);
		ok = join(&g) && trim_edges(&g) && write_graph(&g, count_used(&g), out);
	}
	if (!ok)
		code = error_nomem(err, "the call graph");
	else if (out->failed)
		code = error_set(err, E_LIMIT, "the call graph is larger than the output may be, or out of memory");
	free(g.kept);
	free(g.nodes);
	free(g.edges);
	index_finish(&g.index);
	view_totals_finish(&g.totals);
	return code;
}
