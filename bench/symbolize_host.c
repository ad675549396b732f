/*
 * A program on jemalloc that has its own heap profile named by a child process, as the agent does: for symbolize_cost.py.
 *
 *     symbolize_host HEAPGAUGE ROUNDS FORMAT OUT
 *
 * Prints, one a line: for each round the milliseconds of the dump and of the names, then KiB of resident memory (all, anonymous) before, after
 * and at the peak, and whether jemalloc's next dump is the same but for its time, descriptors and threads.
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

#include "agent/child.h"

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

/* The dump's stacks and counts; MAPPED_LIBRARIES behind them is cut off. */
static size_t stacks_of(int fd, char *to)
{
	ssize_t n = pread(fd, to, sizeof text[0] - 1, 0);
	to[n < 0 ? 0 : n] = '\0';
	char *end = strstr(to, "\nMAPPED_LIBRARIES");
	return end ? (size_t)(end - to) : 0;
}

static int name_dump(const char *program, const char *format, int in, int *ret_fd)
{
	const char *arguments[] = { "symbolize", "--sandbox", "--to", format, "-", NULL };
	struct child_request r = { .program = program, .arguments = arguments, .input = in, .output_max = (uint64_t)1 << 30,
		                   .timeout_ms = 300000 };
	struct error err = { 0 };
	uint64_t n;
	int failed = child_run(&r, ret_fd, &n, &err);
	if (failed)
		fprintf(stderr, "%s\n", err.text);
	return failed;
}

int main(int argc, char **argv)
{
	if (argc != 5)
		return 2;
	setbuf(stdout, NULL);
	for (int i = 0; i < 20; i++)
		units_run(i);
	/* What the text buffers and the first print need is not the dump's. */
	memset(text, 1, sizeof text);
	printf("pid %d\n", (int)getpid());
	int rounds = (int)strtol(argv[2], NULL, 10);
	for (int i = 0; i < rounds; i++) {
		int answer = -1;
		long before = kib_of("VmRSS:"), anonymous = kib_of("RssAnon:");
		forget_peak();
		double start = now_ms();
		int in = dump();
		double dumped = now_ms();
		if (name_dump(argv[1], argv[3], in, &answer))
			return 1;
		double named = now_ms();
		long peak = kib_of("VmHWM:"), after = kib_of("VmRSS:"), anonymous_after = kib_of("RssAnon:");
		int next = dump();
		size_t n = stacks_of(in, text[0]), m = stacks_of(next, text[1]);
		bool same = n > 0 && n == m && memcmp(text[0], text[1], n) == 0;
		printf("round %.1f %.1f %ld %ld %ld %ld %ld %d\n", dumped - start, named - dumped, before, after, peak, anonymous, anonymous_after,
		       same);
		int out = open(argv[4], O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
		for (ssize_t got; (got = read(answer, status, sizeof status)) > 0;)
			if (write(out, status, (size_t)got) != got)
				return 1;
		close(out);
		close(answer);
		close(in);
		close(next);
	}
	return 0;
}
