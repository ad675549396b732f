/*
 * profile.proto: what is read, what is refused and in which words, what is written.
 */
#include "format/pprof_samples.h"

#include "format/proto.h"
#include "profile/operations.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static const struct read_limits limits = {
	.input_bytes = (size_t)1 << 30,
	.profile_bytes = (size_t)1 << 30,
	.depth = 100,
	.gzip_ratio = 200,
	.gzip_ratio_from = (size_t)1 << 20,
};

/* --- a profile made by hand, message by message ---------------------------- */

static void number(struct buf *b, unsigned field, uint64_t value)
{
	uint8_t bytes[2 * PROTO_VARINT_MAX];
	uint8_t *end = proto_put_varint(bytes, (uint64_t)field << 3 | PROTO_VARINT);
	buf_add(b, bytes, (size_t)(proto_put_varint(end, value) - bytes));
}

static void bytes(struct buf *b, unsigned field, const void *data, size_t n)
{
	uint8_t head[2 * PROTO_VARINT_MAX];
	uint8_t *end = proto_put_varint(head, (uint64_t)field << 3 | PROTO_BYTES);
	buf_add(b, head, (size_t)(proto_put_varint(end, n) - head));
	buf_add(b, data, n);
}

static void string(struct buf *b, const char *text)
{
	bytes(b, PPROF_STRING_TABLE, text, strlen(text));
}

/* A message of numbers: pairs of field and value, ended by 0. */
static void message(struct buf *b, unsigned field, ...)
{
	struct buf inner;
	va_list args;
	unsigned inner_field;
	buf_init(&inner, 1 << 20);
	va_start(args, field);
	while ((inner_field = va_arg(args, unsigned)) != 0)
		number(&inner, inner_field, va_arg(args, uint64_t));
	va_end(args);
	bytes(b, field, inner.data, inner.len);
	buf_finish(&inner);
}

#define U(x) ((uint64_t)(x))

/* "" space bytes main /bin/x thread t1 true */
enum { S_SPACE = 1, S_BYTES, S_MAIN, S_FILE, S_THREAD, S_T1, S_BASE, S_TRUE, S_COUNT };

static void strings(struct buf *b)
{
	static const char *const texts[S_COUNT] = { "",       "space", "bytes",       "main", "/bin/x",
		                                    "thread", "t1",    "pprof::base", "true" };
	for (int i = 0; i < S_COUNT; i++)
		string(b, texts[i]);
}

static void location_with_line(struct buf *b, uint64_t id, uint64_t mapping, uint64_t function)
{
	struct buf l;
	buf_init(&l, 1 << 20);
	number(&l, 1, id);
	number(&l, 2, mapping);
	number(&l, 3, 0x401000 + id);
	message(&l, 4, 1u, function, 2u, U(7), 0u);
	bytes(b, PPROF_LOCATION, l.data, l.len);
	buf_finish(&l);
}

/* Types, mapping 1, function 1, locations 1 and 2; no sample, no strings. */
static void tables(struct buf *b)
{
	message(b, PPROF_SAMPLE_TYPE, 1u, U(S_SPACE), 2u, U(S_BYTES), 0u);
	message(b, PPROF_MAPPING, 1u, U(1), 2u, U(0x400000), 3u, U(0x500000), 5u, U(S_FILE), 0u);
	message(b, PPROF_FUNCTION, 1u, U(1), 2u, U(S_MAIN), 0u);
	location_with_line(b, 1, 1, 1);
	location_with_line(b, 2, 1, 1);
}

static void whole(struct buf *b)
{
	buf_init(b, 1 << 20);
	tables(b);
	message(b, PPROF_SAMPLE, 1u, U(1), 1u, U(2), 2u, U(100), 0u);
	strings(b);
}

static struct profile *must_read(const struct buf *b)
{
	struct profile *p = NULL;
	struct error err = { 0 };
	int rc = pprof_read(b->data, b->len, "x.pb", &limits, &p, &err);
	if (rc)
		fail_msg("%s", err.text);
	return p;
}

