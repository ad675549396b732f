/*
 * The loop: poll, take what happened, look at the deadlines. All memory is one mapping made at the start, so there is nothing to
 * allocate and nothing to run out of later; what can run out are places (somebody loses his, see choose_victim) and descriptors
 * (accepting pauses).
 */
#include "http/server_private.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define CONNECTIONS 64
#define CONNECTIONS_MAX 65536
#define HEAD_BYTES ((size_t)8 << 10)
#define HEAD_BYTES_MAX ((size_t)1 << 20)
#define HEAD_MS 5000
#define IDLE_MS 30000

/*
 * So long a connection may be silent, or not take its answer, before somebody else's need counts more. The first can be short: when there
 * is a crowd, a newcomer has waited to be accepted, and what he sends at once is there when he is.
 */
#define SILENT_MS 5
#define STALLED_MS 250
/* A server that nothing can wake any more still sees that it is to stop. */
#define SLEEP_MAX_MS 2000
/* After accept failed, mostly for want of descriptors or memory: asking again at once would be in vain, and again. */
#define ACCEPT_PAUSE_MS 100

static int64_t clock_ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* --- life --- */

static size_t rounded(size_t n, size_t to)
{
	return (n + to - 1) / to * to;
}

static void complete_limits(struct http_limits *l)
{
	l->connections = l->connections ? l->connections : CONNECTIONS;
	l->head_bytes = l->head_bytes ? l->head_bytes : HEAD_BYTES;
	l->head_ms = l->head_ms ? l->head_ms : HEAD_MS;
	l->idle_ms = l->idle_ms ? l->idle_ms : IDLE_MS;
}

/* One mapping: the server, its arrays, then, from a page on, the buffers. */
static struct http_server *map_server(const struct http_limits *l)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), n = l->connections;
	size_t places_at = rounded(sizeof(struct http_server), 64);
	size_t polls_at = places_at + n * sizeof(struct http_exchange);
	size_t polled_at = polls_at + (n + 2) * sizeof(struct pollfd);
	size_t buffers_at = rounded(polled_at + n * sizeof(uint32_t), page);
	size_t one = rounded(l->head_bytes + HTTP_OUT_BYTES, page);
	size_t scratch_at = buffers_at + n * one;
	size_t all = scratch_at + HTTP_SCRATCH_BYTES;
	char *base = mmap(NULL, all, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (base == MAP_FAILED)
		return NULL;
	struct http_server *s = (void *)base;
	s->places = (void *)(base + places_at);
	s->polls = (void *)(base + polls_at);
	s->polled = (void *)(base + polled_at);
	s->buffers = base + buffers_at;
	s->buffers_bytes = one;
	s->scratch = base + scratch_at;
	s->mapped_bytes = all;
	s->limits = *l;
	for (uint32_t i = 0; i < l->connections; i++) {
		char *in = s->buffers + i * one;
		s->places[i] = (struct http_exchange){
			.server = s, .place = i, .fd = -1, .send_fd = -1, .in = in, .out = in + l->head_bytes,
		};
	}
	return s;
}

static int open_wake(struct http_server *s, struct error *err)
{
	int pair[2];
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0 || !http_own(&s->wake[0], pair[0]) ||
	    !http_own(&s->wake[1], pair[1]))
		return error_set(err, E_IO, "no pair of sockets for the server: %s", strerror(errno));
	return E_OK;
}

