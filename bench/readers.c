/*
 * The readers and the model without a command around them.
 *
 *   readers read FILE TIMES      reads FILE from memory TIMES times: best seconds, bytes, samples
 *   readers stream FILE TIMES    converts the dump FILE to pprof while reading it: best seconds, bytes read, bytes written
 *   readers model STACKS         builds a profile of that many stacks: seconds, peak bytes of the process
 *
 * Prints one line of numbers for bench.py.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "base/file.h"
#include "format/format.h"
#include "profile/profile.h"

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int fail(const struct error *err)
{
	fprintf(stderr, "readers: %s\n", err->text);
	return 1;
}

static int read_once(const struct buf *bytes, const char *name, double *best, size_t *ret_samples, struct error *err)
{
	struct stream s;
	struct profile *p = NULL;
	double start = now();
	stream_open_memory(&s, name, bytes->data, bytes->len);
	int failed = format_read(&s, &read_limits_default, NULL, &p, err);
	stream_close(&s);
	if (failed)
		return failed;
	double took = now() - start;
	if (took < *best)
		*best = took;
	*ret_samples = p->n_samples;
	profile_free(p);
	return 0;
}

static int read_file(const char *path, unsigned times)
{
	struct stream s;
	struct buf bytes;
	struct error err = { 0 };
	double best = 1e9;
	size_t samples = 0;

	buf_init(&bytes, BUF_MAX_DEFAULT);
	if (stream_open(&s, path, &err))
		return fail(&err);
	int failed = stream_read_all(&s, &bytes, &err);
	stream_close(&s);
	for (; !failed && times; times--)
		failed = read_once(&bytes, path, &best, &samples, &err);
	if (failed)
		return fail(&err);
	printf("%.6f %zu %zu\n", best, bytes.len, samples);
	buf_finish(&bytes);
	return 0;
}

static int count(void *context, const void *bytes, size_t n, struct error *err)
{
	size_t *sum = context;
	(void)bytes, (void)err;
	*sum += n;
	return E_OK;
}

static int convert_file(const char *path, unsigned times)
{
	struct jeheap_stream_options o = { .counts = JEHEAP_COUNTS_UNBIASED };
	struct error err = { 0 };
	double best = 1e9;
	size_t bytes = 0, written = 0;
	int failed = 0;

	for (; !failed && times; times--) {
		struct stream s;
		double start = now();
		if (stream_open(&s, path, &err))
			return fail(&err);
		written = 0;
		failed = jeheap_to_pprof(&s, &read_limits_default, &o, count, &written, &err);
		bytes = s.offset;
		stream_close(&s);
		if (now() - start < best)
			best = now() - start;
	}
	if (failed)
		return fail(&err);
	printf("%.6f %zu %zu\n", best, bytes, written);
	return 0;
}

enum { LOCATIONS = 50000, DEPTH_LEAST = 5, DEPTH_MOST = 64 };

static int build(size_t stacks)
{
	struct error err = { 0 };
	uint32_t frames[DEPTH_MOST];
	uint64_t random = 1;
	double start = now();
	struct profile *p = profile_new(0);
	if (!p)
		return 1;
	profile_add_heap_types(p, false);
	struct source source = { .rate = 524288, .header_bytes = -1 };
	uint32_t from = profile_add_source(p, &source);
	for (size_t i = 0; i < stacks; i++) {
		size_t depth = DEPTH_LEAST + hash_u64(random++) % (DEPTH_MOST - DEPTH_LEAST + 1);
		for (size_t k = 0; k < depth; k++)
			frames[k] = profile_intern_location(p, PROFILE_NONE, 4096 + hash_u64(random++) % LOCATIONS * 16);
		int64_t values[] = { 10, 5242880 };
		profile_add_sample(p, profile_intern_stack(p, frames, depth), 0, from, values);
	}
	if (profile_finish(p, &err))
		return fail(&err);
	struct rusage usage;
	getrusage(RUSAGE_SELF, &usage);
	printf("%.6f %ld %zu\n", now() - start, usage.ru_maxrss * 1024, p->n_stacks);
	profile_free(p);
	return 0;
}

int main(int argc, char **argv)
{
	unsigned times;
	size_t stacks;

	if (argc == 4 && strcmp(argv[1], "read") == 0 && sscanf(argv[3], "%u", &times) == 1)
		return read_file(argv[2], times);
	if (argc == 4 && strcmp(argv[1], "stream") == 0 && sscanf(argv[3], "%u", &times) == 1)
		return convert_file(argv[2], times);
	if (argc == 3 && strcmp(argv[1], "model") == 0 && sscanf(argv[2], "%zu", &stacks) == 1)
		return build(stacks);
	fprintf(stderr, "usage: readers read FILE TIMES | stream FILE TIMES | model STACKS\n");
	return 2;
}
