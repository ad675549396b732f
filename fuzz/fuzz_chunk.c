/*
 * A chunk of any bytes behind right checksums: the head, and the body before it is compressed. Input: two bytes, how long the head
 * is; the head; the body. Refused with one line, or everything can be read to its end: rows ascend, runs fill all slots. The same bytes as
 * a block of gauges.
 */
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>

#include "store/sqlite_gauges.h"
#include "store/sqlite_translate.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void check_error(const struct error *err)
{
	if ((err->code != E_FORMAT && err->code != E_NOMEM) || !err->text[0] || strchr(err->text, '\n'))
		abort();
}

static void walk(struct chunk_reader *r)
{
	int64_t *values = malloc((size_t)r->slots * r->layout.n * sizeof *values), before = -1;
	uint8_t *present = malloc(r->slots);
	for (unsigned i = 0; i < r->slots; i++) {
		struct slot_info info;
		size_t length;
		const uint8_t *bytes = chunk_next_info(r, &length);
		if (bytes)
			slot_info_read(bytes, length, 0, &info);
	}
	while (values && present && chunk_next_row(r)) {
		if ((int64_t)r->row <= before)
			abort();
		before = r->row;
		if (!chunk_read_row(r, present, values) && !r->failed)
			abort();
	}
	free(values);
	free(present);
}

static void read_body(const struct chunk_head *h, const uint8_t *data, size_t n)
{
	struct chunk_reader r = { 0 };
	struct error err = { 0 };
	size_t room = ZSTD_compressBound(n);
	uint8_t *packed = malloc(room);
	size_t length = packed ? ZSTD_compress(packed, room, data, n, 1) : 0;
	if (packed && chunk_open(&r, h, packed, length, &err) == 0)
		walk(&r);
	else if (packed)
		check_error(&err);
	chunk_reader_finish(&r);
	free(packed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct chunk_head h;
	struct gauge_block g;
	struct error err = { 0 };
	if (n < 2 || n > 1 << 20)
		return 0;
	size_t length = (size_t)data[0] | (size_t)data[1] << 8;
	length = length < n - 2 ? length : n - 2;
	uint32_t crc = (uint32_t)crc32(0, data + 2, (unsigned)length);
	uint8_t *head = malloc(length + sizeof crc);
	if (!head)
		return 0;
	memcpy(head, data + 2, length);
	memcpy(head + length, &crc, sizeof crc);
	if (chunk_head_read(head, length + sizeof crc, &h, &err) == 0) {
		read_body(&h, data + 2 + length, n - 2 - length);
		chunk_head_finish(&h);
	} else {
		check_error(&err);
	}
	free(head);
	err = (struct error){ 0 };
	if (gauge_block_read(data, n, &g, &err) == 0)
		gauge_block_finish(&g);
	else
		check_error(&err);
	return 0;
}
