/*
 * A parent is at least as wide as each of its children and comes before them in the tree,
 * so "the n widest, the earlier one first when equal" is always a tree again: no box
 * loses its parent.
 */
#include "report/flame_boxes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Per node of the tree. */
struct measure {
	double *width;
	uint32_t *frames;    /* the node and what is below it, without what has no width */
	bool *kept;
};

static void measure_finish(struct measure *m)
{
	free(m->width);
	free(m->frames);
	free(m->kept);
}

static bool measure_tree(const struct tree *t, struct measure *m)
{
	m->width = calloc(t->n, sizeof(*m->width));
	m->frames = calloc(t->n, sizeof(*m->frames));
	m->kept = calloc(t->n, sizeof(*m->kept));
	if (!m->width || !m->frames || !m->kept)
		return false;
	for (size_t i = t->n; i-- > 0;) {
		const struct tree_node *node = &t->nodes[i];
		m->width[i] += fmax(fabs(node->self.base), fabs(node->self.now));
		if (m->width[i] > 0)
			m->frames[i]++;
		if (i > 0) {
			m->width[node->parent] += m->width[i];
			m->frames[node->parent] += m->frames[i];
		}
	}
	return true;
}

/* --- which are kept --- */

/* Classes of nearly equal width, in order of width: 64 of them from one power of two to the next. */
#define WIDTH_CLASS_SHIFT 46
#define WIDTH_CLASSES (1u << (63 - WIDTH_CLASS_SHIFT))

static uint32_t width_class(double width)
{
	uint64_t bits;
	memcpy(&bits, &width, sizeof(bits));
	return (uint32_t)(bits >> WIDTH_CLASS_SHIFT);
}

/* All classes that fit into the limit as a whole, and of the next one the first in tree order. */
static bool choose_kept(const struct tree *t, struct measure *m, size_t limit)
{
	uint32_t *population = calloc(WIDTH_CLASSES, sizeof(*population));
	if (!population)
		return false;
	for (size_t i = 0; i < t->n; i++)
		if (m->width[i] > 0)
			population[width_class(m->width[i])]++;
	size_t room = limit;
	uint32_t border = WIDTH_CLASSES;
	while (border > 0 && population[border - 1] <= room)
		room -= population[--border];
	free(population);
	for (size_t i = 0; i < t->n; i++) {
		if (!(m->width[i] > 0))
			continue;
		uint32_t class = width_class(m->width[i]);
		m->kept[i] = class >= border;
		/* The parent may be of the same class and have found no room. */
		if (border > 0 && class == border - 1 && room > 0 && m->kept[t->nodes[i].parent]) {
			m->kept[i] = true;
			room--;
		}
	}
	m->kept[0] = true;
	return true;
}

/* --- where they are --- */

/* A node that waits to become a box; cut ones of a parent arrive summed up. */
struct waiting {
	uint32_t node;             /* PROFILE_NONE: a remainder */
	uint32_t parent, merged;   /* parent: a box */
	uint32_t rank;             /* among its siblings, as the tree has them */
	double width;
	struct amount amount;
};

struct builder {
	const struct tree *t;
	const struct measure *m;
	struct waiting *waiting;
	size_t n, capacity;
};

static int compare_waiting(const void *a, const void *b)
{
	const struct waiting *x = a, *y = b;
	bool x_rest = x->node == PROFILE_NONE, y_rest = y->node == PROFILE_NONE;
	if (x_rest != y_rest)
		return x_rest ? -1 : 1;
	if (x->width != y->width)
		return x->width < y->width ? -1 : 1;
	return x->rank < y->rank ? 1 : -1;
}

/* Children of a box onto the pile, so that the widest comes off first and the remainder last. */
static bool push_children(struct builder *b, uint32_t node, uint32_t box, struct flame_boxes *out)
{
	struct waiting rest = { .node = PROFILE_NONE, .parent = box };
	size_t first = b->n;
	uint32_t rank = 0;
	for (uint32_t c = b->t->nodes[node].first_child; c; c = b->t->nodes[c].next_sibling) {
		const struct amount *amount = &b->t->nodes[c].total;
		if (!b->m->kept[c]) {
			rest.merged += b->m->frames[c];
			rest.width += b->m->width[c];
			amount_add(&rest.amount, amount);
			continue;
		}
		struct waiting *w = ARRAY_PUSH(b->waiting, b->n, b->capacity, UINT32_MAX);
		if (!w)
			return false;
		*w = (struct waiting){ .node = c, .parent = box, .rank = rank++,
		                       .width = b->m->width[c], .amount = *amount };
	}
	if (rest.merged) {
		struct waiting *w = ARRAY_PUSH(b->waiting, b->n, b->capacity, UINT32_MAX);
		if (!w)
			return false;
		*w = rest;
		out->cut += rest.merged;
	}
	if (b->n > first)
		qsort(b->waiting + first, b->n - first, sizeof(*b->waiting), compare_waiting);
	return true;
}

static bool place_boxes(struct builder *b, struct flame_boxes *out)
{
	struct waiting root = { .width = b->m->width[0], .amount = b->t->nodes[0].total };
	struct waiting *w = ARRAY_PUSH(b->waiting, b->n, b->capacity, UINT32_MAX);
	if (!w)
		return false;
	*w = root;
	out->narrowest = root.width;
	while (b->n > 0) {
		struct waiting next = b->waiting[--b->n];
		struct flame_box *box = ARRAY_PUSH(out->boxes, out->n, out->capacity, UINT32_MAX);
		if (!box)
			return false;
		uint32_t id = (uint32_t)(out->n - 1);
		*box = (struct flame_box){
			.entry = next.node == PROFILE_NONE ? PROFILE_NONE : b->t->nodes[next.node].entry,
			.merged = next.merged, .parent = next.parent,
			.width = next.width, .amount = next.amount,
		};
		if (id > 0) {
			struct flame_box *parent = &out->boxes[next.parent];
			box->depth = parent->depth + 1;
			box->start = parent->start + parent->children;
			parent->children += box->width;
		}
		if (next.node == PROFILE_NONE)
			continue;
		out->narrowest = fmin(out->narrowest, next.width);
		if (!push_children(b, next.node, id, out))
			return false;
	}
	return true;
}

/* --- what changed --- */

static bool classify(struct view *v, struct flame_boxes *b)
{
	if (!v->diff)
		return true;
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
	return ok;
}

int flame_boxes_make(struct view *v, const struct tree *t, size_t limit, struct flame_boxes *ret,
                     struct error *err)
{
	struct flame_boxes out = { 0 };
	struct measure m = { 0 };
	struct builder b = { .t = t, .m = &m };
	bool ok = measure_tree(t, &m) && choose_kept(t, &m, limit) && place_boxes(&b, &out) &&
	          classify(v, &out);
	if (ok)
		out.frames = m.frames[0] ? m.frames[0] - 1 : 0;
	free(b.waiting);
	measure_finish(&m);
	if (!ok) {
		flame_boxes_finish(&out);
		return error_nomem(err, "the boxes of a flame graph");
	}
	*ret = out;
	return E_OK;
}

void flame_boxes_finish(struct flame_boxes *b)
{
	if (!b)
		return;
	free(b->boxes);
	*b = (struct flame_boxes){ 0 };
}
