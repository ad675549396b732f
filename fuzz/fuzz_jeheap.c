/* jemalloc's heap_v2 text: any bytes give a profile or an error, whole or in part, and the profile holds together. */
#include "fuzz_profile.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	fuzz_reader(jeheap_read, data, size);
	return 0;
}
