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
		assert_int_equal(o.rc, E_OK);
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
	assert_int_equal(o.rc, E_OK);
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
		cmocka_unit_test(a_large_compressed_dump),
		cmocka_unit_test(what_is_no_profile_is_named),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
