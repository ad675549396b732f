/*
 * Opening an ELF file and what is needed from its headers. All reading goes through libelf,
 * which checks offsets against the file's size.
 */
#include "symbol/elf_file.h"

#include <elfutils/libdwelf.h>
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <lzma.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"

#define SEGMENTS_MAX 65536
#define MINI_MAX ((size_t)256 << 20)           /* decompressed */
#define MINI_MEMORY_MAX ((uint64_t)128 << 20)  /* of the decompressor */
#define FIRST_CODE 64          /* nothing can lie before the end of the ELF header */

static pthread_once_t version_once = PTHREAD_ONCE_INIT;

static void set_version(void)
{
	elf_version(EV_CURRENT);
}

static int open_regular(struct elf_file *f, const char *path, struct error *err)
{
	/* O_NONBLOCK: a FIFO must not hold us; it means nothing to a regular file. */
	do
		f->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	while (f->fd < 0 && errno == EINTR);
	struct stat st;
	if (f->fd < 0 || fstat(f->fd, &st) < 0)
		return error_set(err, E_IO, "%s: %s", path, strerror(errno));
	if (!S_ISREG(st.st_mode))
		return error_set(err, E_IO, "%s: not a regular file", path);
	f->device = st.st_dev;
	f->inode = st.st_ino;
	f->bytes = (uint64_t)st.st_size;
	return 0;
}

static int read_segments(struct elf_file *f, struct error *err)
{
	size_t n;
	if (elf_getphdrnum(f->elf, &n) < 0)
		return error_set(err, E_FORMAT, "%s: damaged ELF file: %s", f->path, elf_errmsg(-1));
	for (size_t i = 0; i < n && i < SEGMENTS_MAX; i++) {
		GElf_Phdr p;
		if (!gelf_getphdr(f->elf, (int)i, &p))
			return error_set(err, E_FORMAT, "%s: damaged ELF file: %s", f->path,
			                 elf_errmsg(-1));
		if (p.p_type != PT_LOAD)
			continue;
		struct elf_segment *s = ARRAY_PUSH(f->segments, f->n_segments, f->segments_capacity,
		                                   SEGMENTS_MAX);
		if (!s)
			return error_nomem(err, "ELF segments");
		*s = (struct elf_segment){ p.p_offset, p.p_filesz, p.p_vaddr, p.p_memsz,
			                   (p.p_flags & PF_X) != 0 };
	}
	return 0;
}

static void read_build_id(struct elf_file *f)
{
	static const char digits[] = "0123456789abcdef";
	const void *bytes;
	ssize_t n = dwelf_elf_gnu_build_id(f->elf, &bytes);
	if (n <= 0 || (size_t)n > (sizeof(f->build_id) - 1) / 2)
		return;
	const uint8_t *id = bytes;
	for (ssize_t i = 0; i < n; i++) {
		f->build_id[2 * i] = digits[id[i] >> 4];
		f->build_id[2 * i + 1] = digits[id[i] & 15];
	}
	f->build_id[2 * n] = '\0';
}

/*
 * libdw opens the file that .gnu_debugaltlink names by itself. A name that leads to a FIFO or a
 * device would hang us or worse, so the link must be to a regular file (or to nothing).
 */
static bool is_strange_link(const struct elf_file *f, Elf_Scn *section)
{
	Elf_Data *data = elf_rawdata(section, NULL);
	if (!data || !data->d_buf || !memchr(data->d_buf, '\0', data->d_size))
		return false;
	const char *name = data->d_buf;
	const char *slash = strrchr(f->path, '/');
	char path[4096];
	size_t folder = name[0] == '/' || !slash ? 0 : (size_t)(slash - f->path) + 1;
	if (folder + strlen(name) >= sizeof(path))
		return true;
	memcpy(path, f->path, folder);
	memcpy(path + folder, name, strlen(name) + 1);
	struct stat st;
	return stat(path, &st) == 0 && !S_ISREG(st.st_mode);
}

