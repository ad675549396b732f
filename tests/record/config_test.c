/* The configuration: every key lands where it belongs, every mistake is told with its place and what was meant. */
#include "../base/test.h"

#include "record/config.h"

static struct config *parse(const char *text)
{
	struct config *c = NULL;
	struct error err = { 0 };
	if (config_parse("x.yml", "/etc/hg", text, strlen(text), &c, &err))
		fail_msg("%s", err.text);
	return c;
}

/* The error is expected, after "x.yml:". */
static void refuses(const char *text, const char *expected)
{
	struct config *c = NULL;
	struct error err = { 0 };
	char all[512];
	snprintf(all, sizeof all, "x.yml:%s", expected);
	int failed = config_parse("x.yml", "/etc/hg", text, strlen(text), &c, &err);
	assert_int_equal(failed, E_FORMAT);
	assert_null(c);
	assert_string_equal(err.text, all);
}

static void test_empty(void **state)
{
	(void)state;
	static const char *const texts[] = { "", "# nothing\n", "global:\nscrape_configs:\n", "{}", "~" };
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		struct config *c = parse(texts[i]);
		assert_int_equal(c->n_jobs, 0);
		assert_string_equal(c->store.path, "heapgauge.db");
		assert_string_equal(c->web.listen, "127.0.0.1:7071");
		config_free(c);
	}
}

static void test_sections(void **state)
{
	(void)state;
	struct config *c = parse(
	    "scrape_configs: [{job_name: a}, {job_name: b, scrape_interval: 5s, body_size_limit: 0, sample_limit: 0}]\n"
	    "global:\n  scrape_interval: 1m\n  scrape_timeout: 20s\n  external_labels: {zone: z1, rack: '7'}\n  body_size_limit: 1MB\n"
	    "  sample_limit: 9\n  target_limit: 8\n"
	    "store:\n  path: d/h.db\n  max_size: 20GB\n  retention: {raw: 1d, 5m: 2w, 1h: 1y, 1d: 2y}\n"
	    "symbols:\n  debug_dirs: [a, /b]\n  debuginfod: []\n  upload_dir: up\n  upload_limit: 3k\n"
	    "web:\n  listen: 0.0.0.0:1\n  token: 0123456789abcdef\n  allow_remote: true\n  hosts: [a, b]\n  external_url: https://x/\n");
	assert_int_equal(c->n_jobs, 2);
	assert_int_equal(c->jobs[0].interval_ms, 60000);
	assert_int_equal(c->jobs[0].timeout_ms, 20000);
	assert_int_equal(c->jobs[0].body_limit, 1 << 20);
	assert_int_equal(c->jobs[0].sample_limit, 9);
	assert_int_equal(c->jobs[0].target_limit, 8);
	assert_int_equal(c->jobs[1].interval_ms, 5000);
	assert_int_equal(c->jobs[1].timeout_ms, 5000);      /* the global one is longer than the interval */
	assert_int_equal(c->jobs[1].body_limit, 0);
	assert_int_equal(c->jobs[1].sample_limit, 0);
	assert_int_equal(c->external_labels.n, 2);
	assert_string_equal(c->external_labels.items[1].value, "7");
	assert_string_equal(c->store.path, "/etc/hg/d/h.db");
	assert_true(c->store.options.max_bytes == 20ull << 30);
	assert_true(c->store.options.retention_ms[TIER_RAW] == 86400000ll && c->store.options.retention_ms[TIER_5_MINUTES] == 14 * 86400000ll);
	assert_true(c->store.options.retention_ms[TIER_DAY] == 730 * 86400000ll);
	assert_string_equal(c->symbols.debug_dirs.items[0], "/etc/hg/a");
	assert_string_equal(c->symbols.debug_dirs.items[1], "/b");
	assert_true(c->symbols.has_debuginfod && c->symbols.debuginfod.n == 0 && c->symbols.upload_limit == 3072);
	assert_string_equal(c->symbols.upload_dir, "/etc/hg/up");
	assert_true(c->web.allow_remote && c->web.hosts.n == 2);
	assert_string_equal(c->web.listen, "0.0.0.0:1");
	assert_string_equal(c->web.token, "0123456789abcdef");
	assert_string_equal(c->web.external_url, "https://x/");
	config_free(c);
}

