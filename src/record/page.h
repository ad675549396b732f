/*
 * The web page at "/", for people who look at the recorder with a browser. It asks the routes below /api/v1/ for what it shows.
 *
 *   recorder_page_new -> recorder_page_routes into the server's table -> ... -> http_server_free -> recorder_page_free
 */
#ifndef RECORD_PAGE_H
#define RECORD_PAGE_H

#include "base/error.h"
#include "http/server.h"

struct recorder_page;

/* Also when the program was built without the page: then its place says so. */
int recorder_page_new(struct recorder_page **ret, struct error *err);
/* *ret_n of them; they have their context themselves. Good for as long as the page. */
const struct http_route *recorder_page_routes(const struct recorder_page *p, size_t *ret_n);
void recorder_page_free(struct recorder_page *p);      /* NULL is fine */

#endif
