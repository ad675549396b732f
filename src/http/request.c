/*
 * One pass from the first byte to the blank line, each step deciding on the byte before it and on none behind it. So a head that is
 * wrong is known to be wrong at the same byte however it was cut into packets, and at the earliest one.
 */
#include "http/request.h"

#include "base/text.h"

#include <string.h>

#define METHOD_MAX 16

/* What a step says: it ran out of bytes, it is through, or (negative) minus a status. The last line of a head is its END. */
enum { MORE = 0, DONE = 1, END = 2 };

struct cursor {
	const char *at, *end;
};

struct header {
	struct http_text name, value;
};

static const bool token_bytes[256] = {
	['!'] = true, ['#' ... '\''] = true, ['*'] = true, ['+'] = true, ['-'] = true, ['.'] = true,
	['0' ... '9'] = true, ['A' ... 'Z'] = true, ['^' ... 'z'] = true, ['|'] = true, ['~'] = true,
};

static bool in_token(char c)
{
	return token_bytes[(unsigned char)c];
}

static bool in_value(char c)
{
	return c == '\t' || ((unsigned char)c >= ' ' && c != 0x7f);
}

/* No '#': a fragment is not sent. Bytes beyond ASCII have to be percent-encoded. */
static bool in_target(char c)
{
	return c > ' ' && c < 0x7f && c != '#';
}

bool http_text_is(struct http_text t, const char *text)
{
	return strlen(text) == t.n && memcmp(t.at, text, t.n) == 0;
}

struct http_text http_text_of(const char *text)
{
	return (struct http_text){ text, strlen(text) };
}

static char lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : c;
}

bool http_text_same(struct http_text a, struct http_text b)
{
	if (a.n != b.n)
		return false;
	for (size_t i = 0; i < a.n; i++) {
		if (lower(a.at[i]) != lower(b.at[i]))
			return false;
	}
	return true;
}

/* Exactly these bytes. */
static int literal(struct cursor *c, const char *text)
{
	for (; *text; text++, c->at++) {
		if (c->at == c->end)
			return MORE;
		if (*c->at != *text)
			return -400;
	}
	return DONE;
}

/* Bytes of that kind, at most max, and a byte that is none behind them. */
static int run(struct cursor *c, bool (*kind)(char), size_t max, struct http_text *ret)
{
	ret->at = c->at;
	while (c->at < c->end && kind(*c->at)) {
		if ((size_t)(++c->at - ret->at) > max)
			return -501;
	}
	ret->n = (size_t)(c->at - ret->at);
	return c->at == c->end ? MORE : DONE;
}

/* --- the request line --- */

static int method(struct cursor *c, struct http_request *r)
{
	static const char *const elsewhere[] = { "PUT", "DELETE", "OPTIONS", "PATCH", "CONNECT", "TRACE" };
	struct http_text name;
	int rc = run(c, in_token, METHOD_MAX, &name);
	if (rc != DONE)
		return rc;
	if (name.n == 0 || *c->at != ' ')
		return -400;
	if (http_text_is(name, "GET"))
		r->method = HTTP_GET;
	else if (http_text_is(name, "HEAD"))
		r->method = HTTP_HEAD;
	else if (http_text_is(name, "POST"))
		r->method = HTTP_POST;
	else {
		for (size_t i = 0; i < sizeof(elsewhere) / sizeof(elsewhere[0]); i++) {
			if (http_text_is(name, elsewhere[i]))
				return -405;
		}
		return -501;
	}
	c->at++;
	return DONE;
}

static int target(struct cursor *c, struct http_request *r)
{
	struct http_text all;
	if (c->at == c->end)
		return MORE;
	if (*c->at != '/')
		return -400;
	int rc = run(c, in_target, SIZE_MAX, &all);
	if (rc != DONE)
		return rc;
	if (*c->at++ != ' ')
		return -400;
	const char *mark = memchr(all.at, '?', all.n);
	r->path = all;
	if (mark) {
		r->path.n = (size_t)(mark - all.at);
		r->query.at = mark + 1;
		r->query.n = all.n - r->path.n - 1;
	}
	return DONE;
}

