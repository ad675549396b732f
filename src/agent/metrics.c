#include "agent/metrics.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "agent/jemalloc.h"
#include "agent/memory.h"
#include "agent/usage.h"
#include "agent/watch.h"
#include "agent/work.h"
#include "base/text.h"

/* --- JSON ------------------------------------------------------------------ */

static void add_text(struct buf *b, const char *name, const char *value)
{
	buf_printf(b, ",\"%s\":", name);
	text_add_json(b, value, strlen(value));
}

static void add_flag(struct buf *b, const char *name, bool value)
{
	buf_printf(b, ",\"%s\":%s", name, value ? "true" : "false");
}

static void add_number(struct buf *b, const char *name, uint64_t value)
{
	buf_printf(b, ",\"%s\":%" PRIu64, name, value);
}

static void add_jemalloc(struct buf *b, const struct hg_status_info *s)
{
	buf_adds(b, "\"jemalloc\":{\"found\":true");
	add_text(b, "version", s->version);
	add_text(b, "prefix", s->prefix);
	add_text(b, "variable", s->conf_variable);
	add_text(b, "path", s->path);
	add_flag(b, "profiling_built_in", s->profiling_built_in);
	add_flag(b, "profiling_enabled", s->profiling_enabled);
	add_flag(b, "active", s->active);
	add_flag(b, "accumulates", s->accumulates);
	if (s->profiling_enabled) {
		add_number(b, "lg_sample", s->lg_sample);
		add_number(b, "rate_bytes", (uint64_t)1 << (s->lg_sample & 63));
	}
	add_number(b, "allocated", s->allocated);
	add_number(b, "active_bytes", s->active_bytes);
	add_number(b, "metadata", s->metadata);
	add_number(b, "resident", s->resident);
	add_number(b, "mapped", s->mapped);
	add_number(b, "retained", s->retained);
	buf_addc(b, '}');
}

static void add_snapshots(struct buf *b, struct agent *a)
{
	struct watch_counters w;
	if (!a->watch)
		return;
	watch_counters(a->watch, &w);
	buf_printf(b, ",\"snapshots\":{\"taken\":%" PRIu64, w.snapshots);
	add_number(b, "failed", w.failed);
	add_text(b, "last", w.last);
	add_text(b, "last_reason", w.reason);
	add_text(b, "last_error", w.last_error);
	buf_printf(b, ",\"last_ms\":%.3f", w.last_ms);
	const struct usage_limit *limit = usage_fullest(&w.usage);
	add_text(b, "limit", limit ? usage_kind_name(limit->kind) : "none");
	if (limit) {
		add_number(b, "limit_bytes", limit->limit_bytes);
		add_number(b, "used_bytes", limit->used_bytes);
	}
	add_number(b, "rss_bytes", w.usage.rss_bytes);
	buf_addc(b, '}');
}

void status_json(struct agent *a, struct buf *out)
{
	struct hg_status_info s;
	struct work_counters c;
	buf_printf(out, "{\"heapgauge\":\"%s\",\"pid\":%ld,", HG_VERSION, (long)getpid());
	hg_status(&s);
	if (s.found)
		add_jemalloc(out, &s);
	else
		buf_adds(out, "\"jemalloc\":{\"found\":false}");
	int rc = jemalloc_ready(NULL);
	add_flag(out, "can_profile", rc == HG_OK);
	if (rc == HG_OK && !s.active)
		rc = HG_INACTIVE;
	add_text(out, "advice", rc == HG_OK ? "" : jemalloc_advice(rc));
	work_counters(a, &c);
	buf_printf(out, ",\"dumps\":{\"taken\":%" PRIu64, c.dumps);
	add_number(out, "failed", c.failed);
	add_number(out, "refused", c.refused);
	buf_printf(out, ",\"last_jemalloc_ms\":%.3f,\"last_ms\":%.3f", c.last_dump_ms, c.last_whole_ms);
	add_number(out, "last_text_bytes", c.last_text_bytes);
	buf_addc(out, '}');
	add_snapshots(out, a);
	buf_adds(out, "}\n");
}

/* --- Prometheus ------------------------------------------------------------- */

