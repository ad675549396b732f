/*
 * Where functions begin by .eh_frame, which even a stripped binary keeps to unwind through: so that code without names
 * still groups by function ("lib.so!fn_2a300").
 */
#ifndef SYMBOL_EH_FRAME_H
#define SYMBOL_EH_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/elf_image.h"

#define EH_FRAME_NONE UINT64_MAX

/*
 * starts[i]: of the function that covers addresses[i], in the file's own addresses, or EH_FRAME_NONE. addresses is sorted,
 * without repeats. Damage leaves answers out. Nothing is allocated.
 */
void eh_frame_starts(const struct elf_image *e, const uint64_t *addresses, size_t n, uint64_t *starts);

#endif
