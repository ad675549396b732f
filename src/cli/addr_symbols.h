/*
 * addr's addresses in words, as addr2line 2.40 takes them: "main", "main+0x10", "ns::f(int)+16".
 */
#ifndef CLI_ADDR_SYMBOLS_H
#define CLI_ADDR_SYMBOLS_H

#include "base/elf_image.h"
#include "base/memory.h"

struct addr_symbol;

struct addr_symbols {
	const struct elf_image *image;       /* borrowed */
	bool read;
	struct addr_symbol *items;   size_t n, capacity;
	struct index index;                  /* by name */
};

/* Nothing is read before the first question. */
void addr_symbols_init(struct addr_symbols *s, const struct elf_image *e);
void addr_symbols_finish(struct addr_symbols *s);

/*
 * A symbol's value, the first one's of that name; of .symtab, or of .dynsym when there is no other. What looks like C++ is also
 * compared with demangled names, which takes a while. 0 when there is none.
 */
uint64_t addr_symbols_value(struct addr_symbols *s, const char *name, size_t length);

#endif
