/*
 * A deflate encoder made for speed: one hash table, the newest match wins, the codes that the format has fixed (RFC 1951, 3.2.6). The
 * conversion of a dump runs beside jemalloc's writing of it, and has to keep up: zlib's fastest level takes as long as all the rest
 * of the conversion four times over, for a tenth less bytes. Blocks of input are encoded as they fill the window, so nothing is held
 * but 64 KiB of it.
 */
#include "format/gz_sink.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#define WINDOW ((size_t)32 << 10)       /* how far back a match may lie */
#define CHUNK ((size_t)32 << 10)        /* encoded at once */
#define SLACK 16                        /* bytes behind the input that are read, and written behind the output */
#define HASH_BITS 14
#define MATCH_MIN 4
#define MATCH_MAX 258
/* A literal takes 9 bits at most, a match less than the bytes it stands for; header, end of block and trailer. */
#define OUT_MAX (CHUNK + CHUNK / 8 + 64)

struct code {
	uint32_t bits;                  /* the first bit is the lowest */
	uint32_t n;
};

struct gz_sink {
	pprof_sink *sink;
	void *context;
	struct error failure;
	uint32_t crc, total;            /* of all input, as gzip's trailer has them */
	bool begun;
	uint64_t bits;                  /* not yet written, the first is the lowest */
	unsigned n_bits;
	size_t history, end;            /* window[0 .. history) is encoded, [history .. end) is not */
	uint32_t at;                    /* position in the whole input of window[0], modulo 2^32 */
	uint32_t last[1 << HASH_BITS];  /* by hash: the newest position + 1 */
	struct code literals[256], lengths[MATCH_MAX + 1];
	struct code near[256], far[256];    /* distances: to 256, and by (distance - 1) / 128 */
	uint8_t window[WINDOW + CHUNK + SLACK];
	uint8_t out[OUT_MAX + SLACK];
	size_t out_n;
};

/* --- the fixed codes ------------------------------------------------------- */

static uint32_t reversed(uint32_t bits, unsigned n)
{
	uint32_t r = 0;
	for (unsigned i = 0; i < n; i++)
		r |= (bits >> i & 1) << (n - 1 - i);
	return r;
}

/* Of the literals and lengths: 0-143, 144-255, 256-279, 280-287. */
static struct code symbol_code(unsigned symbol)
{
	if (symbol < 144)
		return (struct code){ reversed(0x30 + symbol, 8), 8 };
	if (symbol < 256)
		return (struct code){ reversed(0x190 + symbol - 144, 9), 9 };
	if (symbol < 280)
		return (struct code){ reversed(symbol - 256, 7), 7 };
	return (struct code){ reversed(0xc0 + symbol - 280, 8), 8 };
}

/* Lengths 3 to 10 have a symbol each; then four symbols share each number of extra bits; 258 has its own. */
static struct code length_code(unsigned length)
{
	if (length == MATCH_MAX)
		return symbol_code(285);
	unsigned from = length - 3;
	if (from < 8)
		return symbol_code(257 + from);
	unsigned extra = 29 - (unsigned)__builtin_clz(from);
	struct code c = symbol_code(257 + 4 * (extra + 1) + (from >> extra & 3));
	c.bits |= (from & ((1u << extra) - 1)) << c.n;
	c.n += extra;
	return c;
}

/* The symbol of a distance, five bits, without its extra ones. */
static unsigned distance_symbol(unsigned distance, unsigned *ret_extra)
{
	unsigned from = distance - 1;
	*ret_extra = from < 4 ? 0 : 30 - (unsigned)__builtin_clz(from);
	return from < 4 ? from : 2 * (*ret_extra + 1) + (from >> *ret_extra & 1);
}

static void make_codes(struct gz_sink *g)
{
	unsigned extra;
	for (unsigned i = 0; i < 256; i++)
		g->literals[i] = symbol_code(i);
	for (unsigned i = 3; i <= MATCH_MAX; i++)
		g->lengths[i] = length_code(i);
	for (unsigned i = 0; i < 256; i++) {
		unsigned symbol = distance_symbol(i + 1, &extra);
		g->near[i] = (struct code){ reversed(symbol, 5), extra };
		symbol = distance_symbol(i * 128 + 1, &extra);
		g->far[i] = (struct code){ reversed(symbol, 5), extra };
	}
}

/* --- bits -------------------------------------------------------------------- */

static inline void put(struct gz_sink *g, uint64_t bits, unsigned n)
{
	g->bits |= bits << g->n_bits;
	g->n_bits += n;
}

/* Leaves at most 7 bits; so up to 57 more may be put. */
static inline void write_bits(struct gz_sink *g)
{
	uint64_t bits = g->bits;
#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
	bits = __builtin_bswap64(bits);
#endif
	memcpy(g->out + g->out_n, &bits, sizeof bits);
	g->out_n += g->n_bits / 8;
	g->bits >>= g->n_bits & ~7u;
	g->n_bits &= 7;
}

static inline void put_match(struct gz_sink *g, size_t length, uint32_t distance)
{
	struct code l = g->lengths[length];
	struct code d = distance <= 256 ? g->near[distance - 1] : g->far[(distance - 1) / 128];
	put(g, l.bits, l.n);
	put(g, d.bits | (uint64_t)((distance - 1) & ((1u << d.n) - 1)) << 5, 5 + d.n);
	write_bits(g);
}

