/*
 * Names for what the store has only addresses of. A thread asks the store which binaries have frames without names, looks for these binaries
 * and their debug files by build id (where the process had them on this machine, in configured folders, among the uploaded ones, at
 * debuginfod's servers), and puts the names into the store, for all profiles, old ones too.
 *
 * What is uploaded lies in a folder beside the store, as debuggers expect it: FOLDER/.build-id/ab/cdef (the binary) and
 * FOLDER/.build-id/ab/cdef.debug. It is never taken for anything but what its own build id says.
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
	const char *debuginfod;             /* URLs separated by blanks; NULL: as DEBUGINFOD_URLS says; "": none */
	uint64_t file_max_bytes;            /* of one upload; 0: 2 GiB */
	uint64_t folder_max_bytes;          /* of all together; 0: 20 GiB */
	unsigned poll_s;                    /* how often the store is asked; 0: 10 */
	void (*say)(void *context, const char *line);      /* what went wrong, from the thread; NULL: nobody listens */
	void *say_context;
};

/* Starts the thread. debuginfod changes the environment: before other threads are started. */
int symbols_new(const struct symbols_settings *s, struct symbols **ret, struct error *err);
/* Ends the thread, which may take as long as one binary is read. After the server has stopped running, before it is freed. NULL is fine. */
void symbols_free(struct symbols *s);

/* Appends lines for /metrics: heapgauge_symbols_... */
void symbols_metrics(struct symbols *s, struct buf *out);

#endif
