/*
 * Growable bytes, born with a maximum. Failure is sticky: writers append without
 * checking and ask once at the end (buf.failed). The data is always followed by a
 * NUL that len does not count (once something was reserved or added).
 */
#ifndef BASE_BUF_H
#define BASE_BUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf {
	char *data;
	size_t len;
	size_t capacity;
	size_t max;     /* bytes; going past it sets failed */
	bool failed;
};

#define BUF_MAX_DEFAULT ((size_t)4 << 30)

void buf_init(struct buf *b, size_t max);
void buf_finish(struct buf *b);                   /* NULL is fine */
void buf_reset(struct buf *b);                    /* len = 0, memory kept, failed cleared */

void buf_cut(struct buf *b, size_t len);          /* takes back what was added behind len; failed stays */

bool buf_grow(struct buf *b, size_t n);            /* buf_reserve when there may be no room yet */
/* Room for n more bytes at data + len; false (and failed) past the maximum. */
static inline bool buf_reserve(struct buf *b, size_t n)
{
	return (!b->failed && n < b->capacity && b->len < b->capacity - n) || buf_grow(b, n);
}
void buf_add(struct buf *b, const void *bytes, size_t n);
void buf_adds(struct buf *b, const char *text);
void buf_addc(struct buf *b, char c);
void buf_printf(struct buf *b, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
