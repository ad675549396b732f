/*
 * DWARF of any bytes, section by section: joined with a few addresses, frames whose texts all end, whatever the sections say. No ELF file
 * is made or mapped, so that this does tens of thousands of runs a second; fuzz_dwarf.c has the rest of the way.
 *
 * An input is a header (struct header), lengths of two sets of sections, and their bytes. The second set is dwz's common file,
 * a .dwo, a .dwp, or nothing. Each section ends exactly SPAN_SLACK bytes before a page that can't be touched. The linker puts
 * what begins with __wrap_ in the place of the functions that would open the second file (see fuzz/run.sh and fuzz/meson.build).
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "symbol/dwarf_join.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t n, size_t most, unsigned seed);
/* Not there without libFuzzer, where nobody mutates. */
size_t LLVMFuzzerMutate(uint8_t *data, size_t n, size_t most) __attribute__((weak));
int __wrap_elf_file_open_fd(struct elf_file *f, int fd, const char *path, struct error *err);
void __wrap_sections_init(struct debug_sections *s, const struct elf_image *image, uint64_t limit_bytes);

/* In a build with AddressSanitizer what is before a section is out of bounds, too. */
void __asan_poison_memory_region(const volatile void *at, size_t n) __attribute__((weak));
void __asan_unpoison_memory_region(const volatile void *at, size_t n) __attribute__((weak));

#define SECTION_MAX ((size_t)8 << 10)
#define SETS 2
#define BANKS 2                  /* with slack of zeros, and of ones */
#define ADDRESSES 8
#define SECOND_FD 1000000        /* none that is open */
#define OPENED_MAX 64

enum second { SECOND_NONE, SECOND_ALT, SECOND_DWO, SECOND_DWP };

struct header {
	bool swapped, have_symtab;
	uint8_t bank, second;
	uint8_t symbols;             /* a bit for each address that one covers */
	uint16_t code_bytes;
	uint32_t code;
};

#define HEADER 8
#define LENGTHS (SETS * DEBUG_SECTIONS)
#define BODY (HEADER + 2 * LENGTHS)

static uint8_t *ends[BANKS][LENGTHS];    /* of the rooms for sections; the slack begins there */
static struct span spans[LENGTHS];       /* of the input that runs */
static bool is_swapped;
static const uint8_t second_image;       /* stands for the second file's bytes */
static volatile size_t touched;

static void require(bool holds)
{
	if (!holds)
		abort();
}

static void reserve(void)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), room = SECTION_MAX + SPAN_SLACK;
	for (size_t bank = 0; bank < BANKS; bank++)
		for (size_t i = 0; i < LENGTHS; i++) {
			uint8_t *at = mmap(NULL, room + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
			require(at != MAP_FAILED && mprotect(at + room, page, PROT_NONE) == 0);
			if (bank)
				memset(at + SECTION_MAX, 0xff, SPAN_SLACK);
			ends[bank][i] = at + SECTION_MAX;
		}
}

/* Lengths as they are there; a section that isn't whole has what is left. */
static size_t length_at(const uint8_t *data, size_t i)
{
	return (size_t)data[HEADER + 2 * i] | (size_t)data[HEADER + 2 * i + 1] << 8;
}

static struct header read_header(const uint8_t *data)
{
	return (struct header){
		.swapped = data[0] & 1, .have_symtab = data[0] & 2, .bank = data[0] >> 2 & 1, .second = data[0] >> 3 & 3, .symbols = data[1],
		.code_bytes = (uint16_t)(data[2] | data[3] << 8),
		.code = (uint32_t)data[4] | (uint32_t)data[5] << 8 | (uint32_t)data[6] << 16 | (uint32_t)data[7] << 24,
	};
}

static void place_sections(const uint8_t *data, size_t n, unsigned bank)
{
	size_t at = BODY;
	for (size_t i = 0; i < LENGTHS; i++) {
		size_t bytes = length_at(data, i);
		if (bytes > n - at)
			bytes = n - at;
		if (bytes > SECTION_MAX)
			bytes = SECTION_MAX;
		uint8_t *end = ends[bank][i], *to = end - bytes;
		spans[i] = (struct span){ bytes ? to : NULL, bytes };
		if (!bytes)
			continue;
		if (__asan_poison_memory_region) {
			__asan_poison_memory_region(end - SECTION_MAX, SECTION_MAX - bytes);
			__asan_unpoison_memory_region(to, bytes);
		}
		memcpy(to, data + at, bytes);
		at += bytes;
	}
}

