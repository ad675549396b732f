#include "agent/objects.h"

#include <elf.h>
#include <link.h>
#include <stdbool.h>
#include <string.h>

struct sought {
	uint64_t address;
	const uint8_t *id;
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

static int look(struct dl_phdr_info *info, size_t size, void *context)
{
	struct sought *s = context;
	(void)size;
	if (!has_address(info, s->address))
		return 0;
	for (unsigned i = 0; i < info->dlpi_phnum && s->n == 0; i++) {
		const ElfW(Phdr) *h = &info->dlpi_phdr[i];
		if (h->p_type == PT_NOTE && is_readable(info, h))
			s->n = id_in_notes((const uint8_t *)(uintptr_t)(info->dlpi_addr + h->p_vaddr), h->p_memsz, &s->id);
	}
	return 1;
}

size_t objects_build_id(void *context, const char *path, uint64_t address, const uint8_t **ret_bytes)
{
	struct sought s = { .address = address };
	(void)context;
	(void)path;
	dl_iterate_phdr(look, &s);
	if (s.n)
		*ret_bytes = s.id;
	return s.n;
}
