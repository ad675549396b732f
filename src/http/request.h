/*
 * The head of an HTTP/1.1 request, parsed in place: every text points into the caller's bytes. Strict, because whatever
 * two parsers read differently is a hole: bare newlines, folded headers, blanks before a colon, names that are no tokens,
 * NUL and other controls, absolute-form targets, a second Host, Origin, Authorization, Content-Type or Content-Length,
 * and any Transfer-Encoding are errors.
 */
#ifndef HTTP_REQUEST_H
#define HTTP_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum http_method { HTTP_GET = 1, HTTP_HEAD = 2, HTTP_POST = 4 };

struct http_text {
	const char *at;
	size_t n;
};

#define HTTP_HEADERS_MAX 64

struct http_request {
	enum http_method method;
	struct http_text path;              /* as sent, without the query; begins with '/', never decoded */
	struct http_text query;             /* behind the '?', or empty */
	struct http_text host, origin, authorization, content_type;    /* empty when there is none */
	struct http_text fetch_site;        /* Sec-Fetch-Site: a browser's word on whose page asks */
	bool has_host, has_origin, has_length, expects_continue;
	unsigned minor;                     /* HTTP/1.minor */
	uint64_t length;                    /* Content-Length, or 0 */
};

/*
 * > 0: the head's bytes; 0: more are needed; < 0: minus the status that answers it (400, 405, 413, 417, 431, 501, 505).
 * Only HTTP/1.0 and 1.1. Never reads past n. The verdict falls at one certain byte: all shorter beginnings of the same bytes
 * give 0, all longer ones the same verdict, so it doesn't matter how the bytes arrive.
 */
int http_parse_request(const char *bytes, size_t n, struct http_request *ret);

/*
 * The value of a query parameter, percent-decoded ('+' is a blank) into to, which gets a NUL: its length, -1 when it isn't there,
 * -2 when it is malformed (%00 is), given twice, or longer than room - 1; to is empty then. A parameter without '=' is empty.
 */
int http_query(const struct http_request *r, const char *name, char *to, size_t room);

/*
 * The same for a parameter that may be given several times: takes pairs from rest (at first the request's query) up to and with the next
 * one of that name. -1: there is none any more.
 */
int http_query_next(struct http_text *rest, const char *name, char *to, size_t room);

/*
 * Are all parameters of the query among names (NULL-terminated)? *ret_first gets the first other one. An unknown parameter is
 * a mistake of the client that would go unseen.
 */
bool http_query_known(const struct http_request *r, const char *const *names, struct http_text *ret_first);

bool http_text_is(struct http_text t, const char *text);               /* exactly */
bool http_text_same(struct http_text a, struct http_text b);           /* but for the case of ASCII letters, in any locale */
struct http_text http_text_of(const char *text);

#endif
