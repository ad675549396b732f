/*
 * The builder grows five arrays, the block is those arrays one behind the other, and reading is pointing into it. What is
 * checked when a block is opened is exactly what readers rely on: addresses ascend, first[] ascends from 0 to the number of
 * frames, every offset lies in the strings, and the strings end in NUL. Whether the names are true nobody can check.
 */
#include "symbol/answers.h"

#include <stdlib.h>

#define MAGIC "hgansw\n\1"              /* the last byte is the version of the layout */
#define ADDRESSES_MAX ((size_t)1 << 28)
#define FRAMES_MAX ((size_t)1 << 30)
#define STRINGS_MAX ((size_t)1 << 30)

struct header {
	char magic[8];
	uint64_t n, n_frames, strings_bytes;
};

_Static_assert(sizeof(struct header) == 32 && sizeof(struct answer_frame) == 24, "blocks have no holes");

/* Where the parts lie, in bytes from the block's beginning. Numbers up to the maxima can't overflow. */
struct layout {
	size_t addresses, first, quality, frames, strings, end;
};

static struct layout lay_out(size_t n, size_t n_frames, size_t strings_bytes)
{
	struct layout l;
	l.addresses = sizeof(struct header);
	l.first = l.addresses + n * sizeof(uint64_t);
	l.quality = l.first + (n + 1) * sizeof(uint32_t);
	l.frames = (l.quality + n + 7) & ~(size_t)7;
	l.strings = l.frames + n_frames * sizeof(struct answer_frame);
	l.end = l.strings + strings_bytes;
	return l;
}

/* --- reading --- */

static bool ascending(const uint64_t *addresses, size_t n)
{
	bool good = true;
	for (size_t i = 1; i < n; i++)
		good &= addresses[i - 1] < addresses[i];
	return good;
}

static bool firsts_good(const uint32_t *first, size_t n, size_t n_frames)
{
	bool good = first[0] == 0 && first[n] == n_frames;
	for (size_t i = 0; i < n; i++)
		good &= first[i] <= first[i + 1];
	return good;
}

static bool frames_good(const struct answer_frame *f, size_t n, size_t strings_bytes)
{
	uint32_t most = 0;
	for (size_t i = 0; i < n; i++) {
		uint32_t a = f[i].function > f[i].system_name ? f[i].function : f[i].system_name;
		uint32_t b = f[i].file > a ? f[i].file : a;
		most = b > most ? b : most;
	}
	return most < strings_bytes;
}

static bool qualities_good(const uint8_t *quality, size_t n)
{
	bool good = true;
	for (size_t i = 0; i < n; i++)
		good &= quality[i] <= ANSWER_DEBUG;
	return good;
}

int answers_open(struct answers *a, const void *bytes, size_t n, struct error *err)
{
	static const char damaged[] = "the block of names is damaged";
	const char *block = bytes;
	struct header h;
	memset(a, 0, sizeof(*a));
	if (n < sizeof(h) || (uintptr_t)bytes % 8)
		return error_set(err, E_FORMAT, "%s: it is too short", damaged);
	memcpy(&h, block, sizeof(h));
	if (memcmp(h.magic, MAGIC, sizeof(h.magic)) || h.n > ADDRESSES_MAX || h.n_frames > FRAMES_MAX ||
	    h.strings_bytes > STRINGS_MAX || h.strings_bytes == 0)
		return error_set(err, E_FORMAT, "%s: its header makes no sense", damaged);
	struct layout l = lay_out(h.n, h.n_frames, h.strings_bytes);
	if (l.end != n)
		return error_set(err, E_FORMAT, "%s: it has %zu bytes instead of %zu", damaged, n, l.end);
	struct answers got = {
		.addresses = (const uint64_t *)(const void *)(block + l.addresses),
		.first = (const uint32_t *)(const void *)(block + l.first),
		.quality = (const uint8_t *)block + l.quality,
		.frames = (const struct answer_frame *)(const void *)(block + l.frames),
		.strings = block + l.strings,
		.n = h.n, .n_frames = h.n_frames, .strings_bytes = h.strings_bytes,
	};
	if (!ascending(got.addresses, got.n) || !firsts_good(got.first, got.n, got.n_frames) ||
	    !qualities_good(got.quality, got.n) || !frames_good(got.frames, got.n_frames, got.strings_bytes) ||
	    got.strings[0] != '\0' || got.strings[got.strings_bytes - 1] != '\0')
		return error_set(err, E_FORMAT, "%s: something in it points outside", damaged);
	*a = got;
	return 0;
}

