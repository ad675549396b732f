/*
 * What is kept of units when a few addresses are asked again and again: where each function's entry stands, by its code; the line
 * program, cut into chunks by the code they are for; abbreviations. A question then looks its addresses up in these and
 * reads the entries of one function and the rows of one chunk, with the same code that otherwise walks over all of them.
 *
 * All of it can be had again from the file, so when it is more than the limit, all is forgotten.
 */
#include <stdlib.h>

#include "symbol/dwarf.h"

static void finish_unit(struct kept_unit *k)
{
	for (int i = 0; i < 2; i++)
		intervals_finish(&k->functions[i]);
	free(k->concretes);
	k->concretes = NULL;
	k->n_concretes = 0;
	line_table_finish(&k->lines);
	k->has_lines = false;
	intervals_finish(&k->rows);
	free(k->chunks);
	k->chunks = NULL;
	k->n_chunks = k->chunks_capacity = 0;
}

static uint64_t bytes_of(const struct kept_unit *k)
{
	return sizeof(*k) + (k->functions[0].capacity + k->functions[1].capacity + k->rows.capacity) * sizeof(struct interval) +
	       k->n_concretes * sizeof(*k->concretes) + k->chunks_capacity * sizeof(*k->chunks) +
	       k->lines.folders_capacity * sizeof(*k->lines.folders) + k->lines.files_capacity * sizeof(*k->lines.files);
}

/* A unit that exceeds what may be spent is read as if nothing were kept, which may stop before. */
static void read_unit(struct dwarf_worker *w, struct kept_unit *k, struct unit *u)
{
	bool damaged = w->damaged;
	w->damaged = false;
	k->tree = u->split_name && u->id ? split_unit(w, u) : NULL;
	if (!k->tree)
		k->tree = u;
	k->has_lines = lines_begin(w, u, &k->lines);
	k->cannot = !scan_functions(w, k, false) || (k->has_lines && !lines_cut(w, k)) || w->budget.exceeded;
	k->damaged = w->damaged;
	w->damaged |= damaged;
	if (k->cannot)
		finish_unit(k);
}

static struct kept_unit *kept_of(struct dwarf_worker *w, struct unit *u)
{
	struct kept *kept = &w->join->dwarf->kept;
	if (!u->kept) {
		u->kept = calloc(1, sizeof(*u->kept));
		if (!u->kept)
			return NULL;
		read_unit(w, u->kept, u);
		kept->bytes += bytes_of(u->kept);
	}
	return u->kept->cannot ? NULL : u->kept;
}

bool kept_work(struct dwarf_worker *w, struct unit *u, int parts)
{
	struct kept_unit *k = kept_of(w, u);
	const struct asked *asked = w->join->asked + u->first_asked;
	size_t first = w->n_nodes;
	if (!k)
		return false;
	w->damaged |= k->damaged;
	k->lines.serial = w->join->dwarf->kept.serial;
	if (parts & WORK_TREE) {
		uint64_t before = bytes_of(k);
		scan_kept(w, k, asked, u->n_asked);
		w->join->dwarf->kept.bytes += bytes_of(k) - before;
		mark_used(w, asked, u->n_asked);
		w->kept = k;
		names_of_nodes(w, first, k->has_lines ? &k->lines : NULL);
		w->kept = NULL;
	}
	if (k->has_lines && parts & WORK_LINES)
		lines_run_kept(w, k, asked, u->n_asked);
	return true;
}

void kept_forget(struct dwarf *d)
{
	struct kept *k = &d->kept;
	for (size_t i = 0; i < d->main.n_units; i++) {
		struct unit *u = &d->main.units[i];
		if (u->kept)
			finish_unit(u->kept);
		free(u->kept);
		u->kept = NULL;
	}
	for (size_t i = 0; i < k->n_tables; i++) {
		abbrevs_finish(k->tables[i]);
		free(k->tables[i]);
	}
	free(k->tables);
	index_finish(&k->table_index);
	for (int i = 0; i < 2; i++)
		intervals_finish(&k->claims[i]);
	*k = (struct kept){ .limit = k->limit, .serial = k->serial, .cannot_claim = k->cannot_claim };
}

void kept_trim(struct dwarf *d)
{
	if (d->kept.bytes > d->kept.limit)
		kept_forget(d);
}
