/*
 * What is loaded may be unloaded the moment the dynamic linker's lock is given back: everything is copied while it is held. And
 * what lies on the disk under an object's name may be another file by now: only one that looks as the loaded one does is believed.
 */
#include "agent/objects.h"

#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "agent/forks.h"
#include "agent/memory.h"
#include "base/memory.h"
#include "base/text.h"

struct sought {
	uint64_t address;
	uint8_t id[OBJECT_ID_MAX];
	size_t n;
};

static bool has_address(const struct dl_phdr_info *info, uint64_t address)
{
	for (unsigned i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *h = &info->dlpi_phdr[i];
		if (h->p_type == PT_LOAD && address - info->dlpi_addr - h->p_vaddr < h->p_memsz)
			return true;
	}
	return false;
}

static bool is_readable(const struct dl_phdr_info *info, const ElfW(Phdr) *note)
{
	for (unsigned i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *h = &info->dlpi_phdr[i];
		if (h->p_type == PT_LOAD && (h->p_flags & PF_R) && note->p_vaddr >= h->p_vaddr &&
		    note->p_vaddr - h->p_vaddr + note->p_memsz <= h->p_memsz)
			return true;
	}
	return false;
}

#define NOTE_ALIGN(n) (((size_t)(n) + 3) & ~(size_t)3)

static size_t id_in_notes(const uint8_t *at, size_t left, const uint8_t **ret)
{
	ElfW(Nhdr) h;
	while (left >= sizeof h) {
		memcpy(&h, at, sizeof h);
		size_t name = NOTE_ALIGN(h.n_namesz), all = sizeof h + name + NOTE_ALIGN(h.n_descsz);
		if (h.n_namesz > left || h.n_descsz > left || all > left)
			return 0;
		if (h.n_type == NT_GNU_BUILD_ID && h.n_namesz == 4 && memcmp(at + sizeof h, "GNU", 4) == 0) {
			*ret = at + sizeof h + name;
			return h.n_descsz;
		}
		at += all;
		left -= all;
	}
	return 0;
}

/* Copies it; 0 when there is none. */
static size_t copy_build_id(const struct dl_phdr_info *info, uint8_t to[OBJECT_ID_MAX])
{
	const uint8_t *id;
	for (unsigned i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *h = &info->dlpi_phdr[i];
		if (h->p_type != PT_NOTE || !is_readable(info, h))
			continue;
		size_t n = id_in_notes((const uint8_t *)(uintptr_t)(info->dlpi_addr + h->p_vaddr), h->p_memsz, &id);
		if (n > 0 && n <= OBJECT_ID_MAX) {
			memcpy(to, id, n);
			return n;
		}
	}
	return 0;
}

static int look(struct dl_phdr_info *info, size_t size, void *context)
{
	struct sought *s = context;
	(void)size;
	if (!has_address(info, s->address))
		return 0;
	s->n = copy_build_id(info, s->id);
	return 1;
}

void objects_each(int (*each)(struct dl_phdr_info *info, size_t size, void *context), void *context)
{
	forks_hold();
	dl_iterate_phdr(each, context);
	forks_go_on();
}

size_t objects_build_id(void *context, const char *path, uint64_t address, const uint8_t **ret_bytes)
{
	static struct sought s;         /* the session's */
	(void)context;
	(void)path;
	s.address = address;
	s.n = 0;
	objects_each(look, &s);
	if (s.n)
		*ret_bytes = s.id;
	return s.n;
}

/* --- files ------------------------------------------------------------------ */

static uint64_t mix_segment(uint64_t h, uint64_t type, uint64_t offset, uint64_t address, uint64_t file_bytes, uint64_t memory_bytes)
{
	return hash_mix(hash_mix(hash_mix(hash_mix(hash_mix(h, type), offset), address), file_bytes), memory_bytes);
}

