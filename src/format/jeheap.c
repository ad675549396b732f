/*
 * The text of a heap_v2 dump:
 *
 *   heap_v2/524288                       R
 *     t*: 28: 18816 [0: 0]               all:  in use, accumulated
 *     t0: 28: 18816 [0: 0] main          one line a thread, with its name
 *   @ 0x7f12 0x5581 ...                  a stack, leaf first
 *     t*: 13: 6688 [0: 0]
 *     t0: 13: 6688 [0: 0]
 *
 *   MAPPED_LIBRARIES:
 *   ...                                  /proc/PID/maps
 *
 * One pass, in which nothing is asked what it means: that is for who takes the stacks.
 */
#include "format/jeheap.h"

#include <stdio.h>
#include <stdlib.h>

#define FRAME_BYTES 24
#define RATE_MAX ((uint64_t)1 << 62)
#define SUM_MAX 4.6e18                     /* below 2^62: sums of estimates stay far from overflow */

int dump_failed(const struct dump *d, struct error *err)
{
	if (err)
		*err = d->profile->failure;
	return error_prefix(err, "%s: ", d->name);
}

struct counts dump_line(const struct dump *d, size_t i)
{
	struct counts c = { d->lines[i].objects, d->lines[i].bytes, 0, 0 };
	if (i < d->n_accum) {
		c.accum_objects = d->accum[i].objects;
		c.accum_bytes = d->accum[i].bytes;
	}
	return c;
}

/* --- count lines ---------------------------------------------------------- */

/*
 * An estimate is at most bytes + objects R, and objects (1 + R objects/bytes): 1/(1 - e^-u) <= 1 +
 * 1/u. As long as the sums of these fit, so does everything made of them.
 */
static int check_size(struct dump *d, const struct lines *l, const struct counts *c, struct error *err)
{
	double objects = (double)c->objects, bytes = (double)c->bytes;
	double accum_objects = (double)c->accum_objects, accum_bytes = (double)c->accum_bytes;
	if (objects > 0 && bytes > 0) {
		double mean = bytes / objects;
		if (d->least_mean == 0 || mean < d->least_mean)
			d->least_mean = mean;
		if (mean > d->greatest_mean)
			d->greatest_mean = mean;
	}
	d->most_objects += objects * (1 + (bytes > 0 ? d->rate * objects / bytes : 0));
	d->most_objects += accum_objects * (1 + (accum_bytes > 0 ? d->rate * accum_objects / accum_bytes : 0));
	d->most_bytes += bytes + accum_bytes + (objects + accum_objects) * d->rate;
	d->eights &= ((c->bytes | c->accum_bytes) & 7) == 0;
	if (!(d->most_objects < SUM_MAX && d->most_bytes < SUM_MAX))
		return lines_error(l, err, E_FORMAT,
		    "the counts up to here stand for more than 2^62 objects or bytes at rate %.0f",
		    d->rate);
	return E_OK;
}

/* --- threads -------------------------------------------------------------- */

struct sought_thread {
	const struct thread *threads;
	uint64_t uid;
};

static bool same_thread(const void *context, uint32_t item)
{
	const struct sought_thread *s = context;
	return s->threads[item].uid == s->uid;
}

static uint32_t add_thread(struct dump *d, uint64_t uid, uint64_t hash)
{
	struct thread *t = NULL;
	if (d->n_threads < STAR && index_reserve(&d->thread_index))
		t = ARRAY_PUSH(d->threads, d->n_threads, d->threads_capacity,
		               d->limit_bytes / sizeof(*d->threads));
	if (!t)
		return STAR;
	char label[24];
	int n = snprintf(label, sizeof(label), "t%llu", (unsigned long long)uid);
	*t = (struct thread){ .uid = uid, .label = profile_string(d->profile, label, (size_t)n) };
	uint32_t item = (uint32_t)(d->n_threads - 1);
	index_insert(&d->thread_index, hash, item);
	return item;
}

/* The thread's index, or STAR when out of memory. */
static uint32_t thread_of(struct dump *d, uint64_t uid)
{
	struct sought_thread sought = { d->threads, uid };
	uint64_t hash = hash_u64(uid);
	uint32_t item = index_find(&d->thread_index, hash, same_thread, &sought);
	return item != INDEX_NONE ? item : add_thread(d, uid, hash);
}