static void test_job(void **state)
{
	(void)state;
	struct config *c = parse(
	    "scrape_configs:\n- job_name: j\n  scheme: https\n  profile_path: /p\n  metrics_path: ''\n  params: {a: [x, y], b: ['1']}\n"
	    "  static_configs:\n  - targets: ['h:1', 'http://h:2/p?q', 'unix:/s', 'pid:7', '[::1]:3']\n    labels: {l: v}\n"
	    "  - targets: []\n"
	    "  file_sd_configs:\n  - {files: [t/*.json, /a.yml], refresh_interval: 1m}\n  - files: [b.yaml]\n"
	    "  relabel_configs:\n  - {source_labels: [a, b], separator: '-', regex: '(x)y', target_label: t, replacement: '$1', action: Replace}\n"
	    "  - {source_labels: [a], modulus: 4, target_label: m, action: hashmod}\n"
	    "  basic_auth: {username: u, password_file: pw}\n"
	    "  tls_config: {ca_file: ca, cert_file: ce, key_file: k, server_name: s, insecure_skip_verify: true}\n"
	    "- {job_name: k, authorization: {type: Token, credentials: c}}\n- {job_name: l, bearer_token_file: f}\n- {job_name: m, bearer_token: t}\n"
	    "- {job_name: n, authorization: {credentials_file: /f}}\n");
	const struct config_job *j = c->jobs;
	assert_int_equal(c->n_jobs, 5);
	assert_string_equal(j->scheme, "https");
	assert_string_equal(j->profile_path, "/p");
	assert_string_equal(j->metrics_path, "");
	assert_int_equal(j->params.n, 3);
	assert_string_equal(j->params.items[1].name, "a");
	assert_string_equal(j->params.items[1].value, "y");
	assert_int_equal(j->groups.n, 2);
	assert_int_equal(j->groups.items[0].targets.n, 5);
	assert_string_equal(j->groups.items[0].labels.items[0].value, "v");
	assert_int_equal(j->n_files, 2);
	assert_int_equal(j->files[0].refresh_ms, 60000);
	assert_int_equal(j->files[1].refresh_ms, 300000);
	assert_string_equal(j->files[0].patterns.items[0], "/etc/hg/t/*.json");
	assert_int_equal(j->n_relabel, 2);
	assert_int_equal(j->relabel[0].n_sources, 2);
	assert_string_equal(j->relabel[0].separator, "-");
	assert_int_equal(j->relabel[1].action, RELABEL_HASHMOD);
	assert_int_equal(j->relabel[1].modulus, 4);
	assert_string_equal(j->relabel[1].separator, ";");
	assert_string_equal(j->access.username, "u");
	assert_string_equal(j->access.password_file, "/etc/hg/pw");
	assert_string_equal(j->access.key_file, "/etc/hg/k");
	assert_string_equal(j->access.server_name, "s");
	assert_true(j->access.insecure_skip_verify);
	assert_string_equal(c->jobs[1].access.authorization_type, "Token");
	assert_string_equal(c->jobs[1].access.credentials, "c");
	assert_string_equal(c->jobs[2].access.credentials_file, "/etc/hg/f");
	assert_string_equal(c->jobs[3].access.credentials, "t");
	assert_string_equal(c->jobs[4].access.credentials_file, "/f");
	assert_string_equal(c->jobs[4].profile_path, "/debug/pprof/heap");
	assert_string_equal(c->jobs[4].metrics_path, "/metrics");
	assert_int_equal(c->jobs[4].interval_ms, 15000);
	assert_int_equal(c->jobs[4].timeout_ms, 10000);
	assert_int_equal(c->jobs[4].body_limit, 64 << 20);
	config_free(c);
}

#define JOB "scrape_configs:\n- job_name: j\n  "
#define RULE JOB "relabel_configs: [{"

