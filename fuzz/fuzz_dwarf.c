/*
 * Names for addresses from ELF files of any bytes: answers that can be opened, one for each address, whatever the debug information
 * says; no error but of memory and limits; and not more than a moment and some memory (libFuzzer's -timeout and -malloc_limit_mb watch).
 *
 * An input is an ELF file, and perhaps a second one behind it: whatever further file the first asks for (dwz's, .dwo, .dwp) it gets that
 * one. The last four bytes then say how long it is. Files lie right before a page that can't be touched, but for the room that readers
 * may look at.
 *
 * Bytes are changed inside of sections most of the time, so that they stay where the headers say.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "symbol/resolve.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t n, size_t most, unsigned seed);
/* Not there without libFuzzer, where nobody mutates. */
size_t LLVMFuzzerMutate(uint8_t *data, size_t n, size_t most) __attribute__((weak));

#define FILE_MAX ((size_t)1 << 20)
#define ADDRESSES 48
#define DECOMPRESSED ((uint64_t)8 << 20)

static uint8_t *ends_at;         /* of the room behind the file */

static void require(bool holds)
{
	if (!holds)
		abort();
}

static void reserve(void)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), room = FILE_MAX + ELF_IMAGE_SLACK;
	uint8_t *at = mmap(NULL, room + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	require(at != MAP_FAILED && mprotect(at + room, page, PROT_NONE) == 0);
	memset(at, 0xff, room);
	ends_at = at + room;
}

/* The first file of an input, and the second (0 bytes: there is none). */
static size_t split(const uint8_t *data, size_t n, size_t *ret_second)
{
	uint32_t second;
	*ret_second = 0;
	if (n < sizeof(second) || memcmp(data, "\177ELF", 4))
		return n;
	memcpy(&second, data + n - sizeof(second), sizeof(second));
	if (second < 64 || second > n - sizeof(second) || memcmp(data + n - sizeof(second) - second, "\177ELF", 4))
		return n;
	*ret_second = second;
	return n - sizeof(second) - second;
}

struct second_file {
	const uint8_t *bytes;
	size_t n, opened;
};

static int open_second(void *context, const struct file_request *r, char *ret_path, unsigned long size)
{
	struct second_file *s = context;
	require(r->of && r->build_id && strlen(r->build_id) < BUILD_ID_TEXT && (!r->name || strlen(r->name) < FILE_MAX));
	require(size > 8);
	if (s->n == 0 || s->opened++ > 8)
		return -1;
	int fd = memfd_create("second", MFD_CLOEXEC);
	require(fd >= 0 && write(fd, s->bytes, s->n) == (ssize_t)s->n);
	memcpy(ret_path, "second", 7);
	return fd;
}

/* Spread over the code; ascending. */
static size_t choose_addresses(const struct elf_file *f, uint64_t *ret)
{
	uint64_t first = 0, bytes = 16 * ADDRESSES;
	for (size_t i = f->n_segments; i-- > 0;)
		if (f->segments[i].executable) {
			first = f->segments[i].address;
			bytes = f->segments[i].memory_bytes;
		}
	uint64_t step = bytes / ADDRESSES + 1;
	ret[0] = first;
	size_t n = 1;
	for (; n < ADDRESSES && ret[n - 1] + step > ret[n - 1]; n++)
		ret[n] = ret[n - 1] + step;
	return n;
}

static void check(const struct buf *block, const uint64_t *addresses, size_t n)
{
	struct answers a;
	require(answers_open(&a, block->data, block->len, NULL) == 0 && a.n == n);
	for (size_t i = 0; i < n; i++) {
		require(a.addresses[i] == addresses[i] && answers_find(&a, addresses[i]) == i);
		require((a.quality[i] == ANSWER_NOTHING) == (a.first[i] == a.first[i + 1]));
	}
}

static void ask(const struct elf_file *f, struct second_file *second)
{
	struct error err = { 0 };
	struct buf block;
	struct resolve_result result;
	struct file_source files = { open_second, second };
	struct resolve_options o = { .depth = SYMBOL_FULL, .files = &files, .threads = 1, .decompressed_limit = DECOMPRESSED };
	uint64_t addresses[ADDRESSES];
	size_t n = choose_addresses(f, addresses);
	/* All at once, then some of what is kept. */
	struct resolver *reader = NULL;
	require(resolver_open(&reader, f, &o, &err) == 0);
	for (size_t i = 0; i < 3; i++) {
		const uint64_t *asked = i == 0 ? addresses : addresses + i * n / 3;
		size_t n_asked = i == 0 ? n : n / 3;
		buf_init(&block, BUF_MAX_DEFAULT);
		int rc = resolver_ask(reader, asked, n_asked, &block, &result, &err);
		if (rc == 0)
			check(&block, asked, n_asked);
		else
			require((rc == E_NOMEM || rc == E_LIMIT) && err.code == rc && err.text[0] && !strchr(err.text, '\n'));
		buf_finish(&block);
	}
	resolver_close(reader);
}

