/* Imports tell what a library calls; in a program that has everything inside, its own symbols do. Compilers leave their names. */
#include <string.h>

#include "base/elf_image.h"
#include "cli/binary_names.h"

static enum unwinder of_table(const struct elf_image *e, bool dynamic)
{
	struct elf_symbols all;
	struct elf_symbol s;
	enum unwinder found = UNWINDER_UNKNOWN;
	if (!elf_symbols_begin(&all, e, dynamic))
		return found;
	while (elf_symbols_next(&all, &s)) {
		if (strcmp(s.name, "unw_backtrace") == 0 || strstr(s.name, "_Ux86_64_step") || strstr(s.name, "_Uaarch64_step"))
			return UNWINDER_LIBUNWIND;
		if (strcmp(s.name, "_Unwind_Backtrace") == 0)
			found = UNWINDER_LIBGCC;
	}
	return found;
}

enum unwinder binary_unwinder(const char *path)
{
	struct elf_image e;
	if (elf_image_open(&e, path, NULL))
		return UNWINDER_UNKNOWN;
	enum unwinder found = of_table(&e, true);
	if (found == UNWINDER_UNKNOWN)
		found = of_table(&e, false);
	elf_image_close(&e);
	return found;
}

bool binary_is_rust(const char *path)
{
	struct elf_image e;
	struct elf_section comment;
	if (elf_image_open(&e, path, NULL))
		return false;
	const uint8_t *text = elf_section_named(&e, ".comment", &comment) ? elf_section_bytes(&e, &comment) : NULL;
	bool found = text && memmem(text, comment.bytes, "rustc version", 13);
	elf_image_close(&e);
	return found;
}
