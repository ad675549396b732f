/*
 * A program with the library in it that does what it is told, line by line on standard input, and answers each line with
 * one that begins with "ok" or "error". Its heap is known: planted_leak and planted_cache allocate and nothing else of size.
 *
 *   start LISTEN [key=value;...]    starts the agent (the options of HEAPGAUGE_AGENT's form: see agent_options_parse)
 *   stop
 *   leak N BYTES | cache N BYTES    allocates and keeps N blocks
 *   drop                            frees what cache keeps
 *   dump N | dump-jeheap N          N dumps through the library, each thrown away
 *   save FILE | save-jeheap FILE    one dump, kept
 *   named FORMAT FILE
 *   activate | deactivate | reset LG
 *   status                          found, built in, enabled, active, rate, version, prefix, variable
 *   fork FILE                       a child dumps into FILE, starts an agent of its own and stops it
 *   fds | threads | rss             of this process
 *   churn MS                        another thread allocates and frees for so long
 *   leak-forever SPEED BLOCK FILE   another thread leaks, SPEED bytes a second in blocks of BLOCK, and counts the bytes in FILE, as a
 *                                   64-bit number that outlives the program, until malloc fails or somebody kills it
 *   stacks N BYTES                  N blocks, each from a stack of its own
 *   map BYTES | unmap               memory past malloc, touched
 *   load FILE | call N BYTES | unload   dlopen; its plugin_leak allocates N blocks; dlclose
 *   quit
 */
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <heapgauge.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifdef PREFIXED
void *hgt_malloc(size_t n);
void hgt_free(void *block);
#define malloc hgt_malloc
#define free hgt_free
#endif

static hg_agent *agent;
static void *kept[1 << 20], *cached[1 << 20];
static size_t n_kept, n_cached;

__attribute__((noinline)) static void *planted_leak(size_t bytes)
{
	void *block = malloc(bytes);
	if (block)
		memset(block, 1, bytes);
	return block;
}

__attribute__((noinline)) static void *planted_cache(size_t bytes)
{
	void *block = malloc(bytes);
	if (block)
		memset(block, 2, bytes);
	__asm__ volatile("" ::: "memory");
	return block;
}

/* Two functions that call each other as the bits of a number say: as many stacks as numbers. */
static void *turn_left(unsigned bits, unsigned left, size_t bytes);

__attribute__((noinline)) static void *turn_right(unsigned bits, unsigned left, size_t bytes)
{
	void *block = left == 0 ? planted_leak(bytes)
	              : bits & 1 ? turn_left(bits >> 1, left - 1, bytes) : turn_right(bits >> 1, left - 1, bytes);
	__asm__ volatile("" ::: "memory");
	return block;
}

__attribute__((noinline)) static void *turn_left(unsigned bits, unsigned left, size_t bytes)
{
	void *block = left == 0 ? planted_leak(bytes)
	              : bits & 1 ? turn_left(bits >> 1, left - 1, bytes) : turn_right(bits >> 1, left - 1, bytes);
	__asm__ volatile("" ::: "memory");
	return block;
}

static void answer_code(int rc)
{
	if (rc)
		printf("error %d %s\n", rc, hg_strerror(rc));
	else
		printf("ok\n");
}

static int write_file(const char *path, const void *bytes, size_t n)
{
	int fd = open(path, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600);
	int fine = fd >= 0 && write(fd, bytes, n) == (ssize_t)n;
	if (fd >= 0)
		close(fd);
	return fine ? HG_OK : HG_IO;
}

static int save(const char *path, int jeheap)
{
	void *bytes;
	size_t n;
	int rc = jeheap ? hg_dump_jeheap(&bytes, &n) : hg_dump_pprof(&bytes, &n);
	if (rc)
		return rc;
	rc = write_file(path, bytes, n);
	hg_free(bytes, n);
	return rc;
}

static int dump(unsigned long times, int jeheap)
{
	int null = open("/dev/null", O_WRONLY | O_CLOEXEC), rc = HG_OK;
	for (unsigned long i = 0; i < times && rc == HG_OK; i++) {
		void *bytes;
		size_t n;
		if (i % 2) {
			rc = jeheap ? hg_dump_jeheap_fd(null) : hg_dump_pprof_fd(null);
			continue;
		}
		rc = jeheap ? hg_dump_jeheap(&bytes, &n) : hg_dump_pprof(&bytes, &n);
		if (rc == HG_OK)
			hg_free(bytes, n);
	}
	close(null);
	return rc;
}

static int save_named(const char *format, const char *path)
{
	void *bytes;
	size_t n;
	int rc = hg_dump_named(format, &bytes, &n);
	if (rc)
		return rc;
	rc = write_file(path, bytes, n);
	hg_free(bytes, n);
	return rc;
}

