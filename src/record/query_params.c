/* What a query's parameters say. Each is one call that gives a value or its fallback; the first that makes no sense is the error. */
#include <string.h>
#include <time.h>

#include "base/text.h"
#include "record/api_private.h"
#include "record/config.h"
#include "record/query_selector.h"

#define VALUES_MAX 256                  /* of a repeatable parameter */
#define SECONDS_MAX 100000000000        /* numbers above are milliseconds */
#define TIME_MAX ((int64_t)1 << 53)     /* ms; every program can hold it */

bool param_given(struct params *p, const char *name)
{
	char value[2];
	return !p->failed && http_query(&p->q->request, name, value, sizeof value) != -1;
}

const char *param_text(struct params *p, const char *name)
{
	char value[SELECTOR_BYTES_MAX];
	if (p->failed)
		return NULL;
	int n = http_query(&p->q->request, name, value, sizeof value);
	if (n == -2)
		p->failed = error_set(p->err, E_USAGE, "%s: given twice, malformed, or too long", name);
	if (n < 0)
		return NULL;
	const char *text = arena_text(&p->q->arena, value, (size_t)n);
	if (!text)
		p->failed = error_nomem(p->err, "parameters");
	return text;
}

size_t param_list(struct params *p, const char *name, const char ***ret)
{
	struct http_text rest = p->q->request.query;
	char value[SELECTOR_BYTES_MAX];
	const char **items = NULL;
	size_t n = 0;
	int length;
	while (!p->failed && (length = http_query_next(&rest, name, value, sizeof value)) != -1) {
		if (length < 0 || n == VALUES_MAX) {
			p->failed = error_set(p->err, E_USAGE, "%s: malformed, too long, or more than %d of them", name, VALUES_MAX);
			break;
		}
		items = arena_grow(&p->q->arena, items, n, sizeof *items);
		const char *text = arena_text(&p->q->arena, value, (size_t)length);
		if (!items || !text)
			p->failed = error_nomem(p->err, "parameters");
		else
			items[n++] = text;
	}
	*ret = items;
	return p->failed ? 0 : n;
}

uint64_t param_number(struct params *p, const char *name, uint64_t fallback, uint64_t low, uint64_t high)
{
	const char *text = param_text(p, name);
	uint64_t value = fallback;
	if (!text)
		return fallback;
	if (!text_parse_u64(text, strlen(text), 10, &value) || value < low || value > high)
		p->failed = error_set(p->err, E_USAGE, "%s: a number from %llu to %llu, not '%.60s'", name, (unsigned long long)low,
		                      (unsigned long long)high, text);
	return value;
}

int param_choice(struct params *p, const char *name, const char *const *words, int fallback)
{
	const char *text = param_text(p, name);
	struct buf all;
	if (!text)
		return fallback;
	for (int i = 0; words[i]; i++)
		if (strcmp(text, words[i]) == 0)
			return i;
	buf_init(&all, 400);
	for (int i = 0; words[i]; i++)
		buf_printf(&all, "%s%s", i ? ", " : "", words[i]);
	p->failed = error_set(p->err, E_USAGE, "%s: one of %s, not '%.60s'", name, all.data ? all.data : "", text);
	buf_finish(&all);
	return fallback;
}

bool param_flag(struct params *p, const char *name)
{
	static const char *const words[] = { "0", "1", NULL };
	return param_choice(p, name, words, 0) == 1;
}

enum metric param_metric(struct params *p, enum metric fallback)
{
	const char *words[METRICS + 1] = { NULL };
	for (int m = 0; m < METRICS; m++)
		words[m] = metric_name((enum metric)m);
	return (enum metric)param_choice(p, "metric", words, (int)fallback);
}

/* --- times --- */

/* "1790000000", "1790000000.25". */
static bool parse_seconds(const char *text, int64_t *ret_ms)
{
	size_t n = strspn(text, "0123456789"), n_fraction;
	uint64_t whole, fraction = 0;
	if (!n || !text_parse_u64(text, n, 10, &whole) || whole > (uint64_t)TIME_MAX)
		return false;
	*ret_ms = (int64_t)whole;
	if (whole > SECONDS_MAX)
		return text[n] == '\0';
	*ret_ms *= 1000;
	if (text[n] != '.')
		return text[n] == '\0';
	n_fraction = strspn(text + n + 1, "0123456789");
	if (!n_fraction || text[n + 1 + n_fraction])
		return false;
	for (size_t i = 0; i < 3; i++)
		fraction = fraction * 10 + (i < n_fraction ? (uint64_t)(text[n + 1 + i] - '0') : 0);
	*ret_ms += (int64_t)fraction;
	return true;
}

