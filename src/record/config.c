/*
 * The sections and their keys, as tables. Defaults are filled in when everything is read, since "global" may come last. What refers to
 * something else (a timeout to its interval) is checked at the end, at the place of what is wrong.
 */
#include "record/config_private.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "http/access.h"

#define FILE_MAX ((size_t)16 << 20)
#define ARENA_MAX ((size_t)256 << 20)
#define INTERVAL_MS 15000
#define TIMEOUT_MS 10000
#define BODY_LIMIT ((uint64_t)64 << 20)
#define COUNT(array) (sizeof(array) / sizeof *(array))
#define STORE_PATH "heapgauge.db"
#define LISTEN "127.0.0.1:7071"

/* --- sections --- */

static int read_global(struct doc *t, const yaml_node_t *node, void *to)
{
	static const struct doc_key keys[] = {
		{ "scrape_interval", doc_duration, offsetof(struct config, defaults.interval_ms) },
		{ "scrape_timeout", doc_duration, offsetof(struct config, defaults.timeout_ms) },
		{ "external_labels", doc_labels, offsetof(struct config, external_labels) },
		{ "body_size_limit", doc_bytes, offsetof(struct config, defaults.body_limit) },
		{ "sample_limit", doc_count, offsetof(struct config, defaults.sample_limit) },
		{ "target_limit", doc_count, offsetof(struct config, defaults.target_limit) },
	};
	struct config *c = to;
	int failed = doc_mapping(t, node, "global", keys, COUNT(keys), c);
	if (!failed && c->defaults.timeout_ms && c->defaults.timeout_ms > (c->defaults.interval_ms ? c->defaults.interval_ms : INTERVAL_MS))
		return doc_fail(t, node, "global: scrape_timeout is longer than scrape_interval");
	return failed;
}

static int read_jobs(struct doc *t, const yaml_node_t *node, void *to)
{
	return doc_list(t, node, "scrape_configs", config_add_job, to);
}

static int read_retention(struct doc *t, const yaml_node_t *node, void *to)
{
	static const struct doc_key keys[] = {
		{ "raw", doc_duration, TIER_RAW * sizeof(int64_t) },
		{ "5m", doc_duration, TIER_5_MINUTES * sizeof(int64_t) },
		{ "1h", doc_duration, TIER_HOUR * sizeof(int64_t) },
		{ "1d", doc_duration, TIER_DAY * sizeof(int64_t) },
	};
	int64_t *ms = to;
	int failed = doc_mapping(t, node, "retention", keys, COUNT(keys), to);
	int64_t before = 0;
	for (int i = 0; !failed && i < TIERS; i++) {
		if (ms[i] && ms[i] < before)
			return doc_fail(t, node, "retention: '%s' is kept shorter than the finer tier before it", keys[i].name);
		before = ms[i] ? ms[i] : before;
	}
	return failed;
}

static int read_store(struct doc *t, const yaml_node_t *node, void *to)
{
	static const struct doc_key keys[] = {
		{ "path", doc_path, offsetof(struct config, store.path) },
		{ "max_size", doc_bytes, offsetof(struct config, store.options.max_bytes) },
		{ "retention", read_retention, offsetof(struct config, store.options.retention_ms) },
	};
	return doc_mapping(t, node, "store", keys, COUNT(keys), to);
}

/* No URLs at all are an answer, too. */
static int read_debuginfod(struct doc *t, const yaml_node_t *node, void *to)
{
	struct config *c = to;
	c->symbols.has_debuginfod = true;
	return doc_texts(t, node, &c->symbols.debuginfod);
}

static int read_symbols(struct doc *t, const yaml_node_t *node, void *to)
{
	static const struct doc_key keys[] = {
		{ "debug_dirs", doc_paths, offsetof(struct config, symbols.debug_dirs) },
		{ "debuginfod", read_debuginfod, 0 },
		{ "upload_dir", doc_path, offsetof(struct config, symbols.upload_dir) },
		{ "upload_limit", doc_bytes, offsetof(struct config, symbols.upload_limit) },
	};
	return doc_mapping(t, node, "symbols", keys, COUNT(keys), to);
}

