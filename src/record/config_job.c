/* A job of scrape_configs: its keys, as tables, and what of them goes together. */
#include "record/config_private.h"

#include <string.h>
#include <strings.h>

#include "base/nearest.h"

#define REFRESH_MS 300000
#define COUNT(array) (sizeof(array) / sizeof *(array))

/* --- access and TLS --- */

static int read_basic_auth(struct doc *t, const yaml_node_t *node, void *to)
{
	static const struct doc_key keys[] = {
		{ "username", doc_text, offsetof(struct config_access, username) },
		{ "password", doc_text, offsetof(struct config_access, password) },
		{ "password_file", doc_path, offsetof(struct config_access, password_file) },
	};
	struct config_access *a = to;
	int failed = doc_mapping(t, node, "basic_auth", keys, COUNT(keys), a);
	if (!failed && !a->username)
		failed = doc_fail(t, node, "basic_auth needs a username");
	if (!failed && a->password && a->password_file)
		failed = doc_fail(t, node, "basic_auth: password or password_file, not both");
	return failed;
}

static int read_authorization(struct doc *t, const yaml_node_t *node, void *to)
{
	static const struct doc_key keys[] = {
		{ "type", doc_text, offsetof(struct config_access, authorization_type) },
		{ "credentials", doc_text, offsetof(struct config_access, credentials) },
		{ "credentials_file", doc_path, offsetof(struct config_access, credentials_file) },
	};
	struct config_access *a = to;
	int failed = doc_mapping(t, node, "authorization", keys, COUNT(keys), a);
	if (!failed && !a->credentials == !a->credentials_file)
		failed = doc_fail(t, node, "authorization needs credentials or credentials_file, and not both");
	return failed;
}

static int read_tls(struct doc *t, const yaml_node_t *node, void *to)
{
	static const struct doc_key keys[] = {
		{ "ca_file", doc_path, offsetof(struct config_access, ca_file) },
		{ "cert_file", doc_path, offsetof(struct config_access, cert_file) },
		{ "key_file", doc_path, offsetof(struct config_access, key_file) },
		{ "server_name", doc_text, offsetof(struct config_access, server_name) },
		{ "insecure_skip_verify", doc_flag, offsetof(struct config_access, insecure_skip_verify) },
	};
	struct config_access *a = to;
	int failed = doc_mapping(t, node, "tls_config", keys, COUNT(keys), a);
	if (!failed && !a->cert_file != !a->key_file)
		failed = doc_fail(t, node, "tls_config: cert_file and key_file go together");
	return failed;
}

static int read_bearer_token(struct doc *t, const yaml_node_t *node, void *to)
{
	struct config_access *a = to;
	return doc_text(t, node, &a->credentials);
}

static int read_bearer_token_file(struct doc *t, const yaml_node_t *node, void *to)
{
	struct config_access *a = to;
	return doc_path(t, node, &a->credentials_file);
}

/* --- targets --- */

static int add_target(struct doc *t, const yaml_node_t *node, void *to)
{
	const char *text = NULL;
	struct config_address ignored;
	int failed = doc_text(t, node, &text);
	if (!failed && text)
		failed = doc_place(t, node, config_address(text, t->arena, &ignored, t->err));
	if (!failed)
		texts_add(t->arena, to, text);
	return failed;
}

static int read_targets(struct doc *t, const yaml_node_t *node, void *to)
{
	return doc_list(t, node, "targets", add_target, to);
}

static int add_group(struct doc *t, const yaml_node_t *node, void *to)
{
	static const struct doc_key keys[] = {
		{ "targets", read_targets, offsetof(struct config_group, targets) },
		{ "labels", doc_labels, offsetof(struct config_group, labels) },
	};
	struct config_groups *groups = to;
	struct config_group *items = arena_grow(t->arena, groups->items, groups->n, sizeof *items);
	if (!items)
		return E_OK;
	groups->items = items;
	memset(&items[groups->n], 0, sizeof *items);
	return doc_mapping(t, node, "a group of targets", keys, COUNT(keys), &items[groups->n++]);
}

static int read_groups(struct doc *t, const yaml_node_t *node, void *to)
{
	return doc_list(t, node, "static_configs", add_group, to);
}

int config_groups_of(struct doc *t, const yaml_node_t *root, struct config_groups *ret)
{
	return doc_list(t, root, "a file of targets", add_group, ret);
}

static int add_pattern(struct doc *t, const yaml_node_t *node, void *to)
{
	const char *path = NULL;
	int failed = doc_path(t, node, &path);
	if (failed || !path)
		return failed;
	const char *dot = strrchr(path, '.'), *last = strrchr(path, '/'), *star = strchr(path, '*');
	if (!dot || (strcmp(dot, ".json") != 0 && strcmp(dot, ".yml") != 0 && strcmp(dot, ".yaml") != 0))
		return doc_fail(t, node, "a file of targets ends in .json, .yml or .yaml");
	if (star && last && star < last)
		return doc_fail(t, node, "'*' can be in the last part of a path only");
	texts_add(t->arena, to, path);
	return E_OK;
}

