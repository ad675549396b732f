/*
 * One ELF file opened for reading: its segments, build id and which tables it has. Reads only
 * regular files (a path out of a profile may name anything). The file is mapped: if somebody
 * truncates it meanwhile, the process dies of SIGBUS.
 */
#ifndef SYMBOL_ELF_FILE_H
#define SYMBOL_ELF_FILE_H

#include <libelf.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct elf_segment {
	uint64_t offset, file_bytes;         /* in the file */
	uint64_t address, memory_bytes;      /* in the file's own address space */
	bool executable;
};

struct elf_file {
	char *path;
	int fd;
	Elf *elf;
	struct elf_segment *segments;        /* the loadable ones */
	size_t n_segments, segments_capacity;
	uint64_t device, inode, bytes;
	uint64_t page_bytes;                 /* biggest page that systems of this machine type use */
	char build_id[129];                  /* lower-case hex, "" when there is none */
	bool fixed_address;                  /* not position independent: addresses are those of the process */
	bool has_symtab, has_debug_info;
	Elf_Scn *mini;                       /* .gnu_debugdata, or NULL */
	bool strange_links;                  /* refers to further debug files that are no regular files */
};

/* E_IO when it can't be read or is no regular file, E_FORMAT when it is no ELF file. f is safe to finish in any case. */
int elf_file_open(struct elf_file *f, const char *path, struct error *err);
void elf_file_finish(struct elf_file *f);

/* Address of a byte of the file; false when it isn't loaded. Executable segments win. */
bool elf_file_address(const struct elf_file *f, uint64_t offset, uint64_t *ret_address);
/* The other way round. */
bool elf_file_offset(const struct elf_file *f, uint64_t address, uint64_t *ret_offset);

/* Does an executable segment, rounded to pages, cover those bytes of the file? */
bool elf_file_covers(const struct elf_file *f, uint64_t offset, uint64_t bytes);

/* Is there code at that address, so that a function may begin there? */
bool elf_file_has_code(const struct elf_file *f, uint64_t address);

/* Name and checksum of the separate debug file it asks for; NULL when none. Borrowed from f. */
const char *elf_file_debuglink(const struct elf_file *f, uint32_t *ret_crc);

/*
 * What is in .gnu_debugdata: an xz-compressed ELF file whose .symtab has the functions that .dynsym lacks (Fedora's
 * stripped binaries have one). NULL when there is none or it is damaged. elf_end() it, then free() *ret_bytes.
 */
Elf *elf_file_mini(const struct elf_file *f, uint8_t **ret_bytes);

#endif
