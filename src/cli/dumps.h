/*
 * The dumps a run left in its folder.
 */
#ifndef CLI_DUMPS_H
#define CLI_DUMPS_H

#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "base/buf.h"
#include "base/error.h"
#include "cli/load.h"

struct dump {
	char *name;
	struct dump_name parts;
	uint64_t bytes;
	double live;            /* bytes in use, by its header, in one at exit and in the greatest of a process; < 0: not looked at */
	struct timespec written;
};

struct dumps {
	struct dump *items;
	size_t n, capacity;
};

/* Files with jemalloc's names written at or after since; sorted by process and sequence. */
int dumps_find(const char *folder, struct timespec since, struct dumps *ret, struct error *err);
void dumps_finish(struct dumps *d);

/*
 * The dump of the main process's exit, or of another process's that stands for more memory (a driver starts the
 * program that matters); d->n when there is none.
 */
size_t dumps_final(const struct dumps *d, uint64_t main_pid);

/*
 * Names and sizes of the main process's dumps (the middle of a long list is only counted), then commands to
 * type next. When it left none, those of the processes it started.
 */
void dumps_describe(const struct dumps *d, const char *folder, uint64_t main_pid, struct buf *out);

#endif