int http_server_new(const char *listen_text, bool allow_remote, const struct http_access *a,
                    const struct http_settings *settings, struct http_server **ret, struct error *err)
{
	struct http_limits limits = settings->limits;
	complete_limits(&limits);
	if (limits.connections > CONNECTIONS_MAX || limits.head_bytes > HEAD_BYTES_MAX)
		return error_set(err, E_USAGE, "a server has at most %d connections, and heads of %zu bytes", CONNECTIONS_MAX,
		                 HEAD_BYTES_MAX);
	if (a->token[0] && strlen(a->token) < HTTP_TOKEN_MIN)
		return error_set(err, E_USAGE, "a token of less than %d characters can be guessed", HTTP_TOKEN_MIN);
	struct http_listener listener;
	int rc = http_listen(listen_text, allow_remote, a->token[0], &listener, err);
	if (rc)
		return rc;
	struct http_server *s = map_server(&limits);
	if (!s) {
		http_listener_close(&listener, true);
		return error_nomem(err, "the server's connections");
	}
	rc = open_wake(s, err);
	if (rc) {
		http_listener_close(&listener, true);
		munmap(s, s->mapped_bytes);
		return rc;
	}
	s->settings = *settings;
	s->access = *a;
	s->access.local_socket = listener.local_socket;
	s->access.remote = listener.remote;
	s->listener = listener;
	pthread_mutex_init(&s->lock, NULL);
	*ret = s;
	return E_OK;
}

void http_server_free(struct http_server *s)
{
	if (!s)
		return;
	http_listener_close(&s->listener, true);
	http_disown(&s->wake[0]);
	http_disown(&s->wake[1]);
	pthread_mutex_destroy(&s->lock);
	munmap(s, s->mapped_bytes);
}

void http_server_abandon(struct http_server *s)
{
	if (!s)
		return;
	for (uint32_t i = 0; i < s->limits.connections; i++) {
		if (s->places[i].fd >= 0)
			close(s->places[i].fd);
		if (s->places[i].send_fd >= 0)
			close(s->places[i].send_fd);
	}
	http_listener_close(&s->listener, false);
	http_disown(&s->wake[0]);
	http_disown(&s->wake[1]);
	munmap(s, s->mapped_bytes);
}

