/*
 * Protobuf's wire format, as much of it as profile.proto needs. Reading: a cursor over bytes that
 * hands out one field at a time and never looks past its end. Writing: exact sizes first, then
 * bytes into room that is known to suffice, so nested messages need no copy.
 *
 *   field = varint(number << 3 | wire), then by wire: a varint | 8 bytes | varint n and n bytes | 4 bytes
 */
#ifndef FORMAT_PROTO_H
#define FORMAT_PROTO_H

#include <endian.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define PROTO_VARINT_MAX 10     /* bytes of the longest varint */

enum proto_wire {
	PROTO_VARINT = 0,
	PROTO_FIXED64 = 1,
	PROTO_BYTES = 2,
	PROTO_GROUP_START = 3,
	PROTO_GROUP_END = 4,
	PROTO_FIXED32 = 5,
};

enum proto_status {
	PROTO_FIELD,            /* one field was read */
	PROTO_END,
	PROTO_CUT,              /* the bytes end inside a varint or a fixed number */
	PROTO_LONG_VARINT,      /* more than 64 bits */
	PROTO_PAST_END,         /* a length (field.value) that reaches past the end of the bytes */
	PROTO_NUMBER_ZERO,
	PROTO_GROUP,
	PROTO_BAD_WIRE,
};

/* Field numbers of profile.proto's Profile. */
enum pprof_field {
	PPROF_SAMPLE_TYPE = 1,
	PPROF_SAMPLE,
	PPROF_MAPPING,
	PPROF_LOCATION,
	PPROF_FUNCTION,
	PPROF_STRING_TABLE,
	PPROF_DROP_FRAMES,
	PPROF_KEEP_FRAMES,
	PPROF_TIME_NANOS,
	PPROF_DURATION_NANOS,
	PPROF_PERIOD_TYPE,
	PPROF_PERIOD,
	PPROF_COMMENT,
	PPROF_DEFAULT_SAMPLE_TYPE,
	PPROF_DOC_URL,
	PPROF_FIELDS,
};

struct proto_field {
	uint64_t number;
	enum proto_wire wire;
	uint64_t value;                 /* PROTO_VARINT, fixed; the length of PROTO_BYTES */
	const uint8_t *at;              /* its tag; of a fault: the byte that is wrong */
	const uint8_t *bytes, *end;     /* PROTO_BYTES */
};

struct proto_cursor {
	const uint8_t *at, *end;
};

__attribute__((noinline, unused)) static enum proto_status
proto_varint_slow(struct proto_cursor *c, uint64_t *ret_value)
{
	uint64_t value = 0;
	for (unsigned i = 0; i < PROTO_VARINT_MAX; i++) {
		if (c->at + i == c->end)
			return PROTO_CUT;
		uint8_t byte = c->at[i];
		value |= (uint64_t)(byte & 0x7f) << (7 * i);
		if (byte & 0x80)
			continue;
		if (i == PROTO_VARINT_MAX - 1 && byte > 1)
			return PROTO_LONG_VARINT;
		c->at += i + 1;
		*ret_value = value;
		return PROTO_FIELD;
	}
	return PROTO_LONG_VARINT;
}

/*
 * PROTO_FIELD, PROTO_CUT or PROTO_LONG_VARINT; the cursor stays at the varint when it is bad. Two to four bytes
 * are taken without a branch on their number, which in a stack of ids nobody can predict.
 */
