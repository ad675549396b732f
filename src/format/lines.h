/*
 * Lines of a text profile, read in blocks. A line is valid until the next call and may be of any
 * length up to a maximum. Private to src/format.
 */
#ifndef FORMAT_LINES_H
#define FORMAT_LINES_H

#include <string.h>

#include "base/file.h"

struct lines;

/* Who reads blocks of lines in place of lines.c (ahead.h); the beginning of something larger. */
struct lines_feed {
	int (*next)(struct lines *l, struct error *err);    /* the next block becomes l's data */
	void (*finish)(struct lines *l);                    /* stops and frees it; l->feed is NULL then */
};

struct lines {
	struct stream *in;
	struct lines_feed *feed;    /* or NULL */
	char *data;
	size_t at, end, capacity;
	size_t line_max;            /* bytes of one line */
	uint64_t left;              /* bytes that may still be read */
	uint64_t number;            /* of the line last returned, from 1 */
	bool ended;                 /* the stream has no more */
	bool whole;                 /* the line last returned ended in a newline */
};

int lines_init(struct lines *l, struct stream *in, size_t line_max, uint64_t input_max,
               struct error *err);
void lines_finish(struct lines *l);

/*
 * 1: a line, without its newline and one carriage return before that; 0: the end. E_LIMIT when the
 * line or the input is too long.
 */
int lines_next(struct lines *l, const char **ret_line, size_t *ret_n, struct error *err);

/* "NAME: line N: text": what is wrong with the line last returned. */
int lines_error(const struct lines *l, struct error *err, int code, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* The input is larger than its limit. */
int lines_too_many(const struct lines *l, struct error *err);

/*
 * Up to 40 bytes of a line for an error message: control and non-ASCII bytes shown as '?'. Returns
 * to.
 */
#define LINES_QUOTE 48
const char *lines_quote(char to[LINES_QUOTE], const char *text, size_t n);

/* A decimal number at *at, which moves behind it; false when there is none or it passes 2^64 - 1. */
bool lines_number(const char **at, const char *end, uint64_t *ret_value);
/* A hexadecimal number of at most 64 bits, with or without 0x. */
bool lines_hex(const char **at, const char *end, uint64_t *ret_value);

static inline bool lines_starts(const char *line, size_t n, const char *with, size_t with_n)
{
	return n >= with_n && memcmp(line, with, with_n) == 0;
}

#endif
