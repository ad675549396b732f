/*
 * One buffer: lines are handed out from its middle, the beginning of the next one is moved to
 * the front when a block has been used up, and the buffer grows only for a line longer than it.
 */
#include "format/lines.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK ((size_t)256 << 10)

int lines_init(struct lines *l, struct stream *in, size_t line_max, uint64_t input_max,
               struct error *err)
{
	*l = (struct lines){ .in = in, .line_max = line_max, .left = input_max };
	/*
	 * A file that is smaller needs no more; the size is only a hint, and one byte more finds
	 * the end.
	 */
	l->capacity = in->size_hint > 0 && in->size_hint < BLOCK ? (size_t)in->size_hint + 1 : BLOCK;
	l->data = malloc(l->capacity);
	if (!l->data)
		return error_nomem(err, "the lines of the input");
	return E_OK;
}

void lines_finish(struct lines *l)
{
	if (!l)
		return;
	if (l->feed)
		l->feed->finish(l);
	free(l->data);
	*l = (struct lines){ 0 };
}

int lines_error(const struct lines *l, struct error *err, int code, const char *format, ...)
{
	char text[400];
	va_list args;
	va_start(args, format);
	if (vsnprintf(text, sizeof(text), format, args) < 0)
		text[0] = '\0';
	va_end(args);
	return error_set(err, code, "%s: line %llu: %s", l->in->name, (unsigned long long)l->number,
	                 text);
}

const char *lines_quote(char to[LINES_QUOTE], const char *text, size_t n)
{
	size_t kept = n < 40 ? n : 40;
	for (size_t i = 0; i < kept; i++)
		to[i] = text[i] >= ' ' && text[i] <= '~' ? text[i] : '?';
	memcpy(to + kept, "...", 4);
	if (kept == n)
		to[kept] = '\0';
	return to;
}

static int grow(struct lines *l, struct error *err)
{
	if (l->capacity >= l->line_max) {
		l->number++;
		return lines_error(l, err, E_LIMIT, "longer than the limit of %zu bytes", l->line_max);
	}
	size_t capacity = l->capacity > l->line_max / 2 ? l->line_max : l->capacity * 2;
	char *data = realloc(l->data, capacity);
	if (!data)
		return error_nomem(err, "a long line");
	l->data = data;
	l->capacity = capacity;
	return E_OK;
}

int lines_too_many(const struct lines *l, struct error *err)
{
	return error_set(err, E_LIMIT, "%s: larger than the limit for input (after line %llu)",
	                 l->in->name, (unsigned long long)l->number);
}

/* Reads more behind what is left of the buffer. */
static int refill(struct lines *l, struct error *err)
{
	if (l->feed)
		return l->feed->next(l, err);
	if (l->at > 0) {
		memmove(l->data, l->data + l->at, l->end - l->at);
		l->end -= l->at;
		l->at = 0;
	}
	int rc = l->end == l->capacity ? grow(l, err) : E_OK;
	size_t n = 0;
	if (rc == E_OK)
		rc = stream_read(l->in, l->data + l->end, l->capacity - l->end, &n, err);
	if (rc)
		return rc;
	if (n > l->left)
		return lines_too_many(l, err);
	l->left -= n;
	l->end += n;
	l->ended = n == 0;
	return E_OK;
}

/* The first newline of what the buffer holds, of which the first seen bytes have none. */
static const char *find_newline(const struct lines *l, size_t seen)
{
	size_t n = l->end - l->at;
	return n > seen ? memchr(l->data + l->at + seen, '\n', n - seen) : NULL;
}

int lines_next(struct lines *l, const char **ret_line, size_t *ret_n, struct error *err)
{
	size_t seen = 0;
	const char *newline;
	while (!(newline = find_newline(l, seen)) && !l->ended) {
		seen = l->end - l->at;
		int rc = refill(l, err);
		if (rc)
			return rc;
	}
	if (l->at == l->end)
		return 0;
	const char *line = l->data + l->at;
	size_t n = newline ? (size_t)(newline - line) : l->end - l->at;
	l->whole = newline != NULL;
	l->at += n + l->whole;
	l->number++;
	if (l->whole && n > 0 && line[n - 1] == '\r')
		n--;
	*ret_line = line;
	*ret_n = n;
	return 1;
}

bool lines_number(const char **at, const char *end, uint64_t *ret_value)
{
	const char *p = *at;
	uint64_t value = 0;
	for (; p < end && (unsigned char)(*p - '0') < 10; p++) {
		uint64_t digit = (uint64_t)(*p - '0');
		/* 18 digits always fit. */
		if (p - *at < 18)
			value = value * 10 + digit;
		else if (__builtin_mul_overflow(value, (uint64_t)10, &value) ||
		         __builtin_add_overflow(value, digit, &value))
			return false;
	}
	if (p == *at)
		return false;
	*at = p;
	*ret_value = value;
	return true;
}

static unsigned hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return (unsigned)(c - '0');
	unsigned letter = (unsigned)((c | 0x20) - 'a');
	return letter < 6 ? letter + 10 : 99;
}

bool lines_hex(const char **at, const char *end, uint64_t *ret_value)
{
	const char *p = *at;
	if (end - p > 2 && p[0] == '0' && (p[1] | 0x20) == 'x')
		p += 2;
	const char *first = p;
	uint64_t value = 0;
	for (unsigned digit; p < end && (digit = hex_digit(*p)) < 16; p++) {
		if (value >> 60)
			return false;
		value = value << 4 | digit;
	}
	if (p == first)
		return false;
	*at = p;
	*ret_value = value;
	return true;
}
