/* The bytes of a chunk. Whatever is read is checked: a damaged page of the file must not become a number that looks right. */
#include "store/chunk.h"

#include <math.h>
#include <stdlib.h>
#include <zlib.h>
#include <zstd.h>

#define VERSION 1
#define FLAG_TIER 1
#define ONE_PRESENT 3           /* a run of one slot */

struct chunk_layout chunk_layout(unsigned metrics, bool tier)
{
	struct chunk_layout l = { .metrics = metrics & ((1u << METRICS) - 1), .tier = tier, .n = tier };
	for (int m = 0; m < METRICS; m++) {
		l.sum[m] = l.max[m] = l.last[m] = -1;
		if (!(metrics & 1u << m))
			continue;
		l.sum[m] = (int8_t)l.n++;
		if (tier && m >= INUSE_OBJECTS)
			l.max[m] = (int8_t)l.n++;
		if (tier)
			l.last[m] = (int8_t)l.n++;
		else
			l.last[m] = l.sum[m], l.max[m] = m >= INUSE_OBJECTS ? l.sum[m] : -1;
	}
	return l;
}

/* --- head --- */

/* Totals are whole numbers (sums of them), as long as they fit. */
static int64_t whole(double v)
{
	return v >= 9e18 ? (int64_t)9e18 : v <= -9e18 ? -(int64_t)9e18 : (int64_t)llround(v);
}

static void add_total(struct buf *out, double v, double *previous)
{
	varint_add_signed(out, (int64_t)((uint64_t)whole(v) - (uint64_t)whole(*previous)));
	*previous = v;
}

void chunk_head_write(const struct chunk_head *h, struct buf *out)
{
	size_t from = out->len;
	struct chunk_slot before = { 0 };
	varint_add(out, VERSION);
	varint_add(out, h->layout.tier ? FLAG_TIER : 0);
	varint_add(out, h->layout.metrics);
	varint_add(out, h->n);
	for (size_t i = 0; i < h->n; i++) {
		const struct chunk_slot *s = &h->slots[i];
		varint_add_signed(out, s->time_ms - before.time_ms);
		varint_add(out, s->samples);
		before.time_ms = s->time_ms;
		if (h->layout.tier) {
			varint_add(out, s->n);
			varint_add_signed(out, s->last_ms - s->time_ms);
		}
		for (int m = 0; m < METRICS; m++) {
			if (!(h->layout.metrics & 1u << m))
				continue;
			add_total(out, s->last[m], &before.last[m]);
			if (h->layout.tier)
				add_total(out, s->sum[m], &before.sum[m]);
			if (h->layout.tier && m >= INUSE_OBJECTS)
				add_total(out, s->max[m], &before.max[m]);
		}
	}
	uint32_t crc = out->failed ? 0 : (uint32_t)crc32(0, (const uint8_t *)out->data + from, (unsigned)(out->len - from));
	buf_add(out, &crc, sizeof crc);
}

static double next_total(struct varint_reader *r, int64_t *previous)
{
	*previous = (int64_t)((uint64_t)*previous + (uint64_t)varint_next_signed(r));
	return (double)*previous;
}

struct previous {
	int64_t time, sum[METRICS], max[METRICS], last[METRICS];
};

static void read_slot(struct varint_reader *r, const struct chunk_layout *l, struct previous *before, struct chunk_slot *s)
{
	before->time = (int64_t)((uint64_t)before->time + (uint64_t)varint_next_signed(r));
	s->time_ms = s->last_ms = before->time;
	s->samples = varint_next(r);
	s->n = 1;
	if (l->tier) {
		s->n = (uint32_t)varint_next(r);
		s->last_ms = (int64_t)((uint64_t)s->time_ms + (uint64_t)varint_next_signed(r));
	}
	for (int m = 0; m < METRICS; m++) {
		s->sum[m] = s->max[m] = s->last[m] = NAN;
		if (!(l->metrics & 1u << m))
			continue;
		s->last[m] = s->sum[m] = s->max[m] = next_total(r, &before->last[m]);
		if (l->tier)
			s->sum[m] = next_total(r, &before->sum[m]);
		if (l->tier && m >= INUSE_OBJECTS)
			s->max[m] = next_total(r, &before->max[m]);
	}
}

