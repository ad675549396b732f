/*
 * What the files of the query API share: a query on its way (api.c), its parameters (query_params.c), which series it is about
 * (query_selection.h), and the routes themselves (query_*.c, symbols_api.c).
 */
#ifndef RECORD_API_PRIVATE_H
#define RECORD_API_PRIVATE_H

#include <pthread.h>

#include "http/request.h"
#include "record/api.h"
#include "record/arena.h"

#define QUERY_ID_MAX 64

struct query;

/* Fills q->out. A failure becomes the status that query_status tells. */
typedef int query_run(struct query *q, struct error *err);

enum query_class { QUERY_QUICK, QUERY_HEAVY, QUERY_CLASSES };

struct api_query_route {
	const char *path;                   /* "/api/v1/labels" */
	const char *const *parameters;      /* NULL-terminated */
	query_run *run;
	enum query_class class;
};

extern const struct api_query_route api_query_routes[];     /* ends with path NULL */

struct query {
	struct api *api;
	const struct api_query_route *route;
	struct http_ticket ticket;
	uint64_t number;
	char id[QUERY_ID_MAX + 1];
	struct http_request request;        /* nothing but its query, which is a copy */
	struct arena arena;                 /* of what parameters say, and of what else is small */
	int64_t now_ms;                     /* what "now" means */
	uint64_t begun_ns;
	struct store_budget budget;         /* for the store; cancelled points to the next */
	atomic_bool cancelled;
	bool running;                       /* under the api's lock */
	struct query *next;                 /* under the api's lock */

	int status;                         /* 0: by the error's code */
	const char *type, *headers;
	struct buf out;
};

struct api_totals {
	uint64_t queries, ns;
	uint64_t refused, cancelled, gone, late, large, failed;     /* refused: 429; failed: 5xx but for what was cancelled */
};

struct api {
	struct api_settings settings;       /* no zeros */
	struct http_server *server;
	struct http_route *routes;
	struct mounted *mounted;            /* contexts of routes */
	size_t n_routes;
	pthread_t *threads;
	unsigned n_threads;

	pthread_mutex_t lock;               /* of what follows; never held over anything that blocks */
	pthread_cond_t wake;
	bool stop;
	struct query *first;                /* waiting and running ones, oldest first */
	unsigned n_waiting, n_running, n_heavy;
	uint64_t last_number;
	struct api_totals totals;
};

uint64_t api_clock_ns(void);
int64_t api_now_ms(void);                                  /* since 1970 */

/* --- answers at once, on the server's thread --- */

void api_answer_error(struct http_exchange *x, int status, const char *format, ...) __attribute__((format(printf, 3, 4)));
void api_add_error(struct buf *out, const char *text);     /* {"error": "..."} */
void api_answer_json(struct http_exchange *x, const struct buf *body);
/* All parameters are among names; else it is answered, and false. */
bool api_check_parameters(struct http_exchange *x, const char *const *names);

/* --- for the routes --- */

/* "There is none": 404. */
int query_missing(struct query *q, struct error *err, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* E_LIMIT when it has taken too long, or nobody waits any more: asked between two steps of a long work. */
int query_check(const struct query *q, struct error *err);
/* E_LIMIT: so much memory is held, or will be. */
int query_check_memory(const struct query *q, size_t bytes, struct error *err);

/* --- parameters: after the first failure nothing is read any more --- */

struct params {
	struct query *q;
	struct error *err;
	int failed;
};

bool param_given(struct params *p, const char *name);
/* NULL: not given. Lives as long as the query. */
const char *param_text(struct params *p, const char *name);
uint64_t param_number(struct params *p, const char *name, uint64_t fallback, uint64_t low, uint64_t high);
bool param_flag(struct params *p, const char *name);
/* Position in words, which end with NULL. */
int param_choice(struct params *p, const char *name, const char *const *words, int fallback);
int64_t param_time(struct params *p, const char *name, int64_t fallback);
int64_t param_duration(struct params *p, const char *name, int64_t fallback);
enum metric param_metric(struct params *p, enum metric fallback);
/* All values of a repeatable one. */
size_t param_list(struct params *p, const char *name, const char ***ret);

/* RFC 3339, seconds or milliseconds since 1970, "now", "-2h". */
bool query_time(const char *text, int64_t now_ms, int64_t *ret_ms);

#endif
