/*
 * One ELF file opened for reading: its segments, build id and which tables it has. Reads only
 * regular files (a path out of a profile may name anything). The file is mapped: if somebody
 * truncates it meanwhile, the process dies of SIGBUS.
 */
#ifndef SYMBOL_ELF_FILE_H
#define SYMBOL_ELF_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/elf_image.h"
#include "base/error.h"

#define BUILD_ID_TEXT 129        /* room for one in hex */

struct loaded_segment {
	uint64_t offset, file_bytes;         /* in the file */
	uint64_t address, memory_bytes;      /* in the file's own address space */
	bool executable;
};

struct elf_file {
	char *path;
	int fd;
	struct elf_image image;
	struct loaded_segment *segments;
	size_t n_segments, segments_capacity;
	uint64_t device, inode, bytes;
	uint64_t page_bytes;                 /* biggest page that systems of this machine type use */
	char build_id[BUILD_ID_TEXT];        /* lower-case hex, "" when there is none */
	bool fixed_address;                  /* not position independent: addresses are those of the process */
	bool has_symtab;
	bool has_debug_info;                 /* .debug_info or .zdebug_info */
	bool has_split_info;                 /* .debug_info.dwo: a .dwo or .dwp file */
	bool has_mini;                       /* .gnu_debugdata */
};

/* E_IO when it can't be read or is no regular file, E_FORMAT when it is no ELF file. f is safe to finish in any case. */
int elf_file_open(struct elf_file *f, const char *path, struct error *err);
/* The same for a descriptor, which is f's from now on, also after an error; path is for messages and for what lies beside it. */
int elf_file_open_fd(struct elf_file *f, int fd, const char *path, struct error *err);
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

/* Path and build id (hex) of the file that dwz moved common debug information to; NULL when none. Borrowed from f. */
const char *elf_file_altlink(const struct elf_file *f, char ret_build_id[BUILD_ID_TEXT]);

/*
 * What is in .gnu_debugdata: an xz-compressed ELF file whose .symtab has the functions that .dynsym lacks (Fedora's
 * stripped binaries have one). False when there is none or it is damaged. free() *ret_bytes after the image's last use.
 */
bool elf_file_mini(const struct elf_file *f, struct elf_image *ret, uint8_t **ret_bytes);

#endif