/* Refused with that code and exactly these words; finishes b. */
static void must_refuse(struct buf *b, int code, const char *words)
{
	struct profile *p = NULL;
	struct error err = { 0 };
	/* A copy of its own, so that a sanitizer sees reads past the end. */
	char *copy = malloc(b->len + !b->len);
	memcpy(copy, b->data ? b->data : "", b->len);
	int rc = pprof_read(copy, b->len, "x.pb", &limits, &p, &err);
	free(copy);
	buf_finish(b);
	assert_int_equal(rc, code);
	assert_int_equal(err.code, code);
	assert_string_equal(err.text, words);
	assert_null(p);
}

/* --- what is read ---------------------------------------------------------- */

static void reads_a_whole_profile(void **state)
{
	struct buf b;
	(void)state;
	whole(&b);
	message(&b, PPROF_PERIOD_TYPE, 1u, U(S_SPACE), 2u, U(S_BYTES), 0u);
	number(&b, PPROF_PERIOD, 524288);
	number(&b, PPROF_TIME_NANOS, 12345);
	struct profile *p = must_read(&b);
	assert_int_equal(p->n_samples, 1);
	assert_int_equal(p->values[0], 100);
	assert_int_equal(p->stacks[p->samples[0].stack].n, 2);
	assert_int_equal(p->locations[0].address, 0x401001);
	assert_int_equal(p->lines[0].line, 7);
	assert_string_equal(profile_text(p, p->functions[0].name), "main");
	assert_string_equal(profile_text(p, p->mappings[0].file), "/bin/x");
	assert_int_equal(p->n_sources, 1);
	assert_true(p->sources[0].rate == 524288);
	assert_int_equal(p->sources[0].time_nanos, 12345);
	assert_int_equal(p->metric[INUSE_SPACE], 0);
	assert_string_equal(profile_text(p, p->sources[0].name), "x.pb");
	profile_free(p);
	buf_finish(&b);
}

static void rate_only_for_heaps(void **state)
{
	struct buf b;
	(void)state;
	buf_init(&b, 1 << 20);
	message(&b, PPROF_SAMPLE_TYPE, 1u, U(S_MAIN), 2u, U(S_BYTES), 0u);
	message(&b, PPROF_PERIOD_TYPE, 1u, U(S_SPACE), 2u, U(S_BYTES), 0u);
	number(&b, PPROF_PERIOD, 524288);
	strings(&b);
	struct profile *p = must_read(&b);
	assert_true(p->sources[0].rate == 0);
	assert_int_equal(p->period, 524288);
	assert_int_equal(p->n_samples, 0);
	profile_free(p);
	buf_finish(&b);
}

/* Strings first, a mapping that isn't there, no frames, a negative value, twice the same string, no UTF-8. */
static void reads_what_pprof_reads(void **state)
{
	struct buf b;
	(void)state;
	buf_init(&b, 1 << 20);
	strings(&b);
	string(&b, "main");
	bytes(&b, PPROF_STRING_TABLE, "\xff\xfe\0z", 4);
	message(&b, PPROF_SAMPLE, 2u, (uint64_t)-5, 0u);
	message(&b, PPROF_SAMPLE, 1u, U(3), 1u, U(4), 2u, (uint64_t)INT64_MIN, 0u);
	location_with_line(&b, 3, 77, 9);
	location_with_line(&b, 4, 0, 8);
	message(&b, PPROF_FUNCTION, 1u, U(9), 2u, U(S_COUNT), 0u);
	message(&b, PPROF_FUNCTION, 1u, U(8), 2u, U(S_COUNT + 1), 0u);
	message(&b, PPROF_SAMPLE_TYPE, 1u, U(S_SPACE), 2u, U(S_BYTES), 0u);
	number(&b, 5000, 1);
	struct profile *p = must_read(&b);
	assert_int_equal(p->n_samples, 2);
	assert_int_equal(p->values[0], -5);
	assert_true(p->values[1] == INT64_MIN);
	assert_int_equal(p->stacks[p->samples[0].stack].n, 0);
	assert_int_equal(p->locations[0].mapping, PROFILE_NONE);
	assert_int_equal(p->locations[1].mapping, PROFILE_NONE);
	assert_string_equal(profile_text(p, p->functions[0].name), "main");
	assert_int_equal(strings_length(&p->strings, p->functions[1].name), 4);
	profile_free(p);
	buf_finish(&b);
}

