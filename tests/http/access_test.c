/* Who is let in, by Host, Origin and token; and tokens out of files. */
#include "http/access.h"

#include "../base/test.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>

#define TOKEN "0123456789abcdef"

static int ask_at(struct http_access *a, const char *host, const char *origin, const char *authorization, int64_t now_ms)
{
	struct http_request r = { 0 };
	if (host)
		r.host = http_text_of(host), r.has_host = true;
	if (origin)
		r.origin = http_text_of(origin), r.has_origin = true;
	if (authorization)
		r.authorization = http_text_of(authorization);
	return http_check_access(a, &r, now_ms);
}

static int ask(const struct http_access *a, const char *host, const char *origin, const char *authorization)
{
	struct http_access copy = *a;
	return ask_at(&copy, host, origin, authorization, 0);
}

static void hosts_of_loopback(void **state)
{
	(void)state;
	static const struct http_access a = { 0 };
	static const char *const fine[] = { "localhost", "LocalHost:6060", "127.0.0.1:1", "127.1.2.3", "[::1]", "[::1]:65535",
		                            "localhost:" };
	static const char *const foreign[] = { "example.com", "localhost.example.com", "127.0.0.1.example.com", "10.0.0.1:80",
		                               "128.0.0.1", "[::2]", "0.0.0.0", "localhost.", "127.1", "[::ffff:127.0.0.1]" };
	static const char *const malformed[] = { "", ":80", "[]", "[::1", "[::1]x", "::1", "localhost:port", "localhost:123456",
		                                 "a b", "a,b", "localhost/", "x@localhost", "localhost:80:80", "l\xc3\xb6" };
	for (size_t i = 0; i < sizeof(fine) / sizeof(fine[0]); i++)
		assert_int_equal(ask(&a, fine[i], NULL, NULL), 0);
	for (size_t i = 0; i < sizeof(foreign) / sizeof(foreign[0]); i++)
		assert_int_equal(ask(&a, foreign[i], NULL, NULL), 421);
	for (size_t i = 0; i < sizeof(malformed) / sizeof(malformed[0]); i++)
		assert_int_equal(ask(&a, malformed[i], NULL, NULL), 400);
	assert_int_equal(ask(&a, NULL, NULL, NULL), 400);
}

static void hosts_that_were_allowed(void **state)
{
	(void)state;
	struct http_access a = { .hosts = "db1, profiles.example.com:8443 ,[2001:db8::1]" };
	assert_int_equal(ask(&a, "db1", NULL, NULL), 0);
	assert_int_equal(ask(&a, "DB1:77", NULL, NULL), 0);
	assert_int_equal(ask(&a, "db", NULL, NULL), 421);
	assert_int_equal(ask(&a, "db11", NULL, NULL), 421);
	assert_int_equal(ask(&a, "profiles.example.com:8443", NULL, NULL), 0);
	assert_int_equal(ask(&a, "profiles.example.com", NULL, NULL), 421);
	assert_int_equal(ask(&a, "profiles.example.com:844", NULL, NULL), 421);
	assert_int_equal(ask(&a, "[2001:db8::1]:6060", NULL, NULL), 0);
	assert_int_equal(ask(&a, "localhost:6060", NULL, NULL), 0);
	/* Beyond loopback any name is fine, unless there are allowed ones. */
	a.remote = true;
	assert_int_equal(ask(&a, "db2", NULL, NULL), 421);
	a.hosts[0] = '\0';
	assert_int_equal(ask(&a, "db2", NULL, NULL), 0);
	assert_int_equal(ask(&a, "d b", NULL, NULL), 400);
}

static void origins(void **state)
{
	(void)state;
	static const struct http_access a = { 0 };
	static const struct http_access remote = { .remote = true };
	static const struct http_access local = { .local_socket = true };
	assert_int_equal(ask(&a, "localhost:6060", "http://localhost:6060", NULL), 0);
	assert_int_equal(ask(&a, "LOCALHOST:6060", "https://localhost:6060", NULL), 0);
	static const char *const foreign[] = { "http://localhost:3000", "http://localhost", "http://127.0.0.1:6060", "null", "",
		                               "http://evil.example", "http://localhost:6060.evil.example", "ftp://localhost:6060",
		                               "localhost:6060", "http://" };
	for (size_t i = 0; i < sizeof(foreign) / sizeof(foreign[0]); i++)
		assert_int_equal(ask(&a, "localhost:6060", foreign[i], NULL), 403);
	assert_int_equal(ask(&remote, "db2:1", "http://db2:1", NULL), 0);
	assert_int_equal(ask(&remote, "db2:1", "http://db3:1", NULL), 403);
	/* No browser gets to a unix socket. */
	assert_int_equal(ask(&local, "whatever", "http://evil.example", NULL), 0);
	assert_int_equal(ask(&local, NULL, NULL, NULL), 0);
}

