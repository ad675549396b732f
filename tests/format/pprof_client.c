/*
 * Our side of the interchange tests with google/pprof: reads and writes whole folders of profiles.
 *
 *   copy FROM TO       reads each file, writes it again (every second one gzipped)
 *   generate DIR N S   writes N profiles of our model, from seed S
 *   same A B           do the files of both folders say the same?
 *   cut DIR DIR        does any cut of a file that isn't gzipped lose a sample, a frame or a type unseen?
 *   totals FILE TYPE   per function: its own amount, that with callees, its name; sorted
 *   time FILE          how long reading and writing take
 */
#include "format/pprof_samples.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

static const struct read_limits limits = {
	.input_bytes = (size_t)1 << 30,
	.profile_bytes = (size_t)1 << 32,
	.depth = 65536,
	.gzip_ratio = 200,
	.gzip_ratio_from = (size_t)64 << 20,
};

_Noreturn static void die(const char *text)
{
	fprintf(stderr, "pprof_client: %s\n", text);
	exit(1);
}

static void read_bytes(const char *path, struct buf *raw)
{
	struct error err = { 0 };
	struct stream s;
	struct buf packed;
	buf_init(&packed, limits.input_bytes);
	buf_init(raw, limits.input_bytes);
	if (stream_open(&s, path, &err) || stream_read_all(&s, &packed, &err))
		die(err.text);
	stream_close(&s);
	if (gz_is((const uint8_t *)packed.data, packed.len)) {
		if (gz_inflate(packed.data, packed.len, path, &limits, raw, &err))
			die(err.text);
		buf_finish(&packed);
	} else {
		*raw = packed;
	}
}

static struct profile *read_file(const char *path)
{
	struct error err = { 0 };
	struct profile *p;
	struct buf raw;
	read_bytes(path, &raw);
	if (pprof_read(raw.data, raw.len, path, &limits, &p, &err))
		die(err.text);
	buf_finish(&raw);
	return p;
}

static void write_file(const char *path, const struct profile *p, bool gzip)
{
	struct error err = { 0 };
	struct output o;
	struct buf out;
	buf_init(&out, BUF_MAX_DEFAULT);
	struct pprof_write_options options = { .gzip = gzip };
	if (pprof_write(p, &options, &out, &err) || output_open(&o, path, &err) ||
	    output_write(&o, out.data, out.len, &err) || output_commit(&o, &err))
		die(err.text);
	output_abort(&o);
	buf_finish(&out);
}

static int visible(const struct dirent *e)
{
	return e->d_name[0] != '.';
}

typedef int file_action(const char *from, const char *to, int i);

static int each_file(const char *from, const char *to, file_action *act)
{
	struct dirent **names;
	int n = scandir(from, &names, visible, alphasort), failed = 0;
	if (n <= 0)
		die("no files");
	for (int i = 0; i < n; i++) {
		char a[4096], b[4096];
		snprintf(a, sizeof a, "%s/%s", from, names[i]->d_name);
		snprintf(b, sizeof b, "%s/%s", to, names[i]->d_name);
		failed += act(a, b, i);
		free(names[i]);
	}
	free(names);
	printf("%d profiles, %d differ\n", n, failed);
	return failed > 0;
}

static int copy(const char *from, const char *to, int i)
{
	struct profile *p = read_file(from);
	write_file(to, p, i & 1);
	profile_free(p);
	return 0;
}

static int same(const char *a, const char *b, int i)
{
	struct profile *p = read_file(a), *q = read_file(b);
	struct buf want, got;
	(void)i;
	buf_init(&want, BUF_MAX_DEFAULT);
	buf_init(&got, BUF_MAX_DEFAULT);
	sample_describe(p, &want);
	sample_describe(q, &got);
	bool differ = want.len != got.len || memcmp(want.data, got.data, want.len) != 0;
	if (differ)
		printf("%s and %s differ:\n--- first\n%.4000s\n--- second\n%.4000s\n", a, b, want.data,
		       got.data);
	buf_finish(&want);
	buf_finish(&got);
	profile_free(p);
	profile_free(q);
	return differ;
}

/* google/pprof puts the strings behind the samples, so a cut may only lose what follows them: times and comments. */
static int cut(const char *path, const char *unused, int i)
{
	struct stream s;
	struct error err = { 0 };
	struct buf raw;
	int lost = 0;
	(void)unused, (void)i;
	buf_init(&raw, limits.input_bytes);
	if (stream_open(&s, path, &err) || stream_read_all(&s, &raw, &err))
		die(err.text);
	stream_close(&s);
	if (!gz_is((const uint8_t *)raw.data, raw.len)) {
		struct profile *p = read_file(path);
		for (size_t n = 0; n < raw.len; n++) {
			struct profile *q;
			if (pprof_read(raw.data, n, path, &limits, &q, &err) != E_OK)
				continue;
			if (q->n_samples != p->n_samples || q->n_frames != p->n_frames ||
			    q->n_types != p->n_types || q->n_mappings != p->n_mappings) {
				printf("%s: cut at byte %zu it has %zu of %zu samples\n", path, n,
				       q->n_samples, p->n_samples);
				lost = 1;
			}
			profile_free(q);
		}
		profile_free(p);
	}
	buf_finish(&raw);
	return lost;
}