static int read_patterns(struct doc *t, const yaml_node_t *node, void *to)
{
	return doc_list(t, node, "files", add_pattern, to);
}

static int add_files(struct doc *t, const yaml_node_t *node, void *to)
{
	static const struct doc_key keys[] = {
		{ "files", read_patterns, offsetof(struct config_files, patterns) },
		{ "refresh_interval", doc_duration, offsetof(struct config_files, refresh_ms) },
	};
	struct config_job *job = to;
	struct config_files *files = arena_grow(t->arena, job->files, job->n_files, sizeof *files);
	if (!files)
		return E_OK;
	job->files = files;
	files += job->n_files++;
	*files = (struct config_files){ .refresh_ms = REFRESH_MS };
	int failed = doc_mapping(t, node, "file_sd_configs", keys, COUNT(keys), files);
	if (!failed && files->patterns.n == 0)
		failed = doc_fail(t, node, "file_sd_configs needs files");
	return failed;
}

static int read_files(struct doc *t, const yaml_node_t *node, void *to)
{
	return doc_list(t, node, "file_sd_configs", add_files, to);
}

/* --- relabelling --- */

static int read_action(struct doc *t, const yaml_node_t *node, void *to)
{
	const char *text = NULL, *names[RELABEL_ACTIONS];
	int failed = doc_text(t, node, &text);
	if (failed || !text)
		return failed;
	for (int i = 0; i < RELABEL_ACTIONS; i++) {
		names[i] = relabel_action_name((enum relabel_action)i);
		if (strcasecmp(text, names[i]) == 0) {
			*(enum relabel_action *)to = (enum relabel_action)i;
			return E_OK;
		}
	}
	const char *near = nearest_word(text, names, RELABEL_ACTIONS);
	return doc_fail(t, node, "there is no action '%.40s'%s%s%s", text, near ? ": is '" : "", near ? near : "", near ? "' meant?" : "");
}

static int read_pattern(struct doc *t, const yaml_node_t *node, void *to)
{
	struct relabel_rule *r = to;
	struct error reason = { 0 };
	const char *text = NULL;
	int failed = doc_text(t, node, &text);
	if (failed || !text)
		return failed;
	r->has_pattern = relabel_pattern_init(&r->pattern, text, &reason) == E_OK;
	return r->has_pattern ? E_OK : doc_fail(t, node, "the expression '%.60s': %s", text, reason.text);
}

static int check_sources(struct doc *t, const yaml_node_t *node, const struct relabel_rule *r)
{
	for (size_t i = 0; i < r->n_sources; i++)
		if (!label_name_valid(r->sources[i]))
			return doc_fail(t, node, "source_labels: '%.60s' is no name of a label", r->sources[i]);
	return E_OK;
}

/* What each action needs and can't use, as Prometheus has it. */
static int check_rule(struct doc *t, const yaml_node_t *node, const struct relabel_rule *r)
{
	const char *name = relabel_action_name(r->action);
	bool by_name = r->action == RELABEL_LABELDROP || r->action == RELABEL_LABELKEEP;
	bool compares = r->action == RELABEL_KEEPEQUAL || r->action == RELABEL_DROPEQUAL;
	bool targets = r->action == RELABEL_REPLACE || r->action == RELABEL_HASHMOD || r->action == RELABEL_LOWERCASE ||
	               r->action == RELABEL_UPPERCASE || compares;
	if (targets && !r->target)
		return doc_fail(t, node, "the action %s needs a target_label", name);
	if (targets && r->action != RELABEL_REPLACE && !label_name_valid(r->target))
		return doc_fail(t, node, "target_label: '%.60s' is no name of a label", r->target);
	if (r->action == RELABEL_REPLACE && !label_name_valid(r->target) && !strchr(r->target, '$'))
		return doc_fail(t, node, "target_label: '%.60s' is no name of a label", r->target);
	if (r->action == RELABEL_HASHMOD && r->modulus == 0)
		return doc_fail(t, node, "the action hashmod needs a modulus of 1 or more");
	if (by_name && (r->n_sources || r->target || r->modulus || r->separator || r->replacement))
		return doc_fail(t, node, "the action %s looks at names: it takes a regex and nothing else", name);
	if (compares && (r->has_pattern || r->modulus || r->separator || r->replacement))
		return doc_fail(t, node, "the action %s takes source_labels and target_label and nothing else", name);
	if (r->action == RELABEL_LABELMAP && r->replacement && !label_name_valid(r->replacement) && !strchr(r->replacement, '$'))
		return doc_fail(t, node, "replacement: '%.60s' is no name of a label", r->replacement);
	return check_sources(t, node, r);
}

