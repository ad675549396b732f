/*
 * Every place in the file is asked for as (offset, length) and given out only when the file has it whole; records are
 * copied out, since nothing says that they are aligned. Names are pointers into the file: a string table counts only
 * up to its last NUL, so every name in it ends.
 */
#include "base/elf_image.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define OUR_ORDER ELFDATA2LSB
#else
#define OUR_ORDER ELFDATA2MSB
#endif

static uint64_t turned(uint64_t value, size_t bytes)
{
	return __builtin_bswap64(value) >> (64 - 8 * bytes);
}

/* A number of a record of the file, in our order. */
#define OURS(e, x) ((e)->swapped ? (__typeof__(x))turned(x, sizeof(x)) : (x))

static const uint8_t *place(const struct elf_image *e, uint64_t offset, uint64_t n)
{
	return offset <= e->n && n <= e->n - offset ? e->bytes + offset : NULL;
}

/* How much of a string table ends in a NUL. */
static size_t names_whole(const uint8_t *names, uint64_t n)
{
	const uint8_t *last = names && n ? memrchr(names, '\0', n) : NULL;
	return last ? (size_t)(last - names) + 1 : 0;
}

/* --- opening --- */

/* Counts too large for the header's 16 bits are in the first section. */
static void take_extended(struct elf_image *e, uint32_t *names_section)
{
	uint32_t sections = e->n_sections;
	if (!e->sections_at)
		return;
	e->n_sections = 1;
	struct elf_section first;
	bool there = elf_section(e, 0, &first);
	e->n_sections = sections;
	if (!there)
		return;
	if (sections == 0)
		e->n_sections = first.bytes <= UINT32_MAX ? (uint32_t)first.bytes : 0;
	if (*names_section == SHN_XINDEX)
		*names_section = first.link;
	if (e->n_segments == PN_XNUM)
		e->n_segments = first.info;
}

#define TAKE_HEADER(e, bits)                                                                   \
	do {                                                                                   \
		Elf##bits##_Ehdr h;                                                            \
		memcpy(&h, (e)->bytes, sizeof h);                                              \
		(e)->machine = OURS(e, h.e_machine);                                           \
		(e)->type = OURS(e, h.e_type);                                                 \
		(e)->sections_at = OURS(e, h.e_shoff);                                         \
		(e)->segments_at = OURS(e, h.e_phoff);                                         \
		(e)->n_sections = OURS(e, h.e_shnum);                                          \
		(e)->section_bytes = OURS(e, h.e_shentsize);                                   \
		names_section = OURS(e, h.e_shstrndx);                                         \
		(e)->n_segments = OURS(e, h.e_phnum);                                          \
		(e)->segment_bytes = OURS(e, h.e_phentsize);                                   \
	} while (0)

int elf_image_memory(struct elf_image *ret, const void *bytes, size_t n, const char *name, struct error *err)
{
	struct elf_image e = { .bytes = bytes, .n = n };
	uint32_t names_section;
	if (n < EI_NIDENT || memcmp(bytes, ELFMAG, SELFMAG) != 0)
		return error_set(err, E_FORMAT, "%.200s: is no ELF file", name);
	e.is64 = e.bytes[EI_CLASS] == ELFCLASS64;
	if ((!e.is64 && e.bytes[EI_CLASS] != ELFCLASS32) || n < (e.is64 ? sizeof(Elf64_Ehdr) : sizeof(Elf32_Ehdr)))
		return error_set(err, E_FORMAT, "%.200s: damaged ELF file: its header is not whole", name);
	if (e.bytes[EI_DATA] != ELFDATA2LSB && e.bytes[EI_DATA] != ELFDATA2MSB)
		return error_set(err, E_FORMAT, "%.200s: damaged ELF file: its byte order is none", name);
	e.swapped = e.bytes[EI_DATA] != OUR_ORDER;
	if (e.is64)
		TAKE_HEADER(&e, 64);
	else
		TAKE_HEADER(&e, 32);
	if (!e.segments_at || e.segment_bytes != (e.is64 ? sizeof(Elf64_Phdr) : sizeof(Elf32_Phdr)))
		e.n_segments = 0;
	if (!e.sections_at || e.section_bytes != (e.is64 ? sizeof(Elf64_Shdr) : sizeof(Elf32_Shdr)))
		e.n_sections = 0, e.sections_at = 0;
	take_extended(&e, &names_section);
	if (!place(&e, e.segments_at, (uint64_t)e.n_segments * e.segment_bytes))
		return error_set(err, E_FORMAT, "%.200s: damaged ELF file: it ends before its program headers do",
		                 name);
	/* Section headers lie at the end and aren't needed to run: a file that has lost them still has the rest. */
	if (!place(&e, e.sections_at, (uint64_t)e.n_sections * e.section_bytes))
		e.n_sections = 0, e.sections_at = 0;
	struct elf_section names;
	if (names_section && elf_section(&e, names_section, &names)) {
		e.section_names = (const char *)elf_section_bytes(&e, &names);
		e.section_names_bytes = names_whole((const uint8_t *)e.section_names, names.bytes);
	}
	*ret = e;
	return 0;
}

