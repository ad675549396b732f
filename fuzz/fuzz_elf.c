/*
 * ELF tables of any bytes: an error of one line, or tables of which everything that is handed out can be read to its
 * end (the sanitizer watches the reads), names end, and both ways to the symbols stay inside.
 */
#include "base/elf_image.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static size_t touched;

static void touch(const void *bytes, size_t n)
{
	const uint8_t *at = bytes;
	for (size_t i = 0; i < n; i += 1 + n / 64)
		touched += at[i];
	if (n)
		touched += at[n - 1];
}

static void walk_symbols(const struct elf_image *e, bool dynamic)
{
	struct elf_symbols s;
	struct elf_symbol y;
	if (!elf_symbols_begin(&s, e, dynamic))
		return;
	size_t n = 0;
	for (; elf_symbols_next(&s, &y); n++)
		if (n < 1000)
			touched += strlen(y.name);
	if (n != s.n || n > e->n)
		abort();
}

static void walk(const struct elf_image *e)
{
	struct elf_segment segment;
	struct elf_section section;
	struct elf_symbol symbol;
	const uint8_t *bytes;
	uint32_t i = 0;
	while (elf_segment(e, i, &segment))
		i++;
	if (i != e->n_segments)
		abort();
	for (i = 0; elf_section(e, i, &section); i++) {
		if (i > 1000)
			continue;
		touch(section.name, strlen(section.name) + 1);
		if ((bytes = elf_section_bytes(e, &section)))
			touch(bytes, section.bytes);
	}
	size_t id = elf_build_id(e, &bytes);
	if (id > 64)
		abort();
	if (id)
		touch(bytes, id);
	walk_symbols(e, false);
	walk_symbols(e, true);
	if (elf_find_symbol(e, "mallctl", &symbol) && strcmp(symbol.name, "mallctl") != 0)
		abort();
	if (elf_section_named(e, ".text", &section) && strcmp(section.name, ".text") != 0)
		abort();
	uint64_t address;
	elf_address_of_offset(e, 0, &address);
	elf_address_of_offset(e, e->n / 2, &address);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct error err = { 0 };
	struct elf_image e;
	if (elf_image_memory(&e, data, n, "fuzz", &err) == E_OK) {
		walk(&e);
		elf_image_close(&e);
	} else if (err.code != E_FORMAT || !err.text[0] || strchr(err.text, '\n')) {
		abort();
	}
	return 0;
}