/* rust-jemalloc-pprof: mappings from 0 to 2^64 - 1. */
static void reads_endless_mapping(void **state)
{
	struct buf b;
	(void)state;
	whole(&b);
	message(&b, PPROF_MAPPING, 1u, U(2), 3u, UINT64_MAX, 0u);
	struct profile *p = must_read(&b);
	assert_true(p->mappings[1].limit == UINT64_MAX);
	profile_free(p);
	buf_finish(&b);
}

static void reads_sparse_ids(void **state)
{
	struct buf b;
	(void)state;
	buf_init(&b, 1 << 20);
	message(&b, PPROF_SAMPLE_TYPE, 1u, U(S_SPACE), 2u, U(S_BYTES), 0u);
	message(&b, PPROF_FUNCTION, 1u, UINT64_MAX, 2u, U(S_MAIN), 0u);
	for (uint64_t i = 0; i < 1000; i++)
		location_with_line(&b, (i + 1) << 40, 0, UINT64_MAX);
	for (uint64_t i = 0; i < 1000; i++)
		message(&b, PPROF_SAMPLE, 1u, (1000 - i) << 40, 2u, i, 0u);
	strings(&b);
	struct profile *p = must_read(&b);
	assert_int_equal(p->n_samples, 1000);
	for (size_t i = 0; i < 1000; i++)
		assert_int_equal(p->frames[p->stacks[p->samples[i].stack].first], 999 - i);
	profile_free(p);
	buf_finish(&b);
}

static void understands_labels(void **state)
{
	struct buf b, sample;
	(void)state;
	buf_init(&b, 1 << 20);
	buf_init(&sample, 1 << 20);
	tables(&b);
	message(&sample, 3, 1u, U(S_THREAD), 2u, U(S_T1), 0u);
	message(&sample, 3, 1u, U(S_BYTES), 3u, U(4096), 0u);
	number(&sample, 2, 1);
	bytes(&b, PPROF_SAMPLE, sample.data, sample.len);
	strings(&b);
	struct profile *p = must_read(&b);
	const struct label_set *set = &p->label_sets[p->samples[0].labels];
	assert_string_equal(profile_text(p, set->thread), "t1");
	assert_int_equal(set->block_size, 4096);
	profile_free(p);
	buf_finish(&sample);
	buf_finish(&b);
}

/* What pprof -diff_base writes is a diff for us, too, and comes out again as it was. */
static void understands_a_base(void **state)
{
	struct buf b, sample, again;
	(void)state;
	whole(&b);
	buf_init(&sample, 1 << 20);
	number(&sample, 1, 2);
	number(&sample, 2, (uint64_t)-60);
	message(&sample, 3, 1u, U(S_BASE), 2u, U(S_TRUE), 0u);
	bytes(&b, PPROF_SAMPLE, sample.data, sample.len);
	struct profile *p = must_read(&b);
	assert_int_equal(p->n_sources, 2);
	assert_false(p->sources[p->samples[0].source].base);
	assert_true(p->sources[p->samples[1].source].base);
	assert_int_equal(p->values[1], 60);
	assert_int_equal(p->samples[1].labels, 0);
	buf_init(&again, 1 << 20);
	struct error err;
	assert_int_equal(pprof_write(p, &(struct pprof_write_options){ 0 }, &again, &err), E_OK);
	struct profile *q = must_read(&again);
	assert_int_equal(q->values[1], 60);
	assert_true(q->sources[q->samples[1].source].base);
	assert_non_null(memmem(again.data, again.len, "pprof::base", 11));
	profile_free(p);
	profile_free(q);
	buf_finish(&again);
	buf_finish(&sample);
	buf_finish(&b);
}

/* --- what is refused -------------------------------------------------------- */

