/*
 * Where files that belong to a binary are found, and which are not taken: on the trees that programs/fixtures.sh builds in
 * the folder given as argument.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "symbol/locate.h"

static const char *folder;

static const char *fixture(const char *name)
{
	static char paths[32][4096];     /* the last 32 stay valid */
	static int next;
	char *path = paths[next++ % 32];
	snprintf(path, sizeof(paths[0]), "%s/%s", folder, name);
	return path;
}

static void build_id_of(const char *name, char ret[BUILD_ID_TEXT])
{
	struct elf_file f;
	assert_int_equal(elf_file_open(&f, fixture(name), NULL), 0);
	memcpy(ret, f.build_id, BUILD_ID_TEXT);
	elf_file_finish(&f);
}

/* What is asked of whom, with which directories (NULL: none) and sysroot; and the path that must come, NULL for none. */
struct question {
	struct file_request request;
	const char *first, *second, *sysroot;
};

static void assert_answer(const struct question *q, const char *want, const char *want_warning)
{
	const char *search[] = { q->first, q->second, NULL };
	struct symbol_options o = { .search = search, .sysroot = q->sysroot };
	struct locator l;
	struct buf warnings;
	struct stat got, right;
	char path[4096] = "";
	buf_init(&warnings, 1 << 16);
	locator_init(&l, &o, &warnings);
	struct file_source files = locator_files(&l);
	int fd = files.open(files.context, &q->request, path, sizeof(path));
	if (want) {
		if (fd < 0)
			fail_msg("%s was not found: %s", want, warnings.len ? warnings.data : "no warning");
		assert_int_equal(fstat(fd, &got), 0);
		assert_int_equal(stat(want, &right), 0);
		if (got.st_ino != right.st_ino)
			fail_msg("%s was found, not %s", path, want);
		assert_int_equal(stat(path, &got), 0);
		assert_int_equal(got.st_ino, right.st_ino);
		close(fd);
	} else if (fd >= 0) {
		fail_msg("%s was taken", path);
	}
	if (want_warning ? !warnings.len || !strstr(warnings.data, want_warning) : warnings.len != 0)
		fail_msg("said: %s", warnings.len ? warnings.data : "nothing");
	locator_finish(&l);
	buf_finish(&warnings);
}

/* The debug file of a fixture, asked for as a reader does. */
static struct question debug_of(const char *name, struct elf_file *f)
{
	struct question q = { .request = { .kind = FILE_DEBUG } };
	assert_int_equal(elf_file_open(f, fixture(name), NULL), 0);
	q.request.of = f->path;
	q.request.build_id = f->build_id;
	q.request.name = elf_file_debuglink(f, &q.request.crc);
	return q;
}

static void assert_debug_file(const char *of, const char *first, const char *sysroot, const char *want, const char *want_warning)
{
	struct elf_file f, found;
	struct question q = debug_of(of, &f);
	q.first = first;
	q.sysroot = sysroot;
	assert_answer(&q, want, want_warning);
	/* The same asked directly. */
	const char *search[] = { first, NULL };
	struct symbol_options o = { .search = search, .sysroot = sysroot };
	bool there = locate_debug_file(&f, &o, &found);
	assert_int_equal(there, want != NULL);
	if (there)
		elf_file_finish(&found);
	elf_file_finish(&f);
}

static void debug_files_are_found_by_build_id(void **state)
{
	(void)state;
	char id[BUILD_ID_TEXT], inside[200];
	build_id_of("whole", id);
	snprintf(inside, sizeof(inside), "ids/.build-id/%.2s/%s.debug", id, id + 2);
	assert_debug_file("bare/program", NULL, NULL, NULL, NULL);
	assert_debug_file("bare/program", fixture("ids"), NULL, fixture(inside), NULL);
	assert_debug_file("bare/program", fixture(inside), NULL, fixture(inside), NULL);
	snprintf(inside, sizeof(inside), "package/usr/lib/debug/.build-id/%.2s/%s.debug", id, id + 2);
	assert_debug_file("bare/program", fixture("package"), NULL, fixture(inside), NULL);
	snprintf(inside, sizeof(inside), "system/usr/lib/debug/.build-id/%.2s/%s.debug", id, id + 2);
	assert_debug_file("bare/program", NULL, fixture("system"), fixture(inside), NULL);
	/* A file that only has symbols is better than none, and worse than another. */
	struct elf_file f;
	struct question q = debug_of("bare/program", &f);
	q.first = fixture("symbols");
	snprintf(inside, sizeof(inside), "symbols/.build-id/%.2s/%s.debug", id, id + 2);
	assert_answer(&q, fixture(inside), NULL);
	q.second = fixture("ids");
	snprintf(inside, sizeof(inside), "ids/.build-id/%.2s/%s.debug", id, id + 2);
	assert_answer(&q, fixture(inside), NULL);
	elf_file_finish(&f);
}

