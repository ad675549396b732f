/* Streams over files, pipes and memory; peeks; reading whole up to a limit. */
#include "test.h"

#include "base/file.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char folder[] = "/tmp/heapgauge-stream-XXXXXX";

static int make_folder(void **state)
{
	(void)state;
	return mkdtemp(folder) && chdir(folder) == 0 ? 0 : -1;
}

static int remove_folder(void **state)
{
	(void)state;
	unlink("file");
	unlink("empty");
	return chdir("/") == 0 ? rmdir(folder) : -1;
}

static void write_file(const char *name, size_t n)
{
	FILE *f = fopen(name, "we");
	assert_non_null(f);
	for (size_t i = 0; i < n; i++)
		putc((int)(i % 251), f);
	assert_int_equal(fclose(f), 0);
}

static void holds_pattern(const uint8_t *bytes, size_t n, size_t from)
{
	for (size_t i = 0; i < n; i++)
		assert_int_equal(bytes[i], (from + i) % 251);
}

static void reads_a_file_whole(void **state)
{
	(void)state;
	static const size_t sizes[] = { 0, 1, 65535, 65536, 65537, 3000000 };
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		write_file("file", sizes[i]);
		struct stream s;
		struct error err;
		assert_int_equal(stream_open(&s, "file", &err), 0);
		assert_int_equal(s.size_hint, sizes[i]);
		assert_string_equal(s.name, "file");
		assert_true(fcntl(s.fd, F_GETFD) & FD_CLOEXEC);
		struct buf b;
		buf_init(&b, BUF_MAX_DEFAULT);
		assert_int_equal(stream_read_all(&s, &b, &err), 0);
		assert_int_equal(b.len, sizes[i]);
		holds_pattern((uint8_t *)b.data, b.len, 0);
		assert_int_equal(s.offset, sizes[i]);
		buf_finish(&b);
		stream_close(&s);
		stream_close(&s);
	}
}

static void limit_is_exact(void **state)
{
	(void)state;
	write_file("file", 1000);
	for (size_t max = 998; max < 1003; max++) {
		struct stream s;
		struct error err;
		struct buf b;
		assert_int_equal(stream_open(&s, "file", &err), 0);
		buf_init(&b, max);
		int rc = stream_read_all(&s, &b, &err);
		assert_int_equal(rc, max < 1000 ? E_LIMIT : E_OK);
		if (rc) {
			char expected[100];
			(void)snprintf(expected, sizeof(expected), "file: larger than the limit of %zu bytes", max);
			assert_string_equal(err.text, expected);
		}
		buf_finish(&b);
		stream_close(&s);
	}
}

static void peek_takes_nothing(void **state)
{
	(void)state;
	write_file("file", 200000);
	struct stream s;
	struct error err;
	assert_int_equal(stream_open(&s, "file", &err), 0);
	size_t at = 0, n;
	const uint8_t *bytes;
	static uint8_t taken[70000];
	for (size_t step = 1; at < 200000; step = step * 3 % 70001) {
		assert_int_equal(stream_peek(&s, step % 66000, &bytes, &n, &err), 0);
		size_t want = step % 66000;
		want = want < 65536 ? want : 65536;
		assert_int_equal(n, want < 200000 - at ? want : 200000 - at);
		holds_pattern(bytes, n, at);
		assert_int_equal(s.offset, at);
		assert_int_equal(stream_read(&s, taken, step, &n, &err), 0);
		assert_true(n > 0 && n <= step);
		holds_pattern(taken, n, at);
		at += n;
	}
	assert_int_equal(at, 200000);
	assert_int_equal(stream_peek(&s, 10, &bytes, &n, &err), 0);
	assert_int_equal(n, 0);
	assert_non_null(bytes);
	stream_close(&s);
}

static void memory_is_a_stream(void **state)
{
	(void)state;
	uint8_t bytes[300];
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(i % 251);
	struct stream s;
	struct error err;
	stream_open_memory(&s, "memory", bytes, sizeof(bytes));
	const uint8_t *seen;
	size_t n;
	assert_int_equal(stream_peek(&s, 1000, &seen, &n, &err), 0);
	assert_int_equal(n, 300);
	uint8_t taken[100];
	assert_int_equal(stream_read(&s, taken, 100, &n, &err), 0);
	assert_int_equal(n, 100);
	assert_int_equal(stream_peek(&s, 5, &seen, &n, &err), 0);
	holds_pattern(seen, n, 100);
	struct buf b;
	buf_init(&b, 1000);
	assert_int_equal(stream_read_all(&s, &b, &err), 0);
	assert_int_equal(b.len, 200);
	holds_pattern((uint8_t *)b.data, b.len, 100);
	assert_int_equal(s.offset, 300);
	buf_finish(&b);
	stream_close(&s);

	stream_open_memory(&s, "nothing", NULL, 0);
	assert_int_equal(stream_peek(&s, 5, &seen, &n, &err), 0);
	assert_int_equal(n, 0);
	assert_int_equal(stream_read(&s, taken, 100, &n, &err), 0);
	assert_int_equal(n, 0);
	stream_close(&s);
}

static int calls;