/* The label becomes "t3 name". */
static int name_thread(struct dump *d, struct thread *t, const char *name, size_t n, struct error *err)
{
	while (n > 0 && *name == ' ')
		name++, n--;
	if (n == 0)
		return E_OK;
	struct buf b;
	buf_init(&b, n + 32);
	buf_printf(&b, "t%llu ", (unsigned long long)t->uid);
	buf_add(&b, name, n);
	bool failed = b.failed;
	if (!failed)
		t->label = profile_string(d->profile, b.data, b.len);
	buf_finish(&b);
	return failed ? error_nomem(err, "the name of a thread") : E_OK;
}

/* --- lines ---------------------------------------------------------------- */

/* The stack being read is complete: its sums are checked and added. */
static int close_stack(struct dump *d, const struct lines *l, struct error *err)
{
	if (!d->open)
		return E_OK;
	d->open = false;
	if (!d->open_star)
		return lines_error(l, err, E_FORMAT, "expected the \"t*:\" line of the stack before");
	struct counts star = dump_line(d, d->open_line);
	size_t threads = d->n_lines - d->open_line - 1;
	bool same = memcmp(&star, &d->open_threads, sizeof(star)) == 0;
	d->last_alone = threads == 0;
	d->last_bent = threads > 0 && !same;
	d->n_bent += d->last_bent;
	if (threads == 1 && same) {
		d->lines[d->open_line].thread = d->lines[d->open_line + 1].thread | ALONE;
		d->n_lines--;
		if (d->n_accum > d->n_lines)
			d->n_accum = d->n_lines;
	}
	d->n_stacks++;
	int rc = counts_add(l, &d->stacks, &star, err);
	return rc == E_OK && d->sink->counts ? d->sink->counts(d, err) : rc;
}

static int stack_line(struct dump *d, const struct lines *l, const char *at, const char *end,
                      struct error *err)
{
	int rc = close_stack(d, l, err);
	if (rc)
		return rc;
	if (!d->has_header)
		return lines_error(l, err, E_FORMAT,
		    "expected the line with the totals (\"t*: ...\") before the first stack");
	rc = d->sink->frames(d, l, at, end, err);
	if (rc)
		return rc;
	d->section = SECTION_STACKS;
	d->open = true;
	d->open_line = d->n_lines;
	d->open_star = false;
	d->open_threads = (struct counts){ 0 };
	return d->profile->failure.code ? dump_failed(d, err) : E_OK;
}

static int push_line(struct dump *d, const struct counts *c, uint32_t thread, struct error *err)
{
	size_t limit = d->limit_bytes;
	struct count_line *line =
	    ARRAY_PUSH(d->lines, d->n_lines, d->lines_capacity, limit / sizeof(*d->lines));
	if (!line)
		return error_set(err, E_LIMIT,
		    "%s: no memory for more than %zu counts", d->name, d->n_lines);
	*line = (struct count_line){ c->objects, c->bytes, d->open_stack, thread };
	if (c->accum_objects == 0 && c->accum_bytes == 0)
		return E_OK;
	if (!memory_grow((void **)&d->accum, &d->accum_capacity, d->n_lines, sizeof(*d->accum),
	                 limit / sizeof(*d->accum)))
		return error_set(err, E_LIMIT,
		    "%s: no memory for more than %zu counts", d->name, d->n_accum);
	memset(d->accum + d->n_accum, 0, (d->n_lines - d->n_accum) * sizeof(*d->accum));
	d->accum[d->n_lines - 1] = (struct accum){ c->accum_objects, c->accum_bytes };
	d->n_accum = d->n_lines;
	return E_OK;
}

/* A count line of a stack. thread STAR: its t* line. */
static int stack_counts(struct dump *d, const struct lines *l, const struct counts *c,
                        uint32_t thread, struct error *err)
{
	if (d->open_star == (thread == STAR))
		return lines_error(l, err, E_FORMAT, d->open_star ? "second \"t*:\" line of one stack"
		                                                  : "expected the stack's \"t*:\" line first");
	int rc = check_size(d, l, c, err);
	if (rc == E_OK && thread != STAR)
		rc = counts_add(l, &d->open_threads, c, err);
	if (rc)
		return rc;
	d->open_star = true;
	return push_line(d, c, thread, err);
}