/* What sections_init() and sections_get() would come to. */
static void give_sections(struct debug_sections *s, const struct elf_image *image, size_t set)
{
	*s = (struct debug_sections){ .image = image, .swapped = is_swapped, .split = set > 0 };
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->done, NULL);
	memcpy(s->of, spans + set * DEBUG_SECTIONS, sizeof(s->of));
	memset(s->asked, true, sizeof(s->asked));
}

int __wrap_elf_file_open_fd(struct elf_file *f, int fd, const char *path, struct error *err)
{
	(void)err;
	require(fd == SECOND_FD && path[0]);
	*f = (struct elf_file){ .fd = -1, .image = { .bytes = &second_image } };
	return 0;
}

void __wrap_sections_init(struct debug_sections *s, const struct elf_image *image, uint64_t limit_bytes)
{
	require(image->bytes == &second_image && limit_bytes);
	give_sections(s, image, 1);
}

struct source {
	unsigned second, opened;
};

static int open_second(void *context, const struct file_request *r, char *ret_path, unsigned long size)
{
	struct source *s = context;
	require(r->of && r->build_id && size > 8 && (r->kind == FILE_DWP || (r->kind == FILE_DWO && r->name)));
	if (r->name)
		touched += strlen(r->name);
	if (r->folder)
		touched += strlen(r->folder);
	if (s->second != (r->kind == FILE_DWO ? SECOND_DWO : SECOND_DWP) || s->opened++ >= OPENED_MAX)
		return -1;
	memcpy(ret_path, "second", 7);
	return SECOND_FD;
}

static void check_text(const struct dwarf_result *r, uint16_t table, uint32_t text)
{
	if (text == DWARF_NO_TEXT)
		return;
	require(table < r->n_texts && text < r->texts[table].n);
	touched += strlen(r->texts[table].items[text].at);
}

static void check(const struct dwarf_result *r, size_t n_addresses)
{
	static struct dwarf_frame frames[DWARF_FRAMES_MAX];
	for (size_t i = 0; i < n_addresses; i++) {
		size_t n = dwarf_frames(r, i, frames);
		require(n <= DWARF_FRAMES_MAX && (n == 0 || dwarf_names_function(r, i) == (frames[n - 1].name != DWARF_NO_TEXT)));
		for (size_t k = 0; k < n; k++) {
			check_text(r, frames[k].table, frames[k].name);
			check_text(r, frames[k].table, frames[k].scope);
			check_text(r, frames[k].file_table, frames[k].file);
		}
	}
	for (size_t i = 0; i < r->n_entries; i++)
		require(r->entries[i] != 0);
}

static void ask(struct dwarf *d, const struct dwarf_question *q, struct dwarf_result *ret)
{
	struct error err = { 0 };
	int rc = dwarf_join(d, q, ret, &err);
	if (rc == 0)
		check(ret, q->n);
	else
		require(rc == E_NOMEM && err.code == rc && err.text[0] && !strchr(err.text, '\n'));
}

/* Undamaged, they have as many frames, of the same lines. */
static void compare(const struct dwarf_result *read, const struct dwarf_result *kept)
{
	static struct dwarf_frame a[DWARF_FRAMES_MAX], b[DWARF_FRAMES_MAX];
	if (!read->storage || !kept->storage || read->damaged || kept->damaged)
		return;
	size_t n = dwarf_frames(read, 0, a);
	require(dwarf_frames(kept, 0, b) == n);
	for (size_t i = 0; i < n; i++)
		require(a[i].line == b[i].line && a[i].column == b[i].column && (a[i].name == DWARF_NO_TEXT) == (b[i].name == DWARF_NO_TEXT));
}

/* All at once; then each by itself, read and of what is kept, which is there the second time. */
static void ask_all(struct dwarf *d, const uint64_t *addresses, const struct symtab_hit *symbols)
{
	struct dwarf_question q = { .addresses = addresses, .n = ADDRESSES, .symbols = symbols, .threads = 1 };
	struct dwarf_result read, kept;
	ask(d, &q, &read);
	dwarf_result_finish(&read);
	for (size_t i = 0; i < 2 * ADDRESSES; i++) {
		q = (struct dwarf_question){ .addresses = addresses + i % ADDRESSES, .n = 1, .symbols = symbols + i % ADDRESSES, .threads = 1 };
		ask(d, &q, &read);
		q.few = true;
		ask(d, &q, &kept);
		compare(&read, &kept);
		dwarf_result_finish(&read);
		dwarf_result_finish(&kept);
	}
}

