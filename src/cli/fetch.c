/*
 * libcurl's easy interface. Everything that isn't needed is
 * switched off: other protocols, redirects, cookies, signals, .netrc.
 */
#include "cli/fetch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/text.h"
#include "cli/progress.h"
#include "record/curl_library.h"

#define HEAP_PATH "/debug/pprof/heap"
#define URL_MAX ((size_t)64 << 10)
#define CONNECT_MS 2000L
#define SILENCE_S 30L
#define REASON_MAX ((size_t)4 << 10)        /* of an answer that is no profile */
#define WAIT_MAX_S 86400u

/* --- addresses --- */

static bool is_http(const char *text)
{
	return strncasecmp(text, "http://", 7) == 0 || strncasecmp(text, "https://", 8) == 0;
}

static const char *authority_of(const char *url)
{
	return strchr(url, ':') + 3;
}

/* "http://host?x" is asked for path, as is "http://host/"; anything longer is what the user wants. */
static void add_url(struct buf *out, const char *text, const char *path)
{
	const char *authority = authority_of(text);
	const char *rest = authority + strcspn(authority, "/?#");
	buf_add(out, text, (size_t)(rest - text));
	if (*rest == '/' && (rest[1] == '?' || !rest[1]))
		rest++;
	if (*rest != '/')
		buf_adds(out, path);
	buf_adds(out, rest);
}

static void add_shown(struct buf *out, const char *text)
{
	const char *authority = is_http(text) ? authority_of(text) : text;
	const char *end = authority + strcspn(authority, "/?#");
	const char *at = is_http(text) ? memrchr(authority, '@', (size_t)(end - authority)) : NULL;
	buf_add(out, text, (size_t)(authority - text));
	buf_adds(out, at ? at + 1 : authority);
}

/* "/sock", or "/sock?query", or "/sock?/path". */
static int parse_unix(const char *text, const char *path, struct fetch_address *a, struct buf *url, struct error *err)
{
	size_t n = strcspn(text, "?");
	if (n == 0 || text[0] != '/' || n >= sizeof a->socket)
		return error_set(err, E_USAGE, "unix:%.200s: give the full path of a socket, like unix:/run/app.sock", text);
	memcpy(a->socket, text, n);
	a->socket[n] = '\0';
	buf_adds(url, "http://localhost");
	if (text[n] == '?' && text[n + 1] == '/')
		buf_adds(url, text + n + 1);
	else
		buf_printf(url, "%s%s", path, text + n);
	return 0;
}

static bool has_blanks(const char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text <= ' ' || *text == '\177')
			return true;
	return false;
}

int fetch_address_parse(const char *text, const char *path, struct fetch_address *ret, struct error *err)
{
	struct fetch_address a = { .socket = "" };
	struct buf url, shown;
	int failed = 0;
	buf_init(&url, URL_MAX);
	buf_init(&shown, URL_MAX);
	if (!path)
		path = HEAP_PATH;
	if (has_blanks(text))
		failed = error_set(err, E_USAGE, "%.200s: an address has no blanks: write %%20", text);
	else if (strncmp(text, "unix:", 5) == 0)
		failed = parse_unix(text + 5, path, &a, &url, err);
	else if (!is_http(text) || strchr("/?#", *authority_of(text)))
		failed = error_set(err, E_USAGE, "%.200s: this is no address like http://host:port or unix:/socket", text);
	else
		add_url(&url, text, path);
	add_shown(&shown, text);
	if (!failed && (url.failed || shown.failed))
		failed = error_set(err, E_LIMIT, "%.100s…: an address of more than %zu bytes", text, URL_MAX);
	if (failed) {
		buf_finish(&url);
		buf_finish(&shown);
		return failed;
	}
	a.url = url.data;
	a.shown = shown.data;
	*ret = a;
	return 0;
}

void fetch_address_finish(struct fetch_address *a)
{
	if (!a)
		return;
	free(a->url);
	free(a->shown);
	a->url = a->shown = NULL;
}

