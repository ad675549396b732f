/*
 * Abbreviations. An entry is a code and the attributes its abbreviation lists; nearly all entries are only stepped over. So each
 * list is compiled: most have one size, or one part of variable size, and then a step is an addition. For entries with
 * code there are operations, which pick the wanted attributes and leap over runs of others.
 */
#include <stdlib.h>

#include "symbol/dwarf.h"
#include "symbol/dwarf_constants.h"
#include "symbol/dwarf_steps.h"

#define CODES_MAX ((uint64_t)1 << 20)           /* compilers number them from 1 on */
#define CODES_FREE 256u                          /* that may be skipped; otherwise a few bytes could ask for a table of megabytes */
#define FIXED_MAX 0xffffu                        /* bytes of an entry with a step of its own */
#define TABLES_MAX 65536
#define OTHER_COST 32u                           /* of the budget, for each code of a table that is kept */

void abbrevs_finish(struct abbrevs *a)
{
	if (!a)
		return;
	free(a->items);
	free(a->steps);
	free(a->operations);
	*a = (struct abbrevs){ 0 };
}

/* Over the pairs of one declaration. */
static const uint8_t *skip_spec(const uint8_t *p, const uint8_t *end)
{
	while (p < end) {
		uint64_t name = read_uleb(&p), form = read_uleb(&p);
		if (form == DW_FORM_implicit_const)
			skip_leb(&p);
		if (!name && !form)
			return p <= end ? p : NULL;
	}
	return NULL;
}

/* The beginning of the declaration at *p, which moves to its pairs; *ret_code 0 at the end of the table. False at damage. */
static bool declaration(const uint8_t **p, const uint8_t *end, uint64_t *ret_code, struct abbrev *ret)
{
	if (*p >= end)
		return false;
	*ret_code = read_uleb(p);
	if (*ret_code == 0)
		return true;
	uint64_t tag = read_uleb(p);
	*ret = (struct abbrev){ .tag = tag > UINT16_MAX ? 0 : (uint16_t)tag, .known = true };
	ret->children = *(*p)++ != 0;
	ret->spec = *p;
	return true;
}

bool abbrev_find(const struct unit *u, uint64_t code, struct budget *budget, struct abbrev *ret)
{
	struct span s = u->file->abbrev;
	if (u->abbrevs >= s.n || code == 0)
		return false;
	uint64_t found;
	const uint8_t *p = s.at + u->abbrevs, *before = p;
	while (declaration(&p, s.at + s.n, &found, ret) && found) {
		p = skip_spec(p, s.at + s.n);
		if (!p || found == code)
			return p != NULL;
		if (!spend(budget, (uint64_t)(p - before)))
			return false;
		before = p;
	}
	return false;
}

bool attribute_next(const struct unit *u, const uint8_t **spec, const uint8_t **p, struct attribute *ret)
{
	const uint8_t *end = u->file->info.at + u->end;
	uint64_t name = read_uleb(spec), form = read_uleb(spec);
	ret->implicit = form == DW_FORM_implicit_const ? read_sleb(spec) : 0;
	if ((!name && !form) || form > UINT16_MAX)
		return false;
	ret->name = name > UINT16_MAX ? 0 : (uint16_t)name;
	ret->form = (uint16_t)form;
	ret->at = *p;
	*p = form_skip(ret->form, *p, end, u);
	return *p != NULL;
}

/* --- compiling --- */

static enum step_class class_of(unsigned tag, bool has_code)
{
	switch (tag) {
	case DW_TAG_subprogram:
		return has_code ? ENTRY_FUNCTION : ENTRY_PLAIN;
	case DW_TAG_inlined_subroutine:
		return has_code ? ENTRY_INLINED : ENTRY_PLAIN;
	case DW_TAG_lexical_block:
	case DW_TAG_try_block:
	case DW_TAG_catch_block:
		return has_code ? ENTRY_BLOCK : ENTRY_SCOPE;
	case DW_TAG_namespace:
	case DW_TAG_module:
	case DW_TAG_with_stmt:
	case DW_TAG_common_block:
		return ENTRY_SCOPE;
	default:
		return ENTRY_PLAIN;
	}
}

