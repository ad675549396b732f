/*
 * Sorting sequences of numbers (stacks of frames) as words in a dictionary: by the first number, then the
 * second, ...; a sequence comes before those that continue it. Each number is looked
 * at about once, where comparing pairs would read long common beginnings again and again.
 */
#ifndef BASE_SEQUENCES_H
#define BASE_SEQUENCES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* words[first .. first + n) of some array; numbers below UINT32_MAX. item: whatever the caller likes. */
struct sequence {
	uint64_t first;
	uint32_t n;
	uint32_t item;
};

/* Order of two items whose sequences are equal. */
typedef int sequence_tie(const void *context, uint32_t item, uint32_t other);

/* tie may be NULL: then the smaller item comes first. False when out of memory. */
bool sequences_sort(const uint32_t *words, struct sequence *sequences, size_t n, sequence_tie *tie,
                    const void *context);

#endif
