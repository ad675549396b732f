/*
 * visit PID WAY N: N visits to a process, over src/attach, and one line about them. WAY is some of: s (status, the
 * default), d (dump: each is read and must be whole), t (active off and on again), b (only at breakpoints), w (only in
 * system calls that wait), p (home as in a program without signals), o (a new look at the process each time).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "attach/attach.h"

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return x < y ? -1 : x > y;
}

/* A dump begins with its format and ends with the maps, whose last line is whole. */
static bool is_whole(int fd)
{
	char head[16], tail[65536];
	off_t n = lseek(fd, 0, SEEK_END);
	off_t from = n > (off_t)sizeof tail ? n - (off_t)sizeof tail : 0;
	ssize_t got = pread(fd, tail, sizeof tail, from);
	return n > 100 && pread(fd, head, 8, 0) == 8 && memcmp(head, "heap_v2/", 8) == 0 && got > 0 &&
	       tail[got - 1] == '\n' && memmem(tail, (size_t)got, "[stack]", 7);
}

static int visit(struct attach *a, const char *way, struct attach_times *times, struct error *err)
{
	struct attach_status status;
	int fd, failed;
	if (strchr(way, 'd')) {
		failed = attach_dump(a, &fd, times, err);
		if (failed)
			return failed;
		if (!is_whole(fd))
			failed = error_set(err, E_FORMAT, "a dump that is not whole");
		close(fd);
		return failed;
	}
	if (strchr(way, 't')) {
		failed = attach_set_active(a, false, times, err);
		return failed ? failed : attach_set_active(a, true, times, err);
	}
	return attach_get_status(a, &status, times, err);
}

int main(int argc, char **argv)
{
	if (argc < 4)
		return 2;
	const char *way = argv[2];
	size_t n = strtoul(argv[3], NULL, 10), failures = 0, at_breakpoint = 0, tried = 0;
	double *stops = calloc(n, sizeof *stops), *dumps = calloc(n, sizeof *dumps);
	struct attach_options o = { .breakpoint_only = strchr(way, 'b') != NULL,
	                            .blocked_only = strchr(way, 'w') != NULL };
	o.no_restorer = strchr(way, 'p') != NULL;
	const char *wait = getenv("VISIT_WAIT_MS"), *limit = getenv("VISIT_LIMIT_MS");
	o.wait_ms = wait ? (unsigned)strtoul(wait, NULL, 10) : 10000;
	o.limit_ms = limit ? (unsigned)strtoul(limit, NULL, 10) : 0;
	struct error err = { 0 };
	struct attach *a = NULL;
	for (size_t i = 0; i < n; i++) {
		struct attach_times times = { 0 };
		int failed = a ? 0 : attach_open(&a, (pid_t)strtol(argv[1], NULL, 10), &o, &err);
		if (!failed)
			failed = visit(a, way, &times, &err);
		if (failed && !failures++)
			printf("# visit %zu: %s\n", i, err.text);
		stops[i] = times.stopped_ms;
		dumps[i] = times.dump_ms;
		at_breakpoint += times.at_breakpoint;
		tried += times.tried;
		if (a && strchr(way, 'o')) {
			attach_close(a);
			a = NULL;
		}
		/* Not in step with anything. */
		struct timespec pause = { 0, (long)(i * 7919 % 3000) * 1000 };
		nanosleep(&pause, NULL);
	}
	attach_close(a);
	qsort(stops, n, sizeof *stops, compare);
	qsort(dumps, n, sizeof *dumps, compare);
	printf("visits=%zu failed=%zu at_breakpoint=%zu tried=%zu stopped: median %.3f p99 %.3f max %.3f ms; in "
	       "prof.dump: median %.3f ms\n",
	       n, failures, at_breakpoint, tried, stops[n / 2], stops[n * 99 / 100], stops[n - 1], dumps[n / 2]);
	free(stops);
	free(dumps);
	return failures != 0;
}
