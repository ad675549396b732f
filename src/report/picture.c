/*
 * Names are cut down in two steps: first what says least (template arguments, parameters),
 * then the end.
 */
#include "report/picture.h"

#include "base/text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ELLIPSIS "\xe2\x80\xa6"

/* --- names --- */

void picture_text(const char *text, size_t n, struct buf *out)
{
	size_t at = out->len;
	text_add_terminal(out, text, n);
	/* ef bf be, ef bf bf: U+FFFE, U+FFFF. */
	for (; !out->failed && at + 2 < out->len; at++)
		if (memcmp(out->data + at, "\xef\xbf", 2) == 0 && (unsigned char)out->data[at + 2] >= 0xbe)
			out->data[at + 2] = '\xbd';
}

/* What tells entries of one function apart: " a.c:12", " 0x1f30". */
static void add_detail(const struct view *v, const struct entry *e, struct buf *out)
{
	if (v->by == BY_ADDRESS) {
		char hex[24];
		int n = snprintf(hex, sizeof(hex), " 0x%llx", (unsigned long long)e->address);
		/* A frame without a name has its address there already. */
		if (n > 1 && !strstr(profile_text(v->profile, e->name), hex + 1))
			buf_adds(out, hex);
	} else if (v->by == BY_LINE && e->line > 0) {
		const char *base = path_base(profile_text(v->profile, e->file));
		buf_addc(out, ' ');
		picture_text(base, strlen(base), out);
		buf_printf(out, ":%lld", (long long)e->line);
	}
}

void picture_name(const struct view *v, uint32_t entry, struct buf *out)
{
	const struct strings *s = &v->profile->strings;
	const struct entry *e = &v->entries[entry];
	if (strspn(strings_get(s, e->name), " ") >= strings_length(s, e->name))
		buf_adds(out, "(unnamed)");
	else
		picture_text(strings_get(s, e->name), strings_length(s, e->name), out);
	add_detail(v, e, out);
}

void picture_place(const struct view *v, uint32_t entry, struct buf *out)
{
	const struct strings *s = &v->profile->strings;
	const struct entry *e = &v->entries[entry];
	if (strings_length(s, e->file) == 0)
		return;
	picture_text(strings_get(s, e->file), strings_length(s, e->file), out);
	if (e->line > 0)
		buf_printf(out, ":%lld", (long long)e->line);
}

static bool is_word(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
	       c == '$' || (unsigned char)c >= 0x80;
}

/* Length of the sign at `at` when it follows the word "operator": of "<<" in "operator<<(A)"; else 0. */
static size_t operator_sign(const char *name, size_t n, size_t at)
{
	if (at < 8 || memcmp(name + at - 8, "operator", 8) != 0 || (at > 8 && is_word(name[at - 9])))
		return 0;
	if (n - at >= 2 && (memcmp(name + at, "()", 2) == 0 || memcmp(name + at, "[]", 2) == 0))
		return 2;
	size_t length = 0;
	while (at + length < n && name[at + length] && strchr("<>=-&|+*/%!~^,", name[at + length]))
		length++;
	return length;
}

/* Just past the bracket that closes the one at `at`, or 0 when none does. "->" closes nothing. */
static size_t past_bracket(const char *name, size_t n, size_t at)
{
	char open = name[at], close = open == '<' ? '>' : ')';
	size_t depth = 0;
	for (size_t i = at; i < n; i++) {
		if (name[i] == open)
			depth++;
		else if (name[i] == close && !(close == '>' && i && name[i - 1] == '-') && --depth == 0)
			return i + 1;
	}
	return 0;
}

/* Where "!0x12ab" or "!fn_12a0" begins, or n. */
static size_t address_at(const char *name, size_t n)
{
	for (size_t i = n; i-- > 0;) {
		if (name[i] == '!')
			return (n - i > 3 && memcmp(name + i, "!0x", 3) == 0) || (n - i > 4 && memcmp(name + i, "!fn_", 4) == 0) ? i : n;
		if (!is_word(name[i]))
			return n;
	}
	return n;
}

void picture_short(const char *name, size_t n, struct buf *out)
{
	size_t sign_end = SIZE_MAX, address = address_at(name, n);
	if (address > 1 && address < n) {
		buf_adds(out, ELLIPSIS);
		buf_add(out, name + address, n - address);
		return;
	}
	for (size_t i = 0; i < n;) {
		size_t sign = operator_sign(name, n, i);
		if (sign) {
			buf_add(out, name + i, sign);
			sign_end = i += sign;
			continue;
		}
		char before = i ? name[i - 1] : ' ';
		bool after_name = is_word(before) || i == sign_end;
		bool list = name[i] == '<' && (after_name || before == ':');
		bool parameters = name[i] == '(' && (after_name || before == '>' || before == ')' || before == ']');
		size_t past = list || parameters ? past_bracket(name, n, i) : 0;
		if (past == 0) {
			buf_addc(out, name[i++]);
			continue;
		}
		if (list)
			buf_adds(out, "<" ELLIPSIS ">");
		i = past;
	}
}

