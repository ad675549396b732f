/* Two tables: entries that are found in the older one move to the newer, so what is in use stays. */
#include "store/idmap.h"

#include <stdlib.h>

#define FIRST_SLOTS 1024

void idmap_init(struct idmap *m, size_t max)
{
	size_t slots = FIRST_SLOTS;
	while (slots < 2 * max)
		slots *= 2;
	*m = (struct idmap){ .max_slots = slots };
}

void idmap_clear(struct idmap *m)
{
	free(m->tables[0]);
	free(m->tables[1]);
	*m = (struct idmap){ .max_slots = m->max_slots };
}

void idmap_finish(struct idmap *m)
{
	idmap_clear(m);
}

static struct idmap_entry *find(struct idmap_entry *table, size_t slots, uint64_t high, uint64_t low)
{
	if (!table)
		return NULL;
	for (size_t i = low & (slots - 1); table[i].id; i = (i + 1) & (slots - 1))
		if (table[i].low == low && table[i].high == high)
			return &table[i];
	return NULL;
}

static struct idmap_entry *insert(struct idmap_entry *table, size_t slots, const struct idmap_entry *e)
{
	size_t i = e->low & (slots - 1);
	while (table[i].id)
		i = (i + 1) & (slots - 1);
	table[i] = *e;
	return &table[i];
}

/* Room for one more in the newer table: it grows, or becomes the older one. */
static bool make_room(struct idmap *m)
{
	if (m->slots && m->n < m->slots / 2)
		return true;
	bool full = m->slots == m->max_slots;
	size_t slots = !m->slots ? FIRST_SLOTS : full ? m->slots : m->slots * 2;
	struct idmap_entry *table = calloc(slots, sizeof *table);
	if (!table)
		return false;
	if (full) {
		free(m->tables[1]);
		m->tables[1] = m->tables[0];
		m->old_slots = m->slots;
		m->n = 0;
	} else {
		for (size_t i = 0; i < m->slots; i++)
			if (m->tables[0][i].id)
				insert(table, slots, &m->tables[0][i]);
		free(m->tables[0]);
	}
	m->tables[0] = table;
	m->slots = slots;
	return true;
}

struct idmap_entry *idmap_find(struct idmap *m, uint64_t high, uint64_t low)
{
	struct idmap_entry *e = find(m->tables[0], m->slots, high, low);
	if (e)
		return e;
	e = find(m->tables[1], m->old_slots, high, low);
	if (!e)
		return NULL;
	struct idmap_entry kept = *e;
	if (!make_room(m))
		return e;
	m->n++;
	return insert(m->tables[0], m->slots, &kept);
}

void idmap_put(struct idmap *m, uint64_t high, uint64_t low, uint32_t id, uint32_t day)
{
	if (!make_room(m))
		return;
	m->n++;
	insert(m->tables[0], m->slots, &(struct idmap_entry){ high, low, id, day });
}
