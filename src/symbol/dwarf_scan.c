/*
 * One walk over a unit's entries. A function or inlined call whose ranges have some of the asked addresses becomes a node, and
 * those addresses point to it until an inlined call inside takes them.
 *
 * Everything else is stepped over by its abbreviation's step; whole subtrees are where the entry tells its sibling (GCC's do; where
 * it doesn't, as LLVM's, walking through costs little). Methods of local classes can hide in what was stepped over,
 * so when an address that a symbol covers is still without a function, a second walk goes everywhere.
 */
#include <stdlib.h>

#include "symbol/dwarf.h"
#include "symbol/dwarf_constants.h"
#include "symbol/dwarf_steps.h"

#define LEVELS_MAX ((size_t)1 << 20)

/* From which depth of the tree on entries lie in that node. */
struct level {
	uint32_t depth, node;
};

struct scan {
	struct dwarf_worker *w;
	const struct unit *u;
	const struct abbrevs *abbrevs;
	const struct asked *asked;
	size_t n, left;              /* left: without a function */
	uint64_t first, last;        /* of the asked addresses */
	const uint8_t *start, *end;  /* start: what references count from */
	struct kept_unit *keeping;   /* not NULL: functions are only noted there */
	struct level *levels;    size_t n_levels, levels_capacity;
	uint32_t depth;
	bool everywhere, stepped_over, scoped;
};

bool language_has_scopes(unsigned language)
{
	switch (language) {
	case DW_LANG_C_plus_plus:
	case DW_LANG_C_plus_plus_03:
	case DW_LANG_C_plus_plus_11:
	case DW_LANG_C_plus_plus_14:
	case DW_LANG_C_plus_plus_17:
	case DW_LANG_C_plus_plus_20:
	case DW_LANG_Rust:
		return true;
	default:
		return false;
	}
}

/* --- entries with code --- */

static void take_value(struct entry_values *values, const struct operation *o, const uint8_t *at)
{
	values->of[o->want] = (struct attribute){ .form = o->form, .implicit = o->implicit, .at = at };
	values->present |= 1u << o->want;
}

const uint8_t *entry_read(const struct abbrevs *a, uint64_t code, const struct unit *u, const uint8_t *p, const uint8_t *end,
                          struct entry_values *values)
{
	for (const struct operation *o = &a->operations[a->items[code].operations];; o++) {
		uint64_t n = 0;
		switch (o->kind) {
		case OP_END:
			return p;
		case OP_FIXED:
			n = o->bytes;
			break;
		case OP_NUMBER:
			skip_leb(&p);
			break;
		case OP_WANT:
			if (values)
				take_value(values, o, p);
			n = o->bytes;
			break;
		case OP_WANT_VARIABLE:
			if (values)
				take_value(values, o, p);
			p = form_skip(o->form, p, end, u);
			break;
		case OP_STRING:
			p = p < end ? memchr(p, 0, (size_t)(end - p)) : NULL;
			p = p ? p + 1 : NULL;
			break;
		case OP_BLOCK1:
			n = *p++;
			break;
		case OP_BLOCK2:
			n = read_u16(p, u->file->swapped);
			p += 2;
			break;
		case OP_BLOCK4:
			n = read_u32(p, u->file->swapped);
			p += 4;
			break;
		case OP_BLOCK:
			n = read_uleb(&p);
			break;
		case OP_INDIRECT:
			p = form_skip(DW_FORM_indirect, p, end, u);
			break;
		default:
			return NULL;
		}
		if (!p || p > end || n > (uint64_t)(end - p))
			return NULL;
		p += n;
	}
}

static uint64_t value_of(const struct scan *s, const struct entry_values *v, enum wanted which)
{
	return v->present & 1u << which ? attribute_number(&v->of[which], s->u) : 0;
}

static uint32_t small(uint64_t value)
{
	return value > INT32_MAX ? 0 : (uint32_t)value;
}