/* Bytes of the character at text[i], and the columns it takes at most. */
static size_t character(const char *text, size_t n, size_t i, size_t *ret_columns)
{
	size_t bytes = text_utf8_length(text + i, n - i);
	unsigned char lead = (unsigned char)text[i];
	/* From U+1100 on, but not the punctuation and signs of U+2000-2FFF. */
	*ret_columns = lead > 0xe2 || (lead == 0xe1 && (unsigned char)text[i + (bytes > 1)] >= 0x84) ? 2 : 1;
	return bytes ? bytes : 1;
}

size_t picture_columns(const char *text, size_t n)
{
	size_t columns = 0, wide;
	for (size_t i = 0; i < n; columns += wide)
		i += character(text, n, i, &wide);
	return columns;
}

void picture_fit(const char *text, size_t n, size_t columns, struct buf *out)
{
	if (columns < 3)
		return;
	size_t used = 0, cut = 0;
	for (size_t i = 0; i < n;) {
		size_t wide, bytes = character(text, n, i, &wide);
		if (used + wide > columns) {
			buf_add(out, text, cut);
			buf_adds(out, ELLIPSIS);
			return;
		}
		used += wide;
		i += bytes;
		if (used < columns)
			cut = i;
	}
	buf_add(out, text, n);
}

/* --- amounts --- */

void picture_amount(const struct view *v, double value, struct buf *out)
{
	if (strcmp(v->unit, "bytes") == 0) {
		text_add_bytes(out, value);
		return;
	}
	text_add_count(out, value);
	if (strcmp(v->unit, "count") != 0 && *v->unit) {
		buf_addc(out, ' ');
		picture_text(v->unit, strlen(v->unit), out);
	}
}

void picture_change(const struct view *v, double value, struct buf *out)
{
	if (value >= 0.5)
		buf_addc(out, '+');
	picture_amount(v, value, out);
}

void picture_number(double value, struct buf *out)
{
	if (!isfinite(value))
		value = 0;
	long long hundredths = llround(value * 100);
	unsigned long long u = (unsigned long long)llabs(hundredths);
	char digits[32];
	size_t at = sizeof(digits);
	unsigned decimals = u % 100 == 0 ? 0 : u % 10 == 0 ? 1 : 2;
	u /= decimals == 0 ? 100 : decimals == 1 ? 10 : 1;
	for (unsigned i = 0; i <= decimals || u; i++) {
		if (decimals && i == decimals)
			digits[--at] = '.';
		digits[--at] = (char)('0' + u % 10);
		u /= 10;
	}
	if (hundredths < 0)
		digits[--at] = '-';
	buf_add(out, digits + at, sizeof(digits) - at);
}

void picture_percent(double part, double whole, struct buf *out)
{
	double percent = 100 * part / whole;
	if (!isfinite(percent)) {
		buf_adds(out, "\xe2\x80\x93");
		return;
	}
	if (percent > 0 && percent < 0.1)
		buf_adds(out, "<0.1");
	else
		picture_number(round(percent * 10) / 10, out);
	buf_adds(out, " %");
}

/* --- changes --- */

enum picture_change picture_classify(const struct amount *a, bool noise)
{
	if (a->base == a->now)
		return CHANGE_NONE;
	if (noise)
		return CHANGE_NOISE;
	if (a->base == 0)
		return CHANGE_NEW;
	if (a->now == 0)
		return CHANGE_GONE;
	return a->now > a->base ? CHANGE_GREW : CHANGE_SHRANK;
}

bool picture_noise(const struct view *v, const struct amount *const *amounts, size_t n, bool *ret_noise)
{
	memset(ret_noise, 0, n * sizeof(*ret_noise));
	if (!v->diff || !v->has_error || n == 0)
		return true;
	double *p_values = calloc(n, sizeof(*p_values));
	bool *significant = calloc(n, sizeof(*significant));
	bool ok = p_values && significant;
	for (size_t i = 0; ok && i < n; i++)
		p_values[i] = estimate_p_value(amounts[i]->gained, amounts[i]->lost);
	ok = ok && estimate_significant(p_values, n, 0.05, significant);
	for (size_t i = 0; ok && i < n; i++) {
		struct interval around = amount_interval(amounts[i]);
		ret_noise[i] = !significant[i] || (around.low <= 0 && around.high >= 0);
	}
	free(p_values);
	free(significant);
	return ok;
}