size_t answers_find(const struct answers *a, uint64_t address)
{
	size_t from = lower_bound_u64(a->addresses, a->n, address);
	return from < a->n && a->addresses[from] == address ? from : SIZE_MAX;
}

/* --- building --- */

void answers_begin(struct answers_builder *b)
{
	memset(b, 0, sizeof(*b));
	buf_init(&b->strings, STRINGS_MAX);
}

void answers_end(struct answers_builder *b)
{
	if (!b)
		return;
	free(b->addresses);
	free(b->first);
	free(b->quality);
	free(b->frames);
	buf_finish(&b->strings);
	index_finish(&b->index);
	answers_begin(b);
}

struct sought {
	const struct buf *strings;
	const char *text;
	size_t length;
};

static bool same(const void *context, uint32_t item)
{
	const struct sought *s = context;
	return s->length < s->strings->len - item && s->strings->data[item + s->length] == '\0' &&
	       memcmp(s->strings->data + item, s->text, s->length) == 0;
}

uint32_t answers_string(struct answers_builder *b, const char *text, size_t length)
{
	length = length ? strnlen(text, length) : 0;
	if (length == 0)
		return 0;
	struct sought sought = { &b->strings, text, length };
	uint64_t hash = hash_bytes(text, length);
	uint32_t found = index_find(&b->index, hash, same, &sought);
	if (found != INDEX_NONE)
		return found;
	if (b->strings.len == 0)
		buf_addc(&b->strings, '\0');
	if (!index_reserve(&b->index) || !buf_reserve(&b->strings, length + 1))
		return UINT32_MAX;
	found = (uint32_t)b->strings.len;
	buf_add(&b->strings, text, length);
	buf_addc(&b->strings, '\0');
	index_insert(&b->index, hash, found);
	return found;
}

int answers_add(struct answers_builder *b, uint64_t address, enum answer_quality quality,
                const struct answer_frame *frames, size_t n, struct error *err)
{
	if (n > FRAMES_MAX - b->n_frames ||
	    !memory_grow((void **)&b->addresses, &b->addresses_capacity, b->n + 1, sizeof(*b->addresses), ADDRESSES_MAX) ||
	    !memory_grow((void **)&b->first, &b->first_capacity, b->n + 1, sizeof(*b->first), ADDRESSES_MAX) ||
	    !memory_grow((void **)&b->quality, &b->quality_capacity, b->n + 1, sizeof(*b->quality), ADDRESSES_MAX) ||
	    !memory_grow((void **)&b->frames, &b->frames_capacity, b->n_frames + n, sizeof(*b->frames), FRAMES_MAX))
		return error_nomem(err, "names");
	b->addresses[b->n] = address;
	b->first[b->n] = (uint32_t)b->n_frames;
	b->quality[b->n] = (uint8_t)quality;
	if (n)
		memcpy(b->frames + b->n_frames, frames, n * sizeof(*frames));
	b->n_frames += n;
	b->n++;
	return 0;
}

/* buf_add() of nothing is fine with a NULL. */
int answers_write(const struct answers_builder *b, struct buf *ret, struct error *err)
{
	static const char none[8];
	size_t strings_bytes = b->strings.len ? b->strings.len : 1;
	struct header h = { MAGIC, b->n, b->n_frames, strings_bytes };
	struct layout l = lay_out(b->n, b->n_frames, strings_bytes);
	uint32_t last = (uint32_t)b->n_frames;
	if (b->strings.failed || !buf_reserve(ret, l.end))
		return error_nomem(err, "names");
	buf_add(ret, &h, sizeof(h));
	buf_add(ret, b->addresses, b->n * sizeof(*b->addresses));
	buf_add(ret, b->first, b->n * sizeof(*b->first));
	buf_add(ret, &last, sizeof(last));
	buf_add(ret, b->quality, b->n);
	buf_add(ret, none, l.frames - (l.quality + b->n));
	buf_add(ret, b->frames, b->n_frames * sizeof(*b->frames));
	buf_add(ret, b->strings.len ? b->strings.data : none, strings_bytes);
	return 0;
}
