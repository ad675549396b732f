/*
 * "ns::Class::method" for functions without a linkage name. libdw knows no parents, so the wanted
 * entries of a unit are sorted and its tree is walked once, going down only where one of them is.
 */
#include <dwarf.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "symbol/debug_info.h"

/* Deeper scopes stay unqualified: without sibling attributes each level costs a walk over its subtree. */
#define SCOPES_MAX 64

struct scopes {
	struct debug_info *d;
	struct scope_wanted *wanted;         /* of one unit, by offset */
	size_t n;
	Dwarf_Die path[SCOPES_MAX];          /* entries that the current one lies in */
};

static int compare_wanted(const void *a, const void *b)
{
	const struct scope_wanted *x = a, *y = b;
	if (x->die.cu != y->die.cu)
		return (uintptr_t)x->die.cu < (uintptr_t)y->die.cu ? -1 : 1;
	return x->die.addr < y->die.addr ? -1 : x->die.addr > y->die.addr;
}

/* What an entry adds to the name of a function inside it; NULL: nothing. */
static const char *scope_name(Dwarf_Die *die, const char *function)
{
	bool lambda = !strncmp(function, "operator()", 10) || !strncmp(function, "~<lambda", 8);
	const char *name = dwarf_diename(die);
	switch (dwarf_tag(die)) {
	case DW_TAG_namespace:
	case DW_TAG_module:
		return name && *name ? name : "(anonymous namespace)";
	case DW_TAG_class_type:
	case DW_TAG_structure_type:
	case DW_TAG_union_type:
	case DW_TAG_interface_type:
	case DW_TAG_enumeration_type:
		return name && *name ? name : lambda ? "(lambda)" : "(anonymous class)";
	case DW_TAG_subprogram:
		return name;
	default:
		return NULL;
	}
}

static int qualify(struct scopes *s, uint32_t depth, struct code_node *node, struct error *err)
{
	struct buf b;
	buf_init(&b, 64 << 10);
	for (uint32_t i = 1; i < depth; i++) {
		const char *scope = scope_name(&s->path[i], node->function);
		if (!scope)
			continue;
		buf_adds(&b, scope);
		buf_adds(&b, "::");
	}
	buf_adds(&b, node->function);
	int rc = 0;
	/* A name past 64 KiB stays as it was. */
	if (!b.failed) {
		const char *kept = names_keep(s->d->names, b.data, b.len);
		if (kept)
			node->function = kept;
		else
			rc = error_nomem(err, "function names");
	}
	buf_finish(&b);
	return rc;
}

static int qualify_unit(struct scopes *s, struct error *err)
{
	struct debug_info *d = s->d;
	Dwarf_Die unit;
	struct die_cursor c;
	size_t next = 0;
	if (!dwarf_diecu(&s->wanted[0].die, &unit, NULL, NULL))
		return 0;
	enum cursor_step step = cursor_begin(&c, &unit);
	while (step == CURSOR_AT && next < s->n) {
		/* Wanted ones that lie before: no entry begins there. */
		while (next < s->n && (unsigned char *)s->wanted[next].die.addr < (unsigned char *)c.die.addr)
			next++;
		for (; next < s->n && s->wanted[next].die.addr == c.die.addr; next++) {
			int rc = qualify(s, c.depth, &d->nodes[s->wanted[next].node], err);
			if (rc)
				return rc;
		}
		struct die_cursor after = c;
		enum cursor_step over = cursor_over(&after);
		const unsigned char *end = over == CURSOR_AT ? after.die.addr : c.end;
		if (!debug_spend(&d->budget, &d->budget.entry_bytes,
		                 (uint64_t)(end - (const unsigned char *)c.die.addr)))
			return 0;
		bool inside = next < s->n && (over != CURSOR_AT || (unsigned char *)s->wanted[next].die.addr < end);
		if (inside && c.depth + 1 < SCOPES_MAX) {
			s->path[c.depth] = c.die;
			step = cursor_into(&c);
		} else {
			c = after;
			step = over;
		}
	}
	return 0;
}

int scopes_qualify(struct debug_info *d, struct scope_wanted *wanted, size_t n, struct error *err)
{
	qsort(wanted, n, sizeof(*wanted), compare_wanted);
	int rc = 0;
	for (size_t i = 0, end; i < n && rc == 0; i = end) {
		for (end = i; end < n && wanted[end].die.cu == wanted[i].die.cu; end++)
			continue;
		struct scopes *s = calloc(1, sizeof(*s));
		if (!s)
			return error_nomem(err, "function names");
		s->d = d;
		s->wanted = wanted + i;
		s->n = end - i;
		rc = qualify_unit(s, err);
		free(s);
	}
	return rc;
}