static const struct {
	const char *text, *error;
} mistakes[] = {
	{ "globl: {}", "1:1: the configuration has no key 'globl': is 'global' meant?" },
	{ "zzzzzz: {}", "1:1: the configuration has no key 'zzzzzz'" },
	{ "- a", "1:1: the configuration has to be a mapping, lines of \"key: value\"" },
	{ "global: {}\nglobal: {}", "2:1: the configuration has 'global' twice" },
	{ "{}\n---\n{}\n", "3:1: a second document: there can be one only" },
	{ "? [a]\n: b", "1:3: the configuration: a key that is no text" },
	{ "global:\n  scrape_intervall: 1s", "2:3: global has no key 'scrape_intervall': is 'scrape_interval' meant?" },
	{ "global: {scrape_interval: 1}", "1:27: '1' is no duration like 15s, 1h30m or 2d (units y w d h m s ms, the largest first)" },
	{ "global: {scrape_interval: 0s}", "1:27: a duration of 0" },
	{ "global: {scrape_interval: [1s]}", "1:27: here has to be a duration like 15s" },
	{ "global: {scrape_interval: 5s, scrape_timeout: 6s}", "1:9: global: scrape_timeout is longer than scrape_interval" },
	{ "global: {body_size_limit: big}", "1:27: 'big' is no size like 64MB" },
	{ "global: {sample_limit: -1}", "1:24: '-1' is no whole number of 0 or more" },
	{ "global: {external_labels: {9a: b}}", "1:28: '9a' is no name of a label: letters, digits and '_', no digit first" },
	{ "global: {external_labels: {a: b, a: c}}", "1:34: the label 'a' is there twice" },
	{ "global: {external_labels: [a]}", "1:27: labels have to be a mapping, lines of \"name: value\"" },
	{ "global: {external_labels: {a: [b]}}", "1:31: here has to be a text" },
	{ "scrape_configs: {job_name: a}", "1:17: scrape_configs has to be a list, lines of \"- value\" or [a, b]" },
	{ "scrape_configs:\n- scheme: http", "2:3: a job needs a job_name" },
	{ "scrape_configs:\n- job_name: j\n- job_name: j", "3:13: there are two jobs with the job_name 'j'" },
	{ JOB "scheme: ftp", "3:11: 'ftp' is no scheme: http or https" },
	{ JOB "profile_path: p", "3:17: 'p' is no path like /debug/pprof/heap (parameters go to params)" },
	{ JOB "profile_path: /p?x", "3:17: '/p?x' is no path like /debug/pprof/heap (parameters go to params)" },
	{ JOB "profile_path: ''", "2:3: profile_path is empty" },
	{ JOB "scrape_interval: 5s\n  scrape_timeout: 6s", "4:19: the scrape_timeout of job 'j' is longer than its scrape_interval" },
	{ JOB "scrape_interval: 50ms", "2:3: the scrape_interval of job 'j' is shorter than 100ms" },
	{ JOB "static_configs: [{targets: ['h:99999']}]", "3:31: h:99999: '99999' is no port" },
	{ JOB "static_configs: [{targets: ['h/x']}]",
	  "3:31: h/x: this is no address like host:port, http://host:port/path, unix:/socket or pid:1234" },
	{ JOB "static_configs: [{targets: ['http://u:p@h/']}]", "3:31: http://u:p@h/: a password does not belong into an address: use basic_auth" },
	{ JOB "static_configs: [{targets: ['unix:s']}]", "3:31: unix:s: give the full path of a socket, like unix:/run/app.sock" },
	{ JOB "static_configs: [{targets: ['pid:x']}]", "3:31: pid:x: give the number of a process, like pid:1234" },
	{ JOB "static_configs: [{targets: ['a b']}]", "3:31: 'a b': an address has no blanks, quotes or backslashes, and isn't empty" },
	{ JOB "static_configs: [{target: []}]", "3:21: a group of targets has no key 'target': is 'targets' meant?" },
	{ JOB "file_sd_configs: [{files: [a.txt]}]", "3:30: a file of targets ends in .json, .yml or .yaml" },
	{ JOB "file_sd_configs: [{files: ['*/a.json']}]", "3:30: '*' can be in the last part of a path only" },
	{ JOB "file_sd_configs: [{}]", "3:21: file_sd_configs needs files" },
	{ JOB "basic_auth: {password: x}", "3:15: basic_auth needs a username" },
	{ JOB "basic_auth: {username: u, password: x, password_file: y}", "3:15: basic_auth: password or password_file, not both" },
	{ JOB "authorization: {type: x}", "3:18: authorization needs credentials or credentials_file, and not both" },
	{ JOB "bearer_token: x\n  basic_auth: {username: u}",
	  "2:3: one of basic_auth, authorization, bearer_token and bearer_token_file, not several" },
	{ JOB "tls_config: {cert_file: x}", "3:15: tls_config: cert_file and key_file go together" },
	{ JOB "tls_config: {insecure_skip_verify: yes}", "3:38: 'yes' is neither true nor false" },
	{ RULE "action: keeep}]", "3:30: there is no action 'keeep': is 'keep' meant?" },
	{ RULE "regex: '(a'}]", "3:29: the expression '(a': Unmatched ( or \\(" },
	{ RULE "regex: 'a*?'}]", "3:29: the expression 'a*?': '*?': repetition that takes as little as it can is not understood" },
	{ RULE "source_labels: [a]}]", "3:21: the action replace needs a target_label" },
	{ RULE "target_label: 'a-b'}]", "3:21: target_label: 'a-b' is no name of a label" },
	{ RULE "source_labels: [a-b], target_label: a}]", "3:21: source_labels: 'a-b' is no name of a label" },
	{ RULE "target_label: a, action: hashmod}]", "3:21: the action hashmod needs a modulus of 1 or more" },
	{ RULE "target_label: a, regex: b, action: labeldrop}]",
	  "3:21: the action labeldrop looks at names: it takes a regex and nothing else" },
	{ RULE "target_label: a, source_labels: [b], regex: b, action: keepequal}]",
	  "3:21: the action keepequal takes source_labels and target_label and nothing else" },
	{ RULE "replacement: 'a-b', regex: b, action: labelmap}]", "3:21: replacement: 'a-b' is no name of a label" },
	{ "store: {retention: {raw: 2d, 5m: 1d}}", "1:20: retention: '5m' is kept shorter than the finer tier before it" },
	{ "store: {retention: {raw: 2d, 10m: 1d}}", "1:30: retention has no key '10m'" },
	{ "store: {path: ''}", "1:15: an empty path" },
	{ "web: {token: short}", "1:14: a token has 16 to 256 characters; make one with: openssl rand -hex 32" },
	{ "web: {token: '0123456789 abcdef'}", "1:14: character 11 of the token is not visible ASCII" },
	{ "web: {token: 0123456789abcdef, token_file: x}", "1:6: web: token or token_file, not both" },
	{ "a: 'b", "1:6: while scanning a quoted scalar: found unexpected end of stream" },
};