static uint32_t add_node(struct scan *s, const struct entry_values *v, uint64_t entry, uint32_t parent, uint32_t asked)
{
	struct dwarf_worker *w = s->w;
	struct node *node = ARRAY_PUSH(w->nodes, w->n_nodes, w->nodes_capacity, NODES_MAX);
	if (!node) {
		w->no_memory = true;
		return NODE_NONE;
	}
	*node = (struct node){
		.unit = s->u, .entry = entry, .parent = parent, .asked = asked,
		.name = DWARF_NO_TEXT, .scope = DWARF_NO_TEXT, .call_path = DWARF_NO_TEXT,
		.origin = value_of(s, v, WANT_ORIGIN),
		.origin_form = v->present & 1u << WANT_ORIGIN ? v->of[WANT_ORIGIN].form : 0,
		.call_file = small(value_of(s, v, WANT_CALL_FILE)),
		.call_line = small(value_of(s, v, WANT_CALL_LINE)),
		.call_column = small(value_of(s, v, WANT_CALL_COLUMN)),
	};
	return (uint32_t)(w->n_nodes - 1);
}

/* The next range of an entry where code can be and some address was asked; *ret_at is the first. */
static bool next_asked(struct scan *s, struct range_list *l, uint64_t *ret_high, size_t *ret_at)
{
	uint64_t low;
	while (spend(&s->w->budget, 8) && ranges_next(l, &low, ret_high)) {
		if (*ret_high <= s->first || low > s->last || low >= *ret_high)
			continue;
		*ret_at = asked_lower_bound(s->asked, s->n, low);
		if (*ret_at < s->n && s->asked[*ret_at].address < *ret_high && join_has_code(s->w->join, low))
			return true;
	}
	return false;
}

/*
 * Most entries have one range, and no address of it was asked: true when that is seen at a glance, in the forms that compilers use.
 * False tells nothing.
 */
static inline bool nothing_asked(const struct scan *s, const struct entry_values *v)
{
	const struct attribute *low_pc = &v->of[WANT_LOW], *high_pc = &v->of[WANT_HIGH];
	uint32_t both = 1u << WANT_LOW | 1u << WANT_HIGH;
	bool swapped = s->u->file->swapped;
	if ((v->present & (both | 1u << WANT_RANGES)) != both || low_pc->form != DW_FORM_addr || s->u->address_bytes != 8)
		return false;
	uint64_t low = read_u64(low_pc->at, swapped), bytes;
	if (high_pc->form == DW_FORM_data4)
		bytes = read_u32(high_pc->at, swapped);
	else if (high_pc->form == DW_FORM_data8)
		bytes = read_u64(high_pc->at, swapped);
	else
		return false;
	if (low > s->last || bytes > UINT64_MAX - low || low + bytes <= s->first)
		return true;
	size_t at = asked_lower_bound(s->asked, s->n, low);
	return at == s->n || s->asked[at].address >= low + bytes;
}

static void ranges_of(const struct scan *s, const struct entry_values *v, struct range_list *ret)
{
	static const struct attribute absent;
	ranges_begin(ret, s->u, v->present & 1u << WANT_LOW ? &v->of[WANT_LOW] : &absent,
	             v->present & 1u << WANT_HIGH ? &v->of[WANT_HIGH] : &absent,
	             v->present & 1u << WANT_RANGES ? &v->of[WANT_RANGES] : &absent);
}

/* Gives the entry its addresses; its node, or NODE_NONE when it has none. */
static uint32_t attach(struct scan *s, const struct entry_values *v, uint64_t entry, uint32_t parent)
{
	struct place *places = s->w->join->places;
	struct range_list l;
	uint64_t high;
	uint32_t node = NODE_NONE;
	size_t i;
	if (nothing_asked(s, v))
		return NODE_NONE;
	for (ranges_of(s, v, &l); next_asked(s, &l, &high, &i);)
		for (; i < s->n && s->asked[i].address < high; i++) {
			struct place *place = &places[s->asked[i].index];
			if (!spend(&s->w->budget, 2) || place->node != parent)
				continue;
			if (node == NODE_NONE)
				node = add_node(s, v, entry, parent, s->asked[i].index);
			if (node == NODE_NONE)
				return NODE_NONE;
			place->node = node;
			place->thread = s->w->number;
			s->left -= parent == NODE_NONE;
		}
	return node;
}

