/*
 * Opening an ELF file and what is needed from its headers. All reading goes through elf_image, which checks offsets
 * against the file's size.
 */
#include "symbol/elf_file.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <lzma.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"

#define SEGMENTS_MAX 65536
#define MINI_MAX ((size_t)64 << 20)            /* decompressed */
#define MINI_MEMORY_MAX ((uint64_t)128 << 20)  /* of the decompressor */
#define FIRST_CODE 64          /* nothing can lie before the end of the ELF header */

static int read_segments(struct elf_file *f, struct error *err)
{
	struct elf_segment p;
	for (uint32_t i = 0; i < SEGMENTS_MAX && elf_segment(&f->image, i, &p); i++) {
		if (p.type != PT_LOAD)
			continue;
		struct loaded_segment *s = ARRAY_PUSH(f->segments, f->n_segments, f->segments_capacity, SEGMENTS_MAX);
		if (!s)
			return error_nomem(err, "ELF segments");
		*s = (struct loaded_segment){ p.offset, p.file_bytes, p.address, p.memory_bytes, (p.flags & PF_X) != 0 };
	}
	return 0;
}

/* "" when it is too long. */
static void write_hex(const uint8_t *bytes, size_t n, char ret[BUILD_ID_TEXT])
{
	static const char digits[] = "0123456789abcdef";
	if (n > (BUILD_ID_TEXT - 1) / 2)
		n = 0;
	for (size_t i = 0; i < n; i++) {
		ret[2 * i] = digits[bytes[i] >> 4];
		ret[2 * i + 1] = digits[bytes[i] & 15];
	}
	ret[2 * n] = '\0';
}

static void read_sections(struct elf_file *f)
{
	struct elf_section s;
	for (uint32_t i = 0; elf_section(&f->image, i, &s); i++) {
		f->has_symtab |= s.type == SHT_SYMTAB;
		if (s.type == SHT_NOBITS || !s.bytes)
			continue;
		f->has_debug_info |= !strcmp(s.name, ".debug_info") || !strcmp(s.name, ".zdebug_info");
		f->has_split_info |= !strcmp(s.name, ".debug_info.dwo") || !strcmp(s.name, ".zdebug_info.dwo");
		f->has_mini |= !strcmp(s.name, ".gnu_debugdata");
	}
}

static int read_headers(struct elf_file *f, struct error *err)
{
	struct stat st;
	const uint8_t *id;
	int rc = elf_image_open_fd(&f->image, f->fd, f->path, err);
	if (rc)
		return rc;
	if (fstat(f->fd, &st) < 0)
		return error_set(err, E_IO, "%s: %s", f->path, strerror(errno));
	f->device = st.st_dev;
	f->inode = st.st_ino;
	f->bytes = f->image.n;
	f->fixed_address = f->image.type == ET_EXEC;
	f->page_bytes = f->image.machine == EM_X86_64 || f->image.machine == EM_386 ? 4096 : 65536;
	size_t id_bytes = elf_build_id(&f->image, &id);
	write_hex(id, id_bytes, f->build_id);
	read_sections(f);
	return read_segments(f, err);
}

static int start(struct elf_file *f, const char *path, struct error *err)
{
	memset(f, 0, sizeof(*f));
	f->fd = -1;
	f->path = strdup(path);
	return f->path ? 0 : error_nomem(err, "a path");
}

int elf_file_open(struct elf_file *f, const char *path, struct error *err)
{
	int rc = start(f, path, err);
	if (rc)
		return rc;
	/* O_NONBLOCK: a FIFO must not hold us; it means nothing to a regular file. */
	do
		f->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	while (f->fd < 0 && errno == EINTR);
	if (f->fd < 0)
		return error_set(err, E_IO, "%s: %s", path, strerror(errno));
	return read_headers(f, err);
}

int elf_file_open_fd(struct elf_file *f, int fd, const char *path, struct error *err)
{
	int rc = start(f, path, err);
	f->fd = fd;
	return rc ? rc : read_headers(f, err);
}

void elf_file_finish(struct elf_file *f)
{
	if (!f)
		return;
	elf_image_close(&f->image);
	if (f->fd >= 0)
		close(f->fd);
	free(f->segments);
	free(f->path);
	memset(f, 0, sizeof(*f));
	f->fd = -1;
}

bool elf_file_address(const struct elf_file *f, uint64_t offset, uint64_t *ret_address)
{
	const struct loaded_segment *found = NULL;
	for (size_t i = 0; i < f->n_segments; i++) {
		const struct loaded_segment *s = &f->segments[i];
		if (offset >= s->offset && offset - s->offset < s->file_bytes &&
		    (!found || (s->executable && !found->executable)))
			found = s;
	}
	if (found)
		*ret_address = offset - found->offset + found->address;
	return found != NULL;
}

