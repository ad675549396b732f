/* RFC 1321. Sines are computed where others have tables: this runs when targets are discovered, not when they are scraped. */
#include "record/md5.h"

#include <math.h>
#include <string.h>

static uint32_t rotate(uint32_t x, unsigned n)
{
	return x << n | x >> (32 - n);
}

static void add_block(uint32_t state[4], const uint8_t *block)
{
	static const unsigned turns[4][4] = { { 7, 12, 17, 22 }, { 5, 9, 14, 20 }, { 4, 11, 16, 23 }, { 6, 10, 15, 21 } };
	static const unsigned first[4] = { 0, 1, 5, 0 }, step[4] = { 1, 5, 3, 7 };
	uint32_t a = state[0], b = state[1], c = state[2], d = state[3];
	for (unsigned i = 0; i < 64; i++) {
		unsigned round = i / 16;
		uint32_t mixed = round == 0 ? (b & c) | (~b & d) : round == 1 ? (d & b) | (~d & c) : round == 2 ? b ^ c ^ d : c ^ (b | ~d);
		const uint8_t *at = block + 4 * ((first[round] + step[round] * i) % 16);
		uint32_t word = (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
		uint32_t sine = (uint32_t)floor(fabs(sin(i + 1.0)) * 4294967296.0);
		uint32_t next = b + rotate(a + mixed + word + sine, turns[round][i % 4]);
		a = d;
		d = c;
		c = b;
		b = next;
	}
	state[0] += a;
	state[1] += b;
	state[2] += c;
	state[3] += d;
}

uint64_t md5_tail(const void *bytes, size_t n)
{
	uint32_t state[4] = { 0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476 };
	uint8_t last[128] = { 0 };
	const uint8_t *at = bytes;
	size_t left = n;
	for (; left >= 64; left -= 64, at += 64)
		add_block(state, at);
	if (left)
		memcpy(last, at, left);
	last[left] = 0x80;
	size_t end = left < 56 ? 64 : 128;
	for (unsigned i = 0; i < 8; i++)
		last[end - 8 + i] = (uint8_t)((uint64_t)n * 8 >> 8 * i);
	for (size_t i = 0; i < end; i += 64)
		add_block(state, last + i);
	return (uint64_t)__builtin_bswap32(state[2]) << 32 | __builtin_bswap32(state[3]);
}
