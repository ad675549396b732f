/*
 * What a dump costs the program it is taken of: loaded by bench/program between its two dumps. jemalloc's own dump and the library's
 * are taken in turns; each round is one line of text:
 *
 *   jemalloc MS CPU_MS            prof.dump into a memfd
 *   heapgauge MS CPU_MS BYTES EXTRA     hg_dump_pprof_fd into a memfd: bytes of profile, and memory at its peak beside the text and before
 */
#include <fcntl.h>
#include <heapgauge.h>
#include <jemalloc/jemalloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

void measure(int rounds);

static double seconds(clockid_t clock)
{
	struct timespec t;
	clock_gettime(clock, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static long status_bytes(const char *word)
{
	char text[4096] = "";
	int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
	ssize_t n = read(fd, text, sizeof text - 1);
	close(fd);
	const char *at = n > 0 ? strstr(text, word) : NULL;
	return at ? strtol(at + strlen(word), NULL, 10) * 1024 : 0;
}

/* Looks at what the process has of its own, without files and memfds, while a dump is on its way. */
static atomic_bool watching;
static long most;

static void *watch(void *unused)
{
	(void)unused;
	while (atomic_load(&watching)) {
		long now = status_bytes("RssAnon:");
		most = now > most ? now : most;
		usleep(500);
	}
	return NULL;
}

static void jemalloc_round(void)
{
	char path[64];
	const char *name = path;
	int fd = memfd_create("jemalloc", MFD_CLOEXEC);
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	double wall = seconds(CLOCK_MONOTONIC), cpu = seconds(CLOCK_PROCESS_CPUTIME_ID);
	if (mallctl("prof.dump", NULL, NULL, &name, sizeof name))
		exit(1);
	wall = seconds(CLOCK_MONOTONIC) - wall;
	cpu = seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu;
	close(fd);
	printf("jemalloc %.1f %.1f\n", wall * 1e3, cpu * 1e3);
}

static void heapgauge_round(int watched)
{
	pthread_t watcher;
	struct stat st;
	int fd = memfd_create("heapgauge", MFD_CLOEXEC);
	long before = most = status_bytes("RssAnon:");
	atomic_store(&watching, watched);
	if (watched)
		pthread_create(&watcher, NULL, watch, NULL);
	double wall = seconds(CLOCK_MONOTONIC), cpu = seconds(CLOCK_PROCESS_CPUTIME_ID);
	int rc = hg_dump_pprof_fd(fd);
	wall = seconds(CLOCK_MONOTONIC) - wall;
	cpu = seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu;
	atomic_store(&watching, 0);
	if (watched)
		pthread_join(watcher, NULL);
	if (rc || fstat(fd, &st)) {
		fprintf(stderr, "agent_cost: %s\n", hg_strerror(rc));
		exit(1);
	}
	close(fd);
	/* The profile itself is beside the text, too. */
	if (watched)
		printf("memory %ld %ld\n", (long)st.st_size, most - before + (long)st.st_size);
	else
		printf("heapgauge %.1f %.1f\n", wall * 1e3, cpu * 1e3);
}

void measure(int rounds)
{
	heapgauge_round(0);
	jemalloc_round();
	printf("begin\n");
	for (int i = 0; i < rounds; i++) {
		jemalloc_round();
		heapgauge_round(0);
	}
	heapgauge_round(1);
}