static void join(const struct header *h, struct debug_sections *main, struct debug_sections *alt)
{
	struct loaded_segment code = { .address = h->code, .memory_bytes = h->code_bytes, .file_bytes = h->code_bytes, .executable = true };
	struct elf_file f = { .path = (char *)(uintptr_t)"first", .fd = -1, .segments = &code, .n_segments = 1, .page_bytes = 4096 };
	struct source source = { h->second, 0 };
	struct file_source files = { open_second, &source };
	struct symtab_hit symbols[ADDRESSES];
	uint64_t addresses[ADDRESSES];
	for (size_t i = 0; i < ADDRESSES; i++) {
		bool has = h->have_symtab && h->symbols >> i & 1;
		addresses[i] = h->code + i * (h->code_bytes / (uint64_t)ADDRESSES + 1);
		symbols[i] = (struct symtab_hit){ has ? i % 2 ? "_ZN1a1bEv" : "b" : NULL, has ? i % 2 ? 9 : 1 : 0, h->code, SYMTAB_FULL };
	}
	struct dwarf_input in = { .binary = &f, .file = &f, .sections = main, .alt = alt, .files = &files, .have_symtab = h->have_symtab };
	struct dwarf *d;
	if (dwarf_open(&d, &in, NULL))
		return;
	ask_all(d, addresses, symbols);
	dwarf_close(d);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static const struct elf_image no_image;
	struct debug_sections main, alt;
	if (n < BODY)
		return 0;
	if (!ends[0][0])
		reserve();
	struct header h = read_header(data);
	is_swapped = h.swapped;
	place_sections(data, n, h.bank);
	give_sections(&main, &no_image, 0);
	bool has_alt = h.second == SECOND_ALT;
	if (has_alt)
		give_sections(&alt, &no_image, 1);
	join(&h, &main, has_alt ? &alt : NULL);
	sections_finish(&main);
	if (has_alt)
		sections_finish(&alt);
	return 0;
}

/* --- mutations: a piece of one section, with the lengths around it kept right --- */

struct picked {
	size_t index, at, bytes;             /* at: in the input */
};

static uint32_t chance(uint32_t *state, uint32_t below)
{
	*state ^= *state << 13;
	*state ^= *state >> 17;
	*state ^= *state << 5;
	return below ? *state % below : 0;
}

/* The sections that say how others are read, more often; an empty one rarely. */
static struct picked pick(const uint8_t *data, size_t n, uint32_t *random)
{
	struct picked all[LENGTHS];
	size_t at = BODY, weights[LENGTHS], sum = 0;
	for (size_t i = 0; i < LENGTHS; i++) {
		size_t bytes = length_at(data, i), which = i % DEBUG_SECTIONS;
		if (bytes > n - at)
			bytes = n - at;
		bool often = which == DEBUG_INFO || which == DEBUG_ABBREV || which == DEBUG_LINE;
		weights[i] = !bytes ? chance(random, 64) == 0 : often ? 4 : which == DEBUG_STR || which == DEBUG_LINE_STR ? 1 : 2;
		all[i] = (struct picked){ i, at, bytes };
		sum += weights[i];
		at += bytes;
	}
	size_t i = 0;
	for (size_t left = chance(random, (uint32_t)sum); i < LENGTHS - 1 && left >= weights[i]; i++)
		left -= weights[i];
	return all[i];
}

static uint32_t get_u32(const uint8_t *p, bool swapped)
{
	uint32_t v;
	memcpy(&v, p, sizeof(v));
	return swapped ? __builtin_bswap32(v) : v;
}

static void put_u32(uint8_t *p, uint32_t v, bool swapped)
{
	v = swapped ? __builtin_bswap32(v) : v;
	memcpy(p, &v, sizeof(v));
}

