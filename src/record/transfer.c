#include "record/transfer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/un.h>
#include <unistd.h>

#include "record/recorder_private.h"

#define REASON_MAX ((size_t)2 << 10)
#define SECRET_MAX ((size_t)8 << 10)

/* --- what comes --- */

static size_t take(char *bytes, size_t size, size_t n, void *context)
{
	struct transfer *t = context;
	n *= size;
	if (!t->status)
		t->curl->easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &t->status);
	if (t->status != 200) {
		size_t room = REASON_MAX - t->reason.len;
		buf_add(&t->reason, bytes, n < room ? n : room);
		/* Who keeps on explaining is not listened to. */
		return room ? n : 0;
	}
	size_t before = t->to->capacity;
	buf_add(t->to, bytes, n);
	uint64_t more = t->to->capacity - before;
	t->counted_bytes += more;
	t->too_much = t->to->failed;
	t->shed = more && atomic_fetch_add_explicit(t->body_bytes, more, memory_order_relaxed) + more > BODY_BYTES_MAX;
	return t->too_much || t->shed ? 0 : n;
}

/* --- what is sent --- */

/* The first line of a file. */
static int read_secret(const char *path, struct buf *to, struct error *err)
{
	char bytes[SECRET_MAX];
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	ssize_t n = fd < 0 ? -1 : read(fd, bytes, sizeof bytes);
	int failed = E_OK;
	if (n < 0)
		failed = error_set(err, E_IO, "%.300s: %s", path, strerror(errno));
	else if ((size_t)n == sizeof bytes)
		failed = error_set(err, E_IO, "%.300s: a secret of more than %zu bytes", path, SECRET_MAX - 1);
	else
		buf_add(to, bytes, n && memchr(bytes, '\n', (size_t)n) ? (size_t)((char *)memchr(bytes, '\n', (size_t)n) - bytes) : (size_t)n);
	if (fd >= 0)
		close(fd);
	while (to->len && (to->data[to->len - 1] == '\r' || to->data[to->len - 1] == ' '))
		buf_cut(to, to->len - 1);
	return failed;
}

static int add_header(struct transfer *t, const struct buf *line, struct error *err)
{
	struct curl_slist *more = line->failed || !line->data ? NULL : t->curl->slist_append(t->headers, line->data);
	if (!more)
		return error_nomem(err, "a request");
	t->headers = more;
	return E_OK;
}

static int set_access(struct transfer *t, const struct config_access *a, struct error *err)
{
	struct buf secret, header;
	int failed = E_OK;
	buf_init(&secret, SECRET_MAX);
	buf_init(&header, 2 * SECRET_MAX);
	const char *file = a->username ? a->password_file : a->credentials_file;
	const char *given = a->username ? a->password : a->credentials;
	if (file)
		failed = read_secret(file, &secret, err);
	else if (given)
		buf_adds(&secret, given);
	if (!failed && a->username) {
		t->curl->easy_setopt(t->easy, CURLOPT_HTTPAUTH, CURLAUTH_BASIC);
		t->curl->easy_setopt(t->easy, CURLOPT_USERNAME, a->username);
		t->curl->easy_setopt(t->easy, CURLOPT_PASSWORD, secret.data ? secret.data : "");
	} else if (!failed && (file || given)) {
		buf_printf(&header, "Authorization: %s %s", a->authorization_type ? a->authorization_type : "Bearer", secret.data ? secret.data : "");
		failed = add_header(t, &header, err);
	}
	if (secret.data)
		explicit_bzero(secret.data, secret.len);
	if (header.data)
		explicit_bzero(header.data, header.len);
	buf_finish(&secret);
	buf_finish(&header);
	return failed;
}

static void set_files(struct transfer *t, const struct config_access *a)
{
	if (a->ca_file)
		t->curl->easy_setopt(t->easy, CURLOPT_CAINFO, a->ca_file);
	if (a->cert_file) {
		t->curl->easy_setopt(t->easy, CURLOPT_SSLCERT, a->cert_file);
		t->curl->easy_setopt(t->easy, CURLOPT_SSLKEY, a->key_file);
	}
	if (a->insecure_skip_verify) {
		t->curl->easy_setopt(t->easy, CURLOPT_SSL_VERIFYPEER, 0L);
		t->curl->easy_setopt(t->easy, CURLOPT_SSL_VERIFYHOST, 0L);
	}
}

