/* store: what a recorder has kept: says what is in it, checks it, makes it small, takes profiles out. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/file.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/progress.h"
#include "cli/recorded.h"
#include "format/format.h"

struct store_settings {
	const char *target, *from, *to, *output;
	bool json;
};

enum action { INFO, CHECK, COMPACT, EXPORT, ACTIONS };
static const char *const actions[ACTIONS] = { "info", "check", "compact", "export" };

static void add_time(struct buf *out, int64_t ms)
{
	struct tm t;
	time_t seconds = (time_t)(ms / 1000);
	char text[40];
	gmtime_r(&seconds, &t);
	strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &t);
	buf_adds(out, text);
}

/* --- info --- */

static void add_info_json(const struct store_info *i, const struct store_series_info *list, size_t n, struct buf *out)
{
	buf_printf(out, "{\"bytes\": %llu, \"free_bytes\": %llu, \"profiles\": %llu, \"open\": %llu, \"stacks\": %llu, \"frames\": %llu, "
	           "\"builds\": %llu, \"peaks\": %llu,\n \"tiers\": {", (unsigned long long)i->bytes, (unsigned long long)i->free_bytes,
	           (unsigned long long)i->n_profiles, (unsigned long long)i->n_open, (unsigned long long)i->n_stacks,
	           (unsigned long long)i->n_frames, (unsigned long long)i->n_builds, (unsigned long long)i->pinned);
	for (int t = 0; t < TIERS; t++)
		buf_printf(out, "%s\"%s\": {\"chunks\": %llu, \"profiles\": %llu, \"samples\": %llu, \"bytes\": %llu, \"first_ms\": %lld, "
		           "\"last_ms\": %lld}", t ? ", " : "", store_tier_name((enum store_tier)t), (unsigned long long)i->tiers[t].chunks,
		           (unsigned long long)i->tiers[t].profiles, (unsigned long long)i->tiers[t].samples,
		           (unsigned long long)i->tiers[t].bytes, (long long)i->tiers[t].first_ms, (long long)i->tiers[t].last_ms);
	buf_adds(out, "},\n \"series\": [");
	for (size_t k = 0; k < n; k++) {
		const struct store_series_info *s = &list[k];
		buf_printf(out, "%s\n  {\"series\": %u, \"profiles\": %llu, \"first_ms\": %lld, \"last_ms\": %lld, \"build_id\": ", k ? "," : "",
		           s->series, (unsigned long long)s->n_profiles, (long long)s->first_ms, (long long)s->last_ms);
		text_add_json(out, s->who.build_id, strlen(s->who.build_id));
		buf_adds(out, ", \"labels\": {");
		for (size_t l = 0; l < s->who.n_labels; l++) {
			buf_adds(out, l ? ", " : "");
			text_add_json(out, s->who.labels[l].name, strlen(s->who.labels[l].name));
			buf_adds(out, ": ");
			text_add_json(out, s->who.labels[l].value, strlen(s->who.labels[l].value));
		}
		buf_adds(out, "}}");
	}
	buf_adds(out, "]}\n");
}

static void add_info_text(const struct store_info *i, const struct store_series_info *list, size_t n, struct buf *out)
{
	text_add_bytes(out, (double)i->bytes);
	buf_adds(out, " on the disk, of which ");
	text_add_bytes(out, (double)i->free_bytes);
	buf_printf(out, " are free\n%llu profiles received, %llu of them not in chunks yet; %llu peak%s kept whole\n"
	           "%llu stacks, %llu frames, %llu binaries\n\n", (unsigned long long)i->n_profiles, (unsigned long long)i->n_open,
	           (unsigned long long)i->pinned, i->pinned == 1 ? "" : "s", (unsigned long long)i->n_stacks, (unsigned long long)i->n_frames,
	           (unsigned long long)i->n_builds);
	buf_adds(out, "tier   chunks    slots      samples      size  B/sample  from\n");
	for (int t = 0; t < TIERS; t++) {
		struct buf size;
		buf_init(&size, 64);
		text_add_bytes(&size, (double)i->tiers[t].bytes);
		buf_printf(out, "%-4s %8llu %8llu %12llu %9s %9.2f  ", store_tier_name((enum store_tier)t), (unsigned long long)i->tiers[t].chunks,
		           (unsigned long long)i->tiers[t].profiles, (unsigned long long)i->tiers[t].samples, size.data ? size.data : "",
		           i->tiers[t].samples ? (double)i->tiers[t].bytes / (double)i->tiers[t].samples : 0);
		if (i->tiers[t].chunks)
			add_time(out, i->tiers[t].first_ms);
		buf_addc(out, '\n');
		buf_finish(&size);
	}
	buf_printf(out, "\n%zu series\n", n);
	for (size_t k = 0; k < n; k++) {
		const struct store_series_info *s = &list[k];
		buf_printf(out, "%6u  ", s->series);
		add_time(out, s->first_ms);
		buf_adds(out, " to ");
		add_time(out, s->last_ms);
		buf_printf(out, " %8llu  {", (unsigned long long)s->n_profiles);
		for (size_t l = 0; l < s->who.n_labels; l++) {
			text_add_terminal(out, s->who.labels[l].name, strlen(s->who.labels[l].name));
			buf_adds(out, "=\"");
			text_add_terminal(out, s->who.labels[l].value, strlen(s->who.labels[l].value));
			buf_adds(out, l + 1 < s->who.n_labels ? "\", " : "\"");
		}
		buf_adds(out, "}\n");
	}
}

