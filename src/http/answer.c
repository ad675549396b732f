/*
 * Making answers: the head and a short body are written into the exchange's own room, under the lock, by the handler or by the thread that
 * holds a ticket. Sending them is the server's thread's work (connection.c).
 */
#include "http/server_private.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const struct words {
	int status;
	const char *words;
	const char *headers;            /* of a refusal */
	const char *sentence;
} all_words[] = {
	{ 200, "OK", NULL, NULL },
	{ 400, "Bad Request", NULL, "The request is malformed." },
	{ 401, "Unauthorized", "WWW-Authenticate: Bearer, Basic realm=\"heapgauge\"\r\n", "A token is needed." },
	{ 403, "Forbidden", NULL, "Not for other users, and not for other web pages." },
	{ 404, "Not Found", NULL, "There is nothing here by that name." },
	{ 405, "Method Not Allowed", "Allow: GET, HEAD, POST\r\n", "GET, HEAD and POST are answered." },
	{ 408, "Request Timeout", NULL, "The request took too long." },
	{ 411, "Length Required", NULL, "The body needs a Content-Length." },
	{ 413, "Content Too Large", NULL, "The body is too large." },
	{ 414, "URI Too Long", NULL, "The address is too long." },
	{ 417, "Expectation Failed", NULL, "Only 100-continue can be expected." },
	{ 421, "Misdirected Request", NULL, "This is not the server of that name: ask for localhost, or have the name allowed here." },
	{ 429, "Too Many Requests", "Retry-After: 60\r\n", "Too many wrong tokens." },
	{ 431, "Request Header Fields Too Large", NULL, "The head of the request is too large." },
	{ 500, "Internal Server Error", NULL, "The answer could not be made." },
	{ 501, "Not Implemented", NULL, "Neither other methods nor Transfer-Encoding are understood." },
	{ 502, "Bad Gateway", NULL, NULL },
	{ 503, "Service Unavailable", "Retry-After: 1\r\n", "Too many clients; try again." },
	{ 504, "Gateway Timeout", NULL, NULL },
	{ 505, "HTTP Version Not Supported", NULL, "HTTP/1.0 and HTTP/1.1 are spoken." },
	{ 507, "Insufficient Storage", NULL, NULL },
};

static const struct words *find_words(int status)
{
	for (size_t i = 0; i < sizeof(all_words) / sizeof(all_words[0]); i++) {
		if (all_words[i].status == status)
			return &all_words[i];
	}
	return NULL;
}

const char *http_status_words(int status)
{
	const struct words *w = find_words(status);
	return w ? w->words : "Unknown";
}

/* What is to be sent: a short body, or a descriptor. */
struct content {
	const char *type, *headers;
	const void *bytes;
	int fd;
	uint64_t n;
};

#define POLICY "Content-Security-Policy: "

static const char policy[] = POLICY "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; "
                                    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'\r\n";

static bool write_head(struct http_exchange *x, int status, const struct content *c)
{
	const char *headers = c->headers ? c->headers : "";
	bool own_policy = strncmp(headers, POLICY, sizeof(POLICY) - 1) == 0;
	int n = snprintf(x->out, HTTP_ANSWER_HEAD_MAX,
	                 "HTTP/1.1 %d %s\r\n"
	                 "Content-Type: %s\r\n"
	                 "Content-Length: %llu\r\n"
	                 "Connection: close\r\n"
	                 "Cache-Control: no-store\r\n"
	                 "X-Content-Type-Options: nosniff\r\n"
	                 "%s%s\r\n",
	                 status, http_status_words(status), c->type, (unsigned long long)c->n, own_policy ? "" : policy, headers);
	if (n < 0 || (size_t)n >= HTTP_ANSWER_HEAD_MAX)
		return false;
	x->out_n = (size_t)n;
	return true;
}

