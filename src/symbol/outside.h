/*
 * Names of code that is in no file: what a JIT compiler made, by the map that it writes for perf, and the kernel's vdso.
 *
 * A vdso is the kernel's, and another kernel has another one: this process reads its own, and believes in it only when the
 * profile has the same build id for its mapping.
 */
#ifndef SYMBOL_OUTSIDE_H
#define SYMBOL_OUTSIDE_H

#include "base/elf_image.h"
#include "symbol/perf_map.h"

struct outside {
	struct perf_map map;
	struct elf_image vdso;               /* n 0: there is none */
	char vdso_id[129];                   /* hex */
};

/* perf_map: path, or NULL. What can't be read is a line in warnings (may be NULL). */
void outside_init(struct outside *o, const char *perf_map, struct buf *warnings);
void outside_finish(struct outside *o);

/*
 * The function at an address of the process, which is at offset in a mapping of that name ("" for anonymous memory) and
 * build id (hex, "" when not known); borrowed from o. NULL: not known.
 */
const char *outside_name(const struct outside *o, const char *mapping, const char *build_id, uint64_t address, uint64_t offset);

/* This process' vdso's build id, in hex; "" when it has none. Valid until o ends. */
const char *outside_vdso_id(const struct outside *o);

#endif
