/*
 * One binary, inside the module: the file is already open and known to be the right one.
 */
#ifndef SYMBOL_RESOLVE_H
#define SYMBOL_RESOLVE_H

#include "symbol/elf_file.h"
#include "symbol/symbol.h"

#define NO_ADDRESS UINT64_MAX

/*
 * ret_addresses (may be NULL; n of them, free()d by the caller): the file's own addresses of the offsets, or NO_ADDRESS.
 * *ret_damaged: debug information was there but not all of it could be read.
 */
int resolve_file(const struct elf_file *f, const uint64_t *file_offsets, size_t n,
                 enum symbol_depth depth, const struct symbol_options *o,
                 struct symbol_answers *ret, uint64_t **ret_addresses, bool *ret_damaged,
                 struct error *err);

#endif
