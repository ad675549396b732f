/*
 * What the endpoint answers. Handlers run on the server's thread and never wait: what is at hand is answered, the rest becomes an order
 * (agent/work.h).
 */
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "agent/agent.h"
#include "agent/dump.h"
#include "agent/memory.h"
#include "agent/metrics.h"
#include "agent/symbol_body.h"
#include "agent/work.h"
#include "base/text.h"

/* What an exchange carries from its handler to its end. */
struct visit {
	bool parked;
	uint32_t place;
	struct symbol_body body;
};
_Static_assert(sizeof(struct visit) <= 64, "an exchange has this much room");

static int code_status(int code)
{
	return code == HG_BUSY ? 429 : code == HG_NO_JEMALLOC || code == HG_NO_PROFILING ? 501
	       : code == HG_PROF_OFF || code == HG_INACTIVE ? 403 : code == HG_INVALID ? 400 : 500;
}

static void answer_code(struct http_exchange *x, int code)
{
	char text[512];
	int n = snprintf(text, sizeof text, "%s\n", jemalloc_advice(code));
	http_answer(x, code_status(code), "text/plain; charset=utf-8", code == HG_BUSY ? "Retry-After: 1\r\n" : NULL, text,
	            (size_t)n < sizeof text ? (size_t)n : sizeof text - 1);
}

/* Parks the exchange and hands the order over. Who doesn't fetch his answer makes room for who asks for one. */
static void submit(struct agent *a, struct http_exchange *x, struct order *o)
{
	struct visit *v = http_exchange_user(x);
	struct work_refusal refusal;
	while (o->kind == ORDER_PROFILE && work_is_overfull(a) && http_drop_stalled(a->server)) {
	}
	o->ticket = http_park(x);
	v->parked = true;
	v->place = o->ticket.place;
	if (work_submit(a, o, &refusal)) {
		char text[sizeof refusal.text + 1], headers[40];
		int n = snprintf(text, sizeof text, "%s\n", refusal.text);
		snprintf(headers, sizeof headers, "Retry-After: %u\r\n", refusal.retry_s);
		http_ticket_answer(a->server, o->ticket, 429, "text/plain; charset=utf-8", headers, text, (size_t)n);
	}
}

void agent_exchange_over(void *agent, struct http_exchange *x, bool answered)
{
	struct visit *v = http_exchange_user(x);
	(void)answered;
	if (v->parked)
		work_sent(agent, v->place);
	symbol_body_abandon(&v->body);
}

/* --- profiles -------------------------------------------------------------- */

static const char *const profile_parameters[] = { "seconds", "format", "debug", "symbolize", "gc", NULL };
static const char *const survivors_parameters[] = { "activate", "wait", "format", "symbolize", NULL };

/* A whole number of a parameter, or fallback when it isn't there; false (answered) when it is none or above most. */
static bool number_of(struct http_exchange *x, const char *name, unsigned fallback, unsigned most, unsigned *ret)
{
	char text[24];
	uint64_t value;
	int n = http_query(http_exchange_request(x), name, text, sizeof text);
	*ret = fallback;
	if (n == -1)
		return true;
	if (n < 0 || !text_parse_u64(text, (size_t)n, 10, &value) || value > most) {
		http_answer_text(x, 400, "%s: a whole number of at most %u is expected", name, most);
		return false;
	}
	*ret = (unsigned)value;
	return true;
}

static bool form_asked(struct http_exchange *x, struct order *o)
{
	char text[24];
	unsigned named, debug;
	int n = http_query(http_exchange_request(x), "format", text, sizeof text);
	int form = n == -1 ? FORM_PPROF : n < 0 ? -1 : form_of(text);
	if (form < 0) {
		http_answer_text(x, 400, "format: pprof, jeheap, folded, svg, html, text or json is expected");
		return false;
	}
	if (!number_of(x, "debug", 0, 2, &debug))
		return false;
	if (debug && n == -1)
		form = FORM_TEXT;
	o->form = (enum profile_form)form;
	/* A viewer finds a pprof file's names itself; in the other forms nobody can any more. */
	if (!number_of(x, "symbolize", form != FORM_PPROF && form != FORM_JEHEAP, 1, &named))
		return false;
	o->named = named;
	return true;
}

