/*
 * One connection, from its first byte to its end:
 *
 *     head -> (body) -> handler -> sends -> gone, or lingers
 *                        \-> parked -/
 *
 * Each step does what can be done without waiting and says what it waits for next (http_connection_wants, deadline_ms). A step may end
 * the connection; nothing touches it after that.
 */
#include "http/server_private.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <unistd.h>

/* Sent in one go before the others' turn. */
#define TURN_BYTES ((uint64_t)1 << 20)
#define SENDFILE_BYTES ((size_t)256 << 10)
#define BODY_TURN_PIECES 16
/* Less than this in idle_ms is a client that only pretends to read. */
#define PROGRESS_BYTES ((uint64_t)16 << 10)
#define LINGER_MS 2000
/* Places that are only used under pressure give their memory back. */
#define KEPT_PLACES 4

static void send_more(struct http_exchange *x);

static void enter(struct http_exchange *x, enum http_state state, int64_t within_ms)
{
	x->state = state;
	x->since_ms = x->server->now_ms;
	x->deadline_ms = within_ms < 0 ? INT64_MAX : x->since_ms + within_ms;
}

/* Of the handlers. */
static void *context_of(const struct http_exchange *x)
{
	return x->route->context ? x->route->context : x->server->settings.context;
}

/* The exchange is over: its ticket is worth nothing from here on, and the handler's side is told. */
static void end_exchange(struct http_exchange *x, bool answered)
{
	struct http_server *s = x->server;
	pthread_mutex_lock(&s->lock);
	x->serial++;
	x->waiting = false;
	x->answered = false;
	int fd = x->send_fd;
	x->send_fd = -1;
	pthread_mutex_unlock(&s->lock);
	if (fd >= 0)
		close(fd);
	if (x->engaged && x->route->over)
		x->route->over(context_of(x), x, answered);
	else if (x->engaged && s->settings.over)
		s->settings.over(context_of(x), x, answered);
	x->engaged = false;
}

void http_connection_close(struct http_exchange *x)
{
	struct http_server *s = x->server;
	end_exchange(x, false);
	close(x->fd);
	x->fd = -1;
	x->state = HTTP_FREE;
	s->n_open--;
	if (x->place >= KEPT_PLACES)
		madvise(x->in, s->buffers_bytes, MADV_DONTNEED);
}

void http_connection_begin(struct http_exchange *x, int fd)
{
	struct http_server *s = x->server;
	x->fd = fd;
	x->in_n = x->out_n = x->out_at = 0;
	x->request = (struct http_request){ 0 };
	x->route = NULL;
	x->body_left = x->unprogressed = 0;
	x->whole = x->engaged = x->half_closed = false;
	memset(x->user, 0, sizeof(x->user));
	s->n_open++;
	enter(x, HTTP_READS_HEAD, s->limits.head_ms);
}

short http_connection_wants(const struct http_exchange *x)
{
	if (x->state == HTTP_SENDS)
		return POLLOUT;
	if (x->state == HTTP_PARKED)
		return x->half_closed ? 0 : POLLRDHUP;
	return POLLIN;
}

/* --- answering --- */

static void begin_sending(struct http_exchange *x)
{
	x->unprogressed = 0;
	enter(x, HTTP_SENDS, x->server->limits.idle_ms);
	send_more(x);
}

void http_connection_refuse(struct http_exchange *x, int status)
{
	http_answer_refusal(x, status);
	begin_sending(x);
}

/* n more bytes: were there enough of them to speak of? */
static bool progresses(struct http_exchange *x, size_t n)
{
	x->unprogressed += n;
	if (x->unprogressed < PROGRESS_BYTES)
		return false;
	x->unprogressed = 0;
	return true;
}

/*
 * To close a socket on bytes that nobody has read resets it, and the reset destroys an answer that the client hasn't read yet. So where a
 * client has sent, or may still send, more than was read, our half is closed and the rest thrown away.
 */
static void leave(struct http_exchange *x)
{
	char c;
	if ((x->whole && recv(x->fd, &c, 1, MSG_PEEK | MSG_DONTWAIT) <= 0) || shutdown(x->fd, SHUT_WR) < 0)
		http_connection_close(x);
	else
		enter(x, HTTP_LINGERS, LINGER_MS);
}

/* Bytes that went out of the head and short body, or of the descriptor; 0: a file that is shorter than it was said to be. */
static ssize_t send_some(struct http_exchange *x)
{
	if (x->out_at < x->out_n) {
		ssize_t n = send(x->fd, x->out + x->out_at, x->out_n - x->out_at,
		                 MSG_NOSIGNAL | MSG_DONTWAIT | (x->send_left ? MSG_MORE : 0));
		x->out_at += n > 0 ? (size_t)n : 0;
		return n;
	}
	size_t want = x->send_left < SENDFILE_BYTES ? (size_t)x->send_left : SENDFILE_BYTES;
	ssize_t n = sendfile(x->fd, x->send_fd, &x->send_at, want);
	x->send_left -= n > 0 ? (size_t)n : 0;
	return n;
}

