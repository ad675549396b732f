/*
 * The older text, one stack a line:
 *
 *   heap profile: 1246: 8800744 [1246: 8800744] @ heap_v2/524288
 *     12: 3072 [12: 3072] @ 0x7f12 0x5581 ...
 *
 *   MAPPED_LIBRARIES:
 *
 * Written by jemalloc 3 (heap_v2), gperftools' tcmalloc (heap_v2), its heap profiler (heapprofile:
 * every allocation, nothing sampled), its growth profile, and Go's text form (heap/2R). Rules:
 *
 *   heapprofile, or a name without "heap"   exact
 *   ..._v2/R                                Poisson sampling at R
 *   heap.../R                               at R/2, the number having been printed double. google-pprof scales these
 *                                           by R/2 over the mean size, as suits tcmalloc before 2008; go tool pprof
 *                                           as Poisson, which is what today's writer (Go) does, and so do we
 *   no rate                                 128 KiB, tcmalloc's default then
 *   no name at all                          sampled if in use and accumulated are equal, as google-pprof guesses
 */
#include "format/counts.h"
#include "format/format.h"
#include "format/frames.h"
#include "profile/estimate.h"

#include <math.h>
#include <stdlib.h>

#define DEFAULT_RATE (128.0 * 1024)
#define LINE_MAX_BYTES ((size_t)1 << 20)
#define FRAME_BYTES 24
#define RATE_MAX ((uint64_t)1 << 62)
#define SUM_MAX 4.6e18

struct gperf_line {
	struct counts counts;
	uint32_t stack;
};

struct gperf {
	const char *name;
	size_t limit_bytes;
	double rate;                    /* 1: exact */
	struct profile *profile;
	struct frames frames;
	struct maps *maps;
	struct gperf_line *lines;       size_t n_lines, lines_capacity;
	struct counts header, sum;
	double most;                    /* more than the estimates can add up to */
	bool accum;                     /* some accumulated counts say something */
	bool in_maps;
	bool guessed_rate;
	bool cut;
};

/* --- the header ----------------------------------------------------------- */

static bool contains(const char *text, size_t n, const char *part)
{
	return memmem(text, n, part, strlen(part)) != NULL;
}

/* "@ heap_v2/524288": what kind of profile this is. */
static int kind_of(struct gperf *g, const struct lines *l, const char *at, const char *end, struct error *err)
{
	while (at < end && (*at == ' ' || *at == '@'))
		at++;
	while (end > at && end[-1] == ' ')
		end--;
	const char *slash = memchr(at, '/', (size_t)(end - at));
	size_t n = (size_t)((slash ? slash : end) - at);
	uint64_t rate = 0;
	if (slash) {
		const char *digits = slash + 1;
		if (digits < end && (!lines_number(&digits, end, &rate) || digits != end || rate > RATE_MAX))
			return lines_error(l, err, E_FORMAT,
			    "expected the sampling rate behind the last /");
	}
	g->rate = 1;
	if (n == 0 && !counts_equal(&g->header, &(struct counts){ g->header.objects, g->header.bytes,
	                                                          g->header.objects, g->header.bytes }))
		return E_OK;
	if (n > 0 && ((n == 11 && !memcmp(at, "heapprofile", n)) || !contains(at, n, "heap")))
		return E_OK;
	g->guessed_rate = rate == 0;
	g->rate = rate == 0 ? DEFAULT_RATE : contains(at, n, "_v2") ? (double)rate : (double)rate / 2;
	return E_OK;
}

static int header_line(struct gperf *g, struct lines *l, struct error *err)
{
	static const char begin[] = "heap profile:";
	const size_t begin_n = sizeof(begin) - 1;
	const char *line, *rest;
	size_t n;
	int rc = lines_next(l, &line, &n, err);
	if (rc < 0)
		return rc;
	if (rc == 0)
		return error_set(err, E_TRUNCATED, "%s: empty", g->name);
	if (!l->whole)
		return lines_error(l, err, E_TRUNCATED, "the profile ends in the middle of this line");
	if (!lines_starts(line, n, begin, begin_n))
		return lines_error(l, err, E_FORMAT,
		    "expected \"heap profile: OBJECTS: BYTES [OBJECTS: BYTES] @ ...\"");
	rc = counts_parse(l, line + begin_n, line + n, &g->header, &rest, err);
	return rc ? rc : kind_of(g, l, rest, line + n, err);
}

