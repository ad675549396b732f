#include "agent/agent.h"

#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "agent/dump.h"
#include "agent/forks.h"
#include "agent/memory.h"
#include "agent/threads.h"
#include "agent/watch.h"
#include "agent/work.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* Under the lock, and no fork between: the one there is. */
static struct agent *running;
/* Under the lock: the last agent's. */
static char configured_symbolizer[PATH_MAX];

int64_t agent_now_ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* --- forks ------------------------------------------------------------------ */

/* In the child: what sampling is to be put back to, once jemalloc can be called. */
static bool put_back, put_back_to;

/* What the agent had open is closed; its address stays the parent's. */
void agent_after_fork(void)
{
	pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;
	struct agent *a = running;
	lock = fresh;
	running = NULL;
	if (!a)
		return;
	put_back |= work_changed_active(a, &put_back_to);
	watch_after_fork(a->watch);
	http_server_abandon(a->server);
	if (a->marker >= 0)
		close(a->marker);
	a->server = NULL;
	a->marker = -1;
	a->server_runs = a->work_runs = a->watch_runs = false;
}

void agent_put_back_after_fork(void)
{
	const struct jemalloc *j;
	if (put_back && jemalloc_ready(&j) == HG_OK)
		jemalloc_set_active(j, put_back_to);
	put_back = false;
}

/* --- start and end ----------------------------------------------------------- */

static void *server_main(void *agent)
{
	struct agent *a = agent;
	prctl(PR_SET_NAME, "heapgauge-http");
	http_server_run(a->server);
	return NULL;
}

/* "heapgauge:http://127.0.0.1:6060": seen from outside as the name of /proc/PID/fd/N. */
static void leave_marker(struct agent *a)
{
	char name[249];
	if (!a->server)
		return;
	snprintf(name, sizeof name, "heapgauge:%s", http_server_url(a->server));
	a->marker = memfd_create(name, MFD_CLOEXEC);
}

/* The host has closed all descriptors that it doesn't know: the marker, too, and its number may be another file's by now. */
static void leave_marker_again(void *agent)
{
	struct agent *a = agent;
	a->marker = -1;
	leave_marker(a);
}

static int listen_there(struct agent *a, struct error *err)
{
	const struct agent_options *o = &a->options;
	struct http_access access = { .token = "" };
	struct http_settings settings = {
		.routes = agent_routes, .context = a, .over = agent_exchange_over, .reopened = leave_marker_again,
		.limits = { .connections = AGENT_CONNECTIONS },
	};
	if (strcmp(o->listen, "none") == 0)
		return E_OK;
	memcpy(access.hosts, o->allow_hosts, sizeof access.hosts);
	int rc = o->token_file[0] ? http_read_token(o->token_file, access.token, err) : E_OK;
	return rc ? rc : http_server_new(o->listen, o->allow_remote, &access, &settings, &a->server, err);
}

/* A fork sees all of it, or nothing. */
static void unmap(struct agent *a)
{
	forks_hold();
	if (running == a)
		running = NULL;
	if (a->marker >= 0)
		close(a->marker);
	http_server_free(a->server);
	watch_free(a->watch);
	work_free(a);
	munmap(a, a->mapped);
	forks_go_on();
}

static int start_threads(struct agent *a, struct error *err)
{
	int rc = dump_start_thread();
	if (rc == HG_OK)
		a->work_runs = thread_start(&a->work_thread, work_main, a);
	if (a->work_runs && a->watch)
		a->watch_runs = thread_start(&a->watch_thread, watch_main, a->watch);
	if (a->work_runs && a->server)
		a->server_runs = thread_start(&a->server_thread, server_main, a);
	if (a->work_runs && (a->watch_runs || !a->watch) && (a->server_runs || !a->server))
		return E_OK;
	return error_set(err, E_NOMEM, "no thread could be started: %s", strerror(errno));
}

static void end_threads(struct agent *a)
{
	if (a->server_runs) {
		http_server_stop(a->server);
		pthread_join(a->server_thread, NULL);
	}
	if (a->watch_runs) {
		watch_stop(a->watch);
		pthread_join(a->watch_thread, NULL);
	}
	if (a->work_runs) {
		work_stop(a);
		pthread_join(a->work_thread, NULL);
	}
	a->server_runs = a->work_runs = a->watch_runs = false;
}

static int code_of(int rc)
{
	return rc == E_UNSUPPORTED ? HG_UNSAFE : rc == E_USAGE ? HG_INVALID : rc == E_NOMEM ? HG_NO_MEMORY : HG_IO;
}

static int build(struct agent *a, struct error *err)
{
	int rc = work_new(a);
	if (rc) {
		error_set(err, E_NOMEM, "no memory for the agent");
		return rc;
	}
	if (a->options.snapshot_dir[0])
		rc = watch_new(&a->options, &a->watch, err);
	forks_hold();
	running = a;
	if (rc == E_OK)
		rc = listen_there(a, err);
	if (rc == E_OK)
		leave_marker(a);
	forks_go_on();
	if (rc == E_OK)
		rc = start_threads(a, err);
	return rc ? code_of(rc) : HG_OK;
}

int agent_start(const struct agent_options *o, struct agent **ret, struct error *err)
{
	forks_watch();
	pthread_mutex_lock(&lock);
	int rc = running ? HG_RUNNING : HG_OK;
	struct agent *a = rc ? MAP_FAILED
	                     : mmap(NULL, sizeof *a, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (rc == HG_OK && a == MAP_FAILED)
		rc = HG_NO_MEMORY;
	if (rc == HG_OK) {
		a->options = *o;
		a->marker = -1;
		a->mapped = sizeof *a;
		jemalloc_find(NULL);
		rc = build(a, err);
		if (rc) {
			end_threads(a);
			unmap(a);
		} else {
			memcpy(configured_symbolizer, o->symbolizer, sizeof configured_symbolizer);
			*ret = a;
		}
	}
	pthread_mutex_unlock(&lock);
	return rc;
}

void agent_symbolizer(char to[PATH_MAX])
{
	pthread_mutex_lock(&lock);
	memcpy(to, configured_symbolizer, PATH_MAX);
	pthread_mutex_unlock(&lock);
}

/* An agent that runs has to know, since a span may put sampling back, or have a base to compare with. */
int agent_set_active(bool active)
{
	pthread_mutex_lock(&lock);
	int rc = work_set_active(running ? running->work : NULL, active);
	pthread_mutex_unlock(&lock);
	return rc;
}

void agent_stop(struct agent *a)
{
	pthread_mutex_lock(&lock);
	/* In a child of the one that started it there is nothing to stop but its memory. */
	end_threads(a);
	unmap(a);
	pthread_mutex_unlock(&lock);
}
