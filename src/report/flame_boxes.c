/*
 * Stacks in order of their frames: all with a common way from the root are neighbours, so a
 * node of the tree is a range of stacks, and its children are found by looking where the
 * next frame changes. The widest node there is gets opened first, until there are
 * enough. A parent is at least as wide as each child, so what was taken is always a tree.
 */
#include "report/flame_boxes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* --- stacks in order --- */

static double width_of(const struct amount *a)
{
	return fmax(fabs(a->base), fabs(a->now));
}

static bool add_stack(struct view *v, uint32_t row, bool inverted, struct flame_stacks *s)
{
	if (!(width_of(&v->rows[row].amount) > 0))
		return true;
	const uint32_t *entries;
	size_t n = view_stack(v, &v->rows[row], &entries), need = s->n_frames + n;
	if (need > s->frames_capacity &&
	    !memory_grow((void **)&s->frames, &s->frames_capacity, need, sizeof(*s->frames), SIZE_MAX / 8))
		return false;
	struct sequence *stack = ARRAY_PUSH(s->stacks, s->n, s->capacity, UINT32_MAX);
	if (!stack)
		return false;
	*stack = (struct sequence){ s->n_frames, (uint32_t)n, row };
	for (size_t i = 0; i < n; i++)
		s->frames[s->n_frames + i] = entries[inverted ? i : n - 1 - i];
	s->n_frames += n;
	return true;
}

static bool copy_amounts(const struct view *v, struct flame_stacks *s)
{
	s->amounts = malloc((s->n + 1) * sizeof(*s->amounts));
	s->widths = malloc((s->n + 1) * sizeof(*s->widths));
	for (size_t i = 0; s->amounts && s->widths && i < s->n; i++) {
		s->amounts[i] = v->rows[s->stacks[i].item].amount;
		s->widths[i] = width_of(&s->amounts[i]);
	}
	return s->amounts && s->widths;
}

int flame_stacks_make(struct view *v, bool inverted, struct flame_stacks *ret, struct error *err)
{
	struct flame_stacks s = { 0 };
	bool ok = true;
	for (size_t i = 0; ok && i < v->n_rows; i++)
		ok = add_stack(v, (uint32_t)i, inverted, &s);
	if (!ok || !sequences_sort(s.frames, s.stacks, s.n, NULL, NULL) || !copy_amounts(v, &s)) {
		flame_stacks_finish(&s);
		return error_nomem(err, "the stacks of a flame graph");
	}
	*ret = s;
	return E_OK;
}

void flame_stacks_finish(struct flame_stacks *s)
{
	if (!s)
		return;
	free(s->frames);
	free(s->stacks);
	free(s->amounts);
	free(s->widths);
	*s = (struct flame_stacks){ 0 };
}

/* --- which nodes are kept --- */

struct node {
	uint32_t from, to;          /* stacks */
	uint32_t depth, entry;
	uint32_t first_child, next_sibling;   /* 0: none */
	double width;
	bool kept;
};

struct builder {
	struct view *v;
	const struct flame_stacks *s;
	struct node *nodes;
	size_t n, capacity;
	uint32_t *queue;            /* a heap of nodes, the widest on top */
	size_t queued, queue_capacity;
};

static bool before(const struct builder *b, uint32_t x, uint32_t y)
{
	double p = b->nodes[x].width, q = b->nodes[y].width;
	return p != q ? p > q : x < y;
}

static bool enqueue(struct builder *b, uint32_t node)
{
	uint32_t *slot = ARRAY_PUSH(b->queue, b->queued, b->queue_capacity, UINT32_MAX);
	if (!slot)
		return false;
	size_t at = b->queued - 1;
	for (; at > 0 && before(b, node, b->queue[(at - 1) / 2]); at = (at - 1) / 2)
		b->queue[at] = b->queue[(at - 1) / 2];
	b->queue[at] = node;
	return true;
}

static uint32_t dequeue(struct builder *b)
{
	uint32_t top = b->queue[0], last = b->queue[--b->queued];
	size_t at = 0;
	for (size_t child; (child = 2 * at + 1) < b->queued; at = child) {
		if (child + 1 < b->queued && before(b, b->queue[child + 1], b->queue[child]))
			child++;
		if (!before(b, b->queue[child], last))
			break;
		b->queue[at] = b->queue[child];
	}
	b->queue[at] = last;
	return top;
}

static bool add_node(struct builder *b, uint32_t from, uint32_t to, uint32_t depth, uint32_t entry)
{
	struct node *node = ARRAY_PUSH(b->nodes, b->n, b->capacity, UINT32_MAX - 1);
	if (!node)
		return false;
	*node = (struct node){ .from = from, .to = to, .depth = depth, .entry = entry };
	for (uint32_t i = from; i < to; i++)
		node->width += b->s->widths[i];
	return enqueue(b, (uint32_t)(b->n - 1));
}

/* Children of a node; those stacks that end in it come first. */
static bool open_node(struct builder *b, uint32_t id)
{
	struct node node = b->nodes[id];
	const struct sequence *stacks = b->s->stacks;
	uint32_t at = node.from;
	while (at < node.to && stacks[at].n == node.depth)
		at++;
	b->nodes[id].kept = true;
	while (at < node.to) {
		uint32_t from = at, entry = b->s->frames[stacks[at].first + node.depth];
		while (at < node.to && b->s->frames[stacks[at].first + node.depth] == entry)
			at++;
		if (!add_node(b, from, at, node.depth + 1, entry))
			return false;
		uint32_t child = (uint32_t)(b->n - 1);
		b->nodes[child].next_sibling = b->nodes[id].first_child;
		b->nodes[id].first_child = child;
	}
	return true;
}

