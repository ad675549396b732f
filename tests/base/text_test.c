/* Numbers in and out, UTF-8, and the four escapers. */
#include "test.h"

#include "base/text.h"

#include <math.h>

typedef void escape_fn(struct buf *b, const char *s, size_t length);

#define FFFD "\xef\xbf\xbd"

static void is_u64(const char *text, unsigned base, bool ok, uint64_t expected)
{
	uint64_t value = 12345;
	if (text_parse_u64(text, strlen(text), base, &value) != ok)
		fail_msg("\"%s\" in base %u: %s", text, base, ok ? "refused" : "accepted");
	assert_int_equal(value, ok ? expected : 12345);
}

static void numbers_are_whole_and_in_range(void **state)
{
	(void)state;
	is_u64("0", 10, true, 0);
	is_u64("00017", 10, true, 17);
	is_u64("18446744073709551615", 10, true, UINT64_MAX);
	is_u64("18446744073709551616", 10, false, 0);
	is_u64("99999999999999999999", 10, false, 0);
	is_u64("ffffffffffffffff", 16, true, UINT64_MAX);
	is_u64("FFFFffff", 16, true, UINT32_MAX);
	is_u64("10000000000000000", 16, false, 0);
	static const char *const wrong[] = { "", " 1", "1 ", "+1", "-1", "0x10", "1a", "1.0", "1,000", "\xd9\xa1" };
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		is_u64(wrong[i], 10, false, 0);
	is_u64("0x10", 16, false, 0);
	is_u64("g", 16, false, 0);
	uint64_t value;
	assert_true(text_parse_u64("123456", 3, 10, &value));
	assert_int_equal(value, 123);
}

static void sizes_in_words(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		uint64_t bytes;
	} right[] = {
		{ "0", 0 }, { "512", 512 }, { "512B", 512 }, { "64k", 65536 }, { "64K", 65536 }, { "64KB", 65536 },
		{ "64KiB", 65536 }, { "1.5MiB", 1572864 }, { "1.5 MiB", 1572864 }, { "2GB", (uint64_t)2 << 30 },
		{ "0.1k", 102 }, { "1T", (uint64_t)1 << 40 }, { "15.999E", 18445591152204944769u },
		{ "18446744073709551615", UINT64_MAX }, { "0.0000000000000000001k", 0 },
	};
	for (size_t i = 0; i < sizeof(right) / sizeof(right[0]); i++) {
		uint64_t bytes = 1;
		if (!text_parse_bytes(right[i].text, &bytes))
			fail_msg("\"%s\" refused", right[i].text);
		if (bytes != right[i].bytes)
			fail_msg("\"%s\" is %llu", right[i].text, (unsigned long long)bytes);
	}
	static const char *const wrong[] = {
		"", "k", ".5k", "1.k", "1.5", "1.5B", "-1", "+1", " 1", "1 ", "1  k", "1kk", "1ki", "1kiBx", "1x", "1e3",
		"0x10", "16E", "18446744073709551616", "1.5.5k", "1,5k", "99999999999999999999k", "inf", "nan",
	};
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		uint64_t bytes = 77;
		if (text_parse_bytes(wrong[i], &bytes))
			fail_msg("\"%s\" accepted", wrong[i]);
		assert_int_equal(bytes, 77);
	}
}

static void shows(void (*add)(struct buf *, double), double value, const char *expected)
{
	struct buf b;
	buf_init(&b, 100);
	add(&b, value);
	assert_string_equal(b.data, expected);
	buf_finish(&b);
}

