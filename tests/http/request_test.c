/*
 * The parser on what clients send, on what no two servers agree about, and on every beginning of each; and the query.
 */
#include "http/request.h"

#include "../base/test.h"

#include <sys/mman.h>

#define LINE "GET / HTTP/1.1\r\n"
#define HOST "Host: a\r\n"

/* Bytes at the end of a page, so that a read behind them is a crash. */
static const char *guarded(const char *bytes, size_t n)
{
	static char *page;
	size_t size = 1 << 16;
	if (!page) {
		page = mmap(NULL, size + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		assert_true(page != MAP_FAILED);
		assert_int_equal(mprotect(page + size, 4096, PROT_NONE), 0);
	}
	assert_true(n <= size);
	return memcpy(page + size - n, bytes, n);
}

/* The verdict, and that it is the same at every cut behind the byte at which it fell, and none before. */
static int verdict(const char *bytes, size_t n, struct http_request *ret)
{
	struct http_request r;
	memset(&r, 0x55, sizeof(r));
	int first = 0;
	size_t first_at = 0;
	for (size_t k = 0; k <= n; k++) {
		int rc = http_parse_request(guarded(bytes, k), k, &r);
		if (first)
			assert_int_equal(rc, first);
		else if (rc)
			first = rc, first_at = k;
	}
	if (first > 0)
		assert_int_equal(first, first_at);
	if (ret)
		*ret = r;
	return first;
}

static int parse(const char *text, struct http_request *ret)
{
	return verdict(text, strlen(text), ret);
}

static void assert_text(struct http_text t, const char *expected)
{
	if (t.n != strlen(expected) || memcmp(t.at, expected, t.n) != 0)
		fail_msg("'%.*s' instead of '%s'", (int)t.n, t.at, expected);
}

static void a_real_one(void **state)
{
	(void)state;
	static const char curl[] = "POST /debug/pprof/symbol?x=1&y HTTP/1.1\r\nHost: localhost:6060\r\nUser-Agent: curl/8\r\n"
	                           "Accept: */*\r\nAUTHORIZATION:Bearer abc \t\r\ncontent-length: 0012\r\nExpect: 100-Continue\r\n"
	                           "Content-Type:\t text/plain\r\nOrigin: http://x\r\nX-Empty:\r\nX-High: \xff\x80\r\n\r\n";
	struct http_request r;
	assert_int_equal(parse(curl, &r), sizeof(curl) - 1);
	assert_int_equal(r.method, HTTP_POST);
	assert_int_equal(r.minor, 1);
	assert_text(r.path, "/debug/pprof/symbol");
	assert_text(r.query, "x=1&y");
	assert_text(r.host, "localhost:6060");
	assert_text(r.authorization, "Bearer abc");
	assert_text(r.content_type, "text/plain");
	assert_text(r.origin, "http://x");
	assert_true(r.has_host && r.has_origin && r.has_length && r.expects_continue);
	assert_int_equal(r.length, 12);
}

static void the_least(void **state)
{
	(void)state;
	struct http_request r;
	assert_int_equal(parse("GET / HTTP/1.0\r\n\r\n", &r), 18);
	assert_int_equal(r.minor, 0);
	assert_false(r.has_host || r.has_origin || r.has_length || r.expects_continue);
	assert_int_equal(r.query.n, 0);
	assert_int_equal(parse("HEAD /? HTTP/1.1\r\n" HOST "\r\n", &r), 29);
	assert_int_equal(r.method, HTTP_HEAD);
	assert_text(r.path, "/");
	assert_int_equal(r.query.n, 0);
	/* What comes behind is somebody else's. */
	assert_int_equal(parse(LINE HOST "\r\nGET / HTTP/9.9", &r), 27);
	/* A 1.0 client doesn't know 100-continue. */
	assert_true(parse("POST / HTTP/1.0\r\nExpect: 100-continue\r\n\r\n", &r) > 0);
	assert_false(r.expects_continue);
}

static const struct refused {
	const char *text;
	int status;
} all_refused[] = {
	/* The line. */
	{ "\r\n" LINE HOST "\r\n", 400 },
	{ "\n", 400 },
	{ " GET / HTTP/1.1\r\n", 400 },
	{ "GET  / HTTP/1.1\r\n", 400 },
	{ "GET\t/ HTTP/1.1\r\n", 400 },
	{ "GET / HTTP/1.1 \r\n", 400 },
	{ "GET / HTTP/1.1\n", 400 },
	{ "GET / HTTP/1.1\r\r\n", 400 },
	{ "GET /\r\n", 400 },
	{ "GET / \r\n", 400 },
	{ "GET / http/1.1\r\n", 400 },
	{ "GET / HTTP/1,1\r\n", 400 },
	{ "GET / HTTP/a.1\r\n", 400 },
	{ "GET / HTTP/11.1\r\n", 400 },
	{ "GET / HTTP/1.10\r\n", 400 },
	{ "GET / HTTP/1.2\r\n", 505 },
	{ "GET / HTTP/2.0\r\n", 505 },
	{ "GET / HTTP/0.9\r\n", 505 },
	{ "GET http://localhost/ HTTP/1.1\r\n", 400 },
	{ "GET * HTTP/1.1\r\n", 400 },
	{ "GET a HTTP/1.1\r\n", 400 },
	{ "GET /a#b HTTP/1.1\r\n", 400 },
	{ "GET /\xc3\xa4 HTTP/1.1\r\n", 400 },
	{ "GET /a\tb HTTP/1.1\r\n", 400 },
	{ "GET /a\x7f HTTP/1.1\r\n", 400 },
	{ "GET /a b HTTP/1.1\r\n", 400 },
	{ "get / HTTP/1.1\r\n", 501 },
	{ "FROB / HTTP/1.1\r\n", 501 },
	{ "GETGETGETGETGETGETGET", 501 },
	{ "PUT / HTTP/1.1\r\n", 405 },
	{ "DELETE / HTTP/1.1\r\n", 405 },
	{ "OPTIONS * HTTP/1.1\r\n", 405 },
	{ "CONNECT a:1 HTTP/1.1\r\n", 405 },
	{ "TRACE / HTTP/1.1\r\n", 405 },
	{ "PATCH / HTTP/1.1\r\n", 405 },
	{ "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 501 },
	{ "\x16\x03\x01\x02", 400 },
	/* Headers. */
	{ LINE "Host: a\n\r\n", 400 },
	{ LINE "Host: a\rX: b\r\n\r\n", 400 },
	{ LINE "Host: a\r\n\n", 400 },
	{ LINE "Host: a\r\n b\r\n\r\n", 400 },
	{ LINE "Host: a\r\n\tb\r\n\r\n", 400 },
	{ LINE " Host: a\r\n\r\n", 400 },
	{ LINE "Host : a\r\n\r\n", 400 },
	{ LINE "Host\r\n\r\n", 400 },
	{ LINE ": a\r\n\r\n", 400 },
	{ LINE "Ho(st: a\r\n\r\n", 400 },
	{ LINE "H\xc3\xb6st: a\r\n\r\n", 400 },
	{ LINE "X: a\x01\r\n\r\n", 400 },
	{ LINE "X: a\x7f\r\n\r\n", 400 },
	{ LINE "\r\n", 400 },
	{ LINE HOST "hOST: a\r\n\r\n", 400 },
	{ LINE "Host:\r\nHost: a\r\n\r\n", 400 },
	{ LINE HOST "Origin: a\r\nOrigin: a\r\n\r\n", 400 },
	{ LINE HOST "Authorization: a\r\nAuthorization: b\r\n\r\n", 400 },
	{ LINE HOST "Content-Type: a\r\nContent-Type: a\r\n\r\n", 400 },
	{ LINE HOST "Sec-Fetch-Site: none\r\nSec-Fetch-Site: none\r\n\r\n", 400 },
	{ LINE HOST "Expect: 200-ok\r\n\r\n", 417 },
	/* Bodies. */
	{ LINE HOST "Content-Length:\r\n\r\n", 400 },
	{ LINE HOST "Content-Length: +5\r\n\r\n", 400 },
	{ LINE HOST "Content-Length: -5\r\n\r\n", 400 },
	{ LINE HOST "Content-Length: 0x5\r\n\r\n", 400 },
	{ LINE HOST "Content-Length: 5 5\r\n\r\n", 400 },
	{ LINE HOST "Content-Length: 5, 5\r\n\r\n", 400 },
	{ LINE HOST "Content-Length: 5.\r\n\r\n", 400 },
	{ LINE HOST "Content-Length: 5\r\nContent-Length: 5\r\n\r\n", 400 },
	{ LINE HOST "Content-Length: 18446744073709551616\r\n\r\n", 413 },
	{ LINE HOST "Transfer-Encoding: chunked\r\n\r\n", 501 },
	{ LINE HOST "Transfer-Encoding:\r\n\r\n", 501 },
	{ LINE HOST "Transfer-Encoding: identity\r\n\r\n", 501 },
	{ LINE HOST "transfer-encoding: chunked\r\nContent-Length: 5\r\n\r\n", 501 },
	{ LINE HOST "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n", 400 },
	{ LINE HOST "Content-Length: 5\r\nTransfer-Encoding : chunked\r\n\r\n", 400 },
};

static void refusals(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(all_refused) / sizeof(all_refused[0]); i++) {
		int rc = parse(all_refused[i].text, NULL);
		if (rc != -all_refused[i].status)
			fail_msg("%s: %d instead of %d", all_refused[i].text, rc, -all_refused[i].status);
	}
}

static void nul_bytes(void **state)
{
	(void)state;
	static const char good[] = LINE "Host: ab\r\nX-A: bc\r\n\r\n";
	assert_true(verdict(good, sizeof(good) - 1, NULL) > 0);
	for (size_t i = 0; i < sizeof(good) - 1; i++) {
		char bad[sizeof(good)];
		memcpy(bad, good, sizeof(good));
		bad[i] = '\0';
		assert_int_equal(verdict(bad, sizeof(good) - 1, NULL), -400);
	}
}

/* Which bytes may be in a name, a value, a target. */
static void every_byte(void **state)
{
	(void)state;
	for (int c = 1; c < 256; c++) {
		char text[64];
		bool visible = c > ' ' && c < 0x7f;
		bool token = visible && !strchr("\"(),/:;<=>?@[\\]{}", c);
		snprintf(text, sizeof(text), "GET / HTTP/1.0\r\nX%cY: a\r\n\r\n", c);
		assert_int_equal(parse(text, NULL) > 0, token || c == ':');
		snprintf(text, sizeof(text), "GET / HTTP/1.0\r\nX: a%cb\r\n\r\n", c);
		assert_int_equal(parse(text, NULL) > 0, c >= ' ' ? c != 0x7f : c == '\t');
		snprintf(text, sizeof(text), "GET /a%cb HTTP/1.0\r\n\r\n", c);
		assert_int_equal(parse(text, NULL) > 0, visible && c != '#');
	}
}

static void many_headers(void **state)
{
	(void)state;
	char text[4096];
	for (int n = HTTP_HEADERS_MAX - 1; n <= HTTP_HEADERS_MAX + 1; n++) {
		size_t at = (size_t)snprintf(text, sizeof(text), LINE HOST);
		for (int i = 1; i < n; i++)
			at += (size_t)snprintf(text + at, sizeof(text) - at, "X-%d: %d\r\n", i, i);
		snprintf(text + at, sizeof(text) - at, "\r\n");
		int rc = parse(text, NULL);
		assert_int_equal(rc, n <= HTTP_HEADERS_MAX ? (int)at + 2 : -431);
	}
}

static void failure_leaves_the_result(void **state)
{
	(void)state;
	struct http_request r, before;
	memset(&r, 0x55, sizeof(r));
	before = r;
	assert_int_equal(http_parse_request(LINE "X", sizeof(LINE), &r), 0);
	assert_int_equal(http_parse_request("x\n", 2, &r), -400);
	assert_memory_equal(&r, &before, sizeof(r));
}

static int query(const char *text, const char *name, char to[8])
{
	struct http_request r = { .query = http_text_of(text) };
	return http_query(&r, name, to, 8);
}

static void queries(void **state)
{
	(void)state;
	char to[8];
	assert_int_equal(query("", "a", to), -1);
	assert_int_equal(query("b=1", "a", to), -1);
	assert_int_equal(query("aa=1&b=a&=a&A=2", "a", to), -1);
	assert_string_equal(to, "");
	assert_int_equal(query("a=1", "a", to), 1);
	assert_string_equal(to, "1");
	assert_int_equal(query("&&b&a=x%2by+z&", "a", to), 5);
	assert_string_equal(to, "x+y z");
	assert_int_equal(query("%61=%C3%a4", "a", to), 2);
	assert_string_equal(to, "\xc3\xa4");
	assert_int_equal(query("a", "a", to), 0);
	assert_int_equal(query("a=", "a", to), 0);
	assert_int_equal(query("a==b", "a", to), 2);
	assert_string_equal(to, "=b");
	assert_int_equal(query("a=1234567", "a", to), 7);
	assert_int_equal(query("a=12345678", "a", to), -2);
	assert_string_equal(to, "");
	assert_int_equal(query("a=1&a=1", "a", to), -2);
	assert_int_equal(query("a=1&b=2&%61", "a", to), -2);
	static const char *const malformed[] = { "a=%", "a=%4", "a=%4g", "a=%g4", "a=%00", "a=x%", "a=1%2" };
	for (size_t i = 0; i < sizeof(malformed) / sizeof(malformed[0]); i++) {
		assert_int_equal(query(malformed[i], "a", to), -2);
		assert_string_equal(to, "");
	}
	assert_int_equal(query("%=1&%6=2&a%zz=3", "a", to), -1);
}

static bool known(const char *text, const char *const *names, const char *first)
{
	struct http_request r = { .query = http_text_of(text) };
	struct http_text unknown = { 0 };
	bool all = http_query_known(&r, names, &unknown);
	if (!all)
		assert_text(unknown, first);
	return all;
}

static void known_parameters(void **state)
{
	(void)state;
	static const char *const names[] = { "seconds", "debug", NULL };
	assert_true(known("", names, ""));
	assert_true(known("&&", NULL, ""));
	assert_true(known("debug=1&seconds=2&debug", names, ""));
	assert_true(known("d%65bug=1", names, ""));
	assert_false(known("debug=1&second=2&x", names, "second"));
	assert_false(known("debug1", names, "debug1"));
	assert_false(known("=1", names, ""));
	assert_false(known("debug=1&d%zzbug", names, "d%zzbug"));
	assert_false(known("debug", NULL, "debug"));
}

static void texts(void **state)
{
	(void)state;
	assert_true(http_text_is(http_text_of("/a"), "/a"));
	assert_false(http_text_is(http_text_of("/a"), "/A"));
	assert_false(http_text_is(http_text_of("/a"), "/ab"));
	assert_false(http_text_is(http_text_of("/ab"), "/a"));
	assert_true(http_text_same(http_text_of("HoSt[@`{"), http_text_of("hOsT[@`{")));
	assert_false(http_text_same(http_text_of("[@"), http_text_of("{`")));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_real_one), cmocka_unit_test(the_least), cmocka_unit_test(refusals),
		cmocka_unit_test(nul_bytes), cmocka_unit_test(every_byte), cmocka_unit_test(many_headers),
		cmocka_unit_test(failure_leaves_the_result), cmocka_unit_test(queries), cmocka_unit_test(known_parameters),
		cmocka_unit_test(texts),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
