/* heap_v2 dumps made by hand: what each line means, and every way one can be wrong. */
#include "jeheap_helpers.h"

#define HEADER "heap_v2/524288\n  t*: 3: 1300 [0: 0]\n  t0: 3: 1300 [0: 0]\n"
#define STACKS "@ 0x1001 0x2001\n  t*: 1: 300 [0: 0]\n  t0: 1: 300 [0: 0]\n" \
               "@ 0x1001\n  t*: 2: 1000 [0: 0]\n  t0: 2: 1000 [0: 0]\n"
#define MAPS "\nMAPPED_LIBRARIES:\n" \
             "00001000-00002000 r-xp 00003000 08:01 77                         /bin/a program\n" \
             "00002000-00003000 r-xp 00000000 08:01 78                         /lib/libx.so (deleted)\n" \
             "7ffc0000-7ffd0000 rw-p 00000000 00:00 0                          [stack]\n"

static void reads_a_small_dump(void **state)
{
	(void)state;
	struct outcome o = read_text(jeheap_read, HEADER STACKS MAPS);
	const struct profile *p = o.profile;
	assert_int_equal(o.report.warnings.len, 0);
	assert_int_equal(p->n_types, 2);
	assert_int_equal(p->n_samples, 2);
	assert_int_equal(p->n_mappings, 2);
	assert_string_equal(profile_text(p, p->mappings[0].file), "/bin/a program");
	assert_string_equal(profile_text(p, p->mappings[1].file), "/lib/libx.so");
	assert_true(p->mappings[1].deleted);
	assert_int_equal(p->sources[0].rate, 524288);
	assert_int_equal(p->period, 524288);
	assert_true(p->sources[0].raw_counts);
	/* Raw: each line by itself. */
	assert_int_equal(p->values[0], llround(scale(1, 300, 524288)));
	assert_int_equal(p->values[1], llround(300 * scale(1, 300, 524288)));
	assert_int_equal(p->values[3], llround(1000 * scale(2, 1000, 524288)));
	/* Return addresses less one, in their files. */
	const struct location *l = &p->locations[p->frames[p->stacks[0].first]];
	assert_int_equal(l->address, 0x1000);
	assert_int_equal(location_file_offset(p, l), 0x3000);
	assert_int_equal(p->locations[1].mapping, 1);
	assert_string_equal(profile_text(p, p->label_sets[p->samples[0].labels].thread), "t0");
	outcome_finish(&o);
}

static void one_is_exact(void **state)
{
	(void)state;
	struct outcome o = read_text(jeheap_read,
	    "heap_v2/1\n  t*: 3: 320 [5: 640]\n  t7: 3: 320 [5: 640] a  b\n"
	    "@ 0x5\n  t*: 2: 192 [4: 512]\n  t7: 2: 192 [4: 512]\n"
	    "@ 0x6\n  t*: 1: 128 [1: 128]\n  t7: 1: 128 [1: 128]\n" MAPS);
	assert_int_equal(o.profile->n_types, 4);
	assert_int_equal(total(o.profile, INUSE_SPACE), 320);
	assert_int_equal(total(o.profile, INUSE_OBJECTS), 3);
	assert_int_equal(total(o.profile, ALLOC_SPACE), 640);
	assert_int_equal(total(o.profile, ALLOC_OBJECTS), 5);
	assert_string_equal(profile_text(o.profile, o.profile->label_sets[o.profile->samples[0].labels].thread), "t7 a  b");
	/* Live and gone blocks of the first stack have no size in common; those of the second have. */
	assert_int_equal(o.profile->label_sets[o.profile->samples[0].labels].block_size, 0);
	assert_int_equal(o.profile->label_sets[o.profile->samples[1].labels].block_size, 128);
	outcome_finish(&o);
}

static void nothing_live_is_only_accumulated(void **state)
{
	(void)state;
	struct outcome o = read_text(jeheap_read,
	    "heap_v2/4096\n  t*: 0: 0 [33: 2112]\n  t0: 0: 0 [33: 2112]\n"
	    "@ 0x5\n  t*: 0: 0 [33: 2112]\n  t0: 0: 0 [33: 2112]\n" MAPS);
	assert_int_equal(o.profile->n_samples, 1);
	assert_int_equal(total(o.profile, INUSE_SPACE), 0);
	assert_int_equal(total(o.profile, ALLOC_SPACE), llround(2112 * scale(33, 2112, 4096)));
	outcome_finish(&o);
}