static bool has_debug_info(const struct elf_image *e)
{
	struct elf_section s;
	return elf_section_named(e, ".debug_info", &s) || elf_section_named(e, ".zdebug_info", &s);
}

/* What elf_file_open() would do, without a file. */
static void open_first(struct elf_file *f, const uint8_t *data, size_t n)
{
	struct elf_segment s;
	uint8_t *at = ends_at - ELF_IMAGE_SLACK - (n + 15) / 16 * 16;
	memcpy(at, data, n);
	memset(at + n, 0xff, (size_t)(ends_at - at) - n - ELF_IMAGE_SLACK);
	*f = (struct elf_file){ .path = strdup("first"), .fd = -1, .bytes = n, .page_bytes = 4096 };
	if (!f->path || elf_image_memory(&f->image, at, n, "first", NULL))
		return;
	f->image.mapped = true;          /* with room behind it */
	for (uint32_t i = 0; elf_segment(&f->image, i, &s) && i < 64; i++) {
		struct loaded_segment *slot = s.type == 1 ? ARRAY_PUSH(f->segments, f->n_segments, f->segments_capacity, 64) : NULL;
		if (slot)
			*slot = (struct loaded_segment){ s.offset, s.file_bytes, s.address, s.memory_bytes, (s.flags & 1) != 0 };
	}
	struct elf_symbols symbols;
	f->has_symtab = elf_symbols_begin(&symbols, &f->image, false);
	f->has_debug_info = has_debug_info(&f->image);
	f->fixed_address = f->image.type == 2;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct elf_file f;
	struct second_file second = { 0 };
	size_t first = split(data, n, &second.n);
	second.bytes = data + first;
	if (!ends_at)
		reserve();
	if (first > FILE_MAX)
		return 0;
	open_first(&f, data, first);
	if (f.image.mapped)
		ask(&f, &second);
	f.image.mapped = false;
	elf_file_finish(&f);
	return 0;
}

/* Fills ret with where debug sections (and those with symbols) lie; how many. */
static size_t list_sections(const uint8_t *data, size_t n, struct elf_section *ret, size_t most)
{
	struct elf_image e;
	struct elf_section s;
	size_t count = 0;
	if (elf_image_memory(&e, data, n, "mutated", NULL))
		return 0;
	for (uint32_t i = 0; count < most && elf_section(&e, i, &s); i++)
		if (s.bytes && elf_section_bytes(&e, &s) && (strstr(s.name, "debug") || strstr(s.name, "symtab") || strstr(s.name, "eh_frame")))
			ret[count++] = s;
	return count;
}

/* Where in an input a section to change lies, and how long it is; 0: anywhere. */
static size_t pick(const uint8_t *data, size_t n, unsigned seed, size_t *ret_bytes)
{
	struct elf_section sections[64];
	size_t second, first = split(data, n, &second), base = second && seed % 3 == 0 ? first : 0;
	size_t count = list_sections(data + base, base ? second : first, sections, 64);
	/* The ones that say how others are read, more often. */
	for (size_t tries = 0; count && tries < 3; tries++) {
		const struct elf_section *s = &sections[(seed / 3 + tries * 7919) % count];
		*ret_bytes = s->bytes;
		if (strstr(s->name, "_info") || strstr(s->name, "abbrev") || strstr(s->name, "line") || strstr(s->name, "rng") || tries == 2)
			return base + s->offset;
	}
	return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t n, size_t most, unsigned seed)
{
	uint8_t *copy;
	size_t bytes, at = seed % 16 ? pick(data, n, seed / 16, &bytes) : 0;
	if (!LLVMFuzzerMutate)
		return n;
	if (at == 0)
		return LLVMFuzzerMutate(data, n, most);
	/* A small piece of it: the mutator takes longer for more. Shorter or longer moves the rest of the section, not what is behind it. */
	size_t piece = bytes > 256 ? 256 : bytes, from = at + (size_t)(seed * 2654435761u) % (bytes - piece + 1), end = at + bytes;
	copy = malloc(end - from + piece);
	if (!copy)
		return n;
	memcpy(copy, data + from, piece);
	size_t now = LLVMFuzzerMutate(copy, piece, 2 * piece);
	size_t rest = end - from - piece;
	if (now > piece + rest)
		now = piece + rest;
	if (now <= piece + rest) {
		size_t kept = piece + rest - now < rest ? piece + rest - now : rest;
		memmove(data + from + now, data + from + piece, kept);
		memcpy(data + from, copy, now);
	}
	free(copy);
	return n;
}
