/*
 * jeheap_cut_test DUMP...: each dump is cut at every byte. What is left must be refused, or give what the whole
 * dump gives; only the files of the frames may be unknown then, and that must have been said.
 */
#include "jeheap_helpers.h"

static int n_files;
static char **files;

static void load(const char *path, struct buf *b)
{
	struct stream in;
	struct error err;
	buf_init(b, (size_t)1 << 24);
	if (stream_open(&in, path, &err) || stream_read_all(&in, b, &err))
		fail_msg("%s", err.text);
	stream_close(&in);
}

static void description(const struct outcome *o, bool with_files, struct buf *b)
{
	buf_init(b, (size_t)1 << 24);
	describe(o->profile, with_files, b);
}

static bool same_text(const struct buf *a, const struct buf *b)
{
	return a->len == b->len && !memcmp(a->data, b->data, a->len);
}

static void check_cut(reader *read, const char *path, const struct buf *dump, size_t n, const struct buf *whole,
                      const struct buf *whole_files, size_t counts[2])
{
	struct outcome o = read_bytes(read, dump->data, n, false);
	counts[o.rc == E_OK]++;
	if (o.rc == E_OK) {
		struct buf got, got_files;
		description(&o, false, &got);
		description(&o, true, &got_files);
		if (!same_text(&got, whole))
			fail_msg("%s cut to %zu of %zu bytes gives another answer", path, n, dump->len);
		if (!same_text(&got_files, whole_files) && !warned(&o, "no MAPPED_LIBRARIES"))
			fail_msg("%s cut to %zu of %zu bytes: files are missing and nothing is said", path, n, dump->len);
		buf_finish(&got);
		buf_finish(&got_files);
	}
	outcome_finish(&o);
	/* What is asked for in part must not crash and not be more than the whole. */
	o = read_bytes(read, dump->data, n, true);
	if (o.rc == E_OK && n < dump->len)
		assert_true(o.profile->n_samples <= whole->len);
	outcome_finish(&o);
}

static void cut_at_every_byte(void **state)
{
	(void)state;
	for (int i = 0; i < n_files; i++) {
		struct buf dump, whole, whole_files;
		size_t counts[2] = { 0, 0 };
		load(files[i], &dump);
		reader *read = dump.len > 13 && !memcmp(dump.data, "heap profile:", 13) ? gperf_read : jeheap_read;
		struct outcome o = read_bytes(read, dump.data, dump.len, false);
		if (o.rc)
			fail_msg("%s", o.error.text);
		description(&o, false, &whole);
		description(&o, true, &whole_files);
		outcome_finish(&o);
		for (size_t n = 0; n <= dump.len; n++)
			check_cut(read, files[i], &dump, n, &whole, &whole_files, counts);
		print_message("%s: %zu bytes, %zu cuts refused, %zu whole answers\n", path_base(files[i]), dump.len,
		              counts[0], counts[1]);
		assert_true(counts[0] > dump.len / 2);
		buf_finish(&whole);
		buf_finish(&whole_files);
		buf_finish(&dump);
	}
}

int main(int argc, char **argv)
{
	n_files = argc - 1;
	files = argv + 1;
	const struct CMUnitTest tests[] = { cmocka_unit_test(cut_at_every_byte) };
	return n_files > 0 ? cmocka_run_group_tests(tests, NULL, NULL) : 2;
}