static int add_rule(struct doc *t, const yaml_node_t *node, void *to)
{
	struct sources {
		struct config_texts list;
		struct relabel_rule rule;
	} s = { .list = { NULL, 0 } };
	static const struct doc_key keys[] = {
		{ "source_labels", doc_texts, offsetof(struct sources, list) },
		{ "separator", doc_text, offsetof(struct sources, rule.separator) },
		{ "target_label", doc_text, offsetof(struct sources, rule.target) },
		{ "regex", read_pattern, offsetof(struct sources, rule) },
		{ "modulus", doc_count, offsetof(struct sources, rule.modulus) },
		{ "replacement", doc_text, offsetof(struct sources, rule.replacement) },
		{ "action", read_action, offsetof(struct sources, rule.action) },
	};
	struct config_job *job = to;
	int failed = doc_mapping(t, node, "relabel_configs", keys, COUNT(keys), &s);
	struct relabel_rule *r = &s.rule;
	r->sources = s.list.items;
	r->n_sources = s.list.n;
	if (!failed)
		failed = check_rule(t, node, r);
	if (!failed && !r->has_pattern) {
		failed = relabel_pattern_init(&r->pattern, "(.*)", t->err);
		r->has_pattern = !failed;
	}
	r->separator = r->separator ? r->separator : ";";
	r->replacement = r->replacement ? r->replacement : "$1";
	struct relabel_rule *rules = failed ? NULL : arena_grow(t->arena, job->relabel, job->n_relabel, sizeof *rules);
	if (!rules) {
		if (r->has_pattern)
			relabel_pattern_finish(&r->pattern);
		return failed;
	}
	job->relabel = rules;
	rules[job->n_relabel++] = *r;
	return E_OK;
}

static int read_rules(struct doc *t, const yaml_node_t *node, void *to)
{
	return doc_list(t, node, "relabel_configs", add_rule, to);
}

/* --- the job --- */

static int read_scheme(struct doc *t, const yaml_node_t *node, void *to)
{
	const char *text = NULL;
	int failed = doc_text(t, node, &text);
	if (!failed && text && strcmp(text, "http") != 0 && strcmp(text, "https") != 0)
		return doc_fail(t, node, "'%.40s' is no scheme: http or https", text);
	*(const char **)to = text;
	return failed;
}

static int read_url_path(struct doc *t, const yaml_node_t *node, void *to)
{
	const char *text = NULL;
	int failed = doc_text(t, node, &text);
	if (!failed && text && *text && (*text != '/' || strpbrk(text, "?# ")))
		return doc_fail(t, node, "'%.60s' is no path like /debug/pprof/heap (parameters go to params)", text);
	*(const char **)to = text;
	return failed;
}

static int check_job(struct doc *t, const yaml_node_t *node, const struct config_job *job)
{
	const struct config_access *a = &job->access;
	if (!job->name || !*job->name)
		return doc_fail(t, node, "a job needs a job_name");
	if (job->profile_path && !*job->profile_path)
		return doc_fail(t, node, "profile_path is empty");
	if ((a->username != NULL) + (a->credentials != NULL) + (a->credentials_file != NULL) > 1)
		return doc_fail(t, node, "one of basic_auth, authorization, bearer_token and bearer_token_file, not several");
	return E_OK;
}

int config_add_job(struct doc *t, const yaml_node_t *node, void *to)
{
	static const struct doc_key keys[] = {
		{ "job_name", doc_text, offsetof(struct config_job, name) },
		{ "scrape_interval", doc_duration, offsetof(struct config_job, interval_ms) },
		{ "scrape_timeout", doc_duration, offsetof(struct config_job, timeout_ms) },
		{ "scheme", read_scheme, offsetof(struct config_job, scheme) },
		{ "profile_path", read_url_path, offsetof(struct config_job, profile_path) },
		{ "metrics_path", read_url_path, offsetof(struct config_job, metrics_path) },
		{ "params", doc_params, offsetof(struct config_job, params) },
		{ "static_configs", read_groups, offsetof(struct config_job, groups) },
		{ "file_sd_configs", read_files, 0 },
		{ "relabel_configs", read_rules, 0 },
		{ "basic_auth", read_basic_auth, offsetof(struct config_job, access) },
		{ "authorization", read_authorization, offsetof(struct config_job, access) },
		{ "bearer_token", read_bearer_token, offsetof(struct config_job, access) },
		{ "bearer_token_file", read_bearer_token_file, offsetof(struct config_job, access) },
		{ "tls_config", read_tls, offsetof(struct config_job, access) },
		{ "body_size_limit", doc_bytes, offsetof(struct config_job, body_limit) },
		{ "sample_limit", doc_count, offsetof(struct config_job, sample_limit) },
		{ "target_limit", doc_count, offsetof(struct config_job, target_limit) },
	};
	struct config *c = to;
	struct config_job *jobs = arena_grow(t->arena, c->jobs, c->n_jobs, sizeof *jobs);
	if (!jobs)
		return E_OK;
	c->jobs = jobs;
	struct config_job *job = &jobs[c->n_jobs++];
	*job = (struct config_job){ .body_limit = CONFIG_UNSET, .sample_limit = CONFIG_UNSET, .target_limit = CONFIG_UNSET };
	int failed = doc_mapping(t, node, "scrape_configs", keys, COUNT(keys), job);
	return failed ? failed : check_job(t, node, job);
}
