/*
 * Files from debuginfod servers (DEBUGINFOD_URLS), by build id. libdebuginfod is loaded when it is first needed and keeps its
 * own cache of files and of what servers don't have; nothing is linked with it. Asks over the network, so never in the worker
 * and never in the sandbox: symbol_options.debuginfod is NULL there, and with --offline.
 */
#ifndef SYMBOL_DEBUGINFOD_H
#define SYMBOL_DEBUGINFOD_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

#define DEBUGINFOD_BUDGET_MS 20000

struct debuginfod;

struct debuginfod_options {
	uint32_t budget_ms;          /* of waiting, in all; 0: DEBUGINFOD_BUDGET_MS */
	/* Called while a file comes, several times a second at best; total 0: not known. Then once with done == total == UINT64_MAX. */
	void (*progress)(void *context, const char *what, uint64_t done, uint64_t total);
	void *context;
};

/* NULL when DEBUGINFOD_URLS is unset or blank, or without memory. Nothing is loaded or asked yet. o may be NULL. */
struct debuginfod *debuginfod_new(const struct debuginfod_options *o);
void debuginfod_free(struct debuginfod *d);

enum debuginfod_kind {
	DEBUGINFOD_DEBUG,            /* the separate debug file; dwz's common file has a build id and is one, too */
	DEBUGINFOD_EXECUTABLE,
};

/*
 * A descriptor that is the caller's, of a file that a server says has that build id (lower-case hex; check it: servers are
 * strangers), and its path in the cache in ret_path (size bytes). -1: no server has it, the budget is used up, or
 * libdebuginfod is not installed. What was not there is not asked again. From any thread; they wait for each other. d may be NULL.
 */
int debuginfod_open(struct debuginfod *d, enum debuginfod_kind kind, const char *build_id, char *ret_path, size_t size);

/* Adds the line there is to say, if any, that the library is missing or that the budget was used up. d may be NULL. */
void debuginfod_warnings(struct debuginfod *d, struct buf *warnings);

#endif
