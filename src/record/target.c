/*
 * One target: from an address and the labels of its group, through relabelling, to what is asked, how often, and the labels its series
 * get. As Prometheus does it, with __profile_path__ beside __metrics_path__, and addresses that may be whole URLs, sockets and processes.
 */
#include "record/target_make.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

#define TARGET_BYTES_MAX ((size_t)4 << 20)
#define URL_MAX ((size_t)64 << 10)
#define PARAM "__param_"

struct target *target_take(struct target *t)
{
	atomic_fetch_add_explicit(&t->references, 1, memory_order_relaxed);
	return t;
}

void target_release(struct target *t)
{
	/* Who frees it has seen what all others did to it. */
	if (!t || atomic_fetch_sub_explicit(&t->references, 1, memory_order_acq_rel) != 1)
		return;
	arena_finish(&t->arena);
	free(t);
}

/* --- labels before relabelling --- */

static void set_default(struct labels *l, const char *name, const char *value)
{
	if (value && !*labels_get(l, name))
		labels_set(l, name, value);
}

static void set_duration(struct labels *l, const char *name, int64_t ms)
{
	char text[32];
	snprintf(text, sizeof text, "%lldms", (long long)ms);
	set_default(l, name, text);
}

/* __param_NAME has the first value of each parameter. */
static void set_params(struct labels *l, const struct config_labels *params)
{
	char name[256];
	for (size_t i = 0; i < params->n; i++) {
		snprintf(name, sizeof name, PARAM "%s", params->items[i].name);
		set_default(l, name, params->items[i].value);
	}
}

static int discovered_labels(struct labels *l, const struct config_job *job, const char *address, const struct config_labels *own,
                             struct error *err)
{
	struct config_address a;
	int failed = config_address(address, l->arena, &a, err);
	if (failed)
		return failed;
	labels_set(l, "__address__", a.address);
	for (size_t i = 0; i < own->n; i++)
		labels_set(l, own->items[i].name, own->items[i].value);
	set_default(l, "__scheme__", a.scheme);
	set_default(l, "__profile_path__", a.path);
	set_default(l, "__query__", a.query);
	set_default(l, "job", job->name);
	set_default(l, "__scheme__", job->scheme);
	set_default(l, "__profile_path__", job->profile_path);
	set_default(l, "__metrics_path__", job->metrics_path);
	set_duration(l, "__scrape_interval__", job->interval_ms);
	set_duration(l, "__scrape_timeout__", job->timeout_ms);
	set_params(l, &job->params);
	return E_OK;
}

static bool copy_labels(struct arena *a, const struct labels *l, struct store_label **ret, size_t *ret_n)
{
	*ret = arena_take(a, (l->n + 1) * sizeof **ret);
	if (*ret && l->n)
		memcpy(*ret, l->items, l->n * sizeof **ret);
	*ret_n = l->n;
	return *ret;
}

/* --- what is asked --- */

static void add_param(struct buf *b, char *separator, const char *name, const char *value)
{
	buf_addc(b, *separator);
	*separator = '&';
	text_add_url(b, name, strlen(name));
	buf_addc(b, '=');
	text_add_url(b, value, strlen(value));
}

static bool is_param(const struct config_job *job, const char *name)
{
	for (size_t i = 0; i < job->params.n; i++)
		if (strcmp(job->params.items[i].name, name) == 0)
			return true;
	return false;
}

/* The address' own query, the job's parameters, the first value of each as relabelling left it, and those that relabelling made. */
static void add_query(struct buf *b, const struct config_job *job, const struct labels *l)
{
	const char *own = labels_get(l, "__query__");
	char separator = '?', name[256];
	if (*own) {
		buf_printf(b, "?%s", own);
		separator = '&';
	}
	for (size_t i = 0; i < job->params.n; i++) {
		const struct store_label *p = &job->params.items[i];
		bool first = true;
		for (size_t k = 0; k < i; k++)
			first &= strcmp(job->params.items[k].name, p->name) != 0;
		snprintf(name, sizeof name, PARAM "%s", p->name);
		const char *value = first ? labels_get(l, name) : p->value;
		if (*value)
			add_param(b, &separator, p->name, value);
	}
	for (size_t i = 0; i < l->n; i++) {
		const char *called = l->items[i].name;
		if (strncmp(called, PARAM, sizeof PARAM - 1) == 0 && !is_param(job, called + sizeof PARAM - 1))
			add_param(b, &separator, called + sizeof PARAM - 1, l->items[i].value);
	}
}

static const char *keep(struct target *x, struct buf *b)
{
	const char *text = b->failed ? NULL : arena_text(&x->arena, b->data ? b->data : "", b->len);
	if (!text)
		x->arena.failed = true;
	buf_reset(b);
	return text;
}

