/*
 * The four numbers that every line of a heap dump has, old or new.
 */
#include "format/counts.h"

/* "3: 4096", with a colon and blanks between; *at moves behind it. */
static int pair(const struct lines *l, const char **at, const char *end, uint64_t *ret_objects,
                uint64_t *ret_bytes, struct error *err)
{
	uint64_t *const values[] = { ret_objects, ret_bytes };
	for (int i = 0; i < 2; i++) {
		while (*at < end && **at == ' ')
			++*at;
		const char *first = *at;
		bool digits = *at < end && **at >= '0' && **at <= '9';
		if (digits && (!lines_number(at, end, values[i]) || *values[i] > INT64_MAX)) {
			char quoted[LINES_QUOTE];
			size_t n = 0;
			while (first + n < end && first[n] >= '0' && first[n] <= '9')
				n++;
			return lines_error(l, err, E_FORMAT, "the count %s is larger than 2^63 - 1",
			                   lines_quote(quoted, first, n));
		}
		bool colon = i == 1 || (*at < end && **at == ':');
		if (!digits || !colon) {
			char quoted[LINES_QUOTE];
			return lines_error(l, err, E_FORMAT,
			    "expected OBJECTS: BYTES [OBJECTS: BYTES] in place of \"%s\"",
			    lines_quote(quoted, first, (size_t)(end - first)));
		}
		*at += i == 0;
	}
	return E_OK;
}

int counts_parse(const struct lines *l, const char *at, const char *end, struct counts *ret,
                     const char **ret_rest, struct error *err)
{
	int rc = pair(l, &at, end, &ret->objects, &ret->bytes, err);
	if (rc)
		return rc;
	while (at < end && *at == ' ')
		at++;
	if (at == end || *at != '[')
		return lines_error(l, err, E_FORMAT, "expected [OBJECTS: BYTES] behind the counts");
	at++;
	rc = pair(l, &at, end, &ret->accum_objects, &ret->accum_bytes, err);
	if (rc)
		return rc;
	if (at == end || *at != ']')
		return lines_error(l, err, E_FORMAT, "expected ] behind the accumulated counts");
	*ret_rest = at + 1;
	return E_OK;
}

static bool add_pair(uint64_t *objects, uint64_t *bytes, uint64_t more_objects, uint64_t more_bytes)
{
	return !__builtin_add_overflow(*objects, more_objects, objects) &&
	       !__builtin_add_overflow(*bytes, more_bytes, bytes);
}

int counts_add(const struct lines *l, struct counts *sum, const struct counts *c, struct error *err)
{
	if (add_pair(&sum->objects, &sum->bytes, c->objects, c->bytes) &&
	    add_pair(&sum->accum_objects, &sum->accum_bytes, c->accum_objects, c->accum_bytes))
		return E_OK;
	return lines_error(l, err, E_FORMAT, "the counts up to here add up to more than 2^64");
}