void http_wake(struct http_server *s)
{
	int before = errno;
	/* Where there is no room, enough is there already. */
	while (http_owns(&s->wake[1]) && send(s->wake[1].fd, "", 1, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 && errno == EINTR)
		;
	errno = before;
}

void http_server_stop(struct http_server *s)
{
	atomic_store(&s->stopping, true);
	http_wake(s);
}

const char *http_server_url(const struct http_server *s)
{
	return s->listener.url;
}

void http_server_counters(struct http_server *s, struct http_counters *ret)
{
	struct http_counters c = {
		.accepted = s->accepted, .evicted = s->evicted, .timeouts = s->timeouts, .requests = s->requests,
		.bytes_sent = s->bytes_sent,
	};
	for (size_t i = 0; i < sizeof(c.statuses) / sizeof(c.statuses[0]); i++)
		c.statuses[i] = s->statuses[i];
	*ret = c;
}

const struct http_request *http_exchange_request(const struct http_exchange *x)
{
	return &x->request;
}

void *http_exchange_user(struct http_exchange *x)
{
	return x->user;
}

/* --- places --- */

static struct http_exchange *free_place(struct http_server *s)
{
	if (s->n_open == s->limits.connections)
		return NULL;
	struct http_exchange *x = s->places;
	while (x->state != HTTP_FREE)
		x++;
	return x;
}

/* From when on it may lose its place to a newcomer; INT64_MAX: never. */
static int64_t safe_until(const struct http_exchange *x)
{
	if (http_connection_reads(x))
		return x->since_ms + SILENT_MS;
	return x->state == HTTP_SENDS ? x->since_ms + STALLED_MS : x->state == HTTP_LINGERS ? x->since_ms : INT64_MAX;
}

/*
 * Who would lose his place to a newcomer: who has kept us waiting, for his request or for taking his answer, longest beyond what is fair.
 * NULL when there is nobody yet; *ret_when_ms is when there will be (INT64_MAX: can't be said).
 */
static struct http_exchange *choose_victim(struct http_server *s, int64_t *ret_when_ms)
{
	struct http_exchange *first = NULL;
	*ret_when_ms = INT64_MAX;
	for (struct http_exchange *x = s->places; x < s->places + s->limits.connections; x++) {
		if (safe_until(x) < *ret_when_ms) {
			*ret_when_ms = safe_until(x);
			first = x;
		}
	}
	return *ret_when_ms <= s->now_ms ? first : NULL;
}

bool http_drop_stalled(struct http_server *s)
{
	struct http_exchange *first = NULL;
	for (struct http_exchange *x = s->places; x < s->places + s->limits.connections; x++) {
		if (x->state == HTTP_SENDS && x->send_left && safe_until(x) <= s->now_ms && (!first || x->since_ms < first->since_ms))
			first = x;
	}
	if (first)
		http_connection_evict(first);
	return first;
}

/* A place, with who has to leave it first. NULL when there is none to be had. */
static struct http_exchange *find_place(struct http_server *s)
{
	for (;;) {
		int64_t when_ms;
		struct http_exchange *x = free_place(s);
		if (x)
			return x;
		x = choose_victim(s, &when_ms);
		if (!x || !http_connection_reads(x))
			return x;
		/* The rest of his request may have come meanwhile. */
		http_connection_event(x, POLLIN);
		if (http_connection_reads(x))
			return x;
	}
}

/* Newcomers, as many as there are places. */
static void accept_some(struct http_server *s)
{
	bool ours = http_owns(&s->listener.socket);
	for (unsigned i = 0; i < s->limits.connections && ours; i++) {
		struct http_exchange *x = find_place(s);
		if (!x)
			return;
		int fd = accept4(s->listener.socket.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (fd < 0) {
			if (errno == EINTR || errno == ECONNABORTED)
				continue;
			if (errno != EAGAIN && errno != EWOULDBLOCK)
				s->accept_after_ms = s->now_ms + ACCEPT_PAUSE_MS;
			return;
		}
		if (x->state != HTTP_FREE)
			http_connection_evict(x);
		http_count(&s->accepted, 1);
		http_connection_begin(x, fd);
		if (s->listener.local_socket && !http_peer_allowed(fd))
			http_connection_refuse(x, 403);
		else
			http_connection_event(x, POLLIN);
	}
}

/* --- when the host has closed our descriptors --- */

/*
 * Whoever was connected has lost his connection, and the numbers are not ours to close. Then it listens at its address again. Other threads that
 * wake it meanwhile may find half a pair, and wake nobody: it sleeps no longer than SLEEP_MAX_MS.
 */
static void listen_again(struct http_server *s)
{
	static const char scheme[] = "http://";
	struct http_listener fresh;
	const char *text = s->listener.url;
	if (strncmp(text, scheme, sizeof(scheme) - 1) == 0)
		text += sizeof(scheme) - 1;
	for (struct http_exchange *x = s->places; x < s->places + s->limits.connections; x++) {
		if (x->state == HTTP_FREE)
			continue;
		pthread_mutex_lock(&s->lock);
		x->fd = x->send_fd = -1;
		pthread_mutex_unlock(&s->lock);
		http_connection_close(x);
	}
	s->listener.socket.fd = -1;
	s->accept_after_ms = s->now_ms + SLEEP_MAX_MS;
	if (!http_owns(&s->wake[0]) || !http_owns(&s->wake[1])) {
		s->wake[0].fd = s->wake[1].fd = -1;
		if (open_wake(s, NULL))
			return;
	}
	if (http_listen(text, s->listener.remote, s->access.token[0], &fresh, NULL))
		return;
	s->listener = fresh;
	s->accept_after_ms = 0;
	if (s->settings.reopened)
		s->settings.reopened(s->settings.context);
}

/* --- the loop --- */

/* Fills polls; returns how many there are. *ret_until_ms: when something is due. */
static nfds_t what_to_wait_for(struct http_server *s, int64_t *ret_until_ms)
{
	int64_t until = INT64_MAX, room_ms = 0;
	nfds_t n = 2;
	if (s->n_open == s->limits.connections && choose_victim(s, &room_ms))
		room_ms = 0;
	int64_t accept_ms = room_ms > s->accept_after_ms ? room_ms : s->accept_after_ms;
	bool accepts = accept_ms <= s->now_ms;
	s->polls[0] = (struct pollfd){ s->wake[0].fd, POLLIN, 0 };
	s->polls[1] = (struct pollfd){ accepts ? s->listener.socket.fd : -1, POLLIN, 0 };
	if (!accepts)
		until = accept_ms;
	for (uint32_t i = 0; i < s->limits.connections; i++) {
		const struct http_exchange *x = &s->places[i];
		if (x->state == HTTP_FREE)
			continue;
		s->polled[n - 2] = i;
		s->polls[n++] = (struct pollfd){ x->fd, http_connection_wants(x), 0 };
		if (x->deadline_ms < until)
			until = x->deadline_ms;
	}
	*ret_until_ms = until;
	return n;
}

/* Milliseconds for poll, rounded so that what is due is due afterwards. */
static int timeout_ms(const struct http_server *s, int64_t until_ms)
{
	int64_t left = until_ms - s->now_ms;
	return left <= 0 ? 0 : left > SLEEP_MAX_MS ? SLEEP_MAX_MS : (int)left;
}

static void take_answers(struct http_server *s)
{
	if (!http_owns(&s->wake[0]))
		s->wake[0].fd = -1;
	else
		recv(s->wake[0].fd, s->scratch, HTTP_SCRATCH_BYTES, MSG_DONTWAIT);
	for (struct http_exchange *x = s->places; x < s->places + s->limits.connections; x++) {
		if (x->state == HTTP_PARKED)
			http_connection_answered(x);
	}
}

static void turn(struct http_server *s)
{
	int64_t until_ms;
	if (!http_owns(&s->listener.socket) && (s->listener.socket.fd >= 0 || s->accept_after_ms <= s->now_ms))
		listen_again(s);
	nfds_t n = what_to_wait_for(s, &until_ms);
	int ready = poll(s->polls, n, timeout_ms(s, until_ms));
	if (ready < 0 && errno != EINTR) {
		/* No memory in the kernel, or a limit of descriptors below what is open: it may pass. */
		struct timespec pause = { 0, 10000000 };
		nanosleep(&pause, NULL);
	}
	s->now_ms = clock_ms();
	if (ready > 0) {
		if (s->polls[0].revents)
			take_answers(s);
		for (nfds_t i = 2; i < n; i++) {
			if (s->polls[i].revents)
				http_connection_event(&s->places[s->polled[i - 2]], s->polls[i].revents);
		}
		if (s->polls[1].revents)
			accept_some(s);
	}
	for (struct http_exchange *x = s->places; x < s->places + s->limits.connections; x++) {
		if (x->state != HTTP_FREE && x->deadline_ms <= s->now_ms)
			http_connection_late(x);
	}
}

/* sendfile to a socket that was closed raises SIGPIPE, and can't be told not to. */
static bool hold_sigpipe(sigset_t *set, sigset_t *ret_before)
{
	sigset_t pending;
	sigemptyset(set);
	sigaddset(set, SIGPIPE);
	pthread_sigmask(SIG_BLOCK, set, ret_before);
	return sigpending(&pending) == 0 && !sigismember(&pending, SIGPIPE);
}

void http_server_run(struct http_server *s)
{
	sigset_t set, before;
	bool clean = hold_sigpipe(&set, &before);
	s->now_ms = clock_ms();
	while (!atomic_load(&s->stopping))
		turn(s);
	for (struct http_exchange *x = s->places; x < s->places + s->limits.connections; x++) {
		if (x->state != HTTP_FREE)
			http_connection_close(x);
	}
	/* One that we have earned is not left for who unblocks it. */
	while (clean && sigtimedwait(&set, NULL, &(struct timespec){ 0, 0 }) < 0 && errno == EINTR)
		;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}
