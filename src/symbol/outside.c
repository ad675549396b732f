#include "symbol/outside.h"

#include <elf.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>

/* Its bytes are mapped as a whole; the section headers are the last of them. */
static void open_vdso(struct outside *o)
{
	const ElfW(Ehdr) *header = (const ElfW(Ehdr) *)getauxval(AT_SYSINFO_EHDR);
	if (!header || header->e_shoff == 0)
		return;
	size_t n = header->e_shoff + (size_t)header->e_shnum * header->e_shentsize;
	if (elf_image_memory(&o->vdso, header, n, "[vdso]", NULL)) {
		o->vdso.n = 0;
		return;
	}
	const uint8_t *id;
	size_t bytes = elf_build_id(&o->vdso, &id);
	for (size_t i = 0; i < bytes; i++)
		snprintf(o->vdso_id + 2 * i, 3, "%02x", id[i]);
}

void outside_init(struct outside *o, const char *perf_map, struct buf *warnings)
{
	struct error err;
	memset(o, 0, sizeof *o);
	open_vdso(o);
	if (perf_map && perf_map_read(&o->map, perf_map, &err) && warnings)
		buf_printf(warnings, "%s; code made by a JIT stays unnamed\n", err.text);
}

void outside_finish(struct outside *o)
{
	if (!o)
		return;
	perf_map_finish(&o->map);
	if (o->vdso.n)
		elf_image_close(&o->vdso);
	memset(o, 0, sizeof *o);
}

const char *outside_vdso_id(const struct outside *o)
{
	return o->vdso_id;
}

/* Its functions have two names each, a weak one without "__vdso_"; the other one says where they are. */
static const char *vdso_name(const struct outside *o, uint64_t offset)
{
	struct elf_symbols all;
	struct elf_symbol s;
	uint64_t address;
	const char *best = NULL;
	if (!elf_address_of_offset(&o->vdso, offset, &address) || !elf_symbols_begin(&all, &o->vdso, true))
		return NULL;
	while (elf_symbols_next(&all, &s))
		if (s.section != SHN_UNDEF && address >= s.value && address - s.value < s.bytes && (!best || s.binding == STB_GLOBAL))
			best = s.name;
	return best;
}

const char *outside_name(const struct outside *o, const char *mapping, const char *build_id, uint64_t address, uint64_t offset)
{
	if (strcmp(mapping, "[vdso]") == 0)
		return o->vdso.n && *build_id && strcmp(build_id, o->vdso_id) == 0 ? vdso_name(o, offset) : NULL;
	return perf_map_find(&o->map, address);
}