static bool digits(const char **at, size_t n, int *ret)
{
	uint64_t value;
	if (strspn(*at, "0123456789") < n || !text_parse_u64(*at, n, 10, &value))
		return false;
	*at += n;
	*ret = (int)value;
	return true;
}

static bool take(const char **at, const char *any_of)
{
	if (!**at || !strchr(any_of, **at))
		return false;
	(*at)++;
	return true;
}

/* "Z", "+01:00". */
static bool parse_zone(const char **at, int64_t *ret_ms)
{
	int hours, minutes;
	*ret_ms = 0;
	if (take(at, "Zz"))
		return true;
	bool west = **at == '-';
	/* In a query a '+' that was not escaped has become a blank. */
	if (!take(at, "+- ") || !digits(at, 2, &hours) || !take(at, ":") || !digits(at, 2, &minutes) || hours > 23 || minutes > 59)
		return false;
	*ret_ms = (hours * 60 + minutes) * (west ? -60000LL : 60000LL);
	return true;
}

/* "2026-11-21T10:00:00.5Z". */
static bool parse_date(const char *text, int64_t *ret_ms)
{
	struct tm t = { .tm_isdst = 0 };
	int64_t zone_ms;
	int ms = 0;
	if (!digits(&text, 4, &t.tm_year) || !take(&text, "-") || !digits(&text, 2, &t.tm_mon) || !take(&text, "-") ||
	    !digits(&text, 2, &t.tm_mday) || !take(&text, "Tt ") || !digits(&text, 2, &t.tm_hour) || !take(&text, ":") ||
	    !digits(&text, 2, &t.tm_min) || !take(&text, ":") || !digits(&text, 2, &t.tm_sec))
		return false;
	if (take(&text, ".")) {
		size_t n = strspn(text, "0123456789");
		for (size_t i = 0; i < 3; i++)
			ms = ms * 10 + (i < n ? text[i] - '0' : 0);
		text += n;
	}
	if (!parse_zone(&text, &zone_ms) || *text)
		return false;
	static const int days[] = { 31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
	if (t.tm_mon < 1 || t.tm_mon > 12 || t.tm_mday < 1 || t.tm_mday > days[t.tm_mon - 1] || t.tm_hour > 23 || t.tm_min > 59 ||
	    t.tm_sec > 60 || t.tm_year < 1970)
		return false;
	t.tm_year -= 1900;
	t.tm_mon--;
	*ret_ms = timegm(&t) * 1000LL + ms - zone_ms;
	return *ret_ms >= 0;
}

bool query_time(const char *text, int64_t now_ms, int64_t *ret_ms)
{
	int64_t before;
	if (strcmp(text, "now") == 0) {
		*ret_ms = now_ms;
		return true;
	}
	if (*text == '-') {
		if (!config_duration(text + 1, &before) || before > now_ms)
			return false;
		*ret_ms = now_ms - before;
		return true;
	}
	return parse_seconds(text, ret_ms) || parse_date(text, ret_ms);
}

int64_t param_time(struct params *p, const char *name, int64_t fallback)
{
	const char *text = param_text(p, name);
	int64_t value = fallback;
	if (text && !query_time(text, p->q->now_ms, &value))
		p->failed = error_set(p->err, E_USAGE, "%s: a time like 2026-11-21T10:00:00Z, 1790000000, now or -2h, not '%.60s'", name, text);
	return value;
}

int64_t param_duration(struct params *p, const char *name, int64_t fallback)
{
	const char *text = param_text(p, name);
	int64_t value = fallback;
	if (text && ((!parse_seconds(text, &value) && !config_duration(text, &value)) || value <= 0))
		p->failed = error_set(p->err, E_USAGE, "%s: seconds, or a time like 30s or 5m, not '%.60s'", name, text);
	return value;
}