/* The file, over the beginning of zeros that are longer; NULL with errno. */
static void *map_with_slack(int fd, size_t n)
{
	void *room = mmap(NULL, n + ELF_IMAGE_SLACK, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (room == MAP_FAILED)
		return NULL;
	if (mmap(room, n, PROT_READ, MAP_PRIVATE | MAP_FIXED, fd, 0) == MAP_FAILED) {
		int why = errno;
		munmap(room, n + ELF_IMAGE_SLACK);
		errno = why;
		return NULL;
	}
	return room;
}

int elf_image_open_fd(struct elf_image *ret, int fd, const char *name, struct error *err)
{
	struct stat st;
	if (fstat(fd, &st) < 0)
		return error_set(err, E_IO, "%.200s: cannot read: %s", name, strerror(errno));
	if (!S_ISREG(st.st_mode))
		return error_set(err, E_IO, "%.200s: is not a regular file", name);
	if (st.st_size < EI_NIDENT)
		return error_set(err, E_FORMAT, "%.200s: is no ELF file", name);
	void *bytes = map_with_slack(fd, (size_t)st.st_size);
	if (!bytes)
		return error_set(err, E_IO, "%.200s: cannot map: %s", name, strerror(errno));
	int failed = elf_image_memory(ret, bytes, (size_t)st.st_size, name, err);
	if (failed)
		munmap(bytes, (size_t)st.st_size + ELF_IMAGE_SLACK);
	else
		ret->mapped = true;
	return failed;
}

int elf_image_open(struct elf_image *e, const char *path, struct error *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return error_set(err, E_IO, "%.200s: cannot open: %s", path, strerror(errno));
	int failed = elf_image_open_fd(e, fd, path, err);
	close(fd);
	return failed;
}

void elf_image_close(struct elf_image *e)
{
	if (!e)
		return;
	if (e->mapped)
		munmap((void *)(uintptr_t)e->bytes, e->n + ELF_IMAGE_SLACK);
	*e = (struct elf_image){ 0 };
}

/* --- segments and sections --- */

#define SEGMENT(bits)                                                                          \
	do {                                                                                   \
		Elf##bits##_Phdr h;                                                            \
		memcpy(&h, at, sizeof h);                                                      \
		*ret = (struct elf_segment){ OURS(e, h.p_type), OURS(e, h.p_flags), OURS(e, h.p_offset), \
		                             OURS(e, h.p_vaddr), OURS(e, h.p_filesz), OURS(e, h.p_memsz) }; \
	} while (0)

bool elf_segment(const struct elf_image *e, uint32_t i, struct elf_segment *ret)
{
	const uint8_t *at =
		i < e->n_segments ? place(e, e->segments_at + (uint64_t)i * e->segment_bytes, e->segment_bytes) : NULL;
	if (!at)
		return false;
	if (e->is64)
		SEGMENT(64);
	else
		SEGMENT(32);
	return true;
}

#define SECTION(bits)                                                                          \
	do {                                                                                   \
		Elf##bits##_Shdr h;                                                            \
		memcpy(&h, at, sizeof h);                                                      \
		*ret_name = OURS(e, h.sh_name);                                                \
		*ret = (struct elf_section){ "", OURS(e, h.sh_type), OURS(e, h.sh_link), OURS(e, h.sh_info), \
		                             OURS(e, h.sh_flags), OURS(e, h.sh_addr), OURS(e, h.sh_offset), \
		                             OURS(e, h.sh_size), OURS(e, h.sh_entsize) };      \
	} while (0)

static bool nameless_section(const struct elf_image *e, uint32_t i, struct elf_section *ret, uint32_t *ret_name)
{
	const uint8_t *at =
		i < e->n_sections ? place(e, e->sections_at + (uint64_t)i * e->section_bytes, e->section_bytes) : NULL;
	if (!at)
		return false;
	if (e->is64)
		SECTION(64);
	else
		SECTION(32);
	return true;
}

const uint8_t *elf_section_bytes(const struct elf_image *e, const struct elf_section *s)
{
	return s->type != SHT_NOBITS && s->type != SHT_NULL ? place(e, s->offset, s->bytes) : NULL;
}

bool elf_section(const struct elf_image *e, uint32_t i, struct elf_section *ret)
{
	uint32_t name;
	if (!nameless_section(e, i, ret, &name))
		return false;
	if (name < e->section_names_bytes)
		ret->name = e->section_names + name;
	return true;
}

bool elf_section_named(const struct elf_image *e, const char *name, struct elf_section *ret)
{
	struct elf_section s;
	for (uint32_t i = 0; elf_section(e, i, &s); i++)
		if (strcmp(s.name, name) == 0) {
			*ret = s;
			return true;
		}
	return false;
}

bool elf_address_of_offset(const struct elf_image *e, uint64_t offset, uint64_t *ret_address)
{
	struct elf_segment s;
	bool found = false;
	for (uint32_t i = 0; elf_segment(e, i, &s); i++) {
		if (s.type != PT_LOAD || offset < s.offset || offset - s.offset >= s.file_bytes)
			continue;
		if (!found || (s.flags & PF_X))
			*ret_address = s.address + (offset - s.offset);
		found = true;
		if (s.flags & PF_X)
			break;
	}
	return found;
}

/* The file's bytes at an address, and how many follow in the segment. */
static const uint8_t *at_address(const struct elf_image *e, uint64_t address, uint64_t *ret_n)
{
	struct elf_segment s;
	for (uint32_t i = 0; elf_segment(e, i, &s); i++) {
		if (s.type != PT_LOAD || address < s.address || address - s.address >= s.file_bytes)
			continue;
		uint64_t in = address - s.address;
		if (s.offset > e->n || in >= e->n - s.offset)
			return NULL;
		uint64_t left = e->n - s.offset - in;
		*ret_n = s.file_bytes - in < left ? s.file_bytes - in : left;
		return e->bytes + s.offset + in;
	}
	return NULL;
}

/* --- symbols --- */

static size_t symbol_bytes(const struct elf_image *e)
{
	return e->is64 ? sizeof(Elf64_Sym) : sizeof(Elf32_Sym);
}

static bool symbols_of_section(struct elf_symbols *s, const struct elf_image *e, uint32_t type)
{
	struct elf_section table, names;
	uint32_t i = 0;
	while (elf_section(e, i, &table) && table.type != type)
		i++;
	if (!elf_section(e, i, &table) || table.entry_bytes < symbol_bytes(e) || !elf_section(e, table.link, &names))
		return false;
	const uint8_t *at = elf_section_bytes(e, &table), *text = elf_section_bytes(e, &names);
	size_t whole = names_whole(text, names.bytes);
	if (!at || !whole)
		return false;
	*s = (struct elf_symbols){ e, at, (const char *)text, (size_t)(table.bytes / table.entry_bytes),
	                           (size_t)table.entry_bytes, whole, 0 };
	return true;
}

/* What PT_DYNAMIC says; addresses, 0: not said. */
struct dynamic {
	uint64_t symbols, names, names_bytes, hash, gnu_hash;
};

static bool read_dynamic(const struct elf_image *e, struct dynamic *d)
{
	struct elf_segment s;
	uint32_t i = 0;
	while (elf_segment(e, i, &s) && s.type != PT_DYNAMIC)
		i++;
	if (!elf_segment(e, i, &s))
		return false;
	const uint8_t *at = place(e, s.offset, s.file_bytes);
	size_t one = e->is64 ? sizeof(Elf64_Dyn) : sizeof(Elf32_Dyn);
	*d = (struct dynamic){ 0 };
	for (uint64_t left = at ? s.file_bytes : 0; left >= one; left -= one, at += one) {
		uint64_t tag, value;
		if (e->is64) {
			Elf64_Dyn d64;
			memcpy(&d64, at, sizeof d64);
			tag = OURS(e, (uint64_t)d64.d_tag);
			value = OURS(e, d64.d_un.d_val);
		} else {
			Elf32_Dyn d32;
			memcpy(&d32, at, sizeof d32);
			tag = OURS(e, (uint32_t)d32.d_tag);
			value = OURS(e, d32.d_un.d_val);
		}
		switch (tag) {
		case DT_NULL: return d->symbols && d->names;
		case DT_SYMTAB: d->symbols = value; break;
		case DT_STRTAB: d->names = value; break;
		case DT_STRSZ: d->names_bytes = value; break;
		case DT_HASH: d->hash = value; break;
		case DT_GNU_HASH: d->gnu_hash = value; break;
		default: break;
		}
	}
	return d->symbols && d->names;
}

static uint32_t word(const struct elf_image *e, const uint8_t *at, uint64_t i)
{
	uint32_t w;
	memcpy(&w, at + i * 4, 4);
	return OURS(e, w);
}

/*
 * A GNU hash table does not say how many symbols there are: the last one is the end of the chain that starts furthest
 * back. Header of four words, Bloom filter, buckets, then a word for each symbol from first on; bit 0 ends a chain.
 */
static uint64_t count_by_gnu_hash(const struct elf_image *e, const uint8_t *at, uint64_t n)
{
	if (n < 16)
		return 0;
	uint64_t buckets = word(e, at, 0), first = word(e, at, 1);
	uint64_t filter = (uint64_t)word(e, at, 2) * (e->is64 ? 8 : 4);
	uint64_t last = 0, words = n / 4, bucket0 = 4 + filter / 4;
	if (bucket0 > words || buckets > words - bucket0)
		return 0;
	for (uint64_t i = 0; i < buckets; i++)
		if (word(e, at, bucket0 + i) > last)
			last = word(e, at, bucket0 + i);
	if (last < first)
		return first;
	for (uint64_t i = bucket0 + buckets + (last - first); i < words; i++, last++)
		if (word(e, at, i) & 1)
			return last + 1;
	return 0;
}

static uint64_t count_dynamic(const struct elf_image *e, const struct dynamic *d)
{
	uint64_t n = 0, count = 0;
	const uint8_t *at;
	if (d->hash && (at = at_address(e, d->hash, &n)) && n >= 8)
		count = word(e, at, 1);
	if (!count && d->gnu_hash && (at = at_address(e, d->gnu_hash, &n)))
		count = count_by_gnu_hash(e, at, n);
	return count;
}

static bool symbols_of_dynamic(struct elf_symbols *s, const struct elf_image *e)
{
	struct dynamic d;
	uint64_t n = 0, names_n = 0;
	if (!read_dynamic(e, &d))
		return false;
	const uint8_t *at = at_address(e, d.symbols, &n);
	const uint8_t *names = at_address(e, d.names, &names_n);
	if (!at || !names)
		return false;
	uint64_t count = count_dynamic(e, &d), room = n / symbol_bytes(e);
	size_t whole = names_whole(names, d.names_bytes && d.names_bytes < names_n ? d.names_bytes : names_n);
	if (!count || !whole)
		return false;
	*s = (struct elf_symbols){ e, at, (const char *)names, (size_t)(count < room ? count : room), symbol_bytes(e), whole, 0 };
	return true;
}

bool elf_symbols_begin(struct elf_symbols *s, const struct elf_image *e, bool dynamic)
{
	if (symbols_of_section(s, e, dynamic ? SHT_DYNSYM : SHT_SYMTAB))
		return true;
	return dynamic && symbols_of_dynamic(s, e);
}

#define SYMBOL(bits)                                                                           \
	do {                                                                                   \
		Elf##bits##_Sym y;                                                             \
		memcpy(&y, at, sizeof y);                                                      \
		name = OURS(s->image, y.st_name);                                              \
		*ret = (struct elf_symbol){ "", OURS(s->image, y.st_value), OURS(s->image, y.st_size), \
		                            ELF64_ST_TYPE(y.st_info), ELF64_ST_BIND(y.st_info), \
		                            OURS(s->image, y.st_shndx) };                      \
	} while (0)

bool elf_symbols_next(struct elf_symbols *s, struct elf_symbol *ret)
{
	if (s->at >= s->n)
		return false;
	const uint8_t *at = s->table + s->at++ * s->entry_bytes;
	uint32_t name;
	if (s->image->is64)
		SYMBOL(64);
	else
		SYMBOL(32);
	if (name < s->names_bytes)
		ret->name = s->names + name;
	return true;
}

bool elf_find_symbol(const struct elf_image *e, const char *name, struct elf_symbol *ret)
{
	for (int pass = 0; pass < 2; pass++) {
		struct elf_symbols s;
		struct elf_symbol y;
		if (!elf_symbols_begin(&s, e, pass == 0))
			continue;
		while (elf_symbols_next(&s, &y))
			if (y.section != SHN_UNDEF && y.type != STT_FILE && y.type != STT_SECTION &&
			    strcmp(y.name, name) == 0) {
				*ret = y;
				return true;
			}
	}
	return false;
}

/* --- build id --- */

#define BUILD_ID_MAX 64
#define NOTES_MAX 100

/*
 * Notes: three words (length of the name, of the content, type), name and content, each padded to 4 bytes (8 in few).
 */
static size_t build_id_in(const struct elf_image *e, const uint8_t *at, uint64_t n, unsigned align, const uint8_t **ret_bytes)
{
	while (n >= 12) {
		uint64_t name = word(e, at, 0), content = word(e, at, 1), type = word(e, at, 2);
		uint64_t content_at = (12 + name + align - 1) / align * align;
		uint64_t whole = (content_at + content + align - 1) / align * align;
		if (content_at > n || content > n - content_at)
			return 0;
		if (type == NT_GNU_BUILD_ID && name == 4 && memcmp(at + 12, "GNU", 4) == 0 && content > 0 &&
		    content <= BUILD_ID_MAX) {
			*ret_bytes = at + content_at;
			return (size_t)content;
		}
		if (whole >= n)
			return 0;
		at += whole;
		n -= whole;
	}
	return 0;
}

size_t elf_build_id(const struct elf_image *e, const uint8_t **ret_bytes)
{
	struct elf_segment s;
	struct elf_section c;
	unsigned looks = 0;     /* a file with more notes than that is up to something */
	for (uint32_t i = 0; looks < NOTES_MAX && elf_segment(e, i, &s); i++) {
		const uint8_t *at = s.type == PT_NOTE ? place(e, s.offset, s.file_bytes) : NULL;
		looks += at != NULL;
		for (unsigned align = 4; at && align <= 8; align += 4) {
			size_t n = build_id_in(e, at, s.file_bytes, align, ret_bytes);
			if (n)
				return n;
		}
	}
	for (uint32_t i = 0; looks < NOTES_MAX && elf_section(e, i, &c); i++) {
		const uint8_t *at = c.type == SHT_NOTE ? elf_section_bytes(e, &c) : NULL;
		looks += at != NULL;
		size_t n = at ? build_id_in(e, at, c.bytes, 4, ret_bytes) : 0;
		if (n)
			return n;
	}
	return 0;
}
