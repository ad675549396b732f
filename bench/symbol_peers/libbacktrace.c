/*
 * libbacktrace as an addr2line, for symbol.py: addresses (hex) from standard input, for each the inlined calls, innermost first,
 * as function and file:line, names demangled.
 *
 *     libbacktrace BINARY
 *
 * The library means to be asked about its own process. What is given to it as the executable's file is read as if it were loaded
 * where this program is (a position-independent one), or where it says (others).
 */
#define _GNU_SOURCE
#include <backtrace.h>
#include <elf.h>
#include <libiberty/demangle.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>

static void say_error(void *data, const char *message, int number)
{
	(void)data;
	if (number >= 0)
		fprintf(stderr, "libbacktrace: %s\n", message);
}

static int show(void *data, uintptr_t pc, const char *file, int line, const char *function)
{
	(void)data, (void)pc;
	char *plain = function ? cplus_demangle(function, DMGL_AUTO | DMGL_PARAMS | DMGL_ANSI) : NULL;
	printf("%s\n%s:%d\n", plain ? plain : function ? function : "??", file ? file : "??", line);
	free(plain);
	return 0;
}

static int first_base(struct dl_phdr_info *info, size_t size, void *data)
{
	(void)size;
	*(uintptr_t *)data = info->dlpi_addr;
	return 1;
}

int main(int argc, char **argv)
{
	Elf64_Ehdr header;
	char line[64];
	uintptr_t base = 0;
	FILE *f = argc == 2 ? fopen(argv[1], "rb") : NULL;
	if (!f || fread(&header, sizeof(header), 1, f) != 1)
		return 2;
	fclose(f);
	if (header.e_type == ET_DYN)
		dl_iterate_phdr(first_base, &base);
	struct backtrace_state *state = backtrace_create_state(argv[1], 0, say_error, NULL);
	while (state && fgets(line, sizeof(line), stdin)) {
		unsigned long address = strtoul(line, NULL, 16);
		printf("0x%lx\n", address);
		backtrace_pcinfo(state, base + address, show, say_error, NULL);
	}
	return state ? 0 : 1;
}
