#include "agent/work.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "agent/child.h"
#include "agent/dump.h"
#include "agent/memory.h"
#include "agent/symbols.h"
#include "base/memory.h"
#include "base/text.h"

#define OUTPUT_MAX ((uint64_t)256 << 20)    /* of the symbolizer */
#define CHILD_MS 120000
#define SESSION_MS 10000                    /* how long a span's second dump waits for others */

/* An order that waits between its dumps. */
struct span {
	bool on;
	struct order order;
	int base_fd;                    /* the text at its beginning, or -1: it was empty */
	bool waiting;                   /* the second half: sampling is off */
	bool found_active, changed;     /* what to put back; it was changed by us */
	int64_t begun_ms, due_ms;
};

struct work {
	struct agent *agent;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	/* Under the lock: */
	bool stop;
	bool profile_waiting, profile_running;
	struct order profile;
	struct order symbols[AGENT_WAITING_MAX];
	size_t n_symbols;
	struct span span;               /* also read in a forked child */
	struct work_counters counters;
	uint64_t unsent[AGENT_CONNECTIONS];     /* by the ticket's place: bytes of an answer on its way */
};

/* --- forms ---------------------------------------------------------------- */

static const struct {
	const char *name, *type;
} forms[] = {
	[FORM_PPROF] = { "pprof", "application/octet-stream" },
	[FORM_JEHEAP] = { "jeheap", "text/plain; charset=utf-8" },
	[FORM_FOLDED] = { "folded", "text/plain; charset=utf-8" },
	[FORM_SVG] = { "svg", "image/svg+xml" },
	[FORM_HTML] = { "html", "text/html; charset=utf-8" },
	[FORM_TEXT] = { "text", "text/plain; charset=utf-8" },
	[FORM_JSON] = { "json", "application/json" },
};

int form_of(const char *name)
{
	for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
		if (strcmp(forms[i].name, name) == 0)
			return (int)i;
	return -1;
}

const char *form_name(enum profile_form form)
{
	return forms[form].name;
}

const char *form_type(enum profile_form form)
{
	return forms[form].type;
}

/* --- taking orders -------------------------------------------------------- */

static bool is_span(const struct order *o)
{
	return o->activate_s || o->wait_s;
}

static uint64_t unsent_bytes(const struct work *w)
{
	uint64_t sum = 0;
	for (size_t i = 0; i < AGENT_CONNECTIONS; i++)
		sum += w->unsent[i];
	return sum;
}

static bool take_order(struct work *w, const struct order *o)
{
	if (w->stop)
		return false;
	if (o->kind == ORDER_SYMBOLS) {
		if (w->n_symbols == AGENT_WAITING_MAX)
			return false;
		w->symbols[w->n_symbols++] = *o;
		return true;
	}
	if (w->profile_waiting || w->profile_running || (is_span(o) && w->span.on) ||
	    unsent_bytes(w) > AGENT_UNSENT_MAX) {
		w->counters.refused++;
		return false;
	}
	w->profile = *o;
	w->profile_waiting = true;
	return true;
}

int work_submit(struct agent *a, const struct order *o)
{
	struct work *w = a->work;
	pthread_mutex_lock(&w->lock);
	bool taken = take_order(w, o);
	pthread_cond_broadcast(&w->wake);
	pthread_mutex_unlock(&w->lock);
	if (!taken && o->kind == ORDER_SYMBOLS)
		close(o->addresses_fd);
	return taken ? HG_OK : HG_BUSY;
}

int work_set_active(struct agent *a, bool active)
{
	const struct jemalloc *j;
	struct work *w = a->work;
	int rc = jemalloc_ready(&j);
	if (rc)
		return rc;
	pthread_mutex_lock(&w->lock);
	/* During a span: what it will put back. Its own need goes first until then. */
	if (w->span.on && w->span.changed)
		w->span.found_active = active;
	else
		rc = jemalloc_set_active(j, active);
	pthread_mutex_unlock(&w->lock);
	return rc;
}

int work_reset(struct agent *a, int lg_sample)
{
	const struct jemalloc *j;
	int rc = jemalloc_ready(&j);
	(void)a;
	return rc ? rc : jemalloc_reset(j, lg_sample);
}

