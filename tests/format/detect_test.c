/* Formats are told apart by their first bytes; what is no profile is named. */
#include "jeheap_helpers.h"

#define DUMP "heap_v2/1\n  t*: 1: 8 [0: 0]\n@ 0x5\n  t*: 1: 8 [0: 0]\n"
#define OLD "heap profile: 1: 8 [1: 8] @ heapprofile\n1: 8 [1: 8] @ 0x5\n"

static void compress(const void *bytes, size_t n, struct buf *out)
{
	struct error err;
	buf_init(out, (size_t)1 << 24);
	assert_int_equal(gz_deflate(bytes, n, out, &err), E_OK);
}

static void texts_plain_and_compressed(void **state)
{
	(void)state;
	static const char *const texts[] = { DUMP, OLD, "main;f;g 8\nmain;f 1\n", "(unknown);{closure} 3\n",
	                                     "<module>;a b (c:1) 12\n" };
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct outcome o = read_text(format_read, texts[i]);
		assert_true(o.profile->n_samples > 0);
		struct buf zipped;
		compress(texts[i], strlen(texts[i]), &zipped);
		struct outcome z = read_bytes(format_read, zipped.data, zipped.len, false);
		assert_int_equal(z.rc, E_OK);
		assert_int_equal(z.profile->n_samples, o.profile->n_samples);
		buf_finish(&zipped);
		outcome_finish(&o);
		outcome_finish(&z);
	}
}

static void pprof_plain_and_compressed(void **state)
{
	(void)state;
	struct outcome o = read_text(format_read, DUMP);
	for (int gzip = 0; gzip < 2; gzip++) {
		struct pprof_write_options options = { .gzip = gzip };
		struct buf out;
		struct error err;
		buf_init(&out, (size_t)1 << 24);
		assert_int_equal(pprof_write(o.profile, &options, &out, &err), E_OK);
		struct outcome again = read_bytes(format_read, out.data, out.len, false);
		assert_int_equal(again.rc, E_OK);
		assert_int_equal(again.profile->n_samples, 1);
		outcome_finish(&again);
		buf_finish(&out);
	}
	outcome_finish(&o);
}

/* Fields that profile.proto doesn't have are to be skipped, also in front and behind gzip. */
static void pprof_behind_unknown_fields(void **state)
{
	(void)state;
	static const struct {
		const char *bytes;
		size_t n, length;
	} fronts[] = {
		{ "\x82\x01\x03" "abc", 6, 0 },                            /* 16: bytes */
		{ "\x80\x01\x96\x01", 4, 0 },                              /* 16: a number */
		{ "\xc1\x3e" "12345678" "\xc5\x3e" "1234", 16, 0 },         /* 1000: fixed */
		{ "\xfa\xff\xff\xff\x0f\x00", 6, 0 },                      /* 2^29 - 1 */
		{ "\xc2\x3e\x80\x80\x08", 5, 128 << 10 },                  /* longer than what is looked at */
		{ "\xc2\x3e\x3f", 3, 63 },                                 /* looks like text */
	};
	struct outcome o = read_text(format_read, DUMP);
	struct pprof_write_options options = { .gzip = false };
	struct buf plain, whole, zipped;
	struct error err;
	buf_init(&plain, (size_t)1 << 24);
	assert_int_equal(pprof_write(o.profile, &options, &plain, &err), E_OK);
	for (size_t i = 0; i < sizeof(fronts) / sizeof(fronts[0]); i++) {
		buf_init(&whole, (size_t)1 << 24);
		buf_add(&whole, fronts[i].bytes, fronts[i].n);
		for (size_t k = 0; k < fronts[i].length; k++)
			buf_addc(&whole, 'x');
		buf_add(&whole, plain.data, plain.len);
		compress(whole.data, whole.len, &zipped);
		for (int gzip = 0; gzip < 2; gzip++) {
			const struct buf *b = gzip ? &zipped : &whole;
			struct outcome again = read_bytes(format_read, b->data, b->len, false);
			if (again.rc)
				fail_msg("front %zu: %s", i, again.error.text);
			assert_int_equal(again.profile->n_samples, 1);
			outcome_finish(&again);
		}
		/* Cut, the reader says so. */
		struct outcome cut = read_bytes(format_read, whole.data, whole.len - 1, false);
		assert_int_equal(cut.rc, E_TRUNCATED);
		outcome_finish(&cut);
		buf_finish(&zipped);
		buf_finish(&whole);
	}
	buf_finish(&plain);
	outcome_finish(&o);
}

