/*
 * The watch: keeps snapshots on disk while there is still memory to take them with, on a thread of its own. Nothing tells a process that it
 * will be killed: so it looks, and orders a dump when a trigger fires.
 *
 *   limit      used part of the lowest limit (agent/usage.h) passes watch_limit_percent, then each time half of what is left is gone
 *   rss        resident memory passes watch_rss_bytes, then each further eighth of that
 *   growth     so much more is allocated than at the last snapshot
 *   pressure   some task waited for memory that part of two seconds
 *
 * What fires stays due until a snapshot has been taken. One in snapshot_interval_s, or in ten times what a dump takes if that is longer; the
 * limit alone doesn't wait, as long as it has not used up the few that were saved.
 */
#ifndef AGENT_WATCH_H
#define AGENT_WATCH_H

#include "agent/agent.h"
#include "agent/usage.h"

/* The options are borrowed. HG_IO when the folder can't be written to. Maps its memory, once. */
int watch_new(const struct agent_options *o, struct watch **ret_watch, struct error *err);
/* The thread must have ended. NULL is fine. */
void watch_free(struct watch *w);

/* In a forked child, where there is no thread: closes what the watch had open. NULL is fine. */
void watch_after_fork(struct watch *w);

/* The thread. */
void *watch_main(void *watch);
void watch_stop(struct watch *w);

/*
 * One look, which takes a snapshot if a trigger says so and no other dump is on its way. Returns when the next is due, in milliseconds from
 * agent_now_ms() then. For watch_main, and for tests.
 */
unsigned watch_tick(struct watch *w);

struct watch_counters {
	uint64_t snapshots, failed;
	const char *reason;                 /* of the last try: "limit", "rss", "growth", "pressure"; "" */
	double last_ms;                     /* how long it took */
	char last[256];                     /* path of the newest; "" */
	char last_error[200];               /* of the last try; "" when it succeeded */
	struct usage usage;                 /* at the last full look */
};
/* Any thread. */
void watch_counters(struct watch *w, struct watch_counters *ret);

#endif
