/*
 * Which stacks are told, heaviest first, until the budget is spent; their tree; and where the others are put: each into an (other) at
 * the deepest frame that it shares with what is told. An (other) that weighs less than the lightest stack that is told moves
 * towards the root and joins others on its way, so that there are never many of them.
 */
#include "report/page_private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/*
 * What things cost, in bytes of the compressed block, about: of unrelated stacks, which is the worst. How far that is off
 * is measured before it is relied on (page_block.c).
 */
#define COST_NODE 2.2
#define COST_ROW 4.0
#define COST_VALUE 1.5
#define COST_FRAME 5.0
#define COST_CHARACTER 0.15

struct node_key {
	const struct page_tree *t;
	uint32_t parent, frame;
};

static bool same_node(const void *context, uint32_t item)
{
	const struct node_key *k = context;
	const struct page_node *n = &k->t->nodes[item];
	return n->parent == k->parent && n->frame == k->frame;
}

static uint64_t node_hash(uint32_t parent, uint32_t frame)
{
	return hash_u64((uint64_t)parent << 32 | frame);
}

static uint32_t find_child(const struct page_tree *t, uint32_t parent, uint32_t frame)
{
	struct node_key key = { t, parent, frame };
	return index_find(&t->node_index, node_hash(parent, frame), same_node, &key);
}

static bool add_child(struct page_tree *t, uint32_t parent, uint32_t frame, uint32_t *ret)
{
	if (!index_reserve(&t->node_index))
		return false;
	struct page_node *node = ARRAY_PUSH(t->nodes, t->n_nodes, t->nodes_capacity, INDEX_NONE - 1);
	if (!node)
		return false;
	*node = (struct page_node){ .parent = parent, .frame = frame };
	uint32_t id = (uint32_t)(t->n_nodes - 1);
	struct page_node *up = &t->nodes[parent];
	if (up->last_child)
		t->nodes[up->last_child].next_sibling = id;
	else
		up->first_child = id;
	up->last_child = id;
	index_insert(&t->node_index, node_hash(parent, frame), id);
	*ret = id;
	return true;
}

static bool add_row(struct page_tree *t, uint32_t node, const struct page_row *row)
{
	struct page_row *slot = ARRAY_PUSH(t->rows, t->n_rows, t->rows_capacity, INDEX_NONE - 1);
	if (!slot)
		return false;
	*slot = *row;
	struct page_node *n = &t->nodes[node];
	if (n->last_row)
		t->rows[n->last_row - 1].next = (uint32_t)t->n_rows;
	else
		n->first_row = (uint32_t)t->n_rows;
	n->last_row = (uint32_t)t->n_rows;
	return true;
}

/* --- what is told --- */

struct path {
	const uint32_t *frames;     /* root first */
	size_t n;
};

static struct path path_of(const struct page_source *s, uint32_t stack)
{
	size_t first = s->first_frame[stack];
	return (struct path){ s->stack_frames + first, s->first_frame[stack + 1] - first };
}

/* The deepest node of a stack that there is; *path becomes what is below. */
static uint32_t descend(const struct page_tree *t, struct path *path)
{
	uint32_t node = 0;
	for (uint32_t child; path->n > 0; node = child, path->frames++, path->n--) {
		child = find_child(t, node, *path->frames);
		if (child == INDEX_NONE)
			break;
	}
	return node;
}

static double frame_cost(const struct page_source *s, const struct page_tree *t, uint32_t frame)
{
	uint32_t name = s->v->entries[s->frames[frame].entry].name;
	return COST_FRAME + (t->name_used[name] ? 0 : COST_CHARACTER * (double)strings_length(&s->p->strings, name));
}

/* A frame that is new and comes twice in the stack is counted twice: rare. */
static double stack_cost(const struct page_source *s, const struct page_tree *t, uint32_t stack, const struct path *below)
{
	size_t rows = s->first_sample[stack + 1] - s->first_sample[stack];
	double cost = (double)rows * (COST_ROW + COST_VALUE * (double)s->p->n_types) + COST_NODE * (double)below->n;
	for (size_t i = 0; i < below->n; i++)
		if (!t->frame_used[below->frames[i]])
			cost += frame_cost(s, t, below->frames[i]);
	return cost;
}