static int want_of(uint64_t name)
{
	switch (name) {
	case DW_AT_low_pc:
		return WANT_LOW;
	case DW_AT_high_pc:
		return WANT_HIGH;
	case DW_AT_ranges:
		return WANT_RANGES;
	case DW_AT_sibling:
		return WANT_SIBLING;
	case DW_AT_abstract_origin:
		return WANT_ORIGIN;
	case DW_AT_call_file:
		return WANT_CALL_FILE;
	case DW_AT_call_line:
		return WANT_CALL_LINE;
	case DW_AT_call_column:
		return WANT_CALL_COLUMN;
	default:
		return -1;
	}
}

static uint8_t operation_of(uint64_t form)
{
	switch (form) {
	case DW_FORM_string:
		return OP_STRING;
	case DW_FORM_block1:
		return OP_BLOCK1;
	case DW_FORM_block2:
		return OP_BLOCK2;
	case DW_FORM_block4:
		return OP_BLOCK4;
	case DW_FORM_block:
	case DW_FORM_exprloc:
		return OP_BLOCK;
	case DW_FORM_indirect:
		return OP_INDIRECT;
	default:
		return form > UINT16_MAX || !form_is_leb((unsigned)form) ? OP_UNKNOWN : OP_NUMBER;
	}
}

/* What a declaration's attributes come to, while they are read. */
struct compiled {
	uint64_t before, after;      /* bytes of fixed size before and after the variable part */
	unsigned variable;           /* parts of variable size */
	uint8_t kind;                /* of the variable part */
	int64_t sibling;             /* bytes from its reference to the end so far; -1: none */
	bool has_code, is_unknown;
};

static void count_bytes(struct compiled *c, uint64_t bytes)
{
	*(c->variable ? &c->after : &c->before) += bytes;
	if (c->sibling >= 0)
		c->sibling += (int64_t)bytes;
}

static void count_variable(struct compiled *c, uint8_t operation)
{
	c->variable++;
	c->sibling = -1;
	c->kind = operation == OP_BLOCK ? STEP_BLOCK : operation == OP_STRING ? STEP_STRING : operation == OP_NUMBER ? STEP_NUMBER : STEP_GENERAL;
	if (operation == OP_UNKNOWN)
		c->is_unknown = true;
}

static bool add_operation(struct abbrevs *a, const struct operation *o)
{
	struct operation *slot = ARRAY_PUSH(a->operations, a->n_operations, a->operations_capacity, (size_t)1 << 26);
	if (slot)
		*slot = *o;
	return slot != NULL;
}

static bool add_attribute(struct abbrevs *a, const struct unit *u, size_t first, uint64_t name, uint64_t form, int64_t implicit,
                          struct compiled *c)
{
	int bytes = form > UINT16_MAX ? -1 : form_bytes((unsigned)form, u), want = want_of(name);
	uint8_t operation = bytes < 0 ? operation_of(form) : OP_FIXED;
	if (name == DW_AT_low_pc || name == DW_AT_ranges)
		c->has_code = true;
	if (name == DW_AT_sibling)
		c->sibling = form == DW_FORM_ref4 ? 0 : -1;
	if (bytes >= 0)
		count_bytes(c, (uint64_t)bytes);
	else
		count_variable(c, operation);
	if (want >= 0 && operation != OP_UNKNOWN)
		return add_operation(a, &(struct operation){ bytes >= 0 ? OP_WANT : OP_WANT_VARIABLE, (uint8_t)want, (uint16_t)form,
		                                             (uint32_t)(bytes > 0 ? bytes : 0), implicit });
	struct operation *last = a->n_operations > first ? &a->operations[a->n_operations - 1] : NULL;
	if (bytes >= 0 && last && last->kind == OP_FIXED) {
		last->bytes += (uint32_t)bytes;
		return true;
	}
	return bytes == 0 || add_operation(a, &(struct operation){ .kind = operation, .bytes = (uint32_t)(bytes > 0 ? bytes : 0) });
}

