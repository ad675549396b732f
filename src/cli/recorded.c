/*
 * A store is asked like a file. Where no time is given it is the last one there is, so that a store that was copied away yesterday says
 * something, too.
 */
#include "cli/recorded.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/text.h"

#define LAST_MS 300000          /* of the last profiles: older ones are of processes that have ended */
#define RANGE_MS 3600000
#define BYTES_MAX ((size_t)4 << 30)

bool recorded_is(const char *text)
{
	return strncmp(text, "store:", 6) == 0;
}

/* --- times --- */

static bool digits(const char **at, int n, int *ret)
{
	int v = 0;
	for (int i = 0; i < n; i++, ++*at) {
		if (**at < '0' || **at > '9')
			return false;
		v = v * 10 + (**at - '0');
	}
	*ret = v;
	return true;
}

static bool expect(const char **at, char c)
{
	return *(*at)++ == c;
}

/* 2026-11-21T20:00:00.5Z, with a blank for T, with +01:00 for Z. */
static bool rfc3339(const char *text, int64_t *ret_ms)
{
	struct tm t = { 0 };
	int hours = 0, minutes = 0, sign = 1, millis = 0, scale = 100;
	const char *at = text;
	if (!digits(&at, 4, &t.tm_year) || !expect(&at, '-') || !digits(&at, 2, &t.tm_mon) || !expect(&at, '-') || !digits(&at, 2, &t.tm_mday) ||
	    (*at != 'T' && *at != 't' && *at != ' ') || !digits((at++, &at), 2, &t.tm_hour) || !expect(&at, ':') || !digits(&at, 2, &t.tm_min) ||
	    !expect(&at, ':') || !digits(&at, 2, &t.tm_sec))
		return false;
	if (*at == '.')
		for (at++; *at >= '0' && *at <= '9'; at++, scale /= 10)
			millis += (*at - '0') * scale;
	if (*at == '+' || *at == '-') {
		sign = *at++ == '-' ? -1 : 1;
		if (!digits(&at, 2, &hours) || !expect(&at, ':') || !digits(&at, 2, &minutes))
			return false;
	} else if (*at == 'Z' || *at == 'z') {
		at++;
	} else {
		return false;
	}
	if (*at || t.tm_mon < 1 || t.tm_mon > 12 || t.tm_mday < 1 || t.tm_mday > 31 || t.tm_hour > 23 || t.tm_min > 59 || t.tm_sec > 60)
		return false;
	t.tm_year -= 1900;
	t.tm_mon--;
	*ret_ms = ((int64_t)timegm(&t) - sign * (hours * 3600 + minutes * 60)) * 1000 + millis;
	return true;
}

static bool ago(const char *text, int64_t now_ms, int64_t *ret_ms)
{
	static const struct {
		const char *name;
		int64_t ms;
	} units[] = { { "s", 1000 }, { "m", 60000 }, { "min", 60000 }, { "h", 3600000 }, { "d", 86400000 }, { "w", 604800000 } };
	size_t n = strspn(text, "0123456789");
	uint64_t count;
	if (!n || !text_parse_u64(text, n, 10, &count) || count > 1000000000)
		return false;
	for (size_t i = 0; i < sizeof units / sizeof *units; i++)
		if (strcmp(text + n, units[i].name) == 0) {
			*ret_ms = now_ms - (int64_t)count * units[i].ms;
			return true;
		}
	return false;
}

bool recorded_time(const char *text, int64_t now_ms, int64_t *ret_ms)
{
	uint64_t seconds;
	if (strcmp(text, "now") == 0) {
		*ret_ms = now_ms;
		return true;
	}
	if (*text == '-')
		return ago(text + 1, now_ms, ret_ms);
	if (text_parse_u64(text, strlen(text), 10, &seconds) && seconds < 100000000000) {
		*ret_ms = (int64_t)seconds * 1000;
		return true;
	}
	return rfc3339(text, ret_ms);
}

/* --- the text --- */

static int hex(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* %41 and the like, in place. A plus stays one: it is part of times. */
static void decode(char *text)
{
	char *to = text;
	for (; *text; text++) {
		bool coded = *text == '%' && hex(text[1]) >= 0 && hex(text[2]) >= 0;
		*to++ = coded ? (char)(hex(text[1]) << 4 | hex(text[2])) : *text;
		text += coded ? 2 : 0;
	}
	*to = '\0';
}

static int64_t now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_REALTIME, &t);
	return t.tv_sec * 1000LL + t.tv_nsec / 1000000;
}

static int parse_time(const char *key, const char *value, int64_t *ret, bool *ret_has, struct error *err)
{
	*ret_has = true;
	if (recorded_time(value, now(), ret))
		return 0;
	return error_set(err, E_USAGE, "%s=%.100s: a time is 2026-11-21T20:00:00Z, seconds since 1970, now, or -2h", key, value);
}

