/* The older heap profile text of gperftools and jemalloc 3. */
#include "fuzz_profile.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	fuzz_reader(gperf_read, data, size);
	return 0;
}