/* What the query itself lets the other side wait before it answers. */
static long asked_to_wait(const char *url)
{
	static const char *const names[] = { "seconds=", "activate=", "wait=" };
	uint64_t sum = 0;
	const char *at = strchr(url, '?');
	while (at && *at) {
		at++;
		for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
			size_t n = strlen(names[i]);
			uint64_t value;
			if (strncmp(at, names[i], n) == 0 &&
			    text_parse_u64(at + n, strcspn(at + n, "&"), 10, &value))
				sum += value < WAIT_MAX_S ? value : WAIT_MAX_S;
		}
		at += strcspn(at, "&");
	}
	return (long)sum;
}

static bool is_loopback(const char *url)
{
	const char *host = authority_of(url);
	const char *end = host + strcspn(host, "/?#");
	const char *at = memrchr(host, '@', (size_t)(end - host));
	host = at ? at + 1 : host;
	size_t n = *host == '[' ? strcspn(host, "]") + 1 : strcspn(host, ":/?#");
	return (n == 9 && strncasecmp(host, "localhost", n) == 0) || strncmp(host, "127.", 4) == 0 ||
	       (n == 5 && strncmp(host, "[::1]", n) == 0);
}

/* --- a transfer --- */

static const struct curl_library *curl;

struct transfer {
	CURL *easy;
	const struct fetch_address *address;
	struct buf *to;
	struct buf reason;              /* the body of anything but 200 */
	struct curl_slist *headers;
	int folder;                     /* of a socket whose path is too long for connect(); or -1 */
	long status;
	bool too_much, has_total;
	int body;                       /* of a POST: the file; -1: it is a GET */
	uint64_t body_bytes, body_at;
	char what[80];
	char error[CURL_ERROR_SIZE];
};

static size_t take(char *bytes, size_t size, size_t n, void *context)
{
	struct transfer *t = context;
	n *= size;
	if (!t->status)
		curl->easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &t->status);
	if (t->status != 200) {
		size_t room = REASON_MAX - t->reason.len;
		buf_add(&t->reason, bytes, n < room ? n : room);
		return n;
	}
	buf_add(t->to, bytes, n);
	t->too_much = t->to->failed;
	return t->too_much ? 0 : n;
}

static int tell_progress(void *context, curl_off_t total, curl_off_t now, curl_off_t up_total, curl_off_t up_now)
{
	struct transfer *t = context;
	total = t->body < 0 ? total : up_total;
	now = t->body < 0 ? now : up_now;
	if (total > 0 && !t->has_total) {
		progress_phase(t->what, (uint64_t)total);
		t->has_total = true;
	}
	progress_set((uint64_t)now);
	return 0;
}

static size_t give(char *to, size_t size, size_t n, void *context)
{
	struct transfer *t = context;
	uint64_t left = t->body_bytes - t->body_at;
	size_t want = size * n < left ? size * n : (size_t)left;
	ssize_t got;
	do
		got = pread(t->body, to, want, (off_t)t->body_at);
	while (got < 0 && errno == EINTR);
	if (got < 0 || (got == 0 && want))
		return CURL_READFUNC_ABORT;
	t->body_at += (uint64_t)got;
	return (size_t)got;
}

/* connect() takes some 100 bytes of path; a folder's descriptor makes a short one of any. */
static int set_socket(struct transfer *t, struct error *err)
{
	const char *path = t->address->socket;
	char folder[PATH_MAX], shorter[PATH_MAX];
	const char *slash = strrchr(path, '/');
	if (strlen(path) >= sizeof ((struct sockaddr_un *)0)->sun_path && slash && slash > path) {
		snprintf(folder, sizeof folder, "%.*s", (int)(slash - path), path);
		t->folder = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (t->folder < 0)
			return error_set(err, E_IO, "%.200s: %s", t->address->shown, strerror(errno));
		snprintf(shorter, sizeof shorter, "/proc/self/fd/%d%.200s", t->folder, slash);
		path = shorter;
	}
	curl->easy_setopt(t->easy, CURLOPT_UNIX_SOCKET_PATH, path);
	return 0;
}

