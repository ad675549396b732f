#include "base/nearest.h"

#include <string.h>

#define WORD_MAX 31

/* Edits (insert, delete, change, swap of neighbours) from a to b, both at most WORD_MAX long. */
static size_t distance(const char *a, size_t n, const char *b, size_t m)
{
	size_t rows[3][WORD_MAX + 1];
	size_t *before = rows[0], *last = rows[1], *now = rows[2];
	for (size_t j = 0; j <= m; j++)
		last[j] = j;
	for (size_t i = 1; i <= n; i++) {
		now[0] = i;
		for (size_t j = 1; j <= m; j++) {
			size_t best = last[j - 1] + (a[i - 1] != b[j - 1]);
			if (last[j] + 1 < best)
				best = last[j] + 1;
			if (now[j - 1] + 1 < best)
				best = now[j - 1] + 1;
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
			    before[j - 2] + 1 < best)
				best = before[j - 2] + 1;
			now[j] = best;
		}
		size_t *spare = before;
		before = last;
		last = now;
		now = spare;
	}
	return last[m];
}

const char *nearest_word(const char *text, const char *const *words, size_t n)
{
	size_t length = strlen(text);
	if (length == 0 || length > WORD_MAX)
		return NULL;
	const char *best = NULL;
	size_t best_distance = 1 + (length + 1) / 3;
	for (size_t i = 0; i < n; i++) {
		size_t m = strlen(words[i]);
		if (m > WORD_MAX)
			continue;
		size_t d = length >= 3 && strncmp(words[i], text, length) == 0
		               ? 1 : distance(text, length, words[i], m);
		if (d < best_distance) {
			best_distance = d;
			best = words[i];
		}
	}
	return best;
}
