/* Names of code that is in no file. */
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include <dlfcn.h>
#include <sys/auxv.h>

#include "symbol/outside.h"

static void parse(struct perf_map *m, const char *lines)
{
	struct error err;
	assert_int_equal(perf_map_parse(m, strdup(lines), strlen(lines), &err), 0);
}

static void assert_name(const struct perf_map *m, uint64_t address, const char *want)
{
	const char *name = perf_map_find(m, address);
	if (want)
		assert_string_equal(name, want);
	else
		assert_null(name);
}

static void lines_name_what_they_cover(void **state)
{
	struct perf_map m;
	(void)state;
	parse(&m, "7f0000001000 20 first\n0x7f0000001020 0x10 LazyCompile:~f /a b.js:1\n10 8 small\r\n");
	assert_name(&m, 0x7f0000000fff, NULL);
	assert_name(&m, 0x7f0000001000, "first");
	assert_name(&m, 0x7f000000101f, "first");
	assert_name(&m, 0x7f0000001020, "LazyCompile:~f /a b.js:1");
	assert_name(&m, 0x7f0000001030, NULL);
	assert_name(&m, 0x17, "small");
	assert_name(&m, 0x18, NULL);
	assert_name(&m, 0, NULL);
	assert_name(&m, UINT64_MAX, NULL);
	perf_map_finish(&m);
}

static void what_came_later_counts(void **state)
{
	struct perf_map m;
	(void)state;
	parse(&m, "1000 100 old\n1000 40 new\n1010 8 inner\n2000 10 a");
	assert_name(&m, 0x1000, "new");
	assert_name(&m, 0x1013, "inner");
	assert_name(&m, 0x1020, "new");
	assert_name(&m, 0x1050, NULL);
	assert_name(&m, 0x2005, "a");
	perf_map_finish(&m);
}

static void nonsense_is_skipped(void **state)
{
	struct perf_map m;
	(void)state;
	parse(&m, "\n\nabc\n10\n10 20\n10 20 \nxyz 1 f\n-1 1 f\nffffffffffffffff 2 past\n30 0 none\n10000000000000000 1 f\n40 10 good\n");
	assert_int_equal(m.n, 1);
	assert_name(&m, 0x4f, "good");
	assert_name(&m, 0x10, NULL);
	perf_map_finish(&m);
	parse(&m, "");
	assert_name(&m, 0, NULL);
	perf_map_finish(&m);
}

static void only_regular_files_are_read(void **state)
{
	struct perf_map m;
	struct error err;
	char path[] = "perf-map-XXXXXX";
	(void)state;
	assert_int_equal(perf_map_read(&m, "/nowhere/perf-1.map", &err), E_IO);
	assert_int_equal(perf_map_read(&m, "/", &err), E_IO);
	assert_int_equal(perf_map_read(&m, "/dev/zero", &err), E_IO);
	assert_non_null(strstr(err.text, "not a regular file"));
	int fd = mkstemp(path);
	assert_int_equal(write(fd, "10 10 f\n", 8), 8);
	close(fd);
	assert_int_equal(perf_map_read(&m, path, &err), 0);
	assert_name(&m, 0x1f, "f");
	perf_map_finish(&m);
	unlink(path);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(perf_map_read(&m, path, &err), E_IO);
	unlink(path);
}

static void a_missing_map_is_a_warning(void **state)
{
	struct outside o;
	struct buf warnings;
	(void)state;
	buf_init(&warnings, 4096);
	outside_init(&o, "/nowhere/perf-1.map", &warnings);
	assert_non_null(strstr(warnings.data, "/nowhere/perf-1.map: cannot open"));
	assert_null(outside_name(&o, "", "", 0x1000, 0));
	outside_finish(&o);
	buf_finish(&warnings);
}

/* The loader knows where the vdso's functions are. */
static void the_vdso_has_names(void **state)
{
	struct outside o;
	void *vdso = dlopen("linux-vdso.so.1", RTLD_LAZY | RTLD_NOLOAD);
	void *start = (void *)getauxval(AT_SYSINFO_EHDR);
	void *function = vdso ? dlsym(vdso, "__vdso_clock_gettime") : NULL;
	(void)state;
	if (!function || !start)
		skip();
	uint64_t offset = (uint64_t)((char *)function - (char *)start);
	outside_init(&o, NULL, NULL);
	assert_true(strlen(outside_vdso_id(&o)) >= 16);
	assert_string_equal(outside_name(&o, "[vdso]", outside_vdso_id(&o), 0, offset + 1), "__vdso_clock_gettime");
	assert_null(outside_name(&o, "[vdso]", outside_vdso_id(&o), 0, 0));
	assert_null(outside_name(&o, "[vdso]", "0123456789abcdef", 0, offset + 1));
	assert_null(outside_name(&o, "[vdso]", "", 0, offset + 1));
	outside_finish(&o);
	dlclose(vdso);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_name_what_they_cover),
		cmocka_unit_test(what_came_later_counts),
		cmocka_unit_test(nonsense_is_skipped),
		cmocka_unit_test(only_regular_files_are_read),
		cmocka_unit_test(a_missing_map_is_a_warning),
		cmocka_unit_test(the_vdso_has_names),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