static void nothing_at_all_is_no_sample(void **state)
{
	(void)state;
	struct outcome o = read_text(jeheap_read, "heap_v2/4096\n  t*: 0: 0 [0: 0]\n  t0: 0: 0 [0: 0]\n" MAPS);
	assert_int_equal(o.profile->n_samples, 0);
	assert_int_equal(o.profile->n_types, 2);
	assert_false(o.profile->sources[0].raw_counts);
	outcome_finish(&o);
	o = read_text(jeheap_read, "heap_v2/4096\n  t*: 1: 64 [0: 0]\n  t0: 1: 64 [0: 0]\n"
	    "@ 0x9\n  t*: 0: 0 [0: 0]\n  t0: 0: 0 [0: 0]\n@ 0x5\n  t*: 1: 64 [0: 0]\n  t0: 1: 64 [0: 0]\n  t4: 0: 0 [0: 0]\n" MAPS);
	assert_int_equal(o.profile->n_samples, 1);
	outcome_finish(&o);
}

static void frames_may_be_missing_or_zero(void **state)
{
	(void)state;
	struct outcome o = read_text(jeheap_read, "heap_v2/1\n  t*: 3: 24 [0: 0]\n"
	    "@\n  t*: 1: 8 [0: 0]\n@ 0x0 0x1 0xFFFFFFFFFFFFFFFF 00a\n  t*: 2: 16 [0: 0]\n");
	const struct profile *p = o.profile;
	assert_int_equal(p->n_samples, 2);
	assert_int_equal(p->stacks[0].n, 0);
	assert_int_equal(p->stacks[1].n, 4);
	static const uint64_t addresses[] = { 0, 0, UINT64_MAX - 1, 9 };
	for (size_t i = 0; i < 4; i++) {
		const struct location *l = &p->locations[p->frames[p->stacks[1].first + i]];
		assert_true(l->address == addresses[i]);
		assert_int_equal(l->mapping, PROFILE_NONE);
	}
	assert_int_equal(p->label_sets[p->samples[0].labels].thread, 0);
	assert_true(warned(&o, "no MAPPED_LIBRARIES"));
	outcome_finish(&o);
}

static void windows_line_ends(void **state)
{
	(void)state;
	static const char text[] = "heap_v2/1\r\n  t*: 1: 8 [0: 0]\r\n  t0: 1: 8 [0: 0] name\r\n@ 0x5\r\n"
	                           "  t*: 1: 8 [0: 0]\r\n  t0: 1: 8 [0: 0]\r\n";
	struct outcome o = read_text(jeheap_read, text);
	assert_string_equal(profile_text(o.profile, o.profile->label_sets[o.profile->samples[0].labels].thread), "t0 name");
	outcome_finish(&o);
}

static void names_keep_every_byte(void **state)
{
	(void)state;
	static const char text[] = "heap_v2/1\n  t*: 1: 8 [0: 0]\n  t0: 1: 8 [0: 0] a\0\033[31mb\n@ 0x5\n"
	                           "  t*: 1: 8 [0: 0]\n  t0: 1: 8 [0: 0]\n";
	struct outcome o = read_bytes(jeheap_read, text, sizeof(text) - 1, false);
	assert_int_equal(o.rc, E_OK);
	uint32_t thread = o.profile->label_sets[o.profile->samples[0].labels].thread;
	assert_int_equal(strings_length(&o.profile->strings, thread), 11);
	assert_memory_equal(profile_text(o.profile, thread), "t0 a\0\033[31mb", 11);
	outcome_finish(&o);
}

