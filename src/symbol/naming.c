/*
 * What the code nodes are called and where they are called from. Only nodes that some address
 * ended up in are named. The linker's name is best, since it tells scope and parameters. GCC leaves
 * it out for what isn't exported (static functions, unnamed namespaces, lambdas): then the symbol
 * where the function's code begins has it. Functions that are inlined everywhere have no symbol, and
 * their scopes are put together from the tree.
 */
#include <dwarf.h>
#include <stdlib.h>
#include <string.h>

#include "symbol/debug_info.h"

#define ORIGINS_MAX 16

struct naming {
	struct debug_info *d;
	struct scope_wanted *wanted;
	size_t n_wanted, wanted_capacity;
	/* The unit asked last. */
	Dwarf_CU *unit;
	int language;
	Dwarf_Files *files;
	size_t n_files;
	const char *folder;
	struct error *err;
};

static void enter_unit(struct naming *w, Dwarf_Die *die)
{
	Dwarf_Die unit;
	if (w->unit == die->cu)
		return;
	w->unit = die->cu;
	w->language = -1;
	w->files = NULL;
	w->n_files = 0;
	w->folder = NULL;
	if (!dwarf_diecu(die, &unit, NULL, NULL))
		return;
	w->language = dwarf_srclang(&unit);
	w->folder = lines_folder(&unit);
	if (dwarf_getsrcfiles(&unit, &w->files, &w->n_files))
		w->files = NULL;
}

static const char *linkage_name(Dwarf_Die *die)
{
	Dwarf_Attribute a;
	Dwarf_Attribute *found = dwarf_attr_integrate(die, DW_AT_linkage_name, &a);
	if (!found)
		found = dwarf_attr_integrate(die, DW_AT_MIPS_linkage_name, &a);
	const char *name = found ? dwarf_formstring(found) : NULL;
	return name && *name ? name : NULL;
}

static bool is_mangled(const char *name)
{
	return name[0] == '_' && (name[1] == 'Z' || name[1] == 'R');
}

/* The entry that stands in the function's scope: the end of the chain of origins. */
static Dwarf_Die declaration(Dwarf_Die die)
{
	for (int i = 0; i < ORIGINS_MAX; i++) {
		Dwarf_Attribute a;
		Dwarf_Die next;
		if (!dwarf_attr(&die, DW_AT_abstract_origin, &a) && !dwarf_attr(&die, DW_AT_specification, &a))
			break;
		if (!dwarf_formref_die(&a, &next))
			break;
		die = next;
	}
	return die;
}

static uint32_t number(Dwarf_Die *die, unsigned attribute)
{
	Dwarf_Attribute a;
	Dwarf_Word value;
	if (!dwarf_attr(die, attribute, &a) || dwarf_formudata(&a, &value) || value > INT32_MAX)
		return 0;
	return (uint32_t)value;
}

static int name_call(struct naming *w, struct code_node *node)
{
	node->call_line = number(&node->die, DW_AT_call_line);
	node->call_column = number(&node->die, DW_AT_call_column);
	uint32_t file = number(&node->die, DW_AT_call_file);
	const char *path = w->files && file < w->n_files ? dwarf_filesrc(w->files, file, NULL, NULL)
	                                                 : NULL;
	if (!path || strnlen(path, NAME_BYTES_MAX) == NAME_BYTES_MAX)
		return 0;
	node->call_file = lines_path(w->d, w->folder, path);
	return node->call_file ? 0 : error_nomem(w->err, "file names");
}

static int name_node(struct naming *w, uint32_t number_of_node)
{
	struct code_node *node = &w->d->nodes[number_of_node];
	struct names *names = w->d->names;
	int line = 0;
	enter_unit(w, &node->die);
	if (dwarf_decl_line(&node->die, &line) == 0 && line > 0)
		node->start_line = (uint32_t)line;
	if (node->parent != NODE_NONE && name_call(w, node))
		return E_NOMEM;
	const char *linkage = linkage_name(&node->die), *name = dwarf_diename(&node->die);
	/* In C the linker's name is an alias ("__GI_strtod"), and the plain one reads better. */
	bool mangled = linkage && (is_mangled(linkage) || !name || !*name);
	if (mangled)
		name = linkage;
	if (!name || !*name || strnlen(name, NAME_BYTES_MAX) == NAME_BYTES_MAX)
		return 0;
	node->function = mangled ? names_demangled(names, name) : names_keep(names, name, strlen(name));
	if (!node->function)
		return error_nomem(w->err, "function names");
	if (linkage && strcmp(node->function, linkage) && strnlen(linkage, NAME_BYTES_MAX) < NAME_BYTES_MAX)
		node->system_name = names_keep(names, linkage, strlen(linkage));
	if (mangled || !language_has_scopes(w->language))
		return 0;
	struct scope_wanted *slot = ARRAY_PUSH(w->wanted, w->n_wanted, w->wanted_capacity, NODES_MAX);
	if (!slot)
		return error_nomem(w->err, "function names");
	*slot = (struct scope_wanted){ declaration(node->die), number_of_node };
	return 0;
}

/* --- names from the symbol tables --- */

struct entry {
	uint64_t address;
	uint32_t wanted;             /* index */
};

