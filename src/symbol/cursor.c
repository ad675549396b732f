/*
 * Preorder over a unit's entries without a stack of entries and without visiting anything twice:
 * at the last sibling libdw tells where the list ends, and what follows its closing zero belongs
 * to a parent's list. Always moves forward, so it ends.
 */
#include <string.h>

#include "symbol/debug_info.h"

enum cursor_step cursor_begin(struct die_cursor *c, Dwarf_Die *unit)
{
	/* Where the unit ends: its header tells, relative to the section. */
	Dwarf_Off header = dwarf_dieoffset(unit) - dwarf_cuoffset(unit), next;
	if (dwarf_nextcu(dwarf_cu_getdwarf(unit->cu), header, &next, NULL, NULL, NULL, NULL) ||
	    next <= dwarf_dieoffset(unit))
		return CURSOR_DAMAGED;
	c->end = (unsigned char *)unit->addr + (next - dwarf_dieoffset(unit));
	c->depth = 1;
	int rc = dwarf_child(unit, &c->die);
	return rc < 0 ? CURSOR_DAMAGED : rc > 0 ? CURSOR_END : CURSOR_AT;
}

enum cursor_step cursor_into(struct die_cursor *c)
{
	Dwarf_Die child;
	int rc = c->depth < CURSOR_DEPTH_MAX ? dwarf_child(&c->die, &child) : 1;
	if (rc < 0)
		return CURSOR_DAMAGED;
	if (rc > 0)
		return cursor_over(c);
	c->die = child;
	c->depth++;
	return CURSOR_AT;
}

enum cursor_step cursor_over(struct die_cursor *c)
{
	Dwarf_Die next;
	int rc = dwarf_siblingof(&c->die, &next);
	if (rc == 0) {
		c->die = next;
		return CURSOR_AT;
	}
	if (rc < 0)
		return CURSOR_DAMAGED;
	/* next.addr: the zero that ends this list, or NULL at the end of the unit. */
	unsigned char *at = next.addr;
	if (!at)
		return CURSOR_END;
	while (at < c->end && *at == 0) {
		at++;
		if (--c->depth == 0)
			return CURSOR_END;
	}
	if (at >= c->end)
		return CURSOR_END;
	Dwarf_CU *cu = c->die.cu;
	memset(&c->die, 0, sizeof(c->die));
	c->die.addr = at;
	c->die.cu = cu;
	return CURSOR_AT;
}