static void debug_files_are_found_by_their_link(void **state)
{
	(void)state;
	assert_debug_file("beside", NULL, NULL, fixture("beside.debug"), NULL);
	assert_debug_file("below/below", NULL, NULL, fixture("below/.debug/below.debug"), NULL);
	assert_debug_file("no-id-beside", NULL, NULL, fixture("no-id-beside.debug"), NULL);
	assert_debug_file("system/usr/bin/linked", NULL, NULL, NULL, NULL);
	assert_debug_file("system/usr/bin/linked", NULL, fixture("system"), fixture("system/usr/lib/debug/usr/bin/linked.debug"), NULL);
	assert_debug_file("system/usr/bin/linked", fixture("system/usr/lib/debug/usr/bin"), NULL,
	                  fixture("system/usr/lib/debug/usr/bin/linked.debug"), NULL);
	/* Through a symbolic link, the folder is the real one. */
	unlink(fixture("link"));
	assert_int_equal(symlink(fixture("below/below"), fixture("link")), 0);
	assert_debug_file("link", NULL, NULL, fixture("below/.debug/below.debug"), NULL);
}

static void other_builds_are_named_and_not_used(void **state)
{
	(void)state;
	char id[BUILD_ID_TEXT], other[BUILD_ID_TEXT], sentence[9000];
	build_id_of("mismatched", id);
	build_id_of("mismatched.debug", other);
	assert_string_not_equal(id, other);
	snprintf(sentence, sizeof(sentence), "%s has build id %s, %s has %s: not used\n", fixture("mismatched.debug"), other,
	         fixture("mismatched"), id);
	assert_debug_file("mismatched", NULL, NULL, NULL, sentence);
	assert_debug_file("no-id-wrong", NULL, NULL, NULL, "no-id-wrong.debug has not the checksum that ");
	/* Nothing is said once the right one is found. */
	char inside[200];
	snprintf(inside, sizeof(inside), "ids/.build-id/%.2s/%s.debug", id, id + 2);
	assert_debug_file("mismatched", fixture("ids"), NULL, fixture(inside), NULL);
	assert_debug_file("bare/program", fixture("other"), NULL, NULL, NULL);
}