static void send_more(struct http_exchange *x)
{
	uint64_t turn = 0;
	while ((x->out_at < x->out_n || x->send_left) && turn < TURN_BYTES) {
		ssize_t n = send_some(x);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
			return;
		if (n <= 0) {
			http_connection_close(x);
			return;
		}
		turn += (size_t)n;
		http_count(&x->server->bytes_sent, (size_t)n);
		if (progresses(x, (size_t)n))
			enter(x, HTTP_SENDS, x->server->limits.idle_ms);
	}
	if (x->out_at < x->out_n || x->send_left)
		return;
	http_count(&x->server->statuses[x->status / 100 % 6], 1);
	end_exchange(x, true);
	leave(x);
}

/* After a handler: it has answered, or parked, or forgotten to. */
static void settle(struct http_exchange *x)
{
	pthread_mutex_lock(&x->server->lock);
	bool answered = x->answered, waiting = x->waiting;
	pthread_mutex_unlock(&x->server->lock);
	if (answered)
		begin_sending(x);
	else if (waiting)
		enter(x, HTTP_PARKED, -1);
	else
		http_connection_refuse(x, 500);
}

void http_connection_answered(struct http_exchange *x)
{
	pthread_mutex_lock(&x->server->lock);
	bool answered = x->answered;
	pthread_mutex_unlock(&x->server->lock);
	if (answered)
		begin_sending(x);
}

/* --- reading --- */

/* A piece of the body; false when it was answered already. */
static bool give_body(struct http_exchange *x, const char *bytes, size_t n)
{
	struct http_server *s = x->server;
	x->body_left -= n;
	x->engaged = true;
	x->route->body(context_of(x), x, bytes, n);
	pthread_mutex_lock(&s->lock);
	bool answered = x->answered;
	pthread_mutex_unlock(&s->lock);
	return !answered;
}

static void handle(struct http_exchange *x)
{
	x->engaged = true;
	x->route->handle(context_of(x), x);
	settle(x);
}

static const struct http_route *find_route(const struct http_server *s, struct http_text path)
{
	for (const struct http_route *r = s->settings.routes; r->path; r++) {
		if (http_text_is(path, r->path))
			return r;
	}
	return NULL;
}

/* Does the route take this request? 0, or the status that refuses it; 405 and unknown parameters are answered here (-1). */
static int check_route(struct http_exchange *x)
{
	static const char *const allows[] = { "", "Allow: GET, HEAD\r\n", "", "", "Allow: POST\r\n", "Allow: GET, HEAD, POST\r\n" };
	const struct http_request *r = &x->request;
	const struct http_route *route = find_route(x->server, r->path);
	struct http_text unknown;
	if (!route)
		return 404;
	if (!(route->methods & (r->method == HTTP_HEAD ? HTTP_GET : r->method))) {
		http_answer(x, 405, "text/plain; charset=utf-8", allows[route->methods & 5], "Not with this method.\n", 22);
		return -1;
	}
	if (!route->raw_query && !http_query_known(r, route->parameters, &unknown)) {
		http_answer_text(x, 400, "There is no parameter '%.*s' here.", unknown.n < 64 ? (int)unknown.n : 64, unknown.at);
		return -1;
	}
	if (r->length > (r->method == HTTP_POST ? route->body_max : 0))
		return 413;
	if (r->method == HTTP_POST && route->body_max && !r->has_length)
		return 411;
	x->route = route;
	return 0;
}

/* False when the connection is of no use any more. Where there is no room for these few bytes now, he isn't told. */
static bool tell_to_go_on(struct http_exchange *x)
{
	static const char text[] = "HTTP/1.1 100 Continue\r\n\r\n";
	for (size_t at = 0; at < sizeof(text) - 1;) {
		ssize_t n = send(x->fd, text + at, sizeof(text) - 1 - at, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n < 0 && errno != EINTR)
			return at == 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
		at += n > 0 ? (size_t)n : 0;
	}
	return true;
}