int chunk_head_read(const void *bytes, size_t n, struct chunk_head *ret, struct error *err)
{
	struct previous before = { 0 };
	uint32_t crc;
	if (n < sizeof crc)
		return error_set(err, E_FORMAT, "damaged: its head is cut off");
	const uint8_t *at = bytes;
	memcpy(&crc, at + n - sizeof crc, sizeof crc);
	if (crc != (uint32_t)crc32(0, at, (unsigned)(n - sizeof crc)))
		return error_set(err, E_FORMAT, "damaged: its head has another checksum than when it was written");
	struct varint_reader r = { at, at + n - sizeof crc, false };
	uint64_t version = varint_next(&r), flags = varint_next(&r), metrics = varint_next(&r), slots = varint_next(&r);
	if (r.failed || version != VERSION || flags > FLAG_TIER || metrics >= 1u << METRICS || slots == 0 || slots > CHUNK_SLOTS_MAX)
		return error_set(err, E_FORMAT, "damaged: its head makes no sense");
	struct chunk_head h = { chunk_layout((unsigned)metrics, flags & FLAG_TIER), calloc(slots, sizeof *h.slots), slots };
	if (!h.slots)
		return error_nomem(err, "a chunk's head");
	for (size_t i = 0; i < slots; i++)
		read_slot(&r, &h.layout, &before, &h.slots[i]);
	if (r.failed || r.at != r.end) {
		chunk_head_finish(&h);
		return error_set(err, E_FORMAT, "damaged: its head makes no sense");
	}
	*ret = h;
	return 0;
}

void chunk_head_finish(struct chunk_head *h)
{
	free(h->slots);
	*h = (struct chunk_head){ 0 };
}

/* --- writing --- */

static void all_buffers(struct chunk_writer *w, void (*what)(struct buf *))
{
	what(&w->infos);
	what(&w->ids);
	what(&w->runs);
	for (int c = 0; c < CHUNK_COLUMNS_MAX; c++)
		what(&w->values[c]);
	what(&w->whole);
}

static void begin_buffer(struct buf *b)
{
	buf_init(b, CHUNK_BODY_MAX);
}

void chunk_writer_init(struct chunk_writer *w)
{
	*w = (struct chunk_writer){ 0 };
	all_buffers(w, begin_buffer);
}

void chunk_writer_begin(struct chunk_writer *w, struct chunk_layout layout, unsigned slots)
{
	all_buffers(w, buf_reset);
	w->layout = layout;
	w->slots = slots;
	w->rows = w->previous = 0;
}

void chunk_writer_finish(struct chunk_writer *w)
{
	all_buffers(w, buf_finish);
	ZSTD_freeCCtx(w->compressor);
	w->compressor = NULL;
}

void chunk_add_info(struct chunk_writer *w, const void *bytes, size_t n)
{
	varint_add(&w->infos, n);
	buf_add(&w->infos, bytes, n);
}

static void add_id(struct chunk_writer *w, uint32_t row)
{
	varint_add(&w->ids, w->rows++ ? row - w->previous : row);
	w->previous = row;
}

void chunk_add_single(struct chunk_writer *w, uint32_t row, const int64_t *values)
{
	add_id(w, row);
	buf_addc(&w->runs, ONE_PRESENT);
	for (unsigned c = 0; c < w->layout.n; c++)
		varint_add_signed(&w->values[c], values[c]);
}

static void add_column(struct buf *to, const struct chunk_single *rows, size_t n, const int64_t *values, size_t stride)
{
	if (!buf_reserve(to, n * VARINT_MAX))
		return;
	uint8_t *end = (uint8_t *)to->data + to->len;
	for (size_t i = 0; i < n; i++)
		end = varint_write(end, varint_zigzag(values[rows[i].at * stride]));
	to->len = (size_t)(end - (uint8_t *)to->data);
}

void chunk_add_singles(struct chunk_writer *w, const struct chunk_single *rows, size_t n, const int64_t *values, size_t stride,
                       const int *from)
{
	for (size_t i = 0; i < n; i++)
		add_id(w, rows[i].row);
	if (buf_reserve(&w->runs, n)) {
		memset(w->runs.data + w->runs.len, ONE_PRESENT, n);
		w->runs.len += n;
	}
	for (unsigned c = 0; c < w->layout.n; c++)
		add_column(&w->values[c], rows, n, values + from[c], stride);
}

/* The first slot after at that is not like it. */
static unsigned end_of_run(unsigned at, unsigned slots, const uint8_t *present, const int64_t *values, unsigned n)
{
	const int64_t *first = values + (size_t)at * n, *v = first + n;
	unsigned end = at + 1;
	for (; end < slots && present[end] == present[at]; end++, v += n)
		if (present[at])
			for (unsigned c = 0; c < n; c++)
				if (v[c] != first[c])
					return end;
	return end;
}

void chunk_add_row(struct chunk_writer *w, uint32_t row, const uint8_t *present, const int64_t *values)
{
	unsigned n = w->layout.n;
	add_id(w, row);
	for (unsigned at = 0, end; at < w->slots; at = end) {
		const int64_t *first = values + (size_t)at * n;
		end = end_of_run(at, w->slots, present, values, n);
		varint_add(&w->runs, (uint64_t)(end - at) << 1 | (present[at] ? 1 : 0));
		if (present[at])
			for (unsigned c = 0; c < n; c++)
				varint_add_signed(&w->values[c], first[c]);
	}
}

static void add_part(struct buf *to, const struct buf *part)
{
	buf_add(to, part->data, part->len);
	to->failed = to->failed || part->failed;
}

