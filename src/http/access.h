/*
 * Who may ask. A unix socket: this user and root (SO_PEERCRED). A loopback address: every local process can connect, and so can a web page
 * through its visitor's browser; so the Host must be a name of loopback, or one that was allowed (else a stranger's name that
 * was made to point here would make us his page's own server), and a request of another page is refused: its Origin is not
 * that Host, or the browser calls it cross-site. With which port is not asked: a forwarded one is another
 * (ssh -L, kubectl port-forward), and no stranger's page can send loopback's name. Any other address: a token, always.
 *
 * A token comes as "Authorization: Bearer TOKEN", or as the password of Basic, for clients that can only be given
 * http://any:TOKEN@host/ (go tool pprof, curl, jeprof).
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
	bool remote;                        /* beyond loopback: any Host, unless hosts says which */
	char token[HTTP_TOKEN_MAX + 1];     /* "": none asked for */
	char hosts[HTTP_HOSTS_MAX];         /* more Host values that are fine, separated by commas; without a port: with any */
	/* Wrong tokens lately: after 10 in a minute they are answered 429. The right one is let in always. */
	unsigned wrong;
	int64_t wrong_since_ms;
};

/* The token of a file that only its owner (this user or root) may read (E_USAGE otherwise): its first line. */
int http_read_token(const char *path, char to[HTTP_TOKEN_MAX + 1], struct error *err);

/* 0: may go on; otherwise the status that answers it (400, 401, 403, 421, 429). Compares tokens in constant time. */
int http_check_access(struct http_access *a, const struct http_request *r, int64_t now_ms);

/* May the other end of a unix socket's connection ask? Our user or root. */
bool http_peer_allowed(int fd);

#endif
