/*
 * Numbers are worded without printf's %f, so that no locale can put a comma where a
 * point belongs. A reader at night compares magnitudes: three digits and a unit.
 */
#include "report/words.h"

#include "base/text.h"
#include "report/report.h"

#include <math.h>
#include <string.h>
#include <time.h>

void words_decimal(double value, unsigned decimals, struct buf *out)
{
	static const unsigned scales[] = { 1, 10, 100, 1000 };
	if (!isfinite(value) || fabs(value) > 1e15) {
		buf_adds(out, isnan(value) ? "?" : value < 0 ? "<-1e15" : ">1e15");
		return;
	}
	unsigned scale = scales[decimals];
	uint64_t scaled = (uint64_t)(fabs(value) * scale + 0.5);
	if (value < 0 && scaled)
		buf_addc(out, '-');
	buf_printf(out, "%llu", (unsigned long long)(scaled / scale));
	if (decimals)
		buf_printf(out, ".%0*llu", (int)decimals, (unsigned long long)(scaled % scale));
}

/* Three significant digits of a value below 1000. */
static void add_three_digits(double value, struct buf *out)
{
	double size = fabs(value);
	words_decimal(value, size < 9.995 ? 2 : size < 99.95 ? 1 : 0, out);
}

/* --- units ---------------------------------------------------------------- */

/* Seconds in one of the unit, or 0 when it is no time. */
static double unit_seconds(const char *unit)
{
	static const struct {
		const char *name;
		double seconds;
	} units[] = {
		{ "nanoseconds", 1e-9 }, { "microseconds", 1e-6 }, { "milliseconds", 1e-3 }, { "seconds", 1 },
		{ "ns", 1e-9 },          { "us", 1e-6 },           { "ms", 1e-3 },           { "s", 1 },
	};
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (!strcmp(unit, units[i].name))
			return units[i].seconds;
	return 0;
}

void words_duration(double seconds, struct buf *out)
{
	static const struct {
		double below, unit;
		const char *name;
	} steps[] = {
		{ 0.9995e-6, 1e-9, " ns" }, { 0.9995e-3, 1e-6, " us" }, { 0.9995, 1e-3, " ms" },
		{ 99.95, 1, " s" },         { 5997, 60, " min" },       { 359820, 3600, " h" },
		{ INFINITY, 86400, " days" },
	};
	if (seconds == 0) {
		buf_adds(out, "0 s");
		return;
	}
	size_t i = 0;
	while (fabs(seconds) >= steps[i].below && steps[i].below < INFINITY)
		i++;
	add_three_digits(seconds / steps[i].unit, out);
	buf_adds(out, steps[i].name);
}

bool words_is_bytes(const struct view *v)
{
	return !strcmp(v->unit, "bytes");
}

void words_amount(const struct view *v, double value, struct buf *out)
{
	double seconds = unit_seconds(v->unit);
	if (words_is_bytes(v))
		text_add_bytes(out, value);
	else if (seconds > 0)
		words_duration(value * seconds, out);
	else
		text_add_count(out, value);
}

void words_change(const struct view *v, double change, struct buf *out)
{
	if (change > 0)
		buf_addc(out, '+');
	words_amount(v, change, out);
}

void words_value(const struct view *v, const struct amount *a, struct buf *out)
{
	if (v->diff)
		words_change(v, amount_change(a), out);
	else
		words_amount(v, a->now, out);
}

/* --- shares --------------------------------------------------------------- */

/* A share in percent, short whatever its size: "0.004" would read as 0.0. */
static void add_percent(double percent, struct buf *out)
{
	double size = fabs(percent);
	if (size > 0 && size < 0.05) {
		buf_adds(out, percent < 0 ? ">-0.1%" : "<0.1%");
		return;
	}
	if (size >= 999950) {
		buf_adds(out, percent < 0 ? "<-999999%" : ">999999%");
		return;
	}
	words_decimal(percent, size < 999.95 ? 1 : 0, out);
	buf_addc(out, '%');
}

void words_percent(double part, double whole, struct buf *out)
{
	if (whole != 0)
		add_percent(100 * part / whole, out);
}

void words_change_percent(const struct amount *a, struct buf *out)
{
	double change = amount_change(a);
	if (change == 0)
		return;
	if (a->base == 0) {
		buf_adds(out, "new");
	} else if (a->now == 0) {
		buf_adds(out, "gone");
	} else {
		double percent = 100 * change / fabs(a->base);
		if (percent >= 0.05)
			buf_addc(out, '+');
		add_percent(percent, out);
	}
}

/* --- errors --------------------------------------------------------------- */

static void add_size(double value, bool bytes, struct buf *out)
{
	if (bytes)
		text_add_bytes(out, value);
	else
		text_add_count(out, value);
}

/* "±3%", "±0.4%", "±<0.1%": half as a part of value. */
static void add_relative(double half, double value, struct buf *out)
{
	double percent = 100 * half / value;
	buf_adds(out, "±");
	if (percent < 0.05)
		buf_adds(out, "<0.1%");
	else
		words_decimal(percent, percent < 0.95 ? 1 : 0, out);
	if (percent >= 0.05)
		buf_addc(out, '%');
}

/* Sides of an interval that differ by more are both told. */
#define LOPSIDED 1.3