static bool choose_nodes(struct builder *b, size_t limit)
{
	if (!add_node(b, 0, (uint32_t)b->s->n, 0, PROFILE_NONE))
		return false;
	for (size_t kept = 0; b->queued > 0 && kept <= limit; kept++)
		if (!open_node(b, dequeue(b)))
			return false;
	return true;
}

/* --- where they are --- */

/* A node that waits to become a box; cut ones of a parent arrive summed up. */
struct waiting {
	uint32_t node;             /* 0, and it's not the root: a remainder */
	uint32_t parent, merged;   /* parent: a box */
	double width;
	struct amount amount;
};

struct pile {
	struct waiting *items;
	size_t n, capacity;
};

/* Later ones come off the pile first: a remainder last, the widest first, equals by name. */
static int compare_waiting(const void *x, const void *y, void *context)
{
	const struct builder *b = context;
	const struct waiting *p = x, *q = y;
	if (!p->node || !q->node)
		return !p->node ? -1 : 1;
	if (p->width != q->width)
		return p->width < q->width ? -1 : 1;
	const struct entry *d = &b->v->entries[b->nodes[p->node].entry], *e = &b->v->entries[b->nodes[q->node].entry];
	int by_name = strcmp(profile_text(b->v->profile, d->name), profile_text(b->v->profile, e->name));
	return by_name ? -by_name : p->node < q->node ? 1 : -1;
}

static void sum_stacks(const struct builder *b, const struct node *node, struct amount *sum)
{
	for (uint32_t i = node->from; i < node->to; i++)
		amount_add(sum, &b->s->amounts[i]);
}

static bool push_children(struct builder *b, uint32_t id, uint32_t box, struct pile *pile)
{
	struct waiting rest = { .parent = box };
	size_t first = pile->n;
	for (uint32_t c = b->nodes[id].first_child; c; c = b->nodes[c].next_sibling) {
		const struct node *child = &b->nodes[c];
		if (!child->kept) {
			rest.merged++;
			rest.width += child->width;
			sum_stacks(b, child, &rest.amount);
			continue;
		}
		struct waiting *w = ARRAY_PUSH(pile->items, pile->n, pile->capacity, UINT32_MAX);
		if (!w)
			return false;
		*w = (struct waiting){ .node = c, .parent = box, .width = child->width };
		sum_stacks(b, child, &w->amount);
	}
	if (rest.merged) {
		struct waiting *w = ARRAY_PUSH(pile->items, pile->n, pile->capacity, UINT32_MAX);
		if (!w)
			return false;
		*w = rest;
	}
	if (pile->n > first)
		qsort_r(pile->items + first, pile->n - first, sizeof(*pile->items), compare_waiting, b);
	return true;
}

static bool place_boxes(struct builder *b, struct pile *pile, struct flame_boxes *out)
{
	struct waiting *root = ARRAY_PUSH(pile->items, pile->n, pile->capacity, UINT32_MAX);
	if (!root)
		return false;
	*root = (struct waiting){ .width = b->nodes[0].width };
	sum_stacks(b, &b->nodes[0], &root->amount);
	out->narrowest = root->width;
	while (pile->n > 0) {
		struct waiting next = pile->items[--pile->n];
		struct flame_box *box = ARRAY_PUSH(out->boxes, out->n, out->capacity, UINT32_MAX);
		if (!box)
			return false;
		uint32_t id = (uint32_t)(out->n - 1);
		*box = (struct flame_box){
			.entry = next.node ? b->nodes[next.node].entry : PROFILE_NONE,
			.merged = next.merged, .parent = next.parent,
			.width = next.width, .amount = next.amount,
		};
		if (id > 0) {
			struct flame_box *parent = &out->boxes[next.parent];
			box->depth = parent->depth + 1;
			box->start = parent->start + parent->children;
			parent->children += box->width;
		}
		out->cut |= next.merged > 0;
		if (next.merged)
			continue;
		out->kept += id > 0;
		out->narrowest = fmin(out->narrowest, next.width);
		if (!push_children(b, next.node, id, pile))
			return false;
	}
	return true;
}

int flame_boxes_make(struct view *v, const struct flame_stacks *s, size_t limit, struct flame_boxes *ret,
                     struct error *err)
{
	struct flame_boxes out = { 0 };
	struct builder b = { .v = v, .s = s };
	struct pile pile = { 0 };
	bool ok = choose_nodes(&b, limit) && place_boxes(&b, &pile, &out);
	free(b.nodes);
	free(b.queue);
	free(pile.items);
	if (!ok) {
		flame_boxes_finish(&out);
		return error_nomem(err, "the boxes of a flame graph");
	}
	*ret = out;
	return E_OK;
}

/* --- what changed, and how sure that is --- */

int flame_boxes_judge(struct view *v, struct flame_boxes *b, struct error *err)
{
	for (size_t i = 0; v->has_error && i < b->n; i++)
		b->boxes[i].around = amount_interval(&b->boxes[i].amount);
	if (!v->diff)
		return E_OK;
	const struct amount **amounts = malloc(b->n * sizeof(*amounts));
	bool *noise = malloc(b->n * sizeof(*noise));
	bool ok = amounts && noise;
	for (size_t i = 0; ok && i < b->n; i++)
		amounts[i] = &b->boxes[i].amount;
	ok = ok && picture_noise(v, amounts, b->n, noise);
	for (size_t i = 0; ok && i < b->n; i++)
		b->boxes[i].change = picture_classify(&b->boxes[i].amount, noise[i]);
	free(amounts);
	free(noise);
	return ok ? E_OK : error_nomem(err, "the boxes of a flame graph");
}

void flame_boxes_finish(struct flame_boxes *b)
{
	if (!b)
		return;
	free(b->boxes);
	*b = (struct flame_boxes){ 0 };
}
