/*
 * Names for what the store has only addresses of. A thread asks the store which binaries have frames without names, looks for these binaries
 * and their debug files by build id (where the process had them on this machine, in configured folders, among the uploaded ones, at
 * debuginfod's servers), and puts the names into the store, for all profiles, old ones too.
 *
 * What is uploaded lies in a folder beside the store, FOLDER/BUILDID/binary and FOLDER/BUILDID/debug: never taken for anything but what
 * its own build id says.
 */
#ifndef RECORD_SYMBOLS_H
#define RECORD_SYMBOLS_H

#include "base/buf.h"
#include "base/error.h"
#include "store/store.h"

struct symbols;

struct symbols_settings {
	struct store *store;                /* borrowed, like all that follows */
	const char *folder;                 /* of uploads; made when it is first needed. NULL: none are taken */
	const char *const *search;          /* further folders with debug files, NULL-terminated; NULL: none */
	bool no_debuginfod;                 /* not even when DEBUGINFOD_URLS is set */
	bool no_local;                      /* not where the process had its files: they may be another machine's */
	uint64_t file_max_bytes;            /* of one upload; 0: 2 GiB */
	uint64_t folder_max_bytes;          /* of all together; 0: 20 GiB */
	unsigned poll_s;                    /* how often the store is asked; 0: 10 */
	void (*say)(void *context, const char *line);      /* what went wrong, from the thread; NULL: nobody listens */
	void *say_context;
};

int symbols_new(const struct symbols_settings *s, struct symbols **ret, struct error *err);
/* Ends the thread, and reading that is under way. NULL is fine. */
void symbols_free(struct symbols *s);

/* Appends lines for /metrics: heapgauge_symbols_... */
void symbols_metrics(struct symbols *s, struct buf *out);

#endif
