/* Amounts, errors, shares and cut names, at the edges where rounding and units change. */
#include "text_profiles.h"

#include "report/json.h"
#include "report/table.h"
#include "report/words.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

static char scratch[512];

static struct buf *begin(struct buf *b)
{
	*b = (struct buf){ .data = scratch, .capacity = sizeof scratch, .max = sizeof scratch - 1 };
	scratch[0] = '\0';
	return b;
}

static const char *percent(double part, double whole)
{
	struct buf b;
	words_percent(part, whole, begin(&b));
	return scratch;
}

static void shares_stay_short(void **state)
{
	(void)state;
	assert_string_equal(percent(1, 3), "33.3%");
	assert_string_equal(percent(0, 3), "0.0%");
	assert_string_equal(percent(1, 0), "");
	assert_string_equal(percent(1, 1e6), "<0.1%");
	assert_string_equal(percent(-1, 1e6), ">-0.1%");
	assert_string_equal(percent(-1, 4), "-25.0%");
	assert_string_equal(percent(12345, 10), "123450%");
	assert_string_equal(percent(1e12, 1), ">999999%");
	assert_string_equal(percent(999.94, 1000), "100.0%");
}

static const char *duration(double seconds)
{
	struct buf b;
	words_duration(seconds, begin(&b));
	return scratch;
}

static void durations_have_three_digits(void **state)
{
	(void)state;
	assert_string_equal(duration(0), "0 s");
	assert_string_equal(duration(3e-9), "3.00 ns");
	assert_string_equal(duration(9.996e-6), "10.0 us");
	assert_string_equal(duration(0.99949), "999 ms");
	assert_string_equal(duration(0.99951), "1.00 s");
	assert_string_equal(duration(-90), "-90.0 s");
	assert_string_equal(duration(600), "10.0 min");
	assert_string_equal(duration(7200), "2.00 h");
	assert_string_equal(duration(86400 * 30), "30.0 days");
}

static const char *error_of(struct estimate gained, struct estimate lost, bool diff)
{
	struct amount a = { .gained = gained, .lost = lost, .now = gained.value, .base = lost.value };
	struct buf b;
	report_error_text(&a, diff, true, begin(&b));
	return scratch;
}

/* n samples of R bytes each. */
static struct estimate samples(double n, double rate)
{
	return (struct estimate){ .value = n * rate, .variance = n * rate * rate, .weight = rate };
}

static void errors_fit_the_number_of_samples(void **state)
{
	(void)state;
	struct estimate none = { 0 };
	assert_string_equal(error_of(samples(400, 65536), none, false), "±10%");
	assert_string_equal(error_of(samples(1e6, 65536), none, false), "±0.2%");
	assert_string_equal(error_of(samples(1e9, 65536), none, false), "±<0.1%");
	assert_string_equal(error_of(samples(10, 65536), none, false), "±62%");
	/* The Poisson interval of one event is 0.0253 to 5.572, of four 1.0899 to 10.242. */
	assert_string_equal(error_of(samples(1, 65536), none, false), "-97%/+457%");
	assert_string_equal(error_of(samples(4, 65536), none, false), "-73%/+156%");
	assert_string_equal(error_of(samples(0, 524288), none, false), "<1.50 MiB");
	assert_string_equal(error_of((struct estimate){ .value = 4096 }, none, false), "");
	assert_string_equal(error_of(none, none, false), "");
}

static void errors_of_changes_are_sizes(void **state)
{
	(void)state;
	struct estimate none = { 0 };
	/* sqrt(400 + 100) samples of 1 MiB, times 1.96. */
	assert_string_equal(error_of(samples(400, 1048576), samples(100, 1048576), true), "±43.8 MiB");
	/* New in a profile whose base saw nothing: the base may have held 3 R. */
	assert_string_equal(error_of(samples(4, 1048576), samples(0, 1048576), true), "-4.18 MiB/+6.24 MiB");
	assert_string_equal(error_of(none, none, true), "");
	assert_string_equal(error_of((struct estimate){ .value = 5 }, (struct estimate){ .value = 3 }, true), "");
}

