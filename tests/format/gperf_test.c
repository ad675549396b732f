/* The older heap profile text: every kind of header, and every way a file can be wrong. */
#include "jeheap_helpers.h"

#define MAPS "\nMAPPED_LIBRARIES:\n" \
             "00001000-00002000 r-xp 00003000 08:01 77                         /bin/prog\n" \
             "7ffc0000-7ffd0000 rw-p 00000000 00:00 0                          [stack]\n"

static void the_heap_profiler_is_exact(void **state)
{
	(void)state;
	struct outcome o = read_text(gperf_read,
	    "heap profile:     91:   437530 [ 33516: 43167553] @ heapprofile\n"
	    "    90:   437000 [   500:  437000] @ 0x1001 0x1101\n"
	    "     1:      530 [ 33015: 42730553] @\n"
	    "     0:        0 [     1:        0] @ 0x1301\n" MAPS);
	assert_int_equal(o.profile->n_types, 4);
	assert_int_equal(total(o.profile, INUSE_OBJECTS), 91);
	assert_int_equal(total(o.profile, INUSE_SPACE), 437530);
	assert_int_equal(total(o.profile, ALLOC_OBJECTS), 33516);
	assert_int_equal(total(o.profile, ALLOC_SPACE), 43167553);
	assert_int_equal(o.profile->sources[0].rate, 1);
	assert_int_equal(o.profile->locations[0].address, 0x1000);
	assert_int_equal(o.profile->locations[0].mapping, 0);
	outcome_finish(&o);
}

static void rates_of_headers(void **state)
{
	(void)state;
	static const struct {
		const char *kind;
		double rate;
		bool guessed;
	} cases[] = {
		{ " @ heap_v2/524288", 524288, false }, { " @ heapz_v2/4096", 4096, false }, { " @ heap/1048576", 524288, false },
		{ " @ heap_v2/1", 1, false },           { " @ heapprofile", 1, false },       { " @ growth", 1, false },
		{ " @ heap_v2", 131072, true },         { " @ heap_v2/0", 131072, true },     { "", 131072, true },
		{ " @ ", 131072, true },                { " @ growthz/8", 1, false },
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char text[256];
		snprintf(text, sizeof(text), "heap profile: 2: 600 [2: 600]%s\n2: 600 [2: 600] @ 0x1001\n", cases[i].kind);
		struct outcome o = read_text(gperf_read, text);
		assert_true(o.profile->sources[0].rate == cases[i].rate);
		assert_int_equal(warned(&o, "names no sampling rate"), cases[i].guessed);
		double want = cases[i].rate > 1 ? 600 * scale(2, 600, cases[i].rate) : 600;
		assert_int_equal(total(o.profile, INUSE_SPACE), llround(want));
		outcome_finish(&o);
	}
	/* No name, and more allocated than in use: nothing was sampled. */
	struct outcome o = read_text(gperf_read, "heap profile: 1: 300 [2: 600]\n1: 300 [2: 600] @ 0x1001\n");
	assert_int_equal(total(o.profile, INUSE_SPACE), 300);
	outcome_finish(&o);
}

/* tcmalloc writes a line a sampled block: the fractions of a block add up. */
static void lines_of_one_stack_are_added_before_rounding(void **state)
{
	(void)state;
	struct outcome o = read_text(gperf_read,
	    "heap profile: 3: 300000 [3: 300000] @ heap_v2/65536\n1: 100000 [1: 100000] @ 0x1001\n"
	    "1: 100000 [1: 100000] @ 0x1101\n1: 100000 [1: 100000] @ 0x1001\n" MAPS);
	assert_int_equal(o.profile->n_types, 2);
	assert_int_equal(o.profile->n_samples, 2);
	assert_int_equal(o.profile->values[0], llround(2 * scale(1, 100000, 65536)));
	assert_int_equal(o.profile->values[1], llround(200000 * scale(1, 100000, 65536)));
	outcome_finish(&o);
}

static void comments_of_go(void **state)
{
	(void)state;
	struct outcome o = read_text(gperf_read,
	    "heap profile: 1: 1024 [3: 2048] @ heap/1048576\n1: 1024 [3: 2048] @ 0x47a1f5 0x46c021\n"
	    "#\t0x47a1f4\tmain.main+0x34\t/x/main.go:9\n\n\n# runtime.MemStats\n# Alloc = 1\n");
	assert_int_equal(o.profile->n_types, 4);
	assert_int_equal(total(o.profile, INUSE_SPACE), llround(1024 * scale(1, 1024, 524288)));
	outcome_finish(&o);
}

