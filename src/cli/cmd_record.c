/* record: the recorder, in the foreground, until it is told to end. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/live.h"
#include "cli/progress.h"
#include "record/recorder.h"

struct record_command {
	const char *config, *store, *listen, *interval, *token_file, *job;
	bool check;
};

/* --- processes of this machine --- */

static bool endpoint(uint64_t pid, char *to, size_t room)
{
	struct fetch_address a;
	if (!live_endpoint((pid_t)pid, "/", &a))
		return false;
	int n = a.socket[0] ? snprintf(to, room, "unix:%s", a.socket) : snprintf(to, room, "%.*s", (int)strlen(a.url), a.url);
	fetch_address_finish(&a);
	return n > 0 && (size_t)n < room;
}

static int dump(uint64_t pid, struct buf *to, struct error *err)
{
	struct stream s;
	int failed = live_dump((pid_t)pid, "the dump", &s, err);
	if (failed)
		return failed;
	failed = stream_read_all(&s, to, err);
	stream_close(&s);
	return failed;
}

/* --- the configuration --- */

static int read_interval(const struct record_command *s, int64_t *ret_ms, struct error *err)
{
	if (!config_duration(s->interval, ret_ms) || *ret_ms < 100)
		return error_set(err, E_USAGE, "--interval: '%.40s' is no duration of 100ms or more, like 15s", s->interval);
	return E_OK;
}

static int make_config(const struct record_command *s, char **operands, size_t n, struct config **ret, struct error *err)
{
	int64_t interval_ms;
	int failed = read_interval(s, &interval_ms, err);
	if (failed)
		return failed;
	if (s->config && n)
		return error_set(err, E_USAGE, "'%.100s': addresses are in the configuration file, or on the command line, not both", operands[0]);
	if (s->config && (s->token_file || s->job))
		return error_set(err, E_USAGE, "--token-file and --job belong to addresses on the command line; with --config they are keys of the file");
	failed = s->config ? config_read(s->config, ret, err) : config_of_addresses(operands, n, interval_ms, ret, err);
	if (failed)
		return failed;
	struct config *c = *ret;
	if (s->store)
		c->store.path = s->store;
	if (s->listen)
		c->web.listen = s->listen;
	if (s->job)
		c->jobs->name = s->job;
	if (s->token_file)
		c->jobs->access.credentials_file = s->token_file;
	return E_OK;
}

static int say_checked(const struct record_command *s, const struct config *c, struct error *err)
{
	struct buf line;
	size_t groups = 0, files = 0;
	for (size_t i = 0; i < c->n_jobs; i++) {
		groups += c->jobs[i].groups.n;
		files += c->jobs[i].n_files;
	}
	buf_init(&line, 1 << 16);
	buf_printf(&line, "%s: fine: %zu jobs, %zu static_configs, %zu file_sd_configs\n", s->config ? s->config : "command line", c->n_jobs, groups,
	           files);
	int failed = print_text(&line, err);
	buf_finish(&line);
	return failed;
}

/* --- running --- */

/* Each target may take two connections at a time. */
static void raise_descriptors(void)
{
	struct rlimit l;
	if (getrlimit(RLIMIT_NOFILE, &l) == 0 && l.rlim_cur < l.rlim_max) {
		l.rlim_cur = l.rlim_max < 65536 ? l.rlim_max : 65536;
		setrlimit(RLIMIT_NOFILE, &l);
	}
}

static void say(const struct buf *lines)
{
	print_warnings(lines);
}

static int print_started(const struct recorder *r, const struct config *c, struct error *err)
{
	struct buf line;
	buf_init(&line, 1 << 16);
	buf_printf(&line, "%s\n", recorder_url(r));
	int failed = print_text(&line, err);
	if (isatty(STDERR_FILENO))
		fprintf(stderr, "Recording into %s; Ctrl-C ends it.\n", c->store.path);
	buf_finish(&line);
	return failed;
}