static void what_is_no_regular_elf_file_is_passed_over(void **state)
{
	(void)state;
	struct elf_file f;
	struct question q = debug_of("beside", &f);
	assert_int_equal(mkdir(fixture("odd"), 0700), 0);
	assert_int_equal(mkfifo(fixture("odd/beside.debug"), 0600), 0);
	q.first = fixture("odd");
	assert_answer(&q, fixture("beside.debug"), NULL);
	assert_int_equal(unlink(fixture("odd/beside.debug")), 0);
	assert_int_equal(mkdir(fixture("odd/beside.debug"), 0700), 0);
	assert_answer(&q, fixture("beside.debug"), NULL);
	assert_int_equal(rmdir(fixture("odd/beside.debug")), 0);
	assert_int_equal(symlink("beside.debug", fixture("odd/beside.debug")), 0);
	assert_answer(&q, fixture("beside.debug"), NULL);
	assert_int_equal(unlink(fixture("odd/beside.debug")), 0);
	int fd = open(fixture("odd/beside.debug"), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_int_equal(write(fd, "nothing like it, and long enough", 32), 32);
	close(fd);
	assert_answer(&q, fixture("beside.debug"), NULL);
	/* It is told when there is no other. */
	q.request.of = "/nowhere/beside";
	assert_answer(&q, NULL, "odd/beside.debug: is no ELF file: not used");
	/* Names of links lead nowhere else. */
	q.request.name = "../beside.debug";
	assert_answer(&q, NULL, NULL);
	elf_file_finish(&f);
}

static void pprofs_folders_are_searched(void **state)
{
	(void)state;
	char id[BUILD_ID_TEXT], inside[200], path[9000];
	struct elf_file f;
	build_id_of("whole", id);
	snprintf(inside, sizeof(inside), "pprof/%s/anything", id);
	struct question q = debug_of("bare/program", &f);
	snprintf(path, sizeof(path), "/nonexistent:%s", fixture("pprof"));
	setenv("PPROF_BINARY_PATH", path, 1);
	assert_answer(&q, fixture(inside), NULL);
	/* A path from a profile, of a program that isn't here. */
	struct mapped_file m = { .path = "/gone/program", .build_id = id };
	struct symbol_options o = { .depth = SYMBOL_FULL };
	struct elf_file found;
	assert_true(locate_binary(&m, &o, &found));
	assert_string_equal(found.path, fixture(inside));
	elf_file_finish(&found);
	unsetenv("PPROF_BINARY_PATH");
	assert_answer(&q, NULL, NULL);
	assert_false(locate_binary(&m, &o, &found));
	/* Without the variable: a folder at home. */
	assert_int_equal(mkdir(fixture("home"), 0700), 0);
	assert_int_equal(mkdir(fixture("home/pprof"), 0700), 0);
	assert_int_equal(symlink(fixture("pprof"), fixture("home/pprof/binaries")), 0);
	setenv("HOME", fixture("home"), 1);
	assert_answer(&q, fixture(inside), NULL);
	setenv("HOME", "/nonexistent", 1);
	elf_file_finish(&f);
}

static void dwz_files_are_found_by_link_and_build_id(void **state)
{
	(void)state;
	struct elf_file f;
	char id[BUILD_ID_TEXT], absolute[4096];
	assert_int_equal(elf_file_open(&f, fixture("alt/one"), NULL), 0);
	struct question q = { .request = { .kind = FILE_ALT, .of = f.path, .build_id = id } };
	q.request.name = elf_file_altlink(&f, id);
	assert_answer(&q, fixture("alt/common"), NULL);
	snprintf(absolute, sizeof(absolute), "%s", fixture("alt/common"));
	q.request.name = absolute;
	q.request.of = "/nowhere/one";
	assert_answer(&q, fixture("alt/common"), NULL);
	/* In a tree of debug files, elsewhere. */
	assert_int_equal(mkdir(fixture("tree"), 0700), 0);
	assert_int_equal(mkdir(fixture("tree/.dwz"), 0700), 0);
	assert_int_equal(link(fixture("alt/common"), fixture("tree/.dwz/common")), 0);
	q.request.name = "../../.dwz/common";
	assert_answer(&q, NULL, NULL);
	q.first = fixture("tree");
	assert_answer(&q, fixture("alt/common"), NULL);
	q.first = fixture("alt/common");
	assert_answer(&q, fixture("alt/common"), NULL);
	/* Another build. */
	q.first = NULL;
	q.request.name = absolute;
	q.request.build_id = "0123456789abcdef";
	assert_answer(&q, NULL, ", /nowhere/one has 0123456789abcdef: not used");
	q.request.build_id = "";
	assert_answer(&q, NULL, NULL);
	elf_file_finish(&f);
}

static void split_files_are_found(void **state)
{
	(void)state;
	char made[4096], program[4096], packed[4096], unit[4096];
	snprintf(made, sizeof(made), "%s", fixture("split/made"));
	snprintf(program, sizeof(program), "%s", fixture("split/program"));
	snprintf(packed, sizeof(packed), "%s", fixture("split/moved/packed"));
	snprintf(unit, sizeof(unit), "%s", fixture("split/made/unit.dwo"));
	struct question q = { .request = { FILE_DWO, program, "unit.dwo", made, "", 0 } };
	assert_answer(&q, unit, NULL);
	q.request.folder = "/gone";
	assert_answer(&q, NULL, NULL);
	q.first = fixture("split/made");
	assert_answer(&q, unit, NULL);
	q.first = NULL;
	q.request.name = "made/unit.dwo";
	assert_answer(&q, unit, NULL);
	q.request.name = unit;
	q.request.folder = NULL;
	assert_answer(&q, unit, NULL);
	q.request.name = "/gone/unit.dwo";
	q.request.of = unit;                      /* itself is not what it asks for */
	assert_answer(&q, NULL, NULL);
	q.request.of = fixture("split/made/unit.o");
	assert_answer(&q, unit, NULL);
	/* A file without split units is none. */
	q.request.name = "program";
	q.request.of = packed;
	q.request.folder = fixture("split");
	assert_answer(&q, NULL, NULL);
	/* Packed. */
	q.request = (struct file_request){ FILE_DWP, packed, NULL, NULL, "", 0 };
	assert_answer(&q, fixture("split/moved/packed.dwp"), NULL);
	q.request.of = program;
	assert_answer(&q, NULL, NULL);
	q.first = fixture("split/moved/packed.dwp");
	assert_answer(&q, fixture("split/moved/packed.dwp"), NULL);
	q.request.of = "/gone/packed.debug";
	q.first = NULL;
	assert_answer(&q, NULL, NULL);
	q.request.of = fixture("split/moved/packed.debug");
	assert_answer(&q, fixture("split/moved/packed.dwp"), NULL);
}

static void hostile_names_are_only_names(void **state)
{
	(void)state;
	static char text[10000];
	memset(text, '/', sizeof(text) - 1);
	static const char *const names[] = { "", "/", ".", "..", "/dev/zero", "/proc/self/task", "%s%n", text };
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		for (enum file_kind kind = FILE_DEBUG; kind <= FILE_DWP; kind++) {
			struct question q = { .request = { kind, names[i], names[i], names[i], names[i], 0 } };
			assert_answer(&q, NULL, NULL);
		}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(debug_files_are_found_by_build_id),
		cmocka_unit_test(debug_files_are_found_by_their_link),
		cmocka_unit_test(other_builds_are_named_and_not_used),
		cmocka_unit_test(what_is_no_regular_elf_file_is_passed_over),
		cmocka_unit_test(pprofs_folders_are_searched),
		cmocka_unit_test(dwz_files_are_found_by_link_and_build_id),
		cmocka_unit_test(split_files_are_found),
		cmocka_unit_test(hostile_names_are_only_names),
	};
	char real[4096];
	if (argc != 2 || !realpath(argv[1], real))
		return 2;
	folder = real;
	unsetenv("PPROF_BINARY_PATH");
	setenv("HOME", "/nonexistent", 1);
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
