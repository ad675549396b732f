/*
 * No memory: naming a profile with the nth of our allocations failing, for every n, once and from then on. It must
 * end in an error or a warning, or in the right name; never in a crash or in less without a word. First with the workers'
 * allocations (they inherit what is left to succeed) and the cache, then in the reader itself.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "no_memory.h"
#include "symbol/lookup.h"
#include "symbol/resolve.h"

static const char *program;
static char folder[] = "/tmp/heapgauge-torture-XXXXXX";

/* Every 10th byte of the program's code, in one mapping. */
static struct profile *make_profile(void)
{
	struct profile *p = profile_new(0);
	struct elf_file f;
	assert_int_equal(elf_file_open(&f, program, NULL), 0);
	for (size_t i = 0; i < f.n_segments; i++) {
		const struct loaded_segment *s = &f.segments[i];
		if (!s->executable)
			continue;
		struct mapping m = { .start = 0x10000, .offset = s->offset, .executable = true,
			             .limit = 0x10000 + s->file_bytes, .file = profile_cstring(p, program) };
		uint32_t mapping = profile_add_mapping(p, &m);
		for (uint64_t at = 0; at < s->file_bytes; at += 10)
			profile_intern_location(p, mapping, m.start + at);
	}
	elf_file_finish(&f);
	return p;
}

/* All names in one text, so that two results can be compared. */
static void print_names(const struct profile *p, struct buf *b)
{
	buf_reset(b);
	for (size_t i = 0; i < p->n_locations; i++)
		for (uint32_t k = 0; k < p->locations[i].n_lines; k++) {
			const struct line *l = &p->lines[p->locations[i].first_line + k];
			buf_printf(b, "%s:%lld ", profile_text(p, p->functions[l->function].name), (long long)l->line);
		}
}

/* With an empty cache, a full one, or none. */
enum cached { WITHOUT, EMPTY, FULL };

static void clear_cache(void)
{
	struct elf_file f;
	char path[256];
	assert_int_equal(elf_file_open(&f, program, NULL), 0);
	snprintf(path, sizeof(path), "%s/heapgauge/%s.names", folder, f.build_id);
	unlink(path);
	elf_file_finish(&f);
}

static void fail_each(enum cached cached)
{
	struct buf right, got, warnings;
	struct error err;
	long errors = 0;
	buf_init(&right, 1 << 24);
	buf_init(&got, 1 << 24);
	buf_init(&warnings, 1 << 16);
	struct profile *p = make_profile();
	setenv("HEAPGAUGE_CACHE", cached == WITHOUT ? "off" : "on", 1);
	assert_int_equal(symbol_profile(p, NULL, NULL, &err), 0);
	print_names(p, &right);
	assert_true(right.len > 1000);
	profile_free(p);
	for (int mode = 0; mode < 2; mode++) {
		bool failed = true;
		for (long n = 0; failed; n++) {
			p = make_profile();
			if (cached == EMPTY)
				clear_cache();
			buf_reset(&warnings);
			assert_true(buf_reserve(&warnings, 4096));
			no_memory_begin(n, mode);
			int rc = symbol_build_ids(p, NULL, &warnings, &err);
			if (rc == 0)
				rc = symbol_profile(p, NULL, &warnings, &err);
			failed = no_memory_end();
			errors += rc != 0;
			if (rc == 0) {
				print_names(p, &got);
				assert_true(warnings.len || (got.len == right.len && !memcmp(got.data, right.data, got.len)));
			} else {
				/* The profile can't tell its limit from the end of memory. */
				assert_true(rc == E_NOMEM || rc == E_LIMIT);
				assert_true(err.code == rc && *err.text);
			}
			profile_free(p);
		}
	}
	assert_true(errors > 30);
	buf_finish(&right);
	buf_finish(&got);
	buf_finish(&warnings);
	clear_cache();
}

static void every_failed_allocation_is_noticed(void **state)
{
	(void)state;
	fail_each(WITHOUT);
	fail_each(EMPTY);
	fail_each(FULL);
}

/* Every 10th address. */
static void ask_reader(struct lookup *l, const struct elf_file *f)
{
	uint64_t addresses[4096];
	size_t n = 0;
	for (size_t i = 0; i < f->n_segments; i++)
		for (uint64_t at = 0; f->segments[i].executable && at < f->segments[i].file_bytes && n < 4096; at += 10)
			addresses[n++] = f->segments[i].address + at;
	assert_int_equal(lookup_begin(l, f, addresses, n, NULL), 0);
}

/* All at once. Then, of the same reader, one in ten by itself: those answers into ret, too. */
static int read_all(const struct lookup *l, struct buf *ret, bool *ret_damaged)
{
	struct resolve_options o = { .depth = SYMBOL_FULL, .threads = 2, .kept_limit = 20000 };
	struct resolver *reader = NULL;
	struct error err = { 0 };
	int rc = resolver_open(&reader, l->binary, &o, &err);
	*ret_damaged = false;
	buf_reset(ret);
	for (size_t i = 0; i < l->n && rc == 0; i += 10) {
		struct resolve_result result = { .damaged = false };
		struct buf block;
		buf_init(&block, 1 << 24);
		rc = resolver_ask(reader, l->addresses + i, i ? 1 : l->n, &block, &result, &err);
		buf_add(ret, block.data, block.len);
		buf_finish(&block);
		if (rc == 0 && ret->failed)
			rc = error_nomem(&err, "answers");
		*ret_damaged |= result.damaged;
	}
	resolver_close(reader);
	assert_true(rc == err.code);
	return rc;
}

static void every_failed_allocation_of_a_reader_is_noticed(void **state)
{
	(void)state;
	struct elf_file f;
	struct lookup l;
	struct buf right, got;
	bool damaged;
	long errors = 0;
	assert_int_equal(elf_file_open(&f, program, NULL), 0);
	ask_reader(&l, &f);
	buf_init(&right, 1 << 24);
	buf_init(&got, 1 << 24);
	assert_int_equal(read_all(&l, &right, &damaged), 0);
	assert_false(damaged);
	assert_true(right.len > 1000);
	for (int mode = 0; mode < 2; mode++) {
		bool failed = true;
		for (long n = 0; failed; n++) {
			no_memory_begin(n, mode);
			int rc = read_all(&l, &got, &damaged);
			failed = no_memory_end();
			errors += rc != 0;
			assert_true(rc == 0 || rc == E_NOMEM || rc == E_LIMIT);
			if (rc == 0 && !damaged && (got.len != right.len || memcmp(got.data, right.data, got.len)))
				fail_msg("allocation %ld: other names without a word", n);
		}
	}
	assert_true(errors > 50);
	buf_finish(&right);
	buf_finish(&got);
	lookup_end(&l);
	elf_file_finish(&f);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(every_failed_allocation_is_noticed),
		                           cmocka_unit_test(every_failed_allocation_of_a_reader_is_noticed) };
	if (argc != 2)
		return 2;
	program = argv[1];
	if (!mkdtemp(folder))
		return 1;
	setenv("XDG_CACHE_HOME", folder, 1);
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	char path[64];
	snprintf(path, sizeof(path), "%s/heapgauge", folder);
	rmdir(path);
	rmdir(folder);
	return failed;
}
