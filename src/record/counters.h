/* What the recorder counts, for its /metrics. Any thread; nothing is ordered by them, so relaxed. */
#ifndef RECORD_COUNTERS_H
#define RECORD_COUNTERS_H

#include <stdatomic.h>
#include <stdint.h>

/* Why a scrape or a push has not become a stored profile. */
enum failure {
	FAILED_CONNECTION,      /* refused, unknown host, TLS, broken off */
	FAILED_TIMEOUT,
	FAILED_STATUS,          /* anything but 200; redirects elsewhere, or too many */
	FAILED_TOO_LARGE,       /* the body, also unpacked */
	FAILED_FORMAT,          /* no heap profile */
	FAILED_LIMIT,           /* samples */
	FAILED_SETTINGS,        /* a password file that can't be read, equal labels, ... */
	FAILED_PROCESS,         /* pid: gone, or can't be attached to */
	FAILED_SHED,            /* the queue, or memory for bodies, is full */
	FAILED_STORE,           /* the store couldn't take it */
	FAILURES
};
const char *failure_name(enum failure f);      /* "connection", "timeout", ... */

struct counters {
	_Atomic uint64_t scrapes, scrape_bytes, missed_turns, late_ms_max;
	_Atomic uint64_t failures[FAILURES];    /* of scrapes */
	_Atomic uint64_t pushes, push_bytes, push_failures[FAILURES];
	_Atomic uint64_t stored, samples, batches, gauges, gauges_lost, restarts;
	_Atomic uint64_t reloads, reload_failures, discovery_failures;
	_Atomic int64_t reload_ms;              /* the last good one, since 1970 */
	_Atomic uint64_t store_failing;         /* 1: the last write to it failed */
	_Atomic uint64_t maintain_steps, maintain_failures;
	_Atomic uint64_t body_bytes;            /* at hand now: of transfers, pushes and the queue */
};

static inline void count(_Atomic uint64_t *c, uint64_t n)
{
	atomic_fetch_add_explicit(c, n, memory_order_relaxed);
}

static inline uint64_t counted(const _Atomic uint64_t *c)
{
	return atomic_load_explicit(c, memory_order_relaxed);
}

#endif