/* --- answering ------------------------------------------------------------ */

static void answer_error(struct work *w, const struct order *o, int code, const struct error *err)
{
	const char *text = err && err->code && err->text[0] ? err->text : jemalloc_advice(code);
	int status = code == HG_INACTIVE || code == HG_PROF_OFF ? 403
	             : code == HG_BUSY ? 429
	             : code == HG_NO_JEMALLOC || code == HG_NO_PROFILING || code == HG_NO_SYMBOLIZER ? 501 : 500;
	char storage[1024];
	struct buf b = { .data = storage, .capacity = sizeof storage, .max = sizeof storage - 1 };
	text_add_terminal(&b, text, strlen(text));
	buf_addc(&b, '\n');
	http_ticket_answer(w->agent->server, o->ticket, status, "text/plain; charset=utf-8",
	                   code == HG_BUSY ? "Retry-After: 1\r\n" : NULL, storage, b.len);
	pthread_mutex_lock(&w->lock);
	w->counters.failed++;
	pthread_mutex_unlock(&w->lock);
}

static void answer_fd(struct work *w, const struct order *o, const char *type, const char *headers, int fd, uint64_t n)
{
	pthread_mutex_lock(&w->lock);
	if (o->ticket.place < AGENT_CONNECTIONS && !http_ticket_gone(w->agent->server, o->ticket))
		w->unsent[o->ticket.place] = n;
	pthread_mutex_unlock(&w->lock);
	http_ticket_answer_fd(w->agent->server, o->ticket, 200, type, headers, fd, n);
}

void work_sent(struct agent *a, uint32_t place)
{
	pthread_mutex_lock(&a->work->lock);
	if (place < AGENT_CONNECTIONS)
		a->work->unsent[place] = 0;
	pthread_mutex_unlock(&a->work->lock);
}

static void answer_profile(struct work *w, const struct order *o, int fd, uint64_t n)
{
	char headers[160];
	const char *ending = o->form == FORM_PPROF ? "pb.gz" : o->form == FORM_JEHEAP ? "heap" : NULL;
	headers[0] = '\0';
	if (ending)
		snprintf(headers, sizeof headers, "Content-Disposition: attachment; filename=\"heap.%s\"\r\n", ending);
	answer_fd(w, o, form_type(o->form), headers, fd, n);
}

/* --- profiles ------------------------------------------------------------- */

struct watched_ticket {
	struct http_server *server;
	struct http_ticket ticket;
};

static bool client_gone(void *context)
{
	const struct watched_ticket *t = context;
	return http_ticket_gone(t->server, t->ticket);
}

