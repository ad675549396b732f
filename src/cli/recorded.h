/* PROFILEs out of a recorder's store: store:FILE?target=…&from=…&to=…, of a moment, of a range, or each of a range. */
#ifndef CLI_RECORDED_H
#define CLI_RECORDED_H

#include "profile/profile.h"
#include "store/store.h"

bool recorded_is(const char *text);

/* RFC 3339, seconds since 1970, "now", or "-2h" before now (s, m, min, h, d, w). */
bool recorded_time(const char *text, int64_t now_ms, int64_t *ret_ms);

/* Which series and which time. */
struct recorded {
	char *file;
	struct store_matcher matchers[16];
	size_t n_matchers;
	uint32_t series;                /* 0: all that match */
	bool has_from, has_to;
	int64_t from_ms, to_ms;
	enum store_mode mode;
};
int recorded_parse(const char *text, struct recorded *ret, struct error *err);
void recorded_finish(struct recorded *r);

/* One profile. */
int recorded_load(const char *text, struct profile **ret, struct error *err);
/* At most max profiles of one process, put together as profile_series does. */
struct recorded_series {
	struct profile *profile;
	size_t all, from, n;            /* how many there were; those with another sampling rate than their neighbours may be left out */
};
int recorded_read_series(const char *text, size_t max, struct recorded_series *ret, struct error *err);

/* With the store open: the series, and the range where it wasn't given. E_USAGE: none has profiles in that time. */
int recorded_find(struct recorded *r, struct store *s, struct store_series_info **ret, size_t *ret_n, struct error *err);

#endif
