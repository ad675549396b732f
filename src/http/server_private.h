/*
 * What the files of the server share. A connection is a place in a fixed array, and the exchange on it is the same struct: there is one
 * request on a connection. Everything belongs to the server's thread, but for the fields that say otherwise.
 */
#ifndef HTTP_SERVER_PRIVATE_H
#define HTTP_SERVER_PRIVATE_H

#include "http/server.h"

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>
#include <sys/un.h>

#define HTTP_ANSWER_HEAD_MAX ((size_t)2 << 10)
#define HTTP_OUT_BYTES (HTTP_ANSWER_HEAD_MAX + HTTP_SHORT_MAX)
#define HTTP_SCRATCH_BYTES ((size_t)16 << 10)
#define HTTP_USER_BYTES 64

enum http_state {
	HTTP_FREE,          /* the place has no connection */
	HTTP_READS_HEAD,
	HTTP_READS_BODY,
	HTTP_PARKED,        /* another thread has the ticket */
	HTTP_SENDS,
	HTTP_LINGERS        /* answered; what the client still sends is thrown away, so that no reset overtakes the answer */
};

struct http_exchange {
	struct http_server *server;
	uint32_t place;
	int fd;
	enum http_state state;
	int64_t since_ms;               /* in the state, or the last progress in it */
	int64_t deadline_ms;            /* INT64_MAX: none */

	char *in;                       /* limits.head_bytes */
	size_t in_n;
	struct http_request request;    /* points into in */
	const struct http_route *route;
	uint64_t body_left;
	bool whole;                     /* the request was read to its end, and nothing came behind it */
	bool engaged;                   /* a handler has seen it: over() is owed */
	bool half_closed;               /* while parked: the client sends no more */

	size_t out_at;
	uint64_t unprogressed;          /* bytes of body or answer since since_ms was put forward */

	/* Under the server's lock, as another thread may answer; once answered, and until the ticket ends, the server's thread's. */
	uint32_t serial;                /* of the ticket; the next one when this exchange is over */
	bool waiting;                   /* parked */
	bool answered;                  /* what follows is set */
	int status;
	char *out;                      /* HTTP_OUT_BYTES: head and short body */
	size_t out_n;
	int send_fd;                    /* -1: none */
	off_t send_at;
	uint64_t send_left;

	_Alignas(16) unsigned char user[HTTP_USER_BYTES];
};

/*
 * A socket that lives as long as the server, and which one it was: some programs close every descriptor that they don't know, and their own
 * files get the numbers. What isn't ours any more is neither used nor closed.
 */
struct http_owned {
	int fd;                         /* -1: none */
	dev_t device;
	ino_t inode;
};

struct http_listener {
	struct http_owned socket;
	bool local_socket, remote;
	char url[sizeof(((struct sockaddr_un *)0)->sun_path) + 8];
	/* The socket file, and which one it was: another server may have replaced it since. */
	char path[sizeof(((struct sockaddr_un *)0)->sun_path)];
	dev_t device;
	ino_t inode;
};

struct http_server {
	struct http_settings settings;
	struct http_limits limits;      /* no zeros */
	struct http_access access;
	struct http_listener listener;
	struct http_owned wake[2];      /* a pair: a byte in [1] says that stop was called, or that a parked exchange was answered */
	atomic_bool stopping;
	pthread_mutex_t lock;           /* of the exchanges' fields that say so; the only one, never held over a system call that blocks */
	int64_t now_ms;
	int64_t accept_after_ms;        /* there were no descriptors left: not before then */
	struct http_exchange *places;
	unsigned n_open;
	struct pollfd *polls;           /* wake, listener, then connections */
	uint32_t *polled;               /* the place of each of those connections */
	char *buffers;
	size_t buffers_bytes;           /* of one place: in and out, whole pages */
	char *scratch;                  /* HTTP_SCRATCH_BYTES: a piece of a body, or what is thrown away */
	size_t mapped_bytes;            /* of everything, this struct included */
	_Atomic uint64_t accepted, evicted, timeouts, requests, bytes_sent, statuses[6];
};

static inline void http_count(_Atomic uint64_t *counter, uint64_t n)
{
	atomic_fetch_add_explicit(counter, n, memory_order_relaxed);
}

/* It hasn't sent its whole request. */
static inline bool http_connection_reads(const struct http_exchange *x)
{
	return x->state == HTTP_READS_HEAD || x->state == HTTP_READS_BODY;
}

/* server.c */
void http_wake(struct http_server *s);                        /* from any thread, and async-signal-safe */

/* listen.c */
bool http_own(struct http_owned *o, int fd);                  /* false when it can't be told which one it is */
bool http_owns(const struct http_owned *o);                   /* async-signal-safe */
void http_disown(struct http_owned *o);                       /* closes it */
int http_listen(const char *text, bool allow_remote, bool has_token, struct http_listener *ret, struct error *err);
void http_listener_close(struct http_listener *l, bool remove_file);

/* connection.c: each may end the connection, its place is free then */
void http_connection_begin(struct http_exchange *x, int fd);
void http_connection_event(struct http_exchange *x, short events);
void http_connection_late(struct http_exchange *x);
void http_connection_answered(struct http_exchange *x);       /* a parked one has its answer */
void http_connection_refuse(struct http_exchange *x, int status);
void http_connection_evict(struct http_exchange *x);
void http_connection_close(struct http_exchange *x);
short http_connection_wants(const struct http_exchange *x);   /* events for poll */

/* answer.c: an answer of the server's own, for that status */
void http_answer_refusal(struct http_exchange *x, int status);

#endif