/* "pid 1234 (redis-server)", as the command line calls a process. */
static void name_process(char *to, size_t room)
{
	char program[32] = "";
	int fd = open("/proc/self/comm", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd >= 0 ? read(fd, program, sizeof program - 1) : 0;
	if (fd >= 0)
		close(fd);
	program[n > 0 ? n - 1 : 0] = '\0';
	snprintf(to, room, "pid %ld (%s)", (long)getpid(), program);
}

int work_name_profile(const char *symbolizer, enum profile_form form, bool named, int profile_fd, int *ret_fd,
                      uint64_t *ret_n, bool (*cancelled)(void *context), void *context, struct error *err)
{
	char program[PATH_MAX];
	child_find_program(symbolizer, program, sizeof program);
	if (!program[0])
		return HG_NO_SYMBOLIZER;
	char name[96];
	name_process(name, sizeof name);
	const char *arguments[] = {
		"symbolize", "--sandbox", "--to", form_name(form), "--symbols", named ? "full" : "none", "--name", name, "-", NULL,
	};
	struct child_request r = {
		.program = program, .arguments = arguments, .input = profile_fd, .output_max = OUTPUT_MAX,
		.timeout_ms = CHILD_MS, .cancelled = cancelled, .context = context,
	};
	if (lseek(profile_fd, 0, SEEK_SET) < 0)
		return HG_IO;
	int failed = child_run(&r, ret_fd, ret_n, err);
	return !failed ? HG_OK : failed == E_UNSUPPORTED ? HG_NO_SYMBOLIZER : HG_FAILED;
}

/* The profile is in *fd; what it becomes replaces it, and nothing on failure. Takes its time, and no session: others may dump. */
static int finish_form(struct work *w, const struct order *o, int *fd, uint64_t *n, struct error *err)
{
	struct watched_ticket t = { w->agent->server, o->ticket };
	struct stat st;
	int made = -1, rc = HG_OK;
	if (o->form == FORM_PPROF && !o->named) {
		if (fstat(*fd, &st) == 0) {
			*n = (uint64_t)st.st_size;
			return HG_OK;
		}
		rc = HG_IO;
	}
	if (rc == HG_OK)
		rc = work_name_profile(w->agent->options.symbolizer, o->form, o->named, *fd, &made, n, client_gone, &t, err);
	close(*fd);
	*fd = made;
	if (rc)
		return rc;
	pthread_mutex_lock(&w->lock);
	w->counters.symbolized++;
	pthread_mutex_unlock(&w->lock);
	return HG_OK;
}

static void count_dump(struct work *w, const struct dump_figures *f)
{
	pthread_mutex_lock(&w->lock);
	w->counters.dumps++;
	w->counters.last_dump_ms = f->dump_ms;
	w->counters.last_whole_ms = f->whole_ms;
	w->counters.last_text_bytes = f->text_bytes;
	w->counters.last_inuse_bytes = f->inuse_bytes;
	pthread_mutex_unlock(&w->lock);
}

static int dump_now(struct work *w, const struct order *o, const struct jemalloc *j, int *ret_fd, uint64_t *ret_n,
                    struct error *err)
{
	const char *spool = w->agent->options.spool_dir;
	struct dump_figures figures;
	int rc;
	if (o->form == FORM_JEHEAP) {
		rc = dump_text(j, spool, ret_fd, ret_n, &figures, err);
		if (rc == HG_OK)
			count_dump(w, &figures);
		return rc;
	}
	int fd = dump_open_nameless(spool);
	if (fd < 0) {
		error_set(err, E_IO, "no place for a profile: %s", strerror(errno));
		return HG_IO;
	}
	struct dump_options options = { .spool_dir = spool, .default_type = o->alloc_first ? "alloc_space" : NULL };
	rc = dump_pprof(j, &options, dump_to_fd, &fd, &figures, err);
	if (rc) {
		close(fd);
		return rc;
	}
	count_dump(w, &figures);
	*ret_fd = fd;
	return HG_OK;
}

static void do_profile(struct work *w, const struct order *o)
{
	const struct jemalloc *j;
	struct error err = { 0 };
	int fd;
	uint64_t n;
	int rc = jemalloc_ready(&j);
	if (rc == HG_OK)
		rc = dump_lock();
	if (rc == HG_OK) {
		rc = dump_now(w, o, j, &fd, &n, &err);
		dump_unlock();
	}
	if (rc == HG_OK && o->form != FORM_JEHEAP)
		rc = finish_form(w, o, &fd, &n, &err);
	if (rc)
		answer_error(w, o, rc, &err);
	else
		answer_profile(w, o, fd, n);
}

/* --- spans ---------------------------------------------------------------- */

/* Under the lock. */
static void put_back(struct work *w)
{
	const struct jemalloc *j;
	struct span *s = &w->span;
	if (s->on && s->changed && jemalloc_ready(&j) == HG_OK)
		jemalloc_set_active(j, s->found_active);
	s->changed = false;
}

/* Under the lock. Sampling as the span needs it. */
static int span_set_active(struct span *s, const struct jemalloc *j, bool active)
{
	if (jemalloc_active(j) == active)
		return HG_OK;
	s->changed = true;
	return jemalloc_set_active(j, active);
}

static void end_span(struct work *w)
{
	pthread_mutex_lock(&w->lock);
	put_back(w);
	int fd = w->span.base_fd;
	w->span.on = false;
	pthread_mutex_unlock(&w->lock);
	if (fd >= 0)
		close(fd);
}

/* Others' dumps are short: a span waits for them instead of giving up. */
static int lock_patiently(void)
{
	struct timespec pause = { 0, 20000000 };
	for (int64_t until = agent_now_ms() + SESSION_MS; dump_lock() != HG_OK; nanosleep(&pause, NULL))
		if (agent_now_ms() > until)
			return HG_BUSY;
	return HG_OK;
}

static int text_for_span(struct work *w, const struct jemalloc *j, int *ret_fd, struct error *err)
{
	uint64_t n;
	int rc = lock_patiently();
	if (rc)
		return rc;
	rc = dump_text(j, w->agent->options.spool_dir, ret_fd, &n, NULL, err);
	dump_unlock();
	return rc;
}

static void begin_span(struct work *w, const struct order *o)
{
	const struct jemalloc *j;
	struct error err = { 0 };
	int base = -1;
	int rc = jemalloc_ready(&j);
	if (rc == HG_OK)
		rc = text_for_span(w, j, &base, &err);
	if (rc == HG_INACTIVE)
		rc = HG_OK;
	if (rc) {
		answer_error(w, o, rc, &err);
		return;
	}
	int64_t now = agent_now_ms();
	pthread_mutex_lock(&w->lock);
	w->span = (struct span){
		.on = true, .order = *o, .base_fd = base, .found_active = jemalloc_active(j),
		.begun_ms = now, .due_ms = now + (int64_t)o->activate_s * 1000,
	};
	rc = span_set_active(&w->span, j, true);
	pthread_mutex_unlock(&w->lock);
	if (rc) {
		end_span(w);
		answer_error(w, o, rc, NULL);
	}
}

static int growth_now(struct work *w, const struct jemalloc *j, int now_fd, int *ret_fd, uint64_t *ret_n, struct error *err)
{
	struct span *s = &w->span;
	int fd = dump_open_nameless(w->agent->options.spool_dir);
	if (fd < 0)
		return HG_IO;
	int rc = lock_patiently();
	if (rc) {
		close(fd);
		return rc;
	}
	rc = dump_growth(j, s->base_fd, now_fd, (agent_now_ms() - s->begun_ms) * 1000000, dump_to_fd, &fd, err);
	dump_unlock();
	if (rc) {
		close(fd);
		return rc;
	}
	*ret_fd = fd;
	return finish_form(w, &s->order, ret_fd, ret_n, err);
}

static void finish_span(struct work *w)
{
	const struct jemalloc *j;
	struct error err = { 0 };
	struct order o = w->span.order;
	int now = -1, fd;
	uint64_t n;
	int rc = jemalloc_ready(&j);
	if (rc == HG_OK)
		rc = text_for_span(w, j, &now, &err);
	pthread_mutex_lock(&w->lock);
	put_back(w);
	pthread_mutex_unlock(&w->lock);
	if (rc == HG_OK)
		rc = growth_now(w, j, now, &fd, &n, &err);
	if (now >= 0)
		close(now);
	end_span(w);
	if (rc)
		answer_error(w, &o, rc, &err);
	else
		answer_profile(w, &o, fd, n);
}

/* The span's next step, when it is due. */
static void step_span(struct work *w)
{
	const struct jemalloc *j;
	struct span *s = &w->span;
	if (!s->on)
		return;
	if (http_ticket_gone(w->agent->server, s->order.ticket)) {
		end_span(w);
	} else if (agent_now_ms() >= s->due_ms) {
		if (s->waiting || s->order.wait_s == 0) {
			finish_span(w);
		} else if (jemalloc_ready(&j) == HG_OK) {
			pthread_mutex_lock(&w->lock);
			s->waiting = true;
			s->due_ms += (int64_t)s->order.wait_s * 1000;
			span_set_active(s, j, false);
			pthread_mutex_unlock(&w->lock);
		}
	}
}

/* --- symbols -------------------------------------------------------------- */

static void do_symbols(struct work *w, const struct order *o)
{
	struct error err = { 0 };
	int fd = -1;
	uint64_t n = 0;
	int rc = lock_patiently();
	if (rc == HG_OK) {
		rc = symbols_of_addresses(o->addresses_fd, o->n_addresses, &fd, &n, &err);
		dump_unlock();
	}
	close(o->addresses_fd);
	if (rc)
		answer_error(w, o, rc, &err);
	else
		answer_fd(w, o, "text/plain; charset=utf-8", NULL, fd, n);
}

/* --- the thread ----------------------------------------------------------- */

#define SPAN_LOOK_MS 200                /* how soon a span sees that its client is gone */
#define IDLE_MS 60000

static void wait_until(struct work *w, int64_t wait_ms)
{
	struct timespec until;
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += wait_ms / 1000;
	until.tv_nsec += wait_ms % 1000 * 1000000;
	if (until.tv_nsec >= 1000000000) {
		until.tv_nsec -= 1000000000;
		until.tv_sec++;
	}
	pthread_cond_timedwait(&w->wake, &w->lock, &until);
}

/* The next order, or none after a while; false at the end. */
static bool next_order(struct work *w, struct order *ret, bool *ret_any)
{
	int64_t wait_ms = IDLE_MS;
	*ret_any = false;
	pthread_mutex_lock(&w->lock);
	if (w->span.on) {
		int64_t left = w->span.due_ms - agent_now_ms();
		left = left < 1 ? 1 : left > SPAN_LOOK_MS ? SPAN_LOOK_MS : left;
		wait_ms = left < wait_ms ? left : wait_ms;
	}
	if (!w->stop && !w->profile_waiting && w->n_symbols == 0)
		wait_until(w, wait_ms);
	if (w->n_symbols > 0) {
		*ret = w->symbols[0];
		memmove(w->symbols, w->symbols + 1, --w->n_symbols * sizeof *w->symbols);
		*ret_any = true;
	} else if (w->profile_waiting) {
		*ret = w->profile;
		w->profile_waiting = false;
		w->profile_running = *ret_any = true;
	}
	bool go_on = !w->stop;
	pthread_mutex_unlock(&w->lock);
	return go_on;
}

static void do_order(struct work *w, const struct order *o)
{
	if (o->kind == ORDER_SYMBOLS)
		do_symbols(w, o);
	else if (is_span(o))
		begin_span(w, o);
	else
		do_profile(w, o);
	pthread_mutex_lock(&w->lock);
	w->profile_running = false;
	pthread_mutex_unlock(&w->lock);
}

void *work_main(void *agent)
{
	struct agent *a = agent;
	struct work *w = a->work;
	struct order o;
	bool any;
	prctl(PR_SET_NAME, "heapgauge-work");
	while (next_order(w, &o, &any)) {
		if (any)
			do_order(w, &o);
		step_span(w);
	}
	if (any && o.kind == ORDER_SYMBOLS)
		close(o.addresses_fd);
	end_span(w);
	return NULL;
}

int work_new(struct agent *a)
{
	pthread_condattr_t attributes;
	struct work *w = mmap(NULL, sizeof *w, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (w == MAP_FAILED)
		return HG_NO_MEMORY;
	w->agent = a;
	w->span.base_fd = -1;
	w->counters.last_inuse_bytes = -1;
	pthread_mutex_init(&w->lock, NULL);
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&w->wake, &attributes);
	pthread_condattr_destroy(&attributes);
	a->work = w;
	return HG_OK;
}

void work_free(struct agent *a)
{
	struct work *w = a->work;
	if (!w)
		return;
	while (w->n_symbols > 0)
		close(w->symbols[--w->n_symbols].addresses_fd);
	munmap(w, sizeof *w);
	a->work = NULL;
}

void work_stop(struct agent *a)
{
	struct work *w = a->work;
	pthread_mutex_lock(&w->lock);
	w->stop = true;
	pthread_cond_broadcast(&w->wake);
	pthread_mutex_unlock(&w->lock);
}

void work_after_fork(struct agent *a)
{
	if (a->work)
		put_back(a->work);
}

void work_counters(struct agent *a, struct work_counters *ret)
{
	struct work *w = a->work;
	pthread_mutex_lock(&w->lock);
	*ret = w->counters;
	pthread_mutex_unlock(&w->lock);
}