/* Two threads of one stack: counts that jemalloc has bent don't add up; the stack's line is shared out exactly. */
static void bent_counts_are_shared_out(void **state)
{
	(void)state;
	struct outcome o = read_text(jeheap_read,
	    "heap_v2/65536\n  t*: 7: 5000 [0: 0]\n  t1: 3: 400 [0: 0]\n  t2: 4: 40001 [0: 0]\n"
	    "@ 0x1001\n  t*: 7: 5000 [0: 0]\n  t1: 3: 400 [0: 0]\n  t2: 4: 40001 [0: 0]\n" MAPS);
	const struct profile *p = o.profile;
	assert_false(p->sources[0].raw_counts);
	assert_int_equal(p->n_samples, 2);
	double all = 5000 * scale(7, 5000, 65536), one = 400 * scale(3, 400, 65536), two = 40001 * scale(4, 40001, 65536);
	assert_int_equal(total(p, INUSE_SPACE), llround(all));
	assert_true(fabs((double)p->values[1] - all * one / (one + two)) <= 1);
	assert_true(fabs((double)p->values[3] - all * two / (one + two)) <= 1);
	outcome_finish(&o);
}

static void raw_counts_use_the_finest_lines(void **state)
{
	(void)state;
	struct outcome o = read_text(jeheap_read,
	    "heap_v2/65536\n  t*: 7: 40400 [0: 0]\n  t1: 3: 400 [0: 0]\n  t2: 4: 40000 [0: 0]\n"
	    "@ 0x1001\n  t*: 7: 40400 [0: 0]\n  t1: 3: 400 [0: 0]\n  t2: 4: 40000 [0: 0]\n" MAPS);
	const struct profile *p = o.profile;
	assert_true(p->sources[0].raw_counts);
	assert_true(p->sources[0].header_bytes < 0);
	assert_int_equal(p->values[1], llround(400 * scale(3, 400, 65536)));
	assert_int_equal(p->values[3], llround(40000 * scale(4, 40000, 65536)));
	outcome_finish(&o);
}

static void a_thread_may_come_twice(void **state)
{
	(void)state;
	struct outcome o = read_text(jeheap_read,
	    "heap_v2/1\n  t*: 3: 24 [0: 0]\n  t1: 3: 24 [0: 0]\n"
	    "@ 0x1001\n  t*: 3: 24 [0: 0]\n  t1: 1: 8 [0: 0]\n  t1: 2: 16 [0: 0]\n" MAPS);
	assert_int_equal(total(o.profile, INUSE_SPACE), 24);
	outcome_finish(&o);
}

static void short_stacks_are_warned_about(void **state)
{
	(void)state;
	struct outcome o = read_text(jeheap_read,
	    "heap_v2/4096\n  t*: 900: 90000 [0: 0]\n  t1: 900: 90000 [0: 0]\n"
	    "@ 0x1001\n  t*: 3: 300 [0: 0]\n  t1: 3: 300 [0: 0]\n" MAPS);
	assert_true(warned(&o, "of the"));
	outcome_finish(&o);
}

