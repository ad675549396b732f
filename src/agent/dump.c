#include "agent/dump.h"

#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "agent/forks.h"
#include "agent/memory.h"
#include "agent/objects.h"
#include "agent/threads.h"
#include "base/file.h"
#include "format/format.h"

#define MEMORY_MAX ((size_t)2 << 30)
#define FOLLOW_WAIT_NS 2000000          /* between two looks at a text that is being written */

/* --- one at a time -------------------------------------------------------- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t wake = PTHREAD_COND_INITIALIZER;
/* Under the lock: */
static bool held;
static unsigned n_patient;              /* who waits for the session: it is theirs before that of who doesn't */
static struct {
	bool running, wanted, done;
	pthread_t thread;
	const struct jemalloc *jemalloc;
	char path[320];
	int rc;
	double ms;
} dumper;

static struct timespec in_nanos(int64_t ns)
{
	struct timespec t;
	clock_gettime(CLOCK_REALTIME, &t);
	ns += t.tv_nsec;
	return (struct timespec){ t.tv_sec + ns / 1000000000, ns % 1000000000 };
}

int dump_lock(void)
{
	return dump_lock_within(0);
}

int dump_lock_within(unsigned ms)
{
	struct timespec until = in_nanos((int64_t)ms * 1000000);
	pthread_mutex_lock(&lock);
	bool patient = ms > 0;
	n_patient += patient;
	while (patient && held && pthread_cond_timedwait(&wake, &lock, &until) == 0) {
	}
	n_patient -= patient;
	bool busy = held || (!patient && n_patient > 0);
	held |= !busy;
	pthread_mutex_unlock(&lock);
	if (busy)
		return HG_BUSY;
	agent_memory_begin(MEMORY_MAX);
	return HG_OK;
}

void dump_unlock(void)
{
	agent_memory_end();
	pthread_mutex_lock(&lock);
	held = false;
	if (n_patient > 0)
		pthread_cond_broadcast(&wake);
	pthread_mutex_unlock(&lock);
}

void dump_after_fork(void)
{
	pthread_mutex_t fresh_lock = PTHREAD_MUTEX_INITIALIZER;
	pthread_cond_t fresh_wake = PTHREAD_COND_INITIALIZER;
	lock = fresh_lock;
	wake = fresh_wake;
	/* The session's thread may have been in the middle of taking memory. */
	agent_memory_forget();
	held = false;
	n_patient = 0;
	memset(&dumper, 0, sizeof dumper);
}

/* --- the thread that calls jemalloc --------------------------------------- */

static double now_ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void *dump_main(void *unused)
{
	(void)unused;
	prctl(PR_SET_NAME, "heapgauge-dump");
	pthread_mutex_lock(&lock);
	for (;;) {
		while (!dumper.wanted)
			pthread_cond_wait(&wake, &lock);
		dumper.wanted = false;
		pthread_mutex_unlock(&lock);
		double begin = now_ms();
		int rc = jemalloc_dump(dumper.jemalloc, dumper.path);
		double ms = now_ms() - begin;
		pthread_mutex_lock(&lock);
		dumper.rc = rc;
		dumper.ms = ms;
		dumper.done = true;
		pthread_cond_broadcast(&wake);
	}
	return NULL;
}

int dump_start_thread(void)
{
	pthread_mutex_lock(&lock);
	if (!dumper.running)
		dumper.running = thread_start(&dumper.thread, dump_main, NULL);
	int rc = dumper.running ? HG_OK : HG_NO_MEMORY;
	pthread_mutex_unlock(&lock);
	return rc;
}

/* Where jemalloc can open the descriptor by name. */
static int name_fd(int fd, char *to, size_t room, struct error *err)
{
	snprintf(to, room, "/proc/self/fd/%d", fd);
	if (access(to, W_OK) == 0)
		return HG_OK;
	error_set(err, E_IO, "jemalloc has to open its dump through /proc/self/fd, and that isn't there (%s): mount /proc in this "
	          "process' namespace", strerror(errno));
	return HG_IO;
}

static int begin_dump(const struct jemalloc *j, int fd, struct error *err)
{
	char path[sizeof dumper.path];
	int rc = name_fd(fd, path, sizeof path, err);
	if (rc)
		return rc;
	rc = dump_start_thread();
	if (rc) {
		error_set(err, E_NOMEM, "no thread could be started: %s", strerror(errno));
		return rc;
	}
	pthread_mutex_lock(&lock);
	memcpy(dumper.path, path, sizeof path);
	dumper.jemalloc = j;
	dumper.done = false;
	dumper.wanted = true;
	pthread_cond_broadcast(&wake);
	pthread_mutex_unlock(&lock);
	return HG_OK;
}

