/* Which frames are the allocator's: by name here, and by the regular expression that pprof's viewers are given. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <regex.h>
#include <stdio.h>
#include <stdlib.h>

#include "profile/operations.h"

static bool is_dropped(const regex_t *re, const char *name)
{
	return regexec(re, name, 0, NULL, 0) == 0;
}

/* As pprof does it: the whole name must match. */
static void compile_drop_frames(regex_t *ret)
{
	char *whole = NULL;
	assert_true(asprintf(&whole, "^(%s)$", allocator_drop_frames) > 0);
	assert_int_equal(regcomp(ret, whole, REG_EXTENDED | REG_NOSUB), 0);
	free(whole);
}

static void assert_allocator(const regex_t *re, const char *name, bool want)
{
	if (function_is_allocator(name) != want || is_dropped(re, name) != want)
		fail_msg("%s: %d by name, %d by drop_frames, not %d", name, function_is_allocator(name), is_dropped(re, name),
		         want);
}

static void drop_frames_match_every_entry_point(void **state)
{
	(void)state;
	static const char *const names[] = { "malloc", "calloc", "realloc", "free", "cfree", "memalign",
		"posix_memalign", "aligned_alloc", "valloc", "pvalloc", "reallocarray", "free_sized", "free_aligned_sized",
		"mallocx", "rallocx", "xallocx", "sallocx", "dallocx", "sdallocx", "nallocx", "newImpl", "fallbackNewImpl", "handleOOM", "malloc_default",
		"realloc_default", "free_default", "sdallocx_default", "prof_backtrace_impl", "prof_alloc_prep",
		"prof_tctx_create", "imalloc", "imalloc_body", "irallocx_prof", "do_rallocx", "do_realloc_nonnull",
		"do_realloc_nonnull_zero" };
	static const char *const prefixes[] = { "", "je_", "_rjem_", "__rjem_", "_rjem_je_", "__rjem_je_", "__je_",
		"my_build_je_", "__libc_", "tc_" };
	static const char *const suffixes[] = { "", "(unsigned long)", ".part.0", ".cold", "@plt", "<false>(unsigned long)" };
	regex_t re;
	compile_drop_frames(&re);
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		for (size_t k = 0; k < sizeof prefixes / sizeof *prefixes; k++)
			for (size_t s = 0; s < sizeof suffixes / sizeof *suffixes; s++) {
				char name[128];
				snprintf(name, sizeof name, "%s%s%s", prefixes[k], names[i], suffixes[s]);
				assert_allocator(&re, name, true);
			}
	regfree(&re);
}

static void drop_frames_say_what_the_names_say(void **state)
{
	(void)state;
	static const char *const ours[] = { "_rjem_je_prof_backtrace", "je_arena_malloc_hard.part.0", "je_imalloc_body",
		"mybuild_je_tcache_alloc_small_hard", "_rjem_je_large_palloc", "je_do_realloc_nonnull", "je_malloc_slow",
		"operator new(unsigned long)", "operator new[](unsigned long, std::nothrow_t const&)", "operator new",
		"operator delete(void*, unsigned long)", "operator delete[](void*)", "void* fallbackNewImpl<false>(unsigned long)", "void* newImpl<true>(unsigned long)",
		"__rust_alloc", "__rust_alloc_zeroed", "__rust_realloc", "__rust_dealloc", "__rg_alloc", "__rg_realloc",
		"__rdl_alloc", "__rdl_alloc_zeroed", "__rdl_realloc", "__rustc::__rust_alloc", "__rustc::__rdl_realloc",
		"__rustc::__rg_alloc_zeroed", "alloc::alloc::alloc", "alloc::alloc::exchange_malloc",
		"alloc::alloc::Global::alloc_impl", "<alloc::alloc::Global as core::alloc::Allocator>::allocate",
		"<tikv_jemallocator::Jemalloc as core::alloc::global::GlobalAlloc>::alloc",
		"<shop::Counting as core::alloc::global::GlobalAlloc>::alloc", "std::alloc::__default_lib_allocator::alloc",
		"std::__new_allocator<int>::allocate(unsigned long, void const*)",
		"std::allocator_traits<std::allocator<int> >::allocate(std::allocator<int>&, unsigned long)",
		"__gnu_cxx::new_allocator<char>::allocate" };
	static const char *const theirs[] = { "", "main", "mallocator_run", "callocate", "zmalloc", "xmalloc", "malloc_trim_later",
		"mallocx2", "my_malloc", "freeClient", "free_sized_list", "reallocate", "je_suis_une_fonction", "je_",
		"arena_malloc_like", "imalloc_later", "shop::malloc", "shop::je_malloc(int)", "mallocator::run",
		"operator()", "operators new", "newImplementation()", "handleOOMAndRetry()", "void* newImpls(int)", "shop::operator new_thing", "__rust_begin", "__rustc::rust_begin_unwind",
		"alloc::vec::Vec<T>::push", "alloc::raw_vec::RawVec<T,A>::grow_one", "std::vector<int>::push_back(int const&)",
		"libjemalloc_users", "server!0x1234", "server!fn_1230", "__libc_start_main", "__libc_start_call_main", "tc_run" };
	/* By mapping, not by name; and what calls a constructor is only looked for at the leaf. */
	static const char *const unnamed[] = { "libjemalloc.so.2!0x1234", "libtcmalloc_minimal.so.4.5.10!0x9",
		"libjemalloc.so.2!fn_1230" };
	static const char *const construct = "std::allocator_traits<std::allocator<T> >::construct<T>";
	regex_t re;
	compile_drop_frames(&re);
	for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
		assert_allocator(&re, ours[i], true);
	for (size_t i = 0; i < sizeof theirs / sizeof *theirs; i++)
		assert_allocator(&re, theirs[i], false);
	for (size_t i = 0; i < sizeof unnamed / sizeof *unnamed; i++)
		assert_true(is_dropped(&re, unnamed[i]));
	assert_true(function_is_allocator(construct) && !is_dropped(&re, construct));
	regfree(&re);
}

static void placeholders_are_no_names(void **state)
{
	(void)state;
	static const char *const unnamed[] = { "libjemalloc.so.2!0x1234", "server!fn_1230", "a!b!0xabcdef", "[vdso]!0x5f" };
	static const char *const named[] = { "", "main", "server!", "server!0x", "server!fn_", "server!fn_main", "fn_1230",
		"server!0x12 (inline)", "map!(fn_12)" };
	for (size_t i = 0; i < sizeof unnamed / sizeof *unnamed; i++)
		assert_true(function_is_unnamed(unnamed[i]));
	for (size_t i = 0; i < sizeof named / sizeof *named; i++)
		assert_false(function_is_unnamed(named[i]));
}

static void unnamed_frames_below_the_allocator_go_with_it(void **state)
{
	(void)state;
	uint8_t stripped[] = { FRAME_UNNAMED, FRAME_UNNAMED, FRAME_ALLOCATOR, 0, FRAME_ALLOCATOR };
	assert_int_equal(allocator_leaf_frames(stripped, 5), 3);
	assert_int_equal(allocator_leaf_frames(stripped, 2), 0);
	uint8_t only[] = { FRAME_ALLOCATOR, FRAME_ALLOCATOR };
	assert_int_equal(allocator_leaf_frames(only, 2), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(drop_frames_match_every_entry_point),
		cmocka_unit_test(drop_frames_say_what_the_names_say),
		cmocka_unit_test(placeholders_are_no_names),
		cmocka_unit_test(unnamed_frames_below_the_allocator_go_with_it),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
