/*
 * The Prometheus text format, as far as gauges without labels go: what a process says about its memory on its /metrics. Everything else is
 * passed over. Lines that mean nothing are no error unless the whole isn't such a text.
 */
#ifndef RECORD_METRICS_TEXT_H
#define RECORD_METRICS_TEXT_H

#include "base/error.h"
#include "store/store.h"

struct metrics_text {
	struct store_gauge gauges[STORE_GAUGES_MAX];    /* names as the store has them: "rss", "jemalloc_allocated" */
	size_t n;
	int64_t started_ms;                 /* process_start_time_seconds; 0: it doesn't say */
};

/* Reads text, adding to what is in ret; of the same gauge the first value counts. E_FORMAT: this is no such text. */
int metrics_text_read(const char *text, size_t n, struct metrics_text *ret, struct error *err);

#endif