static void profile(struct agent *a, struct http_exchange *x, bool alloc_first)
{
	struct order o = { .kind = ORDER_PROFILE, .alloc_first = alloc_first };
	if (!form_asked(x, &o) || !number_of(x, "seconds", 0, AGENT_SPAN_MAX_S, &o.activate_s))
		return;
	if (o.form == FORM_JEHEAP && o.activate_s) {
		http_answer_text(x, 400, "format=jeheap is jemalloc's own dump, which knows no seconds: leave one of them out");
		return;
	}
	if (o.form == FORM_JEHEAP && o.named) {
		http_answer_text(x, 400, "format=jeheap has no names: leave symbolize=1 out");
		return;
	}
	int rc = jemalloc_ready(NULL);
	if (rc)
		answer_code(x, rc);
	else
		submit(a, x, &o);
}

static void get_heap(void *agent, struct http_exchange *x)
{
	profile(agent, x, false);
}

static void get_allocs(void *agent, struct http_exchange *x)
{
	profile(agent, x, true);
}

static void get_survivors(void *agent, struct http_exchange *x)
{
	struct order o = { .kind = ORDER_PROFILE };
	if (!form_asked(x, &o) || !number_of(x, "activate", 30, AGENT_SPAN_MAX_S, &o.activate_s) ||
	    !number_of(x, "wait", 30, AGENT_SPAN_MAX_S, &o.wait_s))
		return;
	if (o.form == FORM_JEHEAP || o.activate_s == 0) {
		http_answer_text(x, 400, "survivors: activate must be at least 1, and there is no format=jeheap of it");
		return;
	}
	int rc = jemalloc_ready(NULL);
	if (rc)
		answer_code(x, rc);
	else
		submit(agent, x, &o);
}

/* jeprof's: jemalloc's text. */
static void get_jeheap(void *agent, struct http_exchange *x)
{
	struct order o = { .kind = ORDER_PROFILE, .form = FORM_JEHEAP };
	int rc = jemalloc_ready(NULL);
	if (rc)
		answer_code(x, rc);
	else
		submit(agent, x, &o);
}

/* --- symbols --------------------------------------------------------------- */

static void symbol_bytes(void *agent, struct http_exchange *x, const char *bytes, size_t n)
{
	struct visit *v = http_exchange_user(x);
	struct error err = { 0 };
	(void)agent;
	if (symbol_body_add(&v->body, bytes, n, &err))
		http_answer_text(x, err.code == E_FORMAT ? 400 : 500, "%s", err.text);
}

static void symbol(void *agent, struct http_exchange *x)
{
	struct visit *v = http_exchange_user(x);
	struct order o = { .kind = ORDER_SYMBOLS };
	struct error err = { 0 };
	const struct http_request *r = http_exchange_request(x);
	if (r->method != HTTP_POST && r->query.n == 0) {
		http_answer_text(x, 200, "num_symbols: 1");
		return;
	}
	int rc = r->method != HTTP_POST ? symbol_body_add(&v->body, r->query.at, r->query.n, &err) : E_OK;
	if (rc == E_OK)
		rc = symbol_body_end(&v->body, &o.addresses_fd, &o.n_addresses, &err);
	if (rc)
		http_answer_text(x, err.code == E_FORMAT ? 400 : 500, "%s", err.text);
	else
		submit(agent, x, &o);
}

static void get_cmdline(void *agent, struct http_exchange *x)
{
	const struct agent *a = agent;
	char text[HTTP_SHORT_MAX];
	ssize_t n;
	if (a->options.serve_arguments) {
		int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
		n = fd >= 0 ? read(fd, text, sizeof text) : -1;
		if (fd >= 0)
			close(fd);
	} else {
		static const char gone[] = " (deleted)";
		n = readlink("/proc/self/exe", text, sizeof text);
		/* The file may have been replaced by now: its path is what is asked for. */
		if (n > (ssize_t)sizeof gone - 1 && memcmp(text + n - (sizeof gone - 1), gone, sizeof gone - 1) == 0)
			n -= (ssize_t)sizeof gone - 1;
	}
	if (n < 0)
		http_answer_text(x, 500, "the program's path cannot be read: is /proc there?");
	else
		http_answer(x, 200, "text/plain; charset=utf-8", NULL, text, (size_t)n);
}

/* --- control and state ------------------------------------------------------ */