static void add_single_error(const struct amount *a, bool bytes, struct buf *out)
{
	struct estimate e = a->gained;
	struct interval i = amount_interval(a);
	if (!(i.high > i.low))
		return;
	if (!(e.value > 0)) {
		buf_addc(out, '<');
		add_size(i.high, bytes, out);
		return;
	}
	if (estimate_samples(e) >= ESTIMATE_FEW_SAMPLES) {
		add_relative((i.high - i.low) / 2, e.value, out);
		return;
	}
	buf_addc(out, '-');
	words_decimal(100 * (e.value - i.low) / e.value, 0, out);
	buf_adds(out, "%/+");
	words_decimal(100 * (i.high - e.value) / e.value, 0, out);
	buf_addc(out, '%');
}

/* Few samples make the interval lopsided: then both sides are told. */
static void add_diff_error(const struct amount *a, bool bytes, struct buf *out)
{
	struct interval i = amount_interval(a);
	if (!(i.high > i.low))
		return;
	double change = amount_change(a), below = change - i.low, above = i.high - change;
	if (fmax(below, above) <= LOPSIDED * fmin(below, above)) {
		buf_adds(out, "±");
		add_size((below + above) / 2, bytes, out);
		return;
	}
	buf_addc(out, '-');
	add_size(below, bytes, out);
	buf_adds(out, "/+");
	add_size(above, bytes, out);
}

void report_error_text(const struct amount *a, bool diff, bool bytes, struct buf *out)
{
	/* A single profile that somebody subtracted from has amounts on both sides too. */
	if (diff || a->lost.value > 0 || a->lost.variance > 0)
		add_diff_error(a, bytes, out);
	else
		add_single_error(a, bytes, out);
}

void words_error(const struct view *v, const struct amount *a, struct buf *out)
{
	if (v->has_error)
		report_error_text(a, v->diff, words_is_bytes(v), out);
}

/* --- times ---------------------------------------------------------------- */

void words_time(int64_t nanos, struct buf *out)
{
	struct tm tm;
	time_t seconds = (time_t)(nanos / 1000000000);
	if (nanos <= 0 || !gmtime_r(&seconds, &tm))
		return;
	buf_printf(out, "%04d-%02d-%02d %02d:%02d:%02d UTC", tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday,
	           tm.tm_hour, tm.tm_min, tm.tm_sec);
}

/* --- names ---------------------------------------------------------------- */

static void add_string(const struct view *v, uint32_t id, struct buf *out)
{
	text_add_terminal(out, profile_text(v->profile, id), strings_length(&v->profile->strings, id));
}

/* "binary!0x1234 " before the name of an address, unless the name says it already. */
static void add_address(const struct view *v, const struct entry *e, struct buf *out)
{
	const char *binary = "";
	if (e->mapping != PROFILE_NONE)
		binary = path_base(profile_text(v->profile, v->profile->mappings[e->mapping].file));
	struct buf place;
	buf_init(&place, 1 << 16);
	if (*binary)
		buf_printf(&place, "%s!", binary);
	buf_printf(&place, "0x%llx", (unsigned long long)e->address);
	const char *name = profile_text(v->profile, e->name);
	if (place.data && strcmp(name, place.data) != 0) {
		text_add_terminal(out, place.data, place.len);
		buf_addc(out, ' ');
	}
	words_finish_part(&place, out);
}

void words_entry(const struct view *v, uint32_t entry, struct buf *out)
{
	const struct entry *e = &v->entries[entry];
	if (v->by == BY_ADDRESS)
		add_address(v, e, out);
	if (e->name)
		add_string(v, e->name, out);
	else
		buf_adds(out, "(unnamed)");
	if (v->by == BY_LINE || v->by == BY_ADDRESS) {
		if (e->file) {
			buf_addc(out, ' ');
			add_string(v, e->file, out);
		}
		if (e->file && e->line)
			buf_printf(out, ":%lld", (long long)e->line);
	}
	if (e->inlined && (v->by == BY_FUNCTION || v->by == BY_LINE || v->by == BY_ADDRESS))
		buf_adds(out, " (inline)");
}

void words_paragraph(const char *text, size_t length, size_t at, size_t indent, size_t columns, struct buf *out)
{
	bool fresh = true;      /* nothing but the indent stands on this line */
	for (size_t i = 0; i < length;) {
		const char *blank = memchr(text + i, ' ', length - i);
		size_t n = blank ? (size_t)(blank - (text + i)) : length - i;
		size_t width = text_columns(text + i, n);
		if (!fresh && columns && at + 1 + width > columns) {
			buf_addc(out, '\n');
			for (at = 0; at < indent; at++)
				buf_addc(out, ' ');
			fresh = true;
		} else if (!fresh) {
			buf_addc(out, ' ');
			at++;
		}
		buf_add(out, text + i, n);
		at += width;
		fresh = false;
		i += n + 1;
	}
	buf_addc(out, '\n');
}

const char *words_granularity(enum granularity by)
{
	static const char *const names[] = {
		[BY_FUNCTION] = "function", [BY_LINE] = "line",     [BY_FILE] = "file",
		[BY_BINARY] = "binary",     [BY_THREAD] = "thread", [BY_ADDRESS] = "address",
	};
	return names[by];
}

int words_companion_column(const struct view *v)
{
	static const enum metric companion[METRICS] = {
		[ALLOC_OBJECTS] = ALLOC_SPACE,
		[ALLOC_SPACE] = ALLOC_OBJECTS,
		[INUSE_OBJECTS] = INUSE_SPACE,
		[INUSE_SPACE] = INUSE_OBJECTS,
	};
	for (int m = 0; m < METRICS; m++)
		if (v->profile->metric[m] >= 0 && v->profile->metric[m] == v->column)
			return v->profile->metric[companion[m]];
	return -1;
}
