/* The options of heapgauge.h, copied and completed; and the same from the one variable that the preloaded library reads. */
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/agent.h"
#include "agent/memory.h"
#include "base/text.h"

#define SNAPSHOTS_DEFAULT 5
#define SNAPSHOTS_MAX 1000
#define INTERVAL_DEFAULT_S 10
#define LIMIT_PERCENT_DEFAULT 80

static int copy(char *to, size_t room, const char *text, const char *what, struct error *err)
{
	int n = snprintf(to, room, "%s", text ? text : "");
	return n >= 0 && (size_t)n < room ? E_OK : error_set(err, E_USAGE, "%s is too long", what);
}

/*
 * $XDG_RUNTIME_DIR/heapgauge/PID.sock, or under /tmp, where everybody may make a folder of that name first: who owns it can put a socket of his own
 * in the place of ours.
 */
static int default_listen(struct agent_options *o, struct error *err)
{
	const char *runtime = secure_getenv("XDG_RUNTIME_DIR");
	char folder[sizeof o->listen], text[sizeof o->listen + 64];
	struct stat st;
	if (runtime && *runtime == '/' && access(runtime, W_OK | X_OK) == 0) {
		snprintf(text, sizeof text, "unix:%s/heapgauge/%ld.sock", runtime, (long)getpid());
		return copy(o->listen, sizeof o->listen, text, "the socket's path", err);
	}
	snprintf(folder, sizeof folder, "/tmp/heapgauge-%lu", (unsigned long)geteuid());
	if (mkdir(folder, 0700) < 0 && errno != EEXIST)
		return error_set(err, E_IO, "%s: can't make the folder for the socket: %s; name another with listen=unix:/path", folder,
		                 strerror(errno));
	if (lstat(folder, &st) < 0 || !S_ISDIR(st.st_mode) || st.st_uid != geteuid() || (st.st_mode & 022))
		return error_set(err, E_UNSUPPORTED, "%s is not a folder that only this user can change: remove it, or name a socket elsewhere with "
		                 "listen=unix:/path", folder);
	snprintf(text, sizeof text, "unix:%s/%ld.sock", folder, (long)getpid());
	return copy(o->listen, sizeof o->listen, text, "the socket's path", err);
}

static int check(const struct agent_options *o, struct error *err)
{
	if (o->snapshot_count > SNAPSHOTS_MAX)
		return error_set(err, E_USAGE, "at most %u snapshots are kept", SNAPSHOTS_MAX);
	if (o->watch_psi_percent > 100 || o->watch_limit_percent > 101)
		return error_set(err, E_USAGE, "a watch's percentage is at most 100");
	if (!o->snapshot_dir[0] && (o->watch_rss_bytes || o->watch_psi_percent || o->watch_growth_bytes))
		return error_set(err, E_USAGE, "a watch needs a folder for its snapshots: snapshot_dir");
	return E_OK;
}

int agent_options_set(struct agent_options *to, const struct hg_agent_options *from, struct error *err)
{
	static const struct hg_agent_options none = HG_AGENT_OPTIONS_INIT;
	struct hg_agent_options given = none;
	struct agent_options o = { .allow_remote = false };
	if (from && (from->size < offsetof(struct hg_agent_options, error) || from->size > 4096))
		return error_set(err, E_USAGE, "the options' size is not set: begin with HG_AGENT_OPTIONS_INIT");
	if (from)
		memcpy(&given, from, from->size < sizeof given ? from->size : sizeof given);
	int rc = given.listen ? copy(o.listen, sizeof o.listen, given.listen, "listen", err) : default_listen(&o, err);
	if (rc == E_OK)
		rc = copy(o.token_file, sizeof o.token_file, given.token_file, "token_file", err);
	if (rc == E_OK)
		rc = copy(o.allow_hosts, sizeof o.allow_hosts, given.allow_hosts, "allow_hosts", err);
	if (rc == E_OK)
		rc = copy(o.spool_dir, sizeof o.spool_dir, given.spool_dir, "spool_dir", err);
	if (rc == E_OK)
		rc = copy(o.symbolizer, sizeof o.symbolizer, given.symbolizer, "symbolizer", err);
	if (rc == E_OK)
		rc = copy(o.snapshot_dir, sizeof o.snapshot_dir, given.snapshot_dir, "snapshot_dir", err);
	o.allow_remote = given.allow_remote != 0;
	o.serve_arguments = given.serve_arguments != 0;
	o.snapshot_count = given.snapshot_count ? given.snapshot_count : SNAPSHOTS_DEFAULT;
	o.snapshot_interval_s = given.snapshot_interval_s ? given.snapshot_interval_s : INTERVAL_DEFAULT_S;
	o.watch_rss_bytes = given.watch_rss_bytes;
	o.watch_growth_bytes = given.watch_growth_bytes;
	o.watch_psi_percent = given.watch_psi_percent;
	o.watch_limit_percent = given.watch_limit_percent ? given.watch_limit_percent : LIMIT_PERCENT_DEFAULT;
	if (rc == E_OK)
		rc = check(&o, err);
	if (rc == E_OK)
		*to = o;
	return rc;
}

/* --- from one text --------------------------------------------------------- */

static bool number(const char *value, uint64_t *ret)
{
	return text_parse_u64(value, strlen(value), 10, ret);
}

static bool small(const char *value, unsigned *ret)
{
	uint64_t n;
	if (!number(value, &n) || n > 1000000)
		return false;
	*ret = (unsigned)n;
	return true;
}

/* False: no such key, or no such value. */
static bool set_key(struct hg_agent_options *o, const char *key, const char *value)
{
	const struct { const char *key; const char **text; } texts[] = {
		{ "listen", &o->listen }, { "token_file", &o->token_file }, { "allow_hosts", &o->allow_hosts },
		{ "snapshots", &o->snapshot_dir }, { "spool", &o->spool_dir }, { "symbolizer", &o->symbolizer },
	};
	const struct { const char *key; unsigned *n; } counts[] = {
		{ "count", &o->snapshot_count }, { "interval", &o->snapshot_interval_s },
		{ "limit_percent", &o->watch_limit_percent }, { "psi", &o->watch_psi_percent },
	};
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
		if (strcmp(key, texts[i].key) == 0) {
			*texts[i].text = value;
			return true;
		}
	for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
		if (strcmp(key, counts[i].key) == 0)
			return small(value, counts[i].n);
	if (strcmp(key, "rss") == 0)
		return number(value, &o->watch_rss_bytes);
	return strcmp(key, "growth") == 0 && number(value, &o->watch_growth_bytes);
}

int agent_options_parse(const char *text, struct hg_agent_options *ret, char *storage, size_t room, struct error *err)
{
	static const struct hg_agent_options none = HG_AGENT_OPTIONS_INIT;
	*ret = none;
	int rc = copy(storage, room, text, "HEAPGAUGE_AGENT", err);
	for (char *at = storage, *next; rc == E_OK && at && *at; at = next) {
		next = strchr(at, ';');
		if (next)
			*next++ = '\0';
		char *value = strchr(at, '=');
		if (value)
			*value++ = '\0';
		if (!value || !set_key(ret, at, value))
			rc = error_set(err, E_USAGE, "HEAPGAUGE_AGENT: \"%.40s\" is no option, or its value is not one", at);
	}
	return rc;
}