static void errors_name_the_line(void **state)
{
	(void)state;
	static const struct bad_text cases[] = {
		{ "", E_TRUNCATED, "empty" },
		{ "heap_v2/524288", E_TRUNCATED, "line 1" },
		{ "heap_v2/\n", E_FORMAT, "line 1: expected heap_v2/" },
		{ "heap_v2/0\n", E_FORMAT, "sampling rate" },
		{ "heap_v2/-1\n", E_FORMAT, "sampling rate" },
		{ "heap_v2/12x\n", E_FORMAT, "sampling rate" },
		{ "heap_v2/99999999999999999999\n", E_FORMAT, "sampling rate" },
		{ "heap_v2/1\n", E_TRUNCATED, "totals" },
		{ "heap_v2/1\n  t0: 1: 8 [0: 0]\n", E_FORMAT, "line 2: expected the line with the totals" },
		{ "heap_v2/1\n@ 0x1\n", E_FORMAT, "line 2: expected the line with the totals" },
		{ "heap_v2/1\nhello\n", E_FORMAT, "line 2: expected a stack" },
		{ "heap_v2/1\n  t*: 1: 8 [0: 0]\n  t*: 1: 8 [0: 0]\n", E_FORMAT, "line 3: second line" },
		{ "heap_v2/1\n  t*: 1 8 [0: 0]\n", E_FORMAT, "line 2: expected OBJECTS: BYTES" },
		{ "heap_v2/1\n  t*: -1: 8 [0: 0]\n", E_FORMAT, "in place of \"-1: 8" },
		{ "heap_v2/1\n  t*: 1: 8\n", E_FORMAT, "line 2: expected [OBJECTS: BYTES]" },
		{ "heap_v2/1\n  t*: 1: 8 [0: 0\n", E_FORMAT, "line 2: expected ]" },
		{ "heap_v2/1\n  t*: 1: 8 [0 0]\n", E_FORMAT, "line 2: expected OBJECTS: BYTES" },
		{ "heap_v2/1\n  tx: 1: 8 [0: 0]\n", E_FORMAT, "line 2: expected a thread" },
		{ "heap_v2/1\n  t*: 9223372036854775808: 8 [0: 0]\n", E_FORMAT, "line 2: the count 9223372036854775808 is larger than 2^63 - 1" },
		{ "heap_v2/1\n  t*: 1: 99999999999999999999999 [0: 0]\n", E_FORMAT, "99999999999999999999999 is larger" },
		{ "heap_v2/1\n  t*: 1: 8 [0: 0]\n@ 0x1 zz\n", E_FORMAT, "line 3: expected an address" },
		{ "heap_v2/1\n  t*: 1: 8 [0: 0]\n@ 0x11112222333344445\n", E_FORMAT, "line 3: expected an address" },
		{ "heap_v2/1\n  t*: 1: 8 [0: 0]\n@ 0x1,0x2\n", E_FORMAT, "in place of \"0x1,0x2\"" },
		{ "heap_v2/1\n  t*: 1: 8 [0: 0]\n@ 0x1\n@ 0x2\n", E_FORMAT, "line 4: expected the \"t*:\" line" },
		{ "heap_v2/1\n  t*: 1: 8 [0: 0]\n@ 0x1\n  t0: 1: 8 [0: 0]\n", E_FORMAT, "line 4: expected the stack's \"t*:\" line first" },
		{ "heap_v2/1\n  t*: 1: 8 [0: 0]\n@ 0x1\n  t*: 1: 8 [0: 0]\n  t*: 1: 8 [0: 0]\n", E_FORMAT, "line 5: second" },
		{ "heap_v2/1\n  t*: 1: 8 [0: 0]\n@ 0x1\n  t*: 1: 8 [0: 0] x\n", E_FORMAT, "line 4: expected nothing behind" },
		{ "heap_v2/1\n  t*: 1: 8 [0: 0]\n@ 0x1\n", E_TRUNCATED, "before the counts of its last stack" },
		{ "heap_v2/1\n  t*: 1: 8 [0: 0]\n\n@ 0x1\n", E_FORMAT, "line 4: expected MAPPED_LIBRARIES" },
		{ "heap_v2/1\n  t*: 1: 8 [0: 0]\n@ 0x1\n  t*: 9223372036854775807: 8 [0: 0]\n", E_FORMAT, "line 4: the counts up to here stand for" },
		{ "heap_v2/4294967296\n  t*: 1: 8 [0: 0]\n@ 0x1\n  t*: 4294967296: 4294967296 [0: 0]\n", E_FORMAT, "line 4: the counts up to here stand for" },
		{ HEADER STACKS MAPS HEADER STACKS MAPS, E_FORMAT, "line 15: a second dump begins here" },
		{ HEADER STACKS "\nMAPPED_LIBRARIES:\n", E_TRUNCATED, "in the middle of its list of mappings" },
	};
	assert_errors(jeheap_read, cases, sizeof(cases) / sizeof(cases[0]));
}

static char *deep_dump(size_t frames, size_t *ret_n)
{
	struct buf b;
	buf_init(&b, (size_t)1 << 28);
	buf_adds(&b, "heap_v2/1\n  t*: 1: 8 [0: 0]\n@");
	for (size_t i = 0; i < frames; i++)
		buf_printf(&b, " 0x7f12%08zx", i * 16 + 5);
	buf_adds(&b, "\n  t*: 1: 8 [0: 0]\n");
	assert_false(b.failed);
	*ret_n = b.len;
	return b.data;
}

