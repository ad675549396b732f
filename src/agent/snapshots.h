/*
 * A folder with the last few profiles of a process: NAME.PID.START.SEQ.pb.gz, where START is the second it began to watch, so that the process
 * that follows a killed one (often with the same number, in a container) never overwrites what that one left. Each file is there whole or not at all: it
 * is written without a name and named when it is on disk.
 */
#ifndef AGENT_SNAPSHOTS_H
#define AGENT_SNAPSHOTS_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct snapshots {
	char folder[PATH_MAX];
	char name[32];                  /* of the program, of harmless characters */
	long pid;
	int64_t start;                  /* seconds since 1970 */
	unsigned count;                 /* how many are kept */
	unsigned next;                  /* number of the next */
	char last[PATH_MAX + 128];      /* path of the newest; "" */
};

/*
 * Makes the folder if it isn't there (its last part), checks that it can be written to, and removes all but the newest count
 * of what earlier processes of that name left. E_IO.
 */
int snapshots_open(struct snapshots *s, const char *folder, unsigned count, struct error *err);

/* An unnamed file for the next one: its descriptor, or negative with err. */
int snapshots_begin(struct snapshots *s, struct error *err);
/* Gives it its name, removes the oldest, closes fd. */
int snapshots_commit(struct snapshots *s, int fd, struct error *err);
/* Drops it. */
void snapshots_abort(struct snapshots *s, int fd);

#endif
