/* Lines and frames read ahead by a thread are those that are read without. The first byte is the size of the blocks. */
#include "../tests/format/ahead_log.h"

#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void read_text(const uint8_t *data, size_t n, size_t block_bytes, struct buf *log)
{
	static const struct read_limits limits = { .profile_bytes = (size_t)64 << 20, .depth = 20 };
	struct stream in;
	buf_init(log, BUF_MAX_DEFAULT);
	stream_open_memory(&in, "x.heap", data, n);
	ahead_log(&in, block_bytes, (size_t)1 << 20, UINT64_MAX, &limits, log);
	stream_close(&in);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct buf direct, ahead;
	if (n == 0)
		return 0;
	read_text(data + 1, n - 1, 0, &direct);
	read_text(data + 1, n - 1, (size_t)data[0] + 1, &ahead);
	if (direct.len != ahead.len || memcmp(direct.data, ahead.data, ahead.len)) {
		fprintf(stderr, "--- without:\n%s\n--- with:\n%s\n", direct.data, ahead.data);
		abort();
	}
	buf_finish(&direct);
	buf_finish(&ahead);
	return 0;
}