/* --- lines ---------------------------------------------------------------- */

/* Keeps the sums of what counts can stand for within 64 bits: 1/(1 - e^-u) <= 1 + 1/u. */
static int check_size(struct gperf *g, const struct lines *l, const struct counts *c, struct error *err)
{
	double n = (double)c->objects, b = (double)c->bytes;
	double an = (double)c->accum_objects, ab = (double)c->accum_bytes;
	g->most += n + b + an + ab + (n + an) * g->rate + (b > 0 ? g->rate * n * n / b : 0) +
	           (ab > 0 ? g->rate * an * an / ab : 0);
	if (!(g->most < SUM_MAX))
		return lines_error(l, err, E_FORMAT,
		    "the counts up to here stand for more than 2^62 objects or bytes at rate %.0f",
		    g->rate);
	return counts_add(l, &g->sum, c, err);
}

static int stack_line(struct gperf *g, const struct lines *l, const char *line, size_t n, struct error *err)
{
	struct gperf_line item;
	const char *at, *end = line + n;
	int rc = counts_parse(l, line, end, &item.counts, &at, err);
	if (rc)
		return rc;
	while (at < end && *at == ' ')
		at++;
	if (at == end || *at != '@')
		return lines_error(l, err, E_FORMAT, "expected \"@ 0x...\" behind the counts");
	rc = check_size(g, l, &item.counts, err);
	if (rc == E_OK)
		rc = frames_read(&g->frames, l, at + 1, end, err);
	if (rc)
		return rc;
	const struct counts *c = &item.counts;
	g->accum |= (c->accum_objects || c->accum_bytes) &&
	            (g->rate <= 1 || c->accum_objects != c->objects || c->accum_bytes != c->bytes);
	item.stack = profile_intern_stack(g->profile, g->frames.stack, g->frames.stack_n);
	struct gperf_line *slot =
	    ARRAY_PUSH(g->lines, g->n_lines, g->lines_capacity, g->limit_bytes / sizeof(*g->lines));
	if (!slot || g->profile->failure.code)
		return error_set(err, E_LIMIT,
		    "%s: no memory for more than %zu stacks", g->name, g->n_lines);
	*slot = item;
	return E_OK;
}

static int read_line(struct gperf *g, const struct lines *l, const char *line, size_t n, struct error *err)
{
	if (g->in_maps) {
		if (lines_starts(line, n, "heap profile:", 13))
			return lines_error(l, err, E_FORMAT,
			    "a second profile begins here; give each as a file of its own");
		int rc = maps_add_line(g->maps, g->profile, line, n, err);
		return rc < 0 ? error_prefix(err, "%s: ", g->name) : E_OK;
	}
	if (maps_begin(line, n)) {
		g->in_maps = true;
		return E_OK;
	}
	while (n > 0 && (*line == ' ' || *line == '\t'))
		line++, n--;
	/* Go's text form explains its frames in comments. */
	return n == 0 || *line == '#' ? E_OK : stack_line(g, l, line, n, err);
}

static int check_end(const struct gperf *g, struct error *err)
{
	if (g->in_maps)
		return maps_check_end(g->maps, g->name, g->frames.addresses, g->frames.n, err);
	if (counts_equal(&g->sum, &g->header))
		return E_OK;
	return error_set(err, E_TRUNCATED,
	    "%s: the profile's end is missing: its stacks hold %llu of the %llu blocks that its "
	    "header counts",
	    g->name, (unsigned long long)g->sum.objects, (unsigned long long)g->header.objects);
}

