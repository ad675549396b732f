/*
 * The end of a batch: what the joins found of each address, put together to frames with readable names, and those to a block of
 * answers. Spread over threads, since names are half of the work where there is little else to do.
 */
#ifndef SYMBOL_COMPOSE_H
#define SYMBOL_COMPOSE_H

#include "base/buf.h"
#include "symbol/dwarf_join.h"

struct compose_input {
	const char *path;                        /* of the binary, for errors */
	const uint64_t *addresses;               /* sorted, without repeats */
	size_t n;
	const struct symtab_hit *symbols;        /* per address */
	const uint64_t *starts;                  /* per address: of its function, by .eh_frame; or EH_FRAME_NONE */
	const struct dwarf_result *dwarf;        /* storage NULL: there was no debug information */
	const uint64_t *entries;                 /* where functions with plain names begin: sorted, without repeats */
	const struct symtab_hit *entry_symbols;  /* per entry */
	size_t n_entries;
	size_t threads;                          /* at most ANSWERS_PARTS_MAX are used */
};

/* The block (answers.h), into an empty buf. *ret_overflowed: some addresses had so many frames that they got none. E_NOMEM, E_LIMIT. */
int compose(const struct compose_input *in, struct buf *ret, bool *ret_overflowed, struct error *err);

#endif