static bool any_asked(struct scan *s, const struct entry_values *v)
{
	struct range_list l;
	uint64_t high;
	size_t i;
	if (nothing_asked(s, v))
		return false;
	ranges_of(s, v, &l);
	return next_asked(s, &l, &high, &i);
}

/* The address a function begins at. */
static uint64_t code_of(struct scan *s, const struct entry_values *v)
{
	struct range_list l;
	uint64_t low, high;
	ranges_of(s, v, &l);
	while (spend(&s->w->budget, 8) && ranges_next(&l, &low, &high))
		if (low < high && join_has_code(s->w->join, low))
			return low;
	return 0;
}

/* Remembers where the code of an inlined function is, if it also exists out of line. */
static void note_concrete(struct scan *s, const struct entry_values *v, uint64_t code)
{
	struct dwarf_worker *w = s->w;
	struct concrete c = { .code = code };
	if (!form_reference(v->of[WANT_ORIGIN].form, value_of(s, v, WANT_ORIGIN), s->u, &c.file, &c.origin))
		return;
	struct concrete *slot = ARRAY_PUSH(w->concretes, w->n_concretes, w->concretes_capacity, NODES_MAX);
	if (slot)
		*slot = c;
	else
		w->no_memory = true;
}

/* Where its code is. */
static void keep_function(struct scan *s, const struct entry_values *v, uint64_t entry)
{
	struct kept_unit *k = s->keeping;
	struct range_list l;
	uint64_t low, high, offset = entry - s->u->offset;
	for (ranges_of(s, v, &l); spend(&s->w->budget, 8) && ranges_next(&l, &low, &high);)
		if (low < high && join_has_code(s->w->join, low) &&
		    (offset > UINT32_MAX || !intervals_add(&k->functions[s->everywhere], low, high, (uint32_t)offset)))
			k->cannot = true;
}

/* --- the walk --- */

static uint32_t inside(const struct scan *s)
{
	return s->n_levels ? s->levels[s->n_levels - 1].node : NODE_NONE;
}

static bool enter(struct scan *s, uint32_t node)
{
	s->depth++;
	if (inside(s) == node)
		return true;
	struct level *slot = ARRAY_PUSH(s->levels, s->n_levels, s->levels_capacity, LEVELS_MAX);
	if (slot)
		*slot = (struct level){ s->depth, node };
	return slot != NULL;
}

/* Where a sibling reference leads, if that is forward. */
static const uint8_t *sibling(const struct scan *s, const uint8_t *p, uint64_t offset)
{
	if (offset > (uint64_t)(s->end - s->start))
		return NULL;
	const uint8_t *to = s->start + offset;
	return to >= p ? to : NULL;
}

/* An entry with code, in which p is behind its code. Where to go on; NULL at damage. */
static const uint8_t *visit(struct scan *s, uint64_t code, uint64_t entry, const uint8_t *p)
{
	const struct step *step = &s->abbrevs->steps[code];
	struct entry_values v;
	v.present = 0;
	p = entry_read(s->abbrevs, code, s->u, p, s->end, &v);
	if (!p)
		return NULL;
	uint32_t around = inside(s), node = around;
	bool wanted;
	if (step->entry == ENTRY_FUNCTION) {
		if (s->keeping)
			keep_function(s, &v, entry);
		else
			node = attach(s, &v, entry, NODE_NONE);
		wanted = !s->keeping && node != NODE_NONE;
		bool is_concrete = v.present & 1u << WANT_ORIGIN && !s->everywhere;
		uint64_t begins = s->scoped && (wanted || is_concrete) ? code_of(s, &v) : 0;
		if (wanted)
			s->w->nodes[node].code = begins;
		if (is_concrete && begins)
			note_concrete(s, &v, begins);
	} else if (step->entry == ENTRY_INLINED) {
		node = attach(s, &v, entry, around);
		wanted = node != NODE_NONE;
	} else {
		wanted = any_asked(s, &v);
	}
	if (!step->children)
		return p;
	if (!wanted && !s->everywhere && v.present & 1u << WANT_SIBLING) {
		const uint8_t *to = sibling(s, p, value_of(s, &v, WANT_SIBLING));
		if (to) {
			s->stepped_over = true;
			return to;
		}
	}
	return enter(s, wanted ? node : NODE_NONE) ? p : NULL;
}

