/* Numbers in as few bytes as they take: seven bits a byte, the lowest first, the top bit of a byte: more follow. */
#ifndef STORE_VARINT_H
#define STORE_VARINT_H

#include <stdint.h>
#include <string.h>

#include "base/buf.h"

#define VARINT_MAX 10           /* bytes */

static inline uint64_t varint_zigzag(int64_t v)
{
	return (uint64_t)v << 1 ^ (uint64_t)(v >> 63);
}

static inline int64_t varint_unzigzag(uint64_t u)
{
	return (int64_t)(u >> 1) ^ -(int64_t)(u & 1);
}

/* At to there is room for VARINT_MAX. */
static inline uint8_t *varint_write(uint8_t *to, uint64_t v)
{
	for (; v >= 0x80; v >>= 7)
		*to++ = (uint8_t)(v | 0x80);
	*to++ = (uint8_t)v;
	return to;
}

static inline void varint_add(struct buf *b, uint64_t v)
{
	if (!buf_reserve(b, VARINT_MAX))
		return;
	uint8_t *end = varint_write((uint8_t *)b->data + b->len, v);
	b->len = (size_t)(end - (uint8_t *)b->data);
	*end = '\0';
}

static inline void varint_add_signed(struct buf *b, int64_t v)
{
	varint_add(b, varint_zigzag(v));
}

static inline void varint_add_double(struct buf *b, double v)
{
	buf_add(b, &v, sizeof v);
}

/* What is read, up to end; failed stays once it is set, and then every number is 0. */
struct varint_reader {
	const uint8_t *at, *end;
	bool failed;
};

static inline uint64_t varint_slow(struct varint_reader *r)
{
	uint64_t v = 0;
	for (unsigned shift = 0; r->at < r->end && shift < 64; shift += 7) {
		uint8_t byte = *r->at++;
		v |= (uint64_t)(byte & 0x7f) << shift;
		if (byte < 0x80) {
			if (shift == 63 && byte > 1)
				break;
			return v;
		}
	}
	r->failed = true;
	r->at = r->end;
	return 0;
}

/* One of up to eight bytes, which are there, at once: the bits between the top bits are pushed together in pairs, fours, and eight. */
static inline uint64_t varint_word(struct varint_reader *r)
{
	uint64_t v;
	memcpy(&v, r->at, sizeof v);
	uint64_t ends = ~v & 0x8080808080808080u;
	if (!ends)
		return varint_slow(r);
	r->at += (unsigned)__builtin_ctzll(ends) / 8 + 1;
	v &= ends ^ (ends - 1);
	v = (v & 0x007f007f007f007fu) | (v & 0x7f007f007f007f00u) >> 1;
	v = (v & 0x00003fff00003fffu) | (v & 0x3fff00003fff0000u) >> 2;
	return (v & 0x000000000fffffffu) | (v & 0x0fffffff00000000u) >> 4;
}

static inline uint64_t varint_next(struct varint_reader *r)
{
	if (r->at < r->end && *r->at < 0x80)
		return *r->at++;
	if (r->end - r->at >= 2 && r->at[1] < 0x80) {
		uint64_t v = (uint64_t)(r->at[0] & 0x7f) | (uint64_t)r->at[1] << 7;
		r->at += 2;
		return v;
	}
	return r->end - r->at >= 8 ? varint_word(r) : varint_slow(r);
}

/* Past n of them: a byte without the top bit ends one. */
static inline void varint_skip(struct varint_reader *r, size_t n)
{
	uint64_t word;
	while (n >= 8 && r->end - r->at >= 8) {
		memcpy(&word, r->at, sizeof word);
		/* How many of these eight bytes end one: a product adds them up. */
		n -= (size_t)(((~word >> 7 & 0x0101010101010101u) * 0x0101010101010101u) >> 56);
		r->at += 8;
	}
	for (; n > 0 && r->at < r->end; r->at++)
		n -= *r->at < 0x80;
	r->failed = r->failed || n > 0;
}

static inline int64_t varint_next_signed(struct varint_reader *r)
{
	return varint_unzigzag(varint_next(r));
}

static inline double varint_next_double(struct varint_reader *r)
{
	double v = 0;
	if ((size_t)(r->end - r->at) < sizeof v) {
		r->failed = true;
		r->at = r->end;
		return 0;
	}
	memcpy(&v, r->at, sizeof v);
	r->at += sizeof v;
	return v;
}

/* The next n bytes, or NULL. */
static inline const uint8_t *varint_bytes(struct varint_reader *r, uint64_t n)
{
	if (r->failed || n > (uint64_t)(r->end - r->at)) {
		r->failed = true;
		r->at = r->end;
		return NULL;
	}
	const uint8_t *bytes = r->at;
	r->at += n;
	return bytes;
}

#endif