static bool tell_stack(const struct page_source *s, struct page_tree *t, uint32_t stack, uint32_t node, const struct path *below)
{
	for (size_t i = 0; i < below->n; i++) {
		if (!t->frame_used[below->frames[i]]) {
			t->frame_used[below->frames[i]] = 1;
			t->name_used[s->v->entries[s->frames[below->frames[i]].entry].name] = 1;
		}
		if (!add_child(t, node, below->frames[i], &node))
			return false;
	}
	for (size_t i = s->first_sample[stack]; i < s->first_sample[stack + 1]; i++) {
		const struct sample *sample = &s->p->samples[s->samples[i]];
		struct page_row row = { .stack = stack, .labels = s->labels_of[sample->labels], .source = sample->source,
			                .values = s->samples[i] * s->p->n_types };
		if (!add_row(t, node, &row))
			return false;
	}
	return true;
}

/*
 * Heaviest first. One that alone is more than what is left is passed over; when little is left, all the others are. *ret_least: the
 * weight of the lightest that is told.
 */
static bool tell_stacks(const struct page_source *s, struct page_tree *t, double budget, double *ret_least)
{
	double least = INFINITY;
	for (size_t i = 0; i < s->n_ranks; i++) {
		uint32_t stack = s->ranks[i].stack;
		struct path below = path_of(s, stack);
		uint32_t node = descend(t, &below);
		double cost = stack_cost(s, t, stack, &below);
		if (t->cost + cost > budget) {
			t->folded_stacks++;
			if (t->cost > budget * 0.95)
				break;
			continue;
		}
		t->cost += cost;
		t->told[i] = true;
		least = s->ranks[i].weight;
		if (!tell_stack(s, t, stack, node, &below))
			return false;
	}
	*ret_least = least;
	return true;
}

/* --- what is folded --- */

struct fold_key {
	const struct page_tree *t;
	uint32_t labels, source, node;
	const uint32_t *node_of;            /* per (other) row */
	size_t first;                       /* row that is the first of them */
};

static bool same_fold(const void *context, uint32_t item)
{
	const struct fold_key *k = context;
	const struct page_row *r = &k->t->rows[k->first + item];
	return r->labels == k->labels && r->source == k->source && k->node_of[item] == k->node;
}

struct folder {
	const struct page_source *s;
	struct page_tree *t;
	uint32_t *at;                       /* per rank: the deepest node; of those that are told nothing */
	uint32_t *target;                   /* per node: where what is folded into it goes */
	uint32_t *node_of;       size_t n_others, others_capacity;   /* per (other) row */
	size_t first;
};

static bool fold_sample(struct folder *f, uint32_t sample, uint32_t node)
{
	const struct profile *p = f->s->p;
	struct page_tree *t = f->t;
	const struct sample *x = &p->samples[sample];
	struct fold_key key = { t, f->s->thread_labels_of[x->labels], x->source, node, f->node_of, f->first };
	uint64_t hash = hash_mix(hash_u64((uint64_t)node << 32 | key.labels), key.source);
	uint32_t other = index_find(&t->rest_index, hash, same_fold, &key);
	if (other == INDEX_NONE) {
		struct page_row row = { .stack = PROFILE_NONE, .labels = key.labels, .source = key.source, .values = t->n_sums };
		size_t need = t->n_sums + p->n_types;
		if (!index_reserve(&t->rest_index) || !add_row(t, node, &row) ||
		    (need > t->sums_capacity &&
		     !memory_grow((void **)&t->sums, &t->sums_capacity, need, sizeof(*t->sums), SIZE_MAX / sizeof(*t->sums))))
			return false;
		uint32_t *slot = ARRAY_PUSH(f->node_of, f->n_others, f->others_capacity, INDEX_NONE - 1);
		if (!slot)
			return false;
		*slot = node;
		memset(t->sums + t->n_sums, 0, p->n_types * sizeof(*t->sums));
		t->n_sums = need;
		other = (uint32_t)(f->n_others - 1);
		index_insert(&t->rest_index, hash, other);
		t->cost += COST_ROW + COST_VALUE * (double)p->n_types;
	}
	struct page_row *row = &t->rows[f->first + other];
	row->rest++;
	t->folded_value += fabs((double)p->values[sample * p->n_types + (size_t)f->s->column]);
	for (size_t k = 0; k < p->n_types; k++)
		t->sums[row->values + k] = value_sum(t->sums[row->values + k], p->values[sample * p->n_types + k]);
	t->folded_rows++;
	return true;
}

