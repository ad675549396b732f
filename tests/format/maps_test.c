/* Lines of address-space listings, and which mapping is what. */
#include "jeheap_helpers.h"

static void parses(const char *line, uint64_t start, uint64_t limit, uint64_t offset, bool executable, bool deleted,
                   const char *path)
{
	struct mapping m;
	const char *got;
	size_t n;
	if (maps_parse_line(line, strlen(line), &m, &got, &n) != 1)
		fail_msg("not taken: %s", line);
	assert_true(m.start == start && m.limit == limit && m.offset == offset);
	assert_int_equal(m.executable, executable);
	assert_int_equal(m.deleted, deleted);
	assert_int_equal(n, strlen(path));
	assert_memory_equal(got, path, n);
}

static void lines_of_linux(void **state)
{
	(void)state;
	parses("00400000-0048a000 r-xp 00001000 fd:03 960637       /bin/bash", 0x400000, 0x48a000, 0x1000, true, false, "/bin/bash");
	parses("7f12-7f13 rw-p 00000000 00:00 0 ", 0x7f12, 0x7f13, 0, false, false, "");
	parses("7f12-7f13 rw-p 00000000 00:00 0", 0x7f12, 0x7f13, 0, false, false, "");
	parses("7f12-7f13 r--s 00000000 00:05 3   /a path/with  blanks", 0x7f12, 0x7f13, 0, false, false, "/a path/with  blanks");
	parses("7f12-7f13 r-xp 00000000 00:05 3   /tmp/x (deleted)", 0x7f12, 0x7f13, 0, true, true, "/tmp/x");
	parses("7f12-7f13 r-xp 00000000 00:05 3   (deleted)", 0x7f12, 0x7f13, 0, true, false, "(deleted)");
	parses("ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]",
	       0xffffffffff600000, 0xffffffffff601000, 0, true, false, "[vsyscall]");
}

static void lines_of_others(void **state)
{
	(void)state;
	parses("0000000100a3c000-0000000100b40000: /Users/me/My App/prog", 0x100a3c000, 0x100b40000, 0, true, false, "/Users/me/My App/prog");
	parses("  40000000-40015000: /lib/ld-2.3.2.so", 0x40000000, 0x40015000, 0, true, false, "/lib/ld-2.3.2.so");
	parses("0x800600000 0x80061a000 26 0 0xfffff800035a0000 r-x 75 33 0x1004 COW NC vnode /libexec/ld-elf.so.1 NCH -1",
	       0x800600000, 0x80061a000, 0, true, false, "/libexec/ld-elf.so.1");
	parses("0x801000000 0x801400000 26 0 0xfffff800035a0000 rw- 75 33 0x1004 COW NC default - NCH -1",
	       0x801000000, 0x801400000, 0, false, false, "");
}

static void what_is_no_mapping(void **state)
{
	(void)state;
	static const char *const lines[] = {
		"", " ", "-", "abc", "build=/x", "7f12-", "7f12-7f13", "7f12-7f13 ", "7f13-7f12 r-xp 0 00:00 0 /x",
		"7f12-7f12 r-xp 0 00:00 0 /x", "7f12-7f13 r-xp zz 00:00 0 /x", "7f12-7f13 r-xp 0 0000 0 /x",
		"7f12-7f13 r-xp 0 00:00 x /x", "12345678901234567-12345678901234568 r-xp 0 00:00 0 /x", "0x12 0x13 1 2",
		"7f12-7f13 rwxpqr 0 00:00 0 /x",
	};
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		struct mapping m;
		const char *path;
		size_t n;
		if (maps_parse_line(lines[i], strlen(lines[i]), &m, &path, &n))
			fail_msg("taken: %s", lines[i]);
	}
}

/* Builds the mappings of a profile from lines; addresses are those of frames. */
static struct profile *build(const char *const *lines, const uint64_t *addresses, size_t n, struct maps **ret)
{
	struct profile *p = profile_new(0);
	struct maps *m = maps_new();
	struct error err;
	for (; *lines; lines++)
		assert_true(maps_add_line(m, p, *lines, strlen(*lines), &err) >= 0);
	assert_int_equal(maps_finish(m, p, addresses, n, &err), E_OK);
	*ret = m;
	return p;
}

static const char *file(const struct profile *p, uint32_t mapping)
{
	return mapping == PROFILE_NONE ? "none" : profile_text(p, p->mappings[mapping].file);
}