static int two_then_end(struct stream *s, void *to, size_t room, size_t *ret_n, struct error *err)
{
	(void)s, (void)err;
	calls++;
	size_t n = calls <= 2 && room ? 1 : 0;
	memset(to, 'x', n);
	*ret_n = n;
	return E_OK;
}

/* A terminal would wait for more after its end-of-file: it isn't asked twice. */
static void end_is_asked_for_once(void **state)
{
	(void)state;
	struct stream s = { .fill = two_then_end, .name = "t", .fd = -1 };
	struct error err;
	const uint8_t *bytes;
	size_t n;
	char c[8];
	calls = 0;
	assert_int_equal(stream_peek(&s, 10, &bytes, &n, &err), 0);
	assert_int_equal(n, 2);
	assert_int_equal(calls, 3);
	assert_int_equal(stream_read(&s, c, 8, &n, &err), 0);
	assert_int_equal(n, 2);
	assert_int_equal(stream_read(&s, c, 8, &n, &err), 0);
	assert_int_equal(n, 0);
	assert_int_equal(stream_peek(&s, 10, &bytes, &n, &err), 0);
	assert_int_equal(calls, 3);
	stream_close(&s);
}

static int broken(struct stream *s, void *to, size_t room, size_t *ret_n, struct error *err)
{
	(void)to, (void)room, (void)ret_n;
	return error_set(err, E_IO, "%s: broken", s->name);
}

static void errors_pass_through(void **state)
{
	(void)state;
	struct stream s = { .fill = broken, .name = "b", .fd = -1 };
	struct error err;
	const uint8_t *bytes;
	size_t n = 99;
	char c;
	struct buf b;
	buf_init(&b, 100);
	assert_int_equal(stream_peek(&s, 1, &bytes, &n, &err), E_IO);
	assert_int_equal(stream_read(&s, &c, 1, &n, &err), E_IO);
	assert_int_equal(n, 99);
	assert_int_equal(stream_read_all(&s, &b, &err), E_IO);
	assert_string_equal(err.text, "b: broken");
	buf_finish(&b);
	stream_close(&s);
}

static void refusals(void **state)
{
	(void)state;
	struct stream s;
	struct error err;
	assert_int_equal(stream_open(&s, "absent", &err), E_IO);
	assert_string_equal(err.text, "absent: cannot open: No such file or directory");
	assert_int_equal(stream_open(&s, folder, &err), E_IO);
	assert_non_null(strstr(err.text, " is a directory, not a profile"));
	stream_close(&s);
	stream_close(NULL);
}

static void unreadable_file(void **state)
{
	(void)state;
	struct stream s;
	struct error err;
	write_file("file", 1);
	assert_int_equal(chmod("file", 0), 0);
	be_nobody(folder);
	int rc = stream_open(&s, "file", &err);
	be_root_again();
	assert_int_equal(rc, E_IO);
	assert_string_equal(err.text, "file: cannot open: Permission denied");
	assert_int_equal(unlink("file"), 0);
}

static void nothing(int number)
{
	(void)number;
}

/* Standard input is a pipe that gives little at a time while signals interrupt the reads. */
static void pipe_with_interruptions(void **state)
{
	(void)state;
	int ends[2];
	assert_int_equal(pipe(ends), 0);
	struct sigaction action = { .sa_handler = nothing }, before;
	sigaction(SIGUSR1, &action, &before);
	pid_t reader = getpid(), writer = fork();
	assert_true(writer >= 0);
	if (writer == 0) {
		close(ends[0]);
		for (size_t i = 0; i < 200; i++) {
			uint8_t byte = (uint8_t)(i % 251);
			kill(reader, SIGUSR1);
			usleep(200);
			if (write(ends[1], &byte, 1) != 1)
				_exit(1);
		}
		_exit(0);
	}
	close(ends[1]);
	int saved = dup(STDIN_FILENO);
	assert_true(dup2(ends[0], STDIN_FILENO) == STDIN_FILENO);
	struct stream s;
	struct error err;
	struct buf b;
	buf_init(&b, 1000);
	assert_int_equal(stream_open(&s, "-", &err), 0);
	assert_string_equal(s.name, "standard input");
	assert_int_equal(stream_read_all(&s, &b, &err), 0);
	assert_int_equal(b.len, 200);
	holds_pattern((uint8_t *)b.data, b.len, 0);
	stream_close(&s);
	assert_true(fcntl(STDIN_FILENO, F_GETFD) >= 0);
	int status;
	while (waitpid(writer, &status, 0) < 0)
		;
	assert_int_equal(status, 0);
	sigaction(SIGUSR1, &before, NULL);
	if (saved >= 0) {
		dup2(saved, STDIN_FILENO);
		close(saved);
	}
	close(ends[0]);
	buf_finish(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_a_file_whole),
		cmocka_unit_test(limit_is_exact),
		cmocka_unit_test(peek_takes_nothing),
		cmocka_unit_test(memory_is_a_stream),
		cmocka_unit_test(end_is_asked_for_once),
		cmocka_unit_test(errors_pass_through),
		cmocka_unit_test(refusals),
		cmocka_unit_test(unreadable_file),
		cmocka_unit_test(pipe_with_interruptions),
	};
	return cmocka_run_group_tests_name("stream", tests, make_folder, remove_folder);
}