static const uint8_t *plain(struct scan *s, uint64_t code, const uint8_t *p)
{
	const struct step *step = &s->abbrevs->steps[code];
	p = entry_skip(s->abbrevs, code, s->u, p, s->end);
	if (!p || !step->children)
		return p;
	if (step->back && step->entry != ENTRY_SCOPE && !s->everywhere && p <= s->end) {
		const uint8_t *to = sibling(s, p, read_u32(p - step->back, s->u->file->swapped));
		if (to) {
			s->stepped_over = true;
			return to;
		}
	}
	s->depth++;
	return p;
}

/* Behind the unit's own entry; NULL when there is nothing below it. */
static const uint8_t *begin(const struct abbrevs *a, const struct unit *u, const uint8_t *end)
{
	const uint8_t *p = u->file->info.at + u->first_entry;
	uint64_t code = read_uleb(&p);
	if (p >= end || code == 0 || code >= a->n || !a->items[code].known || !a->items[code].children)
		return NULL;
	return entry_skip(a, code, u, p, end);
}

/* From p on, which is at depth s->depth, until something ends at that depth. Where that is; NULL at damage. */
static const uint8_t *walk_from(struct scan *s, const uint8_t *p)
{
	const struct step *steps = s->abbrevs->steps;
	const uint8_t *section = s->u->file->info.at;
	uint32_t bottom = s->depth - 1;
	while (p && p < s->end) {
		uint64_t entry = (uint64_t)(p - section), code = read_uleb(&p);
		if (code == 0) {
			if (--s->depth == bottom)
				return p;
			while (s->n_levels && s->levels[s->n_levels - 1].depth > s->depth)
				s->n_levels--;
			if (s->left == 0 && s->n_levels == 0)
				return p;
			continue;
		}
		if (code >= s->abbrevs->n || s->w->budget.exceeded)
			return NULL;
		unsigned kind = steps[code].entry;
		bool visited = kind == ENTRY_FUNCTION || (kind > ENTRY_FUNCTION && inside(s) != NODE_NONE);
		p = visited ? visit(s, code, entry, p) : plain(s, code, p);
	}
	return p;
}

static void walk(struct scan *s)
{
	if (!spend(&s->w->budget, (uint64_t)(s->end - s->start)))
		return;
	s->depth = 1;
	s->n_levels = 0;
	const uint8_t *first = begin(s->abbrevs, s->u, s->end);
	if (!first || !walk_from(s, first))
		s->w->damaged = true;
}

/* One function. */
static void walk_function(struct scan *s, uint64_t entry)
{
	const uint8_t *first = s->u->file->info.at + entry, *p = first;
	uint64_t code = read_uleb(&p);
	s->depth = 1;
	s->n_levels = 0;
	p = visit(s, code, entry, p);
	if (p && s->depth > 1)
		p = walk_from(s, p);
	if (p)
		spend(&s->w->budget, (uint64_t)(p - first));
	else
		s->w->damaged = true;
}

/* Is there code of a function that we still have no name for? Padding isn't worth a second walk. */
static bool misses_code(const struct scan *s)
{
	const struct dwarf_join *j = s->w->join;
	for (size_t i = 0; i < s->n; i++)
		if (j->places[s->asked[i].index].node == NODE_NONE && join_is_function(j, s->asked[i].index))
			return true;
	return false;
}

static bool begin_scan(struct scan *s, struct dwarf_worker *w, const struct unit *tree, const struct asked *asked, size_t n)
{
	*s = (struct scan){ .w = w, .u = tree, .asked = asked, .n = n };
	s->abbrevs = abbrevs_of(w, tree, true);
	if (!s->abbrevs)
		return false;
	if (n) {
		s->first = asked[0].address;
		s->last = asked[n - 1].address;
	}
	s->start = tree->file->info.at + tree->offset;
	s->end = tree->file->info.at + tree->end;
	s->scoped = language_has_scopes(tree->language);
	for (size_t i = 0; i < n; i++)
		s->left += w->join->places[asked[i].index].node == NODE_NONE;
	return true;
}

