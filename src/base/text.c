/*
 * Numbers are read and printed without printf, so no locale can put a comma where a
 * point belongs. The escapers copy runs of plain characters at once and stop only
 * at bytes that their place cares about.
 */
#include "base/text.h"

#include <math.h>
#include <string.h>

#define REPLACEMENT "\xef\xbf\xbd"

/* --- numbers in --- */

static unsigned digit_of(char c)
{
	if (c >= '0' && c <= '9')
		return (unsigned)(c - '0');
	if (c >= 'a' && c <= 'f')
		return (unsigned)(c - 'a') + 10;
	if (c >= 'A' && c <= 'F')
		return (unsigned)(c - 'A') + 10;
	return 99;
}

bool text_parse_u64(const char *text, size_t length, unsigned base, uint64_t *ret_value)
{
	uint64_t value = 0;
	if (length == 0)
		return false;
	for (size_t i = 0; i < length; i++) {
		unsigned digit = digit_of(text[i]);
		if (digit >= base || __builtin_mul_overflow(value, (uint64_t)base, &value) ||
		    __builtin_add_overflow(value, (uint64_t)digit, &value))
			return false;
	}
	*ret_value = value;
	return true;
}

/* "", "B", "k", "KB", "KiB", ... to E: the power of 1024, or -1. */
static int unit_power(const char *unit)
{
	static const char letters[] = "kmgtpe";
	int power = 0;
	if (*unit && *unit != 'B' && *unit != 'b') {
		const char *found = strchr(letters, *unit | 0x20);
		if (!found)
			return -1;
		power = (int)(found - letters) + 1;
		unit++;
		if (*unit == 'i') {
			unit++;
			if (*unit != 'B' && *unit != 'b')
				return -1;
		}
	}
	if (*unit == 'B' || *unit == 'b')
		unit++;
	return *unit ? -1 : power;
}

bool text_parse_bytes(const char *text, uint64_t *ret_bytes)
{
	size_t whole_n = strspn(text, "0123456789");
	uint64_t whole;
	if (!text_parse_u64(text, whole_n, 10, &whole))
		return false;
	const char *p = text + whole_n;
	uint64_t part = 0, part_of = 1;
	if (*p == '.') {
		size_t n = strspn(++p, "0123456789");
		if (n == 0)
			return false;
		/* Twelve digits are finer than a byte of an EiB's thousandth needs; the rest is dropped. */
		for (size_t i = 0; i < n && i < 12; i++) {
			part = part * 10 + (uint64_t)(p[i] - '0');
			part_of *= 10;
		}
		p += n;
	}
	if (*p == ' ')
		p++;
	int power = unit_power(p);
	if (power < 0 || (power == 0 && part_of > 1) || (p[-1] == ' ' && !*p))
		return false;
	unsigned shift = 10 * (unsigned)power;
	unsigned __int128 bytes = ((unsigned __int128)whole << shift) +
	                          (((unsigned __int128)part << shift) / part_of);
	if (bytes > UINT64_MAX)
		return false;
	*ret_bytes = (uint64_t)bytes;
	return true;
}

/* --- numbers out --- */

/* value (below 10^15) with that many decimals (0-2), rounded half up. */
static void add_decimal(struct buf *b, double value, unsigned decimals)
{
	static const unsigned scales[] = { 1, 10, 100 };
	uint64_t scaled = (uint64_t)(value * scales[decimals] + 0.5);
	char digits[24];
	size_t at = sizeof(digits);
	for (unsigned i = 0; i <= decimals || scaled; i++) {
		if (decimals && i == decimals)
			digits[--at] = '.';
		digits[--at] = (char)('0' + scaled % 10);
		scaled /= 10;
	}
	buf_add(b, digits + at, sizeof(digits) - at);
}

/*
 * Three significant digits below 1000. The limits are where rounding to that many
 * decimals would add a digit: 9.996 is "10.0", not "10.00".
 */
static void add_three_digits(struct buf *b, double value)
{
	add_decimal(b, value, value < 9.995 ? 2 : value < 99.95 ? 1 : 0);
}

/* Divides by step until less than below is left; the number of steps, or n when they don't suffice. */
static size_t scale(double *value, double step, double below, size_t n)
{
	size_t unit = 0;
	while (unit < n && *value >= below) {
		*value /= step;
		unit++;
	}
	return unit;
}

/* Takes the sign, and words what is no number; false when that was all there is to say. */
static bool add_sign(struct buf *b, double *value)
{
	if (isnan(*value)) {
		buf_addc(b, '?');
		return false;
	}
	if (*value <= -0.5) {
		buf_addc(b, '-');
		*value = -*value;
	} else if (*value < 0) {
		*value = 0;
	}
	return true;
}

