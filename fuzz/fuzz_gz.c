/*
 * The two ways to read gzip must agree, whatever the sizes of the pieces in which the stream is
 * read; and what is packed must unpack, also what inside other programs is packed as it comes.
 */
#include "format/gz_sink.h"

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

static int collect(void *context, const void *bytes, size_t n, struct error *err)
{
	(void)err;
	buf_add(context, bytes, n);
	return E_OK;
}

/* The bytes over and over, each time from another one on, until windows and chunks have come and gone; step bytes a call. */
static void pack_as_it_comes(const uint8_t *data, size_t n, size_t step)
{
	struct read_limits all = limits;
	struct error err = { 0 };
	struct buf packed, whole, again;
	buf_init(&packed, 1 << 20);
	buf_init(&whole, 1 << 20);
	buf_init(&again, 1 << 20);
	for (size_t i = 0; n > 0 && whole.len < 150000; i++)
		buf_add(&whole, data + i % n, n - i % n);
	struct gz_sink *g = gz_sink_new(collect, &packed);
	if (!g)
		abort();
	for (size_t at = 0; at < whole.len; at += step)
		if (gz_sink_add(g, whole.data + at, whole.len - at < step ? whole.len - at : step, &err))
			abort();
	if (gz_sink_end(g, &err))
		abort();
	all.gzip_ratio = 2000;
	all.input_bytes = 1 << 20;
	if (gz_inflate(packed.data, packed.len, "packed", &all, &again, &err) || again.len != whole.len ||
	    (whole.len && memcmp(again.data, whole.data, whole.len) != 0))
		abort();
	gz_sink_free(g);
	buf_finish(&packed);
	buf_finish(&whole);
	buf_finish(&again);
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
	if (n % 16 == 1)
		pack_as_it_comes(data, n, step);
	buf_finish(&whole);
	buf_finish(&streamed);
	return 0;
}
