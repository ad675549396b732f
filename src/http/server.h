/*
 * A small HTTP/1.1 server on one thread: poll, a fixed number of connections, fixed buffers, "Connection: close" always. It takes
 * no memory from malloc: everything it needs is mapped in http_server_new. Shared by the agent and the recorder.
 *
 * A request passes: accept -> head (http/request.h) -> access (http/access.h) -> route -> handler, on the server's thread. The
 * handler answers at once, or parks the exchange, and somebody on another thread answers it later. Answers are short texts
 * (copied) or descriptors (sent with sendfile, then closed).
 *
 * When all places are taken the connection that has waited longest without having sent a whole request loses its place, then one that
 * doesn't take its answer: a client that sends its request at once is served however many others hold sockets open. Only parked exchanges
 * keep their places: handlers see to it that there are fewer of them than places.
 *
 * A client that has sent its request and shuts down its half of the connection still gets its answer. Whether it has gone altogether
 * while its exchange is parked is known at once on a unix socket. TCP can't tell these apart, so a HTTP/1.1 client is sent "100 Continue",
 * which it has to pass over, and which at a socket that is closed brings a reset. Who is missed by that (HTTP/1.0, half closed first and
 * closed later, a machine that was switched off) is noticed by keepalive, within two minutes.
 */
#ifndef HTTP_SERVER_H
#define HTTP_SERVER_H

#include "base/error.h"
#include "http/access.h"

struct http_server;
struct http_exchange;

struct http_limits {                    /* 0: the default */
	unsigned connections;               /* 64 */
	size_t head_bytes;                  /* 8 KiB */
	unsigned head_ms;                   /* for the whole head: 5 s; and again for a body */
	unsigned idle_ms;                   /* without progress (16 KiB, or the end) while answering: 30 s */
};

#define HTTP_SHORT_MAX ((size_t)4 << 10)    /* bytes of a short answer's body */

struct http_route {
	const char *path;                   /* exactly */
	unsigned methods;                   /* HTTP_GET (HEAD goes with it), HTTP_POST, or both */
	const char *const *parameters;      /* the query's, NULL-terminated; another one is answered 400. NULL: none */
	bool raw_query;                     /* the handler reads the query itself, whatever it is: parameters don't count */
	uint64_t body_max;                  /* of a POST; 0: bodyless (a Content-Length above 0 is 413). More than it: 413; no length: 411 */
	/*
	 * The head is there, and with body_max 0 that is all. Must not block. Has to answer, or park.
	 * With a body, it is called when the body is complete; body() got it before.
	 */
	void (*handle)(void *context, struct http_exchange *x);
	/* A piece of a body, in order. May answer early (413, 400): then no more comes, and handle is not called. */
	void (*body)(void *context, struct http_exchange *x, const char *bytes, size_t n);
	/* A large body may take as long as it goes on: 16 KiB within limits.head_ms, and again. */
	bool patient;
	/* Of its handlers, and what is told that its exchanges are over; NULL: the settings' own. */
	void *context;
	void (*over)(void *context, struct http_exchange *x, bool answered);
};

struct http_settings {
	const struct http_route *routes;    /* ends with path NULL; borrowed */
	void *context;                      /* of the handlers */
	/*
	 * An exchange is over: answered, or the client is gone (answered false). user is what http_exchange_user pointed to. Called once for
	 * each exchange whose handler or body() was called, on the server's thread. May be NULL.
	 */
	void (*over)(void *context, struct http_exchange *x, bool answered);
	/*
	 * The program had closed the server's descriptors, as some do with all they don't know, and it listens again at its address. On the
	 * server's thread. May be NULL.
	 */
	void (*reopened)(void *context);
	struct http_limits limits;
};

/*
 * listen_text: "unix:/path", "127.0.0.1:6060", "[::1]:0", "localhost:6060". allow_remote: addresses that aren't loopback, which also need
 * a token (E_UNSUPPORTED with a sentence otherwise; E_USAGE: not an address). The socket file is made for its owner only, its folder (0700), too, when that is what
 * is missing; a stale one (nobody listens) is replaced, anything else in its place is an error.
 * *a is copied, and completed (local_socket, remote).
 */
int http_server_new(const char *listen_text, bool allow_remote, const struct http_access *a,
                    const struct http_settings *s, struct http_server **ret, struct error *err);
/* Runs until http_server_stop; call it on the thread that shall be the server's. */
void http_server_run(struct http_server *s);
/* Exchanges that are under way are dropped; over() is told. */
void http_server_stop(struct http_server *s);          /* from any thread, and async-signal-safe */
/* After run has returned (or never began). Removes the socket file. */
void http_server_free(struct http_server *s);
/* In a forked child: closes the descriptors without touching the socket file; then the memory is given back. */
void http_server_abandon(struct http_server *s);
/* "http://127.0.0.1:6060" or "unix:/path". */
const char *http_server_url(const struct http_server *s);

struct http_counters {
	uint64_t accepted, evicted, timeouts;
	uint64_t requests;                  /* whole heads */
	uint64_t bytes_sent;
	uint64_t statuses[6];               /* whole answers; [2]: 2xx, ... */
};
void http_server_counters(struct http_server *s, struct http_counters *ret);   /* from any thread */

/* --- exchanges: these from handlers and body(), on the server's thread; of several answers the first one counts --- */

const struct http_request *http_exchange_request(const struct http_exchange *x);
/* Sixty-four bytes for the handler, aligned for anything, zero at the beginning. */
void *http_exchange_user(struct http_exchange *x);

/*
 * headers: whole further lines, each ended by CRLF, or NULL. body: up to HTTP_SHORT_MAX bytes, copied. A HEAD gets the head only.
 * What is too long is answered 500. Every answer has Content-Length, Connection: close, Cache-Control: no-store, X-Content-Type-Options: nosniff and
 * a Content-Security-Policy that allows nothing but inline style and script, unless headers begin with one of their own.
 */
void http_answer(struct http_exchange *x, int status, const char *content_type, const char *headers,
                 const void *body, size_t n);
/* A sentence as text/plain, with a newline; cut at 1,000 bytes. */
void http_answer_text(struct http_exchange *x, int status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* n bytes of fd (a file or memfd) from offset 0; takes fd over and closes it, whatever happens. */
void http_answer_fd(struct http_exchange *x, int status, const char *content_type, const char *headers,
                    int fd, uint64_t n);

/*
 * The answer comes later, from another thread: with the exchange's ticket and the calls below, which do nothing (and close fd) when the client
 * has gone. gone(): nobody waits (any more), so work can be given up. The server has to outlive the threads that hold its tickets.
 */
struct http_ticket {
	uint32_t place, serial;
};
struct http_ticket http_park(struct http_exchange *x);
bool http_ticket_gone(struct http_server *s, struct http_ticket t);
void http_ticket_answer(struct http_server *s, struct http_ticket t, int status, const char *content_type,
                        const char *headers, const void *body, size_t n);
void http_ticket_answer_fd(struct http_server *s, struct http_ticket t, int status,
                           const char *content_type, const char *headers, int fd, uint64_t n);

/*
 * From a handler: closes the connection that has not taken any of its answer, a descriptor's, for longest, if that is a quarter of a
 * second or more. False: there is none.
 */
bool http_drop_stalled(struct http_server *s);

const char *http_status_words(int status);             /* "Too Many Requests" */

#endif
