/* The query: name=value pairs between '&', decoded where they lie and never stored but in the caller's room. */
#include "http/request.h"

#include <string.h>

/* Takes the next pair; false when there is none. Nothing between two '&' is no parameter. */
static bool next_pair(struct http_text *rest, struct http_text *ret_name, struct http_text *ret_value)
{
	while (rest->n && *rest->at == '&')
		rest->at++, rest->n--;
	if (rest->n == 0)
		return false;
	const char *end = memchr(rest->at, '&', rest->n);
	size_t n = end ? (size_t)(end - rest->at) : rest->n;
	const char *equals = memchr(rest->at, '=', n);
	size_t name_n = equals ? (size_t)(equals - rest->at) : n;
	*ret_name = (struct http_text){ rest->at, name_n };
	*ret_value = (struct http_text){ rest->at + name_n + !!equals, n - name_n - !!equals };
	rest->at += n;
	rest->n -= n;
	return true;
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Takes one character of t, which has one; -1 when it is malformed. */
static int decoded(struct http_text *t)
{
	char c = *t->at++;
	t->n--;
	if (c == '+')
		return ' ';
	if (c != '%')
		return (unsigned char)c;
	if (t->n < 2)
		return -1;
	int high = hex_digit(t->at[0]), low = hex_digit(t->at[1]);
	t->at += 2;
	t->n -= 2;
	return high < 0 || low < 0 || (high | low) == 0 ? -1 : high << 4 | low;
}

static bool name_is(struct http_text raw, const char *name)
{
	for (; raw.n; name++) {
		if (decoded(&raw) != (unsigned char)*name)
			return false;
	}
	return !*name;
}

/* Decodes value into to: its length, -2 when it is malformed or too long. */
static int take_value(struct http_text value, char *to, size_t room)
{
	size_t n = 0;
	while (value.n) {
		int c = decoded(&value);
		if (c < 0 || n + 1 >= room) {
			to[0] = '\0';
			return -2;
		}
		to[n++] = (char)c;
	}
	to[n] = '\0';
	return (int)n;
}

int http_query_next(struct http_text *rest, const char *name, char *to, size_t room)
{
	struct http_text found, value;
	to[0] = '\0';
	while (next_pair(rest, &found, &value)) {
		if (name_is(found, name))
			return take_value(value, to, room);
	}
	return -1;
}

int http_query(const struct http_request *r, const char *name, char *to, size_t room)
{
	struct http_text rest = r->query, found, value;
	int n = http_query_next(&rest, name, to, room);
	while (n >= 0 && next_pair(&rest, &found, &value)) {
		if (name_is(found, name)) {
			to[0] = '\0';
			return -2;
		}
	}
	return n;
}

bool http_query_known(const struct http_request *r, const char *const *names, struct http_text *ret_first)
{
	struct http_text rest = r->query, name, value;
	while (next_pair(&rest, &name, &value)) {
		const char *const *known = names;
		while (known && *known && !name_is(name, *known))
			known++;
		if (!known || !*known) {
			*ret_first = name;
			return false;
		}
	}
	return true;
}
