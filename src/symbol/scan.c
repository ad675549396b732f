/*
 * One walk over a unit's tree. A function or inlined call whose ranges have some of the asked
 * addresses becomes a code node, and those addresses point to it until a deeper one takes them.
 *
 * Types and functions without any of the addresses are stepped over where their entry tells its
 * sibling (GCC's do), and walked through where it doesn't (LLVM's): that costs the same. Methods
 * of local classes can hide in what was stepped over, so when an address inside a function symbol
 * is still without a function, a second walk goes everywhere.
 */
#include <dwarf.h>
#include <stdlib.h>

#include "symbol/debug_info.h"

struct scan {
	struct debug_info *d;
	const struct asked *asked;
	size_t n;
	bool scoped;                 /* the language has mangled names */
	bool everywhere;
	bool stepped_over;           /* something was, that may have functions in it */
	uint32_t *at_depth;          /* innermost code node at each depth of the tree */
	size_t at_depth_capacity;
	struct error *err;
};

static bool has_code(Dwarf_Die *die)
{
	return dwarf_hasattr(die, DW_AT_low_pc) || dwarf_hasattr(die, DW_AT_ranges);
}

/* How much code a function claims, to choose between two that claim the same. */
static uint64_t claimed_bytes(struct debug_info *d, Dwarf_Die *die)
{
	uint64_t sum = 0;
	for (struct range_walk w = { 0 }; range_next(d, die, &w);)
		sum += w.high - w.low;
	return sum;
}

/* May a node that lies in parent have this place? */
static bool takes(const struct scan *s, const struct code_place *place, const struct code_node *node)
{
	if (node->parent != NODE_NONE)
		return place->node == node->parent;
	if (place->node == NODE_NONE)
		return true;
	const struct code_node *owner = &s->d->nodes[s->d->nodes[place->node].function_node];
	return node->code_bytes < owner->code_bytes;
}

/* Gives the node its addresses; *ret is its number, or NODE_NONE when it has none. */
static int attach(struct scan *s, Dwarf_Die *die, uint32_t parent, uint32_t *ret)
{
	struct debug_info *d = s->d;
	struct code_node node = { .die = *die, .parent = parent };
	*ret = NODE_NONE;
	for (struct range_walk w = { 0 }; range_next(d, die, &w);) {
		size_t i = asked_lower_bound(s->asked, s->n, w.low);
		for (; i < s->n && s->asked[i].address < w.high; i++) {
			if (!debug_spend(&d->budget, &d->budget.hits, 1))
				return 0;
			if (parent == NODE_NONE && !node.code_bytes)
				node.code_bytes = claimed_bytes(d, die);
			struct code_place *place = &d->places[s->asked[i].index];
			if (!takes(s, place, &node))
				continue;
			if (*ret == NODE_NONE) {
				struct code_node *slot = ARRAY_PUSH(d->nodes, d->n_nodes,
				                                    d->nodes_capacity, NODES_MAX);
				if (!slot)
					return error_nomem(s->err, "debug information");
				*ret = (uint32_t)(d->n_nodes - 1);
				node.function_node = parent == NODE_NONE ? *ret : d->nodes[parent].function_node;
				*slot = node;
			}
			place->node = *ret;
			if (parent == NODE_NONE)
				place->file = NULL;      /* another unit's line, if any */
		}
	}
	return 0;
}

/* Remembers where the code of an inlined function is, if it also exists out of line. */
static int note_concrete(struct scan *s, Dwarf_Die *die)
{
	Dwarf_Attribute a;
	Dwarf_Die origin;
	uint64_t entry;
	if (!dwarf_attr(die, DW_AT_abstract_origin, &a) || !dwarf_formref_die(&a, &origin) ||
	    !code_entry(s->d, die, &entry))
		return 0;
	struct concrete *slot = ARRAY_PUSH(s->d->concretes, s->d->n_concretes,
	                                   s->d->concretes_capacity, NODES_MAX);
	if (!slot)
		return error_nomem(s->err, "debug information");
	*slot = (struct concrete){ origin.addr, entry };
	return 0;
}

enum visit { STEP_INTO, STEP_OVER };

static bool is_scope(int tag)
{
	return tag == DW_TAG_namespace || tag == DW_TAG_module || tag == DW_TAG_lexical_block ||
	       tag == DW_TAG_try_block || tag == DW_TAG_catch_block || tag == DW_TAG_with_stmt ||
	       tag == DW_TAG_common_block;
}

