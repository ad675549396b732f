/*
 * Names for addresses of one binary: symbol tables and debug information joined with the sorted addresses. Reads what
 * strangers wrote, so it runs in the worker (worker.h), or in tests and fuzzers where they are.
 */
#ifndef SYMBOL_RESOLVE_H
#define SYMBOL_RESOLVE_H

#include "symbol/answers.h"
#include "symbol/elf_file.h"
#include "symbol/files.h"
#include "symbol/symbol.h"

struct resolve_options {
	enum symbol_depth depth;
	const struct file_source *files;     /* NULL: the binary only */
	size_t threads;                      /* 0: as many as there are processors, at most 8 */
	uint64_t decompressed_limit;         /* bytes; 0: 4 GiB */
};

struct resolve_result {
	bool damaged;                /* debug information was there but not all of it could be read */
	bool has_debug;              /* there was some (so nothing better will come) */
	bool has_symtab;
};

/*
 * addresses: the file's own, sorted, without repeats. Each gets an answer, if only one of ANSWER_NOTHING, in a block of answers in an empty
 * buf. E_NOMEM, E_LIMIT.
 */
int resolve(const struct elf_file *f, const uint64_t *addresses, size_t n, const struct resolve_options *o,
            struct buf *ret, struct resolve_result *ret_result, struct error *err);

#endif