static int set_token(struct transfer *t, const char *token, struct error *err)
{
	struct buf header;
	buf_init(&header, 1 << 12);
	buf_printf(&header, "Authorization: Bearer %s", token);
	if (!header.failed)
		t->headers = curl->slist_append(NULL, header.data);
	buf_finish(&header);
	if (!t->headers)
		return error_nomem(err, "a request");
	curl->easy_setopt(t->easy, CURLOPT_HTTPHEADER, t->headers);
	return 0;
}

static int set_up(struct transfer *t, const char *token, struct error *err)
{
	const struct fetch_address *a = t->address;
	t->easy = curl->easy_init();
	if (!t->easy)
		return error_nomem(err, "a connection");
	curl->easy_setopt(t->easy, CURLOPT_ERRORBUFFER, t->error);
#if LIBCURL_VERSION_NUM >= 0x075500
	curl->easy_setopt(t->easy, CURLOPT_PROTOCOLS_STR, "http,https");
#endif
	curl->easy_setopt(t->easy, CURLOPT_URL, a->url);
	curl->easy_setopt(t->easy, CURLOPT_USERAGENT, "heapgauge/" HEAPGAUGE_VERSION);
	curl->easy_setopt(t->easy, CURLOPT_FOLLOWLOCATION, 0L);
	curl->easy_setopt(t->easy, CURLOPT_NOSIGNAL, 1L);
	curl->easy_setopt(t->easy, CURLOPT_CONNECTTIMEOUT_MS, CONNECT_MS);
	curl->easy_setopt(t->easy, CURLOPT_LOW_SPEED_LIMIT, 1L);
	curl->easy_setopt(t->easy, CURLOPT_LOW_SPEED_TIME, SILENCE_S + asked_to_wait(a->url));
	curl->easy_setopt(t->easy, CURLOPT_MAXFILESIZE_LARGE, (curl_off_t)t->to->max);
	curl->easy_setopt(t->easy, CURLOPT_WRITEFUNCTION, take);
	curl->easy_setopt(t->easy, CURLOPT_WRITEDATA, t);
	curl->easy_setopt(t->easy, CURLOPT_XFERINFOFUNCTION, tell_progress);
	curl->easy_setopt(t->easy, CURLOPT_XFERINFODATA, t);
	curl->easy_setopt(t->easy, CURLOPT_NOPROGRESS, 0L);
	if (t->body >= 0) {
		curl->easy_setopt(t->easy, CURLOPT_POST, 1L);
		curl->easy_setopt(t->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)t->body_bytes);
		curl->easy_setopt(t->easy, CURLOPT_READFUNCTION, give);
		curl->easy_setopt(t->easy, CURLOPT_READDATA, t);
	}
	if (a->socket[0] || is_loopback(a->url))
		curl->easy_setopt(t->easy, CURLOPT_PROXY, "");
	int failed = a->socket[0] ? set_socket(t, err) : 0;
	if (!failed && token)
		failed = set_token(t, token, err);
	return failed;
}

/* --- what went wrong --- */