static void refuses_bad_strings(void **state)
{
	struct buf b;
	(void)state;
	buf_init(&b, 1 << 20);
	must_refuse(&b, E_TRUNCATED, "x.pb: empty, not a pprof profile");
	buf_init(&b, 1 << 20);
	tables(&b);
	must_refuse(&b, E_FORMAT,
	            "x.pb: byte 62: there is no string_table; this is not a whole pprof profile");
	buf_init(&b, 1 << 20);
	string(&b, "first");
	must_refuse(&b, E_FORMAT, "x.pb: byte 0: string_table[0]: the first string is not the empty one");
	buf_init(&b, 1 << 20);
	number(&b, PPROF_STRING_TABLE, 3);
	must_refuse(&b, E_FORMAT,
	            "x.pb: byte 0: string_table[0]: the wire type says a number, it should be bytes "
	            "with a length");
	whole(&b);
	number(&b, PPROF_DEFAULT_SAMPLE_TYPE, 99);
	must_refuse(&b, E_FORMAT,
	            "x.pb: byte 131: default_sample_type: string 99 does not exist, string_table has 9");
	whole(&b);
	message(&b, PPROF_FUNCTION, 1u, U(2), 4u, (uint64_t)-1, 0u);
	must_refuse(&b, E_FORMAT,
	            "x.pb: byte 131: function[1].filename: string -1 does not exist, string_table has 9");
	whole(&b);
	message(&b, PPROF_SAMPLE_TYPE, 2u, U(9), 0u);
	must_refuse(&b, E_FORMAT,
	            "x.pb: byte 131: sample_type[1].unit: string 9 does not exist, string_table has 9");
	whole(&b);
	number(&b, PPROF_COMMENT, 10);
	must_refuse(&b, E_FORMAT,
	            "x.pb: byte 131: comment[0]: string 10 does not exist, string_table has 9");
}

static void refuses_bad_samples(void **state)
{
	struct buf b;
	(void)state;
	whole(&b);
	message(&b, PPROF_SAMPLE, 1u, U(1), 1u, U(3), 2u, U(1), 0u);
	must_refuse(&b, E_FORMAT,
	            "x.pb: byte 135: sample[1].location_id[1]: there is no location with the id 3");
	whole(&b);
	message(&b, PPROF_SAMPLE, 1u, U(0), 2u, U(1), 0u);
	must_refuse(&b, E_FORMAT,
	            "x.pb: byte 133: sample[1].location_id[0]: there is no location with the id 0");
	whole(&b);
	message(&b, PPROF_SAMPLE, 2u, U(1), 2u, U(1), 0u);
	must_refuse(&b, E_FORMAT,
	            "x.pb: byte 131: sample[1].value: the sample has 2 values, but there are 1 sample "
	            "types");
	whole(&b);
	message(&b, PPROF_SAMPLE, 1u, U(1), 0u);
	must_refuse(&b, E_FORMAT,
	            "x.pb: byte 131: sample[1].value: the sample has 0 values, but there are 1 sample "
	            "types");
	buf_init(&b, 1 << 20);
	message(&b, PPROF_SAMPLE, 2u, U(1), 0u);
	strings(&b);
	must_refuse(&b, E_FORMAT, "x.pb: byte 0: sample[0]: there is a sample, but no sample_type");
	whole(&b);
	bytes(&b, PPROF_SAMPLE, "\x1a\x02\x08\x63\x10\x01", 6);
	must_refuse(&b, E_FORMAT,
	            "x.pb: byte 133: sample[1].label[0].key: string 99 does not exist, string_table has 9");
	whole(&b);
	bytes(&b, PPROF_SAMPLE, "\x18\x01\x10\x01", 4);
	must_refuse(&b, E_FORMAT,
	            "x.pb: byte 133: sample[1].label[0]: the wire type says a number, it should be bytes "
	            "with a length");
	whole(&b);
	bytes(&b, PPROF_SAMPLE, "\x0d\x01\0\0\0\x10\x01", 7);
	must_refuse(&b, E_FORMAT,
	            "x.pb: byte 133: sample[1].location_id: the wire type says 4 fixed bytes, it should "
	            "be bytes with a length");
	whole(&b);
	bytes(&b, PPROF_SAMPLE, "\x12\x01\x81", 3);
	must_refuse(&b, E_FORMAT,
	            "x.pb: byte 135: sample[1].value[0]: the packed numbers end inside a varint");
}

