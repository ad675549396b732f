/* The functions of heapgauge.h. */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/agent.h"
#include "agent/dump.h"
#include "agent/forks.h"
#include "agent/memory.h"
#include "agent/work.h"
#include "base/text.h"

const char *hg_version(void)
{
	return HG_VERSION;
}

const char *hg_strerror(int result)
{
	return jemalloc_advice(result);
}

/* --- jemalloc --------------------------------------------------------------- */

int hg_use_mallctl(hg_mallctl_function *function, const char *conf_variable)
{
	return jemalloc_use(function, conf_variable);
}

int hg_status(struct hg_status_info *ret_status)
{
	const struct jemalloc *j;
	struct hg_status_info s = { .found = 0 };
	if (jemalloc_find(&j) == HG_OK) {
		s.found = 1;
		s.profiling_built_in = j->profiling_built_in;
		s.profiling_enabled = j->profiling_enabled;
		s.accumulates = j->accumulates;
		s.active = j->profiling_enabled && jemalloc_active(j);
		s.lg_sample = j->profiling_enabled ? jemalloc_lg_sample(j) : 0;
		jemalloc_refresh(j);
		s.allocated = jemalloc_number(j, "stats.allocated");
		s.active_bytes = jemalloc_number(j, "stats.active");
		s.metadata = jemalloc_number(j, "stats.metadata");
		s.resident = jemalloc_number(j, "stats.resident");
		s.mapped = jemalloc_number(j, "stats.mapped");
		s.retained = jemalloc_number(j, "stats.retained");
		snprintf(s.version, sizeof s.version, "%s", j->version);
		snprintf(s.prefix, sizeof s.prefix, "%s", j->prefix);
		snprintf(s.conf_variable, sizeof s.conf_variable, "%s", j->conf_variable);
		snprintf(s.path, sizeof s.path, "%s", j->path);
	}
	*ret_status = s;
	return HG_OK;
}

int hg_activate(void)
{
	return agent_set_active(true);
}

int hg_deactivate(void)
{
	return agent_set_active(false);
}

int hg_reset(int lg_sample)
{
	const struct jemalloc *j;
	int rc = lg_sample < -1 || lg_sample > 62 ? HG_INVALID : jemalloc_ready(&j);
	return rc ? rc : jemalloc_reset(j, lg_sample);
}

/* --- the caller's thread ------------------------------------------------------ */

/*
 * A pipe whose reader has gone, or a file as large as files may get, would raise a signal that ends the program; it is an error here. And
 * who is cancelled in the middle would never give back the session.
 */
struct guard {
	sigset_t held, before;
	int cancelling;
};

static void guard_begin(struct guard *g)
{
	static const int signals[] = { SIGPIPE, SIGXFSZ };
	sigset_t pending;
	sigemptyset(&g->held);
	sigemptyset(&pending);
	sigpending(&pending);
	/* What was waiting already is not ours to take away. */
	for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
		if (!sigismember(&pending, signals[i]))
			sigaddset(&g->held, signals[i]);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &g->cancelling);
	pthread_sigmask(SIG_BLOCK, &g->held, &g->before);
}

static int guard_end(const struct guard *g, int rc)
{
	struct timespec now = { 0, 0 };
	while (sigtimedwait(&g->held, NULL, &now) > 0 || errno == EINTR) {
	}
	pthread_sigmask(SIG_SETMASK, &g->before, NULL);
	pthread_setcancelstate(g->cancelling, NULL);
	return rc;
}

/* --- dumps ------------------------------------------------------------------ */

/* A whole file becomes the caller's bytes; fd is closed. */
static int give(int fd, void **ret_bytes, size_t *ret_n)
{
	struct stat st;
	void *bytes = MAP_FAILED;
	if (fstat(fd, &st) == 0 && st.st_size > 0)
		bytes = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	close(fd);
	if (bytes == MAP_FAILED)
		return HG_NO_MEMORY;
	*ret_bytes = bytes;
	*ret_n = (size_t)st.st_size;
	return HG_OK;
}

static int begin(const struct jemalloc **ret_jemalloc)
{
	int rc = jemalloc_ready(ret_jemalloc);
	forks_watch();
	return rc ? rc : dump_lock();
}

/* A nameless file with the profile. */
static int pprof_file(int *ret_fd)
{
	static const struct dump_options options = { .spool_dir = NULL };
	const struct jemalloc *j;
	struct error err;
	int rc = begin(&j);
	if (rc)
		return rc;
	int fd = dump_open_nameless(NULL, &err);
	rc = fd < 0 ? HG_IO : dump_pprof(j, &options, dump_to_fd, &fd, NULL, &err);
	dump_unlock();
	if (rc == HG_OK)
		*ret_fd = fd;
	else if (fd >= 0)
		close(fd);
	return rc;
}