static int read_lines(struct gperf *g, struct lines *l, struct error *err)
{
	const char *line;
	size_t n;
	int rc;
	while ((rc = lines_next(l, &line, &n, err)) == 1) {
		if (!l->whole && !(g->in_maps && maps_ended(g->maps)))
			return lines_error(l, err, E_TRUNCATED,
			    "the profile ends in the middle of this line");
		rc = read_line(g, l, line, n, err);
		if (rc)
			return rc;
	}
	return rc < 0 ? rc : check_end(g, err);
}

static bool is_damage(int code)
{
	return code == E_FORMAT || code == E_TRUNCATED || code == E_LIMIT;
}

/* Looks for the mappings behind the damage. */
static int salvage(struct gperf *g, struct lines *l, struct error *err)
{
	const char *line;
	size_t n;
	int rc;
	g->cut = true;
	while ((rc = lines_next(l, &line, &n, err)) == 1 && l->whole) {
		if (!g->in_maps)
			g->in_maps = maps_begin(line, n);
		else if ((rc = maps_add_line(g->maps, g->profile, line, n, err)) < 0)
			return rc;
	}
	return rc < 0 && !is_damage(rc) ? rc : E_OK;
}

static int read_all(struct gperf *g, struct lines *l, const struct read_limits *limits,
                    struct read_report *report, struct error *err)
{
	struct error damage = { 0 };
	int rc = header_line(g, l, err);
	if (rc)
		return rc;
	rc = read_lines(g, l, &damage);
	if (rc && limits->partial && is_damage(rc)) {
		if (report)
			buf_printf(&report->warnings,
			    "%s; kept are %zu stacks with %llu of the %llu blocks that the "
			    "header counts\n",
			    damage.text, g->n_lines, (unsigned long long)g->sum.objects,
			    (unsigned long long)g->header.objects);
		return salvage(g, l, err);
	}
	if (rc && err)
		*err = damage;
	return rc;
}

/* --- samples -------------------------------------------------------------- */

/*
 * tcmalloc writes one line for each block it sampled. Lines of one stack and block size become one
 * sample, added up after unsampling and before rounding: rounding each would lose up to half a
 * block a line.
 */
struct scaled_line {
	uint64_t block_size;
	uint32_t stack;
	double values[4];           /* accumulated objects, bytes, objects and bytes in use */
};

static struct scaled_line scale(const struct gperf *g, const struct gperf_line *line)
{
	const struct counts *c = &line->counts;
	double n = (double)c->objects, b = (double)c->bytes;
	double an = (double)c->accum_objects, ab = (double)c->accum_bytes;
	double k = estimate_scale(n, b, g->rate), accum_k = estimate_scale(an, ab, g->rate);
	struct scaled_line s = { .stack = line->stack, .values = { an * accum_k, ab * accum_k, n * k, b * k } };
	uint64_t size = estimate_block_size(c->objects, c->bytes, g->rate, false, NULL, NULL);
	uint64_t gone_size = estimate_block_size(c->accum_objects, c->accum_bytes, g->rate, false, NULL, NULL);
	if (c->objects == 0)
		s.block_size = gone_size;
	else if (!g->accum || c->accum_objects == 0 || size == gone_size)
		s.block_size = size;
	return s;
}

static int by_stack(const void *x, const void *y)
{
	const struct scaled_line *a = x, *b = y;
	if (a->stack != b->stack)
		return a->stack < b->stack ? -1 : 1;
	return a->block_size < b->block_size ? -1 : a->block_size > b->block_size;
}

static void add_sample(struct gperf *g, uint32_t source, const struct scaled_line *s)
{
	int64_t values[4], any = 0;
	size_t first = g->accum ? 0 : 2;
	for (size_t i = first; i < 4; i++)
		any |= values[i] = llround(s->values[i]);
	if (any)
		profile_add_sample(g->profile, s->stack, profile_intern_heap_labels(g->profile, 0, s->block_size),
		                   source, values + first);
}

