/*
 * Folded stacks: names with blanks, diffs, and what is not folded text.
 */
#include "format/format.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static const struct read_limits limits = {
	.input_bytes = 1 << 20,
	.profile_bytes = 1 << 20,
	.depth = 10,
	.gzip_ratio = 200,
	.gzip_ratio_from = 1 << 20,
};

static int read_text(const char *text, size_t n, struct profile **ret, struct buf *warnings,
                     struct error *err)
{
	struct stream in;
	struct read_report report;
	buf_init(&report.warnings, 1 << 16);
	stream_open_memory(&in, "x.folded", text, n);
	int rc = folded_read(&in, &limits, &report, ret, err);
	stream_close(&in);
	*warnings = report.warnings;
	return rc;
}

static struct profile *must_read(const char *text)
{
	struct profile *p = NULL;
	struct buf warnings;
	struct error err = { 0 };
	if (read_text(text, strlen(text), &p, &warnings, &err))
		fail_msg("%s", err.text);
	assert_int_equal(warnings.len, 0);
	buf_finish(&warnings);
	return p;
}

static void must_refuse(const char *text, size_t n, int code, const char *words)
{
	struct profile *p = NULL;
	struct buf warnings;
	struct error err = { 0 };
	assert_int_equal(read_text(text, n, &p, &warnings, &err), code);
	assert_string_equal(err.text, words);
	assert_null(p);
	buf_finish(&warnings);
}

static const char *frame(const struct profile *p, size_t sample, uint32_t k)
{
	const struct stack *s = &p->stacks[p->samples[sample].stack];
	if (k >= s->n)
		return NULL;
	const struct location *l = &p->locations[p->frames[s->first + k]];
	assert_int_equal(l->mapping, PROFILE_NONE);
	assert_int_equal(l->n_lines, 1);
	return profile_text(p, p->functions[p->lines[l->first_line].function].name);
}

static void reads_stacks(void **state)
{
	(void)state;
	struct profile *p = must_read("# by hand\n"
	                              "main;work;alloc 123\n"
	                              "\n"
	                              "main;operator new(unsigned long, int) 7 \t 45\r\n"
	                              "  \n"
	                              "main;;x 0\n"
	                              " 6\n"
	                              "main;work;alloc 9223372036854775807\n");
	assert_int_equal(p->n_samples, 5);
	assert_string_equal(profile_text(p, p->types[0].type), "space");
	assert_string_equal(profile_text(p, p->types[0].unit), "bytes");
	assert_int_equal(p->n_types, 1);
	assert_int_equal(p->metric[INUSE_SPACE], 0);
	assert_int_equal(p->n_sources, 1);
	assert_true(p->sources[0].rate == 0);
	assert_string_equal(profile_text(p, p->sources[0].name), "x.folded");
	assert_string_equal(frame(p, 0, 0), "alloc");
	assert_string_equal(frame(p, 0, 1), "work");
	assert_string_equal(frame(p, 0, 2), "main");
	assert_null(frame(p, 0, 3));
	assert_int_equal(p->values[0], 123);
	assert_string_equal(frame(p, 1, 0), "operator new(unsigned long, int) 7");
	assert_int_equal(p->values[1], 45);
	assert_string_equal(frame(p, 2, 1), "[unknown]");
	assert_int_equal(p->values[2], 0);
	assert_null(frame(p, 3, 0));
	assert_int_equal(p->values[3], 6);
	assert_int_equal(p->samples[4].stack, p->samples[0].stack);
	assert_true(p->values[4] == INT64_MAX);
	assert_int_equal(p->n_functions, 6);
	profile_free(p);
}

static void reads_diffs(void **state)
{
	(void)state;
	struct profile *p = must_read("main;a 10 20\nmain;b 0 5\nmain;c 6 0\nmain;d 0 0\n");
	assert_int_equal(p->n_sources, 2);
	assert_true(p->sources[0].base);
	assert_false(p->sources[1].base);
	assert_int_equal(p->n_samples, 4);
	const int64_t values[] = { 10, 20, 5, 6 };
	const uint32_t sources[] = { 0, 1, 1, 0 };
	for (size_t i = 0; i < 4; i++) {
		assert_int_equal(p->values[i], values[i]);
		assert_int_equal(p->samples[i].source, sources[i]);
	}
	profile_free(p);
}

static void warns_of_a_missing_end(void **state)
{
	struct profile *p;
	struct buf warnings;
	struct error err;
	(void)state;
	assert_int_equal(read_text("a 1\nb 2", 7, &p, &warnings, &err), E_OK);
	assert_string_equal(warnings.data,
	                    "x.folded: line 2, the last, has no newline; was the file cut?\n");
	assert_int_equal(p->n_samples, 2);
	profile_free(p);
	buf_finish(&warnings);
}

static void names_the_line(void **state)
{
	(void)state;
	must_refuse("a 1\n\nb;c\n", 9, E_FORMAT, "x.folded: line 3: no whole number ends the line \"b;c\"");
	must_refuse("a -1\n", 5, E_FORMAT, "x.folded: line 1: no whole number ends the line \"a -1\"");
	must_refuse("a 1.5\n", 6, E_FORMAT, "x.folded: line 1: no whole number ends the line \"a 1.5\"");
	must_refuse("12\n", 3, E_FORMAT, "x.folded: line 1: no whole number ends the line \"12\"");
	must_refuse("a 9223372036854775808\n", 22, E_FORMAT,
	            "x.folded: line 1: no whole number ends the line \"a 9223372036854775808\"");
	must_refuse("a 1\nb\0c 2\n", 10, E_FORMAT,
	            "x.folded: line 2: a zero byte; this is not folded text");
	must_refuse("a 1 2\nb 3\n", 10, E_FORMAT,
	            "x.folded: line 2: one number, where the lines before have two");
	must_refuse("", 0, E_FORMAT, "x.folded: no stacks in it; this is not folded text");
	must_refuse("# 1\n\n", 5, E_FORMAT, "x.folded: no stacks in it; this is not folded text");
	must_refuse("a;a;a;a;a;a;a;a;a;a 1\nb;a;a;a;a;a;a;a;a;a;a 1\n", 46, E_LIMIT,
	            "x.folded: line 2: the stack has more than 10 frames");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_stacks),
		cmocka_unit_test(reads_diffs),
		cmocka_unit_test(warns_of_a_missing_end),
		cmocka_unit_test(names_the_line),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