static int show_info(struct store *s, bool json, struct error *err)
{
	struct store_info i;
	struct store_series_info *list = NULL;
	size_t n = 0;
	struct buf out;
	int failed = store_info(s, &i, err);
	if (!failed)
		failed = store_find_series(s, NULL, 0, INT64_MIN, INT64_MAX, &list, &n, err);
	if (failed)
		return failed;
	buf_init(&out, (size_t)1 << 30);
	if (json)
		add_info_json(&i, list, n, &out);
	else
		add_info_text(&i, list, n, &out);
	failed = print_text(&out, err);
	buf_finish(&out);
	store_series_free(list, n);
	return failed;
}

/* --- check --- */

static int check(struct store *s, const char *file, struct error *err)
{
	struct buf findings, out;
	uint64_t profiles;
	buf_init(&findings, 1 << 24);
	buf_init(&out, 1 << 25);
	progress_phase("checking", 0);
	int failed = store_check(s, &findings, &profiles, err);
	progress_stop();
	if (!failed) {
		bool sound = findings.len == 0;
		if (!sound)
			buf_add(&out, findings.data, findings.len);
		buf_printf(&out, "%llu profiles can be read\n", (unsigned long long)profiles);
		failed = print_text(&out, err);
		if (!failed && !sound)
			failed = error_set(err, E_FORMAT, "%.200s: damaged, see above; what can be read is taken out by 'heapgauge store export'", file);
	}
	buf_finish(&findings);
	buf_finish(&out);
	return failed;
}

/* --- export --- */

static int write_profile(const struct profile *p, const char *directory, uint32_t series, int64_t time_ms, struct error *err)
{
	struct buf name, bytes;
	struct output o;
	buf_init(&name, 1 << 16);
	buf_init(&bytes, BUF_MAX_DEFAULT);
	buf_printf(&name, "%s/%u.%lld.pb.gz", directory, series, (long long)time_ms);
	int failed = pprof_write(p, &(struct pprof_write_options){ .gzip = true }, &bytes, err);
	if (!failed)
		failed = name.failed ? error_nomem(err, "a name") : output_open(&o, name.data, err);
	if (!failed) {
		failed = output_write(&o, bytes.data, bytes.len, err);
		if (!failed)
			failed = output_commit(&o, err);
		output_abort(&o);
	}
	buf_finish(&name);
	buf_finish(&bytes);
	return failed;
}

static int export_series(struct store *s, const struct recorded *r, uint32_t series, const char *directory, size_t *written, struct buf *damage,
                         struct error *err)
{
	int64_t *times = NULL;
	size_t n = 0;
	int failed = store_moments(s, series, r->from_ms, r->to_ms, 0, &times, &n, err);
	for (size_t i = 0; i < n && !failed; i++) {
		struct profile *p = NULL;
		failed = store_read(s, series, times[i], NULL, &p, err);
		if (failed == E_FORMAT) {
			buf_printf(damage, "%s\n", err->text);
			failed = 0;
			continue;
		}
		if (!failed)
			failed = write_profile(p, directory, series, times[i], err);
		*written += !failed;
		profile_free(p);
	}
	free(times);
	return failed;
}

static int select_series(const struct store_settings *o, const char *file, struct recorded *ret, struct error *err)
{
	struct buf text;
	buf_init(&text, 1 << 16);
	buf_printf(&text, "store:%s?from=%s", file, o->from ? o->from : "0");
	if (o->to)
		buf_printf(&text, "&to=%s", o->to);
	if (o->target)
		buf_printf(&text, "&target=%s", o->target);
	int failed = text.failed ? error_nomem(err, "a name") : recorded_parse(text.data, ret, err);
	buf_finish(&text);
	return failed;
}