/* The certificate has to be that of server_name: it is asked for under this name, at the target's address. */
static int set_server_name(struct transfer *t, const struct transfer_request *q, struct error *err)
{
	const char *host = strstr(q->url, "://");
	struct buf text;
	if (!q->access->server_name || q->socket || strncmp(q->url, "https", 5) != 0 || !host)
		return E_OK;
	host += 3;
	size_t n = strcspn(host, "/?#");
	bool has_port = memchr(host, ':', n) && (host[0] != '[' || host[n - 1] != ']');
	buf_init(&text, sizeof t->url + 64);
	buf_printf(&text, "Host: %.*s", (int)n, host);
	int failed = add_header(t, &text, err);
	buf_reset(&text);
	buf_printf(&text, "::%.*s%s", (int)n, host, has_port ? "" : ":443");
	t->connect_to = text.failed ? NULL : t->curl->slist_append(NULL, text.data);
	buf_finish(&text);
	snprintf(t->url, sizeof t->url, "https://%s%s", q->access->server_name, host + n);
	t->curl->easy_setopt(t->easy, CURLOPT_CONNECT_TO, t->connect_to);
	return failed || !t->connect_to ? error_nomem(err, "a request") : E_OK;
}

static int set_headers(struct transfer *t, const struct transfer_request *q, struct error *err)
{
	struct buf line;
	buf_init(&line, 256);
	buf_printf(&line, "X-Prometheus-Scrape-Timeout-Seconds: %lld.%03lld", (long long)q->timeout_ms / 1000, (long long)q->timeout_ms % 1000);
	int failed = add_header(t, &line, err);
	buf_reset(&line);
	buf_printf(&line, "Accept: %s", q->accept);
	if (!failed)
		failed = add_header(t, &line, err);
	buf_finish(&line);
	if (!failed)
		failed = set_access(t, q->access, err);
	if (!failed)
		failed = set_server_name(t, q, err);
	t->curl->easy_setopt(t->easy, CURLOPT_HTTPHEADER, t->headers);
	return failed;
}

static void set_limits(struct transfer *t, const struct transfer_request *q)
{
	const struct curl_library *c = t->curl;
#if LIBCURL_VERSION_NUM >= 0x075500
	c->easy_setopt(t->easy, CURLOPT_PROTOCOLS_STR, "http,https");
#endif
	c->easy_setopt(t->easy, CURLOPT_FOLLOWLOCATION, 0L);
	c->easy_setopt(t->easy, CURLOPT_NOSIGNAL, 1L);
	c->easy_setopt(t->easy, CURLOPT_PROXY, "");
	c->easy_setopt(t->easy, CURLOPT_CONNECTTIMEOUT_MS, (long)q->timeout_ms);
	c->easy_setopt(t->easy, CURLOPT_TIMEOUT_MS, (long)q->timeout_ms);
	c->easy_setopt(t->easy, CURLOPT_MAXFILESIZE_LARGE, (curl_off_t)t->to->max);
	/* One who has hung up on us since the last scrape must not be taken for one that fails. */
	c->easy_setopt(t->easy, CURLOPT_FRESH_CONNECT, 0L);
	c->easy_setopt(t->easy, CURLOPT_BUFFERSIZE, 65536L);
}

int transfer_init(struct transfer *t, const struct curl_library *curl, const struct transfer_request *q, struct buf *to,
                  _Atomic uint64_t *body_bytes, void *owner, struct error *err)
{
	*t = (struct transfer){ .curl = curl, .to = to, .body_bytes = body_bytes, .owner = owner,
	                         .deadline_ms = clock_ms() + q->timeout_ms };
	buf_init(&t->reason, REASON_MAX + 1);
	t->easy = curl->easy_init();
	if (!t->easy)
		return error_nomem(err, "a connection");
	if (strlen(q->url) >= sizeof t->url)
		return error_set(err, E_LIMIT, "an address of more than %zu bytes", sizeof t->url - 1);
	if (q->socket && strlen(q->socket) >= sizeof ((struct sockaddr_un *)0)->sun_path)
		return error_set(err, E_LIMIT, "the path of a socket has at most %zu bytes", sizeof ((struct sockaddr_un *)0)->sun_path - 1);
	snprintf(t->url, sizeof t->url, "%s", q->url);
	set_limits(t, q);
	set_files(t, q->access);
	int failed = set_headers(t, q, err);
	curl->easy_setopt(t->easy, CURLOPT_ERRORBUFFER, t->error);
	curl->easy_setopt(t->easy, CURLOPT_USERAGENT, "heapgauge-record");
	curl->easy_setopt(t->easy, CURLOPT_ACCEPT_ENCODING, "gzip");
	curl->easy_setopt(t->easy, CURLOPT_WRITEFUNCTION, take);
	curl->easy_setopt(t->easy, CURLOPT_WRITEDATA, t);
	curl->easy_setopt(t->easy, CURLOPT_PRIVATE, t);
	if (q->socket)
		curl->easy_setopt(t->easy, CURLOPT_UNIX_SOCKET_PATH, q->socket);
	curl->easy_setopt(t->easy, CURLOPT_URL, t->url);
	return failed;
}

void transfer_finish(struct transfer *t)
{
	if (t->easy)
		t->curl->easy_cleanup(t->easy);
	if (t->curl) {
		t->curl->slist_free_all(t->headers);
		t->curl->slist_free_all(t->connect_to);
		atomic_fetch_sub_explicit(t->body_bytes, t->counted_bytes, memory_order_relaxed);
		buf_finish(&t->reason);
	}
	*t = (struct transfer){ .curl = NULL };
}

