/* The functions of heapgauge.h. */
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/agent.h"
#include "agent/dump.h"
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
	const struct jemalloc *j;
	int rc = jemalloc_ready(&j);
	return rc ? rc : jemalloc_set_active(j, true);
}

int hg_deactivate(void)
{
	const struct jemalloc *j;
	int rc = jemalloc_ready(&j);
	return rc ? rc : jemalloc_set_active(j, false);
}

int hg_reset(int lg_sample)
{
	const struct jemalloc *j;
	int rc = lg_sample < -1 || lg_sample > 62 ? HG_INVALID : jemalloc_ready(&j);
	return rc ? rc : jemalloc_reset(j, lg_sample);
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
	agent_watch_forks();
	return rc ? rc : dump_lock();
}

static int pprof_into(int fd)
{
	const struct jemalloc *j;
	static const struct dump_options options = { .spool_dir = NULL };
	struct error err;
	int rc = begin(&j);
	if (rc)
		return rc;
	rc = dump_pprof(j, &options, dump_to_fd, &fd, NULL, &err);
	dump_unlock();
	return rc;
}

int hg_dump_pprof_fd(int fd)
{
	return fcntl(fd, F_GETFD) < 0 ? HG_INVALID : pprof_into(fd);
}

int hg_dump_pprof(void **ret_bytes, size_t *ret_n)
{
	int fd = dump_open_nameless(NULL);
	if (fd < 0)
		return HG_IO;
	int rc = pprof_into(fd);
	if (rc == HG_OK)
		return give(fd, ret_bytes, ret_n);
	close(fd);
	return rc;
}

static int jeheap_text(int *ret_fd, uint64_t *ret_n)
{
	const struct jemalloc *j;
	struct error err;
	int rc = begin(&j);
	if (rc)
		return rc;
	rc = dump_text(j, NULL, ret_fd, ret_n, NULL, &err);
	dump_unlock();
	return rc;
}

int hg_dump_jeheap(void **ret_bytes, size_t *ret_n)
{
	int fd;
	uint64_t n;
	int rc = jeheap_text(&fd, &n);
	return rc ? rc : give(fd, ret_bytes, ret_n);
}

int hg_dump_jeheap_fd(int fd)
{
	void *bytes;
	size_t n;
	struct error err;
	int rc = fcntl(fd, F_GETFD) < 0 ? HG_INVALID : hg_dump_jeheap(&bytes, &n);
	if (rc)
		return rc;
	if (dump_to_fd(&fd, bytes, n, &err))
		rc = HG_IO;
	hg_free(bytes, n);
	return rc;
}

int hg_dump_named(const char *format, void **ret_bytes, size_t *ret_n)
{
	struct error err;
	int form = form_of(format), named;
	uint64_t n;
	if (form < 0 || form == FORM_JEHEAP)
		return HG_INVALID;
	int fd = dump_open_nameless(NULL);
	if (fd < 0)
		return HG_IO;
	int rc = pprof_into(fd);
	if (rc == HG_OK)
		rc = work_name_profile(agent_symbolizer(), (enum profile_form)form, true, fd, &named, &n, NULL, NULL, &err);
	close(fd);
	return rc ? rc : give(named, ret_bytes, ret_n);
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
	int rc = agent_options_set(&o, options, &err) ? HG_INVALID : agent_start(&o, &a, &err);
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
