/*
 * What nodes are called and where they are called from. An entry has a name itself or through the entries it refers to: its
 * abstract instance, its declaration. The linker's name is best, since it tells scope and parameters; GCC leaves it out for what
 * isn't exported (static functions, unnamed namespaces, lambdas), and then the scope is put together from the tree.
 */
#include <stdlib.h>

#include "base/buf.h"
#include "symbol/demangle.h"
#include "symbol/dwarf.h"
#include "symbol/dwarf_constants.h"

#define AHEAD 8                  /* nodes: as far as what memory takes to answer */
#define SCOPE_BYTES_MAX ((size_t)16 << 10)

/* --- one entry --- */

struct entry_place {
	const struct dwarf_file *file;
	uint64_t offset;
};

struct found_names {
	const char *name, *linkage;
	uint64_t line;
	struct attribute next;       /* the entry it refers to */
};

static void take_attribute(struct found_names *f, const struct attribute *a, const struct unit *u)
{
	switch (a->name) {
	case DW_AT_name:
		if (!f->name)
			f->name = form_string(a->form, a->at, u);
		break;
	case DW_AT_linkage_name:
	case DW_AT_MIPS_linkage_name:
		if (!f->linkage)
			f->linkage = form_string(a->form, a->at, u);
		break;
	case DW_AT_decl_line:
		if (!f->line)
			f->line = attribute_number(a, u);
		break;
	case DW_AT_abstract_origin:
	case DW_AT_specification:
		f->next = *a;
		break;
	default:
		break;
	}
}

/* Reads an entry; *at moves to the one it refers to. False when there is none. */
static bool read_entry(struct dwarf_worker *w, struct entry_place *at, struct found_names *f)
{
	struct unit *u = unit_at(at->file, at->offset);
	if (!u)
		return false;
	unit_root(u);
	const struct abbrevs *table = abbrevs_of(w, u, false);
	const uint8_t *p = at->file->info.at + at->offset, *begin = p, *last = p;
	uint64_t code = read_uleb(&p);
	if (!table || code == 0 || code >= table->n || !table->items[code].known)
		return false;
	struct attribute a;
	f->next.form = 0;
	for (const uint8_t *spec = table->items[code].spec; attribute_next(u, &spec, &p, &a); last = p)
		take_attribute(f, &a, u);
	/* Many may refer to an entry with a text of many pages. */
	spend(&w->budget, (uint64_t)(last - begin) / 16);
	return f->next.form && form_reference(f->next.form, attribute_number(&f->next, u), u, &at->file, &at->offset);
}

struct wanted_name {
	const struct dwarf_worker *worker;
	struct entry_place place;
};

static bool same_entry(const void *context, uint32_t item)
{
	const struct wanted_name *n = context;
	const struct entry_name *have = &n->worker->names[item];
	return have->offset == n->place.offset && have->file == n->place.file;
}

static void read_name(struct dwarf_worker *w, struct entry_place at, struct entry_name *ret)
{
	struct found_names f = { 0 };
	*ret = (struct entry_name){ .file = at.file, .offset = at.offset };
	for (int i = 0; i < ORIGINS_MAX; i++) {
		ret->scope_file = at.file;
		ret->scope_offset = at.offset;
		if (!spend(&w->budget, 100) || !read_entry(w, &at, &f))
			break;
	}
	/*
	 * In C the linker's name is an alias ("__GI_strtod"), and the plain one reads better. A text is looked at only when it must be: each costs
	 * a piece of memory that nothing else wants.
	 */
	ret->is_linkage = f.linkage && (name_is_mangled(f.linkage) || (*f.linkage && !(f.name && *f.name)));
	ret->name = ret->is_linkage ? f.linkage : f.name && *f.name ? f.name : NULL;
	ret->text = ret->name ? worker_name(w, ret->name) : DWARF_NO_TEXT;
	ret->start_line = f.line > INT32_MAX ? 0 : (uint32_t)f.line;
}

static const struct entry_name no_name = { .text = DWARF_NO_TEXT };

static uint64_t hash_place(struct entry_place p)
{
	return hash_mix(hash_u64((uintptr_t)p.file), p.offset);
}

/* Valid until the next is asked for. */
static const struct entry_name *name_of(struct dwarf_worker *w, const struct dwarf_file *file, uint64_t offset)
{
	struct wanted_name n = { w, { file, offset } };
	uint64_t hash = hash_place(n.place);
	/* Calls of one function stand together: most are answered by what fits into the cache of the processor. */
	uint32_t *recent = &w->recent_names[hash % RECENT_NAMES];
	if (*recent && same_entry(&n, *recent - 1))
		return &w->names[*recent - 1];
	uint32_t found = index_find(&w->name_index, hash, same_entry, &n);
	if (found == INDEX_NONE) {
		struct entry_name name;
		read_name(w, n.place, &name);
		struct entry_name *slot = index_reserve(&w->name_index) ? ARRAY_PUSH(w->names, w->n_names, w->names_capacity, NODES_MAX) : NULL;
		if (!slot) {
			w->no_memory = true;
			return &no_name;
		}
		*slot = name;
		found = (uint32_t)(w->n_names - 1);
		index_insert(&w->name_index, hash, found);
	}
	*recent = found + 1;
	return &w->names[found];
}