/* Types that may have functions in them. */
static bool is_type_scope(int tag)
{
	return tag == DW_TAG_class_type || tag == DW_TAG_structure_type || tag == DW_TAG_union_type ||
	       tag == DW_TAG_interface_type || tag == DW_TAG_enumeration_type ||
	       tag == DW_TAG_variant_part || tag == DW_TAG_variant;
}

/* Into what isn't asked for: only when stepping over it is no cheaper, or it must be. */
static enum visit uninteresting(struct scan *s, Dwarf_Die *die)
{
	if (s->everywhere || !dwarf_hasattr(die, DW_AT_sibling))
		return STEP_INTO;
	s->stepped_over = true;
	return STEP_OVER;
}

/* inside: the code node that this entry lies in; *ret_inside: that of its children. */
static int visit(struct scan *s, Dwarf_Die *die, uint32_t inside, uint32_t *ret_inside,
                 enum visit *ret)
{
	int tag = dwarf_tag(die), rc = 0;
	*ret_inside = inside;
	if (tag == DW_TAG_subprogram || (tag == DW_TAG_inlined_subroutine && inside != NODE_NONE)) {
		*ret_inside = NODE_NONE;
		if (has_code(die))
			rc = attach(s, die, tag == DW_TAG_subprogram ? NODE_NONE : inside, ret_inside);
		if (rc == 0 && tag == DW_TAG_subprogram && s->scoped && !s->everywhere)
			rc = note_concrete(s, die);
		*ret = *ret_inside != NODE_NONE ? STEP_INTO : uninteresting(s, die);
	} else if (tag == DW_TAG_inlined_subroutine || is_type_scope(tag)) {
		*ret = uninteresting(s, die);
	} else {
		*ret = is_scope(tag) ? STEP_INTO : STEP_OVER;
	}
	return rc;
}

static int walk(struct scan *s, Dwarf_Die *unit)
{
	struct debug_info *d = s->d;
	struct die_cursor c;
	enum cursor_step step = cursor_begin(&c, unit);
	if (!memory_grow((void **)&s->at_depth, &s->at_depth_capacity, 2, sizeof(*s->at_depth),
	                 CURSOR_DEPTH_MAX + 2))
		return error_nomem(s->err, "debug information");
	s->at_depth[0] = s->at_depth[1] = NODE_NONE;
	const unsigned char *before = unit->addr;
	while (step == CURSOR_AT) {
		const unsigned char *at = c.die.addr;
		if (d->budget.exceeded ||
		    !debug_spend(&d->budget, &d->budget.entry_bytes, (uint64_t)(at - before)))
			return 0;
		before = at;
		if (!memory_grow((void **)&s->at_depth, &s->at_depth_capacity, c.depth + 2,
		                 sizeof(*s->at_depth), CURSOR_DEPTH_MAX + 2))
			return error_nomem(s->err, "debug information");
		enum visit next;
		int rc = visit(s, &c.die, s->at_depth[c.depth], &s->at_depth[c.depth + 1], &next);
		if (rc)
			return rc;
		step = next == STEP_INTO ? cursor_into(&c) : cursor_over(&c);
	}
	if (step == CURSOR_DAMAGED)
		d->damaged = true;
	return 0;
}

/* Is it code of a function that we still have no name for? Padding isn't worth a second walk. */
static bool is_missing(const struct debug_info *d, const struct asked *a)
{
	return d->places[a->index].node == NODE_NONE &&
	       (!d->have_symtab || d->symbols[a->index].name);
}

int scan_unit(struct debug_info *d, Dwarf_Die *unit, const struct asked_list *asked,
              struct error *err)
{
	struct scan s = { .d = d, .asked = asked->items, .n = asked->n, .err = err };
	s.scoped = language_has_scopes(dwarf_srclang(unit));
	int rc = walk(&s, unit);
	struct asked *missing = NULL;
	size_t n = 0, capacity = 0;
	for (size_t i = 0; i < asked->n && rc == 0 && s.stepped_over; i++) {
		if (!is_missing(d, &asked->items[i]))
			continue;
		struct asked *slot = ARRAY_PUSH(missing, n, capacity, NODES_MAX);
		if (slot)
			*slot = asked->items[i];
		else
			rc = error_nomem(err, "debug information");
	}
	if (rc == 0 && n) {
		s.asked = missing;
		s.n = n;
		s.everywhere = true;
		rc = walk(&s, unit);
	}
	free(missing);
	free(s.at_depth);
	return rc;
}