static void refuses_bad_ids(void **state)
{
	struct buf b;
	(void)state;
	whole(&b);
	message(&b, PPROF_MAPPING, 2u, U(1), 0u);
	must_refuse(&b, E_FORMAT, "x.pb: byte 131: mapping[1].id: the id is missing or 0");
	whole(&b);
	message(&b, PPROF_MAPPING, 1u, U(1), 0u);
	must_refuse(&b, E_FORMAT, "x.pb: byte 131: mapping[1].id: the id 1 was given before");
	whole(&b);
	message(&b, PPROF_FUNCTION, 1u, U(0), 0u);
	must_refuse(&b, E_FORMAT, "x.pb: byte 131: function[1].id: the id is missing or 0");
	whole(&b);
	message(&b, PPROF_FUNCTION, 1u, U(1), 0u);
	must_refuse(&b, E_FORMAT, "x.pb: byte 131: function[1].id: the id 1 was given before");
	whole(&b);
	message(&b, PPROF_LOCATION, 3u, U(1), 0u);
	must_refuse(&b, E_FORMAT, "x.pb: byte 131: location[2].id: the id is missing or 0");
	whole(&b);
	location_with_line(&b, 2, 0, 1);
	must_refuse(&b, E_FORMAT, "x.pb: byte 131: location[2].id: the id 2 was given before");
	whole(&b);
	message(&b, PPROF_LOCATION, 1u, (uint64_t)1 << 60, 0u);
	message(&b, PPROF_LOCATION, 1u, (uint64_t)1 << 60, 0u);
	must_refuse(&b, E_FORMAT,
	            "x.pb: byte 143: location[3].id: the id 1152921504606846976 was given before");
	whole(&b);
	location_with_line(&b, 3, 0, 2);
	must_refuse(&b, E_FORMAT,
	            "x.pb: byte 142: location[2].line[0].function_id: there is no function with the id 2");
	whole(&b);
	location_with_line(&b, 3, 0, 0);
	must_refuse(&b, E_FORMAT,
	            "x.pb: byte 142: location[2].line[0].function_id: there is no function with the id 0");
}

/* cat a b: another time, or twice the types, or twice the ids. */
static void refuses_concatenated_profiles(void **state)
{
	struct buf b, twice;
	(void)state;
	whole(&b);
	number(&b, PPROF_TIME_NANOS, 5);
	buf_init(&twice, 1 << 20);
	buf_add(&twice, b.data, b.len);
	buf_add(&twice, b.data, b.len);
	must_refuse(&twice, E_FORMAT,
	            "x.pb: byte 264: time_nanos: given before; these are two profiles in one file, split "
	            "or merge them");
	buf_finish(&b);
	whole(&b);
	buf_init(&twice, 1 << 20);
	buf_add(&twice, b.data, b.len);
	buf_add(&twice, b.data, b.len);
	must_refuse(&twice, E_FORMAT, "x.pb: byte 137: mapping[1].id: the id 1 was given before");
	buf_finish(&b);
}

