/*
 * Reading: what a file does not say about itself (its process, its time) is taken from its
 * name and date; a few mistakes that would give wrong numbers (adding up dumps of one
 * process, above all) are refused here with what to do instead.
 */
#include "cli/load.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/text.h"
#include "cli/live.h"
#include "cli/naming.h"
#include "cli/progress.h"
#include "cli/recorded.h"
#include "format/format.h"
#include "profile/operations.h"

/* --- file names --- */

/* The number that ends right before *end and has a '.' before it; *end moves to that point. */
static bool number_before(const char *text, const char **end, uint64_t *ret)
{
	const char *from = *end;
	while (from > text && from[-1] >= '0' && from[-1] <= '9')
		from--;
	if (from == *end || from == text || from[-1] != '.')
		return false;
	if (!text_parse_u64(from, (size_t)(*end - from), 10, ret))
		return false;
	*end = from - 1;
	return true;
}

bool dump_name_parse(const char *path, struct dump_name *ret)
{
	const char *name = path_base(path);
	size_t length = strlen(name);
	if (length < 6 || strcmp(name + length - 5, ".heap") != 0)
		return false;
	const char *end = name + length - 5;
	const char *kind = end;
	while (kind > name && kind[-1] >= '0' && kind[-1] <= '9')
		kind--;
	if (kind == name || !strchr("fimu", kind[-1]) || kind - 2 < name || kind[-2] != '.')
		return false;
	if ((kind[-1] == 'f') != (kind == end))
		return false;
	struct dump_name found = { .kind = kind[-1] };
	end = kind - 2;
	if (!number_before(name, &end, &found.seq) || !number_before(name, &end, &found.pid))
		return false;
	*ret = found;
	return true;
}

/* What the library's snapshots are called: <name>.<pid>.<start>.<seq>.pb.gz. */
static bool snapshot_name_parse(const char *path, uint64_t *ret_pid)
{
	static const char ending[] = ".pb.gz";
	const char *name = path_base(path);
	size_t length = strlen(name), n = sizeof ending - 1;
	if (length < n || strcmp(name + length - n, ending) != 0)
		return false;
	const char *end = name + length - n;
	uint64_t seq, start, pid;
	if (!number_before(name, &end, &seq) || !number_before(name, &end, &start) || !number_before(name, &end, &pid))
		return false;
	*ret_pid = pid;
	return true;
}

/* 0: the name doesn't tell. */
static uint64_t pid_in_name(const char *path)
{
	struct dump_name dump;
	uint64_t pid = 0;
	if (dump_name_parse(path, &dump))
		return dump.pid;
	return snapshot_name_parse(path, &pid) ? pid : 0;
}

struct symbol_options load_symbol_options(const struct load_settings *s)
{
	struct symbol_options o = naming_symbol_options(&s->names);
	o.depth = (enum symbol_depth)s->symbols;
	o.demangle = (enum demangle_mode)s->demangle;
	o.binary = s->binary;
	o.perf_map = s->perf_map ? s->perf_map : live_perf_map();
	return o;
}

/* --- one file --- */

/* A stream that tells the progress line how far it is. */
static int counted_fill(struct stream *s, void *to, size_t room, size_t *ret_n, struct error *err)
{
	struct stream *inner = s->context;
	int failed = stream_read(inner, to, room, ret_n, err);
	progress_set(inner->offset);
	return failed;
}