static int read_token(struct doc *t, const yaml_node_t *node, void *to)
{
	const char *text = NULL;
	int failed = doc_text(t, node, &text);
	size_t n = text ? strlen(text) : 0;
	if (!failed && (n < HTTP_TOKEN_MIN || n > HTTP_TOKEN_MAX))
		return doc_fail(t, node, "a token has %d to %d characters; make one with: openssl rand -hex 32", HTTP_TOKEN_MIN, HTTP_TOKEN_MAX);
	for (size_t i = 0; i < n; i++)
		if (text[i] <= ' ' || text[i] >= 0x7f)
			return doc_fail(t, node, "character %zu of the token is not visible ASCII", i + 1);
	*(const char **)to = text;
	return failed;
}

static int read_web(struct doc *t, const yaml_node_t *node, void *to)
{
	static const struct doc_key keys[] = {
		{ "listen", doc_text, offsetof(struct config, web.listen) },
		{ "token", read_token, offsetof(struct config, web.token) },
		{ "token_file", doc_path, offsetof(struct config, web.token_file) },
		{ "allow_remote", doc_flag, offsetof(struct config, web.allow_remote) },
		{ "hosts", doc_texts, offsetof(struct config, web.hosts) },
		{ "external_url", doc_text, offsetof(struct config, web.external_url) },
	};
	struct config *c = to;
	int failed = doc_mapping(t, node, "web", keys, COUNT(keys), c);
	if (!failed && c->web.token && c->web.token_file)
		return doc_fail(t, node, "web: token or token_file, not both");
	return failed;
}

/* --- the whole --- */

static int check_job(struct doc *t, const yaml_node_t *jobs, const struct config *c, size_t i)
{
	const struct config_job *job = &c->jobs[i];
	const yaml_node_t *node = yaml_document_get_node(&t->document, jobs->data.sequence.items.start[i]);
	const yaml_node_t *name = doc_find(t, node, "job_name"), *timeout = doc_find(t, node, "scrape_timeout");
	for (size_t k = 0; k < i; k++)
		if (strcmp(c->jobs[k].name, job->name) == 0)
			return doc_fail(t, name ? name : node, "there are two jobs with the job_name '%.60s'", job->name);
	if (job->timeout_ms > job->interval_ms)
		return doc_fail(t, timeout ? timeout : node, "the scrape_timeout of job '%.60s' is longer than its scrape_interval", job->name);
	if (job->interval_ms < 100)
		return doc_fail(t, node, "the scrape_interval of job '%.60s' is shorter than 100ms", job->name);
	return E_OK;
}

static uint64_t limit_of(uint64_t job, uint64_t global, uint64_t otherwise)
{
	return job != CONFIG_UNSET ? job : global != CONFIG_UNSET ? global : otherwise;
}

static void fill_job(const struct config *c, struct config_job *job)
{
	int64_t timeout_ms = c->defaults.timeout_ms ? c->defaults.timeout_ms : TIMEOUT_MS;
	if (!job->interval_ms)
		job->interval_ms = c->defaults.interval_ms ? c->defaults.interval_ms : INTERVAL_MS;
	if (!job->timeout_ms)
		job->timeout_ms = timeout_ms < job->interval_ms ? timeout_ms : job->interval_ms;
	if (!job->scheme)
		job->scheme = "http";
	if (!job->profile_path)
		job->profile_path = "/debug/pprof/heap";
	if (!job->metrics_path)
		job->metrics_path = "/metrics";
	job->body_limit = limit_of(job->body_limit, c->defaults.body_limit, BODY_LIMIT);
	job->sample_limit = limit_of(job->sample_limit, c->defaults.sample_limit, 0);
	job->target_limit = limit_of(job->target_limit, c->defaults.target_limit, 0);
}

static struct config *config_new(void)
{
	struct config *c = calloc(1, sizeof *c);
	if (!c)
		return NULL;
	arena_init(&c->arena, ARENA_MAX);
	c->defaults.body_limit = c->defaults.sample_limit = c->defaults.target_limit = CONFIG_UNSET;
	return c;
}

static void fill(struct config *c)
{
	for (size_t i = 0; i < c->n_jobs; i++)
		fill_job(c, &c->jobs[i]);
	if (!c->store.path)
		c->store.path = STORE_PATH;
	if (!c->web.listen)
		c->web.listen = LISTEN;
}

