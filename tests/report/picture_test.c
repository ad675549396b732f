/* Names and numbers as pictures show them. */
#include "report/picture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static struct buf out;

static const char *text(void)
{
	return out.data ? out.data : "";
}

static void check_short(const char *name, const char *want)
{
	buf_reset(&out);
	picture_short(name, strlen(name), &out);
	assert_string_equal(text(), want);
}

static void short_names(void **state)
{
	(void)state;
	check_short("main", "main");
	check_short("f(int, char*)", "f");
	check_short("std::map<int, std::pair<long, f(*)(int)> >::find(int const&) const", "std::map<…>::find const");
	check_short("void g<int>(int)", "void g<…>");
	check_short("(anonymous namespace)::h(int)", "(anonymous namespace)::h");
	check_short("A::operator<(A const&)", "A::operator<");
	check_short("A::operator<<(A const&)", "A::operator<<");
	check_short("A::operator->() const", "A::operator-> const");
	check_short("A::operator()(int) const", "A::operator() const");
	check_short("A<int>::operator()<long>(long)", "A<…>::operator()<…>");
	check_short("operator new(unsigned long)", "operator new");
	check_short("myoperator<int>(int)", "myoperator<…>");
	check_short("f()::{lambda(int)#1}::operator()(int) const", "f::{lambda#1}::operator() const");
	check_short("<alloc::vec::Vec<u8> as core::clone::Clone>::clone", "<alloc::vec::Vec<…> as core::clone::Clone>::clone");
	check_short("core::ops::function::FnOnce::call_once::<fn(u8) -> u8>", "core::ops::function::FnOnce::call_once::<…>");
	check_short("std::function<int (char)>::f", "std::function<…>::f");
	check_short("unbalanced<int", "unbalanced<int");
	check_short("unbalanced(int", "unbalanced(int");
	check_short("libc.so.6!0x1234", "…!0x1234");
	check_short("a b/lib-c++<x>.so!0xabc", "…!0xabc");
	check_short("libc.so.6!fn_12340", "…!fn_12340");
	check_short("not!an address", "not!an address");
	check_short("lib!0x", "lib!0x");
	check_short("f(int) [clone .isra.0]", "f [clone .isra.0]");
	check_short("", "");
}

static void check_fit(const char *name, size_t columns, const char *want)
{
	buf_reset(&out);
	picture_fit(name, strlen(name), columns, &out);
	assert_string_equal(text(), want);
	assert_true(picture_columns(text(), out.len) <= columns);
}

static void fitted_names(void **state)
{
	(void)state;
	check_fit("abcdef", 6, "abcdef");
	check_fit("abcdef", 5, "abcd…");
	check_fit("abcdef", 3, "ab…");
	check_fit("abcdef", 2, "");
	check_fit("abc", 3, "abc");
	check_fit("äöü", 3, "äöü");
	check_fit("äöüß", 3, "äö…");
	check_fit("記憶体", 6, "記憶体");
	check_fit("記憶体", 5, "記憶…");
	check_fit("記憶体", 4, "記…");
	check_fit("a記憶体", 4, "a記…");
	check_fit("🔥🔥🔥", 5, "🔥🔥…");
	check_fit("a→b…c", 5, "a→b…c");
	check_fit("", 5, "");
}

static void check_number(double value, const char *want)
{
	buf_reset(&out);
	picture_number(value, &out);
	assert_string_equal(text(), want);
}

static void numbers(void **state)
{
	(void)state;
	check_number(0, "0");
	check_number(3, "3");
	check_number(-3.5, "-3.5");
	check_number(0.05, "0.05");
	check_number(0.004, "0");
	check_number(12.346, "12.35");
	check_number(-0.25, "-0.25");
	check_number(1e9, "1000000000");
	check_number(0.0 / 0.0, "0");
}

static void check_percent(double part, double whole, const char *want)
{
	buf_reset(&out);
	picture_percent(part, whole, &out);
	assert_string_equal(text(), want);
}

static void percents(void **state)
{
	(void)state;
	check_percent(1, 2, "50 %");
	check_percent(1, 3, "33.3 %");
	check_percent(1, 1e6, "<0.1 %");
	check_percent(0, 5, "0 %");
	check_percent(5, 0, "–");
	check_percent(0, 0, "–");
	check_percent(-1, 4, "-25 %");
}

static void texts(void **state)
{
	(void)state;
	static const char hostile[] = "a\nb\x1b[1m\xe2\x80\xae\xff\xef\xbf\xbe\xef\xbf\xbf\xef\xbf\xbd";
	buf_reset(&out);
	picture_text(hostile, sizeof(hostile) - 1, &out);
	assert_string_equal(text(), "a\\x0ab\\x1b[1m\\u{202e}\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
}

static void classes(void **state)
{
	(void)state;
	struct amount same = { .base = 5, .now = 5 }, grew = { .base = 5, .now = 6 }, shrank = { .base = 6, .now = 5 },
	              fresh = { .now = 5 }, gone = { .base = 5 };
	assert_int_equal(picture_classify(&same, false), CHANGE_NONE);
	assert_int_equal(picture_classify(&same, true), CHANGE_NONE);
	assert_int_equal(picture_classify(&grew, false), CHANGE_GREW);
	assert_int_equal(picture_classify(&grew, true), CHANGE_NOISE);
	assert_int_equal(picture_classify(&shrank, false), CHANGE_SHRANK);
	assert_int_equal(picture_classify(&fresh, false), CHANGE_NEW);
	assert_int_equal(picture_classify(&fresh, true), CHANGE_NOISE);
	assert_int_equal(picture_classify(&gone, false), CHANGE_GONE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(short_names), cmocka_unit_test(fitted_names), cmocka_unit_test(numbers),
		cmocka_unit_test(percents),    cmocka_unit_test(texts),        cmocka_unit_test(classes),
	};
	buf_init(&out, 1 << 20);
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	buf_finish(&out);
	return failed;
}