static void a_page_elsewhere(void **state)
{
	(void)state;
	struct http_access a = { 0 };
	struct http_request r = { .host = http_text_of("localhost"), .has_host = true };
	static const struct {
		const char *site;
		int status;
	} all[] = { { "same-origin", 0 }, { "none", 0 }, { "cross-site", 403 }, { "same-site", 403 }, { "x", 403 } };
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		r.fetch_site = http_text_of(all[i].site);
		assert_int_equal(http_check_access(&a, &r, 0), all[i].status);
	}
}

static void tokens(void **state)
{
	(void)state;
	static const struct http_access a = { .token = TOKEN };
	static const char *const right[] = { "Bearer " TOKEN, "bearer   " TOKEN, "Basic OjAxMjM0NTY3ODlhYmNkZWY=",
		                             "basic eDowMTIzNDU2Nzg5YWJjZGVm" };
	static const char *const wrong[] = {
		"Bearer", "Bearer ", TOKEN, "Bearer 0123456789abcde", "Bearer 0123456789abcdef0", "Bearer 0123456789abcdeF",
		"Bearer x0123456789abcdef", "BearerX " TOKEN, "Basic " TOKEN, "Basic MDEyMzQ1Njc4OWFiY2RlZg==", "Basic !", "Basic",
		"Digest " TOKEN, "Bearer " TOKEN " " TOKEN, "Basic eDowMTIzNDU2Nzg5YWJjZGVmeA==",
	};
	for (size_t i = 0; i < sizeof(right) / sizeof(right[0]); i++)
		assert_int_equal(ask(&a, "localhost", NULL, right[i]), 0);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_int_equal(ask(&a, "localhost", NULL, wrong[i]), 401);
	assert_int_equal(ask(&a, "localhost", NULL, NULL), 401);
	/* A token doesn't open the door to a foreign name or page. */
	assert_int_equal(ask(&a, "evil.example", NULL, right[0]), 421);
	assert_int_equal(ask(&a, "localhost", "http://evil.example", right[0]), 403);
	struct http_access local = { .local_socket = true, .token = TOKEN };
	assert_int_equal(ask(&local, NULL, NULL, NULL), 401);
	assert_int_equal(ask(&local, NULL, NULL, right[0]), 0);
}

static void the_longest_token(void **state)
{
	(void)state;
	struct http_access a = { 0 };
	char value[HTTP_TOKEN_MAX + 16];
	memset(a.token, 'x', HTTP_TOKEN_MAX);
	snprintf(value, sizeof(value), "Bearer %s", a.token);
	assert_int_equal(ask(&a, "localhost", NULL, value), 0);
	snprintf(value, sizeof(value), "Bearer %sx", a.token);
	assert_int_equal(ask(&a, "localhost", NULL, value), 401);
	/* "Basic" of more than fits. */
	char basic[1000] = "Basic ";
	memset(basic + 6, 'A', sizeof(basic) - 7);
	assert_int_equal(ask(&a, "localhost", NULL, basic), 401);
}

static void many_wrong_tokens(void **state)
{
	(void)state;
	struct http_access a = { .token = TOKEN };
	int64_t now = 1000;
	for (int i = 0; i < 10; i++)
		assert_int_equal(ask_at(&a, "localhost", NULL, "Bearer x", now += 1000), 401);
	assert_int_equal(ask_at(&a, "localhost", NULL, "Bearer x", now), 429);
	/* Neither who has it nor who doesn't try suffers. */
	assert_int_equal(ask_at(&a, "localhost", NULL, "Bearer " TOKEN, now), 0);
	assert_int_equal(ask_at(&a, "localhost", NULL, NULL, now), 401);
	assert_int_equal(ask_at(&a, "localhost", NULL, "Bearer x", 62000), 429);
	assert_int_equal(ask_at(&a, "localhost", NULL, "Bearer x", 62001), 401);
	assert_int_equal(ask_at(&a, "localhost", NULL, "Bearer x", 62001), 401);
}