/* Also tells where the pairs end: *at moves there, or is NULL at damage. False: out of memory. */
static bool compile(struct abbrevs *a, const struct unit *u, struct abbrev *b, const uint8_t **at, const uint8_t *end, struct step *ret)
{
	struct compiled c = { .sibling = -1, .kind = STEP_FIXED };
	size_t first = a->n_operations;
	const uint8_t *p = *at;
	for (;;) {
		uint64_t name = read_uleb(&p), form = read_uleb(&p);
		int64_t implicit = form == DW_FORM_implicit_const ? read_sleb(&p) : 0;
		if (p > end) {
			*at = NULL;
			return true;
		}
		if (!name && !form)
			break;
		if (!add_attribute(a, u, first, name, form, implicit, &c))
			return false;
	}
	*at = p;
	b->operations = (uint32_t)first;
	*ret = (struct step){ .kind = c.kind, .entry = (uint8_t)class_of(b->tag, c.has_code), .children = b->children };
	/* So many bytes may be run over before the end is looked for: see SPAN_SLACK. */
	if (c.is_unknown || c.before + c.after > FIXED_MAX)
		ret->kind = STEP_UNKNOWN;
	else if (c.variable > 1 || c.after > UINT8_MAX)
		ret->kind = STEP_GENERAL;
	ret->size = (uint16_t)(ret->kind == STEP_UNKNOWN ? 0 : c.before);
	ret->more = (uint8_t)(ret->kind == STEP_GENERAL || ret->kind == STEP_UNKNOWN ? 0 : c.after);
	if (b->children && c.sibling > 0 && c.sibling <= UINT8_MAX && ret->kind != STEP_UNKNOWN)
		ret->back = (uint8_t)c.sibling;
	return add_operation(a, &(struct operation){ .kind = OP_END });
}

/* --- tables --- */

/* Room for one more code; what lies between is unknown. */
static bool grow_table(struct abbrevs *a, uint64_t code, bool compiled)
{
	size_t n = code + 1;
	if (!memory_grow((void **)&a->items, &a->items_capacity, n, sizeof(*a->items), CODES_MAX) ||
	    (compiled && !memory_grow((void **)&a->steps, &a->steps_capacity, n, sizeof(*a->steps), CODES_MAX)))
		return false;
	if (n > a->n) {
		memset(a->items + a->n, 0, (n - a->n) * sizeof(*a->items));
		if (compiled)
			memset(a->steps + a->n, 0, (n - a->n) * sizeof(*a->steps));
		a->n = n;
	}
	return true;
}

/* Reads the table, up to where it is damaged; false when memory or budget are used up, or when it isn't there. */
static bool read_table(struct dwarf_worker *w, struct abbrevs *a, const struct unit *u, bool compiled)
{
	struct span s = u->file->abbrev;
	*a = (struct abbrevs){
		.file = u->file, .offset = u->abbrevs, .version = u->version, .address_bytes = u->address_bytes, .offset_bytes = u->offset_bytes,
		.items = a->items, .items_capacity = a->items_capacity, .steps = a->steps, .steps_capacity = a->steps_capacity,
		.operations = a->operations, .operations_capacity = a->operations_capacity,
	};
	if (u->abbrevs >= s.n)
		return false;
	const uint8_t *begin = s.at + u->abbrevs, *p = begin, *end = s.at + s.n;
	uint64_t code;
	struct abbrev b;
	struct step step;
	while (declaration(&p, end, &code, &b) && code && code < CODES_MAX && code < CODES_FREE + (uint64_t)(p - begin)) {
		if (compiled && !compile(a, u, &b, &p, end, &step)) {
			w->no_memory = true;
			return false;
		}
		if (!compiled)
			p = skip_spec(p, end);
		if (!p)
			break;
		if (!grow_table(a, code, compiled)) {
			w->no_memory = true;
			return false;
		}
		if (a->items[code].known)
			continue;
		a->items[code] = b;
		if (compiled)
			a->steps[code] = step;
	}
	a->compiled = compiled;
	return spend(&w->budget, (p ? (uint64_t)(p - begin) * 4 : s.n - u->abbrevs) + a->n);
}