/* The options' texts in the form key=value;key=value, as the preloaded library takes them. */
static void start(char *listen, char *words)
{
	char sentence[300] = "";
	hg_agent_options o = HG_AGENT_OPTIONS_INIT;
	o.listen = strcmp(listen, "default") == 0 ? NULL : listen;
	o.error = sentence;
	o.error_size = sizeof sentence;
	for (char *word = words, *next; word && *word; word = next) {
		next = strchr(word, ';');
		if (next)
			*next++ = '\0';
		char *value = strchr(word, '=');
		if (!value)
			continue;
		*value++ = '\0';
		unsigned long number = strtoul(value, NULL, 10);
		if (!strcmp(word, "token_file"))
			o.token_file = value;
		else if (!strcmp(word, "remote"))
			o.allow_remote = (int)number;
		else if (!strcmp(word, "hosts"))
			o.allow_hosts = value;
		else if (!strcmp(word, "arguments"))
			o.serve_arguments = (int)number;
		else if (!strcmp(word, "spool"))
			o.spool_dir = value;
		else if (!strcmp(word, "symbolizer"))
			o.symbolizer = value;
		else if (!strcmp(word, "snapshots"))
			o.snapshot_dir = value;
		else if (!strcmp(word, "count"))
			o.snapshot_count = (unsigned)number;
		else if (!strcmp(word, "interval"))
			o.snapshot_interval_s = (unsigned)number;
		else if (!strcmp(word, "rss"))
			o.watch_rss_bytes = number;
		else if (!strcmp(word, "growth"))
			o.watch_growth_bytes = number;
		else if (!strcmp(word, "limit_percent"))
			o.watch_limit_percent = (unsigned)number;
		else if (!strcmp(word, "psi"))
			o.watch_psi_percent = (unsigned)number;
	}
	int rc = hg_agent_start(&o, &agent);
	if (rc)
		printf("error %d %s\n", rc, sentence);
	else
		printf("ok %s\n", hg_agent_url(agent));
}

static void print_status(void)
{
	hg_status_info s;
	hg_status(&s);
	printf("ok %d %d %d %d %u %s \"%s\" %s %llu\n", s.found, s.profiling_built_in, s.profiling_enabled, s.active, s.lg_sample,
	       s.version[0] ? s.version : "-", s.prefix, s.conf_variable[0] ? s.conf_variable : "-", (unsigned long long)s.allocated);
}

static size_t entries(const char *path)
{
	DIR *d = opendir(path);
	size_t n = 0;
	while (d && readdir(d))
		n++;
	if (d)
		closedir(d);
	return n;
}

static void print_rss(void)
{
	unsigned long size = 0, resident = 0, shared = 0;
	char text[128] = "";
	int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
	if (fd >= 0 && read(fd, text, sizeof text - 1) > 0)
		sscanf(text, "%lu %lu %lu", &size, &resident, &shared);
	close(fd);
	printf("ok %lu %lu\n", resident * 4096, (resident - shared) * 4096);
}

static void in_child(const char *path)
{
	hg_agent *own;
	hg_agent_options o = HG_AGENT_OPTIONS_INIT;
	char sentence[300] = "";
	o.listen = "127.0.0.1:0";
	o.error = sentence;
	o.error_size = sizeof sentence;
	int rc = save(path, 0);
	if (rc == HG_OK)
		rc = hg_agent_start(&o, &own);
	if (rc) {
		fprintf(stderr, "child: %d %s %s\n", rc, hg_strerror(rc), sentence);
		_exit(1);
	}
	if (!strstr(hg_agent_url(own), "http://127.0.0.1:"))
		_exit(2);
	hg_agent_stop(own);
	_exit(0);
}

static void do_fork(const char *path)
{
	int status = -1;
	pid_t child = fork();
	if (child == 0)
		in_child(path);
	waitpid(child, &status, 0);
	if (status)
		printf("error %d child\n", status);
	else
		printf("ok\n");
}