/* --- files --- */

static char folder[] = "/tmp/heapgauge-access-XXXXXX";

static int make_folder(void **state)
{
	(void)state;
	return mkdtemp(folder) && chdir(folder) == 0 ? 0 : -1;
}

static int remove_folder(void **state)
{
	(void)state;
	unlink("token");
	return chdir("/") == 0 ? rmdir(folder) : -1;
}

static int read_written(const char *bytes, size_t n, mode_t mode, char to[HTTP_TOKEN_MAX + 1], struct error *err)
{
	unlink("token");
	int fd = open("token", O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, n), n);
	assert_int_equal(fchmod(fd, mode), 0);
	close(fd);
	memset(to, 'u', HTTP_TOKEN_MAX + 1);
	return http_read_token("token", to, err);
}

static void files_of_tokens(void **state)
{
	(void)state;
	char to[HTTP_TOKEN_MAX + 1], text[300];
	struct error err;
	static const char *const good[] = { TOKEN, TOKEN "\n", TOKEN "\r\n", TOKEN "\nmore\n" };
	for (size_t i = 0; i < 4; i++) {
		assert_int_equal(read_written(good[i], strlen(good[i]), 0600, to, &err), E_OK);
		assert_string_equal(to, TOKEN);
	}
	assert_int_equal(read_written(TOKEN, 16, 0400, to, &err), E_OK);
	memset(text, 'x', sizeof(text));
	assert_int_equal(read_written(text, HTTP_TOKEN_MAX, 0600, to, &err), E_OK);
	assert_int_equal(strlen(to), HTTP_TOKEN_MAX);
	static const struct {
		size_t n;
		mode_t mode;
		const char *word;
	} bad[] = {
		{ HTTP_TOKEN_MAX + 1, 0600, "256 characters" }, { 300, 0600, "256 characters" }, { 15, 0600, "16 to" }, { 0, 0600, "16 to" },
		{ 16, 0640, "chmod 600" }, { 16, 0604, "chmod 600" }, { 16, 0660, "chmod 600" }, { 16, 0601, "chmod 600" },
	};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(read_written(text, bad[i].n, bad[i].mode, to, &err), E_USAGE);
		assert_non_null(strstr(err.text, bad[i].word));
		assert_memory_equal(err.text, "token: ", 7);
		assert_int_equal(to[0], 'u');
	}
	assert_int_equal(read_written("0123456789abcdef ghi", 20, 0600, to, &err), E_USAGE);
	assert_non_null(strstr(err.text, "character 17"));
	unlink("token");
	assert_int_equal(http_read_token("token", to, &err), E_IO);
	assert_int_equal(mkfifo("token", 0600), 0);
	assert_int_equal(http_read_token("token", to, &err), E_USAGE);
	assert_int_equal(http_read_token(".", to, &err), E_USAGE);
}

static void somebody_elses_token(void **state)
{
	(void)state;
	char to[HTTP_TOKEN_MAX + 1];
	struct error err;
	if (geteuid() != 0) {
		print_message("# only root can give files away\n");
		skip();
	}
	assert_int_equal(read_written(TOKEN, 16, 0600, to, &err), E_OK);
	assert_int_equal(chown("token", 65534, (gid_t)-1), 0);
	assert_int_equal(http_read_token("token", to, &err), E_USAGE);
}

static void peers(void **state)
{
	(void)state;
	int pair[2];
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	assert_true(http_peer_allowed(pair[0]));
	if (geteuid() == 0) {
		/* root is let in by everybody, everybody not by root. */
		assert_int_equal(seteuid(65534), 0);
		assert_true(http_peer_allowed(pair[0]));
		int theirs[2];
		assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, theirs), 0);
		assert_int_equal(seteuid(0), 0);
		assert_false(http_peer_allowed(theirs[0]));
		close(theirs[0]);
		close(theirs[1]);
	}
	close(pair[0]);
	close(pair[1]);
	assert_false(http_peer_allowed(-1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hosts_of_loopback), cmocka_unit_test(hosts_that_were_allowed), cmocka_unit_test(origins),
		cmocka_unit_test(a_page_elsewhere), cmocka_unit_test(tokens), cmocka_unit_test(the_longest_token),
		cmocka_unit_test(many_wrong_tokens), cmocka_unit_test(files_of_tokens), cmocka_unit_test(somebody_elses_token),
		cmocka_unit_test(peers),
	};
	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