static int parse_mode(const char *value, enum store_mode *ret, struct error *err)
{
	for (enum store_mode m = STORE_LAST; m <= STORE_MAX; m++)
		if (strcmp(value, store_mode_name(m)) == 0) {
			*ret = m;
			return 0;
		}
	return error_set(err, E_USAGE, "mode=%.100s: last, average or max", value);
}

static int add_matcher(struct recorded *r, char *key, char *value, struct error *err)
{
	if (r->n_matchers == sizeof r->matchers / sizeof *r->matchers)
		return error_set(err, E_USAGE, "at most %zu labels can be asked for", sizeof r->matchers / sizeof *r->matchers);
	size_t n = strlen(key);
	bool not = n && key[n - 1] == '!', expression = *value == '~';
	if (not)
		key[n - 1] = '\0';
	r->matchers[r->n_matchers++] = (struct store_matcher){
		key, expression ? not ? MATCH_NOT_REGEX : MATCH_REGEX : not ? MATCH_NOT_EQUAL : MATCH_EQUAL, value + expression
	};
	return 0;
}

static int parse_pair(struct recorded *r, char *key, char *value, struct error *err)
{
	uint64_t number;
	decode(key);
	decode(value);
	if (strcmp(key, "from") == 0)
		return parse_time(key, value, &r->from_ms, &r->has_from, err);
	if (strcmp(key, "to") == 0)
		return parse_time(key, value, &r->to_ms, &r->has_to, err);
	if (strcmp(key, "mode") == 0)
		return parse_mode(value, &r->mode, err);
	if (strcmp(key, "target") != 0)
		return add_matcher(r, key, value, err);
	if (!text_parse_u64(value, strlen(value), 10, &number))
		return add_matcher(r, (char *)(uintptr_t)"instance", value, err);
	if (number == 0 || number >= UINT32_MAX)
		return error_set(err, E_USAGE, "target=%.100s: there is no series of that number", value);
	r->series = (uint32_t)number;
	return 0;
}

int recorded_parse(const char *text, struct recorded *ret, struct error *err)
{
	struct recorded r = { .to_ms = INT64_MAX };
	if (!(r.file = strdup(text + (recorded_is(text) ? 6 : 0))))
		return error_nomem(err, "a name");
	char *query = strchr(r.file, '?');
	if (query)
		*query++ = '\0';
	int failed = *r.file ? 0 : error_set(err, E_USAGE, "%.200s: which file? store:FILE?target=…&from=…&to=…", text);
	while (query && *query && !failed) {
		char *end = strchr(query, '&'), *equals;
		if (end)
			*end = '\0';
		equals = strchr(query, '=');
		if (equals)
			*equals = '\0';
		failed = equals ? parse_pair(&r, query, equals + 1, err)
		                : error_set(err, E_USAGE, "'%.100s' is no key=value; a store is asked by target, from, to, mode and labels", query);
		query = end ? end + 1 : NULL;
	}
	if (!failed && r.has_from && r.has_to && r.from_ms >= r.to_ms)
		failed = error_set(err, E_USAGE, "%.200s: from is not before to", text);
	if (failed)
		free(r.file);
	else
		*ret = r;
	return failed;
}

void recorded_finish(struct recorded *r)
{
	free(r->file);
	*r = (struct recorded){ 0 };
}

/* --- the series --- */

/* Drops those that aren't the one, or not in the range. */
static size_t keep(const struct recorded *r, struct store_series_info *list, size_t n)
{
	size_t kept = 0;
	for (size_t i = 0; i < n; i++)
		if ((!r->series || list[i].series == r->series) && list[i].last_ms >= r->from_ms && list[i].first_ms < r->to_ms)
			list[kept++] = list[i];
		else
			free((void *)list[i].who.labels);
	return kept;
}

int recorded_find(struct recorded *r, struct store *s, struct store_series_info **ret, size_t *ret_n, struct error *err)
{
	struct store_series_info *list;
	size_t n;
	int64_t last = INT64_MIN;
	int failed = store_find_series(s, r->matchers, r->n_matchers, r->has_from ? r->from_ms : INT64_MIN, r->to_ms, &list, &n, err);
	if (failed)
		return failed;
	for (size_t i = 0; i < n; i++)
		if ((!r->series || list[i].series == r->series) && list[i].last_ms > last)
			last = list[i].last_ms;
	if (last != INT64_MIN && (!r->has_to || r->to_ms > last))
		r->to_ms = last + 1;
	if (!r->has_from)
		r->from_ms = r->to_ms - (r->mode == STORE_LAST ? LAST_MS : RANGE_MS);
	n = keep(r, list, n);
	if (n == 0) {
		store_series_free(list, 0);
		return error_set(err, E_USAGE, "%.200s: no profile of what was asked for is in it ('heapgauge store info' lists its series)", r->file);
	}
	*ret = list;
	*ret_n = n;
	return 0;
}

