/*
 * Lines and frames that a thread read ahead are those that the reader would have read by itself, also where it ends
 * badly; without memory it is that, or an error.
 */
#include "ahead_log.h"
#include "no_memory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define LINE_MAX_BYTES ((size_t)300000)

static const struct read_limits limits = { .profile_bytes = (size_t)1 << 30, .depth = 50 };

/* A stream that hands out a few bytes at a time, and fails where it is told to. */
struct planted {
	const char *bytes;
	size_t n, at, step, fails_at;
};

static int source_fill(struct stream *s, void *to, size_t room, size_t *ret_n, struct error *err)
{
	struct planted *from = s->context;
	if (from->at >= from->fails_at)
		return error_set(err, E_IO, "%s: cannot read: planted", s->name);
	size_t n = 1 + from->at * 7 % from->step;
	n = n < room ? n : room;
	n = n < from->n - from->at ? n : from->n - from->at;
	memcpy(to, from->bytes + from->at, n);
	from->at += n;
	*ret_n = n;
	return E_OK;
}

static int read_source(const struct planted *from, size_t block_bytes, uint64_t input_max, struct buf *log)
{
	struct planted source = *from;
	struct stream in = { .fill = source_fill, .name = "x.heap", .context = &source, .fd = -1 };
	return ahead_log(&in, block_bytes, LINE_MAX_BYTES, input_max, &limits, log);
}

static void must_be_alike(const struct planted *source, uint64_t input_max)
{
	static const size_t blocks[] = { 1, 2, 16, 17, 61, 256, 4096 };
	struct buf direct;
	buf_init(&direct, BUF_MAX_DEFAULT);
	read_source(source, 0, input_max, &direct);
	for (size_t i = 0; i < sizeof(blocks) / sizeof(*blocks); i++) {
		struct buf ahead;
		buf_init(&ahead, BUF_MAX_DEFAULT);
		read_source(source, blocks[i], input_max, &ahead);
		assert_string_equal(ahead.data, direct.data);
		buf_finish(&ahead);
	}
	buf_finish(&direct);
}

static void add_stacks(struct buf *b, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		buf_adds(b, i % 5 ? "@" : "  @");
		for (unsigned k = 0; k < i * 31 % 40; k++)
			buf_printf(b, i % 7 ? " 0x7f%010x" : " 0x%x", i * k % 97 * 64);
		buf_adds(b, i % 11 ? "\n" : "\r\n");
		buf_printf(b, "  t*: %u: %u [0: 0]\n\n", i, i * 64);
	}
}

static void whole(void **state)
{
	struct buf b;
	(void)state;
	buf_init(&b, BUF_MAX_DEFAULT);
	add_stacks(&b, 60);
	struct planted source = { b.data, b.len, 0, 100, SIZE_MAX };
	must_be_alike(&source, UINT64_MAX);
	source.step = 1;
	must_be_alike(&source, UINT64_MAX);
	source.n--;             /* without the last newline */
	must_be_alike(&source, UINT64_MAX);
	source.n = 0;
	must_be_alike(&source, UINT64_MAX);
	buf_finish(&b);
}

/* Nothing is left over for the next block. */
static void blocks_that_end_with_lines(void **state)
{
	struct buf b;
	(void)state;
	buf_init(&b, BUF_MAX_DEFAULT);
	for (int i = 0; i < 12; i++)
		buf_adds(&b, i % 3 ? "@ 0x123\n" : "@\n@ 0x4\n");
	struct planted source = { b.data, b.len, 0, 100, SIZE_MAX };
	must_be_alike(&source, UINT64_MAX);
	buf_finish(&b);
}

/* Every way a line can be wrong, each early and late. */
static void damaged(void **state)
{
	static const char *const bad[] = { "@ 0x12 fish 0x34\n", "@ 0x12345678901234567\n", "@\n", "\n@", "no newline", "" };
	(void)state;
	for (size_t i = 0; i <= sizeof(bad) / sizeof(*bad) * 2; i++) {
		struct buf b;
		buf_init(&b, BUF_MAX_DEFAULT);
		add_stacks(&b, i % 2 ? 40 : 1);
		if (i / 2 < sizeof(bad) / sizeof(*bad))
			buf_adds(&b, bad[i / 2]);
		else    /* too deep for the limit */
			for (int k = 0; k < 60; k++)
				buf_adds(&b, k ? " 0x1" : "@");
		buf_addc(&b, '\n');
		add_stacks(&b, 10);
		struct planted source = { b.data, b.len, 0, 1000, SIZE_MAX };
		must_be_alike(&source, UINT64_MAX);
		buf_finish(&b);
	}
}

static void lines_too_long(void **state)
{
	struct buf b;
	(void)state;
	for (size_t n = LINE_MAX_BYTES - 1000; n < LINE_MAX_BYTES + 1200; n += 333) {
		buf_init(&b, BUF_MAX_DEFAULT);
		add_stacks(&b, 3);
		for (size_t i = 0; i < n; i++)
			buf_addc(&b, 'x');
		buf_addc(&b, '\n');
		add_stacks(&b, 30);
		struct planted source = { b.data, b.len, 0, 10000, SIZE_MAX };
		must_be_alike(&source, UINT64_MAX);
		buf_finish(&b);
	}
}