/* --- scopes --- */

struct scope_wanted {
	struct entry_place place;
	uint32_t node;
};

struct scopes {
	struct dwarf_worker *w;
	const struct dwarf_file *file;
	const struct scope_wanted *wanted;       /* of one unit, by offset */
	size_t n, at;
	const uint64_t *entries;
};

static int compare_wanted(const void *a, const void *b)
{
	const struct scope_wanted *x = a, *y = b;
	if (x->place.file != y->place.file)
		return (uintptr_t)x->place.file < (uintptr_t)y->place.file ? -1 : 1;
	return x->place.offset < y->place.offset ? -1 : x->place.offset > y->place.offset;
}

static unsigned tag_of(struct dwarf_worker *w, const struct dwarf_file *file, uint64_t offset)
{
	const struct unit *u = unit_at(file, offset);
	const struct abbrevs *table = u ? abbrevs_of(w, u, false) : NULL;
	const uint8_t *p = file->info.at + offset;
	uint64_t code = read_uleb(&p);
	return table && code < table->n ? table->items[code].tag : 0;
}

/* What an entry adds to the name of a function inside it; NULL: nothing. */
static const char *scope_name(struct dwarf_worker *w, const struct dwarf_file *file, uint64_t offset, const char *function)
{
	bool lambda = !strncmp(function, "operator()", 10) || !strncmp(function, "~<lambda", 8);
	const char *name;
	switch (tag_of(w, file, offset)) {
	case DW_TAG_namespace:
	case DW_TAG_module:
		name = name_of(w, file, offset)->name;
		return name ? name : "(anonymous namespace)";
	case DW_TAG_class_type:
	case DW_TAG_structure_type:
	case DW_TAG_union_type:
	case DW_TAG_interface_type:
	case DW_TAG_enumeration_type:
		name = name_of(w, file, offset)->name;
		return name ? name : lambda ? "(lambda)" : "(anonymous class)";
	case DW_TAG_subprogram:
		return name_of(w, file, offset)->name;
	default:
		return NULL;
	}
}

static void give_scope(void *context, size_t entry, const uint64_t *path, size_t n)
{
	struct scopes *s = context;
	struct buf text;
	buf_init(&text, SCOPE_BYTES_MAX);
	while (s->wanted[s->at].place.offset < s->entries[entry])
		s->at++;
	size_t first = s->at;
	const char *function = s->w->texts[s->w->nodes[s->wanted[first].node].name].at;
	for (size_t i = 0; i < n; i++) {
		const char *name = scope_name(s->w, s->file, path[i], function);
		if (name && text.len)
			buf_adds(&text, "::");
		if (name)
			buf_adds(&text, name);
	}
	char *kept = text.failed || !text.len || !spend(&s->w->budget, TEXT_COST * text.len) ? NULL : worker_memory(s->w, text.len + 1);
	uint32_t scope = DWARF_NO_TEXT;
	if (kept) {
		memcpy(kept, text.data, text.len + 1);
		scope = worker_text(s->w, kept, false);
	}
	for (size_t i = first; i < s->n && s->wanted[i].place.offset == s->entries[entry]; i++)
		s->w->nodes[s->wanted[i].node].scope = scope;
	buf_finish(&text);
}

static void find_scopes(struct dwarf_worker *w, struct scope_wanted *wanted, size_t n)
{
	uint64_t *entries = malloc((n + 1) * sizeof(*entries));
	if (!entries) {
		w->no_memory = true;
		return;
	}
	qsort(wanted, n, sizeof(*wanted), compare_wanted);
	for (size_t i = 0, end; i < n; i = end) {
		const struct unit *u = unit_at(wanted[i].place.file, wanted[i].place.offset);
		size_t n_entries = 0;
		end = i + 1;
		if (!u)
			continue;
		entries[n_entries++] = wanted[i].place.offset;
		for (; end < n && wanted[end].place.file == u->file && wanted[end].place.offset < u->end; end++)
			if (entries[n_entries - 1] != wanted[end].place.offset)
				entries[n_entries++] = wanted[end].place.offset;
		struct scopes s = { .w = w, .file = u->file, .wanted = wanted + i, .n = end - i, .entries = entries };
		scan_paths(w, u, entries, n_entries, give_scope, &s);
	}
	free(entries);
}