static int fail_connection(struct transfer *t, CURLcode code, struct error *err)
{
	const char *shown = t->address->shown;
	long os = 0;
	curl->easy_getinfo(t->easy, CURLINFO_OS_ERRNO, &os);
	if (code == CURLE_COULDNT_CONNECT && os)
		return error_set(err, E_IO, "%.200s: cannot connect: %s%s", shown, strerror((int)os),
		                 os == ECONNREFUSED || os == ENOENT ? " (does the program run, and listen there?)"
		                 : os == EACCES ? " (the socket belongs to another user)" : "");
	if (code == CURLE_ABORTED_BY_CALLBACK && t->body >= 0)
		return error_set(err, E_IO, "%.200s: the file that is sent can't be read any more", shown);
	if (code == CURLE_OPERATION_TIMEDOUT)
		return error_set(err, E_IO, "%.200s: no answer: %.200s", shown, t->error);
	if (code == CURLE_GOT_NOTHING || code == CURLE_PARTIAL_FILE || code == CURLE_RECV_ERROR)
		return error_set(err, E_TRUNCATED, "%.200s: the other side closed the connection before the answer was whole",
		                 shown);
	if (code == CURLE_URL_MALFORMAT)
		return error_set(err, E_USAGE, "%.200s: not an address: %.200s", shown, t->error);
	return error_set(err, E_IO, "%.200s: %.200s", shown, t->error[0] ? t->error : curl->easy_strerror(code));
}

/* The first line of the answer, unless it is a page. */
static size_t reason_length(const struct buf *reason)
{
	size_t n = 0;
	if (!reason->data || memchr(reason->data, '\0', reason->len))
		return 0;
	const char *text = reason->data + strspn(reason->data, " \t\r\n");
	if (*text == '<')
		return 0;
	while (text[n] && text[n] != '\n' && text[n] != '\r')
		n++;
	return (size_t)(text - reason->data) + n;
}

static int fail_status(struct transfer *t, struct error *err)
{
	const char *shown = t->address->shown;
	char *target = NULL;
	size_t n = reason_length(&t->reason);
	if (n > 300)
		n = 300;
	curl->easy_getinfo(t->easy, CURLINFO_REDIRECT_URL, &target);
	if (target)
		return error_set(err, E_IO, "%.150s: answers that it is at %.200s: give that address", shown, target);
	if (n)
		return error_set(err, E_IO, "%.120s: answers %ld: %.*s", shown, t->status, (int)n, t->reason.data);
	return error_set(err, E_IO, "%.200s: answers %ld%s", shown, t->status,
	                 t->status == 401 || t->status == 403 ? ": it wants a token (--token-file) or another user"
	                 : t->status == 404 ? ": there is nothing under this path" : "");
}

static int perform(struct transfer *t, struct error *err)
{
	CURLcode code = curl->easy_perform(t->easy);
	curl->easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &t->status);
	if (t->too_much || code == CURLE_FILESIZE_EXCEEDED)
		return error_set(err, E_LIMIT, "%.200s: the answer is larger than %zu MiB or than memory", t->address->shown,
		                 t->to->max >> 20);
	if (code != CURLE_OK)
		return fail_connection(t, code, err);
	return t->status == 200 ? 0 : fail_status(t, err);
}

static int run_transfer(struct transfer *t, const char *token, struct error *err)
{
	int failed = curl_library_load("fetching", &curl, err);
	if (failed)
		return failed;
	buf_init(&t->reason, REASON_MAX + 1);
	snprintf(t->what, sizeof t->what, "%s %.60s", t->body < 0 ? "fetching" : "sending to", t->address->shown);
	progress_phase(t->what, 0);
	failed = set_up(t, token, err);
	if (!failed)
		failed = perform(t, err);
	if (t->easy)
		curl->easy_cleanup(t->easy);
	curl->slist_free_all(t->headers);
	if (t->folder >= 0)
		close(t->folder);
	buf_finish(&t->reason);
	return failed;
}

int fetch(const struct fetch_address *a, const char *token, struct buf *to, struct error *err)
{
	struct transfer t = { .address = a, .to = to, .folder = -1, .body = -1 };
	return run_transfer(&t, token, err);
}

int fetch_send(const struct fetch_address *a, const char *token, int fd, uint64_t bytes, struct buf *to, long *ret_status,
               struct error *err)
{
	struct transfer t = { .address = a, .to = to, .folder = -1, .body = fd, .body_bytes = bytes };
	int failed = run_transfer(&t, token, err);
	*ret_status = t.status;
	return failed;
}
