/* Perf maps of any bytes: what is found lies in the text, ends, and is on one line. */
#include "symbol/perf_map.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct perf_map m;
	struct error err;
	char *text = malloc(n + 1);
	if (!text)
		return 0;
	if (n)
		memcpy(text, data, n);
	text[n] = '\0';
	if (perf_map_parse(&m, text, n, &err))
		abort();
	for (uint64_t address = 0; address < 0x4000; address += 0x10) {
		const char *name = perf_map_find(&m, address);
		if (name && (name < text || name + strlen(name) > text + n || strchr(name, '\n')))
			abort();
	}
	perf_map_find(&m, UINT64_MAX);
	perf_map_finish(&m);
	return 0;
}