static void refuses_bad_wire(void **state)
{
	struct buf b;
	(void)state;
	whole(&b);
	buf_add(&b, "\x50", 1);
	must_refuse(&b, E_TRUNCATED, "x.pb: byte 132: the file ends inside a field; it was cut");
	whole(&b);
	buf_add(&b, "\xff\xff", 2);
	must_refuse(&b, E_TRUNCATED, "x.pb: byte 131: the file ends inside a field; it was cut");
	whole(&b);
	buf_add(&b, "\x50\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", 11);
	must_refuse(&b, E_FORMAT, "x.pb: byte 132: a varint of more than 64 bits");
	whole(&b);
	buf_add(&b, "\x50\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 12);
	must_refuse(&b, E_FORMAT, "x.pb: byte 132: a varint of more than 64 bits");
	whole(&b);
	buf_add(&b, "\x12\x05\x08\x01", 4);
	must_refuse(&b, E_TRUNCATED,
	            "x.pb: byte 131: field 2 is 5 bytes long, but only 2 follow; the file was cut");
	whole(&b);
	bytes(&b, PPROF_LOCATION, "\x08\x03\x22\x09\x08\x01", 6);
	must_refuse(&b, E_FORMAT,
	            "x.pb: byte 135: location[2]: field 4 is 9 bytes long, but only 2 follow");
	whole(&b);
	buf_add(&b, "\x13", 1);
	must_refuse(&b, E_FORMAT, "x.pb: byte 131: field 2 is a group, which pprof has not");
	whole(&b);
	bytes(&b, PPROF_FUNCTION, "\x0c", 1);
	must_refuse(&b, E_FORMAT, "x.pb: byte 133: function[1]: field 1 is a group, which pprof has not");
	whole(&b);
	buf_add(&b, "\x16", 1);
	must_refuse(&b, E_FORMAT, "x.pb: byte 131: field 2 has the unknown wire type 6");
	whole(&b);
	buf_add(&b, "\0\0", 2);
	must_refuse(&b, E_FORMAT, "x.pb: byte 131: a field with the number 0");
	whole(&b);
	bytes(&b, PPROF_PERIOD, "", 0);
	must_refuse(&b, E_FORMAT,
	            "x.pb: byte 131: period: the wire type says bytes with a length, it should be a number");
	whole(&b);
	number(&b, PPROF_SAMPLE, 0);
	must_refuse(&b, E_FORMAT,
	            "x.pb: byte 131: sample[1]: the wire type says a number, it should be bytes with a "
	            "length");
	whole(&b);
	bytes(&b, PPROF_MAPPING, "\x0a\x00", 2);
	must_refuse(&b, E_FORMAT,
	            "x.pb: byte 133: mapping[1].id: the wire type says bytes with a length, it should be "
	            "a number");
}

static void refuses_deep_stacks(void **state)
{
	struct buf b, ids, sample;
	(void)state;
	buf_init(&ids, 1 << 20);
	buf_init(&sample, 1 << 20);
	for (uint32_t i = 0; i < limits.depth; i++)
		buf_addc(&ids, 1);
	bytes(&sample, 1, ids.data, ids.len);
	number(&sample, 2, 1);
	whole(&b);
	bytes(&b, PPROF_SAMPLE, sample.data, sample.len);
	struct profile *p = must_read(&b);
	assert_int_equal(p->stacks[p->samples[1].stack].n, limits.depth);
	profile_free(p);
	buf_finish(&b);
	number(&sample, 1, 1);
	whole(&b);
	bytes(&b, PPROF_SAMPLE, sample.data, sample.len);
	must_refuse(&b, E_LIMIT,
	            "x.pb: byte 237: sample[1].location_id[100]: the stack has more than 100 frames");
	buf_finish(&ids);
	buf_finish(&sample);
}

static void refuses_large_input(void **state)
{
	struct read_limits small = limits;
	struct profile *p;
	struct error err;
	struct buf b;
	(void)state;
	whole(&b);
	small.input_bytes = 100;
	assert_int_equal(pprof_read(b.data, b.len, "x.pb", &small, &p, &err), E_LIMIT);
	assert_string_equal(err.text, "x.pb: larger than the limit of 100 bytes");
	small = limits;
	small.profile_bytes = 64;
	assert_int_equal(pprof_read(b.data, b.len, "x.pb", &small, &p, &err), E_LIMIT);
	buf_finish(&b);
}

/* --- what is written -------------------------------------------------------- */

static void write_profile(const struct profile *p, bool gzip, struct buf *raw)
{
	struct buf out;
	struct error err = { 0 };
	buf_init(&out, 1 << 28);
	buf_init(raw, 1 << 28);
	struct pprof_write_options options = { .gzip = gzip };
	if (pprof_write(p, &options, &out, &err))
		fail_msg("%s", err.text);
	if (gzip) {
		if (gz_inflate(out.data, out.len, "x.pb.gz", &limits, raw, &err))
			fail_msg("%s", err.text);
		buf_finish(&out);
	} else {
		*raw = out;
	}
}

static void keeps_everything(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < 300; seed++) {
		struct buf raw, want, got;
		struct profile *p = sample_profile(seed);
		assert_non_null(p);
		write_profile(p, seed & 1, &raw);
		struct profile *q = must_read(&raw);
		buf_init(&want, 1 << 28);
		buf_init(&got, 1 << 28);
		sample_describe(p, &want);
		sample_describe(q, &got);
		assert_string_equal(got.data, want.data);
		buf_finish(&raw);
		buf_finish(&want);
		buf_finish(&got);
		profile_free(p);
		profile_free(q);
	}
}