bool elf_file_offset(const struct elf_file *f, uint64_t address, uint64_t *ret_offset)
{
	for (size_t i = 0; i < f->n_segments; i++) {
		const struct loaded_segment *s = &f->segments[i];
		if (address >= s->address && address - s->address < s->file_bytes) {
			*ret_offset = address - s->address + s->offset;
			return true;
		}
	}
	return false;
}

bool elf_file_covers(const struct elf_file *f, uint64_t offset, uint64_t bytes)
{
	uint64_t mask = f->page_bytes - 1, end;
	if (__builtin_add_overflow(offset, bytes, &end))
		return false;
	for (size_t i = 0; i < f->n_segments; i++) {
		const struct loaded_segment *s = &f->segments[i];
		uint64_t limit;
		if (!s->executable || __builtin_add_overflow(s->offset, s->file_bytes, &limit) ||
		    __builtin_add_overflow(limit, mask, &limit))
			continue;
		if (offset >= (s->offset & ~mask) && end <= (limit & ~mask))
			return true;
	}
	return false;
}

bool elf_file_has_code(const struct elf_file *f, uint64_t address)
{
	if (address < FIRST_CODE)
		return false;
	for (size_t i = 0; i < f->n_segments; i++) {
		const struct loaded_segment *s = &f->segments[i];
		if (s->executable && address >= s->address && address - s->address < s->memory_bytes)
			return true;
	}
	return false;
}

/* A section's bytes when they begin with a text that ends; ret_after: of the byte behind its NUL. */
static const char *named_link(const struct elf_file *f, const char *section, size_t *ret_after, size_t *ret_n)
{
	struct elf_section s;
	const char *text = elf_section_named(&f->image, section, &s) ? (const char *)elf_section_bytes(&f->image, &s) : NULL;
	const char *end = text && s.bytes ? memchr(text, '\0', s.bytes) : NULL;
	if (!end || end == text)
		return NULL;
	*ret_after = (size_t)(end - text) + 1;
	*ret_n = s.bytes;
	return text;
}

const char *elf_file_debuglink(const struct elf_file *f, uint32_t *ret_crc)
{
	size_t after, n;
	const char *name = named_link(f, ".gnu_debuglink", &after, &n);
	size_t at = name ? (after + 3) & ~(size_t)3 : 0;
	if (!name || at > n || n - at < sizeof(*ret_crc))
		return NULL;
	memcpy(ret_crc, name + at, sizeof(*ret_crc));
	if (f->image.swapped)
		*ret_crc = __builtin_bswap32(*ret_crc);
	return name;
}

const char *elf_file_altlink(const struct elf_file *f, char ret_build_id[BUILD_ID_TEXT])
{
	size_t after, n;
	const char *name = named_link(f, ".gnu_debugaltlink", &after, &n);
	if (name)
		write_hex((const uint8_t *)name + after, n - after, ret_build_id);
	return name;
}

/* Decompresses into a growing buffer; false when damaged, too big, or out of memory. */
static bool unpack(const uint8_t *packed, size_t n_packed, uint8_t **ret_bytes, size_t *ret_n)
{
	lzma_stream s = LZMA_STREAM_INIT;
	size_t capacity = 0;
	lzma_ret rc = lzma_stream_decoder(&s, MINI_MEMORY_MAX, 0);
	s.next_in = packed;
	s.avail_in = n_packed;
	while (rc == LZMA_OK) {
		size_t done = s.total_out;
		if (done == capacity &&
		    !memory_grow((void **)ret_bytes, &capacity, done + 65536, 1, MINI_MAX)) {
			rc = LZMA_MEM_ERROR;
			break;
		}
		s.next_out = *ret_bytes + done;
		s.avail_out = capacity - done;
		rc = lzma_code(&s, LZMA_FINISH);
	}
	*ret_n = s.total_out;
	lzma_end(&s);
	return rc == LZMA_STREAM_END;
}

bool elf_file_mini(const struct elf_file *f, struct elf_image *ret, uint8_t **ret_bytes)
{
	struct elf_section s;
	const uint8_t *packed =
		elf_section_named(&f->image, ".gnu_debugdata", &s) ? elf_section_bytes(&f->image, &s) : NULL;
	uint8_t *bytes = NULL;
	size_t n = 0;
	if (!packed || !unpack(packed, s.bytes, &bytes, &n) || elf_image_memory(ret, bytes, n, f->path, NULL)) {
		free(bytes);
		return false;
	}
	*ret_bytes = bytes;
	return true;
}