int chunk_writer_end(struct chunk_writer *w, int level, struct buf *out, struct error *err)
{
	struct buf *scratch = &w->whole;
	varint_add(scratch, w->rows);
	varint_add(scratch, w->infos.len);
	varint_add(scratch, w->ids.len);
	varint_add(scratch, w->runs.len);
	for (unsigned c = 0; c < w->layout.n; c++)
		varint_add(scratch, w->values[c].len);
	add_part(scratch, &w->infos);
	add_part(scratch, &w->ids);
	add_part(scratch, &w->runs);
	for (unsigned c = 0; c < w->layout.n; c++)
		add_part(scratch, &w->values[c]);
	if (scratch->failed || !buf_reserve(out, ZSTD_compressBound(scratch->len)))
		return error_set(err, E_LIMIT, "no memory for a chunk, or it is larger than %zu MiB", CHUNK_BODY_MAX >> 20);
	if (!w->compressor && !(w->compressor = ZSTD_createCCtx()))
		return error_nomem(err, "compressing");
	ZSTD_CCtx *context = w->compressor;
	ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, level);
	ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1);
	size_t n = ZSTD_compress2(context, out->data + out->len, ZSTD_compressBound(scratch->len), scratch->data, scratch->len);
	if (ZSTD_isError(n))
		return error_set(err, E_NOMEM, "compressing a chunk: %s", ZSTD_getErrorName(n));
	out->len += n;
	return 0;
}

/* --- reading --- */

static int bad(struct error *err, const char *what)
{
	return error_set(err, E_FORMAT, "damaged: %s", what);
}

static bool cut_part(struct varint_reader *whole, uint64_t n, struct varint_reader *ret)
{
	const uint8_t *bytes = varint_bytes(whole, n);
	*ret = (struct varint_reader){ bytes, bytes ? bytes + n : NULL, bytes == NULL };
	return bytes != NULL;
}

static int cut_parts(struct chunk_reader *r, size_t n, struct error *err)
{
	struct varint_reader whole = { r->bytes, r->bytes + n, false };
	uint64_t rows = varint_next(&whole), infos = varint_next(&whole), ids = varint_next(&whole), runs = varint_next(&whole);
	uint64_t values[CHUNK_COLUMNS_MAX];
	for (unsigned c = 0; c < r->layout.n; c++)
		values[c] = varint_next(&whole);
	bool ok = rows <= UINT32_MAX && cut_part(&whole, infos, &r->infos) && cut_part(&whole, ids, &r->ids) &&
	          cut_part(&whole, runs, &r->runs);
	for (unsigned c = 0; ok && c < r->layout.n; c++)
		ok = cut_part(&whole, values[c], &r->values[c]);
	if (!ok || whole.failed || whole.at != whole.end)
		return bad(err, "its parts are not as long as they say");
	r->rows = (uint32_t)rows;
	return 0;
}

int chunk_open(struct chunk_reader *r, const struct chunk_head *h, const void *body, size_t n, struct error *err)
{
	unsigned long long size = ZSTD_getFrameContentSize(body, n);
	if (size == ZSTD_CONTENTSIZE_ERROR || size == ZSTD_CONTENTSIZE_UNKNOWN || size > CHUNK_BODY_MAX)
		return bad(err, "its body is no zstd frame of a size that could be");
	r->layout = h->layout;
	r->slots = (unsigned)h->n;
	r->rows = r->next = r->row = 0;
	r->failed = false;
	if (!memory_grow((void **)&r->bytes, &r->capacity, (size_t)size + 1, 1, CHUNK_BODY_MAX + 1) ||
	    (!r->decompressor && !(r->decompressor = ZSTD_createDCtx())))
		return error_nomem(err, "a chunk");
	size_t got = ZSTD_decompressDCtx(r->decompressor, r->bytes, (size_t)size, body, n);
	if (ZSTD_isError(got) || got != size)
		return bad(err, ZSTD_isError(got) ? ZSTD_getErrorName(got) : "its body is shorter than it says");
	return cut_parts(r, got, err);
}

void chunk_reader_finish(struct chunk_reader *r)
{
	free(r->bytes);
	if (!r->borrowed)
		ZSTD_freeDCtx(r->decompressor);
	*r = (struct chunk_reader){ 0 };
}

const uint8_t *chunk_next_info(struct chunk_reader *r, size_t *ret_n)
{
	uint64_t n = varint_next(&r->infos);
	*ret_n = (size_t)n;
	return varint_bytes(&r->infos, n);
}

bool chunk_read_row(struct chunk_reader *r, uint8_t *present, int64_t *values)
{
	unsigned n = r->layout.n, length;
	if (r->slots == 1)
		return chunk_next_run(r, 0, &length, (bool *)present, values);
	for (unsigned at = 0; at < r->slots; at += length) {
		int64_t run[CHUNK_COLUMNS_MAX] = { 0 };
		bool there;
		if (!chunk_next_run(r, at, &length, &there, run))
			return false;
		memset(present + at, there, length);
		for (unsigned i = at; i < at + length; i++)
			memcpy(values + (size_t)i * n, run, n * sizeof *run);
	}
	return true;
}
