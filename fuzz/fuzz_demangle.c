/*
 * Mangled names of any bytes: text no longer than the bound, ended, in every mode; names that are not mangled stay
 * themselves. And any text at all reduced by its brackets.
 */
#include "symbol/demangle.h"

#include <stdlib.h>
#include <string.h>

#define LONGEST ((size_t)512 << 10)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void check(const char *name, enum demangle_mode mode, bool reduce)
{
	struct buf b;
	buf_init(&b, LONGEST);
	buf_adds(&b, "> ");
	(reduce ? demangle_reduce : demangle)(name, mode, &b);
	if (b.failed || b.len < 2 || memcmp(b.data, "> ", 2) != 0 || strlen(b.data) != b.len || (*name && b.len == 2))
		abort();
	if (mode == DEMANGLE_NONE && strcmp(b.data + 2, name) != 0)
		abort();
	buf_finish(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	char *name = malloc(n + 1);
	if (!name)
		return 0;
	memcpy(name, data, n);
	name[n] = '\0';
	size_t shorter = demangle_without_suffix(name);
	if (shorter > strlen(name) || (*name && shorter == 0))
		abort();
	for (enum demangle_mode mode = DEMANGLE_FULL; mode <= DEMANGLE_NONE; mode++) {
		check(name, mode, false);
		check(name, mode, true);
	}
	free(name);
	return 0;
}
