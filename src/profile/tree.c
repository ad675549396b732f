/*
 * The calling-context tree: rows with a common way from the root share nodes. Nodes are found by (parent,
 * entry) while rows are added, then each node's children are put in order of size.
 */
#include "profile/view_private.h"

#include <math.h>
#include <stdlib.h>

struct node_key {
	const struct tree *t;
	uint32_t parent, entry;
};

static bool same_node(const void *context, uint32_t item)
{
	const struct node_key *k = context;
	return k->t->nodes[item].parent == k->parent && k->t->nodes[item].entry == k->entry;
}

static uint32_t child_of(struct tree *t, struct index *x, uint32_t parent, uint32_t entry)
{
	uint64_t hash = hash_u64((uint64_t)parent << 32 | entry);
	struct node_key key = { t, parent, entry };
	uint32_t id = index_find(x, hash, same_node, &key);
	if (id != INDEX_NONE)
		return id;
	struct tree_node *node = index_reserve(x) ? ARRAY_PUSH(t->nodes, t->n, t->capacity, INDEX_NONE - 1)
	                                          : NULL;
	if (!node)
		return INDEX_NONE;
	*node = (struct tree_node){ .entry = entry, .parent = parent, .depth = t->nodes[parent].depth + 1 };
	id = (uint32_t)(t->n - 1);
	index_insert(x, hash, id);
	return id;
}

static bool add_row(struct view *v, const struct view_row *row, bool inverted, struct tree *t, struct index *x)
{
	const uint32_t *entries;
	size_t n = view_stack(v, row, &entries);
	uint32_t at = 0;
	if (!entries)
		return false;
	amount_add(&t->nodes[0].total, &row->amount);
	for (size_t i = 0; i < n; i++) {
		at = child_of(t, x, at, entries[inverted ? i : n - 1 - i]);
		if (at == INDEX_NONE)
			return false;
		amount_add(&t->nodes[at].total, &row->amount);
	}
	amount_add(&t->nodes[at].self, &row->amount);
	return true;
}

struct siblings {
	const struct view *v;
	const struct tree_node *nodes;
};

static double size_of(const struct tree_node *n)
{
	return fmax(fabs(n->total.base), fabs(n->total.now));
}

static int compare_siblings(const void *a, const void *b, void *context)
{
	const struct siblings *c = context;
	const struct tree_node *x = &c->nodes[*(const uint32_t *)a], *y = &c->nodes[*(const uint32_t *)b];
	if (size_of(x) != size_of(y))
		return size_of(x) > size_of(y) ? -1 : 1;
	const struct profile *p = c->v->profile;
	int by_name = strcmp(profile_text(p, c->v->entries[x->entry].name),
	                     profile_text(p, c->v->entries[y->entry].name));
	return by_name ? by_name : (x->entry > y->entry) - (x->entry < y->entry);
}

/* Groups the nodes by parent with a counting sort; nearly all groups have one member and need no order. */
static bool link_children(struct view *v, struct tree *t)
{
	uint32_t *order = malloc(t->n * sizeof *order);
	uint32_t *ends = calloc(t->n + 1, sizeof *ends);
	struct siblings context = { v, t->nodes };
	bool ok = order && ends;
	for (size_t i = 1; ok && i < t->n; i++)
		ends[t->nodes[i].parent + 1]++;
	for (size_t i = 0; ok && i < t->n; i++)
		ends[i + 1] += ends[i];
	/* ends[parent] is where its group starts, and after this loop where it ends */
	for (size_t i = 1; ok && i < t->n; i++)
		order[ends[t->nodes[i].parent]++] = (uint32_t)i;
	for (size_t i = 0, start = 0; ok && i < t->n; start = ends[i++]) {
		size_t n = ends[i] - start;
		if (n > 1)
			qsort_r(order + start, n, sizeof *order, compare_siblings, &context);
		for (size_t k = n; k > 0; k--) {
			uint32_t child = order[start + k - 1];
			t->nodes[child].next_sibling = t->nodes[i].first_child;
			t->nodes[i].first_child = child;
		}
	}
	free(order);
	free(ends);
	return ok;
}

int view_tree(struct view *v, bool inverted, struct tree *ret, struct error *err)
{
	struct tree t = { 0 };
	struct index x = { 0 };
	struct tree_node *root = ARRAY_PUSH(t.nodes, t.n, t.capacity, 1024);
	bool ok = root != NULL;
	if (ok)
		*root = (struct tree_node){ .entry = PROFILE_NONE };
	for (size_t i = 0; ok && i < v->n_rows; i++)
		ok = add_row(v, &v->rows[i], inverted, &t, &x);
	index_finish(&x);
	if (!ok || !link_children(v, &t)) {
		tree_finish(&t);
		return error_nomem(err, "the call tree");
	}
	*ret = t;
	return E_OK;
}

void tree_finish(struct tree *t)
{
	if (!t)
		return;
	free(t->nodes);
	*t = (struct tree){ 0 };
}