static int export_all(struct store *s, const struct store_settings *o, const char *file, struct error *err)
{
	struct recorded r;
	struct store_series_info *list;
	struct buf damage, out;
	size_t n, written = 0;
	if (!o->output)
		return error_set(err, E_USAGE, "export writes many files: say where to with -o DIRECTORY");
	if (mkdir(o->output, 0777) < 0 && errno != EEXIST)
		return error_set(err, E_IO, "%.200s: %s", o->output, strerror(errno));
	int failed = select_series(o, file, &r, err);
	if (failed)
		return failed;
	buf_init(&damage, 1 << 20);
	buf_init(&out, 1 << 10);
	failed = recorded_find(&r, s, &list, &n, err);
	if (!failed) {
		for (size_t i = 0; i < n && !failed; i++)
			failed = export_series(s, &r, list[i].series, o->output, &written, &damage, err);
		store_series_free(list, n);
	}
	print_warnings(&damage);
	if (!failed) {
		buf_printf(&out, "%zu profiles\n", written);
		failed = print_text(&out, err);
	}
	buf_finish(&damage);
	buf_finish(&out);
	recorded_finish(&r);
	return failed;
}

/* --- the command --- */

static int run(const void *settings, char **operands, size_t n, struct error *err)
{
	const struct store_settings *o = settings;
	struct store *s = NULL;
	int action = 0;
	while (action < ACTIONS && strcmp(operands[0], actions[action]) != 0)
		action++;
	if (action == ACTIONS) {
		const char *near = nearest_word(operands[0], actions, ACTIONS);
		return error_set(err, E_USAGE, "'%.60s' is nothing to do with a store: info, check, compact or export%s%s%s", operands[0],
		                 near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
	}
	if (n < 2)
		return error_set(err, E_USAGE, "which store? heapgauge store %s FILE", actions[action]);
	/* To compact is to write, and writing makes a store where there is none. */
	struct stat st;
	if (action == COMPACT && stat(operands[1], &st) < 0)
		return error_set(err, E_IO, "%.200s: %s", operands[1], strerror(errno));
	int failed = store_open(operands[1], &(struct store_options){ .read_only = action != COMPACT }, &s, err);
	if (!failed)
		failed = action == INFO      ? show_info(s, o->json, err)
		         : action == CHECK   ? check(s, operands[1], err)
		         : action == COMPACT ? store_compact(s, err)
		                             : export_all(s, o, operands[1], err);
	store_close(s);
	return failed;
}

static const struct option_spec own_options[] = {
	{ "json", 0, false, OPTION_ON, NULL, "with info: as JSON", offsetof(struct store_settings, json) },
	{ "target", 0, false, OPTION_TEXT, "TARGET", "with export: only this instance, or series number",
	  offsetof(struct store_settings, target) },
	{ "from", 0, false, OPTION_TEXT, "TIME", "with export: not before (2026-11-21T20:00:00Z, seconds since 1970, -2h)",
	  offsetof(struct store_settings, from) },
	{ "to", 0, false, OPTION_TEXT, "TIME", "with export: before", offsetof(struct store_settings, to) },
	{ "output", 'o', false, OPTION_TEXT, "DIRECTORY", "with export: where to", offsetof(struct store_settings, output) },
};

static const struct option_group groups[] = {
	{ "Options", own_options, sizeof own_options / sizeof *own_options, 0 },
	{ NULL, NULL, 0, 0 },
};

static const struct store_settings defaults = { 0 };

const struct command cmd_store = {
	.name = "store",
	.operands = "info|check|compact|export FILE",
	.summary = "look after what a recorder has kept",
	.description =
	    "info says what is in a store and how much of the disk it takes; check reads everything and says\n"
	    "what is damaged; compact gives free space back (not while a recorder writes to it); export\n"
	    "writes the profiles that are still there one by one, as pprof files. All but compact can be done\n"
	    "while a recorder writes.\n",
	.example = "  heapgauge store info /var/lib/heapgauge/heapgauge.db\n"
	           "  heapgauge store export heapgauge.db --target web-1:6060 --from -2h -o profiles\n",
	.groups = groups,
	.defaults = &defaults,
	.settings_bytes = sizeof defaults,
	.min_operands = 1,
	.max_operands = 2,
	.run = run,
};