/* Units, line tables, sets: the one around from (which counts from the section's beginning) grows by that much. */
static void fix_length(uint8_t *section, size_t n, size_t from, size_t more, bool swapped)
{
	for (size_t at = 0; at + 12 <= n;) {
		bool is64 = get_u32(section + at, swapped) == UINT32_MAX;
		size_t header = is64 ? 12 : 4, low = at + (is64 && !swapped ? 4 : is64 ? 8 : 0);
		uint32_t bytes = get_u32(section + low, swapped);
		if (from < at + header)
			return;
		if (from <= at + header + bytes) {
			put_u32(section + low, bytes + (uint32_t)more, swapped);
			return;
		}
		at += header + bytes;
	}
}

/* Has a length in front of each of its parts. */
static bool has_lengths(size_t index)
{
	size_t which = index % DEBUG_SECTIONS;
	return which == DEBUG_INFO || which == DEBUG_LINE || which == DEBUG_ARANGES || which == DEBUG_RNGLISTS;
}

/* Bytes [from, from + bytes) of the input become the n at replacement. */
static size_t replace(uint8_t *data, size_t n, struct picked s, size_t from, size_t bytes, const uint8_t *replacement, size_t now)
{
	size_t length = s.bytes + now - bytes;
	if (now != bytes && has_lengths(s.index))
		fix_length(data + s.at, s.bytes, from - s.at, now - bytes, data[0] & 1);
	memmove(data + from + now, data + from + bytes, n - from - bytes);
	memcpy(data + from, replacement, now);
	data[HEADER + 2 * s.index] = (uint8_t)length;
	data[HEADER + 2 * s.index + 1] = (uint8_t)(length >> 8);
	return n + now - bytes;
}

#define PIECE_MAX 64

/* A piece changed by the fuzzer, or one that is elsewhere in the input. */
static size_t mutate_piece(uint8_t *data, size_t n, size_t most, uint32_t *random)
{
	uint8_t piece[2 * PIECE_MAX];
	struct picked s = pick(data, n, random), other = chance(random, 8) ? s : pick(data, n, random);
	size_t most_bytes = s.bytes < PIECE_MAX ? s.bytes : PIECE_MAX, bytes = most_bytes ? 1 + chance(random, (uint32_t)most_bytes) : 0;
	size_t from = s.at + chance(random, (uint32_t)(s.bytes - bytes + 1)), room = bytes + (most - n < PIECE_MAX ? most - n : PIECE_MAX), now;
	if (chance(random, 6) == 0 && other.bytes) {
		now = 1 + chance(random, (uint32_t)(other.bytes < room ? other.bytes : room));
		now = now > PIECE_MAX ? PIECE_MAX : now > room ? room : now > other.bytes ? other.bytes : now;
		memcpy(piece, data + other.at + chance(random, (uint32_t)(other.bytes - now + 1)), now);
		/* As long as it was, mostly. */
		bytes = chance(random, 4) == 0 || now > bytes ? bytes : now;
	} else {
		memcpy(piece, data + from, bytes);
		/* The fuzzer makes a byte even where there is no room for one. */
		now = room ? LLVMFuzzerMutate(piece, bytes, chance(random, 2) && bytes ? bytes : room) : 0;
	}
	return replace(data, n, s, from, bytes, piece, now);
}

/* An offset into some section: references, strings, lists. */
static void mutate_offset(uint8_t *data, size_t n, uint32_t *random)
{
	struct picked s = pick(data, n, random), into = pick(data, n, random);
	if (s.bytes < 4)
		return;
	uint8_t *to = data + s.at + chance(random, (uint32_t)(s.bytes - 3));
	uint32_t offset = chance(random, (uint32_t)into.bytes + 8);
	switch (chance(random, 4)) {
	case 0:
		*to = (uint8_t)offset;
		break;
	case 1:
		to[0] = (uint8_t)(offset | 0x80);
		to[1] = (uint8_t)(offset >> 7 & 0x7f);
		break;
	default:
		put_u32(to, offset, data[0] & 1);
		break;
	}
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t n, size_t most, unsigned seed)
{
	uint32_t random = seed | 1;
	if (!LLVMFuzzerMutate || most <= BODY)
		return n;
	if (n < BODY) {
		memset(data + n, 0, BODY - n);
		return BODY;
	}
	switch (chance(&random, 32)) {
	case 0:
		LLVMFuzzerMutate(data, HEADER, HEADER);
		return n;
	case 1:
	case 2:
	case 3:
		mutate_offset(data, n, &random);
		return n;
	default:
		return mutate_piece(data, n, most, &random);
	}
}