static int header_counts(struct dump *d, const struct lines *l, const struct counts *c,
                         uint32_t thread, const char *name, size_t name_n, struct error *err)
{
	if (d->has_header == (thread == STAR))
		return lines_error(l, err, E_FORMAT, d->has_header ? "second line with totals (\"t*:\")"
		                                                   : "expected the line with the totals (\"t*: ...\") first");
	if (thread == STAR) {
		d->has_header = true;
		d->header = *c;
		return E_OK;
	}
	struct thread *t = &d->threads[thread];
	t->listed = true;
	int rc = name_thread(d, t, name, name_n, err);
	if (rc == E_OK)
		rc = counts_add(l, &t->header, c, err);
	return rc ? rc : counts_add(l, &d->header_threads, c, err);
}

/* "t*: ..." or "t3: ...", at behind the t. */
static int counts_line(struct dump *d, const struct lines *l, const char *at, const char *end,
                       struct error *err)
{
	const char *first = at;
	uint64_t uid = 0;
	bool star = at < end && *at == '*';
	bool known = star || lines_number(&at, end, &uid);
	at += star;
	if (!known || at == end || *at != ':') {
		char quoted[LINES_QUOTE];
		return lines_error(l, err, E_FORMAT,
		    "expected a thread, \"t*:\" or \"t3:\", in place of \"t%s\"",
		    lines_quote(quoted, first, (size_t)(end - first)));
	}
	struct counts c;
	const char *rest;
	int rc = counts_parse(l, at + 1, end, &c, &rest, err);
	if (rc)
		return rc;
	uint32_t thread = star ? STAR : thread_of(d, uid);
	if (!star && thread == STAR)
		return error_set(err, E_LIMIT,
		    "%s: no memory for more than %zu threads", d->name, d->n_threads);
	if (d->section == SECTION_HEADER)
		return header_counts(d, l, &c, thread, rest, (size_t)(end - rest), err);
	for (; rest < end; rest++)
		if (*rest != ' ' && *rest != '\t')
			return lines_error(l, err, E_FORMAT,
			    "expected nothing behind the counts of a stack");
	return stack_counts(d, l, &c, thread, err);
}

static int maps_line(struct dump *d, const struct lines *l, const char *line, size_t n, struct error *err)
{
	if (lines_starts(line, n, "heap_v2/", 8))
		return lines_error(l, err, E_FORMAT,
		    "a second dump begins here; give each dump as a file of its own");
	int rc = maps_add_line(d->maps, d->profile, line, n, err);
	if (rc < 0)
		return error_prefix(err, "%s: ", d->name);
	d->skipped += rc == 0 && n > 0;
	return E_OK;
}

static int read_line(struct dump *d, const struct lines *l, const char *line, size_t n, struct error *err)
{
	if (d->section == SECTION_MAPS)
		return maps_line(d, l, line, n, err);
	const char *at = line, *end = line + n;
	while (at < end && (*at == ' ' || *at == '\t'))
		at++;
	if (at < end && *at == '@' && !d->gap)
		return stack_line(d, l, at + 1, end, err);
	if (at < end && *at == 't' && !d->gap)
		return counts_line(d, l, at + 1, end, err);
	int rc = close_stack(d, l, err);
	if (rc)
		return rc;
	if (at == end) {
		d->gap = d->has_header;
		return E_OK;
	}
	if (maps_begin(line, n)) {
		d->gap = true;
		d->section = SECTION_MAPS;
		return E_OK;
	}
	char quoted[LINES_QUOTE];
	return lines_error(l, err, E_FORMAT, "expected %s in place of \"%s\"",
	                   d->gap ? "MAPPED_LIBRARIES:" : "a stack (@ ...), its counts (t*: ...), or MAPPED_LIBRARIES:",
	                   lines_quote(quoted, line, n));
}

static int first_line(struct dump *d, struct lines *l, struct error *err)
{
	const char *line, *at;
	size_t n;
	uint64_t rate = 0;
	int rc = lines_next(l, &line, &n, err);
	if (rc < 0)
		return rc;
	if (rc == 0)
		return error_set(err, E_TRUNCATED, "%s: empty", d->name);
	if (!l->whole)
		return lines_error(l, err, E_TRUNCATED, "the dump ends in the middle of this line");
	at = line + (n < 8 ? n : 8);
	bool known = lines_starts(line, n, "heap_v2/", 8) && lines_number(&at, line + n, &rate) &&
	             at == line + n;
	if (!known || rate == 0 || rate > RATE_MAX)
		return lines_error(l, err, E_FORMAT,
		    "expected heap_v2/ and the sampling rate in bytes");
	d->rate = (double)rate;
	return E_OK;
}