/* --- all of them --- */

static int compare_concretes(const void *a, const void *b)
{
	const struct concrete *x = a, *y = b;
	if (x->file != y->file)
		return (uintptr_t)x->file < (uintptr_t)y->file ? -1 : 1;
	if (x->origin != y->origin)
		return x->origin < y->origin ? -1 : 1;
	return x->code < y->code ? -1 : x->code > y->code;
}

void sort_concretes(struct concrete *all, size_t n)
{
	if (n)
		qsort(all, n, sizeof(*all), compare_concretes);
}

static int compare_origin(const void *key, const void *item)
{
	const struct entry_place *k = key;
	const struct concrete *c = item;
	if (k->file != c->file)
		return (uintptr_t)k->file < (uintptr_t)c->file ? -1 : 1;
	return k->offset < c->origin ? -1 : k->offset > c->origin;
}

/* Where the function of an inlined call begins out of line. */
static uint64_t find_concrete(const struct dwarf_worker *w, const struct node *n)
{
	const struct concrete *all = w->kept ? w->kept->concretes : w->concretes;
	size_t n_all = w->kept ? w->kept->n_concretes : w->n_concretes;
	struct entry_place origin;
	if (!n_all || !form_reference(n->origin_form, n->origin, n->unit, &origin.file, &origin.offset))
		return 0;
	const struct concrete *c = bsearch(&origin, all, n_all, sizeof(*all), compare_origin);
	return c ? c->code : 0;
}

/* Will the symbol table's name of the same code do? Another function's, folded with it, won't: identifiers stand in mangled names as they are. */
static bool has_symbol(const struct dwarf_worker *w, const struct node *n)
{
	const struct symtab_hit *hit = &w->join->question->symbols[n->asked];
	const char *name = w->texts[n->name].at;
	return n->code && hit->name && hit->start == n->code && name_is_mangled(hit->name) &&
	       memmem(hit->name, hit->length, name, strcspn(name, "<"));
}

/* The entry to begin with. Inlined calls have nothing of their own, and many share an origin. */
static struct entry_place names_place(const struct node *n)
{
	struct entry_place origin;
	if (n->parent != NODE_NONE && n->origin_form && form_reference(n->origin_form, n->origin, n->unit, &origin.file, &origin.offset))
		return origin;
	return (struct entry_place){ n->unit->file, n->entry };
}

/* Origins lie all over the file: one that will be wanted soon is fetched meanwhile. */
static void expect_name(const struct dwarf_worker *w, const struct node *n)
{
	if (!n->used)
		return;
	struct entry_place at = names_place(n);
	uint64_t hash = hash_place(at);
	uint32_t recent = w->recent_names[hash % RECENT_NAMES];
	index_prefetch(&w->name_index, hash);
	__builtin_prefetch(at.file->info.at + at.offset);
	if (recent)
		__builtin_prefetch(&w->names[recent - 1]);
}

static void name_node(struct dwarf_worker *w, struct node *n, struct line_table *t, struct entry_place *ret_scope)
{
	struct entry_place at = names_place(n);
	const struct entry_name *name = name_of(w, at.file, at.offset);
	n->name = name->text;
	n->is_linkage = name->is_linkage;
	n->start_line = name->start_line;
	if (n->parent != NODE_NONE)
		n->call_path = t ? lines_path(w, t, n->call_file) : DWARF_NO_TEXT;
	*ret_scope = (struct entry_place){ name->scope_file, name->scope_offset };
}

void names_of_nodes(struct dwarf_worker *w, size_t first, struct line_table *t)
{
	struct scope_wanted *wanted = NULL;
	size_t n_wanted = 0, capacity = 0;
	sort_concretes(w->concretes, w->n_concretes);
	for (size_t i = first; i < w->n_nodes; i++) {
		struct node *n = &w->nodes[i];
		struct entry_place scope;
		if (i + AHEAD < w->n_nodes)
			expect_name(w, &w->nodes[i + AHEAD]);
		if (!n->used)
			continue;
		name_node(w, n, t, &scope);
		if (n->name == DWARF_NO_TEXT || n->is_linkage || !language_has_scopes(n->unit->language))
			continue;
		if (n->parent != NODE_NONE)
			n->code = find_concrete(w, n);
		if (n->parent == NODE_NONE && has_symbol(w, n))
			continue;
		struct scope_wanted *slot = ARRAY_PUSH(wanted, n_wanted, capacity, NODES_MAX);
		if (slot)
			*slot = (struct scope_wanted){ scope, (uint32_t)i };
	}
	if (n_wanted)
		find_scopes(w, wanted, n_wanted);
	w->n_concretes = 0;
	free(wanted);
}