/* Children come behind their parents, so one way through the nodes moves what is light up, the other finds where it ended. */
static void choose_targets(struct folder *f, double least)
{
	struct page_tree *t = f->t;
	for (size_t i = t->n_nodes; i-- > 1;) {
		struct page_node *n = &t->nodes[i];
		f->target[i] = (uint32_t)i;
		if (!(n->folded >= least)) {
			t->nodes[n->parent].folded += n->folded;
			f->target[i] = n->parent;
		}
	}
	f->target[0] = 0;
	for (size_t i = 1; i < t->n_nodes; i++)
		if (f->target[i] != i)
			f->target[i] = f->target[t->nodes[i].parent];
}

static bool fold_rest(struct folder *f, double least)
{
	const struct page_source *s = f->s;
	struct page_tree *t = f->t;
	f->at = malloc((s->n_ranks + 1) * sizeof(*f->at));
	f->target = malloc((t->n_nodes + 1) * sizeof(*f->target));
	if (!f->at || !f->target)
		return false;
	t->folded_stacks = 0;
	for (size_t i = 0; i < s->n_ranks; i++) {
		if (t->told[i])
			continue;
		struct path path = path_of(s, s->ranks[i].stack);
		f->at[i] = descend(t, &path);
		t->nodes[f->at[i]].folded += s->ranks[i].weight;
		t->folded_stacks++;
	}
	choose_targets(f, least);
	f->first = t->n_rows;
	for (size_t i = 0; i < s->n_ranks; i++) {
		uint32_t stack = s->ranks[i].stack;
		for (size_t k = s->first_sample[stack]; !t->told[i] && k < s->first_sample[stack + 1]; k++)
			if (!fold_sample(f, s->samples[k], f->target[f->at[i]]))
				return false;
	}
	return true;
}

/* --- both --- */

int page_tree_make(struct page_source *s, double budget, struct page_tree *ret, struct error *err)
{
	*ret = (struct page_tree){ 0 };
	struct page_node *root = ARRAY_PUSH(ret->nodes, ret->n_nodes, ret->nodes_capacity, INDEX_NONE - 1);
	ret->told = calloc(s->n_ranks + 1, sizeof(*ret->told));
	ret->frame_used = calloc(s->n_frames + 1, sizeof(*ret->frame_used));
	ret->name_used = calloc(s->p->strings.n + 1, sizeof(*ret->name_used));
	if (!root || !ret->told || !ret->frame_used || !ret->name_used)
		return error_nomem(err, "the page's tree");
	*root = (struct page_node){ 0 };
	double least;
	bool ok = tell_stacks(s, ret, budget, &least);
	if (ok && ret->folded_stacks) {
		struct folder f = { .s = s, .t = ret };
		ok = fold_rest(&f, least);
		free(f.at);
		free(f.target);
		free(f.node_of);
	}
	return ok ? E_OK : error_nomem(err, "the page's tree");
}

void page_tree_finish(struct page_tree *t)
{
	free(t->nodes);
	free(t->rows);
	free(t->sums);
	free(t->told);
	free(t->frame_used);
	free(t->name_used);
	index_finish(&t->node_index);
	index_finish(&t->rest_index);
	*t = (struct page_tree){ 0 };
}
