/* What was meant, for messages about words that aren't known. */
#ifndef BASE_NEAREST_H
#define BASE_NEAREST_H

#include <stddef.h>

/* Of n words the one most like text, or NULL when none is near. */
const char *nearest_word(const char *text, const char *const *words, size_t n);

#endif