/* The handler's turn, now or when the body is there. */
static void begin_request(struct http_exchange *x, size_t head_n)
{
	size_t more = x->in_n - head_n;
	size_t piece = x->body_left < more ? (size_t)x->body_left : more;
	x->whole = x->body_left == more;
	if (piece && !give_body(x, x->in + head_n, piece)) {
		begin_sending(x);
		return;
	}
	if (x->body_left == 0) {
		handle(x);
		return;
	}
	if (x->request.expects_continue && !more && !tell_to_go_on(x)) {
		http_connection_close(x);
		return;
	}
	enter(x, HTTP_READS_BODY, x->server->limits.head_ms);
}

static void check_head(struct http_exchange *x)
{
	struct http_server *s = x->server;
	int n = http_parse_request(x->in, x->in_n, &x->request);
	if (n == 0) {
		if (x->in_n == s->limits.head_bytes)
			http_connection_refuse(x, memchr(x->in, '\n', x->in_n) ? 431 : 414);
		return;
	}
	if (n < 0) {
		http_connection_refuse(x, -n);
		return;
	}
	http_count(&s->requests, 1);
	x->body_left = x->request.length;
	x->whole = x->body_left == x->in_n - (size_t)n;
	int status = http_check_access(&s->access, &x->request, s->now_ms);
	if (!status)
		status = check_route(x);
	if (status > 0)
		http_connection_refuse(x, status);
	else if (status < 0)
		begin_sending(x);
	else
		begin_request(x, (size_t)n);
}

static void read_head(struct http_exchange *x)
{
	ssize_t n = recv(x->fd, x->in + x->in_n, x->server->limits.head_bytes - x->in_n, MSG_DONTWAIT);
	if (n > 0) {
		x->in_n += (size_t)n;
		check_head(x);
	} else if (n == 0 && x->in_n) {
		http_connection_refuse(x, 400);
	} else if (n == 0 || (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)) {
		http_connection_close(x);
	}
}

/* A piece of the body; true when there may be another one. */
static bool read_piece(struct http_exchange *x)
{
	struct http_server *s = x->server;
	size_t want = x->body_left < HTTP_SCRATCH_BYTES ? (size_t)x->body_left : HTTP_SCRATCH_BYTES;
	ssize_t n = recv(x->fd, s->scratch, want, MSG_DONTWAIT);
	if (n == 0)
		http_connection_refuse(x, 400);
	else if (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)
		http_connection_close(x);
	if (n <= 0)
		return false;
	/* Who sends a good deal need not fear for his place; the deadline stays, unless the route is a patient one. */
	if (progresses(x, (size_t)n)) {
		x->since_ms = s->now_ms;
		if (x->route->patient)
			x->deadline_ms = s->now_ms + s->limits.head_ms;
	}
	x->whole = x->body_left == (size_t)n;
	if (!give_body(x, s->scratch, (size_t)n))
		begin_sending(x);
	else if (x->body_left == 0)
		handle(x);
	else
		return true;
	return false;
}

static void read_body(struct http_exchange *x)
{
	for (unsigned i = 0; i < BODY_TURN_PIECES && read_piece(x); i++)
		;
}

static void read_rest(struct http_exchange *x)
{
	ssize_t n = recv(x->fd, x->server->scratch, HTTP_SCRATCH_BYTES, MSG_DONTWAIT);
	if (n == 0 || (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR))
		http_connection_close(x);
}

/* The client sends no more. Gone, or waiting for its answer? See server.h. */
static void probe(struct http_exchange *x)
{
	x->half_closed = true;
	if (!x->server->listener.local_socket && x->request.minor >= 1 && !tell_to_go_on(x))
		http_connection_close(x);
}

/* --- what happens to it --- */

void http_connection_event(struct http_exchange *x, short events)
{
	switch (x->state) {
	case HTTP_READS_HEAD:
		read_head(x);
		break;
	case HTTP_READS_BODY:
		read_body(x);
		break;
	case HTTP_PARKED:
		if (events & (POLLHUP | POLLERR | POLLNVAL))
			http_connection_close(x);
		else
			probe(x);
		break;
	case HTTP_SENDS:
		send_more(x);
		break;
	case HTTP_LINGERS:
		read_rest(x);
		break;
	case HTTP_FREE:
		break;
	}
}

void http_connection_late(struct http_exchange *x)
{
	if (x->state != HTTP_LINGERS)
		http_count(&x->server->timeouts, 1);
	if (http_connection_reads(x) && x->in_n)
		http_connection_refuse(x, 408);
	else
		http_connection_close(x);
}

/* One that has asked for nothing yet is told why, if that needs no waiting. */
void http_connection_evict(struct http_exchange *x)
{
	http_count(&x->server->evicted, 1);
	if (http_connection_reads(x)) {
		http_answer_refusal(x, 503);
		send(x->fd, x->out, x->out_n, MSG_NOSIGNAL | MSG_DONTWAIT);
	}
	http_connection_close(x);
}