static void test_mistakes(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; i++)
		refuses(mistakes[i].text, mistakes[i].error);
}

static void test_durations(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		int64_t ms;
	} good[] = { { "15s", 15000 }, { "1h30m", 5400000 }, { "500ms", 500 }, { "2d", 172800000 }, { "1w", 604800000 }, { "1y", 31536000000 },
	             { "1m1ms", 60001 }, { "0s", 0 }, { "1y2w3d4h5m6s7ms", 31536000000 + 14 * 86400000LL + 3 * 86400000LL + 14400000 + 306007 } };
	static const char *const bad[] = { "", "1", "s", "1s1s", "30m1h", "-1s", "1 s", "1.5s", "1S", "9999999999y", "99999999999999999999s", "1sm" };
	int64_t ms;
	for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
		assert_true(config_duration(good[i].text, &ms));
		assert_true(ms == good[i].ms);
	}
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_false(config_duration(bad[i], &ms));
}

static void test_addresses(void **state)
{
	(void)state;
	static const struct {
		const char *text, *scheme, *address, *path, *query;
	} good[] = {
		{ "h:1", NULL, "h:1", NULL, NULL }, { "h", NULL, "h", NULL, NULL }, { "[::1]:2", NULL, "[::1]:2", NULL, NULL },
		{ "http://h:1", "http", "h:1", NULL, NULL }, { "http://h:1/", "http", "h:1", NULL, NULL },
		{ "HTTPS://h/p?q=1#f", "https", "h", "/p", "q=1" }, { "http://h/?q", "http", "h", NULL, "q" }, { "http://h?q", "http", "h", NULL, "q" },
		{ "unix:/s", NULL, "unix:/s", NULL, NULL }, { "unix:/s?seconds=5", NULL, "unix:/s", NULL, "seconds=5" },
		{ "unix:/s?/p?q", NULL, "unix:/s", "/p", "q" }, { "pid:12", NULL, "pid:12", NULL, NULL },
	};
	for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
		struct config_address a;
		struct arena arena;
		struct error err;
		arena_init(&arena, 1 << 16);
		assert_int_equal(config_address(good[i].text, &arena, &a, &err), E_OK);
		const char *got[] = { a.scheme, a.address, a.path, a.query };
		const char *expected[] = { good[i].scheme, good[i].address, good[i].path, good[i].query };
		for (int k = 0; k < 4; k++) {
			assert_int_equal(!got[k], !expected[k]);
			if (got[k])
				assert_string_equal(got[k], expected[k]);
		}
		arena_finish(&arena);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_empty), cmocka_unit_test(test_sections), cmocka_unit_test(test_job), cmocka_unit_test(test_mistakes),
		cmocka_unit_test(test_durations), cmocka_unit_test(test_addresses),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
