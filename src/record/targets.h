/*
 * What is scraped: the targets that the configuration and its files give after relabelling, and how each of them is doing.
 *
 * The targets belong to the scraping thread, which adds, drops and schedules them. What others may see of them, their states, lies under a
 * lock of its own and is copied out as a list.
 */
#ifndef RECORD_TARGETS_H
#define RECORD_TARGETS_H

#include "base/error.h"
#include "record/arena.h"
#include "store/store.h"

enum target_health { TARGET_UNKNOWN, TARGET_UP, TARGET_DOWN };
const char *target_health_name(enum target_health h);      /* "unknown", "up", "down" */

#define TARGET_NO_SERIES UINT32_MAX

struct target_state {
	const char *job;                    /* job_name; for the labels' job see labels */
	const char *url;                    /* of the profile, without a password: "http://host:1/debug/pprof/heap", "unix:/sock?/path", "pid:7" */
	const struct store_label *labels;   /* its series' labels, sorted */
	size_t n_labels;
	const struct store_label *discovered;   /* before relabelling, sorted */
	size_t n_discovered;
	enum target_health health;
	const char *error;                  /* why it is down, one sentence; "" */
	int64_t last_ms;                    /* when the last scrape began, since 1970; 0: never */
	int64_t next_ms;
	uint32_t duration_ms;               /* of the last scrape, until it was in the store or had failed */
	uint32_t interval_ms, timeout_ms;
	uint32_t series;                    /* TARGET_NO_SERIES: none yet */
	uint64_t samples, bytes;            /* of the last profile; bytes as received */
	uint64_t scrapes, failures, restarts;
};

/* A copy: nobody changes it. Everything in it lives in its arena. */
struct target_list {
	struct target_state *items;
	size_t n;
	size_t n_dropped;                   /* by relabelling */
	struct arena arena;
};
void target_list_finish(struct target_list *l);

#endif