static void bytes_for_people(void **state)
{
	(void)state;
	shows(text_add_bytes, 0, "0 B");
	shows(text_add_bytes, -0.0, "0 B");
	shows(text_add_bytes, -0.3, "0 B");
	shows(text_add_bytes, 512, "512 B");
	shows(text_add_bytes, 1023.4, "1023 B");
	shows(text_add_bytes, 1023.5, "1.00 KiB");
	shows(text_add_bytes, 1536, "1.50 KiB");
	shows(text_add_bytes, 9.995 * 1024, "10.0 KiB");
	shows(text_add_bytes, 99.95 * 1024, "100 KiB");
	shows(text_add_bytes, 12.3 * 1048576, "12.3 MiB");
	shows(text_add_bytes, 1023.0 * 1048576, "1023 MiB");
	shows(text_add_bytes, 1023.6 * 1048576, "1.00 GiB");
	shows(text_add_bytes, -1023.0 * 1048576, "-1023 MiB");
	shows(text_add_bytes, 0x1p64, "16.0 EiB");
	shows(text_add_bytes, NAN, "?");
	shows(text_add_bytes, INFINITY, ">999 YiB");
	shows(text_add_bytes, -1e300, "->999 YiB");
}

static void counts_for_people(void **state)
{
	(void)state;
	shows(text_add_count, 0, "0");
	shows(text_add_count, 17, "17");
	shows(text_add_count, 16.5, "17");
	shows(text_add_count, 999.4, "999");
	shows(text_add_count, 999.5, "1,000");
	shows(text_add_count, 1234, "1,234");
	shows(text_add_count, 9999.4, "9,999");
	shows(text_add_count, 9999.5, "10.0k");
	shows(text_add_count, 12345, "12.3k");
	shows(text_add_count, 999499, "999k");
	shows(text_add_count, 999500, "1.00M");
	shows(text_add_count, 4.56e6, "4.56M");
	shows(text_add_count, -1234, "-1,234");
	shows(text_add_count, -1e300, "->999E");
	shows(text_add_count, NAN, "?");
}

/* Over many magnitudes: never wider than promised, and what is shown parses back within its digits. */
static void widths_hold_and_values_return(void **state)
{
	(void)state;
	struct buf b;
	buf_init(&b, 100);
	for (double value = 0.51; value < 1e30; value *= 1.0173) {
		for (int sign = -1; sign <= 1; sign += 2) {
			buf_reset(&b);
			text_add_bytes(&b, sign * value);
			assert_true(b.len <= 10);
			uint64_t back;
			if (sign > 0 && value < 0x1p63) {
				assert_true(text_parse_bytes(b.data, &back));
				assert_true(fabs((double)back - value) <= value * 0.005 + 1);
			}
			buf_reset(&b);
			text_add_count(&b, sign * value);
			assert_true(b.len <= 7);
		}
	}
	buf_finish(&b);
}

/* Every sequence of one to four bytes' leads against the table of the Unicode standard (3-7). */
static bool well_formed(const uint8_t *u, size_t n)
{
	static const uint8_t rows[][9] = {
		/* n, then low and high of each byte */
		{ 2, 0xc2, 0xdf, 0x80, 0xbf },
		{ 3, 0xe0, 0xe0, 0xa0, 0xbf, 0x80, 0xbf },
		{ 3, 0xe1, 0xec, 0x80, 0xbf, 0x80, 0xbf },
		{ 3, 0xed, 0xed, 0x80, 0x9f, 0x80, 0xbf },
		{ 3, 0xee, 0xef, 0x80, 0xbf, 0x80, 0xbf },
		{ 4, 0xf0, 0xf0, 0x90, 0xbf, 0x80, 0xbf, 0x80, 0xbf },
		{ 4, 0xf1, 0xf3, 0x80, 0xbf, 0x80, 0xbf, 0x80, 0xbf },
		{ 4, 0xf4, 0xf4, 0x80, 0x8f, 0x80, 0xbf, 0x80, 0xbf },
	};
	for (size_t r = 0; r < sizeof(rows) / sizeof(rows[0]); r++) {
		bool fits = rows[r][0] == n;
		for (size_t i = 0; i < n && fits; i++)
			fits = u[i] >= rows[r][1 + 2 * i] && u[i] <= rows[r][2 + 2 * i];
		if (fits)
			return true;
	}
	return false;
}

