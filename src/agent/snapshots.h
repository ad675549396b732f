/*
 * A folder with the last few profiles of a process: NAME.PID.START.SEQ.pb.gz. START is the second the watch began, or a later one if that
 * was taken: the process that follows a killed one, often with the same number in a container, never overwrites what that one left. Each
 * file is there whole or not at all: it is written without a name, and named when it is on disk.
 *
 * Files of earlier processes of that name are kept, the newest count of them, so that restarts don't fill the disk. Files of processes that
 * still run, and of other programs, are never touched.
 */
#ifndef AGENT_SNAPSHOTS_H
#define AGENT_SNAPSHOTS_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

#define SNAPSHOTS_PATH (PATH_MAX + 128)

struct snapshots {
	char folder[PATH_MAX];
	char name[32];                  /* of the program, of harmless characters */
	long pid;
	int64_t start;                  /* seconds since 1970 */
	unsigned count;                 /* how many are kept */
	unsigned next;                  /* number of the next */
	bool unnamed;                   /* the file system has files without a name (else they have a hidden one until they are whole) */
	char last[SNAPSHOTS_PATH];      /* path of the newest; "" */
};

/*
 * Makes the folder if it isn't there (its last part), checks that it can be written to, and removes what is too much of what earlier
 * processes left. E_IO.
 */
int snapshots_open(struct snapshots *s, const char *folder, unsigned count, struct error *err);

/* An empty file for the next one, read and written: its descriptor, or negative with err. */
int snapshots_begin(struct snapshots *s, struct error *err);
/* Gives it its name, removes the oldest, closes fd. E_IO: it is dropped. */
int snapshots_commit(struct snapshots *s, int fd, struct error *err);
/* Drops it, closes fd. */
void snapshots_abort(struct snapshots *s, int fd);

#endif
