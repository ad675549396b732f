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

/* The exponent form has no fraction, so that no locale can put a comma into it. */
void json_number(struct json *j, const char *key, double value)
{
	if (!isfinite(value)) {
		json_null(j, key);
		return;
	}
	add_key(j, key);
	if (value == rint(value) && fabs(value) < 1e15) {
		buf_printf(j->out, "%.0f", value + 0.0);
		return;
	}
	int exponent = (int)floor(log10(fabs(value))) - 5;
	double digits = rint(value / pow(10, exponent));
	if (isfinite(digits) && digits != 0)
		buf_printf(j->out, "%.0fe%d", digits, exponent);
	else
		buf_addc(j->out, '0');
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
