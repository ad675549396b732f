/*
 * Who may ask. A unix socket: this user and root (SO_PEERCRED). A loopback address: every local process can connect, and so can a web page
 * through its visitor's browser; so the Host must be a name of loopback with our port, or one that was
 * allowed, and a request with an Origin that is not our own is refused. Any other address: a token, always.
 */
#ifndef HTTP_ACCESS_H
#define HTTP_ACCESS_H

#include "base/error.h"
#include "http/request.h"

#define HTTP_TOKEN_MAX 256
#define HTTP_TOKEN_MIN 16
#define HTTP_HOSTS_MAX 512

struct http_access {
	bool local_socket;                  /* a unix socket: no Host or Origin to look at */
	uint16_t port;                      /* ours */
	char token[HTTP_TOKEN_MAX + 1];     /* "": none asked for */
	char hosts[HTTP_HOSTS_MAX];         /* more Host values that are fine, separated by commas */
	/* Wrong tokens lately: more than 10 in a minute are answered 429 without looking at them. */
	unsigned wrong;
	int64_t wrong_since_ms;
};

/* The token of a file that only its owner may read (E_USAGE otherwise): its first line. */
int http_read_token(const char *path, char to[HTTP_TOKEN_MAX + 1], struct error *err);

/* 0: may go on; otherwise the status that answers it (400, 401, 403, 421, 429). Compares tokens in constant time. */
int http_check_access(struct http_access *a, const struct http_request *r, int64_t now_ms);

/* May the other end of a unix socket's connection ask? Our user or root. */
bool http_peer_allowed(int fd);

#endif