void scan_unit(struct dwarf_worker *w, const struct unit *tree, const struct asked *asked, size_t n)
{
	struct scan s;
	if (n == 0 || !begin_scan(&s, w, tree, asked, n))
		return;
	walk(&s);
	if (s.stepped_over && s.left && misses_code(&s)) {
		s.everywhere = true;
		walk(&s);
	}
	free(s.levels);
}

/* --- by what is kept --- */

bool scan_functions(struct dwarf_worker *w, struct kept_unit *k, bool everywhere)
{
	struct scan s;
	if (!begin_scan(&s, w, k->tree, NULL, 0))
		return true;             /* damage, and no functions */
	s.keeping = k;
	s.everywhere = everywhere;
	s.left = 1;                      /* it goes to the end */
	walk(&s);
	free(s.levels);
	intervals_sort(&k->functions[everywhere]);
	k->scanned[everywhere] = true;
	if (everywhere)
		return !k->cannot;
	k->stepped_over = s.stepped_over;
	sort_concretes(w->concretes, w->n_concretes);
	k->concretes = w->concretes;
	k->n_concretes = w->n_concretes;
	w->concretes = NULL;
	w->n_concretes = w->concretes_capacity = 0;
	return !k->cannot;
}

static int compare_entries(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	return x < y ? -1 : x > y;
}

/* In the order in which a walk would come to them. */
static void walk_kept(struct scan *s, const struct intervals *functions)
{
	uint32_t *entries = malloc((s->n + 1) * sizeof(*entries));
	size_t n = 0;
	if (!entries) {
		s->w->no_memory = true;
		return;
	}
	for (size_t i = 0; i < s->n; i++) {
		const struct interval *found = s->w->join->places[s->asked[i].index].node == NODE_NONE
		                                   ? intervals_first(functions, s->asked[i].address) : NULL;
		if (found)
			entries[n++] = found->value;
	}
	qsort(entries, n, sizeof(*entries), compare_entries);
	for (size_t i = 0; i < n; i++)
		if (i == 0 || entries[i] != entries[i - 1])
			walk_function(s, s->u->offset + entries[i]);
	free(entries);
}

void scan_kept(struct dwarf_worker *w, struct kept_unit *k, const struct asked *asked, size_t n)
{
	struct scan s;
	if (n == 0 || !begin_scan(&s, w, k->tree, asked, n))
		return;
	walk_kept(&s, &k->functions[0]);
	if (k->stepped_over && s.left && misses_code(&s)) {
		if (!k->scanned[1] && !scan_functions(w, k, true))
			w->damaged = true;
		s.everywhere = true;
		walk_kept(&s, &k->functions[1]);
	}
	free(s.levels);
}

/* --- where an entry stands --- */

void scan_paths(struct dwarf_worker *w, const struct unit *u, const uint64_t *entries, size_t n, path_found *found, void *context)
{
	const struct abbrevs *a = abbrevs_of(w, u, true);
	const uint8_t *section = u->file->info.at, *start = section + u->offset, *end = section + u->end;
	uint64_t path[SCOPES_MAX];
	size_t depth = 0, next = 0;
	if (!a || !spend(&w->budget, u->end - u->offset))
		return;
	for (const uint8_t *p = begin(a, u, end); p && p < end && next < n;) {
		uint64_t entry = (uint64_t)(p - section), code = read_uleb(&p);
		if (code == 0) {
			if (depth-- == 0)
				return;
			continue;
		}
		if (code >= a->n)
			return;
		while (next < n && entries[next] < entry)
			next++;
		if (next < n && entries[next] == entry && depth <= SCOPES_MAX)
			found(context, next, path, depth);
		p = entry_skip(a, code, u, p, end);
		if (!p || !a->steps[code].children)
			continue;
		if (a->steps[code].back && p <= end) {
			uint64_t to = read_u32(p - a->steps[code].back, u->file->swapped);
			size_t after = next;
			while (after < n && entries[after] <= entry)
				after++;
			if (to <= (uint64_t)(end - start) && start + to >= p && (after == n || entries[after] >= u->offset + to)) {
				p = start + to;
				continue;
			}
		}
		if (depth < SCOPES_MAX)
			path[depth] = entry;
		depth++;
	}
}