static int jeheap_file(int *ret_fd)
{
	const struct jemalloc *j;
	struct error err;
	uint64_t n;
	int rc = begin(&j);
	if (rc)
		return rc;
	rc = dump_text(j, NULL, false, ret_fd, &n, NULL, &err);
	dump_unlock();
	return rc;
}

static int dump_bytes(int (*make)(int *ret_fd), void **ret_bytes, size_t *ret_n)
{
	struct guard g;
	int fd;
	guard_begin(&g);
	int rc = make(&fd);
	if (rc == HG_OK)
		rc = give(fd, ret_bytes, ret_n);
	return guard_end(&g, rc);
}

int hg_dump_pprof(void **ret_bytes, size_t *ret_n)
{
	return dump_bytes(pprof_file, ret_bytes, ret_n);
}

int hg_dump_jeheap(void **ret_bytes, size_t *ret_n)
{
	return dump_bytes(jeheap_file, ret_bytes, ret_n);
}

/* Waits for who reads it, also when the descriptor itself would not. */
static int write_all(int fd, const char *at, size_t n)
{
	while (n > 0) {
		ssize_t done = write(fd, at, n);
		if (done < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
			poll(&(struct pollfd){ .fd = fd, .events = POLLOUT }, 1, -1);
		else if (done < 0 && errno != EINTR)
			return HG_IO;
		at += done > 0 ? done : 0;
		n -= done > 0 ? (size_t)done : 0;
	}
	return HG_OK;
}

/* Made whole first, so that a slow reader keeps nobody else from a dump. */
static int dump_into(int (*make)(int *ret_fd), int fd)
{
	struct guard g;
	void *bytes;
	size_t n;
	int made;
	if (fcntl(fd, F_GETFD) < 0)
		return HG_INVALID;
	guard_begin(&g);
	int rc = make(&made);
	if (rc == HG_OK)
		rc = give(made, &bytes, &n);
	if (rc == HG_OK) {
		rc = write_all(fd, bytes, n);
		munmap(bytes, n);
	}
	return guard_end(&g, rc);
}

int hg_dump_pprof_fd(int fd)
{
	return dump_into(pprof_file, fd);
}

int hg_dump_jeheap_fd(int fd)
{
	return dump_into(jeheap_file, fd);
}

int hg_dump_named(const char *format, void **ret_bytes, size_t *ret_n)
{
	struct guard g;
	struct error err;
	char symbolizer[PATH_MAX];
	int form = format ? form_of(format) : -1, fd, named;
	uint64_t n;
	if (form < 0 || form == FORM_JEHEAP)
		return HG_INVALID;
	guard_begin(&g);
	agent_symbolizer(symbolizer);
	int rc = pprof_file(&fd);
	if (rc == HG_OK) {
		rc = work_name_profile(symbolizer, (enum profile_form)form, true, fd, &named, &n, NULL, NULL, &err);
		close(fd);
	}
	if (rc == HG_OK)
		rc = give(named, ret_bytes, ret_n);
	return guard_end(&g, rc);
}

void hg_free(void *bytes, size_t n)
{
	if (bytes)
		munmap(bytes, n);
}

/* --- the agent --------------------------------------------------------------- */

struct hg_agent {
	struct agent agent;
};

static void tell(const struct hg_agent_options *o, const struct error *err, int rc)
{
	if (o && o->size >= sizeof *o && o->error && o->error_size)
		snprintf(o->error, o->error_size, "%s", err->code ? err->text : jemalloc_advice(rc));
}

int hg_agent_start(const struct hg_agent_options *options, hg_agent **ret_agent)
{
	struct agent_options o;
	struct agent *a;
	struct error err = { 0 };
	int failed = agent_options_set(&o, options, &err);
	int rc = failed ? failed == E_IO ? HG_IO : failed == E_UNSUPPORTED ? HG_UNSAFE : HG_INVALID : agent_start(&o, &a, &err);
	if (rc)
		tell(options, &err, rc);
	else
		*ret_agent = (hg_agent *)a;
	return rc;
}

const char *hg_agent_url(const hg_agent *agent)
{
	return agent && agent->agent.server ? http_server_url(agent->agent.server) : "";
}

void hg_agent_stop(hg_agent *agent)
{
	if (agent)
		agent_stop(&agent->agent);
}