static int add_samples(struct gperf *g, uint32_t source, struct error *err)
{
	if (g->n_lines == 0)
		return E_OK;
	struct scaled_line *scaled = malloc(memory_product(g->n_lines, sizeof(*scaled)));
	if (!scaled)
		return error_nomem(err, "the samples");
	for (size_t i = 0; i < g->n_lines; i++)
		scaled[i] = scale(g, &g->lines[i]);
	qsort(scaled, g->n_lines, sizeof(*scaled), by_stack);
	struct scaled_line sum = scaled[0];
	for (size_t i = 1; i < g->n_lines; i++) {
		if (by_stack(&sum, &scaled[i]) == 0) {
			for (size_t v = 0; v < 4; v++)
				sum.values[v] += scaled[i].values[v];
		} else {
			add_sample(g, source, &sum);
			sum = scaled[i];
		}
	}
	add_sample(g, source, &sum);
	free(scaled);
	return E_OK;
}

static uint32_t add_source(struct gperf *g)
{
	struct profile *p = g->profile;
	bool sampled = g->rate > 1;
	struct source source = {
		.name = profile_cstring(p, g->name),
		.rate = g->rate,
		.process = profile_process_identity(p),
		.raw_counts = sampled,
		.header_objects = sampled ? -1 : (double)g->header.objects,
		.header_bytes = sampled ? -1 : (double)g->header.bytes,
	};
	p->period_type = profile_cstring(p, "space");
	p->period_unit = profile_cstring(p, "bytes");
	p->period = (int64_t)g->rate;
	return profile_add_source(p, &source);
}

static void warn(const struct gperf *g, struct read_report *report)
{
	if (!report)
		return;
	struct buf *w = &report->warnings;
	if (g->guessed_rate)
		buf_printf(w,
		    "%s: names no sampling rate: taken as 128 KiB, which was tcmalloc's default\n",
		    g->name);
	if (g->cut)
		return;
	if (!g->in_maps && g->profile->n_frames > 0)
		buf_printf(w,
		    "%s: no MAPPED_LIBRARIES: which binary a frame belongs to is unknown\n", g->name);
	/* gperftools drops the smallest stacks when its 1 MiB buffer is full. */
	if (g->sum.bytes < g->header.bytes)
		buf_printf(w,
		    "%s: the stacks hold %llu of the %llu bytes that the header counts: its "
		    "writer left the rest out\n",
		    g->name, (unsigned long long)g->sum.bytes, (unsigned long long)g->header.bytes);
}

static int build(struct gperf *g, struct read_report *report, struct error *err)
{
	struct profile *p = g->profile;
	int rc = maps_finish(g->maps, p, g->frames.addresses, g->frames.n, err);
	if (rc == E_OK)
		rc = frames_locate(&g->frames, g->maps, p, err);
	if (rc == E_OK) {
		profile_add_heap_types(p, g->accum);
		rc = add_samples(g, add_source(g), err);
	}
	if (rc == E_OK) {
		warn(g, report);
		rc = profile_finish(p, err);
	}
	return rc ? error_prefix(err, "%s: ", g->name) : E_OK;
}

int gperf_read(struct stream *in, const struct read_limits *limits, struct read_report *report,
               struct profile **ret, struct error *err)
{
	struct gperf g = { .name = in->name, .limit_bytes = limits->profile_bytes };
	struct lines l = { 0 };
	size_t line_max = (size_t)limits->depth * FRAME_BYTES + 256;
	int rc = lines_init(&l, in, line_max < LINE_MAX_BYTES ? LINE_MAX_BYTES : line_max,
	                    limits->input_bytes, err);
	if (rc == E_OK)
		rc = frames_init(&g.frames, limits, err);
	if (rc == E_OK) {
		g.profile = profile_new(limits->profile_bytes);
		g.maps = maps_new();
		if (!g.profile || !g.maps)
			rc = error_nomem(err, "the profile");
	}
	if (rc == E_OK)
		rc = read_all(&g, &l, limits, report, err);
	lines_finish(&l);
	if (rc == E_OK)
		rc = build(&g, report, err);
	frames_finish(&g.frames);
	maps_free(g.maps);
	free(g.lines);
	if (rc) {
		profile_free(g.profile);
		return rc;
	}
	*ret = g.profile;
	return E_OK;
}
