#include "record/metrics_text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NUMBER_MAX 40

/* What is kept, under which name. */
static const struct {
	const char *metric, *gauge;
} kept[] = {
	{ "process_resident_memory_bytes", "rss" },
	{ "process_virtual_memory_bytes", "virtual" },
	{ "jemalloc_allocated_bytes", "jemalloc_allocated" },
	{ "jemalloc_active_bytes", "jemalloc_active" },
	{ "jemalloc_metadata_bytes", "jemalloc_metadata" },
	{ "jemalloc_resident_bytes", "jemalloc_resident" },
	{ "jemalloc_mapped_bytes", "jemalloc_mapped" },
	{ "jemalloc_retained_bytes", "jemalloc_retained" },
	{ "jemalloc_allocated", "jemalloc_allocated" },
	{ "jemalloc_active", "jemalloc_active" },
	{ "jemalloc_metadata", "jemalloc_metadata" },
	{ "jemalloc_resident", "jemalloc_resident" },
	{ "jemalloc_mapped", "jemalloc_mapped" },
	{ "jemalloc_retained", "jemalloc_retained" },
	{ "ClickHouseAsyncMetrics_MemoryResident", "rss" },
	{ "ClickHouseAsyncMetrics_jemalloc_allocated", "jemalloc_allocated" },
	{ "ClickHouseAsyncMetrics_jemalloc_active", "jemalloc_active" },
	{ "ClickHouseAsyncMetrics_jemalloc_metadata", "jemalloc_metadata" },
	{ "ClickHouseAsyncMetrics_jemalloc_resident", "jemalloc_resident" },
	{ "ClickHouseAsyncMetrics_jemalloc_mapped", "jemalloc_mapped" },
	{ "ClickHouseAsyncMetrics_jemalloc_retained", "jemalloc_retained" },
	{ "heapgauge_profile_inuse_bytes", "profile_inuse" },
	{ "heapgauge_memory_limit_bytes", "memory_limit" },
	{ "heapgauge_memory_used_bytes", "memory_used" },
	{ "go_memstats_heap_alloc_bytes", "go_heap_alloc" },
	{ "go_memstats_heap_inuse_bytes", "go_heap_inuse" },
	{ "go_memstats_sys_bytes", "go_sys" },
};

static bool is_name(char c)
{
	return (unsigned)(c - '0') < 10 || (unsigned)((c | 32) - 'a') < 26 || c == '_' || c == ':';
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

/* A decimal number that is all of a word; not NaN or infinite, which no gauge of memory is. */
static bool parse_number(const char *at, const char *end, double *ret)
{
	char word[NUMBER_MAX];
	size_t n = 0;
	while (at + n < end && !is_blank(at[n]) && n < sizeof word - 1) {
		char c = at[n];
		if ((unsigned)(c - '0') >= 10 && !strchr("+-.eE", c))
			return false;
		word[n++] = c;
	}
	word[n] = '\0';
	if (n == 0 || (at + n < end && !is_blank(at[n])))
		return false;
	char *rest;
	double value = strtod(word, &rest);
	if (*rest || !isfinite(value))
		return false;
	*ret = value;
	return true;
}

static void keep(struct metrics_text *m, const char *name, size_t n, double value)
{
	if (n == 26 && memcmp(name, "process_start_time_seconds", n) == 0) {
		if (value > 0 && value < 1e11 && !m->started_ms)
			m->started_ms = (int64_t)(value * 1000);
		return;
	}
	for (size_t i = 0; i < sizeof kept / sizeof *kept; i++) {
		if (strlen(kept[i].metric) != n || memcmp(kept[i].metric, name, n) != 0)
			continue;
		for (size_t k = 0; k < m->n; k++)
			if (strcmp(m->gauges[k].name, kept[i].gauge) == 0)
				return;
		if (m->n < STORE_GAUGES_MAX)
			m->gauges[m->n++] = (struct store_gauge){ kept[i].gauge, value };
		return;
	}
}

/* The end of "{...}" at at, or NULL. Quoted values may hold braces. */
static const char *skip_labels(const char *at, const char *end)
{
	bool quoted = false;
	for (; at < end; at++) {
		if (quoted && *at == '\\')
			at++;
		else if (*at == '"')
			quoted = !quoted;
		else if (*at == '}' && !quoted)
			return at + 1;
	}
	return NULL;
}

/* "name 1.5e3", "name{} 1 1700000000000": false when it is no such line. */
static bool read_line(const char *at, const char *end, struct metrics_text *m)
{
	const char *name = at;
	double value;
	while (at < end && is_name(*at))
		at++;
	size_t n = (size_t)(at - name);
	bool labelled = false;
	while (at < end && is_blank(*at))
		at++;
	if (at < end && *at == '{') {
		const char *labels = at + 1;
		at = skip_labels(at, end);
		if (!at)
			return false;
		labelled = labels != at - 1;
		while (at < end && is_blank(*at))
			at++;
	} else if (at == name + n) {
		return false;
	}
	if (n == 0 || at == end)
		return false;
	if (!labelled && parse_number(at, end, &value))
		keep(m, name, n, value);
	return true;
}

int metrics_text_read(const char *text, size_t n, struct metrics_text *ret, struct error *err)
{
	const char *at = text, *end = text + n;
	size_t good = 0, bad = 0;
	while (at < end) {
		const char *newline = memchr(at, '\n', (size_t)(end - at)), *line_end = newline ? newline : end;
		while (at < line_end && is_blank(*at))
			at++;
		if (line_end > at && line_end[-1] == '\r')
			line_end--;
		if (at < line_end && *at != '#') {
			if (read_line(at, line_end, ret))
				good++;
			else
				bad++;
		}
		at = newline ? newline + 1 : end;
	}
	return bad > good ? error_set(err, E_FORMAT, "these are no metrics in Prometheus' text format") : E_OK;
}