static int version(struct cursor *c, struct http_request *r)
{
	int rc = literal(c, "HTTP/");
	if (rc != DONE)
		return rc;
	for (int i = 0; i < 3; i++, c->at++) {
		if (c->at == c->end)
			return MORE;
		if (i == 1 ? *c->at != '.' : *c->at < '0' || *c->at > '9')
			return -400;
	}
	if (c->at[-3] != '1' || c->at[-1] > '1')
		return -505;
	r->minor = (unsigned)(c->at[-1] - '0');
	return literal(c, "\r\n");
}

static int request_line(struct cursor *c, struct http_request *r)
{
	int rc = method(c, r);
	if (rc == DONE)
		rc = target(c, r);
	return rc == DONE ? version(c, r) : rc;
}

/* --- headers --- */

/* One line, or the blank one at the end. */
static int header_line(struct cursor *c, struct header *ret)
{
	if (c->at < c->end && *c->at == '\r') {
		int rc = literal(c, "\r\n");
		return rc == DONE ? END : rc;
	}
	int rc = run(c, in_token, SIZE_MAX, &ret->name);
	if (rc != DONE)
		return rc;
	if (ret->name.n == 0 || *c->at++ != ':')
		return -400;
	rc = run(c, in_value, SIZE_MAX, &ret->value);
	if (rc == DONE)
		rc = literal(c, "\r\n");
	if (rc != DONE)
		return rc;
	struct http_text *v = &ret->value;
	while (v->n && (v->at[0] == ' ' || v->at[0] == '\t'))
		v->at++, v->n--;
	while (v->n && (v->at[v->n - 1] == ' ' || v->at[v->n - 1] == '\t'))
		v->n--;
	return DONE;
}

static int content_length(struct http_request *r, struct http_text value)
{
	if (r->has_length || value.n == 0)
		return -400;
	for (size_t i = 0; i < value.n; i++) {
		if (value.at[i] < '0' || value.at[i] > '9')
			return -400;
	}
	r->has_length = true;
	return text_parse_u64(value.at, value.n, 10, &r->length) ? DONE : -413;
}

/* The headers of which there may be one, and what they are kept in. */
static const struct single {
	const char *name;
	size_t text_at;
} singles[] = {
	{ "host", offsetof(struct http_request, host) },
	{ "origin", offsetof(struct http_request, origin) },
	{ "authorization", offsetof(struct http_request, authorization) },
	{ "content-type", offsetof(struct http_request, content_type) },
	{ "sec-fetch-site", offsetof(struct http_request, fetch_site) },
};

static int keep_header(struct http_request *r, const struct header *h)
{
	for (size_t i = 0; i < sizeof(singles) / sizeof(singles[0]); i++) {
		struct http_text *to = (struct http_text *)((char *)r + singles[i].text_at);
		if (!http_text_same(h->name, http_text_of(singles[i].name)))
			continue;
		if (to->at)
			return -400;
		*to = h->value;
		return DONE;
	}
	if (http_text_same(h->name, http_text_of("content-length")))
		return content_length(r, h->value);
	if (http_text_same(h->name, http_text_of("transfer-encoding")))
		return r->has_length ? -400 : -501;
	if (http_text_same(h->name, http_text_of("expect"))) {
		if (!http_text_same(h->value, http_text_of("100-continue")))
			return -417;
		r->expects_continue = r->minor >= 1;
	}
	return DONE;
}

int http_parse_request(const char *bytes, size_t n, struct http_request *ret)
{
	struct cursor c = { bytes, bytes + n };
	struct http_request r = { 0 };
	int rc = request_line(&c, &r);
	for (unsigned lines = 0; rc == DONE; lines++) {
		struct header h;
		rc = header_line(&c, &h);
		if (rc == DONE)
			rc = lines == HTTP_HEADERS_MAX ? -431 : keep_header(&r, &h);
	}
	if (rc != END)
		return rc;
	r.has_host = r.host.at;
	r.has_origin = r.origin.at;
	if (!r.has_host && r.minor >= 1)
		return -400;
	*ret = r;
	return (int)(c.at - bytes);
}