/* What ahead reads of the block in which it happens may be less, but what it says is the same. */
static void ends_alike(const struct planted *source, uint64_t input_max, const char *ends)
{
	for (size_t block = 16; block < 8000; block *= 3) {
		struct buf log;
		buf_init(&log, BUF_MAX_DEFAULT);
		read_source(source, block, input_max, &log);
		if (!strstr(log.data, ends))
			fail_msg("%s", log.data);
		buf_finish(&log);
	}
}

static void failing_and_too_much(void **state)
{
	struct buf b;
	char ends[100];
	(void)state;
	buf_init(&b, BUF_MAX_DEFAULT);
	add_stacks(&b, 40);
	for (size_t at = 0; at < b.len; at += 611) {
		struct planted source = { b.data, b.len, 0, 100, at };
		snprintf(ends, sizeof(ends), "ends with %d x.heap: cannot read: planted\n", E_IO);
		ends_alike(&source, UINT64_MAX, ends);
		source.fails_at = SIZE_MAX;
		snprintf(ends, sizeof(ends), "ends with %d x.heap: larger than the limit for input", E_LIMIT);
		ends_alike(&source, at, ends);
	}
	buf_finish(&b);
}

/* A reader that has seen enough. */
static void left_early(void **state)
{
	struct buf b;
	(void)state;
	buf_init(&b, BUF_MAX_DEFAULT);
	add_stacks(&b, 100);
	for (int lines = 0; lines < 20; lines++) {
		struct planted source = { b.data, b.len, 0, 50, SIZE_MAX };
		struct stream in = { .fill = source_fill, .name = "x", .context = &source, .fd = -1 };
		struct frames f;
		struct lines l;
		struct error err;
		const char *line;
		size_t n;
		assert_int_equal(lines_init(&l, &in, LINE_MAX_BYTES, UINT64_MAX, &err), E_OK);
		assert_int_equal(frames_init(&f, &limits, &err), E_OK);
		ahead_start(&l, &f, 40);
		for (int i = 0; i < lines; i++)
			assert_int_equal(lines_next(&l, &line, &n, &err), 1);
		lines_finish(&l);
		frames_finish(&f);
	}
	buf_finish(&b);
}

/* What was said before an error was right; the log has room for all of it. */
static void must_begin_right(const struct buf *log, const struct buf *right)
{
	const char *error = strstr(log->data, "bad: ");
	if (!error)
		error = strstr(log->data, "ends with ");
	if (!error || !strstr(error, "memory") || strncmp(log->data, right->data, (size_t)(error - log->data)))
		fail_msg("%s", log->data);
}

/* The threads share the allocations anew each time: what fails is any n of the most that any reading had. */
static long without_memory(const struct planted *source, size_t block_bytes, bool for_good, const struct buf *right)
{
	long errors = 0, most = 1;
	struct buf log;
	buf_init(&log, BUF_MAX_DEFAULT);
	assert_true(buf_reserve(&log, right->len + 4096));
	for (long n = 0; n < most; n++) {
		buf_reset(&log);
		no_memory_begin(-1, false);
		assert_int_equal(read_source(source, block_bytes, UINT64_MAX, &log), E_OK);
		no_memory_end();
		most = no_memory_calls() > most ? no_memory_calls() : most;
		buf_reset(&log);
		no_memory_begin(n, for_good);
		int rc = read_source(source, block_bytes, UINT64_MAX, &log);
		bool failed = no_memory_end();
		errors += rc != E_OK;
		assert_false(log.failed);
		if (rc == E_OK) {
			assert_string_equal(log.data, right->data);
		} else {
			assert_true(failed && (rc == E_NOMEM || rc == E_LIMIT));
			must_begin_right(&log, right);
		}
	}
	buf_finish(&log);
	return errors;
}

static void every_allocation_fails(void **state)
{
	static const size_t blocks[] = { 1, 16, 61, 256, 1000, 4096 };
	struct buf b, right;
	(void)state;
	buf_init(&b, BUF_MAX_DEFAULT);
	buf_init(&right, BUF_MAX_DEFAULT);
	add_stacks(&b, 60);
	struct planted source = { b.data, b.len, 0, 100, SIZE_MAX };
	assert_int_equal(read_source(&source, 0, UINT64_MAX, &right), E_OK);
	for (size_t i = 0; i < sizeof(blocks) / sizeof(*blocks); i++) {
		assert_true(without_memory(&source, blocks[i], false, &right) > 2);
		assert_true(without_memory(&source, blocks[i], true, &right) > 2);
	}
	buf_finish(&right);
	buf_finish(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(whole),
		cmocka_unit_test(blocks_that_end_with_lines),
		cmocka_unit_test(damaged),
		cmocka_unit_test(lines_too_long),
		cmocka_unit_test(failing_and_too_much),
		cmocka_unit_test(left_early),
		cmocka_unit_test(every_allocation_fails),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
