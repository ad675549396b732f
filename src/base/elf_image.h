/*
 * An ELF file's tables, read where they lie: the file is mapped, nothing is copied and nothing is allocated, and every
 * offset is checked before it is followed: files of strangers are read here. Both classes, both byte orders: what this
 * header hands out as numbers is in this machine's order, what it hands out as bytes is in the file's.
 * Who truncates a mapped file kills its reader with SIGBUS.
 */
#ifndef BASE_ELF_IMAGE_H
#define BASE_ELF_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* So many bytes behind the end of a file that was mapped can be read, too: readers check once per record, not once per byte. */
#define ELF_IMAGE_SLACK ((size_t)128 << 10)

struct elf_image {
	const uint8_t *bytes;
	size_t n;
	bool mapped;                    /* by elf_image_open: has the slack behind it, and elf_image_close unmaps it */
	bool is64;
	bool swapped;                   /* the other byte order than this machine's */
	uint16_t machine, type;         /* EM_X86_64, ET_DYN, ... */
	uint64_t sections_at, segments_at;
	uint32_t n_sections, section_bytes;
	const char *section_names;      /* as far as they end in a NUL */
	size_t section_names_bytes;
	uint32_t n_segments, segment_bytes;
};

/* E_IO: can't be opened; E_FORMAT: no ELF file, or a damaged one. */
int elf_image_open(struct elf_image *e, const char *path, struct error *err);
int elf_image_open_fd(struct elf_image *e, int fd, const char *name, struct error *err);   /* fd stays the caller's */
/* The caller's memory, without slack. */
int elf_image_memory(struct elf_image *e, const void *bytes, size_t n, const char *name, struct error *err);
void elf_image_close(struct elf_image *e);

struct elf_segment {
	uint32_t type, flags;
	uint64_t offset, address, file_bytes, memory_bytes;
};
bool elf_segment(const struct elf_image *e, uint32_t i, struct elf_segment *ret);      /* false past the last */

struct elf_section {
	const char *name;               /* "" when it has none */
	uint32_t type;
	uint32_t link, info;
	uint64_t flags, address, offset, bytes, entry_bytes;
};
bool elf_section(const struct elf_image *e, uint32_t i, struct elf_section *ret);
bool elf_section_named(const struct elf_image *e, const char *name, struct elf_section *ret);
/* What a section has in the file; NULL when there is nothing (SHT_NOBITS) or it isn't whole. */
const uint8_t *elf_section_bytes(const struct elf_image *e, const struct elf_section *s);

struct elf_symbol {
	const char *name;               /* ends inside the file's string table, always */
	uint64_t value, bytes;
	uint8_t type, binding;          /* STT_FUNC, STB_GLOBAL */
	uint16_t section;               /* SHN_UNDEF: not defined here */
};

/* The symbols of .symtab, or with dynamic those of .dynsym (also found without section headers, by PT_DYNAMIC). */
struct elf_symbols {
	const struct elf_image *image;
	const uint8_t *table;
	const char *names;
	size_t n, entry_bytes, names_bytes, at;
};
bool elf_symbols_begin(struct elf_symbols *s, const struct elf_image *e, bool dynamic);   /* false: it has none */
bool elf_symbols_next(struct elf_symbols *s, struct elf_symbol *ret);
/* The defined symbol of that name, .dynsym first, then .symtab: looks at all of them. */
bool elf_find_symbol(const struct elf_image *e, const char *name, struct elf_symbol *ret);

/* Its bytes of NT_GNU_BUILD_ID, at most 64; 0 when it has none. */
size_t elf_build_id(const struct elf_image *e, const uint8_t **ret_bytes);

/* The address, as the file counts, of an offset in the file, code before data; false when no PT_LOAD has it. */
bool elf_address_of_offset(const struct elf_image *e, uint64_t offset, uint64_t *ret_address);

#endif
