/*
 * No memory: naming a profile with the nth of our allocations failing, for every n, once and from then on. It must
 * end in an error or a warning, or in the right name; never in a crash or in less without a word. (libdw's own
 * allocations are not ours to fail: it exits.)
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "no_memory.h"
#include "symbol/elf_file.h"
#include "symbol/symbol.h"

static const char *program;

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

static void every_failed_allocation_is_noticed(void **state)
{
	(void)state;
	struct buf right, got, warnings;
	struct error err;
	long errors = 0;
	buf_init(&right, 1 << 24);
	buf_init(&got, 1 << 24);
	buf_init(&warnings, 1 << 16);
	struct profile *p = make_profile();
	assert_int_equal(symbol_profile(p, NULL, NULL, &err), 0);
	print_names(p, &right);
	assert_true(right.len > 1000);
	profile_free(p);
	for (int mode = 0; mode < 2; mode++) {
		bool failed = true;
		for (long n = 0; failed; n++) {
			p = make_profile();
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
	assert_true(errors > 50);
	buf_finish(&right);
	buf_finish(&got);
	buf_finish(&warnings);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(every_failed_allocation_is_noticed) };
	if (argc != 2)
		return 2;
	program = argv[1];
	return cmocka_run_group_tests(tests, NULL, NULL);
}
