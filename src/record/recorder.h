/*
 * The recorder: scrapes targets, takes pushes, keeps profiles in a store, serves its API. Five threads:
 *
 *   scraping      curl's multi interface: schedule, transfers, discovery, reload (scrape.c)
 *   attaching     pid: targets that have no endpoint, one after another (attaching.c)
 *   ingest        parses, finds the series, appends in batches, answers pushes (ingest.c)
 *   maintenance   store_maintain (recorder.c)
 *   server        http_server_run: the routes of routes.c, those of api.h beside them
 *
 * They meet in a bounded queue (queue.h), in the targets' states (targets.h) and in counters (counters.h). What the queue doesn't take is
 * shed and counted; a push is acknowledged when store_append has returned.
 *
 * Mounted here: POST /api/v1/push, GET /api/v1/targets, GET /metrics, GET /-/ready, GET /-/healthy, POST /-/reload. Everything else under
 * /api/v1, and the pages, are api.h's.
 */
#ifndef RECORD_RECORDER_H
#define RECORD_RECORDER_H

#include "record/config.h"
#include "record/targets.h"

struct recorder;

/* Processes of this machine by their number, which the command line knows how to reach. From the scraping and attaching threads. */
struct recorder_processes {
	/* Its endpoint, "http://host:port" or "unix:/sock"; false when it has none. Quick. */
	bool (*endpoint)(uint64_t pid, char *to, size_t room);
	/* A dump of one that has none: may take seconds. */
	int (*dump)(uint64_t pid, struct buf *to, struct error *err);
};

struct recorder_settings {
	const char *config_path;            /* read again by recorder_reload; NULL: there is none */
	struct recorder_processes processes;
	/* Whole lines for the log: what went wrong, what was reloaded. From any thread, one at a time. */
	void (*say)(const struct buf *lines);
};

/* Opens the store, listens, starts nothing. The configuration is taken over when it returns 0. */
int recorder_new(const struct recorder_settings *s, struct config *c, struct recorder **ret, struct error *err);
int recorder_start(struct recorder *r, struct error *err);
/*
 * Scrapes are cancelled; what was received, pushes too, is put into the store and answered. Returns when all threads have ended, or never
 * began. Then recorder_free, which closes the store.
 */
void recorder_stop(struct recorder *r);
void recorder_free(struct recorder *r);

/* Asks for it; whether it worked is said. From any thread. */
void recorder_reload(struct recorder *r);

const char *recorder_url(const struct recorder *r);        /* "http://127.0.0.1:7071" */

#endif
