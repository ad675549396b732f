/*
 * A block of answers of any bytes: refused with one line, or everything it hands out can be read to its end (the sanitizer
 * watches the reads) and every address is found where it is.
 */
#include "symbol/answers.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static size_t touched;

static void walk(const struct answers *a)
{
	for (size_t i = 0; i < a->n; i++) {
		if (answers_find(a, a->addresses[i]) != i || a->quality[i] > ANSWER_DEBUG)
			abort();
		for (uint32_t k = a->first[i]; k < a->first[i + 1]; k++) {
			const struct answer_frame *f = &a->frames[k];
			touched += strlen(a->strings + f->function) + strlen(a->strings + f->system_name) + strlen(a->strings + f->file);
		}
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct answers a;
	struct error err = { 0 };
	uint64_t *block = malloc(n + 8);
	if (!block)
		return 0;
	/* Behind it lies nothing, and it is aligned as a mapping is. */
	memcpy(block, data, n);
	uint64_t *exact = realloc(block, n ? n : 1);
	if (!exact)
		exact = block;
	if (answers_open(&a, exact, n, &err) == E_OK)
		walk(&a);
	else if (err.code != E_FORMAT || !err.text[0] || strchr(err.text, '\n'))
		abort();
	free(exact);
	return 0;
}
