/*
 * The watch: keeps snapshots on disk while there is still memory to take them with. It looks at what the process uses a few times a second at
 * most, on the work thread, and orders a dump when a trigger fires.
 */
#ifndef AGENT_WATCH_H
#define AGENT_WATCH_H

#include "agent/agent.h"

/* NULL in *ret_watch when the options ask for none. HG_IO when the folder can't be written to. Allocates (maps) once. */
int watch_new(const struct agent_options *o, struct watch **ret_watch, struct error *err);
void watch_free(struct watch *w);

/*
 * Called on the work thread; takes a snapshot if a trigger says so and the session is free. Returns when it wants to be called next, in
 * milliseconds from now.
 */
unsigned watch_tick(struct watch *w, int64_t now_ms);

struct watch_counters {
	uint64_t snapshots, failed;
	char last[256];                     /* path of the newest; "" */
	char last_error[200];
};
void watch_counters(struct watch *w, struct watch_counters *ret);

#endif