/* Blocked in all threads: the main one takes them when they come. */
static void block_signals(sigset_t *ends)
{
	sigset_t all;
	sigemptyset(ends);
	sigaddset(ends, SIGINT);
	sigaddset(ends, SIGTERM);
	all = *ends;
	sigaddset(&all, SIGHUP);
	sigprocmask(SIG_BLOCK, &all, NULL);
	signal(SIGPIPE, SIG_IGN);
	/* A limit of files is a full disk, and no more. */
	signal(SIGXFSZ, SIG_IGN);
}

static void wait_for_the_end(struct recorder *r, const sigset_t *ends)
{
	sigset_t all = *ends;
	int number = 0;
	sigaddset(&all, SIGHUP);
	while (sigwait(&all, &number) == 0 && number == SIGHUP)
		recorder_reload(r);
}

static int record(const struct record_command *s, struct config *c, struct error *err)
{
	const struct recorder_settings how = { .config_path = s->config, .processes = { endpoint, dump }, .say = say };
	struct recorder *r;
	sigset_t ends;
	raise_descriptors();
	block_signals(&ends);
	int failed = recorder_new(&how, c, &r, err);
	if (failed) {
		config_free(c);
		return failed;
	}
	failed = recorder_start(r, err);
	if (!failed)
		failed = print_started(r, c, err);
	if (!failed)
		wait_for_the_end(r, &ends);
	recorder_stop(r);
	recorder_free(r);
	return failed;
}

static int run(const void *settings, char **operands, size_t n, struct error *err)
{
	const struct record_command *s = settings;
	struct config *c;
	int failed = make_config(s, operands, n, &c, err);
	if (failed)
		return failed;
	if (!s->check)
		return record(s, c, err);
	failed = say_checked(s, c, err);
	config_free(c);
	return failed;
}

static const struct option_spec own_options[] = {
	{ "config", 'c', false, OPTION_TEXT, "FILE", "what to record, and how: Prometheus' scrape_configs and more (see heapgauge-record(1))",
	  offsetof(struct record_command, config) },
	{ "check-config", 0, false, OPTION_ON, NULL, "only say whether the configuration is right", offsetof(struct record_command, check) },
	{ "store", 0, false, OPTION_TEXT, "FILE", "where profiles are kept (default: the configuration's, else heapgauge.db here)",
	  offsetof(struct record_command, store) },
	{ "listen", 0, false, OPTION_TEXT, "ADDRESS:PORT", "where the page and the API are served (default: the configuration's, else 127.0.0.1:7071)",
	  offsetof(struct record_command, listen) },
	{ "interval", 0, false, OPTION_TEXT, "DURATION", "how often addresses of the command line are scraped (default 15s)",
	  offsetof(struct record_command, interval) },
	{ "job", 0, false, OPTION_TEXT, "NAME", "the label job of addresses of the command line (default: default)",
	  offsetof(struct record_command, job) },
	{ "token-file", 0, false, OPTION_TEXT, "FILE", "the first line is sent to addresses of the command line as Authorization: Bearer",
	  offsetof(struct record_command, token_file) },
};

static const struct option_group groups[] = {
	{ "Options", own_options, sizeof own_options / sizeof *own_options, 0 },
	{ NULL, NULL, 0, 0 },
};

static const struct record_command defaults = { .interval = "15s" };

const struct command cmd_record = {
	.name = "record",
	.operands = "[ADDRESS…]",
	.summary = "the recorder: scrapes many processes for weeks, serves their history",
	.description =
	    "Scrapes the heap profiles of all ADDRESSes, or of what the configuration says, keeps them in a\n"
	    "store, and serves a web page and an API with what was when. An ADDRESS is host:port, a whole URL,\n"
	    "unix:/socket or pid:N. It also takes profiles that are sent: POST /api/v1/push?job=NAME.\n"
	    "SIGHUP reads the configuration again; SIGTERM ends it without losing anything.\n",
	.example = "  heapgauge record http://localhost:6060 http://localhost:6061\n"
	           "  heapgauge record -c heapgauge.yml\n",
	.groups = groups,
	.defaults = &defaults,
	.settings_bytes = sizeof defaults,
	.min_operands = 0,
	.max_operands = SIZE_MAX,
	.run = run,
};