static void *churn(void *ms)
{
	struct timespec begin, now;
	clock_gettime(CLOCK_MONOTONIC, &begin);
	do {
		void *blocks[64];
		for (size_t i = 0; i < 64; i++)
			blocks[i] = malloc(64 + 64 * i);
		for (size_t i = 0; i < 64; i++)
			free(blocks[i]);
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while ((now.tv_sec - begin.tv_sec) * 1000 + (now.tv_nsec - begin.tv_nsec) / 1000000 < *(long *)ms);
	return NULL;
}

static void do_churn(long ms)
{
	pthread_t threads[2];
	for (int i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, churn, &ms);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	printf("ok\n");
}

struct forever {
	unsigned long speed, block;
	volatile uint64_t *leaked;
};

static double seconds(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void *leak_forever(void *context)
{
	const struct forever *f = context;
	double begin = seconds();
	struct timespec pause = { 0, 1000000 };
	for (;;) {
		while ((double)*f->leaked > (seconds() - begin) * (double)f->speed)
			nanosleep(&pause, NULL);
		if (!planted_leak(f->block))
			nanosleep(&pause, NULL);
		else
			*f->leaked += f->block;
	}
	return NULL;
}

static void do_leak_forever(char *words)
{
	static struct forever f;
	char *end = words;
	pthread_t thread;
	f.speed = strtoul(words, &end, 10);
	f.block = strtoul(end, &end, 10);
	int fd = open(end + 1, O_CREAT | O_TRUNC | O_RDWR | O_CLOEXEC, 0600);
	void *map = fd >= 0 && ftruncate(fd, 4096) == 0 ? mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) : MAP_FAILED;
	f.leaked = map;
	if (map == MAP_FAILED || pthread_create(&thread, NULL, leak_forever, &f))
		printf("error 1 no leak\n");
	else
		printf("ok\n");
}

static void *mapped;
static size_t mapped_n;

static void do_map(char *words)
{
	mapped_n = strtoul(words, NULL, 10);
	mapped = mmap(NULL, mapped_n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (mapped == MAP_FAILED) {
		printf("error 1 no mapping\n");
		return;
	}
	memset(mapped, 1, mapped_n);
	printf("ok\n");
}

static void allocate(void *(*how)(size_t), void **to, size_t *n, char *words)
{
	char *end = words;
	unsigned long count = strtoul(words, &end, 10), bytes = strtoul(end, NULL, 10);
	for (unsigned long i = 0; i < count && *n < sizeof kept / sizeof *kept; i++)
		to[(*n)++] = how(bytes);
	printf("ok\n");
}

static void make_stacks(char *words)
{
	char *end = words;
	unsigned long count = strtoul(words, &end, 10), bytes = strtoul(end, NULL, 10);
	for (unsigned i = 0; i < count && n_kept < sizeof kept / sizeof *kept; i++)
		kept[n_kept++] = turn_left(i, 20, bytes);
	printf("ok\n");
}

static void drop(void)
{
	while (n_cached > 0)
		free(cached[--n_cached]);
	printf("ok\n");
}

static void *loaded;

static void load(const char *path)
{
	loaded = dlopen(path, RTLD_NOW);
	printf(loaded ? "ok\n" : "error %s\n", loaded ? "" : dlerror());
}

static void call_loaded(char *words)
{
	void *(*leak)(size_t) = (void *(*)(size_t))dlsym(loaded, "plugin_leak");
	if (leak)
		allocate(leak, kept, &n_kept, words);
	else
		printf("error there is no plugin_leak\n");
}

static int is(const char *word, const char *name)
{
	return strcmp(word, name) == 0;
}

static void obey(char *word, char *rest)
{
	char *second = strchr(rest, ' ');
	if (is(word, "leak"))
		allocate(planted_leak, kept, &n_kept, rest);
	else if (is(word, "cache"))
		allocate(planted_cache, cached, &n_cached, rest);
	else if (is(word, "load"))
		load(rest);
	else if (is(word, "call"))
		call_loaded(rest);
	else if (is(word, "unload"))
		printf(dlclose(loaded) ? "error dlclose\n" : "ok\n");
	else if (is(word, "drop"))
		drop();
	else if (is(word, "dump") || is(word, "dump-jeheap"))
		answer_code(dump(strtoul(rest, NULL, 10), is(word, "dump-jeheap")));
	else if (is(word, "save") || is(word, "save-jeheap"))
		answer_code(save(rest, is(word, "save-jeheap")));
	else if (is(word, "activate"))
		answer_code(hg_activate());
	else if (is(word, "deactivate"))
		answer_code(hg_deactivate());
	else if (is(word, "reset"))
		answer_code(hg_reset((int)strtol(rest, NULL, 10)));
	else if (is(word, "status"))
		print_status();
	else if (is(word, "fork"))
		do_fork(rest);
	else if (is(word, "fds"))
		printf("ok %zu\n", entries("/proc/self/fd"));
	else if (is(word, "threads"))
		printf("ok %zu\n", entries("/proc/self/task"));
	else if (is(word, "rss"))
		print_rss();
	else if (is(word, "churn"))
		do_churn(strtol(rest, NULL, 10));
	else if (is(word, "leak-forever"))
		do_leak_forever(rest);
	else if (is(word, "stacks"))
		make_stacks(rest);
	else if (is(word, "map"))
		do_map(rest);
	else if (is(word, "unmap"))
		munmap(mapped, mapped_n), printf("ok\n");
	else if (is(word, "stop"))
		hg_agent_stop(agent), agent = NULL, printf("ok\n");
	else if (second)
		*second++ = '\0', is(word, "named") ? answer_code(save_named(rest, second)) : start(rest, second);
	else
		start(rest, NULL);
}

int main(void)
{
	static char line[8192];
	setvbuf(stdout, NULL, _IOLBF, 4096);
	setvbuf(stdin, NULL, _IOFBF, 4096);
	while (fgets(line, sizeof line, stdin)) {
		line[strcspn(line, "\n")] = '\0';
		char *rest = strchr(line, ' ');
		if (rest)
			*rest++ = '\0';
		if (is(line, "quit"))
			return 0;
		obey(line, rest ? rest : line + strlen(line));
	}
	return 0;
}