enum wait { WAIT_NOT, WAIT_A_MOMENT, WAIT_FOR_IT };

static bool dump_is_done(enum wait wait)
{
	pthread_mutex_lock(&lock);
	while (wait == WAIT_FOR_IT && !dumper.done)
		pthread_cond_wait(&wake, &lock);
	if (wait == WAIT_A_MOMENT && !dumper.done) {
		struct timespec until = in_nanos(FOLLOW_WAIT_NS);
		pthread_cond_timedwait(&wake, &lock, &until);
	}
	bool done = dumper.done;
	pthread_mutex_unlock(&lock);
	return done;
}

static int finish_dump(double *ret_ms, struct error *err)
{
	dump_is_done(WAIT_FOR_IT);
	pthread_mutex_lock(&lock);
	int rc = dumper.rc;
	*ret_ms = dumper.ms;
	pthread_mutex_unlock(&lock);
	if (rc)
		error_set(err, E_IO, "jemalloc could not write its dump: %s", jemalloc_advice(rc));
	return rc;
}

/* --- texts ---------------------------------------------------------------- */

int dump_open_nameless(const char *folder, struct error *err)
{
	int fd;
	/* A disk may take its time, and forks don't wait for that. */
	if (folder && *folder) {
		fd = forks_own(open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
		if (fd < 0)
			error_set(err, E_IO, "no place for a dump in %.200s: %s", folder, strerror(errno));
		return fd;
	}
	forks_hold();
	fd = forks_own(memfd_create("heapgauge-dump", MFD_CLOEXEC));
	forks_go_on();
	if (fd < 0)
		error_set(err, E_IO, "no place for a dump in memory: memfd_create: %s; the agent's option spool_dir (spool) names a folder "
		          "instead", strerror(errno));
	return fd;
}

/* "heap_v2/524288\n  t*: 0: 0 [0: 0]": not one sample, live or gone. */
static bool is_empty(int fd)
{
	char head[128];
	ssize_t n = pread(fd, head, sizeof head - 1, 0);
	if (n <= 0)
		return true;
	head[n] = '\0';
	const char *line = strchr(head, '\n');
	return line && strncmp(line, "\n  t*: 0: 0 [0: 0]", 18) == 0;
}

/* What the header's line estimates: "  t*: objects: bytes [". */
static double estimate_header(int fd)
{
	char head[160];
	unsigned long long rate, objects, bytes;
	ssize_t n = pread(fd, head, sizeof head - 1, 0);
	head[n > 0 ? n : 0] = '\0';
	if (sscanf(head, "heap_v2/%llu\n  t*: %llu: %llu", &rate, &objects, &bytes) != 3 || objects == 0)
		return 0;
	double mean = (double)bytes / (double)objects;
	return rate <= 1 ? (double)bytes : (double)bytes / -expm1(-mean / (double)rate);
}

int dump_text(const struct jemalloc *j, const char *spool_dir, bool even_empty, int *ret_fd, uint64_t *ret_n,
              struct dump_figures *figures, struct error *err)
{
	double ms, begin = now_ms();
	struct stat st;
	int fd = dump_open_nameless(spool_dir, err);
	if (fd < 0)
		return HG_IO;
	int rc = begin_dump(j, fd, err);
	if (rc == HG_OK)
		rc = finish_dump(&ms, err);
	if (rc == HG_OK && fstat(fd, &st) < 0)
		rc = HG_IO;
	if (rc == HG_OK && !even_empty && !jemalloc_active(j) && is_empty(fd))
		rc = HG_INACTIVE;
	if (rc) {
		close(fd);
		return rc;
	}
	if (figures)
		*figures = (struct dump_figures){ (uint64_t)st.st_size, ms, now_ms() - begin, estimate_header(fd) };
	*ret_fd = fd;
	*ret_n = (uint64_t)st.st_size;
	return HG_OK;
}

/* --- following a text that is being written -------------------------------- */

#define HEAD_KEPT 4096                  /* at the beginning: what is_empty and estimate_header look at */
#define FREED_STEP (1 << 20)

struct follower {
	int fd;
	off_t at;
	off_t freed;                    /* everything between HEAD_KEPT and here is given back */
};

/*
 * A text is read once. What has been read is given back while the rest is being written, so that a dump takes next to no memory (nor
 * disk, nor the page cache of somebody who has little left), however long it is. Not every file system can; then it stays.
 */
static void give_back(struct follower *f)
{
	if (f->at - f->freed < FREED_STEP)
		return;
	off_t from = f->freed < HEAD_KEPT ? HEAD_KEPT : f->freed, to = f->at & ~(off_t)(HEAD_KEPT - 1);
	fallocate(f->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, from, to - from);
	f->freed = to;
}

static int follow(struct stream *s, void *to, size_t room, size_t *ret_n, struct error *err)
{
	struct follower *f = s->context;
	for (;;) {
		/* Asked before reading: what was written until it was done is seen by this read. */
		bool done = dump_is_done(WAIT_NOT);
		ssize_t n = pread(f->fd, to, room, f->at);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return error_set(err, E_IO, "%s: %s", s->name, strerror(errno));
		if (n > 0 || done) {
			f->at += n;
			give_back(f);
			*ret_n = (size_t)n;
			return E_OK;
		}
		dump_is_done(WAIT_A_MOMENT);
	}
}

static int read_text(struct stream *s, void *to, size_t room, size_t *ret_n, struct error *err)
{
	struct follower *f = s->context;
	ssize_t n;
	do
		n = pread(f->fd, to, room, f->at);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return error_set(err, E_IO, "%s: %s", s->name, strerror(errno));
	f->at += n;
	*ret_n = (size_t)n;
	return E_OK;
}

/* --- profiles ------------------------------------------------------------- */

int dump_to_fd(void *fd, const void *bytes, size_t n, struct error *err)
{
	const char *at = bytes;
	while (n > 0) {
		ssize_t done = write(*(const int *)fd, at, n);
		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return error_set(err, E_IO, "cannot write the profile: %s", strerror(errno));
		at += done;
		n -= (size_t)done;
	}
	return E_OK;
}

static int64_t wall_nanos(void)
{
	struct timespec t;
	clock_gettime(CLOCK_REALTIME, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static struct jeheap_stream_options stream_options(const struct jemalloc *j)
{
	return (struct jeheap_stream_options){
		.counts = j->raw_counts ? JEHEAP_COUNTS_RAW : JEHEAP_COUNTS_UNBIASED,
		.time_nanos = wall_nanos(),
		.build_id = objects_build_id,
	};
}

static int code_of(int error_code)
{
	return error_code == E_OK ? HG_OK : error_code == E_NOMEM || error_code == E_LIMIT ? HG_NO_MEMORY
	       : error_code == E_IO ? HG_IO : HG_FAILED;
}

int dump_pprof(const struct jemalloc *j, const struct dump_options *o, dump_sink *sink, void *context,
               struct dump_figures *figures, struct error *err)
{
	double begin = now_ms(), dump_ms = 0;
	bool active = jemalloc_active(j);
	struct follower f = { .fd = dump_open_nameless(o->spool_dir, err) };
	if (f.fd < 0)
		return HG_IO;
	int rc = begin_dump(j, f.fd, err);
	/* What is not sampling may hold nothing at all, and then there is no profile: that is known at its end. */
	if (rc == HG_OK && !active) {
		rc = finish_dump(&dump_ms, err);
		if (rc == HG_OK && is_empty(f.fd))
			rc = HG_INACTIVE;
	}
	if (rc) {
		close(f.fd);
		return rc;
	}
	struct stream in = { .fill = active ? follow : read_text, .name = "this process' dump", .context = &f, .fd = -1 };
	struct jeheap_stream_options so = stream_options(j);
	so.default_type = o->default_type;
	int failed = jeheap_to_pprof(&in, &read_limits_default, &so, sink, context, err);
	stream_close(&in);
	struct error unheard;
	rc = finish_dump(&dump_ms, failed ? &unheard : err);
	if (rc && failed && err)
		*err = unheard;
	if (figures)
		*figures = (struct dump_figures){ (uint64_t)f.at, dump_ms, now_ms() - begin, estimate_header(f.fd) };
	close(f.fd);
	return rc ? rc : code_of(failed);
}

int dump_growth(const struct jemalloc *j, int base_fd, int now_fd, int64_t duration_nanos, dump_sink *sink, void *context,
                struct error *err)
{
	struct jeheap_stream_options o = stream_options(j);
	struct follower base = { .fd = base_fd }, now = { .fd = now_fd };
	struct stream in = { .fill = read_text, .name = "this process' first dump", .context = &base, .fd = -1 };
	int rc = base_fd >= 0 ? jeheap_base_read(&in, &read_limits_default, o.counts, &o.base, err) : E_OK;
	stream_close(&in);
	if (rc == E_OK) {
		o.duration_nanos = duration_nanos;
		in = (struct stream){ .fill = read_text, .name = "this process' second dump", .context = &now, .fd = -1 };
		rc = jeheap_to_pprof(&in, &read_limits_default, &o, sink, context, err);
		stream_close(&in);
	}
	jeheap_base_free(o.base);
	return code_of(rc);
}