static int read_lines(struct dump *d, struct lines *l, struct error *err)
{
	const char *line;
	size_t n;
	int rc;
	while ((rc = lines_next(l, &line, &n, err)) == 1) {
		if (!l->whole && !(d->section == SECTION_MAPS && maps_ended(d->maps)))
			return lines_error(l, err, E_TRUNCATED,
			    "the dump ends in the middle of this line: its writer's disk was full, "
			    "or it was copied only in part");
		rc = read_line(d, l, line, n, err);
		if (rc)
			return rc;
	}
	if (rc == E_LIMIT && l->end - l->at >= l->line_max && l->data[l->at] == '@')
		return lines_error(l, err, E_LIMIT, "stack of more than %u frames", d->frames.depth);
	if (rc < 0)
		return rc;
	/* A stack without any count is caught here. */
	l->number++;
	if (d->open && !d->open_star)
		return lines_error(l, err, E_TRUNCATED,
		    "the dump ends before the counts of its last stack");
	return close_stack(d, l, err);
}

/* --- what is damaged ------------------------------------------------------ */

static bool is_damage(int code)
{
	return code == E_FORMAT || code == E_TRUNCATED || code == E_LIMIT;
}

/*
 * Keeps what was read before the damage: of the stack it lies in only the t* line, if that was
 * there. Then the mappings, if they can be found.
 */
static int salvage(struct dump *d, struct lines *l, struct error *err)
{
	const char *line;
	size_t n;
	int rc;
	d->cut = true;
	if (d->open && d->open_star) {
		d->n_lines = d->open_line + 1;
		if (d->n_accum > d->n_lines)
			d->n_accum = d->n_lines;
		d->open_threads = (struct counts){ 0 };
		rc = close_stack(d, l, err);
		if (rc)
			return rc;
	} else if (d->open) {
		d->n_lines = d->open_line;
	}
	d->open = false;
	while ((rc = lines_next(l, &line, &n, err)) == 1 && l->whole) {
		if (d->section == SECTION_MAPS) {
			rc = maps_add_line(d->maps, d->profile, line, n, err);
			if (rc < 0)
				return rc;
		} else if (maps_begin(line, n)) {
			d->section = SECTION_MAPS;
		}
	}
	return rc < 0 && !is_damage(rc) ? rc : E_OK;
}

static void warn_damage(const struct dump *d, struct read_report *report, const struct error *damage)
{
	if (report)
		buf_printf(&report->warnings,
		    "%s; kept are the %zu stacks before\n", damage->text, d->n_stacks);
}

int dump_read(struct dump *d, struct lines *l, const struct read_limits *limits, struct read_report *report,
              struct error *err)
{
	struct error damage = { 0 };
	int rc = first_line(d, l, err);
	if (rc)
		return rc;
	rc = read_lines(d, l, &damage);
	if (rc == E_OK) {
		d->frames.n = d->n_addresses;
		rc = jeheap_check_end(d, report, &damage);
	}
	if (rc && limits->partial && is_damage(rc) && d->has_header) {
		rc = salvage(d, l, err);
		if (rc == E_OK)
			d->frames.n = d->n_addresses;
		warn_damage(d, report, &damage);
		return rc;
	}
	if (rc && err)
		*err = damage;
	return rc;
}

/* --- the whole ------------------------------------------------------------ */

int dump_init(struct dump *d, struct lines *l, struct stream *in, const struct read_limits *limits, struct error *err)
{
	size_t line_max = (size_t)limits->depth * FRAME_BYTES + 64;
	d->name = in->name;
	d->limit_bytes = limits->profile_bytes;
	d->eights = true;
	int rc = lines_init(l, in, line_max < DUMP_LINE_MAX ? DUMP_LINE_MAX : line_max, limits->input_bytes, err);
	if (rc == E_OK)
		rc = frames_init(&d->frames, limits, err);
	if (rc)
		return rc;
	d->profile = profile_new(limits->profile_bytes);
	d->maps = maps_new();
	return d->profile && d->maps ? E_OK : error_nomem(err, "the profile");
}

void dump_finish(struct dump *d)
{
	frames_finish(&d->frames);
	maps_free(d->maps);
	profile_free(d->profile);
	free(d->threads);
	free(d->lines);
	free(d->accum);
	index_finish(&d->thread_index);
}