void objects_describe(const struct dl_phdr_info *info, bool program, struct loaded_object *ret)
{
	struct loaded_object o = { .base = info->dlpi_addr, .start = UINT64_MAX, .program = program };
	for (unsigned i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *h = &info->dlpi_phdr[i];
		uint64_t at = o.base + h->p_vaddr;
		o.layout = mix_segment(o.layout, h->p_type, h->p_offset, h->p_vaddr, h->p_filesz, h->p_memsz);
		if (h->p_type != PT_LOAD)
			continue;
		o.start = at < o.start ? at : o.start;
		o.end = at + h->p_memsz > o.end ? at + h->p_memsz : o.end;
	}
	o.id_n = copy_build_id(info, o.id);
	/* A path that was cut names nothing, or something else. */
	int n = snprintf(o.path, sizeof o.path, "%s", program || !info->dlpi_name ? "" : info->dlpi_name);
	if (n < 0 || (size_t)n >= sizeof o.path)
		o.path[0] = '\0';
	*ret = o;
}

static bool is_file_of(const struct elf_image *e, const struct loaded_object *o)
{
	struct elf_segment s;
	const uint8_t *id;
	uint64_t layout = 0;
	for (uint32_t i = 0; elf_segment(e, i, &s); i++)
		layout = mix_segment(layout, s.type, s.offset, s.address, s.file_bytes, s.memory_bytes);
	size_t n = elf_build_id(e, &id);
	return layout == o->layout && (!n || !o->id_n || (n == o->id_n && memcmp(id, o->id, n) == 0));
}

static int open_file_of(const struct loaded_object *o, const char *path, struct elf_image *ret, struct error *err)
{
	struct elf_image e;
	int rc = elf_image_open(&e, path, err);
	if (rc)
		return rc;
	if (!is_file_of(&e, o)) {
		elf_image_close(&e);
		return error_set(err, E_UNSUPPORTED, "%.200s: is another file than the one that was loaded", path);
	}
	*ret = e;
	return E_OK;
}

/* The path in one line of /proc/self/maps, if its range has the address; cut where the line is. */
static bool take_path(char *line, uint64_t address, char *to, size_t room)
{
	uint64_t start, end;
	char *dash = strchr(line, '-'), *blank = dash ? strchr(dash, ' ') : NULL, *path = strchr(line, '/');
	if (!blank || !path || !text_parse_u64(line, (size_t)(dash - line), 16, &start) ||
	    !text_parse_u64(dash + 1, (size_t)(blank - dash - 1), 16, &end) || address < start || address >= end)
		return false;
	int n = snprintf(to, room, "%s", path);
	return n > 0 && (size_t)n < room;
}

/* What the kernel calls the file that is mapped there. */
static bool mapped_path(uint64_t address, char *to, size_t room)
{
	char text[PATH_MAX + 256];
	size_t n = 0;
	bool found = false;
	int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	while (fd >= 0 && !found) {
		ssize_t got = read(fd, text + n, sizeof text - 1 - n);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			break;
		n += (size_t)got;
		char *line = text;
		for (char *end; !found && (end = memchr(line, '\n', n - (size_t)(line - text))); line = end + 1) {
			*end = '\0';
			found = take_path(line, address, to, room);
		}
		/* A line longer than all this room is none that we could use. */
		n = line == text && n == sizeof text - 1 ? 0 : n - (size_t)(line - text);
		memmove(text, line, n);
	}
	if (fd >= 0)
		close(fd);
	return found;
}

int objects_open(const struct loaded_object *o, struct elf_image *ret, struct error *err)
{
	char path[PATH_MAX];
	/* A name without a folder is none of a file (the vdso's): it would be looked for wherever the program is just now. */
	if (!o->program && !strchr(o->path, '/'))
		return error_set(err, E_IO, "%.200s: is no file", o->path);
	int rc = open_file_of(o, o->program ? "/proc/self/exe" : o->path, ret, err);
	/* A program that was started by naming it to the loader: there that is the loader. */
	if (rc && o->program && mapped_path(o->start, path, sizeof path))
		rc = open_file_of(o, path, ret, err);
	/* No /proc: what it was started by. */
	const char *started = (const char *)(uintptr_t)getauxval(AT_EXECFN);
	if (rc && o->program && started)
		rc = open_file_of(o, started, ret, err);
	return rc;
}

void objects_name(const struct loaded_object *o, char *to, size_t room)
{
	char path[PATH_MAX];
	const char *at = o->path;
	if (o->program)
		at = mapped_path(o->start, path, sizeof path) ? path : "program";
	const char *slash = strrchr(at, '/');
	snprintf(to, room, "%s", slash ? slash + 1 : at);
}
