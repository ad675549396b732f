/* What the recorder's files share. Locks, in the order in which they may be taken: targets', queue's, log's. */
#ifndef RECORD_RECORDER_PRIVATE_H
#define RECORD_RECORDER_PRIVATE_H

#include "record/api.h"
#include "record/counters.h"
#include "record/queue.h"
#include "record/recorder.h"

#define RELOADS_WAITING 8

struct scraping;
struct attaching;
struct ingest;

struct recorder {
	struct recorder_settings settings;
	struct config *config;              /* of the scraping thread, once that runs */
	struct store *store;
	struct symbols *symbols;
	struct api *api;
	struct recorder_page *page;
	struct http_server *server;
	struct http_route *routes;
	struct targets targets;
	struct queue queue;
	struct counters counters;
	struct scraping *scraping;
	struct attaching *attaching;
	int64_t started_ms;                 /* since 1970 */
	/*
	 * Pushes of long ago come in until about late_until_ms (monotonic), from late_ms (since 1970) on: what they still go into must not be
	 * closed. Written by the ingest thread, read by that of maintenance; a moment too early or late is no harm.
	 */
	_Atomic int64_t late_until_ms, late_ms;
	struct ingest *ingest;
	/* Of the configuration that the recorder was started with: pushes come on the server's thread. */
	struct arena arena;
	struct config_labels external_labels;
	char *store_path;
	atomic_bool stopping;
	bool server_runs, ingest_runs, maintenance_runs;
	pthread_t server_thread, ingest_thread, maintenance_thread;

	pthread_mutex_t log_lock;           /* of settings.say, and of what follows */
	int64_t said_since_ms;
	unsigned said;                      /* about targets, since then */

	pthread_mutex_t reload_lock;        /* of what follows; taken alone */
	pthread_cond_t wake;                /* of the maintenance thread, too */
	bool reload_wanted;
	struct http_ticket reloads[RELOADS_WAITING];
	size_t n_reloads;
};

int64_t clock_ms(void);                 /* CLOCK_MONOTONIC */
int64_t clock_wall_ms(void);            /* since 1970 */

/* One line, without its newline, or whole lines. */
void recorder_say(struct recorder *r, const char *format, ...) __attribute__((format(printf, 2, 3)));
void recorder_say_target(struct recorder *r, const struct target *x, const char *what);
void recorder_say_lines(struct recorder *r, const struct buf *lines);

/* A scrape has failed: counted, told by its target's state, and said when the target was not down before. */
void recorder_failed(struct recorder *r, struct target *x, int64_t began_wall_ms, int64_t began_ms, enum failure why, const char *error);
/* For the ingest thread. False: it doesn't fit, and that is counted and told. */
bool recorder_received(struct recorder *r, struct item *i);

/* scrape.c: a thread. */
int scraping_start(struct recorder *r, struct error *err);
void scraping_wake(struct scraping *s);
void scraping_stop(struct scraping *s);        /* NULL is fine */

/* attaching.c: a thread. */
int attaching_start(struct recorder *r, struct error *err);
/* False: there is no room. done(s, target) is called from the thread when it is over. */
bool attaching_add(struct attaching *a, struct target *x);
void attaching_stop(struct attaching *a);      /* NULL is fine */
/* RSS and start time of a process, as metrics' text. */
void process_metrics(uint64_t pid, struct buf *to);

/* ingest.c: runs until the queue is closed and empty. */
int ingest_new(struct recorder *r, struct ingest **ret, struct error *err);
void ingest_run(struct ingest *g);
void ingest_free(struct ingest *g);

/* push.c, routes.c */
void push_body(void *context, struct http_exchange *x, const char *bytes, size_t n);
void push_handle(void *context, struct http_exchange *x);
void push_over(void *context, struct http_exchange *x, bool answered);
#define PUSH_BODY_MAX ((uint64_t)64 << 20)
#define PUSH_UNPACKED_MAX ((uint64_t)512 << 20)
/* All body bytes at hand, of transfers and pushes. */
#define BODY_BYTES_MAX ((uint64_t)128 << 20)
int routes_make(struct recorder *r, struct error *err);

#endif
