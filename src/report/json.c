/*
 * One writer for all reports' JSON; docs/json.md describes what comes out.
 */
#include "report/json.h"

#include "base/text.h"

#include <math.h>
#include <string.h>

static void add_key(struct json *j, const char *key)
{
	if (j->comma)
		buf_addc(j->out, ',');
	j->comma = true;
	if (key) {
		text_add_json(j->out, key, strlen(key));
		buf_addc(j->out, ':');
	}
}

void json_open(struct json *j, const char *key, char bracket)
{
	add_key(j, key);
	buf_addc(j->out, bracket);
	j->comma = false;
}

void json_close(struct json *j, char bracket)
{
	buf_addc(j->out, bracket);
	j->comma = true;
}

void json_text(struct json *j, const char *key, const char *text, size_t length)
{
	add_key(j, key);
	text_add_json(j->out, text, length);
}

void json_cstring(struct json *j, const char *key, const char *text)
{
	json_text(j, key, text, strlen(text));
}

void json_null(struct json *j, const char *key)
{
	add_key(j, key);
	buf_adds(j->out, "null");
}

/* Six significant digits, put together from whole numbers so that no locale can put a comma between them. */
static void add_fraction(struct buf *out, double value)
{
	double size = fabs(value);
	int exponent = (int)floor(log10(size));
	if (value < 0)
		buf_addc(out, '-');
	if (exponent < -4 || exponent >= 6) {
		unsigned long digits = (unsigned long)lrint(size / pow(10, exponent) * 1e5);
		if (digits > 999999) {
			digits /= 10;
			exponent++;
		}
		buf_printf(out, "%lu.%05lue%d", digits / 100000, digits % 100000, exponent);
		return;
	}
	int decimals = 5 - exponent;
	uint64_t scale = 1;
	for (int i = 0; i < decimals; i++)
		scale *= 10;
	uint64_t digits = (uint64_t)llrint(size * (double)scale);
	for (; decimals > 0 && digits % 10 == 0; decimals--) {
		digits /= 10;
		scale /= 10;
	}
	buf_printf(out, "%llu", (unsigned long long)(digits / scale));
	if (decimals > 0)
		buf_printf(out, ".%0*llu", decimals, (unsigned long long)(digits % scale));
}

void json_number(struct json *j, const char *key, double value)
{
	if (!isfinite(value)) {
		json_null(j, key);
		return;
	}
	add_key(j, key);
	if (value == rint(value) && fabs(value) < 1e15)
		buf_printf(j->out, "%.0f", value + 0.0);
	else if (fabs(value) < 1e-300)
		buf_addc(j->out, '0');
	else
		add_fraction(j->out, value);
}

void json_amount_number(struct json *j, const char *key, double value)
{
	if (!isfinite(value)) {
		json_null(j, key);
		return;
	}
	add_key(j, key);
	buf_printf(j->out, "%.0f", rint(value) + 0.0);
}

void json_integer(struct json *j, const char *key, int64_t value)
{
	add_key(j, key);
	buf_printf(j->out, "%lld", (long long)value);
}

void json_bool(struct json *j, const char *key, bool value)
{
	add_key(j, key);
	buf_adds(j->out, value ? "true" : "false");
}

void json_amount(struct json *j, const char *key, const struct view *v, const struct amount *a)
{
	json_open(j, key, '{');
	if (v->diff) {
		json_amount_number(j, "base", a->base);
		json_amount_number(j, "new", a->now);
		json_amount_number(j, "change", amount_change(a));
	} else {
		json_amount_number(j, "value", a->now);
	}
	if (v->has_error) {
		struct interval i = amount_interval(a);
		json_amount_number(j, "low", i.low);
		json_amount_number(j, "high", i.high);
	} else {
		json_null(j, "low");
		json_null(j, "high");
	}
	json_close(j, '}');
}

static void add_string(struct json *j, const char *key, const struct view *v, uint32_t id)
{
	json_text(j, key, profile_text(v->profile, id), strings_length(&v->profile->strings, id));
}

void json_entry(struct json *j, const struct view *v, uint32_t entry)
{
	const struct entry *e = &v->entries[entry];
	add_string(j, "name", v, e->name);
	if (e->file)
		add_string(j, "file", v, e->file);
	if (e->line)
		json_integer(j, "line", e->line);
	if (e->mapping != PROFILE_NONE)
		add_string(j, "binary", v, v->profile->mappings[e->mapping].file);
	if (e->address) {
		char hex[24];
		struct buf b = { .data = hex, .capacity = sizeof(hex), .max = sizeof(hex) - 1 };
		buf_printf(&b, "0x%llx", (unsigned long long)e->address);
		json_cstring(j, "address", hex);
	}
	if (e->inlined)
		json_bool(j, "inlined", true);
}