static struct profile *small_heap(bool with_alloc)
{
	struct profile *p = profile_new(0);
	profile_add_heap_types(p, with_alloc);
	profile_add_source(p, &(struct source){ .rate = 524288, .time_nanos = 77, .duration_nanos = 5 });
	struct mapping m = { .start = 0x1000, .limit = 0x9000, .offset = 0x500,
		             .file = profile_cstring(p, "/bin/x y") };
	profile_add_mapping(p, &m);
	uint32_t frames[2] = { profile_intern_location(p, 0, 0x1234), profile_intern_location(p, 0, 0x2345) };
	profile_intern_location(p, 0, 0x3456);          /* not used */
	struct function nameless = { .file = profile_cstring(p, "f.c") };
	struct line line = { .function = profile_intern_function(p, &nameless), .line = 3 };
	profile_set_lines(p, frames[1], &line, 1);
	profile_add_sample(p, profile_intern_stack(p, frames, 2), 0, 0, (int64_t[4]){ 1, 2, 3, 4 });
	assert_int_equal(profile_finish(p, NULL), E_OK);
	return p;
}

/* Two runs of text in a buffer that may hold zeros. */
static bool holds(const struct buf *b, const char *text)
{
	return memmem(b->data, b->len, text, strlen(text)) != NULL;
}

static void fits_viewers(void **state)
{
	struct buf raw;
	(void)state;
	struct profile *p = small_heap(true);
	write_profile(p, true, &raw);
	struct profile *q = must_read(&raw);
	assert_int_equal(q->n_types, 4);
	assert_string_equal(profile_text(q, q->types[0].type), "alloc_objects");
	assert_string_equal(profile_text(q, q->types[3].type), "inuse_space");
	assert_string_equal(profile_text(q, q->default_type), "inuse_space");
	assert_string_equal(profile_text(q, q->period_type), "space");
	assert_string_equal(profile_text(q, q->period_unit), "bytes");
	assert_int_equal(q->period, 524288);
	assert_int_equal(q->sources[0].time_nanos, 77);
	assert_string_equal(profile_text(q, q->drop_frames), allocator_drop_frames);
	assert_int_equal(q->n_locations, 2);
	assert_int_equal(q->n_functions, 2);
	assert_string_equal(profile_text(q, q->functions[0].name), "x y!0x734");
	assert_string_equal(profile_text(q, q->functions[1].name), "x y!0x1845");
	assert_int_equal(q->lines[1].line, 3);
	assert_true(q->mappings[0].has_functions);
	assert_true(q->mappings[0].has_line_numbers);
	assert_false(q->mappings[0].has_inline_frames);
	profile_free(q);
	profile_free(p);
	buf_finish(&raw);
	p = small_heap(false);
	write_profile(p, false, &raw);
	assert_false(holds(&raw, "alloc_space"));
	assert_true(holds(&raw, "inuse_objects"));
	assert_true(holds(&raw, "f.c"));
	assert_false(holds(&raw, "0x2956"));            /* the name of the location nobody uses */
	profile_free(p);
	buf_finish(&raw);
}

static void hands_on_the_words_of_the_header(void **state)
{
	static const char url[] = "https://example.org/about?this=heap#profile";
	struct buf raw;
	(void)state;
	struct profile *p = small_heap(true);
	p->default_type = profile_cstring(p, "alloc_space");
	p->drop_frames = profile_cstring(p, "drop.*");
	p->keep_frames = profile_cstring(p, "keep.*");
	p->doc_url = profile_cstring(p, url);
	/* Written, read, and that written and read. */
	for (int i = 0; i < 2; i++) {
		write_profile(p, i == 0, &raw);
		profile_free(p);
		p = must_read(&raw);
		buf_finish(&raw);
		assert_string_equal(profile_text(p, p->default_type), "alloc_space");
		assert_string_equal(profile_text(p, p->drop_frames), "drop.*");
		assert_string_equal(profile_text(p, p->keep_frames), "keep.*");
		assert_string_equal(profile_text(p, p->doc_url), url);
	}
	profile_free(p);
	/* None stays none. */
	p = small_heap(true);
	write_profile(p, false, &raw);
	profile_free(p);
	p = must_read(&raw);
	assert_string_equal(profile_text(p, p->doc_url), "");
	profile_free(p);
	buf_finish(&raw);
}

