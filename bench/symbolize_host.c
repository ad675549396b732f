/*
 * A program on jemalloc that takes its own heap profile with libheapgauge, without names and with them: for symbolize_cost.py.
 *
 *     symbolize_host ROUNDS FORMAT OUT
 *
 * Prints, one a line for each round: milliseconds without names and with them; KiB of resident memory before, after the one without
 * and after the one with names, at the peak of each, and of anonymous memory before and after the names; and whether jemalloc's own dump
 * after the names has the same stacks and counts as the one before.
 */
#include <fcntl.h>
#include <jemalloc/jemalloc.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "heapgauge.h"

void units_run(int seed);

/* Not on the heap, which is what is looked at. */
static char status[16384], text[2][16 << 20];

static long kib_of(const char *name)
{
	int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, status, sizeof status - 1);
	if (fd >= 0)
		close(fd);
	status[n < 0 ? 0 : n] = '\0';
	const char *line = strstr(status, name);
	return line ? strtol(line + strlen(name) + 1, NULL, 10) : -1;
}

static void forget_peak(void)
{
	int fd = open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC);
	if (fd < 0 || write(fd, "5", 1) != 1)
		(void)!write(2, "the peak can't be reset\n", 24);
	close(fd);
}

static double now_ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static int dump(void)
{
	char path[64];
	const char *name = path;
	int fd = memfd_create("dump", MFD_CLOEXEC);
	(void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	if (mallctl("prof.dump", NULL, NULL, &name, sizeof name))
		exit(3);
	lseek(fd, 0, SEEK_SET);
	return fd;
}

/* A dump's stacks and counts; MAPPED_LIBRARIES behind them is cut off. */
static size_t stacks_of(int fd, char *to)
{
	ssize_t n = pread(fd, to, sizeof text[0] - 1, 0);
	to[n < 0 ? 0 : n] = '\0';
	char *end = strstr(to, "\nMAPPED_LIBRARIES");
	return end ? (size_t)(end - to) : 0;
}

/* Gives it back at once when there is no file for it. */
static double take(bool named, const char *format, const char *path)
{
	void *bytes;
	size_t n;
	double start = now_ms();
	int rc = named ? hg_dump_named(format, &bytes, &n) : hg_dump_pprof(&bytes, &n);
	double took = now_ms() - start;
	if (rc) {
		fprintf(stderr, "%s\n", hg_strerror(rc));
		exit(1);
	}
	int fd = path ? open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644) : -1;
	if (fd >= 0 && write(fd, bytes, n) != (ssize_t)n)
		exit(1);
	if (fd >= 0)
		close(fd);
	hg_free(bytes, n);
	return took;
}

static void round_trip(const char *format, const char *out)
{
	long before = kib_of("VmRSS:");
	forget_peak();
	double plain = take(false, format, NULL);
	long peak_plain = kib_of("VmHWM:");
	/* Not before: the library's first dump starts a thread, for which the C library takes some hundred bytes. */
	int first = dump();
	long after_plain = kib_of("VmRSS:"), anonymous = kib_of("RssAnon:");
	forget_peak();
	double named = take(true, format, out);
	long after = kib_of("VmRSS:"), peak = kib_of("VmHWM:"), anonymous_after = kib_of("RssAnon:");
	int second = dump();
	size_t n = stacks_of(first, text[0]), m = stacks_of(second, text[1]);
	printf("round %.1f %.1f %ld %ld %ld %ld %ld %ld %ld %d\n", plain, named, before, after_plain, after, peak_plain, peak, anonymous,
	       anonymous_after, n > 0 && n == m && memcmp(text[0], text[1], n) == 0);
	close(first);
	close(second);
}

int main(int argc, char **argv)
{
	if (argc != 4)
		return 2;
	setbuf(stdout, NULL);
	for (int i = 0; i < 20; i++)
		units_run(i);
	/* What the texts and the first print need is not the profile's. */
	memset(text, 1, sizeof text);
	printf("pid %d\n", (int)getpid());
	long rounds = strtol(argv[1], NULL, 10);
	for (long i = 0; i < rounds; i++)
		round_trip(argv[2], argv[3]);
	return 0;
}
