/*
 * The two ways to read gzip must agree, whatever the sizes of the pieces in which the stream is
 * read; and what is packed must unpack.
 */
#include "format/format.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static const struct read_limits limits = {
	.input_bytes = 1 << 18,
	.profile_bytes = 1 << 24,
	.depth = 1000,
	.gzip_ratio = 50,
	.gzip_ratio_from = 1 << 14,
};

static int stream_all(const uint8_t *data, size_t n, size_t step, struct buf *out)
{
	struct error err = { 0 };
	struct stream in, s;
	size_t got = 1;
	stream_open_memory(&in, "fuzz", data, n);
	if (gz_stream(&in, &limits, &s, &err))
		abort();
	int rc = E_OK;
	while (!rc && got > 0) {
		if (!buf_reserve(out, step))
			abort();
		rc = stream_read(&s, out->data + out->len, step, &got, &err);
		out->len += rc ? 0 : got;
	}
	if (rc && (!err.text[0] || strchr(err.text, '\n')))
		abort();
	stream_close(&s);
	stream_close(&in);
	return rc;
}

static void pack_and_unpack(const uint8_t *data, size_t n)
{
	struct error err = { 0 };
	struct buf packed, whole;
	buf_init(&packed, 1 << 23);
	buf_init(&whole, 1 << 23);
	if (gz_deflate(data, n, &packed, &err))
		abort();
	if (gz_inflate(packed.data, packed.len, "packed", &limits, &whole, &err) == E_OK) {
		if (whole.len != n || (n && memcmp(whole.data, data, n) != 0))
			abort();
	} else if (err.code != E_LIMIT) {
		abort();
	}
	buf_finish(&whole);
	buf_finish(&packed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct error err = { 0 };
	struct buf whole, streamed;
	size_t step = n ? (size_t)data[n - 1] * data[n / 2] + 1 : 1;
	buf_init(&whole, 1 << 23);
	buf_init(&streamed, 1 << 23);
	int rc = gz_inflate(data, n, "fuzz", &limits, &whole, &err);
	int stream_rc = stream_all(data, n, step, &streamed);
	/* The ratio is taken of the whole there, of what was read so far here; and zlib checks more of the header. */
	if (rc == E_OK && stream_rc == E_OK &&
	    (whole.len != streamed.len || memcmp(whole.data, streamed.data, whole.len) != 0))
		abort();
	if (rc && rc != E_LIMIT && stream_rc == E_OK)
		abort();
	if (n % 16 == 0)        /* packing is slow, and what it does depends little on the bytes */
		pack_and_unpack(data, n);
	buf_finish(&whole);
	buf_finish(&streamed);
	return 0;
}