void text_add_bytes(struct buf *b, double bytes)
{
	static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB", "ZiB", "YiB" };
	size_t n = sizeof(units) / sizeof(units[0]);
	if (!add_sign(b, &bytes))
		return;
	size_t unit = scale(&bytes, 1024, 1023.5, n);
	if (unit == n) {
		buf_adds(b, ">999 YiB");
		return;
	}
	if (unit == 0)
		add_decimal(b, bytes, 0);
	else
		add_three_digits(b, bytes);
	buf_addc(b, ' ');
	buf_adds(b, units[unit]);
}

void text_add_count(struct buf *b, double count)
{
	static const char units[] = "\0kMGTPE";
	if (!add_sign(b, &count))
		return;
	if (count < 999.5) {
		add_decimal(b, count, 0);
	} else if (count < 9999.5) {
		unsigned whole = (unsigned)(count + 0.5);
		add_decimal(b, whole / 1000, 0);
		char rest[4] = { ',', (char)('0' + whole / 100 % 10), (char)('0' + whole / 10 % 10),
			         (char)('0' + whole % 10) };
		buf_add(b, rest, sizeof(rest));
	} else {
		size_t unit = scale(&count, 1000, 999.5, sizeof(units) - 1);
		if (unit >= sizeof(units) - 1) {
			buf_adds(b, ">999E");
			return;
		}
		add_three_digits(b, count);
		buf_addc(b, units[unit]);
	}
}

/* --- characters --- */

size_t text_utf8_length(const char *s, size_t left)
{
	const unsigned char *u = (const unsigned char *)s;
	if (left == 0)
		return 0;
	if (u[0] < 0x80)
		return 1;
	size_t n = u[0] >= 0xf0 ? 4 : u[0] >= 0xe0 ? 3 : 2;
	if (u[0] < 0xc2 || u[0] > 0xf4 || left < n)
		return 0;
	for (size_t i = 1; i < n; i++)
		if ((u[i] & 0xc0) != 0x80)
			return 0;
	/* Not the shortest form, a surrogate, or past U+10FFFF. */
	if ((u[0] == 0xe0 && u[1] < 0xa0) || (u[0] == 0xed && u[1] > 0x9f) ||
	    (u[0] == 0xf0 && u[1] < 0x90) || (u[0] == 0xf4 && u[1] > 0x8f))
		return 0;
	return n;
}

/* The code point of the well-formed character of n bytes at s. */
static uint32_t code_point(const char *s, size_t n)
{
	static const unsigned char lead[] = { 0, 0x7f, 0x1f, 0x0f, 0x07 };
	uint32_t c = (unsigned char)s[0] & lead[n];
	for (size_t i = 1; i < n; i++)
		c = c << 6 | ((unsigned char)s[i] & 0x3f);
	return c;
}

static bool is_control(uint32_t c)
{
	return c < 0x20 || (c >= 0x7f && c < 0xa0);
}

/* Marks, embeddings, overrides and isolates that reorder what stands around them; line separators. */
static bool is_reordering(uint32_t c)
{
	return c == 0x061c || c == 0x200e || c == 0x200f || (c >= 0x2028 && c <= 0x202e) ||
	       (c >= 0x2066 && c <= 0x2069);
}

/* Appends "\x1b", "\u{202e}", "\u001b": prefix, at least that many lowercase hex digits, suffix. */
static void add_hex(struct buf *b, const char *prefix, uint32_t c, unsigned digits, const char *suffix)
{
	buf_adds(b, prefix);
	while (digits < 8 && c >> (4 * digits))
		digits++;
	while (digits-- > 0)
		buf_addc(b, "0123456789abcdef"[c >> (4 * digits) & 15]);
	buf_adds(b, suffix);
}

/*
 * What an escaper does with one character that is not plain: true when it appended
 * something in its place, false to keep the character. next is the byte behind it, or 0.
 */
typedef bool replace_fn(struct buf *b, uint32_t c, char next);

/* Plain are printable ASCII characters that are not in special. */
static void add_escaped(struct buf *b, const char *s, size_t length, const char *special,
                        replace_fn *replace)
{
	bool plain[256] = { false };
	memset(plain + 0x20, true, 0x7f - 0x20);
	for (; *special; special++)
		plain[(unsigned char)*special] = false;

	size_t kept = 0, i = 0;
	while (i < length) {
		if (plain[(unsigned char)s[i]]) {
			i++;
			continue;
		}
		buf_add(b, s + kept, i - kept);
		size_t n = text_utf8_length(s + i, length - i);
		if (n == 0) {
			buf_adds(b, REPLACEMENT);
			n = 1;
		} else if (!replace(b, code_point(s + i, n), i + n < length ? s[i + n] : '\0')) {
			buf_add(b, s + i, n);
		}
		i += n;
		kept = i;
	}
	if (length > kept)
		buf_add(b, s + kept, length - kept);
}

