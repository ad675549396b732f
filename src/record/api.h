/*
 * What is asked of the recorder: the routes below /api/v1/ that read the store (docs/openapi.yaml). Mounted beside the recorder's own routes
 * on one server:
 *
 *   api_new -> api_routes into the server's table -> http_server_new -> api_start -> http_server_run -> api_free -> http_server_free
 *
 * A request is read on the server's thread, and parked; one of a few threads answers it. There are at most so many at a time, and so many
 * that wait: what is beyond is answered 429 at once. Each has a time and a memory limit, and is given up when its client is gone or when it
 * is cancelled by name.
 */
#ifndef RECORD_API_H
#define RECORD_API_H

#include "http/server.h"
#include "record/symbols.h"
#include "store/store.h"

struct api;

struct api_settings {
	struct store *store;                /* borrowed, like all that follows */
	struct symbols *symbols;            /* NULL: no names are looked for, and no files taken */
	const char *title;                  /* NULL: "heapgauge" */
	const char *version;                /* of heapgauge; NULL: "" */
	const char *url;                    /* how this recorder is reached, for commands that are shown: "http://host:7080"; NULL: as the server says */
	unsigned threads;                   /* queries at a time; 0: 2 */
	unsigned waiting;                   /* that wait for a thread; 0: 64 */
	uint32_t timeout_ms;                /* of a query, waiting included; 0: 30 s */
	size_t max_bytes;                   /* of memory for one query; 0: 256 MiB */
};

int api_new(const struct api_settings *s, struct api **ret, struct error *err);
/* *ret_n of them; they have their context themselves. Good for as long as the api. */
const struct http_route *api_routes(const struct api *a, size_t *ret_n);
/* Starts the threads; server is the one the routes were mounted on. */
int api_start(struct api *a, struct http_server *server, struct error *err);
/* Ends the threads: what is at work is cancelled. After the server has stopped running, before it is freed. NULL is fine. */
void api_free(struct api *a);

/* Appends lines for /metrics: heapgauge_api_... */
void api_metrics(struct api *a, struct buf *out);

#endif
