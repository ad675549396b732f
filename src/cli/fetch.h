/*
 * One GET over HTTP (or a POST): what a URL or a unix socket answers, in memory. By libcurl, which is loaded when the first one is made:
 * linked, it would cost every command 5 ms at its start.
 */
#ifndef CLI_FETCH_H
#define CLI_FETCH_H

#include <limits.h>

#include "base/buf.h"
#include "base/error.h"

struct fetch_address {
	char socket[PATH_MAX];      /* of a unix socket; "": none */
	char *url;                  /* what libcurl gets: "http://host:1234/debug/pprof/heap?seconds=5" */
	char *shown;                /* for messages: as it was typed, without a password */
};

/*
 * "http://host:1234", "https://host/path?query", "unix:/sock", "unix:/sock?seconds=5", "unix:/sock?/path?query". Without a path
 * it is path: that of heap profiles, when NULL. E_USAGE says what is wrong with it.
 */
int fetch_address_parse(const char *text, const char *path, struct fetch_address *ret, struct error *err);
void fetch_address_finish(struct fetch_address *a);

/*
 * The body of the answer, into to (its max is the limit: E_LIMIT). Anything but 200 is E_IO with the sentence that the
 * other side gave. Two seconds for the connection; given up when nothing moves for 30 s more than the "seconds",
 * "activate" and "wait" of the query. No redirects; no proxies for unix sockets and loopback. token: sent as "Authorization:
 * Bearer", NULL: none.
 */
int fetch(const struct fetch_address *a, const char *token, struct buf *to, struct error *err);

/* A POST whose body is a file: bytes of fd from its beginning. *ret_status: what was answered, 0: nothing. Otherwise as fetch. */
int fetch_send(const struct fetch_address *a, const char *token, int fd, uint64_t bytes, struct buf *to, long *ret_status,
               struct error *err);

#endif
