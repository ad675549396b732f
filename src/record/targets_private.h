/* A target as the recorder's own threads have it. */
#ifndef RECORD_TARGETS_PRIVATE_H
#define RECORD_TARGETS_PRIVATE_H

#include <pthread.h>

#include "record/config.h"
#include "record/counters.h"
#include "record/feed.h"
#include "record/targets.h"

#define TARGET_ERROR_MAX 480

struct target {
	_Atomic unsigned references;
	struct arena arena;                 /* of what doesn't change: */
	uint64_t id;                        /* hash of job, address, labels, times */
	const char *job_name;
	const char *shown;
	struct store_label *labels, *discovered;
	size_t n_labels, n_discovered;
	const char *profile_url, *metrics_url;  /* for curl, metrics_url NULL: not asked for. Of a process: path and query */
	const char *socket;                 /* NULL: none */
	uint64_t pid;                       /* 0: none */
	int64_t interval_ms, timeout_ms;

	/* Of the scraping thread. */
	const struct config_job *job;       /* of the configuration that holds now */
	const char *refused;                /* why it isn't scraped; NULL: it is */
	const struct config_job *next_job;  /* both, of the table that is being made */
	const char *next_refused;
	int64_t due_ms;                     /* CLOCK_MONOTONIC */
	bool begun;                         /* it had a turn */
	bool busy;                          /* being scraped, or attached to */
	bool kept;                          /* while a new table is made: it is in there, too */
	unsigned metrics_rest;              /* turns until its metrics, which it hasn't, are asked for again */

	struct feed feed;                   /* of the ingest thread */

	/* Under the lock of struct targets. */
	enum target_health health;
	char error[TARGET_ERROR_MAX];
	int64_t last_ms, next_ms;
	uint32_t duration_ms, series;
	uint64_t samples, bytes, scrapes, failures, restarts;
};

struct targets {
	pthread_mutex_t lock;               /* of the table and of states */
	struct target **items;              /* changed by the scraping thread only */
	size_t n, capacity, n_dropped;
};

void targets_init(struct targets *t);
void targets_finish(struct targets *t);

struct target *target_take(struct target *t);      /* one more reference */
void target_release(struct target *t);             /* NULL is fine */

/* What a discovery file gave, by job. */
struct targets_found {
	const struct config_job *job;
	struct config_groups groups;
};

/*
 * Makes the table anew: the configuration's own targets and those found. A target that is there already stays, with its state and its turn.
 * say gets lines about those that are no targets. Scraping thread.
 */
int targets_update(struct targets *t, const struct config *c, const struct targets_found *found, size_t n_found, int64_t now_ms,
                   int64_t wall_ms, struct buf *say, struct error *err);

/* The next turn is at due_ms (monotonic), next_ms (since 1970). Scraping thread. */
void targets_next(struct targets *t, struct target *x, int64_t due_ms, int64_t next_ms);

/* What came of a scrape: of one that began at began_ms (since 1970). reason: for the log, only when its health has changed. True: it has. */
struct target_outcome {
	int64_t began_ms;
	uint32_t duration_ms;
	const char *error;                  /* NULL: it is in the store */
	uint32_t series;
	uint64_t samples, bytes;
	bool restarted;
};
bool targets_report(struct targets *t, struct target *x, const struct target_outcome *o);

int targets_list(struct targets *t, struct target_list *ret, struct error *err);

#endif
