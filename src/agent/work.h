/*
 * What takes time is done on one thread of the agent's, one thing after the other, while the server's thread goes on
 * answering. A request hands over an order; its answer goes back through the exchange's ticket.
 *
 * Orders with a span ("seconds=5", "survivors") hold nothing while they wait: other dumps go on in between. They may switch sampling on or off
 * and put it back as they found it: at their end, when their client goes away, when the agent stops, and in a forked child.
 */
#ifndef AGENT_WORK_H
#define AGENT_WORK_H

#include "agent/agent.h"
#include "http/server.h"

enum order_kind { ORDER_PROFILE, ORDER_SYMBOLS, ORDER_RESET };

enum profile_form {
	FORM_PPROF, FORM_JEHEAP, FORM_FOLDED, FORM_SVG, FORM_HTML, FORM_TEXT, FORM_JSON,
};
/* "pprof", "jeheap", ...; -1 when there is no such form. */
int form_of(const char *name);
const char *form_name(enum profile_form form);
const char *form_type(enum profile_form form);         /* text/html; charset=utf-8 */

struct order {
	enum order_kind kind;
	struct http_ticket ticket;
	enum profile_form form;
	bool named;                     /* by the symbolizer */
	bool alloc_first;               /* alloc_space is the default type */
	unsigned activate_s, wait_s;    /* a span: sampling for so long, then not sampling for so long; both 0: as it is now */
	int addresses_fd;               /* ORDER_SYMBOLS: 64-bit addresses; the order takes it over */
	uint64_t n_addresses;
	int lg_sample;                  /* ORDER_RESET: -1: as it is. It waits for a dump that is being written */
};

/* Why an order wasn't taken. */
struct work_refusal {
	char text[160];
	unsigned retry_s;               /* when it may be */
};

/*
 * Takes an order. HG_BUSY: a dump, or another span, is on its way; the order's descriptor is then closed. Any thread.
 */
int work_submit(struct agent *a, const struct order *o, struct work_refusal *ret_refusal);

/* Answers on their way take more memory than they should. */
bool work_is_overfull(struct agent *a);

/* Puts sampling to what the user wants, also what a span will put it back to. w may be NULL. */
int work_set_active(struct work *w, bool active);

/* Maps what it needs into a->work: HG_NO_MEMORY. Free when the thread has ended. */
int work_new(struct agent *a);
void work_free(struct agent *a);
/* The thread. */
void *work_main(void *agent);
void work_stop(struct agent *a);
/* In a forked child: a span had changed sampling, and it was *ret_active before. Touches no lock. */
bool work_changed_active(const struct agent *a, bool *ret_active);

/* The answer that had this place is on its way no more. */
void work_sent(struct agent *a, uint32_t place);

/* Of dumps so far, for /metrics. Any thread. */
struct work_counters {
	uint64_t dumps, failed, refused, symbolized;
	double last_dump_ms, last_whole_ms;
	double last_inuse_bytes;        /* estimated, by the last dump's header; < 0: there was none */
	uint64_t last_text_bytes;
};
void work_counters(struct agent *a, struct work_counters *ret);

/* A profile by the symbolizer: profile_fd is gzipped pprof, read from offset 0. Takes its time, and no session. HG codes. */
int work_name_profile(const char *symbolizer, enum profile_form form, bool named, int profile_fd, int *ret_fd,
                      uint64_t *ret_n, bool (*cancelled)(void *context), void *context, struct error *err);

#endif