static bool is_of(const struct abbrevs *a, const struct unit *u)
{
	return a->file == u->file && a->offset == u->abbrevs && a->version == u->version && a->address_bytes == u->address_bytes &&
	       a->offset_bytes == u->offset_bytes;
}

struct other_wanted {
	const struct dwarf_worker *worker;
	const struct unit *unit;
};

static bool same_table(const void *context, uint32_t item)
{
	const struct other_wanted *o = context;
	return is_of(&o->worker->others[item], o->unit);
}

static const struct abbrevs *other_table(struct dwarf_worker *w, const struct unit *u)
{
	uint64_t hash = hash_mix(hash_u64((uintptr_t)u->file), u->abbrevs);
	uint32_t found = index_find(&w->other_index, hash, same_table, &(struct other_wanted){ w, u });
	if (found != INDEX_NONE)
		return &w->others[found];
	struct abbrevs *a = index_reserve(&w->other_index) ? ARRAY_PUSH(w->others, w->n_others, w->others_capacity, TABLES_MAX) : NULL;
	if (!a) {
		w->no_memory |= w->n_others < TABLES_MAX;
		return NULL;
	}
	*a = (struct abbrevs){ 0 };
	index_insert(&w->other_index, hash, (uint32_t)(w->n_others - 1));
	/* It stays: units that each have their own of a shared section pay for the memory, too. */
	return read_table(w, a, u, false) && spend(&w->budget, OTHER_COST * a->n) ? a : NULL;
}

/* --- kept ones --- */

struct kept_wanted {
	const struct kept *kept;
	const struct unit *unit;
};

static bool same_kept(const void *context, uint32_t item)
{
	const struct kept_wanted *o = context;
	return is_of(o->kept->tables[item], o->unit);
}

static size_t table_bytes(const struct abbrevs *a)
{
	return sizeof(*a) + a->items_capacity * sizeof(*a->items) + a->steps_capacity * sizeof(*a->steps) +
	       a->operations_capacity * sizeof(*a->operations);
}

/* For a few addresses every table is compiled, and kept. */
static const struct abbrevs *kept_table(struct dwarf_worker *w, const struct unit *u)
{
	struct kept *k = &w->join->dwarf->kept;
	uint64_t hash = hash_mix(hash_u64((uintptr_t)u->file), u->abbrevs);
	uint32_t found = index_find(&k->table_index, hash, same_kept, &(struct kept_wanted){ k, u });
	if (found != INDEX_NONE)
		return k->tables[found];
	struct abbrevs *a = calloc(1, sizeof(*a)), **slot = NULL;
	bool good = a && read_table(w, a, u, true);
	if (good)
		slot = index_reserve(&k->table_index) ? ARRAY_PUSH(k->tables, k->n_tables, k->tables_capacity, TABLES_MAX) : NULL;
	if (!slot) {
		w->no_memory |= !a || (good && k->n_tables < TABLES_MAX);
		abbrevs_finish(a);
		free(a);
		return NULL;
	}
	*slot = a;
	k->bytes += table_bytes(a);
	index_insert(&k->table_index, hash, (uint32_t)(k->n_tables - 1));
	return a;
}

const struct abbrevs *abbrevs_of(struct dwarf_worker *w, const struct unit *u, bool compiled)
{
	const struct abbrevs *a = &w->abbrevs;
	if (w->join->question->few)
		a = kept_table(w, u);
	else if (a->compiled && is_of(a, u))
		return a;
	else if (!compiled)
		return other_table(w, u);
	else if (!read_table(w, &w->abbrevs, u, true))
		a = NULL;
	w->damaged |= compiled && !a;
	return a;
}