static void utf8_is_what_the_standard_says(void **state)
{
	(void)state;
	static const uint8_t tails[] = { 0x00, 0x41, 0x7f, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf, 0xc0, 0xff };
	enum { T = sizeof(tails) };
	assert_int_equal(text_utf8_length("", 0), 0);
	for (unsigned lead = 0; lead < 256; lead++)
		for (unsigned pick = 0; pick < T * T * T; pick++) {
			uint8_t u[4] = { (uint8_t)lead, tails[pick % T], tails[pick / T % T], tails[pick / T / T] };
			size_t expected = lead < 0x80 ? 1 : 0;
			for (size_t n = 2; n <= 4 && !expected; n++)
				if (well_formed(u, n))
					expected = n;
			assert_int_equal(text_utf8_length((char *)u, 4), expected);
			for (size_t left = 1; left < 4; left++)
				assert_int_equal(text_utf8_length((char *)u, left), expected <= left ? expected : 0);
		}
}

static void escapes(escape_fn *add, const char *text, size_t n, const char *expected)
{
	struct buf b;
	buf_init(&b, 1000);
	add(&b, text, n);
	assert_string_equal(b.data ? b.data : "", expected);
	assert_int_equal(b.len, strlen(expected));
	buf_finish(&b);
}
#define ESCAPES(add, text, expected) escapes(add, text, sizeof(text) - 1, expected)

static void terminal(void **state)
{
	(void)state;
	ESCAPES(text_add_terminal, "", "");
	ESCAPES(text_add_terminal, "std::map<int, char>::operator[](int&&) \xe2\x82\xac",
	        "std::map<int, char>::operator[](int&&) \xe2\x82\xac");
	ESCAPES(text_add_terminal, "a\0b\x1b[31m\r\n\t\x7f", "a\\x00b\\x1b[31m\\x0d\\x0a\\x09\\x7f");
	ESCAPES(text_add_terminal, "\xc2\x9b" "31m\xc2\x85", "\\x9b31m\\x85");     /* C1 in UTF-8 */
	ESCAPES(text_add_terminal, "\x9b" "31m", FFFD "31m");                      /* and as a bare byte */
	ESCAPES(text_add_terminal, "x\xe2\x80\xaey\xe2\x81\xa6z", "x\\u{202e}y\\u{2066}z");
	ESCAPES(text_add_terminal, "\xe2\x80\x8f\xd8\x9c\xe2\x80\xa8", "\\u{200f}\\u{061c}\\u{2028}");
	ESCAPES(text_add_terminal, "\xc0\xaf\xed\xa0\x80\xf5", FFFD FFFD FFFD FFFD FFFD FFFD);
	ESCAPES(text_add_terminal, "cut \xe2\x82", "cut " FFFD FFFD);
	ESCAPES(text_add_terminal, "\xf0\x9f\xa6\x80", "\xf0\x9f\xa6\x80");
}

static void xml(void **state)
{
	(void)state;
	ESCAPES(text_add_xml, "a<b> && \"c\" 'd'", "a&lt;b&gt; &amp;&amp; &quot;c&quot; &#39;d&#39;");
	ESCAPES(text_add_xml, "\t\n\r\0\x1b\x7f\xc2\x9b", "&#9;&#10;" FFFD FFFD FFFD FFFD FFFD);
	ESCAPES(text_add_xml, "\xef\xbf\xbe\xef\xbf\xbf\xed\xa0\x80", FFFD FFFD FFFD FFFD FFFD);
	ESCAPES(text_add_xml, "x\xe2\x80\xaey", "x" FFFD "y");
	ESCAPES(text_add_xml, "\xf0\x9f\xa6\x80&", "\xf0\x9f\xa6\x80&amp;");
}

static void json(void **state)
{
	(void)state;
	ESCAPES(text_add_json, "", "\"\"");
	ESCAPES(text_add_json, "a\"b\\c/d", "\"a\\\"b\\\\c/d\"");
	ESCAPES(text_add_json, "\b\f\n\r\t\0\x1f\x7f", "\"\\b\\f\\n\\r\\t\\u0000\\u001f\\u007f\"");
	ESCAPES(text_add_json, "\xc2\x9b\xe2\x80\xa8\xe2\x80\xae", "\"\\u009b\\u2028\\u202e\"");
	ESCAPES(text_add_json, "</script><!--<b>", "\"\\u003c/script>\\u003c!--<b>\"");
	ESCAPES(text_add_json, "x<", "\"x<\"");
	ESCAPES(text_add_json, "\xff\xf0\x9f\xa6\x80", "\"" FFFD "\xf0\x9f\xa6\x80\"");
}