static void mends_utf8(void **state)
{
	struct buf raw;
	(void)state;
	struct profile *p = small_heap(false);
	struct function f = { .name = profile_string(p, "a\xff\xc3(\xe6\x97\xa5\xed\xa0\x80", 10) };
	struct line line = { .function = profile_intern_function(p, &f) };
	profile_set_lines(p, 0, &line, 1);
	write_profile(p, false, &raw);
	assert_true(holds(&raw, "a\xef\xbf\xbd\xef\xbf\xbd(\xe6\x97\xa5\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"));
	profile_free(p);
	buf_finish(&raw);
}

/* Go's reader drops numbers that are 0 and have no unit. */
static void gives_zero_a_unit(void **state)
{
	struct buf raw;
	(void)state;
	struct profile *p = small_heap(false);
	struct label labels[] = { { .key = profile_cstring(p, "bytes") }, { .key = profile_cstring(p, "n") } };
	p->samples[0].labels = profile_intern_labels(p, labels, 2);
	write_profile(p, false, &raw);
	struct profile *q = must_read(&raw);
	const struct label *got = &q->labels[q->label_sets[q->samples[0].labels].first];
	assert_string_equal(profile_text(q, got[0].unit), "bytes");
	assert_string_equal(profile_text(q, got[1].unit), "count");
	assert_int_equal(got[1].number, 0);
	profile_free(q);
	profile_free(p);
	buf_finish(&raw);
}

static void refuses_to_negate_the_smallest(void **state)
{
	struct buf out;
	struct error err;
	(void)state;
	struct profile *p = small_heap(false);
	p->sources[0].base = true;
	p->values[1] = INT64_MIN;
	buf_init(&out, 1 << 20);
	assert_int_equal(pprof_write(p, &(struct pprof_write_options){ 0 }, &out, &err), E_FORMAT);
	assert_string_equal(err.text, "sample 0 of the base: -2^63 cannot be negated for pprof");
	profile_free(p);
	buf_finish(&out);
}

static void says_when_there_is_no_room(void **state)
{
	struct buf out;
	struct error err;
	(void)state;
	struct profile *p = small_heap(false);
	buf_init(&out, 100);
	assert_int_equal(pprof_write(p, &(struct pprof_write_options){ 0 }, &out, &err), E_LIMIT);
	profile_free(p);
	buf_finish(&out);
}

/* Cut anywhere: what we write puts the strings last, so even without gzip each cut is seen. */
static void sees_every_cut(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < 20; seed++) {
		struct profile *p = sample_profile(seed);
		struct buf raw;
		write_profile(p, false, &raw);
		for (size_t n = 0; n < raw.len; n++) {
			struct profile *q = NULL;
			struct error err = { 0 };
			char *cut = malloc(n + !n);
			memcpy(cut, raw.data, n);
			assert_int_not_equal(pprof_read(cut, n, "cut", &limits, &q, &err), E_OK);
			assert_true(err.text[0] && !strchr(err.text, '\n'));
			free(cut);
		}
		profile_free(p);
		buf_finish(&raw);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_a_whole_profile),
		cmocka_unit_test(rate_only_for_heaps),
		cmocka_unit_test(reads_what_pprof_reads),
		cmocka_unit_test(reads_endless_mapping),
		cmocka_unit_test(reads_sparse_ids),
		cmocka_unit_test(understands_labels),
		cmocka_unit_test(understands_a_base),
		cmocka_unit_test(refuses_bad_strings),
		cmocka_unit_test(refuses_bad_samples),
		cmocka_unit_test(refuses_bad_ids),
		cmocka_unit_test(refuses_concatenated_profiles),
		cmocka_unit_test(refuses_bad_wire),
		cmocka_unit_test(refuses_deep_stacks),
		cmocka_unit_test(refuses_large_input),
		cmocka_unit_test(keeps_everything),
		cmocka_unit_test(fits_viewers),
		cmocka_unit_test(hands_on_the_words_of_the_header),
		cmocka_unit_test(mends_utf8),
		cmocka_unit_test(gives_zero_a_unit),
		cmocka_unit_test(refuses_to_negate_the_smallest),
		cmocka_unit_test(says_when_there_is_no_room),
		cmocka_unit_test(sees_every_cut),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