static bool replace_terminal(struct buf *b, uint32_t c, char next)
{
	(void)next;
	if (is_control(c))
		add_hex(b, "\\x", c, 2, "");
	else if (is_reordering(c))
		add_hex(b, "\\u{", c, 4, "}");
	else
		return false;
	return true;
}

static bool replace_xml(struct buf *b, uint32_t c, char next)
{
	(void)next;
	switch (c) {
	case '&': buf_adds(b, "&amp;"); return true;
	case '<': buf_adds(b, "&lt;"); return true;
	case '>': buf_adds(b, "&gt;"); return true;
	case '"': buf_adds(b, "&quot;"); return true;
	case '\'': buf_adds(b, "&#39;"); return true;
	case '\t': buf_adds(b, "&#9;"); return true;
	case '\n': buf_adds(b, "&#10;"); return true;
	default: break;
	}
	if (!is_control(c) && !is_reordering(c) && c != 0xfffe && c != 0xffff)
		return false;
	buf_adds(b, REPLACEMENT);
	return true;
}

static bool replace_json(struct buf *b, uint32_t c, char next)
{
	switch (c) {
	case '"': buf_adds(b, "\\\""); return true;
	case '\\': buf_adds(b, "\\\\"); return true;
	case '\b': buf_adds(b, "\\b"); return true;
	case '\f': buf_adds(b, "\\f"); return true;
	case '\n': buf_adds(b, "\\n"); return true;
	case '\r': buf_adds(b, "\\r"); return true;
	case '\t': buf_adds(b, "\\t"); return true;
	default: break;
	}
	/* "</script" and "<!--" would act where JSON stands inside a page. */
	bool tag = c == '<' && (next == '/' || next == '!');
	if (!tag && !is_control(c) && !is_reordering(c))
		return false;
	add_hex(b, "\\u", c, 4, "");
	return true;
}

static bool replace_csv(struct buf *b, uint32_t c, char next)
{
	(void)next;
	if (c == '"')
		buf_adds(b, "\"\"");
	else if (is_reordering(c) || (is_control(c) && c != '\t' && c != '\n' && c != '\r'))
		buf_adds(b, REPLACEMENT);
	else
		return false;
	return true;
}

void text_add_terminal(struct buf *b, const char *s, size_t length)
{
	add_escaped(b, s, length, "", replace_terminal);
}

void text_add_xml(struct buf *b, const char *s, size_t length)
{
	add_escaped(b, s, length, "&<>\"'", replace_xml);
}

void text_add_json(struct buf *b, const char *s, size_t length)
{
	buf_addc(b, '"');
	add_escaped(b, s, length, "\"\\<", replace_json);
	buf_addc(b, '"');
}

void text_add_csv(struct buf *b, const char *s, size_t length)
{
	bool formula = length && s[0] && strchr("=+-@\t\r", s[0]);
	bool quoted = formula;
	for (size_t i = 0; i < length && !quoted; i++)
		quoted = s[i] == ',' || s[i] == '"' || s[i] == '\n' || s[i] == '\r' || s[i] == '\t';
	/* Blanks at the ends are lost by some readers. */
	quoted = quoted || (length && (s[0] == ' ' || s[length - 1] == ' '));
	if (quoted)
		buf_addc(b, '"');
	if (formula)
		buf_addc(b, '\'');
	add_escaped(b, s, length, "\"", replace_csv);
	if (quoted)
		buf_addc(b, '"');
}

size_t text_columns(const char *s, size_t length)
{
	size_t columns = 0;
	for (size_t i = 0; i < length; columns++) {
		size_t n = text_utf8_length(s + i, length - i);
		i += n ? n : 1;
	}
	return columns;
}

void text_add_url(struct buf *b, const char *s, size_t length)
{
	for (size_t i = 0; i < length; i++) {
		unsigned char c = (unsigned char)s[i];
		if ((unsigned)(c - '0') < 10 || (unsigned)((c | 32) - 'a') < 26 || (c && strchr("-._~/:,", c)))
			buf_addc(b, (char)c);
		else
			buf_printf(b, "%%%02X", c);
	}
}
