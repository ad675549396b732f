/* Where a server can be had, and where not: addresses, and what becomes of socket files. */
#include "http/server.h"

#include "../base/test.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#define TOKEN "0123456789abcdef"

static const struct http_route no_routes[] = { { 0 } };
static const struct http_settings settings = { .routes = no_routes };
static char folder[] = "/tmp/heapgauge-listen-XXXXXX";

static int make_folder(void **state)
{
	(void)state;
	return mkdtemp(folder) && chdir(folder) == 0 ? 0 : -1;
}

static int remove_folder(void **state)
{
	(void)state;
	return chdir("/") == 0 ? rmdir(folder) : -1;
}

static int make(const char *text, bool allow_remote, const char *token, struct http_server **ret, struct error *err)
{
	struct http_access a = { 0 };
	snprintf(a.token, sizeof(a.token), "%s", token);
	*ret = NULL;
	return http_server_new(text, allow_remote, &a, &settings, ret, err);
}

static const char *here(const char *name)
{
	static char text[200];
	snprintf(text, sizeof(text), "unix:%s/%s", folder, name);
	return text;
}

static void addresses(void **state)
{
	(void)state;
	static const struct {
		const char *text, *url;
	} all[] = {
		{ "127.0.0.1:0", "http://127.0.0.1:" }, { "localhost:0", "http://127.0.0.1:" }, { "127.9.8.7:0", "http://127.9.8.7:" },
		{ "[::1]:0", "http://[::1]:" },
	};
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		struct http_server *s;
		struct error err;
		if (make(all[i].text, false, "", &s, &err)) {
			if (all[i].text[0] == '[' && strstr(err.text, "annot assign"))
				continue;       /* a machine without IPv6 */
			fail_msg("%s", err.text);
		}
		const char *url = http_server_url(s);
		assert_memory_equal(url, all[i].url, strlen(all[i].url));
		assert_true(strtoul(url + strlen(all[i].url), NULL, 10) > 0);
		http_server_free(s);
	}
	http_server_free(NULL);
	http_server_abandon(NULL);
}

static void no_addresses(void **state)
{
	(void)state;
	static const char *const all[] = {
		"", ":", "6060", ":6060", "127.0.0.1", "127.0.0.1:", "127.0.0.1:65536", "127.0.0.1:-1", "127.0.0.1:80 ", "::1:6060",
		"[::1:6060", "[::1]", "[::1]6060", "example.com:80", "localhost:http", "http://127.0.0.1:80", "127.1:80", "[127.0.0.1]:80",
		"[]:80", "unix:", "unix:relative", "unix:/tmp/", "unix:/",
		"01234567890123456789012345678901234567890123456789012345678901234567890123456789:1",
	};
	char long_path[200] = "unix:/";
	memset(long_path + 6, 'x', 108);
	for (size_t i = 0; i <= sizeof(all) / sizeof(all[0]); i++) {
		const char *text = i < sizeof(all) / sizeof(all[0]) ? all[i] : long_path;
		struct http_server *s;
		struct error err;
		if (make(text, true, TOKEN, &s, &err) != E_USAGE)
			fail_msg("'%s' is an address?", text);
		assert_non_null(strstr(err.text, "can't listen on "));
		assert_null(s);
	}
}

static void beyond_loopback(void **state)
{
	(void)state;
	static const char *const all[] = { "0.0.0.0:0", "[::]:0", "192.0.2.1:0", "[2001:db8::1]:0", "[::ffff:127.0.0.1]:0", "128.0.0.1:0" };
	struct http_server *s;
	struct error err;
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		assert_int_equal(make(all[i], false, TOKEN, &s, &err), E_UNSUPPORTED);
		assert_non_null(strstr(err.text, "allow that explicitly"));
		assert_int_equal(make(all[i], true, "", &s, &err), E_UNSUPPORTED);
		assert_non_null(strstr(err.text, "needs a token"));
	}
	assert_int_equal(make("0.0.0.0:0", true, TOKEN, &s, &err), E_OK);
	assert_memory_equal(http_server_url(s), "http://0.0.0.0:", 15);
	http_server_free(s);
	assert_int_equal(make("127.0.0.1:0", false, "short", &s, &err), E_USAGE);
	assert_non_null(strstr(err.text, "can be guessed"));
}

static void ports_in_use(void **state)
{
	(void)state;
	struct http_server *s, *other;
	struct error err;
	assert_int_equal(make("127.0.0.1:0", false, "", &s, &err), E_OK);
	const char *address = http_server_url(s) + strlen("http://");
	assert_int_equal(make(address, false, "", &other, &err), E_IO);
	assert_non_null(strstr(err.text, "in use"));
	assert_non_null(strstr(err.text, address));
	http_server_free(s);
}

static mode_t mode_of(const char *path)
{
	struct stat st;
	assert_int_equal(lstat(path, &st), 0);
	return st.st_mode & 07777;
}