/* --- a chunk ----------------------------------------------------------------- */

static inline uint32_t load32(const uint8_t *p)
{
	uint32_t x;
	memcpy(&x, p, sizeof x);
	return x;
}

static inline uint32_t *slot(struct gz_sink *g, uint32_t word)
{
	return &g->last[word * 2654435761u >> (32 - HASH_BITS)];
}

/* How many bytes of a and b are equal, at most n. */
static inline size_t match_length(const uint8_t *a, const uint8_t *b, size_t n)
{
	size_t i = 0;
	for (; i + 8 <= n; i += 8) {
		uint64_t x, y;
		memcpy(&x, a + i, sizeof x);
		memcpy(&y, b + i, sizeof y);
		if (x != y)
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
			return i + (size_t)__builtin_ctzll(x ^ y) / 8;
#else
			return i + (size_t)__builtin_clzll(x ^ y) / 8;
#endif
	}
	while (i < n && a[i] == b[i])
		i++;
	return i;
}

static void encode(struct gz_sink *g)
{
	const uint8_t *window = g->window;
	size_t i = g->history, end = g->end;
	put(g, 1 << 1, 3);              /* not the last block; fixed codes */
	while (i < end) {
		if (end - i < MATCH_MIN) {
			put(g, g->literals[window[i]].bits, g->literals[window[i]].n);
			write_bits(g);
			i++;
			continue;
		}
		uint32_t word = load32(window + i), here = g->at + (uint32_t)i;
		uint32_t *newest = slot(g, word);
		uint32_t distance = here + 1 - *newest;
		*newest = here + 1;
		if (distance - 1 < WINDOW && distance <= i && load32(window + i - distance) == word) {
			size_t most = end - i < MATCH_MAX ? end - i : MATCH_MAX;
			size_t n = MATCH_MIN + match_length(window + i - distance + MATCH_MIN, window + i + MATCH_MIN,
			                                    most - MATCH_MIN);
			put_match(g, n, distance);
			/* Where the next match may begin is worth knowing, what lies in between is not. */
			if (i + n + MATCH_MIN <= end)
				*slot(g, load32(window + i + n - 1)) = here + (uint32_t)n;
			i += n;
			continue;
		}
		put(g, g->literals[window[i]].bits, g->literals[window[i]].n);
		write_bits(g);
		i++;
	}
	struct code stop = symbol_code(256);
	put(g, stop.bits, stop.n);
	write_bits(g);
}

static int hand_on(struct gz_sink *g, struct error *err)
{
	if (!g->failure.code && g->out_n > 0)
		g->failure.code = g->sink(g->context, g->out, g->out_n, &g->failure);
	g->out_n = 0;
	if (g->failure.code && err)
		*err = g->failure;
	return g->failure.code;
}

static int encode_chunk(struct gz_sink *g, struct error *err)
{
	static const uint8_t head[10] = { 0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 4, 255 };
	if (!g->begun)
		memcpy(g->out, head, g->out_n = sizeof head);
	g->begun = true;
	encode(g);
	g->crc = (uint32_t)crc32(g->crc, g->window + g->history, (uInt)(g->end - g->history));
	g->total += (uint32_t)(g->end - g->history);
	g->history = g->end;
	if (g->end > WINDOW) {
		size_t gone = g->end - WINDOW;
		memmove(g->window, g->window + gone, WINDOW);
		g->at += (uint32_t)gone;
		g->history = g->end = WINDOW;
	}
	return hand_on(g, err);
}

/* --- the stream --------------------------------------------------------------- */

struct gz_sink *gz_sink_new(pprof_sink *sink, void *context)
{
	struct gz_sink *g = calloc(1, sizeof(*g));
	if (!g)
		return NULL;
	g->sink = sink;
	g->context = context;
	make_codes(g);
	return g;
}

void gz_sink_free(struct gz_sink *g)
{
	free(g);
}

int gz_sink_add(struct gz_sink *g, const void *bytes, size_t n, struct error *err)
{
	const uint8_t *at = bytes;
	while (!g->failure.code && n > 0) {
		size_t room = CHUNK - (g->end - g->history), taken = n < room ? n : room;
		memcpy(g->window + g->end, at, taken);
		g->end += taken;
		at += taken;
		n -= taken;
		if (g->end - g->history == CHUNK)
			encode_chunk(g, err);
	}
	if (g->failure.code && err)
		*err = g->failure;
	return g->failure.code;
}

static void put_trailer(struct gz_sink *g, uint32_t value)
{
	for (unsigned i = 0; i < 4; i++)
		g->out[g->out_n++] = (uint8_t)(value >> 8 * i);
}

int gz_sink_end(struct gz_sink *g, struct error *err)
{
	int rc = encode_chunk(g, err);
	if (rc)
		return rc;
	/* An empty block, the last; then whole bytes. */
	struct code stop = symbol_code(256);
	put(g, 1 | 1 << 1, 3);
	put(g, stop.bits, stop.n);
	g->n_bits = (g->n_bits + 7) & ~7u;
	write_bits(g);
	put_trailer(g, g->crc);
	put_trailer(g, g->total);
	return hand_on(g, err);
}
