/*
 * What `run` puts into a program besides jemalloc: the agent, a library whose constructor opens the endpoint and keeps
 * watch, and the variable that tells it how.
 */
#ifndef CLI_PRELOAD_H
#define CLI_PRELOAD_H

#include "base/error.h"
#include "cli/launch.h"

struct preload_settings {
	const char *listen;         /* "unix:/path", "127.0.0.1:6060", "none"; NULL: a unix socket where the agent chooses */
	const char *snapshots;      /* DIR of the watch, or NULL */
	const char *token_file;
};

struct preload {
	char library[PATH_MAX];     /* "": not put into this program */
	char why_not[200];          /* a sentence, when it was wanted and cannot be */
	char snapshots[PATH_MAX];
	char token_file[PATH_MAX];
};

/*
 * Finds the library for that program and completes the paths; makes the folder for snapshots. E_USAGE: a listener that no agent would open.
 * E_UNSUPPORTED: something was asked for (listen, snapshots) and the program can't take the agent.
 */
int preload_prepare(const struct preload_settings *s, const struct program *p, struct preload *ret, struct error *err);

/* Will there be an endpoint? */
bool preload_listens(const struct preload_settings *s, const struct preload *l);

/* Sets HEAPGAUGE_AGENT, in the child. */
int preload_environment(const struct preload_settings *s, const struct preload *l, struct error *err);

#endif
