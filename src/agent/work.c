#include "agent/work.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "agent/child.h"
#include "agent/dump.h"
#include "agent/forks.h"
#include "agent/memory.h"
#include "agent/metrics.h"
#include "agent/symbols.h"
#include "base/memory.h"
#include "base/text.h"

#define OUTPUT_MAX ((uint64_t)256 << 20)    /* of the symbolizer */
#define CHILD_MS 120000
#define CHILD_MEMORY "128M"               /* that reading one binary may take, in a program whose memory is somebody else's; with less names come without lines */
#define SESSION_MS 60000                    /* how long a dump waits for others, which are the program's own */
#define SESSION_STEP_MS 200
#define QUIET_TRIES 10

/* An order that waits between its dumps. */
struct span {
	bool on;
	struct order order;
	int base_fd;                    /* the text at its beginning */
	unsigned resets;                /* how often samples had been forgotten then */
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
	struct order profiles[AGENT_PROFILES_MAX];
	size_t n_profiles;
	struct order small[AGENT_WAITING_MAX];  /* all that are no profiles */
	size_t n_small;
	bool small_last;                /* they and profiles take turns */
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

__attribute__((format(printf, 3, 4)))
static bool refuse(struct work_refusal *r, int64_t retry_ms, const char *format, ...)
{
	va_list words;
	va_start(words, format);
	vsnprintf(r->text, sizeof r->text, format, words);
	va_end(words);
	r->retry_s = retry_ms > 0 ? (unsigned)(retry_ms / 1000) + 1 : 1;
	return false;
}

static bool take_order(struct work *w, const struct order *o, struct work_refusal *r)
{
	if (w->stop)
		return refuse(r, 0, "the agent is being stopped");
	if (o->kind != ORDER_PROFILE) {
		if (w->n_small == AGENT_WAITING_MAX)
			return refuse(r, 0, "%u requests for names wait already: try again", AGENT_WAITING_MAX);
		w->small[w->n_small++] = *o;
		return true;
	}
	if (w->n_profiles == AGENT_PROFILES_MAX)
		return refuse(r, 0, "another dump is on its way, and %u requests wait for theirs: try again", AGENT_PROFILES_MAX);
	int64_t left_ms = w->span.due_ms + (w->span.waiting ? 0 : (int64_t)w->span.order.wait_s * 1000) - agent_now_ms();
	for (size_t i = 0; i < w->n_profiles && is_span(o); i++)
		if (is_span(&w->profiles[i]))
			return refuse(r, 0, "another request (seconds=, survivors) begins to watch the heap: try again later");
	if (is_span(o) && w->span.on)
		return refuse(r, left_ms, "another request (seconds=, survivors) watches the heap for %lld s: try again then; a dump of now can "
		              "be had meanwhile", (long long)(left_ms > 0 ? left_ms / 1000 + 1 : 1));
	if (unsent_bytes(w) > AGENT_UNSENT_MAX)
		return refuse(r, 0, "answers of more than %llu MiB wait for clients to fetch them: try again",
		              (unsigned long long)(AGENT_UNSENT_MAX >> 20));
	w->profiles[w->n_profiles++] = *o;
	return true;
}

int work_submit(struct agent *a, const struct order *o, struct work_refusal *ret_refusal)
{
	struct work *w = a->work;
	pthread_mutex_lock(&w->lock);
	bool taken = take_order(w, o, ret_refusal);
	if (!taken)
		w->counters.refused++;
	pthread_cond_broadcast(&w->wake);
	pthread_mutex_unlock(&w->lock);
	if (!taken && o->kind == ORDER_SYMBOLS)
		close(o->addresses_fd);
	return taken ? HG_OK : HG_BUSY;
}

bool work_is_overfull(struct agent *a)
{
	pthread_mutex_lock(&a->work->lock);
	bool overfull = unsent_bytes(a->work) > AGENT_UNSENT_MAX;
	pthread_mutex_unlock(&a->work->lock);
	return overfull;
}

int work_set_active(struct work *w, bool active)
{
	const struct jemalloc *j;
	int rc = jemalloc_ready(&j);
	if (rc || !w)
		return rc ? rc : jemalloc_set_active(j, active);
	pthread_mutex_lock(&w->lock);
	/* During a span: what it will put back. Its own need goes first until then. */
	if (w->span.on && w->span.changed)
		w->span.found_active = active;
	else
		rc = jemalloc_set_active(j, active);
	pthread_mutex_unlock(&w->lock);
	return rc;
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
	if (code == HG_BUSY)
		w->counters.refused++;
	else
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

/* --- the session ------------------------------------------------------------ */

static bool is_stopping(struct work *w)
{
	pthread_mutex_lock(&w->lock);
	bool stop = w->stop;
	pthread_mutex_unlock(&w->lock);
	return stop;
}

/* For as long as others' dumps take, which is short, instead of giving up. */
static int lock_patiently(struct work *w)
{
	for (int64_t until = agent_now_ms() + SESSION_MS; dump_lock_within(SESSION_STEP_MS) != HG_OK;) {
		if (agent_now_ms() > until || is_stopping(w))
			return HG_BUSY;
	}
	return HG_OK;
}

struct named_for {
	struct work *work;
	struct http_ticket ticket;
};

/* Asked some times a second while the symbolizer runs. */
static bool nobody_waits(void *context)
{
	const struct named_for *n = context;
	return http_ticket_gone(n->work->agent->server, n->ticket);
}

/* --- profiles ------------------------------------------------------------- */

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
		"symbolize", "--to", form_name(form), "--symbols", named ? "full" : "none", "--memory-limit", CHILD_MEMORY, "--name", name, "-", NULL,
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

/* The profile is in *fd; what it becomes replaces it. On failure it is closed. Takes its time, and no session: others may dump. */
static int finish_form(struct work *w, const struct order *o, int *fd, uint64_t *n, struct error *err)
{
	struct named_for asked = { w, o->ticket };
	struct stat st;
	int made = -1, rc = HG_OK;
	if (o->form != FORM_PPROF || o->named)
		rc = work_name_profile(w->agent->options.symbolizer, o->form, o->named, *fd, &made, n, nobody_waits, &asked, err);
	else if (fstat(*fd, &st) < 0)
		rc = HG_IO;
	else
		*n = (uint64_t)st.st_size;
	if (rc || made >= 0)
		close(*fd);
	if (rc || made < 0)
		return rc;
	*fd = forks_own(made);
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

/* For the one who holds the session. */
static int dump_now(struct work *w, const struct order *o, const struct jemalloc *j, int *ret_fd, uint64_t *ret_n,
                    struct error *err)
{
	const char *spool = w->agent->options.spool_dir;
	struct dump_figures figures;
	int rc, fd = -1;
	if (o->form == FORM_JEHEAP) {
		rc = dump_text(j, spool, false, ret_fd, ret_n, &figures, err);
	} else if ((fd = dump_open_nameless(spool, err)) < 0) {
		return HG_IO;
	} else {
		struct dump_options options = { .spool_dir = spool, .default_type = o->alloc_first ? "alloc_space" : NULL };
		rc = dump_pprof(j, &options, dump_to_fd, &fd, &figures, err);
	}
	if (rc == HG_OK)
		count_dump(w, &figures);
	if (rc == HG_OK && fd >= 0)
		*ret_fd = fd;
	else if (fd >= 0)
		close(fd);
	return rc;
}

/* Names are looked up when the session is over: others' dumps don't wait for that. */
static void do_profile(struct work *w, const struct order *o)
{
	const struct jemalloc *j;
	struct error err = { 0 };
	int fd;
	uint64_t n;
	int rc = jemalloc_ready(&j);
	if (rc == HG_OK)
		rc = lock_patiently(w);
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
	w->span.base_fd = -1;
	pthread_mutex_unlock(&w->lock);
	/* It may have been open for an hour, in a program that closes what it doesn't know. */
	if (forks_owns(fd))
		close(fd);
}

/* The text, and how often samples had been forgotten when it was written. A reset in the very middle means another try. */
static int text_for_span(struct work *w, const struct jemalloc *j, int *ret_fd, unsigned *ret_resets, struct error *err)
{
	uint64_t n;
	int rc, fd = -1;
	unsigned resets;
	for (unsigned i = 0; i < QUIET_TRIES; i++) {
		rc = lock_patiently(w);
		if (rc)
			return rc;
		resets = jemalloc_resets();
		rc = dump_text(j, w->agent->options.spool_dir, true, &fd, &n, NULL, err);
		dump_unlock();
		if (rc)
			return rc;
		if (resets % 2 == 0 && resets == jemalloc_resets())
			break;
		if (i + 1 < QUIET_TRIES)
			close(fd);
	}
	*ret_fd = fd;
	*ret_resets = resets;
	return HG_OK;
}

static void begin_span(struct work *w, const struct order *o)
{
	const struct jemalloc *j;
	struct error err = { 0 };
	int base;
	unsigned resets;
	int rc = w->span.on ? HG_BUSY : jemalloc_ready(&j);
	if (rc == HG_OK)
		rc = text_for_span(w, j, &base, &resets, &err);
	if (rc) {
		answer_error(w, o, rc, &err);
		return;
	}
	int64_t now = agent_now_ms();
	pthread_mutex_lock(&w->lock);
	w->span = (struct span){
		.on = true, .order = *o, .base_fd = base, .resets = resets, .found_active = jemalloc_active(j),
		.begun_ms = now, .due_ms = now + (int64_t)o->activate_s * 1000,
	};
	rc = span_set_active(&w->span, j, true);
	pthread_mutex_unlock(&w->lock);
	if (rc) {
		end_span(w);
		answer_error(w, o, rc, NULL);
	}
}

/* What came since the base; since the reset, if there was one: nothing of the base is left then. */
static int growth_now(struct work *w, const struct jemalloc *j, int now_fd, unsigned resets, int *ret_fd, struct error *err)
{
	struct span *s = &w->span;
	int fd = dump_open_nameless(w->agent->options.spool_dir, err);
	if (fd < 0)
		return HG_IO;
	int rc = forks_owns(s->base_fd) ? lock_patiently(w) : HG_IO;
	if (rc == HG_IO)
		error_set(err, E_IO, "the program has closed the file with the first dump, as it closes all descriptors that aren't its own");
	if (rc == HG_OK) {
		int base = resets == s->resets ? s->base_fd : -1;
		rc = dump_growth(j, base, now_fd, (agent_now_ms() - s->begun_ms) * 1000000, dump_to_fd, &fd, err);
		dump_unlock();
	}
	if (rc)
		close(fd);
	else
		*ret_fd = fd;
	return rc;
}

static void finish_span(struct work *w)
{
	const struct jemalloc *j;
	struct error err = { 0 };
	struct order o = w->span.order;
	int now = -1, fd;
	unsigned resets;
	uint64_t n;
	int rc = jemalloc_ready(&j);
	if (rc == HG_OK)
		rc = text_for_span(w, j, &now, &resets, &err);
	pthread_mutex_lock(&w->lock);
	put_back(w);
	pthread_mutex_unlock(&w->lock);
	if (rc == HG_OK)
		rc = growth_now(w, j, now, resets, &fd, &err);
	if (now >= 0)
		close(now);
	end_span(w);
	if (rc == HG_OK)
		rc = finish_form(w, &o, &fd, &n, &err);
	if (rc)
		answer_error(w, &o, rc, &err);
	else
		answer_profile(w, &o, fd, n);
}

/* Sampling is over; what stays is seen in the end. */
static int begin_waiting(struct work *w)
{
	const struct jemalloc *j;
	struct span *s = &w->span;
	int rc = jemalloc_ready(&j);
	if (rc)
		return rc;
	pthread_mutex_lock(&w->lock);
	s->waiting = true;
	s->due_ms += (int64_t)s->order.wait_s * 1000;
	rc = span_set_active(s, j, false);
	pthread_mutex_unlock(&w->lock);
	return rc;
}

/* The span's next step, when it is due. */
static void step_span(struct work *w)
{
	struct span *s = &w->span;
	int rc = HG_OK;
	if (!s->on)
		return;
	if (http_ticket_gone(w->agent->server, s->order.ticket)) {
		end_span(w);
	} else if (agent_now_ms() >= s->due_ms) {
		struct order o = s->order;
		if (s->waiting || o.wait_s == 0)
			finish_span(w);
		else if ((rc = begin_waiting(w)) != HG_OK) {
			end_span(w);
			answer_error(w, &o, rc, NULL);
		}
	}
}

/* --- symbols -------------------------------------------------------------- */

static void do_symbols(struct work *w, const struct order *o)
{
	struct error err = { 0 };
	int fd = -1;
	uint64_t n = 0;
	int rc = lock_patiently(w);
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

static void do_reset(struct work *w, const struct order *o)
{
	const struct jemalloc *j;
	char storage[HTTP_SHORT_MAX];
	struct buf b = { .data = storage, .capacity = sizeof storage, .max = sizeof storage - 1 };
	int rc = jemalloc_ready(&j);
	if (rc == HG_OK)
		rc = jemalloc_reset(j, o->lg_sample);
	if (rc) {
		answer_error(w, o, rc, NULL);
		return;
	}
	status_json(w->agent, &b);
	if (b.failed)
		answer_error(w, o, HG_FAILED, NULL);
	else
		http_ticket_answer(w->agent->server, o->ticket, 200, "application/json", NULL, b.data, b.len);
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

static struct order take_first(struct order *items, size_t *n)
{
	struct order first = items[0];
	memmove(items, items + 1, --*n * sizeof *items);
	return first;
}

/* The next order, or none after a while; false at the end. */
static bool next_order(struct work *w, struct order *ret, bool *ret_any)
{
	int64_t wait_ms = IDLE_MS;
	pthread_mutex_lock(&w->lock);
	if (w->span.on) {
		int64_t left = w->span.due_ms - agent_now_ms();
		left = left < 1 ? 1 : left > SPAN_LOOK_MS ? SPAN_LOOK_MS : left;
		wait_ms = left < wait_ms ? left : wait_ms;
	}
	if (!w->stop && w->n_profiles == 0 && w->n_small == 0)
		wait_until(w, wait_ms);
	w->small_last = w->n_small > 0 && !(w->n_profiles > 0 && w->small_last);
	*ret_any = w->n_small > 0 || w->n_profiles > 0;
	if (*ret_any)
		*ret = w->small_last ? take_first(w->small, &w->n_small) : take_first(w->profiles, &w->n_profiles);
	bool go_on = !w->stop;
	pthread_mutex_unlock(&w->lock);
	return go_on;
}

static void do_order(struct work *w, const struct order *o)
{
	bool gone = http_ticket_gone(w->agent->server, o->ticket);
	if (o->kind == ORDER_SYMBOLS && gone)
		close(o->addresses_fd);
	else if (o->kind == ORDER_SYMBOLS)
		do_symbols(w, o);
	else if (o->kind == ORDER_RESET)
		do_reset(w, o);
	else if (is_span(o) && !gone)
		begin_span(w, o);
	else if (!gone)
		do_profile(w, o);
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
	while (w->n_small > 0)
		if (w->small[--w->n_small].kind == ORDER_SYMBOLS)
			close(w->small[w->n_small].addresses_fd);
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

bool work_changed_active(const struct agent *a, bool *ret_active)
{
	const struct work *w = a->work;
	if (!w || !w->span.on || !w->span.changed)
		return false;
	*ret_active = w->span.found_active;
	return true;
}

void work_counters(struct agent *a, struct work_counters *ret)
{
	struct work *w = a->work;
	pthread_mutex_lock(&w->lock);
	*ret = w->counters;
	pthread_mutex_unlock(&w->lock);
}