static const char *change(double base, double now)
{
	struct amount a = { .base = base, .now = now };
	struct buf b;
	words_change_percent(&a, begin(&b));
	return scratch;
}

static void new_and_gone_are_words(void **state)
{
	(void)state;
	assert_string_equal(change(0, 5), "new");
	assert_string_equal(change(5, 0), "gone");
	assert_string_equal(change(5, 5), "");
	assert_string_equal(change(4, 5), "+25.0%");
	assert_string_equal(change(5, 4), "-20.0%");
	assert_string_equal(change(1e9, 1e9 + 1), "<0.1%");
}

static const char *cut(const char *name, size_t lead, size_t columns)
{
	struct buf b;
	table_add_cut(begin(&b), name, strlen(name), lead, columns);
	return scratch;
}

static void names_are_cut_in_the_middle(void **state)
{
	(void)state;
	assert_string_equal(cut("operator new(unsigned long)", 0, 0), "operator new(unsigned long)");
	assert_string_equal(cut("operator new(unsigned long)", 0, 27), "operator new(unsigned long)");
	assert_string_equal(cut("operator new(unsigned long)", 0, 26), "operator new(…signed long)");
	assert_string_equal(cut("äöüßäöüßäöüßäöüß", 0, 13), "äöüßäö…üßäöüß");
	/* The lead is kept, and never less than twelve columns of the name. */
	assert_string_equal(cut("│  │  ├─ abcdefghijklmnopqrstuvwxyz", strlen("│  │  ├─ "), 22),
	                    "│  │  ├─ abcdef…uvwxyz");
	assert_string_equal(cut("│  │  ├─ abcdefghijklmnopqrstuvwxyz", strlen("│  │  ├─ "), 5),
	                    "│  │  ├─ abcdef…vwxyz");
}

static const char *paragraph(const char *text, size_t at, size_t indent, size_t columns)
{
	struct buf b;
	words_paragraph(text, strlen(text), at, indent, columns, begin(&b));
	return scratch;
}

static void paragraphs_break_at_blanks(void **state)
{
	(void)state;
	assert_string_equal(paragraph("aa bb cc", 0, 0, 0), "aa bb cc\n");
	assert_string_equal(paragraph("aa bb cc", 0, 2, 5), "aa bb\n  cc\n");
	assert_string_equal(paragraph("aa bb cc", 2, 2, 5), "aa\n  bb\n  cc\n");
	assert_string_equal(paragraph("very-long-word b", 0, 0, 5), "very-long-word\nb\n");
	assert_string_equal(paragraph("", 0, 0, 5), "\n");
}

static const char *number(double value)
{
	struct buf b;
	struct json j = { .out = begin(&b) };
	json_number(&j, NULL, value);
	return scratch;
}

static void json_numbers_are_json(void **state)
{
	(void)state;
	assert_string_equal(number(0), "0");
	assert_string_equal(number(-0.0), "0");
	assert_string_equal(number(65536), "65536");
	assert_string_equal(number(1635.32), "1635.32");
	assert_string_equal(number(0.5), "0.5");
	assert_string_equal(number(-0.03125), "-0.03125");
	assert_string_equal(number(999999.5), "1000000");
	assert_string_equal(number(1.5e-20), "1.50000e-20");
	assert_string_equal(number(9.999999e-7), "1.00000e-6");
	assert_string_equal(number(1e-310), "0");
	assert_string_equal(number(3.25e20), "3.25000e20");
	assert_string_equal(number(INFINITY), "null");
	assert_string_equal(number(NAN), "null");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(shares_stay_short),
		cmocka_unit_test(durations_have_three_digits),
		cmocka_unit_test(errors_fit_the_number_of_samples),
		cmocka_unit_test(errors_of_changes_are_sizes),
		cmocka_unit_test(new_and_gone_are_words),
		cmocka_unit_test(names_are_cut_in_the_middle),
		cmocka_unit_test(paragraphs_break_at_blanks),
		cmocka_unit_test(json_numbers_are_json),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
