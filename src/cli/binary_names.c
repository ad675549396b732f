#include "cli/binary_names.h"

#include <stdio.h>
#include <string.h>

#include "symbol/locate.h"

int binary_names_read(const char *path, struct binary_names *ret, struct error *err)
{
	struct elf_file f, debug;
	struct binary_names n = { .symtab = false };
	int failed = elf_file_open(&f, path, err);
	if (!failed) {
		n.symtab = f.has_symtab;
		n.debug_info = f.has_debug_info;
		n.mini = f.has_mini;
		snprintf(n.build_id, sizeof n.build_id, "%s", f.build_id);
		if (!f.has_debug_info && locate_debug_file(&f, NULL, &debug)) {
			snprintf(n.debug_file, sizeof n.debug_file, "%s", debug.path);
			elf_file_finish(&debug);
		}
		*ret = n;
	}
	elf_file_finish(&f);
	return failed;
}