/* --- how it ended --- */

/* Scheme, host and port are the same. */
static bool same_host(const char *a, const char *b)
{
	const char *from = strstr(a, "://"), *to = strstr(b, "://");
	size_t n = from ? (size_t)(from - a) + 3 + strcspn(from + 3, "/?#") : 0;
	return from && to && n == (size_t)(to - b) + 3 + strcspn(to + 3, "/?#") && strncasecmp(a, b, n) == 0;
}

bool transfer_ended(struct transfer *t, CURLcode code)
{
	char *target = NULL;
	t->curl->easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &t->status);
	t->curl->easy_getinfo(t->easy, CURLINFO_REDIRECT_URL, &target);
	/* The body of an answer that isn't 200 may have been cut by us. */
	t->code = code == CURLE_WRITE_ERROR && t->status != 200 && t->status ? CURLE_OK : code;
	if (t->code == CURLE_OK && t->status / 100 == 3 && target && t->redirects < REDIRECTS_MAX && strlen(target) < sizeof t->url &&
	    same_host(t->url, target)) {
		t->redirects++;
		snprintf(t->url, sizeof t->url, "%s", target);
		buf_reset(&t->reason);
		t->status = 0;
		int64_t left_ms = t->deadline_ms - clock_ms();
		t->curl->easy_setopt(t->easy, CURLOPT_TIMEOUT_MS, left_ms > 0 ? (long)left_ms : 1L);
		t->curl->easy_setopt(t->easy, CURLOPT_URL, t->url);
		return true;
	}
	t->done = true;
	return false;
}

static int fail_connection(struct transfer *t, enum failure *ret_why, struct error *err)
{
	long os = 0;
	t->curl->easy_getinfo(t->easy, CURLINFO_OS_ERRNO, &os);
	*ret_why = FAILED_CONNECTION;
	if (t->code == CURLE_OPERATION_TIMEDOUT) {
		*ret_why = FAILED_TIMEOUT;
		return error_set(err, E_IO, "no whole answer in time: %.200s", t->error);
	}
	if (t->code == CURLE_COULDNT_CONNECT && os)
		return error_set(err, E_IO, "cannot connect: %s%s", strerror((int)os),
		                 os == ECONNREFUSED || os == ENOENT ? " (does the program run, and listen there?)" : "");
	if (t->code == CURLE_GOT_NOTHING || t->code == CURLE_PARTIAL_FILE || t->code == CURLE_RECV_ERROR)
		return error_set(err, E_TRUNCATED, "the other side closed the connection before the answer was whole");
	return error_set(err, E_IO, "%.300s", t->error[0] ? t->error : t->curl->easy_strerror(t->code));
}

/* The first line of the answer, unless it is a page. */
static int fail_status(struct transfer *t, struct error *err)
{
	const char *text = t->reason.data && !memchr(t->reason.data, '\0', t->reason.len) ? t->reason.data : "";
	char *target = NULL;
	t->curl->easy_getinfo(t->easy, CURLINFO_REDIRECT_URL, &target);
	text += strspn(text, " \t\r\n");
	size_t n = *text == '<' ? 0 : strcspn(text, "\r\n");
	if (target && t->redirects == REDIRECTS_MAX)
		return error_set(err, E_IO, "it redirects more than %d times, now to %.200s", REDIRECTS_MAX, target);
	if (target)
		return error_set(err, E_IO, "it answers that it is at %.200s, another host or port: give that address", target);
	if (n)
		return error_set(err, E_IO, "it answers %ld: %.*s", t->status, n > 300 ? 300 : (int)n, text);
	return error_set(err, E_IO, "it answers %ld%s", t->status,
	                 t->status == 401 || t->status == 403 ? ": it wants a password or token (basic_auth, authorization)"
	                 : t->status == 404 ? ": there is nothing under this path (profile_path)" : "");
}

int transfer_result(struct transfer *t, enum failure *ret_why, struct error *err)
{
	*ret_why = FAILED_TOO_LARGE;
	if (t->shed) {
		*ret_why = FAILED_SHED;
		return error_set(err, E_LIMIT, "the recorder has no memory left for its answer now: more is coming in than it can store");
	}
	if (t->too_much || t->code == CURLE_FILESIZE_EXCEEDED)
		return error_set(err, E_LIMIT, "the answer is larger than body_size_limit, %zu bytes", t->to->max);
	if (t->code != CURLE_OK)
		return fail_connection(t, ret_why, err);
	*ret_why = FAILED_STATUS;
	if (t->status != 200)
		return fail_status(t, err);
	if (t->to->len)
		return E_OK;
	*ret_why = FAILED_FORMAT;
	return error_set(err, E_FORMAT, "the answer is empty");
}