/* With the lock held, once for an exchange. Takes c->fd over. */
static void prepare(struct http_exchange *x, int status, const struct content *c)
{
	static const struct content broken = {
		.type = "text/plain; charset=utf-8", .fd = -1, .bytes = "The answer is too long.\n", .n = 24,
	};
	if ((c->fd < 0 && c->n > HTTP_SHORT_MAX) || !write_head(x, status, c)) {
		if (c->fd >= 0)
			close(c->fd);
		c = &broken;
		status = 500;
		write_head(x, status, c);
	}
	bool head_only = x->request.method == HTTP_HEAD;
	x->answered = true;
	x->status = status;
	x->send_fd = c->fd;
	x->send_at = 0;
	x->send_left = c->fd >= 0 && !head_only ? c->n : 0;
	if (c->fd < 0 && !head_only && c->n) {
		memcpy(x->out + x->out_n, c->bytes, (size_t)c->n);
		x->out_n += (size_t)c->n;
	}
}

static void answer(struct http_exchange *x, int status, const struct content *c)
{
	pthread_mutex_lock(&x->server->lock);
	bool first = !x->answered;
	if (first)
		prepare(x, status, c);
	pthread_mutex_unlock(&x->server->lock);
	if (!first && c->fd >= 0)
		close(c->fd);
}

void http_answer(struct http_exchange *x, int status, const char *content_type, const char *headers,
                 const void *body, size_t n)
{
	answer(x, status, &(struct content){ content_type, headers, body, -1, n });
}

void http_answer_fd(struct http_exchange *x, int status, const char *content_type, const char *headers,
                    int fd, uint64_t n)
{
	answer(x, status, &(struct content){ content_type, headers, NULL, fd, n });
}

void http_answer_text(struct http_exchange *x, int status, const char *format, ...)
{
	char text[1000];
	va_list args;
	va_start(args, format);
	int n = vsnprintf(text, sizeof(text) - 1, format, args);
	va_end(args);
	size_t length = n < 0 ? 0 : (size_t)n < sizeof(text) - 2 ? (size_t)n : sizeof(text) - 2;
	text[length++] = '\n';
	http_answer(x, status, "text/plain; charset=utf-8", NULL, text, length);
}

void http_answer_refusal(struct http_exchange *x, int status)
{
	const struct words *w = find_words(status);
	char text[200];
	int n = snprintf(text, sizeof(text), "%s\n", w->sentence);
	http_answer(x, status, "text/plain; charset=utf-8", w->headers, text, (size_t)n);
}

/* --- answers from other threads --- */

struct http_ticket http_park(struct http_exchange *x)
{
	pthread_mutex_lock(&x->server->lock);
	x->waiting = true;
	struct http_ticket t = { x->place, x->serial };
	pthread_mutex_unlock(&x->server->lock);
	return t;
}

/* With the lock held: the exchange that waits for that ticket's answer, or NULL. */
static struct http_exchange *ticket_exchange(struct http_server *s, struct http_ticket t)
{
	struct http_exchange *x = t.place < s->limits.connections ? &s->places[t.place] : NULL;
	return x && x->serial == t.serial && x->waiting && !x->answered ? x : NULL;
}

bool http_ticket_gone(struct http_server *s, struct http_ticket t)
{
	pthread_mutex_lock(&s->lock);
	bool gone = !ticket_exchange(s, t);
	pthread_mutex_unlock(&s->lock);
	return gone;
}

static void ticket_answer(struct http_server *s, struct http_ticket t, int status, const struct content *c)
{
	pthread_mutex_lock(&s->lock);
	struct http_exchange *x = ticket_exchange(s, t);
	if (x)
		prepare(x, status, c);
	pthread_mutex_unlock(&s->lock);
	if (x)
		http_wake(s);
	else if (c->fd >= 0)
		close(c->fd);
}

void http_ticket_answer(struct http_server *s, struct http_ticket t, int status, const char *content_type,
                        const char *headers, const void *body, size_t n)
{
	ticket_answer(s, t, status, &(struct content){ content_type, headers, body, -1, n });
}

void http_ticket_answer_fd(struct http_server *s, struct http_ticket t, int status,
                           const char *content_type, const char *headers, int fd, uint64_t n)
{
	ticket_answer(s, t, status, &(struct content){ content_type, headers, NULL, fd, n });
}