__attribute__((always_inline)) static inline enum proto_status
proto_varint(struct proto_cursor *c, uint64_t *ret_value)
{
	const uint8_t *p = c->at;
	if (c->end - p < 4)
		return proto_varint_slow(c, ret_value);
	uint32_t x;
	memcpy(&x, p, sizeof x);
	x = le32toh(x);
	if (!(x & 0x80)) {
		c->at = p + 1;
		*ret_value = x & 0x7f;
		return PROTO_FIELD;
	}
	uint32_t ends = ~x & 0x80808080u;               /* the high bit of bytes that end a varint */
	if (!ends)
		return proto_varint_slow(c, ret_value);
	x &= ends ^ (ends - 1);                         /* nothing behind the first of them */
	*ret_value = (x & 0x7f) | (x >> 1 & 0x3f80) | (x >> 2 & 0x1fc000) | (x >> 3 & 0xfe00000);
	c->at = p + ((unsigned)__builtin_ctz(ends) + 1) / 8;
	return PROTO_FIELD;
}

static inline enum proto_status proto_fixed(struct proto_cursor *c, size_t n, uint64_t *ret_value)
{
	if ((size_t)(c->end - c->at) < n)
		return PROTO_CUT;
	uint64_t value = 0;
	for (size_t i = n; i > 0; i--)
		value = value << 8 | c->at[i - 1];
	c->at += n;
	*ret_value = value;
	return PROTO_FIELD;
}

/* The next field, or why there is none; after a fault the cursor is not to be used any more. */
static inline enum proto_status proto_next(struct proto_cursor *c, struct proto_field *ret)
{
	if (c->at == c->end)
		return PROTO_END;
	uint64_t tag;
	ret->at = c->at;
	enum proto_status status = proto_varint(c, &tag);
	if (status != PROTO_FIELD)
		return status;
	ret->number = tag >> 3;
	ret->wire = (enum proto_wire)(tag & 7);
	if (ret->number == 0)
		return PROTO_NUMBER_ZERO;
	switch (ret->wire) {
	case PROTO_VARINT:
		status = proto_varint(c, &ret->value);
		break;
	case PROTO_FIXED64:
		status = proto_fixed(c, 8, &ret->value);
		break;
	case PROTO_FIXED32:
		status = proto_fixed(c, 4, &ret->value);
		break;
	case PROTO_BYTES:
		status = proto_varint(c, &ret->value);
		if (status == PROTO_FIELD) {
			ret->bytes = c->at;
			if (ret->value > (uint64_t)(c->end - c->at))
				return PROTO_PAST_END;
			c->at += ret->value;
			ret->end = c->at;
		}
		break;
	case PROTO_GROUP_START:
	case PROTO_GROUP_END:
		return PROTO_GROUP;
	default:
		return PROTO_BAD_WIRE;
	}
	if (status != PROTO_FIELD)
		ret->at = c->at;
	return status;
}

/* --- writing; sizes are those of whole fields, tag included ---------------------------- */

/* Field numbers up to 15 have tags of one byte; profile.proto has no others. */
static inline size_t proto_varint_size(uint64_t value)
{
	unsigned bits = 63u - (unsigned)__builtin_clzll(value | 1);
	return (bits * 9 + 73) / 64;
}

/* Numbers and flags that are 0 are not written: 0 is what their absence means. */
static inline size_t proto_number_size(uint64_t value)
{
	return value ? 1 + proto_varint_size(value) : 0;
}

static inline size_t proto_bytes_size(size_t n)
{
	return 1 + proto_varint_size(n) + n;
}

static inline uint8_t *proto_put_varint(uint8_t *to, uint64_t value)
{
	while (value >= 0x80) {
		*to++ = (uint8_t)(value | 0x80);
		value >>= 7;
	}
	*to++ = (uint8_t)value;
	return to;
}

static inline uint8_t *proto_put_number(uint8_t *to, unsigned field, uint64_t value)
{
	if (value == 0)
		return to;
	*to++ = (uint8_t)(field << 3 | PROTO_VARINT);
	return proto_put_varint(to, value);
}

/* Tag and length of a message, a string or packed numbers of n bytes, which the caller puts behind it. */
static inline uint8_t *proto_put_head(uint8_t *to, unsigned field, size_t n)
{
	*to++ = (uint8_t)(field << 3 | PROTO_BYTES);
	return proto_put_varint(to, n);
}

#endif
