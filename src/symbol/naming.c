/*
 * What the code nodes are called and where they are called from. Only nodes that some address
 * ended up in are named. The linker's name is best, since it tells scope and parameters; without
 * one (static functions and unnamed namespaces in GCC's output) the scopes are put together from
 * the tree.
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

/* Languages whose functions live in scopes written with "::". */
static bool has_scopes(int language)
{
	return language == DW_LANG_C_plus_plus || language == DW_LANG_C_plus_plus_03 ||
	       language == DW_LANG_C_plus_plus_11 || language == DW_LANG_C_plus_plus_14 ||
	       language == 0x2b || language == 0x3a || /* C++17, C++20: not in every dwarf.h */
	       language == DW_LANG_Rust;
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
	if (!path)
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
	if (!name || !*name)
		return 0;
	node->function = mangled ? names_demangled(names, name) : names_keep(names, name, strlen(name));
	if (!node->function)
		return error_nomem(w->err, "function names");
	if (linkage && strcmp(node->function, linkage))
		node->system_name = names_keep(names, linkage, strlen(linkage));
	if (mangled || !has_scopes(w->language) || strstr(name, "::"))
		return 0;
	struct scope_wanted *slot = ARRAY_PUSH(w->wanted, w->n_wanted, w->wanted_capacity, NODES_MAX);
	if (!slot)
		return error_nomem(w->err, "function names");
	*slot = (struct scope_wanted){ declaration(node->die), number_of_node };
	return 0;
}

int debug_info_name(struct debug_info *d, struct error *err)
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
		rc = scopes_qualify(d, w.wanted, w.n_wanted, err);
	free(w.wanted);
	return rc;
}
