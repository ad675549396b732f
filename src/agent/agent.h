/*
 * The agent: its options, copied, and its threads. Everything in it was mapped when it started, and there is one in a process.
 *
 *   server thread   http: parses, checks who asks, answers what is at hand (status, metrics), parks the rest
 *   work thread     dumps, conversions, symbols, spans
 *   watch thread    snapshots (agent/watch.h)
 *   dump thread     calls jemalloc (agent/dump.h)
 */
#ifndef AGENT_AGENT_H
#define AGENT_AGENT_H

#include <heapgauge.h>
#include <limits.h>
#include <pthread.h>
#include <stdbool.h>

#include "base/error.h"
#include "http/server.h"

#define AGENT_WAITING_MAX 8             /* orders that are no profiles */
#define AGENT_PROFILES_MAX 4            /* orders for profiles, behind the one that is being made */
#define AGENT_CONNECTIONS 64
#define AGENT_UNSENT_MAX ((uint64_t)256 << 20)  /* bytes of answers that clients haven't fetched yet */
#define AGENT_SPAN_MAX_S 3600

struct agent_options {
	char listen[256];
	char token_file[PATH_MAX];
	bool allow_remote, serve_arguments;
	char allow_hosts[HTTP_HOSTS_MAX];
	char spool_dir[PATH_MAX], symbolizer[PATH_MAX], snapshot_dir[PATH_MAX];
	unsigned snapshot_count, snapshot_interval_s;
	uint64_t watch_rss_bytes, watch_growth_bytes;
	unsigned watch_limit_percent, watch_psi_percent;
};

struct work;
struct watch;

struct agent {
	struct agent_options options;
	struct http_server *server;         /* NULL: no endpoint */
	struct work *work;
	struct watch *watch;                /* NULL: no snapshots */
	pthread_t server_thread, work_thread, watch_thread;
	bool server_runs, work_runs, watch_runs;
	int marker;                         /* a memfd whose name tells our address: heapgauge finds us by it */
	int64_t started_ms;                 /* CLOCK_REALTIME */
	size_t mapped;                      /* bytes of this struct's mapping */
};

/* Checked and completed with the defaults. HG_INVALID with a sentence. */
int agent_options_set(struct agent_options *to, const struct hg_agent_options *from, struct error *err);
/* The same from "key=value;..." (the preloaded library's variable). */
int agent_options_parse(const char *text, struct hg_agent_options *ret, char *storage, size_t room, struct error *err);

int agent_start(const struct agent_options *o, struct agent **ret, struct error *err);
void agent_stop(struct agent *a);

/* The heapgauge program that an agent's options named last, or "". */
void agent_symbolizer(char to[PATH_MAX]);

/* Sampling as the program wants it, whether there is an agent or not. HG codes. */
int agent_set_active(bool active);

/* In a forked child; the second when jemalloc can be called there (agent/forks.h). */
void agent_after_fork(void);
void agent_put_back_after_fork(void);

/* The routes of the endpoint (agent/routes.c). */
extern const struct http_route agent_routes[];
void agent_exchange_over(void *agent, struct http_exchange *x, bool answered);

int64_t agent_now_ms(void);             /* CLOCK_MONOTONIC */

#endif