static void neighbours_are_joined_and_looked_up(void **state)
{
	(void)state;
	static const char *const lines[] = {
		"1000-2000 r--p 00000000 08:01 5 /bin/prog",
		"2000-3000 r-xp 00001000 08:01 5 /bin/prog",
		"3000-5000 r-xp 00002000 08:01 5 /bin/prog",
		"5000-6000 r-xp 00009000 08:01 5 /bin/prog",
		"6000-7000 r-xp 00000000 00:00 0 ",
		"7000-8000 r-xp 00000000 00:00 0 ",
		"8000-9000 rw-p 00000000 08:01 6 /data",
		"a000-b000 r-xp 00000000 08:01 7 /lib/liba.so",
		NULL,
	};
	static const uint64_t addresses[] = { 0x2500, 0x4fff, 0x6800, 0x8001 };
	struct maps *m;
	struct profile *p = build(lines, addresses, 4, &m);
	assert_int_equal(maps_find(m, 0x2500), 0);
	assert_int_equal(maps_find(m, 0x4fff), 0);
	assert_int_equal(p->mappings[0].offset, 0x1000);
	assert_int_equal(p->mappings[0].limit, 0x5000);
	assert_string_equal(file(p, maps_find(m, 0x5000)), "/bin/prog");
	assert_int_not_equal(maps_find(m, 0x5000), 0);
	/* Without a file or not executable: only where frames are. */
	assert_int_not_equal(maps_find(m, 0x6001), PROFILE_NONE);
	assert_int_equal(maps_find(m, 0x7001), PROFILE_NONE);
	assert_string_equal(file(p, maps_find(m, 0x8800)), "/data");
	assert_int_equal(maps_find(m, 0x1800), PROFILE_NONE);
	assert_int_equal(maps_find(m, 0x9000), PROFILE_NONE);
	assert_int_equal(maps_find(m, 0), PROFILE_NONE);
	assert_int_equal(maps_find(m, UINT64_MAX), PROFILE_NONE);
	assert_string_equal(file(p, maps_find(m, 0xa000)), "/lib/liba.so");
	maps_free(m);
	profile_free(p);
}

static void the_main_program_comes_first(void **state)
{
	(void)state;
	static const char *const by_loader[] = {
		"7f00-7f10 r-xp 00000000 08:01 5 /lib/libc.so.6",
		"7f10-7f11 rw-p 00000000 08:01 5 /usr/share/some.data",
		"7f20-7f30 r-xp 00000000 08:01 7 /memfd:doublemapper (deleted)",
		"7f40-7f50 r-xp 00001000 08:01 9 /opt/x.sources/server",
		"7f60-7f70 r-xp 00000000 08:01 8 /lib64/ld-linux-x86-64.so.2",
		"7f80-7f90 r-xp 00000000 00:00 0 [vdso]",
		NULL,
	};
	static const char *const libraries_only[] = {
		"7f80-7f90 r-xp 00000000 00:00 0 [vdso]",
		"7f00-7f10 r-xp 00000000 08:01 5 /lib/libc.so.6",
		NULL,
	};
	static const char *const from_memory[] = {
		"7f00-7f10 r-xp 00000000 08:01 5 /lib/libc.so.6",
		"7f20-7f30 r-xp 00000000 08:01 7 /memfd:server (deleted)",
		NULL,
	};
	/* macOS lists the program first, wherever it is. */
	static const char *const mac[] = {
		"0000000104a3c000-0000000104b40000: /Users/me/prog",
		"0000000100000000-0000000100040000: /Users/me/plugin",
		NULL,
	};
	static const struct {
		const char *const *lines;
		const char *main;
	} cases[] = {
		{ by_loader, "/opt/x.sources/server" },
		{ libraries_only, "/lib/libc.so.6" },
		{ from_memory, "/memfd:server" },
		{ mac, "/Users/me/prog" },
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct maps *m;
		struct profile *p = build(cases[i].lines, NULL, 0, &m);
		assert_string_equal(file(p, 0), cases[i].main);
		maps_free(m);
		profile_free(p);
	}
}

static void a_newline_in_a_path(void **state)
{
	(void)state;
	static const char *const lines[] = { "1000-2000 r-xp 00000000 08:01 5 /bin/a\\012b\\040c", NULL };
	struct maps *m;
	struct profile *p = build(lines, NULL, 0, &m);
	assert_string_equal(file(p, 0), "/bin/a\nb\\040c");
	maps_free(m);
	profile_free(p);
}

static void overlapping_lists_do_no_harm(void **state)
{
	(void)state;
	static const char *const lines[] = {
		"1000-9000 r-xp 00000000 08:01 5 /bin/a", "1000-2000 r-xp 00000000 08:01 6 /bin/b",
		"0-ffffffffffffffff r-xp 00000000 08:01 7 /bin/c", NULL,
	};
	struct maps *m;
	struct profile *p = build(lines, NULL, 0, &m);
	for (uint64_t a = 0; a < 0xa000; a += 0x800)
		(void)maps_find(m, a);
	assert_int_not_equal(maps_find(m, 0x1800), PROFILE_NONE);
	maps_free(m);
	profile_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_of_linux),
		cmocka_unit_test(lines_of_others),
		cmocka_unit_test(what_is_no_mapping),
		cmocka_unit_test(neighbours_are_joined_and_looked_up),
		cmocka_unit_test(the_main_program_comes_first),
		cmocka_unit_test(a_newline_in_a_path),
		cmocka_unit_test(overlapping_lists_do_no_harm),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