static int generate(const char *dir, int n, uint64_t seed)
{
	for (int i = 0; i < n; i++) {
		char path[4096];
		snprintf(path, sizeof path, "%s/%05d.pb", dir, i);
		struct profile *p = sample_profile(seed + (uint64_t)i);
		if (!p)
			die("no memory");
		write_file(path, p, i & 1);
		profile_free(p);
	}
	printf("%d profiles generated\n", n);
	return 0;
}

struct total {
	const char *name;
	int64_t flat, cum;
	size_t seen;                    /* sample + 1 that was counted last */
};

static int compare_totals(const void *a, const void *b)
{
	return strcmp(((const struct total *)a)->name, ((const struct total *)b)->name);
}

/* Totals are kept at the function that is the first of its name. */
static void add_sample_totals(const struct profile *p, size_t sample, int column, const uint32_t *first,
                              struct total *totals)
{
	const struct stack *stack = &p->stacks[p->samples[sample].stack];
	int64_t value = p->values[sample * p->n_types + (size_t)column];
	bool leaf = true;
	for (uint32_t i = 0; i < stack->n; i++) {
		const struct location *l = &p->locations[p->frames[stack->first + i]];
		for (uint32_t k = 0; k < l->n_lines; k++) {
			struct total *t = &totals[first[p->functions[p->lines[l->first_line + k].function].name]];
			t->flat += leaf ? value : 0;
			t->cum += t->seen != sample + 1 ? value : 0;
			t->seen = sample + 1;
			leaf = false;
		}
	}
}

static int print_totals(const char *path, const char *type)
{
	struct profile *p = read_file(path);
	int column = profile_type_column(p, type);
	uint32_t *first = calloc(p->strings.n, sizeof *first);
	struct total *totals = calloc(p->n_functions + 1, sizeof *totals);
	if (column < 0 || !first || !totals)
		die("no such type, or no memory");
	for (size_t i = p->n_functions; i-- > 0;)
		first[p->functions[i].name] = (uint32_t)i;
	for (size_t i = 0; i < p->n_functions; i++)
		totals[i].name = profile_text(p, p->functions[i].name);
	for (size_t i = 0; i < p->n_samples; i++)
		add_sample_totals(p, i, column, first, totals);
	qsort(totals, p->n_functions, sizeof *totals, compare_totals);
	for (size_t i = 0; i < p->n_functions; i++)
		if (totals[i].flat || totals[i].cum)
			printf("%" PRId64 " %" PRId64 " %s\n", totals[i].flat, totals[i].cum, totals[i].name);
	free(first);
	free(totals);
	profile_free(p);
	return 0;
}

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static long peak_kib(void)
{
	struct rusage use;
	getrusage(RUSAGE_SELF, &use);
	return use.ru_maxrss;
}

static int time_file(const char *path)
{
	struct error err = { 0 };
	struct profile *p;
	struct buf raw, out;
	double begin = now();
	read_bytes(path, &raw);
	double inflated = now();
	if (pprof_read(raw.data, raw.len, path, &limits, &p, &err))
		die(err.text);
	double read = now();
	printf("%zu raw bytes, %zu samples: inflate %.3f s, read %.3f s, peak %ld KiB\n", raw.len,
	       p->n_samples, inflated - begin, read - inflated, peak_kib());
	buf_finish(&raw);
	for (int gzip = 0; gzip <= 1; gzip++) {
		struct pprof_write_options options = { .gzip = gzip };
		buf_init(&out, BUF_MAX_DEFAULT);
		begin = now();
		if (pprof_write(p, &options, &out, &err))
			die(err.text);
		printf("write%s: %.3f s, %zu bytes\n", gzip ? " gzip" : "", now() - begin, out.len);
		buf_finish(&out);
	}
	profile_free(p);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 4 && !strcmp(argv[1], "copy"))
		return each_file(argv[2], argv[3], copy);
	if (argc == 4 && !strcmp(argv[1], "same"))
		return each_file(argv[2], argv[3], same);
	if (argc == 4 && !strcmp(argv[1], "cut"))
		return each_file(argv[2], argv[3], cut);
	if (argc == 5 && !strcmp(argv[1], "generate"))
		return generate(argv[2], (int)strtoul(argv[3], NULL, 10), strtoull(argv[4], NULL, 10));
	if (argc == 4 && !strcmp(argv[1], "totals"))
		return print_totals(argv[2], argv[3]);
	if (argc == 3 && !strcmp(argv[1], "time"))
		return time_file(argv[2]);
	fprintf(stderr, "usage: pprof_client copy FROM TO | same A B | cut DIR DIR | "
	        "generate DIR N SEED | totals FILE TYPE | time FILE\n");
	return 2;
}