/* Of noise without a tag of profile.proto in front, next to none may look like a message. */
static void noise_is_of_no_known_format(void **state)
{
	(void)state;
	uint64_t random = 88172645463325252u;
	unsigned taken = 0;
	for (int i = 0; i < 20000; i++) {
		uint8_t bytes[512];
		for (size_t k = 0; k < sizeof(bytes); k++) {
			random ^= random << 13;
			random ^= random >> 7;
			random ^= random << 17;
			bytes[k] = (uint8_t)(random >> 32);
		}
		bytes[0] |= 0x80;
		struct outcome o = read_bytes(format_read, bytes, sizeof(bytes), false);
		assert_int_not_equal(o.rc, E_OK);
		taken += !strstr(o.error.text, "no known format");
		outcome_finish(&o);
	}
	if (taken > 100)
		fail_msg("%u of 20000 were taken for a profile", taken);
}

static void a_large_compressed_dump(void **state)
{
	(void)state;
	struct buf text, zipped;
	buf_init(&text, (size_t)1 << 26);
	buf_adds(&text, "heap_v2/1\n  t*: 60000: 480000 [0: 0]\n");
	for (unsigned i = 0; i < 60000; i++)
		buf_printf(&text, "@ 0x%x 0x%x\n  t*: 1: 8 [0: 0]\n", i * 2654435761u, i * 40503u);
	compress(text.data, text.len, &zipped);
	struct outcome o = read_bytes(format_read, zipped.data, zipped.len, false);
	assert_int_equal(o.rc, E_OK);
	assert_int_equal(total(o.profile, INUSE_SPACE), 480000);
	outcome_finish(&o);
	/* Cut in the middle it is an error, whatever the text so far says. */
	o = read_bytes(format_read, zipped.data, zipped.len / 2, false);
	assert_int_not_equal(o.rc, E_OK);
	outcome_finish(&o);
	buf_finish(&text);
	buf_finish(&zipped);
}

static void what_is_no_profile_is_named(void **state)
{
	(void)state;
	static const struct {
		const char *bytes;
		size_t n;
		const char *says;
	} cases[] = {
		{ "", 0, "empty" },
		{ "\177ELF\2\1\1", 7, "program or library" },
		{ "PERFILE2xxxxxxxx", 16, "perf.data" },
		{ "{\"flamegraph\": 1}\n", 18, "JSON" },
		{ "<!DOCTYPE html>\n", 16, "HTML" },
		{ "\x28\xb5\x2f\xfd....", 8, "zstd" },
		{ "--- symbol\nbinary=x\n", 20, "--raw" },
		{ "hello world\n", 12, "text of no known format" },
		{ "\0\0\0\0\0\0\0\0", 8, "no known format" },
		{ "\xff\xfe\xfd", 3, "no known format" },
		{ "\x82\x01\x03" "abc", 6, "no known format" },             /* nothing of a profile */
		{ "\x82\x01\x7f" "abc", 6, "no known format" },
		{ "\x82\x80\x80\x80\x10\x00\x32\x00", 8, "no known format" },     /* past the last field number */
		{ "\x83\x01\x84\x01\x32\x00", 6, "no known format" },         /* groups */
		{ "\x82\x01\x00\x30\x00", 5, "no known format" },            /* a string_table that is a number */
		{ "\xd0\x9f\xd1\x80\xd0\xb8\xd0\xb2\xd0\xb5\xd1\x82\n", 13, "text of no known format" },
		{ "heap_v", 6, "line 1" },
		{ "heap prof", 9, "line 1" },
		{ "\x1f\x8b", 2, "" },
		{ "\x1f\x8b\x08\0\0\0\0\0\0\3", 10, "" },
		{ "\n\n\n", 3, "text of no known format" },
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct outcome o = read_bytes(format_read, cases[i].bytes, cases[i].n, false);
		if (o.rc == E_OK || !strstr(o.error.text, cases[i].says))
			fail_msg("case %zu: \"%s\"", i, o.rc ? o.error.text : "taken");
		outcome_finish(&o);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(texts_plain_and_compressed),
		cmocka_unit_test(pprof_plain_and_compressed),
		cmocka_unit_test(pprof_behind_unknown_fields),
		cmocka_unit_test(noise_is_of_no_known_format),
		cmocka_unit_test(a_large_compressed_dump),
		cmocka_unit_test(what_is_no_profile_is_named),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