static void metric(struct buf *b, const char *name, const char *type, const char *help, double value)
{
	buf_printf(b, "# HELP %s %s\n# TYPE %s %s\n%s %.16g\n", name, help, name, type, name, value);
}

static void add_jemalloc_metrics(struct buf *b)
{
	struct hg_status_info s;
	hg_status(&s);
	if (!s.found)
		return;
	metric(b, "jemalloc_allocated_bytes", "gauge", "Allocated by the program.", (double)s.allocated);
	metric(b, "jemalloc_active_bytes", "gauge", "In pages that hold allocations.", (double)s.active_bytes);
	metric(b, "jemalloc_metadata_bytes", "gauge", "Of jemalloc itself.", (double)s.metadata);
	metric(b, "jemalloc_resident_bytes", "gauge", "Resident at most.", (double)s.resident);
	metric(b, "jemalloc_mapped_bytes", "gauge", "Mapped.", (double)s.mapped);
	metric(b, "jemalloc_retained_bytes", "gauge", "Kept unmapped for later.", (double)s.retained);
	metric(b, "heapgauge_profiling_active", "gauge", "1 while allocations are sampled.", s.active);
}

/* Under the names that all clients of Prometheus have for them. */
static void add_process_metrics(struct buf *b)
{
	struct usage_process p;
	if (!usage_process_read(&p))
		return;
	metric(b, "process_resident_memory_bytes", "gauge", "Resident memory of the process.", (double)p.rss_bytes);
	metric(b, "process_start_time_seconds", "gauge", "When the process started, since 1970.", (double)p.started_ms / 1e3);
}

static void add_snapshot_metrics(struct buf *b, struct agent *a)
{
	struct watch_counters w;
	if (!a->watch)
		return;
	watch_counters(a->watch, &w);
	metric(b, "heapgauge_snapshots_total", "counter", "Snapshots taken.", (double)w.snapshots);
	metric(b, "heapgauge_snapshots_failed_total", "counter", "Snapshots that failed.", (double)w.failed);
	const struct usage_limit *limit = usage_fullest(&w.usage);
	if (!limit)
		return;
	metric(b, "heapgauge_memory_limit_bytes", "gauge", "The memory limit that is nearest to being full.", (double)limit->limit_bytes);
	metric(b, "heapgauge_memory_used_bytes", "gauge", "Used of it.", (double)limit->used_bytes);
}

void metrics_text(struct agent *a, struct buf *out)
{
	struct work_counters c;
	struct http_counters h = { 0 };
	work_counters(a, &c);
	add_jemalloc_metrics(out);
	add_process_metrics(out);
	if (c.last_inuse_bytes >= 0)
		metric(out, "heapgauge_profile_inuse_bytes", "gauge", "In use as the last dump estimates.", c.last_inuse_bytes);
	metric(out, "heapgauge_dumps_total", "counter", "Dumps taken.", (double)c.dumps);
	metric(out, "heapgauge_dumps_failed_total", "counter", "Dumps that failed.", (double)c.failed);
	metric(out, "heapgauge_dumps_refused_total", "counter", "Asked for while one was on its way.", (double)c.refused);
	metric(out, "heapgauge_last_dump_seconds", "gauge", "The last dump, inside jemalloc.", c.last_dump_ms / 1e3);
	metric(out, "heapgauge_last_profile_seconds", "gauge", "The last dump and its conversion.", c.last_whole_ms / 1e3);
	add_snapshot_metrics(out, a);
	if (a->server)
		http_server_counters(a->server, &h);
	metric(out, "heapgauge_http_requests_total", "counter", "Requests.", (double)h.requests);
	metric(out, "heapgauge_http_rejected_total", "counter", "Requests answered 4xx.", (double)h.statuses[4]);
	metric(out, "heapgauge_http_errors_total", "counter", "Requests answered 5xx.", (double)h.statuses[5]);
	metric(out, "heapgauge_http_evicted_total", "counter", "Connections closed to make room.", (double)h.evicted);
	metric(out, "heapgauge_http_sent_bytes_total", "counter", "Bytes sent.", (double)h.bytes_sent);
}
