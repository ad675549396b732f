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
	const struct file_source *files;     /* NULL: the binary only; borrowed */
	size_t threads;                      /* 0: as many as there are processors, at most 8 */
	uint64_t decompressed_limit;         /* bytes, of each file; with more it is E_NOMEM; 0: 4 GiB */
	uint64_t kept_limit;                 /* bytes a reader keeps for a few addresses; 0: 64 MiB, which is the most */
};

struct resolve_result {
	bool damaged;                /* debug information was there but not all of it could be read */
	bool has_debug;              /* there was some (so nothing better will come) */
	bool has_symtab;
};

/*
 * A binary that may be asked again and again: its files stay open, its sections unpacked, and, from the second question of at most
 * RESOLVER_FEW addresses on, what was read for them is indexed and kept. Answers are those that all addresses together would
 * get, or better: where the scope of an inlined function is only known by its code out of line, a walk that stops early may not
 * have come there.
 */
struct resolver;
#define RESOLVER_FEW 64

/* f stays the caller's, until resolver_close(). Nothing is read yet. E_NOMEM. */
int resolver_open(struct resolver **ret, const struct elf_file *f, const struct resolve_options *o, struct error *err);
/*
 * addresses: the file's own, sorted, without repeats. Each gets an answer, if only one of ANSWER_NOTHING, in a block of answers in an empty
 * buf. E_NOMEM, E_LIMIT.
 */
int resolver_ask(struct resolver *r, const uint64_t *addresses, size_t n, struct buf *ret, struct resolve_result *ret_result,
                 struct error *err);
void resolver_close(struct resolver *r);

/* One question. */
int resolve(const struct elf_file *f, const uint64_t *addresses, size_t n, const struct resolve_options *o,
            struct buf *ret, struct resolve_result *ret_result, struct error *err);

#endif