static int set_address(struct target *x, const struct labels *l, struct error *err)
{
	const char *address = labels_get(l, "__address__"), *scheme = labels_get(l, "__scheme__");
	const char *path = labels_get(l, "__profile_path__"), *metrics = labels_get(l, "__metrics_path__");
	struct config_address a;
	struct buf b;
	if (!*address)
		return error_set(err, E_USAGE, "job %.60s: relabelling left a target without an __address__", x->job_name);
	int failed = config_address(address, &x->arena, &a, err);
	if (!failed && (a.path || a.query || a.scheme))
		failed = error_set(err, E_USAGE, "%.200s: an __address__ is a host and a port, a socket or a process, and nothing more", address);
	if (!failed && strcmp(scheme, "http") != 0 && strcmp(scheme, "https") != 0)
		failed = error_set(err, E_USAGE, "%.100s: __scheme__ is '%.40s', neither http nor https", address, scheme);
	if (!failed && (*path != '/' || (*metrics && *metrics != '/')))
		failed = error_set(err, E_USAGE, "%.100s: __profile_path__ and __metrics_path__ begin with '/'", address);
	if (failed)
		return failed;
	buf_init(&b, URL_MAX);
	bool is_unix = strncmp(address, "unix:", 5) == 0, is_pid = strncmp(address, "pid:", 4) == 0;
	if (is_unix)
		x->socket = arena_text(&x->arena, address + 5, strlen(address + 5));
	if (is_pid)
		text_parse_u64(address + 4, strlen(address + 4), 10, &x->pid);
	buf_printf(&b, "%s", path);
	add_query(&b, x->job, l);
	const char *rest = keep(x, &b);
	const char *before = is_pid ? "" : is_unix ? "http://localhost" : scheme;
	const char *host = is_pid || is_unix ? "" : address, *between = *host ? "://" : "";
	buf_printf(&b, "%s%s%s%s", before, between, host, rest ? rest : "");
	x->profile_url = keep(x, &b);
	buf_printf(&b, "%s%s%s%s", before, between, host, metrics);
	x->metrics_url = *metrics ? keep(x, &b) : NULL;
	buf_reset(&b);
	if (is_pid)
		x->shown = arena_text(&x->arena, address, strlen(address));
	else if (is_unix) {
		buf_printf(&b, "%s%s%s", address, rest && strcmp(rest, "/debug/pprof/heap") != 0 ? "?" : "",
		           rest && strcmp(rest, "/debug/pprof/heap") != 0 ? rest : "");
		x->shown = keep(x, &b);
	} else
		x->shown = x->profile_url;
	buf_finish(&b);
	return E_OK;
}

static int set_times(struct target *x, const struct labels *l, struct error *err)
{
	const char *interval = labels_get(l, "__scrape_interval__"), *timeout = labels_get(l, "__scrape_timeout__");
	if (!config_duration(interval, &x->interval_ms) || x->interval_ms < 100)
		return error_set(err, E_USAGE, "%.100s: __scrape_interval__ '%.40s' is no duration of 100ms or more", x->shown, interval);
	if (!config_duration(timeout, &x->timeout_ms) || x->timeout_ms <= 0 || x->timeout_ms > x->interval_ms)
		return error_set(err, E_USAGE, "%.100s: __scrape_timeout__ '%.40s' is no duration up to the interval", x->shown, timeout);
	return E_OK;
}

/* --- labels of the series --- */

static void set_final_labels(struct target *x, struct labels *l, const struct config *c)
{
	set_default(l, "instance", labels_get(l, "__address__"));
	for (size_t i = 0; i < l->n;) {
		if (strncmp(l->items[i].name, "__", 2) == 0)
			l->items[i] = l->items[--l->n];
		else
			i++;
	}
	for (size_t i = 0; i < c->external_labels.n; i++)
		set_default(l, c->external_labels.items[i].name, c->external_labels.items[i].value);
	labels_sort(l);
	copy_labels(&x->arena, l, &x->labels, &x->n_labels);
}

static uint64_t hash_text(uint64_t h, const char *text)
{
	return hash_mix(h, hash_bytes(text, strlen(text)));
}

uint64_t target_labels_hash(const struct target *x)
{
	uint64_t h = 1;
	for (size_t i = 0; i < x->n_labels; i++)
		h = hash_text(hash_text(h, x->labels[i].name), x->labels[i].value);
	return h;
}

static void set_id(struct target *x)
{
	uint64_t h = hash_text(hash_text(target_labels_hash(x), x->job_name), x->profile_url);
	h = hash_text(hash_text(h, x->metrics_url ? x->metrics_url : ""), x->shown);
	x->id = hash_mix(hash_mix(h, (uint64_t)x->interval_ms), (uint64_t)x->timeout_ms);
}

int target_make(const struct config *c, const struct config_job *job, const char *address, const struct config_labels *own,
                struct target **ret, struct error *err)
{
	struct target *x = calloc(1, sizeof *x);
	if (!x)
		return error_nomem(err, "a target");
	x->references = 1;
	x->series = TARGET_NO_SERIES;
	x->job = x->next_job = job;
	arena_init(&x->arena, TARGET_BYTES_MAX);
	struct labels l = { .arena = &x->arena };
	x->job_name = arena_text(&x->arena, job->name, strlen(job->name));
	int failed = discovered_labels(&l, job, address, own, err);
	labels_sort(&l);
	bool kept = false;
	if (!failed && copy_labels(&x->arena, &l, &x->discovered, &x->n_discovered)) {
		kept = relabel(&l, job->relabel, job->n_relabel);
		failed = kept && !x->arena.failed ? set_address(x, &l, err) : E_OK;
		if (kept && !failed && !x->arena.failed)
			failed = set_times(x, &l, err);
		if (kept && !failed)
			set_final_labels(x, &l, c);
	}
	if (!failed && x->arena.failed)
		failed = error_set(err, E_LIMIT, "%.200s: a target with more than %zu MiB of labels", address, TARGET_BYTES_MAX >> 20);
	if (failed || !kept) {
		target_release(x);
		x = NULL;
	} else {
		set_id(x);
	}
	*ret = x;
	return failed;
}