static int merge(struct store *s, const struct recorded *r, const struct store_series_info *list, size_t n, struct profile **ret,
                 struct error *err)
{
	uint32_t *series = calloc(n, sizeof *series);
	if (!series)
		return error_nomem(err, "the series");
	for (size_t i = 0; i < n; i++)
		series[i] = list[i].series;
	int failed = store_merge(s, &(struct store_range){ series, n, r->from_ms, r->to_ms }, r->mode,
	                         &(struct store_budget){ .max_bytes = BYTES_MAX }, ret, err);
	free(series);
	return failed;
}

/* What text says, and the series it means: the three are to be given back with close_place, also after an error. */
struct place {
	struct recorded what;
	struct store *store;
	struct store_series_info *list;
	size_t n;
};

static int open_place(const char *text, bool moments, struct place *p, struct error *err)
{
	*p = (struct place){ .store = NULL };
	int failed = recorded_parse(text, &p->what, err);
	if (failed)
		return failed;
	if (moments && !p->what.has_from)
		p->what.mode = STORE_AVERAGE;   /* a range, not a moment */
	failed = store_open(p->what.file, &(struct store_options){ .read_only = true }, &p->store, err);
	return failed ? failed : recorded_find(&p->what, p->store, &p->list, &p->n, err);
}

static void close_place(struct place *p)
{
	store_series_free(p->list, p->n);
	store_close(p->store);
	recorded_finish(&p->what);
}

int recorded_load(const char *text, struct profile **ret, struct error *err)
{
	struct place p;
	const struct recorded *r = &p.what;
	int failed = open_place(text, false, &p, err);
	/* Just the last one: as it was received. */
	if (!failed && p.n == 1 && r->mode == STORE_LAST && !r->has_from)
		failed = store_read(p.store, p.list[0].series, r->to_ms - 1, NULL, ret, err);
	else if (!failed)
		failed = merge(p.store, r, p.list, p.n, ret, err);
	close_place(&p);
	return failed;
}

/* The moments whose sampling rate is that of those beside them: of the longest such part, the latest of equals. *from, *n: in and out. */
static void longest_of_one_rate(const struct profile *p, size_t *from, size_t *n)
{
	size_t first = 0, longest = 0;
	for (size_t i = 0; i < p->n_sources; i++) {
		if (i > 0 && p->sources[i].rate != p->sources[i - 1].rate)
			first = i;
		if (i + 1 - first >= longest) {
			*from = first;
			longest = i + 1 - first;
		}
	}
	*n = longest;
}

static int read_moments(struct store *s, uint32_t series, const int64_t *times, size_t n, struct profile **ret, struct error *err)
{
	struct store_moment *moments = calloc(n + 1, sizeof *moments);
	bool *found = calloc(n + 1, sizeof *found);
	int failed = moments && found ? 0 : error_nomem(err, "the profiles");
	for (size_t i = 0; i < n && !failed; i++)
		moments[i] = (struct store_moment){ series, times[i], (uint32_t)i };
	if (!failed)
		failed = store_read_moments(s, moments, n, &(struct store_budget){ .max_bytes = BYTES_MAX }, found, ret, err);
	free(moments);
	free(found);
	return failed;
}

static int read_series(struct store *s, const struct recorded *r, uint32_t series, size_t max, struct recorded_series *ret, struct error *err)
{
	int64_t *times = NULL;
	int failed = store_moments(s, series, r->from_ms, r->to_ms, max, &times, &ret->all, err);
	ret->from = 0;
	ret->n = failed ? 0 : ret->all;
	if (!failed && ret->all == 0)
		failed = error_set(err, E_USAGE, "%.200s: there is no whole profile in that time", r->file);
	if (!failed)
		failed = read_moments(s, series, times, ret->all, &ret->profile, err);
	if (!failed)
		longest_of_one_rate(ret->profile, &ret->from, &ret->n);
	if (!failed && ret->n < ret->all) {
		profile_free(ret->profile);
		failed = read_moments(s, series, times + ret->from, ret->n, &ret->profile, err);
	}
	free(times);
	return failed;
}

int recorded_read_series(const char *text, size_t max, struct recorded_series *ret, struct error *err)
{
	struct place p;
	int failed = open_place(text, true, &p, err);
	if (!failed && p.n > 1)
		failed = error_set(err, E_USAGE, "%.200s: %zu processes match, and this looks at one: add target=NUMBER ('heapgauge store info' "
		                   "lists them; the last one is %u)", p.what.file, p.n, p.list[p.n - 1].series);
	else if (!failed)
		failed = read_series(p.store, &p.what, p.list[0].series, max, ret, err);
	close_place(&p);
	return failed;
}
