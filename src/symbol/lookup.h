/*
 * Names for the addresses of some binaries: from the answer cache as far as it has them, for the rest from workers that read the
 * binaries, whose answers the cache gets. Where a worker dies over debug information, or runs out of memory or time, another one reads the
 * symbol tables only. What can't be had stays without a name, and why is told.
 */
#ifndef SYMBOL_LOOKUP_H
#define SYMBOL_LOOKUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbol/answers.h"
#include "symbol/cache.h"
#include "symbol/elf_file.h"
#include "symbol/resolve.h"
#include "symbol/symbol.h"
#include "symbol/worker.h"

#define NO_ADDRESS UINT64_MAX

struct lookup_hit {
	const struct answers *from;  /* NULL: nothing is known */
	uint32_t at;                 /* in from */
};

struct lookup {
	const struct elf_file *binary;       /* borrowed until the end of lookups_run() */
	uint64_t *addresses;                 /* its own, sorted, without repeats */
	size_t n;
	uint32_t *of;                        /* per address asked: which of addresses it is; UINT32_MAX: none */

	struct lookup_hit *hits;             /* one per address; they last as long as the lookup */
	bool damaged;                        /* not all of the debug information could be read */
	struct error error;                  /* code 0, or why some addresses have no names, as a clause (worker.h) */
	bool poor;                           /* despite of error they have names, by symbol tables: no lines, no inlined functions */
	size_t n_asked;                      /* addresses that the cache did not know */

	/* What answers point into. */
	struct cache_file cache;
	struct worker_task task;
	struct answers fresh;
};

/* n addresses in any order, NO_ADDRESS among them. E_NOMEM; l is safe to finish in any case. */
int lookup_begin(struct lookup *l, const struct elf_file *binary, const uint64_t *addresses, size_t n, struct error *err);
void lookup_end(struct lookup *l);

/* All of them at once. warnings gets what is to be said of debug files that were not taken; may be NULL. E_NOMEM. */
int lookups_run(struct lookup *l, size_t n, const struct symbol_options *o, struct buf *warnings, struct error *err);

/* --- for those who look up in other ways (talk.h) --- */

/* Is the cache to be asked, and told? */
bool lookup_uses_cache(const struct elf_file *binary, const struct symbol_options *o);
/* Takes what it has. c stays open as long as l's hits are used. */
void lookup_take_cached(struct lookup *l, struct cache_file *c, const struct symbol_options *o);
/* Takes what of a is better than what is known. a stays valid as long as l's hits are used. */
void lookup_take(struct lookup *l, const struct answers *a);
/* Those that nothing is known of, sorted, into room for l->n; their number. */
size_t lookup_missing(const struct lookup *l, uint64_t *ret);
/* Did reading debug information fail so that reading less may do? */
bool lookup_may_try_tables(const struct worker_task *t);

/* What a reader in a worker is told. */
struct resolve_options lookup_reader(enum symbol_depth depth, uint64_t memory_limit, const struct file_source *files);
#define LOOKUP_DAMAGED 1u            /* flag of a worker's answer */
#define LOOKUP_TABLES_MS 10000u      /* for the second try */

/* A frame's name in the form that is asked for, out of its two names in full; borrowed from one of them, or written to b. */
const char *lookup_name(const char *function, const char *system_name, enum demangle_mode mode, struct buf *b);

#endif
