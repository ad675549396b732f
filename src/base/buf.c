/*
 * The data keeps one byte more than max for the NUL behind it, so a full buffer is
 * still a C string.
 */
#include "base/buf.h"

#include "base/memory.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void buf_init(struct buf *b, size_t max)
{
	*b = (struct buf){ .max = max < SIZE_MAX ? max : SIZE_MAX - 1 };
}

void buf_finish(struct buf *b)
{
	if (!b)
		return;
	free(b->data);
	*b = (struct buf){ .max = b->max };
}

void buf_reset(struct buf *b)
{
	b->len = 0;
	b->failed = false;
	if (b->data)
		b->data[0] = '\0';
}

bool buf_grow(struct buf *b, size_t n)
{
	if (b->failed)
		return false;
	if (b->len > b->max || n > b->max - b->len ||
	    !memory_grow((void **)&b->data, &b->capacity, b->len + n + 1, 1, b->max + 1)) {
		b->failed = true;
		return false;
	}
	b->data[b->len] = '\0';
	return true;
}

void buf_add(struct buf *b, const void *bytes, size_t n)
{
	if (!buf_reserve(b, n))
		return;
	if (n)
		memcpy(b->data + b->len, bytes, n);
	b->len += n;
	b->data[b->len] = '\0';
}

void buf_adds(struct buf *b, const char *text)
{
	buf_add(b, text, strlen(text));
}

void buf_addc(struct buf *b, char c)
{
	if (!buf_reserve(b, 1))
		return;
	b->data[b->len++] = c;
	b->data[b->len] = '\0';
}

void buf_cut(struct buf *b, size_t len)
{
	if (len >= b->len)
		return;
	b->len = len;
	b->data[len] = '\0';
}

/* Once into the room there is; when that was too little, its length is known for the second try. */
void buf_printf(struct buf *b, const char *format, ...)
{
	if (!buf_reserve(b, 0))
		return;
	size_t room = b->capacity - b->len;
	va_list args;
	va_start(args, format);
	int n = vsnprintf(b->data + b->len, room, format, args);
	va_end(args);
	if (n >= 0 && (size_t)n >= room) {
		b->data[b->len] = '\0';
		if (!buf_reserve(b, (size_t)n))
			return;
		va_start(args, format);
		n = vsnprintf(b->data + b->len, (size_t)n + 1, format, args);
		va_end(args);
	}
	if (n < 0) {
		b->data[b->len] = '\0';
		b->failed = true;
		return;
	}
	b->len += (size_t)n;
}