static void errors_name_the_line(void **state)
{
	(void)state;
	static const struct bad_text cases[] = {
		{ "", E_TRUNCATED, "empty" },
		{ "heap profile: 1: 2 [1: 2] @ heap_v2/1", E_TRUNCATED, "line 1" },
		{ "heap\n", E_FORMAT, "line 1: expected \"heap profile:" },
		{ "heap profile: x\n", E_FORMAT, "line 1: expected OBJECTS" },
		{ "heap profile: 1: 2 [1: 2] @ heap_v2/x\n", E_FORMAT, "line 1: expected the sampling rate" },
		{ "heap profile: 1: 2 [1: 2] @ heap_v2/99999999999999999999\n", E_FORMAT, "sampling rate" },
		{ "heap profile: 1: 9223372036854775808 [1: 2] @ heap_v2/1\n", E_FORMAT, "larger than 2^63" },
		{ "heap profile: 1: 2 [1: 2] @ heapprofile\n1: 2 [1: 2]\n", E_FORMAT, "line 2: expected \"@ 0x...\"" },
		{ "heap profile: 1: 2 [1: 2] @ heapprofile\n1: 2 [1: 2] @ 0xq\n", E_FORMAT, "line 2: expected an address" },
		{ "heap profile: 1: 2 [1: 2] @ heapprofile\n-1: 2 [1: 2] @ 0x1\n", E_FORMAT, "line 2: expected OBJECTS" },
		{ "heap profile: 1: 2 [1: 2] @ heapprofile\n", E_TRUNCATED, "end is missing" },
		{ "heap profile: 2: 2 [2: 2] @ heapprofile\n1: 1 [1: 1] @ 0x1\n", E_TRUNCATED, "1 of the 2 blocks" },
		{ "heap profile: 1: 2 [1: 2] @ heapprofile\n1: 2 [1: 2] @ 0x1", E_TRUNCATED, "line 2" },
		{ "heap profile: 1: 2 [1: 2] @ heapprofile\n1: 2 [1: 2] @ 0x10001\nMAPPED_LIBRARIES:\n1000-2000: /x.so\n", E_TRUNCATED, "list of mappings" },
		{ "heap profile: 1: 2 [1: 2] @ heap_v2/4294967296\n4294967296: 4294967296 [1: 2] @ 0x1\n", E_FORMAT, "line 2: the counts up to here" },
		{ "heap profile: 1: 2 [1: 2] @ heapprofile\n1: 2 [1: 2] @ 0x1\n" MAPS "heap profile: 1: 2 [1: 2] @ heapprofile\n", E_FORMAT, "second profile" },
	};
	assert_errors(gperf_read, cases, sizeof(cases) / sizeof(cases[0]));
}

static void partial_keeps_what_is_there(void **state)
{
	(void)state;
	static const char text[] = "heap profile: 2: 2 [2: 2] @ heapprofile\n1: 1 [1: 1] @ 0x1001\n1: 1 [\n" MAPS;
	struct outcome o = read_bytes(gperf_read, text, sizeof(text) - 1, true);
	assert_int_equal(o.rc, E_OK);
	assert_int_equal(o.profile->n_samples, 1);
	assert_int_equal(o.profile->n_mappings, 1);
	assert_true(warned(&o, "kept are 1 stacks"));
	outcome_finish(&o);
}

/* gperftools leaves the smallest stacks out when its buffer is full, and says so nowhere. */
static void what_the_writer_left_out_is_warned_about(void **state)
{
	(void)state;
	struct outcome o = read_text(gperf_read, "heap profile: 2: 900 [2: 900] @ heapprofile\n1: 800 [1: 800] @ 0x1001\n" MAPS);
	assert_true(warned(&o, "800 of the 900 bytes"));
	outcome_finish(&o);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_heap_profiler_is_exact),
		cmocka_unit_test(rates_of_headers),
		cmocka_unit_test(lines_of_one_stack_are_added_before_rounding),
		cmocka_unit_test(comments_of_go),
		cmocka_unit_test(errors_name_the_line),
		cmocka_unit_test(partial_keeps_what_is_there),
		cmocka_unit_test(what_the_writer_left_out_is_warned_about),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