static void read_sections(struct elf_file *f)
{
	size_t names;
	if (elf_getshdrstrndx(f->elf, &names) < 0)
		return;
	for (Elf_Scn *s = NULL; (s = elf_nextscn(f->elf, s));) {
		GElf_Shdr h;
		if (!gelf_getshdr(s, &h))
			continue;
		const char *name = elf_strptr(f->elf, names, h.sh_name);
		if (h.sh_type == SHT_SYMTAB)
			f->has_symtab = true;
		if (!name || h.sh_type == SHT_NOBITS || h.sh_size == 0)
			continue;
		if (!strcmp(name, ".debug_info") || !strcmp(name, ".zdebug_info"))
			f->has_debug_info = true;
		if (!strcmp(name, ".gnu_debugdata"))
			f->mini = s;
		if (!strcmp(name, ".gnu_debugaltlink") && is_strange_link(f, s))
			f->strange_links = true;
	}
}

int elf_file_open(struct elf_file *f, const char *path, struct error *err)
{
	memset(f, 0, sizeof(*f));
	f->fd = -1;
	f->path = strdup(path);
	if (!f->path)
		return error_nomem(err, "a path");
	int rc = open_regular(f, path, err);
	if (rc)
		return rc;
	pthread_once(&version_once, set_version);
	f->elf = elf_begin(f->fd, ELF_C_READ_MMAP, NULL);
	if (!f->elf || elf_kind(f->elf) != ELF_K_ELF)
		return error_set(err, E_FORMAT, "%s: not an ELF file", path);
	GElf_Ehdr header;
	if (!gelf_getehdr(f->elf, &header))
		return error_set(err, E_FORMAT, "%s: damaged ELF file: %s", path, elf_errmsg(-1));
	f->fixed_address = header.e_type == ET_EXEC;
	f->page_bytes = header.e_machine == EM_X86_64 || header.e_machine == EM_386 ? 4096 : 65536;
	rc = read_segments(f, err);
	if (rc)
		return rc;
	read_build_id(f);
	read_sections(f);
	return 0;
}

void elf_file_finish(struct elf_file *f)
{
	if (!f)
		return;
	elf_end(f->elf);
	if (f->fd >= 0)
		close(f->fd);
	free(f->segments);
	free(f->path);
	memset(f, 0, sizeof(*f));
	f->fd = -1;
}

bool elf_file_address(const struct elf_file *f, uint64_t offset, uint64_t *ret_address)
{
	const struct elf_segment *found = NULL;
	for (size_t i = 0; i < f->n_segments; i++) {
		const struct elf_segment *s = &f->segments[i];
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
		const struct elf_segment *s = &f->segments[i];
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
		const struct elf_segment *s = &f->segments[i];
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
		const struct elf_segment *s = &f->segments[i];
		if (s->executable && address >= s->address && address - s->address < s->memory_bytes)
			return true;
	}
	return false;
}

const char *elf_file_debuglink(const struct elf_file *f, uint32_t *ret_crc)
{
	GElf_Word crc;
	const char *name = dwelf_elf_gnu_debuglink(f->elf, &crc);
	if (name)
		*ret_crc = crc;
	return name;
}

/* Decompresses into a growing buffer; false when damaged, too big, or out of memory. */
static bool unpack(const Elf_Data *data, uint8_t **ret_bytes, size_t *ret_n)
{
	lzma_stream s = LZMA_STREAM_INIT;
	size_t capacity = 0;
	lzma_ret rc = lzma_stream_decoder(&s, MINI_MEMORY_MAX, 0);
	s.next_in = data->d_buf;
	s.avail_in = data->d_size;
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

Elf *elf_file_mini(const struct elf_file *f, uint8_t **ret_bytes)
{
	Elf_Data *data = f->mini ? elf_rawdata(f->mini, NULL) : NULL;
	uint8_t *bytes = NULL;
	size_t n = 0;
	Elf *elf = NULL;
	if (data && data->d_buf && unpack(data, &bytes, &n))
		elf = elf_memory((char *)bytes, n);
	if (!elf) {
		free(bytes);
		return NULL;
	}
	*ret_bytes = bytes;
	return elf;
}