static void csv(void **state)
{
	(void)state;
	ESCAPES(text_add_csv, "", "");
	ESCAPES(text_add_csv, "plain<int>", "plain<int>");
	ESCAPES(text_add_csv, "a,b", "\"a,b\"");
	ESCAPES(text_add_csv, "say \"x\"", "\"say \"\"x\"\"\"");
	ESCAPES(text_add_csv, "two\nlines", "\"two\nlines\"");
	ESCAPES(text_add_csv, "=1+1", "\"'=1+1\"");
	ESCAPES(text_add_csv, "+x", "\"'+x\"");
	ESCAPES(text_add_csv, "-x", "\"'-x\"");
	ESCAPES(text_add_csv, "@x", "\"'@x\"");
	ESCAPES(text_add_csv, "\t=x", "\"'\t=x\"");
	ESCAPES(text_add_csv, " x", "\" x\"");
	ESCAPES(text_add_csv, "a=b", "a=b");
	ESCAPES(text_add_csv, "\x1b[0m\0\xc2\x9b\x80", FFFD "[0m" FFFD FFFD FFFD);
}

/* Whatever comes in: what goes out is well-formed and has nothing that its place must not see. */
static void random_bytes_come_out_harmless(void **state)
{
	(void)state;
	static escape_fn *const all[] = { text_add_terminal, text_add_xml, text_add_json, text_add_csv };
	uint64_t seed = 42;
	struct buf b;
	buf_init(&b, 10000);
	for (int round = 0; round < 20000; round++) {
		char bytes[64];
		for (size_t i = 0; i < sizeof(bytes); i++) {
			seed = seed * 6364136223846793005u + 1442695040888963407u;
			uint8_t byte = (uint8_t)(seed >> 56);
			/* Lead and control bytes more often than their share. */
			bytes[i] = (char)(round % 2 ? byte : "\xe2\x80\xae\xc2\x9b\x1b<&\"',\\\n\xf0\x9fx"[byte % 16]);
		}
		escape_fn *add = all[round % 4];
		buf_reset(&b);
		add(&b, bytes, (size_t)round % sizeof(bytes));
		for (size_t i = 0; i < b.len;) {
			size_t n = text_utf8_length(b.data + i, b.len - i);
			assert_true(n > 0);
			uint8_t c = (uint8_t)b.data[i], next = (uint8_t)b.data[i + 1];
			bool csv_blank = add == text_add_csv && (c == '\n' || c == '\r' || c == '\t');
			assert_true(n > 1 || (c >= 0x20 && c != 0x7f) || csv_blank);
			assert_false(n == 2 && c == 0xc2 && next < 0xa0);
			assert_false(n == 3 && memcmp(b.data + i, "\xe2\x80\xae", 3) == 0);
			assert_false(add == text_add_xml && strchr("<>\"'", c));
			i += n;
		}
		assert_false(b.failed);
	}
	buf_finish(&b);
}

static void columns(void **state)
{
	(void)state;
	assert_int_equal(text_columns("", 0), 0);
	assert_int_equal(text_columns("malloc", 6), 6);
	assert_int_equal(text_columns("\xe2\x82\xac" "5", 4), 2);
	assert_int_equal(text_columns("\xff\xe2", 2), 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_are_whole_and_in_range),
		cmocka_unit_test(sizes_in_words),
		cmocka_unit_test(bytes_for_people),
		cmocka_unit_test(counts_for_people),
		cmocka_unit_test(widths_hold_and_values_return),
		cmocka_unit_test(utf8_is_what_the_standard_says),
		cmocka_unit_test(terminal),
		cmocka_unit_test(xml),
		cmocka_unit_test(json),
		cmocka_unit_test(csv),
		cmocka_unit_test(random_bytes_come_out_harmless),
		cmocka_unit_test(columns),
	};
	return cmocka_run_group_tests_name("text", tests, NULL, NULL);
}
