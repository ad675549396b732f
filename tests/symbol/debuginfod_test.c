/*
 * debuginfod's bounds: a server that takes connections and never says a word, one that isn't there, and questions that
 * are none. Real servers are in tests/cli/t0540-names.sh.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <dlfcn.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "symbol/debuginfod.h"

#define ID "0123456789abcdef0123456789abcdef01234567"

static char cache[] = "/tmp/heapgauge-debuginfod-XXXXXX";

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* A socket on loopback; whoever connects waits in its queue, for good. */
static int silent_server(char *url, size_t size, bool listening)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t n = sizeof a;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&a, n), 0);
	if (listening)
		assert_int_equal(listen(fd, 16), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&a, &n), 0);
	snprintf(url, size, "http://127.0.0.1:%d", ntohs(a.sin_port));
	return fd;
}

static void need_library(void)
{
	void *library = dlopen("libdebuginfod.so.1", RTLD_NOW);
	if (!library)
		skip();
}

static void nobody_is_asked_without_a_url(void **state)
{
	(void)state;
	unsetenv("DEBUGINFOD_URLS");
	assert_null(debuginfod_new(NULL));
	setenv("DEBUGINFOD_URLS", "  ", 1);
	assert_null(debuginfod_new(NULL));
	char path[64];
	assert_int_equal(debuginfod_open(NULL, DEBUGINFOD_DEBUG, ID, path, sizeof path), -1);
	debuginfod_warnings(NULL, NULL);
	debuginfod_free(NULL);
}

static void count(void *context, const char *what, uint64_t done, uint64_t total)
{
	(void)what;
	(void)total;
	int *calls = context;
	calls[done == UINT64_MAX]++;
}

static void the_budget_is_of_all_questions(void **state)
{
	char url[64], path[4096] = "untouched";
	int calls[2] = { 0 };
	struct buf warnings;
	(void)state;
	need_library();
	int server = silent_server(url, sizeof url, true);
	setenv("DEBUGINFOD_URLS", url, 1);
	struct debuginfod_options o = { .budget_ms = 1500, .progress = count, .context = calls };
	struct debuginfod *d = debuginfod_new(&o);
	double start = now();
	assert_int_equal(debuginfod_open(d, DEBUGINFOD_DEBUG, ID, path, sizeof path), -1);
	assert_true(now() - start > 1.4 && now() - start < 4);
	assert_true(calls[0] > 0);
	assert_int_equal(calls[1], 1);
	start = now();
	for (int i = 0; i < 1000; i++)
		assert_int_equal(debuginfod_open(d, DEBUGINFOD_EXECUTABLE, ID, path, sizeof path), -1);
	assert_true(now() - start < 0.5);
	assert_string_equal(path, "untouched");
	buf_init(&warnings, 4096);
	debuginfod_warnings(d, &warnings);
	assert_non_null(strstr(warnings.data, "too slow"));
	assert_ptr_equal(strchr(warnings.data, '\n'), warnings.data + warnings.len - 1);
	buf_finish(&warnings);
	debuginfod_free(d);
	close(server);
}

static void a_refusal_is_one_warning(void **state)
{
	char url[64], path[4096];
	struct buf warnings;
	(void)state;
	need_library();
	int nobody = silent_server(url, sizeof url, false);
	setenv("DEBUGINFOD_URLS", url, 1);
	struct debuginfod *d = debuginfod_new(NULL);
	assert_int_equal(debuginfod_open(d, DEBUGINFOD_DEBUG, ID, path, sizeof path), -1);
	assert_int_equal(debuginfod_open(d, DEBUGINFOD_DEBUG, "ff" ID, path, sizeof path), -1);
	buf_init(&warnings, 4096);
	debuginfod_warnings(d, &warnings);
	assert_non_null(strstr(warnings.data, "Connection refused"));
	assert_ptr_equal(strchr(warnings.data, '\n'), warnings.data + warnings.len - 1);
	buf_finish(&warnings);
	debuginfod_free(d);
	close(nobody);
}

/* They would become part of a URL and of a path. */
static void only_build_ids_are_asked_for(void **state)
{
	static const char *const wrong[] = { "", "../../../etc/passwd", "0123456789ABCDEF", "01 23", "/", "zz" };
	char url[64], path[4096], much[1000];
	struct buf warnings;
	(void)state;
	need_library();
	int nobody = silent_server(url, sizeof url, false);
	setenv("DEBUGINFOD_URLS", url, 1);
	struct debuginfod *d = debuginfod_new(NULL);
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
		assert_int_equal(debuginfod_open(d, DEBUGINFOD_DEBUG, wrong[i], path, sizeof path), -1);
	memset(much, 'a', sizeof much - 1);
	much[sizeof much - 1] = '\0';
	assert_int_equal(debuginfod_open(d, DEBUGINFOD_DEBUG, much, path, sizeof path), -1);
	buf_init(&warnings, 4096);
	debuginfod_warnings(d, &warnings);
	assert_int_equal(warnings.len, 0);
	buf_finish(&warnings);
	debuginfod_free(d);
	close(nobody);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nobody_is_asked_without_a_url),
		cmocka_unit_test(the_budget_is_of_all_questions),
		cmocka_unit_test(a_refusal_is_one_warning),
		cmocka_unit_test(only_build_ids_are_asked_for),
	};
	if (!mkdtemp(cache))
		return 1;
	setenv("DEBUGINFOD_CACHE_PATH", cache, 1);
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	char clean[128];
	snprintf(clean, sizeof clean, "rm -rf %s", cache);
	return system(clean) || failed;
}
