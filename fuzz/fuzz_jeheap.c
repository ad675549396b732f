/*
 * jemalloc's heap_v2 text: any bytes give a profile or an error, whole or in part, and the profile holds together. What
 * is converted while it is read says the same, or fails for the same reason.
 */
#include "../tests/format/stream_helpers.h"
#include "fuzz_profile.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct read_limits limits = { .input_bytes = 1 << 20, .profile_bytes = 1 << 24, .depth = 64 };
	bool both;
	fuzz_reader(jeheap_read, data, size);
	must_agree(data, size, &limits, JEHEAP_COUNTS_BY_HEADER, &both);
	must_agree(data, size, &limits, JEHEAP_COUNTS_RAW, &both);
	return 0;
}
