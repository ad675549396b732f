/*
 * No memory: the nth allocation fails, for every n, once and from then on. Whatever happens
 * must be an error that is reported, nothing lost, and the old output still there.
 */
#include "no_memory.h"
#include "test.h"

#include "base/file.h"
#include "base/strings.h"
#include "base/text.h"

#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/heapgauge-torture-XXXXXX";

static int make_folder(void **state)
{
	(void)state;
	return mkdtemp(folder) && chdir(folder) == 0 ? 0 : -1;
}

static int remove_folder(void **state)
{
	(void)state;
	unlink("in");
	unlink("out");
	return chdir("/") == 0 ? rmdir(folder) : -1;
}

static int some_strings(struct error *err)
{
	struct strings s;
	int rc = E_OK;
	uint32_t added = 0;
	if (!strings_init(&s))
		return error_nomem(err, "names");
	for (uint32_t i = 0; i < 3000 && !rc; i++) {
		char name[32];
		int n = snprintf(name, sizeof(name), "name_%u", i);
		uint32_t id = strings_add(&s, name, (size_t)n, SIZE_MAX);
		if (id == INDEX_NONE)
			rc = error_nomem(err, "names");
		else
			assert_int_equal(id, ++added);
	}
	/* What was added before the failure is still there and still found. */
	for (uint32_t id = 1; id <= added; id++) {
		char name[32];
		int n = snprintf(name, sizeof(name), "name_%u", id - 1);
		assert_string_equal(strings_get(&s, id), name);
		assert_int_equal(strings_find(&s, name, (size_t)n), id);
	}
	strings_finish(&s);
	return rc;
}

static int some_text(struct error *err)
{
	struct buf b;
	buf_init(&b, BUF_MAX_DEFAULT);
	for (int i = 0; i < 100; i++) {
		buf_printf(&b, "%*d", i * 10, i);
		text_add_json(&b, "a\"b\x1b", 4);
		text_add_terminal(&b, "a\"b\x1b", 4);
	}
	bool broken = b.failed;
	if (b.data)
		assert_int_equal(strlen(b.data), b.len);
	buf_finish(&b);
	return broken ? error_nomem(err, "text") : E_OK;
}

static int copy_file(struct error *err)
{
	struct stream s;
	struct output o;
	struct buf b;
	const uint8_t *bytes;
	size_t n;
	buf_init(&b, BUF_MAX_DEFAULT);
	int rc = stream_open(&s, "in", err);
	if (rc)
		return rc;
	rc = stream_peek(&s, 100, &bytes, &n, err);
	if (!rc)
		rc = stream_read_all(&s, &b, err);
	stream_close(&s);
	if (!rc)
		rc = output_open(&o, "out", err);
	if (!rc) {
		for (size_t i = 0; i < b.len && !rc; i += 1000)
			rc = output_write(&o, b.data + i, b.len - i < 1000 ? b.len - i : 1000, err);
		if (!rc)
			rc = output_commit(&o, err);
		output_abort(&o);
	}
	buf_finish(&b);
	return rc;
}

static void torture(int (*work)(struct error *err), void (*check)(int rc))
{
	for (int mode = 0; mode < 2; mode++) {
		int rc = -1;
		long n;
		for (n = 0; n < 1000; n++) {
			struct error err = { 0 };
			no_memory_begin(n, mode);
			rc = work(&err);
			bool failed = no_memory_end();
			if (check)
				check(rc);
			if (!failed)
				break;
			if (rc) {
				assert_int_equal(rc, E_NOMEM);
				assert_memory_equal(err.text, "out of memory for ", 18);
			} else {
				/* memory_grow may do with less than it wanted; not when nothing works any more. */
				assert_int_equal(mode, 0);
			}
		}
		assert_int_equal(rc, 0);
		assert_true(n > 2);
	}
}

static void put(const char *name, size_t n)
{
	FILE *f = fopen(name, "we");
	assert_non_null(f);
	for (size_t i = 0; i < n; i++)
		putc('a' + (int)(i % 26), f);
	assert_int_equal(fclose(f), 0);
}

static void out_is_old_or_whole(int rc)
{
	struct stat st;
	assert_int_equal(stat("out", &st), 0);
	assert_int_equal(st.st_size, rc ? 3 : 700000);
	put("out", 3);
}

static void strings_without_memory(void **state)
{
	(void)state;
	torture(some_strings, NULL);
}

static void text_without_memory(void **state)
{
	(void)state;
	torture(some_text, NULL);
}

static void files_without_memory(void **state)
{
	(void)state;
	put("in", 700000);
	put("out", 3);
	torture(copy_file, out_is_old_or_whole);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(strings_without_memory),
		cmocka_unit_test(text_without_memory),
		cmocka_unit_test(files_without_memory),
	};
	return cmocka_run_group_tests_name("torture", tests, make_folder, remove_folder);
}