static int read_root(struct doc *t, const yaml_node_t *root, struct config *c)
{
	static const struct doc_key keys[] = {
		{ "global", read_global, 0 },
		{ "scrape_configs", read_jobs, 0 },
		{ "store", read_store, 0 },
		{ "symbols", read_symbols, 0 },
		{ "web", read_web, 0 },
	};
	int failed = root ? doc_mapping(t, root, "the configuration", keys, COUNT(keys), c) : E_OK;
	if (failed)
		return failed;
	fill(c);
	const yaml_node_t *jobs = root ? doc_find(t, root, "scrape_configs") : NULL;
	for (size_t i = 0; i < c->n_jobs && !failed; i++)
		failed = check_job(t, jobs, c, i);
	return failed;
}

int config_parse(const char *name, const char *folder, const char *text, size_t n, struct config **ret, struct error *err)
{
	struct config *c = config_new();
	if (!c)
		return error_nomem(err, "the configuration");
	struct doc t = { .name = name, .folder = arena_text(&c->arena, folder, strlen(folder)), .arena = &c->arena, .err = err };
	yaml_node_t *root;
	c->folder = t.folder;
	int failed = doc_init(&t, text, n, &root);
	if (!failed) {
		failed = read_root(&t, root, c);
		doc_finish(&t);
	}
	if (!failed && c->arena.failed)
		failed = error_set(err, E_LIMIT, "%s: a configuration of more than %zu MiB", name, ARENA_MAX >> 20);
	if (failed)
		config_free(c);
	else
		*ret = c;
	return failed;
}

static int read_file(const char *path, struct buf *text, struct error *err)
{
	struct stream in;
	buf_init(text, FILE_MAX);
	int failed = stream_open(&in, path, err);
	if (failed)
		return failed;
	failed = stream_read_all(&in, text, err);
	stream_close(&in);
	return failed;
}

/* The folder that a path names something in; "" for this one. */
static void folder_of(const char *path, struct buf *to)
{
	const char *slash = strrchr(path, '/');
	buf_init(to, 1 << 16);
	buf_add(to, path, slash ? (size_t)(slash - path) + (slash == path) : 0);
}

int config_read(const char *path, struct config **ret, struct error *err)
{
	struct buf text, folder;
	int failed = read_file(path, &text, err);
	if (!failed) {
		folder_of(path, &folder);
		failed = config_parse(path, folder.data, text.data ? text.data : "", text.len, ret, err);
		buf_finish(&folder);
	}
	buf_finish(&text);
	return failed;
}

int config_of_addresses(char *const *addresses, size_t n, int64_t interval_ms, struct config **ret, struct error *err)
{
	struct config *c = config_new();
	if (!c)
		return error_nomem(err, "the configuration");
	struct config_address ignored;
	int failed = E_OK;
	c->folder = "";
	c->jobs = arena_take(&c->arena, sizeof *c->jobs);
	struct config_group *group = arena_take(&c->arena, sizeof *group);
	if (c->jobs && group) {
		c->n_jobs = 1;
		*c->jobs = (struct config_job){ .name = "default", .interval_ms = interval_ms, .groups = { group, 1 }, .body_limit = CONFIG_UNSET,
		                                .sample_limit = CONFIG_UNSET, .target_limit = CONFIG_UNSET };
	}
	for (size_t i = 0; i < n && group && !failed; i++) {
		failed = config_address(addresses[i], &c->arena, &ignored, err);
		texts_add(&c->arena, &group->targets, arena_text(&c->arena, addresses[i], strlen(addresses[i])));
	}
	fill(c);
	if (!failed && c->arena.failed)
		failed = error_nomem(err, "the configuration");
	if (failed)
		config_free(c);
	else
		*ret = c;
	return failed;
}

void config_free(struct config *c)
{
	if (!c)
		return;
	for (size_t i = 0; i < c->n_jobs; i++)
		for (size_t k = 0; k < c->jobs[i].n_relabel; k++)
			relabel_pattern_finish(&c->jobs[i].relabel[k].pattern);
	arena_finish(&c->arena);
	free(c);
}

int config_read_groups(const char *path, struct arena *a, struct config_groups *ret, struct error *err)
{
	struct doc t = { .name = path, .arena = a, .err = err };
	struct config_groups groups = { NULL, 0 };
	struct buf text;
	yaml_node_t *root;
	int failed = read_file(path, &text, err);
	if (!failed)
		failed = doc_init(&t, text.data ? text.data : "", text.len, &root);
	if (!failed) {
		failed = root ? config_groups_of(&t, root, &groups) : E_OK;
		doc_finish(&t);
	}
	if (!failed && a->failed)
		failed = error_nomem(err, "the targets");
	if (!failed)
		*ret = groups;
	buf_finish(&text);
	return failed;
}
