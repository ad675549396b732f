/*
 * The head of a request: one verdict, at one byte, however the bytes arrive; a request whose texts lie in the head; a query whose
 * parameters are found or not; and nobody let in who hasn't the name, the page or the token for it.
 */
#include "http/access.h"

#include <stdlib.h>
#include <string.h>

#if defined(__has_include)
#if __has_include(<sanitizer/asan_interface.h>)
#include <sanitizer/asan_interface.h>
#endif
#endif
#ifndef ASAN_POISON_MEMORY_REGION
#define ASAN_POISON_MEMORY_REGION(at, n) ((void)(at), (void)(n))
#define ASAN_UNPOISON_MEMORY_REGION(at, n) ((void)(at), (void)(n))
#endif

#define TOKEN "token-of-the-fuzzer"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void must(bool it_holds)
{
	if (!it_holds)
		abort();
}

/* The verdict on the first n of total bytes; the others can't be looked at. */
static int parse(const char *bytes, size_t n, size_t total, struct http_request *ret)
{
	ASAN_POISON_MEMORY_REGION(bytes + n, total - n);
	int rc = http_parse_request(bytes, n, ret);
	ASAN_UNPOISON_MEMORY_REGION(bytes + n, total - n);
	return rc;
}

/*
 * The byte at which the verdict falls, by halves: 0 before it, the same from it on. Halves see a few cuts only; which ones differs from
 * input to input, so over many inputs all are seen.
 */
static void check_cuts(const char *bytes, size_t n, int verdict)
{
	struct http_request r;
	size_t undecided = 0, decided = n;
	while (undecided + 1 < decided) {
		size_t k = undecided + (decided - undecided) / 2;
		int rc = parse(bytes, k, n, &r);
		must(rc == 0 || rc == verdict);
		if (rc == 0)
			undecided = k;
		else
			decided = k;
		/* A whole head is known to be whole at its last byte. */
		must(verdict <= 0 || (rc != 0) == (k >= (size_t)verdict));
	}
}

static bool same(struct http_text a, struct http_text b)
{
	return a.at == b.at && a.n == b.n;
}

static void check_text(struct http_text t, const char *bytes, int head)
{
	if (t.at)
		must(t.at > bytes && t.at + t.n < bytes + head);
	else
		must(t.n == 0);
	for (size_t i = 0; i < t.n; i++)
		must((t.at[i] >= ' ' && t.at[i] != 0x7f) || t.at[i] == '\t' || t.at[i] & 0x80);
}

static void check_request(const struct http_request *r, const char *bytes, int head)
{
	struct http_request again;
	must(r->method == HTTP_GET || r->method == HTTP_HEAD || r->method == HTTP_POST);
	must(r->path.n && r->path.at[0] == '/' && !memchr(r->path.at, '?', r->path.n));
	must(r->minor <= 1 && (r->minor == 0 || r->has_host) && (r->has_length || r->length == 0));
	must(r->has_host == !!r->host.at && r->has_origin == !!r->origin.at);
	must(memcmp(bytes + head - 4, "\r\n\r\n", 4) == 0);
	const struct http_text texts[] = { r->path, r->query, r->host, r->origin, r->authorization, r->content_type, r->fetch_site };
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		check_text(texts[i], bytes, head);
	/* What comes behind doesn't count. */
	must(http_parse_request(bytes, (size_t)head, &again) == head);
	must(same(again.path, r->path) && same(again.query, r->query) && same(again.host, r->host) && again.length == r->length);
}

static void check_query(const struct http_request *r)
{
	static const char *const names[] = { "seconds", "a", "", NULL };
	char large[64], small[3];
	struct http_text other = { 0 };
	bool known = http_query_known(r, names, &other);
	bool any = false;
	for (int i = 0; names[i]; i++) {
		int n = http_query(r, names[i], large, sizeof(large));
		int m = http_query(r, names[i], small, sizeof(small));
		must(n >= -2 && n < (int)sizeof(large) && strlen(large) == (size_t)(n > 0 ? n : 0));
		/* Less room changes nothing, but that too long is malformed. */
		must(n >= 0 && n < (int)sizeof(small) ? m == n && strcmp(small, large) == 0 : m == (n == -1 ? -1 : -2));
		any |= n != -1;
	}
	if (!known) {
		struct http_request alone = { .query = other };
		must(other.at >= r->query.at && other.at + other.n <= r->query.at + r->query.n);
		for (int i = 0; names[i]; i++)
			must(http_query(&alone, names[i], large, sizeof(large)) == -1 || other.n == 0);
	} else {
		/* All are known: there is one of them, or none at all. */
		bool none = true;
		for (size_t i = 0; i < r->query.n; i++)
			none &= r->query.at[i] == '&';
		must(any != none);
	}
}

static bool begins(struct http_text t, const char *with)
{
	size_t n = strlen(with);
	return t.n >= n && http_text_same((struct http_text){ t.at, n }, http_text_of(with));
}

static int ask(struct http_access a, const struct http_request *r)
{
	return http_check_access(&a, r, 1000);
}

static void check_access(const struct http_request *r)
{
	static const struct http_access loopback = { .hosts = "profiles.example" };
	static const struct http_access remote = { .remote = true, .token = TOKEN };
	static const struct http_access local = { .local_socket = true, .token = TOKEN };
	static const struct http_access crowded = { .local_socket = true, .token = TOKEN, .wrong = 10, .wrong_since_ms = 900 };
	int status = ask(loopback, r);
	must(status == 0 || status == 400 || status == 403 || status == 421);
	if (status == 0) {
		must(begins(r->host, "localhost") || begins(r->host, "127.") || begins(r->host, "[::1]") ||
		     begins(r->host, "profiles.example"));
		must(!r->has_origin || (r->origin.n == r->host.n + 7 && begins(r->origin, "http://")) ||
		     (r->origin.n == r->host.n + 8 && begins(r->origin, "https://")));
	}
	status = ask(local, r);
	must(status == 0 || status == 401);
	bool token = status == 0;
	must(!token || begins(r->authorization, "Basic ") ||
	     (begins(r->authorization, "Bearer ") &&
	      memcmp(r->authorization.at + r->authorization.n - strlen(TOKEN), TOKEN, strlen(TOKEN)) == 0));
	must(ask(crowded, r) == (token ? 0 : r->authorization.n ? 429 : 401));
	status = ask(remote, r);
	must(status == 0 || status == 400 || status == 401 || status == 403);
	must(status != 0 || token);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	const char *bytes = (const char *)data;
	struct http_request r;
	int verdict = http_parse_request(bytes, n, &r);
	must(verdict <= (int)n);
	if (verdict < 0)
		must(verdict == -400 || verdict == -405 || verdict == -413 || verdict == -417 || verdict == -431 || verdict == -501 ||
		     verdict == -505);
	check_cuts(bytes, n, verdict);
	if (verdict > 0) {
		check_request(&r, bytes, verdict);
		check_query(&r);
		check_access(&r);
	}
	return 0;
}