static int compare_concretes(const void *a, const void *b)
{
	const struct concrete *x = a, *y = b;
	if (x->origin != y->origin)
		return (uintptr_t)x->origin < (uintptr_t)y->origin ? -1 : 1;
	return x->entry < y->entry ? -1 : x->entry > y->entry;
}

static int compare_origin(const void *key, const void *item)
{
	const struct concrete *c = item;
	return (uintptr_t)key < (uintptr_t)c->origin ? -1 : (uintptr_t)key > (uintptr_t)c->origin;
}

static int compare_entries(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;
	return x->address < y->address ? -1 : x->address > y->address;
}

/* Where the function of a node begins out of line, if it exists there. */
static bool find_entry(struct debug_info *d, struct code_node *node, uint64_t *ret_address)
{
	Dwarf_Attribute a;
	Dwarf_Die origin;
	if (node->parent == NODE_NONE)
		return code_entry(d, &node->die, ret_address);
	if (!d->n_concretes || !dwarf_attr(&node->die, DW_AT_abstract_origin, &a) ||
	    !dwarf_formref_die(&a, &origin))
		return false;
	const struct concrete *c = bsearch(origin.addr, d->concretes, d->n_concretes,
	                                   sizeof(*d->concretes), compare_origin);
	if (c)
		*ret_address = c->entry;
	return c != NULL;
}

/*
 * Takes the symbol's name, without a clone's suffix. Identical functions share their code and the
 * symbol may be the other one's, so DWARF's plain name must be part of it.
 */
static bool take_symbol(struct naming *w, struct code_node *node, const struct symtab_hit *hit)
{
	struct names *names = w->d->names;
	if (!hit->name || !is_mangled(hit->name))
		return false;
	size_t stem = strcspn(hit->name, ".");
	const char *mangled = names_keep(names, hit->name, stem < hit->length ? stem : hit->length);
	const char *plain = mangled ? names_demangled(names, mangled) : NULL;
	size_t length = strncmp(node->function, "operator", 8) ? strcspn(node->function, "<") :
	                                                         strlen("operator");
	if (!plain || plain == mangled || !memmem(plain, strlen(plain), node->function, length))
		return false;
	node->function = plain;
	node->system_name = mangled;
	return true;
}

static int ask_symbols(struct naming *w, struct entry *entries, size_t n, symbols_ask *ask,
                       void *context)
{
	uint64_t *addresses = calloc(n, sizeof(*addresses));
	struct symtab_hit *hits = calloc(n, sizeof(*hits));
	size_t unique = 0;
	qsort(entries, n, sizeof(*entries), compare_entries);
	for (size_t i = 0; i < n && addresses; i++)
		if (unique == 0 || addresses[unique - 1] != entries[i].address)
			addresses[unique++] = entries[i].address;
	int rc = addresses && hits ? ask(context, addresses, unique, hits, w->err)
	                           : error_nomem(w->err, "function names");
	for (size_t i = 0, at = 0; i < n && rc == 0; i++) {
		while (addresses[at] != entries[i].address)
			at++;
		struct scope_wanted *wanted = &w->wanted[entries[i].wanted];
		if (hits[at].start == entries[i].address &&
		    take_symbol(w, &w->d->nodes[wanted->node], &hits[at]))
			wanted->node = NODE_NONE;
	}
	free(addresses);
	free(hits);
	return rc;
}

/* Names what symbols can name; the others stay wanted. */
static int name_by_symbols(struct naming *w, symbols_ask *ask, void *context)
{
	struct debug_info *d = w->d;
	struct entry *entries = calloc(w->n_wanted, sizeof(*entries));
	size_t n = 0, kept = 0;
	if (!entries)
		return error_nomem(w->err, "function names");
	if (d->n_concretes)
		qsort(d->concretes, d->n_concretes, sizeof(*d->concretes), compare_concretes);
	for (size_t i = 0; i < w->n_wanted; i++)
		if (find_entry(d, &d->nodes[w->wanted[i].node], &entries[n].address))
			entries[n++].wanted = (uint32_t)i;
	int rc = n ? ask_symbols(w, entries, n, ask, context) : 0;
	for (size_t i = 0; i < w->n_wanted; i++)
		if (w->wanted[i].node != NODE_NONE)
			w->wanted[kept++] = w->wanted[i];
	w->n_wanted = kept;
	free(entries);
	return rc;
}

int debug_info_name(struct debug_info *d, symbols_ask *ask, void *ask_context, struct error *err)
{
	struct naming w = { .d = d, .err = err };
	int rc = 0;
	for (size_t i = 0; i < d->n; i++)
		for (uint32_t n = d->places[i].node; n != NODE_NONE && !d->nodes[n].used;
		     n = d->nodes[n].parent)
			d->nodes[n].used = true;
	for (size_t i = 0; i < d->n_nodes && rc == 0; i++)
		if (d->nodes[i].used)
			rc = name_node(&w, (uint32_t)i);
	if (rc == 0 && w.n_wanted)
		rc = name_by_symbols(&w, ask, ask_context);
	if (rc == 0 && w.n_wanted)
		rc = scopes_qualify(d, w.wanted, w.n_wanted, err);
	free(w.wanted);
	return rc;
}