static void depth_has_a_limit(void **state)
{
	(void)state;
	static const size_t frames[] = { 65536, 65537, 1000000 };
	for (size_t i = 0; i < 3; i++) {
		size_t n;
		char *text = deep_dump(frames[i], &n);
		struct outcome o = read_bytes(jeheap_read, text, n, false);
		assert_int_equal(o.rc, i == 0 ? E_OK : E_LIMIT);
		if (i == 0)
			assert_int_equal(o.profile->stacks[0].n, 65536);
		else
			assert_non_null(strstr(o.error.text, "line 3: stack of more than 65536 frames"));
		outcome_finish(&o);
		free(text);
	}
}

static void endless_lines_have_a_limit(void **state)
{
	(void)state;
	size_t n = (size_t)8 << 20;
	char *text = malloc(n);
	memset(text, 'x', n);
	memcpy(text, "heap_v2/1\n", 10);
	assert_error(jeheap_read, text, n, E_LIMIT, "line 2: longer than the limit");
	free(text);
}

static void the_input_has_a_limit(void **state)
{
	(void)state;
	struct read_limits limits = read_limits_default;
	struct stream in;
	struct error err;
	struct profile *p = NULL;
	static const char text[] = HEADER STACKS MAPS;
	limits.input_bytes = 100;
	stream_open_memory(&in, "input", text, sizeof(text) - 1);
	assert_int_equal(jeheap_read(&in, &limits, NULL, &p, &err), E_LIMIT);
	stream_close(&in);
}

/* Every line that ends early leaves an error; the whole thing without its mappings is still an answer. */
static void the_section_may_be_absent(void **state)
{
	(void)state;
	struct outcome o = read_text(jeheap_read, HEADER STACKS);
	assert_true(warned(&o, "no MAPPED_LIBRARIES"));
	assert_int_equal(o.profile->n_samples, 2);
	outcome_finish(&o);
	o = read_text(jeheap_read, HEADER STACKS "\n");
	outcome_finish(&o);
	assert_error(jeheap_read, HEADER, strlen(HEADER), E_TRUNCATED, "end is missing");
}

static void partial_keeps_what_is_there(void **state)
{
	(void)state;
	static const char half[] = HEADER "@ 0x1001 0x2001\n  t*: 1: 300 [0: 0]\n  t0: 1: 300 [0: 0]\n@ 0x10";
	struct outcome o = read_bytes(jeheap_read, half, sizeof(half) - 1, true);
	assert_int_equal(o.rc, E_OK);
	assert_int_equal(o.profile->n_samples, 1);
	assert_true(warned(&o, "kept are the 1 stacks before"));
	assert_true(warned(&o, "% of the bytes"));
	outcome_finish(&o);
	/* Damage in the middle: the mappings behind it are found. */
	static const char middle[] = HEADER "@ 0x1001\n  t*: 1: 300 [0: 0]\n  t0: 1: 300 [0: 0]\n@ 0x10\n #### \n" MAPS;
	o = read_bytes(jeheap_read, middle, sizeof(middle) - 1, true);
	assert_int_equal(o.rc, E_OK);
	assert_int_equal(o.profile->n_samples, 1);
	assert_int_equal(o.profile->n_mappings, 2);
	outcome_finish(&o);
	/* Without a header nothing can be kept. */
	o = read_bytes(jeheap_read, "heap_v2/1\n", 10, true);
	assert_int_equal(o.rc, E_TRUNCATED);
	outcome_finish(&o);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_a_small_dump),
		cmocka_unit_test(one_is_exact),
		cmocka_unit_test(nothing_live_is_only_accumulated),
		cmocka_unit_test(nothing_at_all_is_no_sample),
		cmocka_unit_test(frames_may_be_missing_or_zero),
		cmocka_unit_test(windows_line_ends),
		cmocka_unit_test(names_keep_every_byte),
		cmocka_unit_test(bent_counts_are_shared_out),
		cmocka_unit_test(raw_counts_use_the_finest_lines),
		cmocka_unit_test(a_thread_may_come_twice),
		cmocka_unit_test(short_stacks_are_warned_about),
		cmocka_unit_test(errors_name_the_line),
		cmocka_unit_test(depth_has_a_limit),
		cmocka_unit_test(endless_lines_have_a_limit),
		cmocka_unit_test(the_input_has_a_limit),
		cmocka_unit_test(the_section_may_be_absent),
		cmocka_unit_test(partial_keeps_what_is_there),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
