/*
 * Build ids for a profile that has none (a jemalloc dump knows only paths): read from the files,
 * when they fit what was mapped. A file that was deleted while the process ran tells nothing.
 */
#include <stdlib.h>

#include "symbol/binaries.h"

int symbol_build_ids(struct profile *p, const struct symbol_options *o, struct buf *warnings,
                     struct error *err)
{
	struct binaries all = { 0 };
	bool *used = binaries_used(p);
	int rc = used ? binaries_init(&all, p, used, err) : error_nomem(err, "mappings");
	for (size_t i = 0; i < all.n && rc == 0; i++) {
		/* Only what has code is asked for: shared memory and locale archives are mapped too. */
		if (all.items[i].n_extents == 0 || profile_text(p, all.items[i].build_id)[0])
			continue;
		rc = binary_open(&all.items[i], p, o, err);
		if (rc == 0 && all.items[i].state == BINARY_REFUSED)
			binaries_warn(warnings, all.items[i].error.text);
	}
	for (size_t i = 0; i < p->n_mappings && rc == 0; i++) {
		struct mapping *m = &p->mappings[i];
		const struct binary *b = &all.items[all.of_mapping[i]];
		bool has_code = used[i] || m->executable;
		if (has_code && !m->deleted && b->state == BINARY_OPEN && *b->elf.build_id)
			m->build_id = profile_cstring(p, b->elf.build_id);
	}
	binaries_finish(&all);
	free(used);
	if (rc == 0 && p->failure.code) {
		if (err)
			*err = p->failure;
		rc = p->failure.code;
	}
	return rc;
}