static int64_t nanos(struct timespec t)
{
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void fill_source(struct profile *p, const char *path, const struct stat *st)
{
	uint64_t pid = pid_in_name(path);
	for (size_t i = 0; i < p->n_sources; i++) {
		struct source *s = &p->sources[i];
		if (!s->name)
			s->name = profile_cstring(p, path);
		if (pid && !s->pid && p->n_sources == 1)
			s->pid = pid;
		if (!s->time_nanos && st && S_ISREG(st->st_mode))
			s->time_nanos = nanos(st->st_mtim);
	}
}

/*
 * A dump has no build ids. A binary that is younger than the profile may be another one than ran then, and
 * the names wrong though its segments fit.
 */
static void warn_changed_binaries(const struct load_settings *s, const struct profile *p,
                                  struct buf *warnings)
{
	int64_t taken = p->n_sources == 1 ? p->sources[0].time_nanos : 0;
	if (!taken || s->symbols == SYMBOL_NONE)
		return;
	for (size_t i = 0; i < p->n_mappings; i++) {
		const struct mapping *m = &p->mappings[i];
		const char *path = profile_text(p, m->file);
		bool given = (i == 0 && s->binary) || (i > 0 && m->file == p->mappings[i - 1].file);
		struct stat st;
		if (!m->executable || m->build_id || given || *path != '/' || stat(path, &st) < 0 ||
		    nanos(st.st_mtim) <= taken)
			continue;
		buf_printf(warnings, "%s was changed after the profile was taken: if it is another build now, its names "
		           "are wrong (the old one can be given with --binary or --debug-dir)\n", path);
	}
}

/* Profiles that will be put together are matched by build id: a binary may have changed in between. */
static int fill_build_ids(const struct load_settings *s, struct profile *p, struct error *err)
{
	struct symbol_options o = load_symbol_options(s);
	return symbol_build_ids(p, &o, NULL, err);
}

static void fill_live_source(struct profile *p, const struct live *l)
{
	for (size_t i = 0; i < p->n_sources; i++) {
		struct source *s = &p->sources[i];
		if (!s->name)
			s->name = profile_cstring(p, l->name);
		if (l->pid && !s->pid && p->n_sources == 1)
			s->pid = l->pid;
		if (!s->time_nanos)
			s->time_nanos = l->time_nanos;
	}
	live_find_files(l, p);
}

/* Everything behind the opening; what is behind "reading" on the progress line. */
static int read_profile(const struct load_settings *s, struct stream *file, const char *what, struct buf *warnings,
                        struct profile **ret, struct error *err)
{
	char phase[64] = "reading ";
	strncat(phase, what, sizeof phase - strlen(phase) - 1);
	progress_phase(phase, file->size_hint);
	struct stream counted = { .fill = counted_fill, .name = file->name, .context = file, .fd = -1,
		                  .size_hint = file->size_hint };
	struct read_limits limits = read_limits_default;
	limits.partial = s->partial;
	struct read_report report;
	buf_init(&report.warnings, 1 << 20);
	int failed = format_read(&counted, &limits, &report, ret, err);
	if (!failed && report.warnings.len)
		buf_add(warnings, report.warnings.data, report.warnings.len);
	buf_finish(&report.warnings);
	stream_close(&counted);
	return failed;
}

static int load_live(const struct load_settings *s, const char *text, struct buf *warnings, struct profile **ret,
                     struct error *err)
{
	struct live live;
	struct stream answer;
	int failed = live_open(s, text, &live, &answer, err);
	if (failed)
		return failed;
	failed = read_profile(s, &answer, live.name, warnings, ret, err);
	stream_close(&answer);
	if (!failed)
		fill_live_source(*ret, &live);
	live_finish(&live);
	return failed;
}

static int load_file(const struct load_settings *s, const char *path, struct buf *warnings, struct profile **ret,
                     struct error *err)
{
	struct stream file;
	int failed = stream_open(&file, path, err);
	if (failed)
		return failed;
	bool is_stdin = strcmp(path, "-") == 0;
	struct stat st;
	bool have_stat = !is_stdin && fstat(file.fd, &st) == 0;
	if (is_stdin && s->stdin_name)
		file.name = s->stdin_name;
	failed = read_profile(s, &file, is_stdin ? file.name : path_base(path), warnings, ret, err);
	stream_close(&file);
	if (failed)
		return failed;
	fill_source(*ret, path, have_stat ? &st : NULL);
	warn_changed_binaries(s, *ret, warnings);
	return 0;
}

int load_input(const struct load_settings *s, const char *path, bool joined, struct buf *warnings, struct profile **ret,
               struct error *err)
{
	struct profile *p = NULL;
	int failed = recorded_is(path) ? recorded_load(path, &p, err)
	             : live_is(path)   ? load_live(s, path, warnings, &p, err)
	                               : load_file(s, path, warnings, &p, err);
	if (!failed && joined)
		failed = fill_build_ids(s, p, err);
	if (failed) {
		profile_free(p);
		return failed;
	}
	*ret = p;
	return 0;
}

int load_one(const struct load_settings *s, const char *path, struct buf *warnings, struct profile **ret,
             struct error *err)
{
	return load_input(s, path, s->base || s->merge, warnings, ret, err);
}

/* --- several --- */

static const char *source_name(const struct profile *p)
{
	return p->n_sources ? profile_text(p, p->sources[0].name) : "a profile";
}

/* Not merging: why several are refused, in words that fit these. */
static int refuse_several(struct profile *const *inputs, size_t n, struct error *err)
{
	for (size_t i = 1; i < n; i++)
		for (size_t j = 0; j < i; j++)
			if (profile_same_process(inputs[j], inputs[i]))
				return error_set(err, E_USAGE,
				                 "%.120s and %.120s are two moments of one process, and memory in use is "
				                 "not added up over time: compare them with 'heapgauge diff', rank what "
				                 "grows over a series with 'heapgauge leaks', or give one",
				                 source_name(inputs[j]), source_name(inputs[i]));
	return error_set(err, E_USAGE,
	                 "%zu profiles were given: --merge adds up those of different processes, "
	                 "'heapgauge diff' compares two", n);
}

static int combine(const struct load_settings *s, struct profile *const *inputs, size_t n,
                   struct profile **ret, struct error *err)
{
	if (!s->merge)
		return refuse_several(inputs, n, err);
	return profile_merge(inputs, n, ret, err);
}

int load_check_paths(const struct load_settings *s, char *const *paths, size_t n, struct error *err)
{
	size_t dashes = s->base && strcmp(s->base, "-") == 0;
	for (size_t i = 0; i < n; i++)
		dashes += strcmp(paths[i], "-") == 0;
	if (dashes > 1)
		return error_set(err, E_USAGE, "standard input (-) can be read only once");
	return 0;
}

static int load_all(const struct load_settings *s, char *const *paths, size_t n,
                    struct buf *warnings, struct profile **ret, struct error *err)
{
	if (n == 1)
		return load_one(s, paths[0], warnings, ret, err);
	struct profile **inputs = calloc(n, sizeof *inputs);
	if (!inputs)
		return error_nomem(err, "the list of profiles");
	int failed = 0;
	for (size_t i = 0; i < n && !failed; i++)
		failed = load_one(s, paths[i], warnings, &inputs[i], err);
	if (!failed)
		failed = combine(s, inputs, n, ret, err);
	for (size_t i = 0; i < n; i++)
		profile_free(inputs[i]);
	free(inputs);
	return failed;
}

/* Two dumps of one process in the wrong order: the change then has the wrong sign. */
static void warn_order(const char *base, char *const *paths, size_t n, struct buf *warnings)
{
	struct dump_name before, after;
	if (n == 1 && dump_name_parse(base, &before) && dump_name_parse(paths[0], &after) &&
	    before.pid == after.pid && before.seq > after.seq)
		buf_printf(warnings, "the base %s was written after %s: growth shows as shrinking\n",
		           path_base(base), path_base(paths[0]));
}

static int subtract_base(const struct load_settings *s, char *const *paths, size_t n,
                         struct buf *warnings, struct profile **both, struct error *err)
{
	struct profile *base = NULL, *difference = NULL;
	int failed = load_one(s, s->base, warnings, &base, err);
	if (failed)
		return failed;
	progress_phase("comparing", 0);
	failed = profile_diff(base, *both, &difference, err);
	profile_free(base);
	if (failed)
		return failed;
	profile_free(*both);
	*both = difference;
	warn_order(s->base, paths, n, warnings);
	return 0;
}

/* "program!0x12ab" or "program!fn_1290" is no name but what a writer puts where it knows none. Without an address, as in what the
 * page exports, it is all there is. */
static bool is_placeholder(const struct profile *p, const struct location *l)
{
	if (l->n_lines != 1 || l->mapping == PROFILE_NONE || l->address == 0 || p->lines[l->first_line].line)
		return false;
	const struct function *f = &p->functions[p->lines[l->first_line].function];
	const char *name = profile_text(p, f->name);
	const char *binary = path_base(profile_text(p, p->mappings[l->mapping].file));
	size_t n = strlen(binary);
	return strncmp(name, binary, n) == 0 && name[n] == '!' && function_is_unnamed(name);
}

static void forget_placeholders(struct profile *p)
{
	for (size_t i = 0; i < p->n_locations; i++)
		if (is_placeholder(p, &p->locations[i]))
			p->locations[i].n_lines = 0;
}

int load_symbols(const struct load_settings *s, struct profile *p, struct buf *warnings,
                 struct error *err)
{
	struct symbol_options o = load_symbol_options(s);
	progress_phase("finding names", 0);
	forget_placeholders(p);
	int failed = symbol_profile(p, &o, warnings, err);
	naming_finish(warnings);
	return failed;
}

int load_profiles(const struct load_settings *s, char *const *paths, size_t n,
                  struct buf *warnings, struct profile **ret, struct error *err)
{
	struct profile *p = NULL;
	int failed = load_check_paths(s, paths, n, err);
	if (!failed)
		failed = load_all(s, paths, n, warnings, &p, err);
	if (!failed && s->base)
		failed = subtract_base(s, paths, n, warnings, &p, err);
	if (failed) {
		profile_free(p);
		return failed;
	}
	*ret = p;
	return 0;
}

/* --- snapshots --- */

/* What orders a profile among others: jemalloc's number in its name, or when it was taken. */
struct moment {
	struct dump_name name;
	bool named;
	int64_t time_nanos;         /* 0: not known */
};

static struct moment moment_of(const struct profile *p)
{
	struct moment m = { 0 };
	for (size_t i = 0; i < p->n_sources; i++)
		m.time_nanos = p->sources[i].time_nanos > m.time_nanos ? p->sources[i].time_nanos : m.time_nanos;
	m.named = p->n_sources == 1 && dump_name_parse(source_name(p), &m.name);
	return m;
}

const char *load_order(struct profile **inputs, size_t n)
{
	bool numbered = true, timed = true, moved = false;
	for (size_t i = 0; i < n; i++) {
		struct moment first = moment_of(inputs[0]), m = moment_of(inputs[i]);
		numbered = numbered && m.named && m.name.pid == first.name.pid;
		timed = timed && m.time_nanos > 0;
	}
	if (!numbered && !timed)
		return NULL;
	for (size_t i = 1; i < n; i++) {
		struct profile *one = inputs[i];
		struct moment m = moment_of(one);
		size_t at = i;
		for (; at > 0; at--) {
			struct moment older = moment_of(inputs[at - 1]);
			if (numbered ? m.name.seq >= older.name.seq : m.time_nanos >= older.time_nanos)
				break;
			inputs[at] = inputs[at - 1];
		}
		inputs[at] = one;
		moved = moved || at != i;
	}
	return !moved ? NULL : numbered ? "their numbers" : "time";
}

/* What is read is the caller's to free, whatever happens: the base first, *ret_base then is 0. */
static int read_snapshots(const struct load_settings *s, char *const *paths, size_t n, struct buf *warnings,
                          struct profile **inputs, size_t *ret_n, struct error *err)
{
	int failed = 0;
	bool joined = n > 1 || s->base;
	size_t from = *ret_n = 0;
	if (s->base) {
		failed = load_input(s, s->base, true, warnings, &inputs[0], err);
		*ret_n = from = !failed;
	}
	for (size_t i = 0; i < n && !failed; i++) {
		failed = load_input(s, paths[i], joined, warnings, &inputs[*ret_n], err);
		*ret_n += !failed;
	}
	if (failed || n == 1)
		return failed;
	if (!s->merge) {
		load_order(inputs + from, n);
		return 0;
	}
	struct profile *merged;
	failed = profile_merge(inputs + from, n, &merged, err);
	if (failed)
		return failed;
	for (size_t i = from; i < *ret_n; i++)
		profile_free(inputs[i]);
	inputs[from] = merged;
	*ret_n = from + 1;
	return 0;
}

int load_snapshots(const struct load_settings *s, char *const *paths, size_t n, struct buf *warnings, struct profile **ret,
                   uint32_t *ret_base, struct error *err)
{
	size_t read = 0;
	int failed = load_check_paths(s, paths, n, err);
	if (failed)
		return failed;
	struct profile **inputs = calloc(n + 1, sizeof *inputs);
	if (!inputs)
		return error_nomem(err, "the list of profiles");
	failed = read_snapshots(s, paths, n, warnings, inputs, &read, err);
	if (!failed && read == 1) {
		*ret = inputs[0];
		inputs[0] = NULL;
	} else if (!failed) {
		progress_phase("putting together", 0);
		failed = profile_series((const struct profile *const *)inputs, read, ret, err);
	}
	if (!failed)
		*ret_base = s->base ? 0 : PROFILE_NONE;
	for (size_t i = 0; i < read; i++)
		profile_free(inputs[i]);
	free(inputs);
	return failed;
}