static void get_status(void *agent, struct http_exchange *x)
{
	char storage[HTTP_SHORT_MAX];
	struct buf b = { .data = storage, .capacity = sizeof storage, .max = sizeof storage - 1 };
	status_json(agent, &b);
	if (b.failed)
		http_answer_text(x, 500, "the state is too long to tell");
	else
		http_answer(x, 200, "application/json", NULL, b.data, b.len);
}

static void get_metrics(void *agent, struct http_exchange *x)
{
	char storage[HTTP_SHORT_MAX];
	struct buf b = { .data = storage, .capacity = sizeof storage, .max = sizeof storage - 1 };
	metrics_text(agent, &b);
	if (b.failed)
		http_answer_text(x, 500, "the metrics are too long to tell");
	else
		http_answer(x, 200, "text/plain; version=0.0.4; charset=utf-8", NULL, b.data, b.len);
}

static void set_active(struct agent *a, struct http_exchange *x, bool active)
{
	int rc = work_set_active(a->work, active);
	if (rc)
		answer_code(x, rc);
	else
		get_status(a, x);
}

static void post_activate(void *agent, struct http_exchange *x)
{
	set_active(agent, x, true);
}

static void post_deactivate(void *agent, struct http_exchange *x)
{
	set_active(agent, x, false);
}

/* jemalloc has this wait for a dump that is being written. */
static void post_reset(void *agent, struct http_exchange *x)
{
	struct order o = { .kind = ORDER_RESET };
	unsigned lg;
	if (!number_of(x, "lg_sample", 63, 62, &lg))
		return;
	o.lg_sample = lg > 62 ? -1 : (int)lg;
	int rc = jemalloc_ready(NULL);
	if (rc)
		answer_code(x, rc);
	else
		submit(agent, x, &o);
}

static void get_index(void *agent, struct http_exchange *x)
{
	static const char text[] =
	    "heapgauge: the heap of this process\n"
	    "\n"
	    "GET  /debug/pprof/heap               pprof; seconds=N, format=jeheap|folded|svg|html|text|json, symbolize=1, debug=1\n"
	    "GET  /debug/pprof/allocs             the same, alloc_space first\n"
	    "GET  /debug/pprof/survivors          allocated in activate=30 s, still live wait=30 s later\n"
	    "GET  /debug/pprof/symbol, POST       names for addresses (symbolz)\n"
	    "GET  /pprof/heap /pprof/symbol /pprof/cmdline    what jeprof asks for\n"
	    "POST /heapgauge/activate /heapgauge/deactivate /heapgauge/reset?lg_sample=N\n"
	    "GET  /heapgauge/status /metrics\n";
	(void)agent;
	http_answer(x, 200, "text/plain; charset=utf-8", NULL, text, sizeof text - 1);
}

static const char *const reset_parameters[] = { "lg_sample", NULL };

#define SYMBOL(at) { .path = at, .methods = HTTP_GET | HTTP_POST, .raw_query = true, .body_max = SYMBOL_BODY_MAX, .handle = symbol, .body = symbol_bytes }

const struct http_route agent_routes[] = {
	{ .path = "/debug/pprof/heap", .methods = HTTP_GET, .parameters = profile_parameters, .handle = get_heap },
	{ .path = "/debug/pprof/allocs", .methods = HTTP_GET, .parameters = profile_parameters, .handle = get_allocs },
	{ .path = "/debug/pprof/survivors", .methods = HTTP_GET, .parameters = survivors_parameters, .handle = get_survivors },
	SYMBOL("/debug/pprof/symbol"),
	SYMBOL("/pprof/symbol"),
	{ .path = "/pprof/heap", .methods = HTTP_GET, .handle = get_jeheap },
	{ .path = "/pprof/cmdline", .methods = HTTP_GET, .handle = get_cmdline },
	{ .path = "/heapgauge/activate", .methods = HTTP_POST, .handle = post_activate },
	{ .path = "/heapgauge/deactivate", .methods = HTTP_POST, .handle = post_deactivate },
	{ .path = "/heapgauge/reset", .methods = HTTP_POST, .parameters = reset_parameters, .handle = post_reset },
	{ .path = "/heapgauge/status", .methods = HTTP_GET, .handle = get_status },
	{ .path = "/metrics", .methods = HTTP_GET, .handle = get_metrics },
	{ .path = "/debug/pprof/", .methods = HTTP_GET, .handle = get_index },
	{ .path = "/", .methods = HTTP_GET, .handle = get_index },
	{ .path = NULL },
};
