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
#define COPIED_MAX 64

/* An offset of a builder: the number of the part in the upper bits. */
#define PART_BITS 29
#define PART_STRINGS_MAX ((size_t)1 << PART_BITS)
#define PART_OFFSET (((uint32_t)1 << PART_BITS) - 1)

struct header {
	char magic[8];
	uint64_t n, n_frames, strings_bytes;
};

_Static_assert((uint64_t)ANSWERS_PARTS_MAX << PART_BITS <= (uint64_t)1 << 32, "part and offset fit into 32 bits");
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

void answers_begin_part(struct answers_builder *b, size_t number)
{
	memset(b, 0, sizeof(*b));
	b->part = (uint32_t)number << PART_BITS;
	buf_init(&b->strings, PART_STRINGS_MAX);
}

void answers_begin(struct answers_builder *b)
{
	answers_begin_part(b, 0);
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

/* A text that is not kept yet stands at the end of the buf, or will. */
static uint32_t find_string(const struct answers_builder *b, const char *text, size_t length, uint64_t hash)
{
	struct sought sought = { &b->strings, text, length };
	uint32_t found = index_find(&b->index, hash, same, &sought);
	return found == INDEX_NONE ? INDEX_NONE : b->part | found;
}

uint32_t answers_string(struct answers_builder *b, const char *text, size_t length)
{
	length = length ? strnlen(text, length) : 0;
	if (length == 0)
		return 0;
	uint64_t hash = hash_bytes(text, length);
	uint32_t found = find_string(b, text, length, hash);
	if (found != INDEX_NONE)
		return found;
	size_t start = answers_string_begin(b);
	if (!index_reserve(&b->index) || !buf_reserve(&b->strings, length + 1))
		return UINT32_MAX;
	buf_add(&b->strings, text, length);
	buf_addc(&b->strings, '\0');
	index_insert(&b->index, hash, (uint32_t)start);
	return b->part | (uint32_t)start;
}

size_t answers_string_begin(struct answers_builder *b)
{
	if (b->strings.len == 0)
		buf_addc(&b->strings, '\0');
	return b->strings.len;
}

uint32_t answers_string_end(struct answers_builder *b, size_t start)
{
	size_t length = b->strings.len - start;
	if (b->strings.failed || !index_reserve(&b->index) || !buf_reserve(&b->strings, 1))
		return UINT32_MAX;
	if (length == 0)
		return 0;
	const char *text = b->strings.data + start;
	uint64_t hash = hash_bytes(text, length);
	uint32_t found = find_string(b, text, length, hash);
	if (found != INDEX_NONE) {
		buf_cut(&b->strings, start);
		return found;
	}
	buf_addc(&b->strings, '\0');
	index_insert(&b->index, hash, (uint32_t)start);
	return b->part | (uint32_t)start;
}

const char *answers_string_text(const struct answers_builder *b, uint32_t offset)
{
	return b->strings.data + (offset & PART_OFFSET);
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

int answers_copy(struct answers_builder *b, const struct answers *a, size_t i)
{
	struct answer_frame frames[COPIED_MAX];
	uint32_t first = a->first[i], n = a->first[i + 1] - first;
	if (n > COPIED_MAX)
		return 0;
	for (uint32_t k = 0; k < n; k++) {
		const struct answer_frame *f = &a->frames[first + k];
		const char *function = a->strings + f->function, *system_name = a->strings + f->system_name, *file = a->strings + f->file;
		frames[k] = *f;
		frames[k].function = answers_string(b, function, strlen(function));
		frames[k].system_name = answers_string(b, system_name, strlen(system_name));
		frames[k].file = answers_string(b, file, strlen(file));
		if (frames[k].function == UINT32_MAX || frames[k].system_name == UINT32_MAX || frames[k].file == UINT32_MAX)
			return E_NOMEM;
	}
	return answers_add(b, a->addresses[i], (enum answer_quality)a->quality[i], frames, n, NULL);
}

/* Where the strings of each part will stand; those of the first are where they say they are. */
static size_t place_strings(const struct answers_builder *const *parts, size_t n, uint32_t *bases)
{
	size_t bytes = 0;
	for (size_t i = 0; i < n; i++) {
		bases[i] = (uint32_t)bytes;
		bytes += parts[i]->strings.len;
	}
	return bytes ? bytes : 1;
}

static uint32_t placed(uint32_t offset, const uint32_t *bases)
{
	return bases[offset >> PART_BITS] + (offset & PART_OFFSET);
}

static void write_frames(const struct answers_builder *b, const uint32_t *bases, struct answer_frame *ret)
{
	for (size_t i = 0; i < b->n_frames; i++) {
		ret[i] = b->frames[i];
		ret[i].function = placed(ret[i].function, bases);
		ret[i].system_name = placed(ret[i].system_name, bases);
		ret[i].file = placed(ret[i].file, bases);
	}
}

int answers_write(const struct answers_builder *const *parts, size_t n, struct buf *ret, struct error *err)
{
	uint32_t bases[ANSWERS_PARTS_MAX] = { 0 };
	struct header h = { .magic = MAGIC, .strings_bytes = place_strings(parts, n, bases) };
	bool failed = false;
	for (size_t i = 0; i < n; i++) {
		h.n += parts[i]->n;
		h.n_frames += parts[i]->n_frames;
		failed |= parts[i]->strings.failed;
	}
	if (h.n > ADDRESSES_MAX || h.n_frames > FRAMES_MAX || h.strings_bytes > STRINGS_MAX)
		return error_set(err, E_LIMIT, "the names take more than 1 GiB: damaged");
	struct layout l = lay_out(h.n, h.n_frames, h.strings_bytes);
	if (failed || !buf_reserve(ret, l.end))
		return error_nomem(err, "names");
	char *block = ret->data;
	uint64_t *addresses = (uint64_t *)(void *)(block + l.addresses);
	uint32_t *first = (uint32_t *)(void *)(block + l.first);
	struct answer_frame *frames = (struct answer_frame *)(void *)(block + l.frames);
	size_t at = 0, n_frames = 0;
	memcpy(block, &h, sizeof(h));
	for (size_t i = 0; i < n; i++) {
		const struct answers_builder *b = parts[i];
		if (b->n) {
			memcpy(addresses + at, b->addresses, b->n * sizeof(*addresses));
			memcpy(block + l.quality + at, b->quality, b->n);
		}
		for (size_t k = 0; k < b->n; k++)
			first[at + k] = b->first[k] + (uint32_t)n_frames;
		write_frames(b, bases, frames + n_frames);
		if (b->strings.len)
			memcpy(block + l.strings + bases[i], b->strings.data, b->strings.len);
		at += b->n;
		n_frames += b->n_frames;
	}
	first[at] = (uint32_t)n_frames;
	memset(block + l.quality + at, 0, l.frames - (l.quality + at));
	/* For who has no strings at all; and what is behind every buf. */
	block[l.strings] = '\0';
	block[l.end] = '\0';
	ret->len = l.end;
	return 0;
}