static void socket_files(void **state)
{
	(void)state;
	struct http_server *s, *other;
	struct error err;
	static const mode_t masks[] = { 0, 022, 077, 0177 };
	mode_t before = umask(0);
	for (size_t i = 0; i < sizeof(masks) / sizeof(masks[0]); i++) {
		umask(masks[i]);
		assert_int_equal(make(here("a"), false, "", &s, &err), E_OK);
		assert_int_equal(mode_of("a"), 0600);
		assert_string_equal(http_server_url(s), here("a"));
		/* Alive: it stays. */
		assert_int_equal(make(here("a"), false, "", &other, &err), E_IO);
		assert_non_null(strstr(err.text, "another process listens"));
		assert_int_equal(mode_of("a"), 0600);
		http_server_free(s);
		assert_int_equal(access("a", F_OK), -1);
	}
	umask(before);
}

/* A forked child gives up what it has without taking the file away; what is left of the dead is replaced. */
static void stale_files(void **state)
{
	(void)state;
	struct http_server *s, *other;
	struct error err;
	assert_int_equal(make(here("a"), false, "", &s, &err), E_OK);
	http_server_abandon(s);
	assert_int_equal(access("a", F_OK), 0);
	assert_int_equal(make(here("a"), false, "", &s, &err), E_OK);
	/* Somebody took it away and put his own there: not ours to remove. */
	assert_int_equal(unlink("a"), 0);
	assert_int_equal(make(here("a"), false, "", &other, &err), E_OK);
	http_server_free(s);
	assert_int_equal(access("a", F_OK), 0);
	http_server_free(other);
	assert_int_equal(access("a", F_OK), -1);
}

static void other_files(void **state)
{
	(void)state;
	struct http_server *s;
	struct error err;
	int fd = open("file", O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	close(fd);
	assert_int_equal(symlink("nowhere", "link"), 0);
	assert_int_equal(mkdir("dir", 0700), 0);
	static const char *const names[] = { "file", "link", "dir" };
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(make(here(names[i]), false, "", &s, &err), E_IO);
		assert_non_null(strstr(err.text, "is no socket"));
		assert_int_equal(access(names[i], F_OK), i == 1 ? -1 : 0);
	}
	assert_int_equal(make(here("file/a"), false, "", &s, &err), E_IO);
	unlink("file");
	unlink("link");
	rmdir("dir");
}

static void folders(void **state)
{
	(void)state;
	struct http_server *s;
	struct error err;
	mode_t before = umask(0);
	assert_int_equal(make(here("new/a"), false, "", &s, &err), E_OK);
	umask(before);
	assert_int_equal(mode_of("new"), 0700);
	http_server_free(s);
	assert_int_equal(make(here("new/a"), false, "", &s, &err), E_OK);
	http_server_free(s);
	assert_int_equal(rmdir("new"), 0);
	/* One folder, not a tree. */
	assert_int_equal(make(here("new/er/a"), false, "", &s, &err), E_IO);
	assert_non_null(strstr(err.text, "can't make the folder"));
	assert_int_equal(access("new", F_OK), -1);
}

static void forbidden_folder(void **state)
{
	(void)state;
	struct http_server *s;
	struct error err;
	be_nobody(folder);
	assert_int_equal(chmod(folder, 0500), 0);
	assert_int_equal(make(here("a"), false, "", &s, &err), E_IO);
	assert_non_null(strstr(err.text, "ermission denied"));
	assert_int_equal(chmod(folder, 0700), 0);
	be_root_again();
}

static void limits(void **state)
{
	(void)state;
	struct http_access a = { 0 };
	struct http_server *s;
	struct error err;
	struct http_settings large = settings;
	large.limits = (struct http_limits){ .connections = 5000, .head_bytes = 64 << 10 };
	assert_int_equal(http_server_new("127.0.0.1:0", false, &a, &large, &s, &err), E_OK);
	http_server_free(s);
	large.limits.connections = 1 << 20;
	assert_int_equal(http_server_new("127.0.0.1:0", false, &a, &large, &s, &err), E_USAGE);
	large.limits = (struct http_limits){ .head_bytes = 1 << 30 };
	assert_int_equal(http_server_new("127.0.0.1:0", false, &a, &large, &s, &err), E_USAGE);
}

/* Stopped before it began: it returns at once, and again. */
static void stop_first(void **state)
{
	(void)state;
	struct http_server *s;
	struct error err;
	assert_int_equal(make("127.0.0.1:0", false, "", &s, &err), E_OK);
	http_server_stop(s);
	http_server_stop(s);
	http_server_run(s);
	http_server_run(s);
	http_server_free(s);
}

static void words(void **state)
{
	(void)state;
	assert_string_equal(http_status_words(429), "Too Many Requests");
	assert_string_equal(http_status_words(299), "Unknown");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(addresses), cmocka_unit_test(no_addresses), cmocka_unit_test(beyond_loopback),
		cmocka_unit_test(ports_in_use), cmocka_unit_test(socket_files), cmocka_unit_test(stale_files),
		cmocka_unit_test(other_files), cmocka_unit_test(folders), cmocka_unit_test(forbidden_folder),
		cmocka_unit_test(limits), cmocka_unit_test(stop_first), cmocka_unit_test(words),
	};
	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
