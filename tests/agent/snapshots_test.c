/* The folder of snapshots: what is kept, what goes, what is never touched, and where nothing can be written. */
#include "../base/test.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "agent/snapshots.h"

static char root[64], folder[96];
/* A process that is no more; one that is. */
static long gone, alive;

static int begin(void **state)
{
	(void)state;
	snprintf(root, sizeof root, "/tmp/snapshots-test-XXXXXX");
	if (!mkdtemp(root))
		return -1;
	snprintf(folder, sizeof folder, "%s/folder", root);
	pid_t child = fork();
	if (child == 0)
		_exit(0);
	gone = child;
	alive = (long)getppid();
	return waitpid(child, NULL, 0) == child ? prctl(PR_SET_NAME, "server") : -1;
}

static int end(void **state)
{
	char command[128];
	(void)state;
	snprintf(command, sizeof command, "rm -rf '%s'", root);
	return system(command);
}

/* Files of the folder, without "." and "..". */
static unsigned count_files(void)
{
	DIR *d = opendir(folder);
	unsigned n = 0;
	for (struct dirent *e; d && (e = readdir(d));)
		n += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
	if (d)
		closedir(d);
	return n;
}

static void path_in(char *to, size_t room, const char *name)
{
	snprintf(to, room, "%s/%s", folder, name);
}

static bool exists(const char *name)
{
	char path[PATH_MAX];
	path_in(path, sizeof path, name);
	return access(path, F_OK) == 0;
}

static void touch(const char *name)
{
	char path[PATH_MAX];
	assert_true(mkdir(folder, 0700) == 0 || errno == EEXIST);
	path_in(path, sizeof path, name);
	int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	close(fd);
}

static void touch_of(long pid, long start, unsigned number)
{
	char name[96];
	snprintf(name, sizeof name, "server.%ld.%ld.%06u.pb.gz", pid, start, number);
	touch(name);
}

static bool exists_of(long pid, long start, unsigned number)
{
	char name[96];
	snprintf(name, sizeof name, "server.%ld.%ld.%06u.pb.gz", pid, start, number);
	return exists(name);
}

static void open_them(struct snapshots *s, unsigned count)
{
	struct error err = { 0 };
	if (snapshots_open(s, folder, count, &err))
		fail_msg("%s", err.text);
}

static void take(struct snapshots *s, const char *text)
{
	struct error err = { 0 };
	int fd = snapshots_begin(s, &err);
	if (fd < 0)
		fail_msg("%s", err.text);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	if (snapshots_commit(s, fd, &err))
		fail_msg("%s", err.text);
}

static void assert_holds(const char *path, const char *text)
{
	char found[64] = "";
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_true(read(fd, found, sizeof found - 1) >= 0);
	close(fd);
	assert_string_equal(found, text);
}

/* --- the ring ---------------------------------------------------------------------- */

static void fill_ring(struct snapshots *s, unsigned count)
{
	char text[16], last[SNAPSHOTS_PATH] = "";
	for (unsigned i = 0; i < 3 * count; i++) {
		snprintf(text, sizeof text, "number %u", i);
		take(s, text);
		assert_holds(s->last, text);
		assert_string_not_equal(s->last, last);
		memcpy(last, s->last, sizeof last);
		assert_int_equal(count_files(), i + 1 < count ? i + 1 : count);
	}
	for (unsigned i = 0; i < 3 * count; i++)
		assert_int_equal(exists_of(s->pid, (long)s->start, i), i >= 2 * count);
}

static void test_ring(void **state)
{
	struct snapshots s;
	struct stat st;
	(void)state;
	for (unsigned count = 1; count <= 6; count += 2) {
		open_them(&s, count);
		assert_int_equal(s.next, 0);
		/* What the one before left stays, as many. */
		char command[128];
		snprintf(command, sizeof command, "rm -f '%s'/*", folder);
		assert_int_equal(system(command), 0);
		fill_ring(&s, count);
	}
	assert_int_equal(stat(folder, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0700);
	assert_int_equal(stat(s.last, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
}

static void test_unfinished_leave_nothing(void **state)
{
	struct snapshots s;
	struct error err;
	(void)state;
	open_them(&s, 2);
	take(&s, "whole");
	int fd = snapshots_begin(&s, &err);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, "half", 4), 4);
	assert_int_equal(count_files(), s.unnamed ? 1 : 2);
	snapshots_abort(&s, fd);
	assert_int_equal(count_files(), 1);
	assert_holds(s.last, "whole");
	take(&s, "next");
	assert_true(exists_of(s.pid, (long)s.start, 1));
}

static void test_without_unnamed_files(void **state)
{
	struct snapshots s;
	struct error err;
	(void)state;
	open_them(&s, 3);
	s.unnamed = false;
	fill_ring(&s, 3);
	int fd = snapshots_begin(&s, &err);
	assert_int_equal(count_files(), 4);
	snapshots_abort(&s, fd);
	assert_int_equal(count_files(), 3);
	/* Somebody else's file under that name, and a link: neither is written through. */
	char path[PATH_MAX], target[PATH_MAX];
	snprintf(path, sizeof path, "%s/.server.%ld.%lld.tmp", folder, s.pid, (long long)s.start);
	snprintf(target, sizeof target, "%s/target", root);
	assert_int_equal(symlink(target, path), 0);
	take(&s, "mine");
	assert_true(access(target, F_OK) < 0);
	assert_holds(s.last, "mine");
}

/* --- what earlier processes left ----------------------------------------------- */

static void test_left_over_are_kept_up_to_count(void **state)
{
	struct snapshots s;
	(void)state;
	for (unsigned i = 0; i < 4; i++)
		touch_of(gone, 1000, i);
	for (unsigned i = 0; i < 2; i++)
		touch_of((long)getpid(), 900, i);
	open_them(&s, 3);
	assert_int_equal(count_files(), 3);
	for (unsigned i = 1; i < 4; i++)
		assert_true(exists_of(gone, 1000, i));
	/* They stay beside the new ones. */
	for (unsigned i = 0; i < 5; i++)
		take(&s, "new");
	assert_int_equal(count_files(), 6);
	open_them(&s, 3);
	assert_int_equal(count_files(), 3);
	assert_true(exists_of(s.pid, (long)s.start - 1, 4) || exists_of(s.pid, (long)s.start, 4));
	open_them(&s, 5);
	assert_int_equal(count_files(), 3);
}

/* A process with the same number, in the same second, or with a clock that goes back: nothing is overwritten. */
static void test_same_number_again(void **state)
{
	struct snapshots a, b, c;
	(void)state;
	open_them(&a, 5);
	take(&a, "first");
	open_them(&b, 5);
	take(&b, "second");
	assert_true(b.start > a.start);
	assert_holds(a.last, "first");
	assert_holds(b.last, "second");
	touch_of((long)getpid(), (long)b.start + 1000000, 3);
	open_them(&c, 5);
	assert_int_equal(c.start, b.start + 1000001);
	take(&c, "third");
	assert_int_equal(count_files(), 4);
}

static void test_living_and_foreign_are_not_touched(void **state)
{
	static const char *const names[] = {
		"notes.txt", "server", "server.pb.gz", "server.x.1.000001.pb.gz", "server.1.pb.gz", "server.999999.1.000001.pb",
		"server.999999.1.000001.pb.gz.bak", "server.999999.1..pb.gz", "server.-5.1.000001.pb.gz", "server2.999999.1.000001.pb.gz",
		"other.999999.1.000001.pb.gz", ".server.tmp", ".server.999999.tmp", ".other.999999.1.tmp", "server.999999.1.tmp",
		".server.999999.1.000001.pb.gz",
	};
	struct snapshots s;
	char name[96];
	(void)state;
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		touch(names[i]);
	for (unsigned i = 0; i < 4; i++)
		touch_of(alive, 5, i);
	for (unsigned i = 0; i < 4; i++)
		touch_of(gone, 5, i);
	snprintf(name, sizeof name, ".server.%ld.7.tmp", alive);
	touch(name);
	open_them(&s, 1);
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (!exists(names[i]))
			fail_msg("%s is gone", names[i]);
	for (unsigned i = 0; i < 4; i++) {
		assert_true(exists_of(alive, 5, i));
		assert_int_equal(exists_of(gone, 5, i), i == 3);
	}
	assert_true(exists(name));
}

static void test_litter_of_the_dead_goes(void **state)
{
	struct snapshots s;
	char names[2][96];
	(void)state;
	snprintf(names[0], sizeof names[0], ".server.%ld.7.tmp", gone);
	snprintf(names[1], sizeof names[1], ".server.%ld.7.tmp", (long)getpid());
	touch(names[0]);
	touch(names[1]);
	open_them(&s, 5);
	assert_int_equal(count_files(), 0);
}

/* --- names --------------------------------------------------------------------------- */

static void test_names_of_programs(void **state)
{
	static const struct { const char *comm, *name; } names[] = {
		{ "a b/c", "a_b_c" }, { "x\n\ny", "x__y" }, { "..", "__" }, { "\xc3\xa4\x1b[31m", "____31m" }, { "", "program" },
		{ "15-characters-x", "15-characters-x" }, { ".hidden", "_hidden" }, { "%s%n", "_s_n" },
	};
	struct snapshots s;
	char wanted[SNAPSHOTS_PATH];
	(void)state;
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		assert_int_equal(prctl(PR_SET_NAME, names[i].comm), 0);
		open_them(&s, 2);
		assert_string_equal(s.name, names[i].name);
		take(&s, "x");
		take(&s, "y");
		take(&s, "z");
		snprintf(wanted, sizeof wanted, "%s/%s.%ld.%lld.000002.pb.gz", folder, names[i].name, s.pid, (long long)s.start);
		assert_string_equal(s.last, wanted);
		assert_int_equal(access(wanted, F_OK), 0);
		/* And are found again. */
		open_them(&s, 1);
		assert_int_equal(count_files(), i + 1);
	}
}

/* --- where it can't be ------------------------------------------------------------- */

static void assert_refused(const char *where, const char *words)
{
	struct snapshots s;
	struct error err = { 0 };
	assert_int_equal(snapshots_open(&s, where, 5, &err), E_IO);
	if (!strstr(err.text, words))
		fail_msg("\"%s\" doesn't say \"%s\"", err.text, words);
	assert_non_null(strstr(err.text, where));
}

static void test_folders_that_cannot_be(void **state)
{
	char path[PATH_MAX];
	(void)state;
	touch("file");
	path_in(path, sizeof path, "file");
	assert_refused(path, "cannot be written there: ");
	path_in(path, sizeof path, "none/none");
	assert_refused(path, "cannot make this folder");
	assert_refused("/proc/none", "cannot make this folder");
}

static void test_folder_without_permission(void **state)
{
	(void)state;
	touch("file");
	be_nobody(root);
	struct snapshots s;
	struct error err = { 0 };
	int rc = snapshots_open(&s, folder, 5, &err);
	be_root_again();
	if (getuid() != 0)
		skip();
	assert_int_equal(rc, E_IO);
	assert_non_null(strstr(err.text, "Permission denied"));
}

static void test_folder_that_goes_away(void **state)
{
	struct snapshots s;
	struct error err = { 0 };
	(void)state;
	open_them(&s, 2);
	assert_int_equal(rmdir(folder), 0);
	assert_true(snapshots_begin(&s, &err) < 0);
	assert_non_null(strstr(err.text, "No such file"));
	assert_int_equal(mkdir(folder, 0700), 0);
	take(&s, "again");
}

/* In a mount namespace of its own, which ends with the child: 77 when there may be none. */
static void in_small_tmpfs(int (*run)(void))
{
	int status = -1;
	assert_true(mkdir(folder, 0700) == 0);
	pid_t child = fork();
	if (child == 0) {
		if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
		    mount("none", folder, "tmpfs", 0, "size=256k"))
			_exit(77);
		_exit(run());
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	if (status == 77 << 8) {
		print_message("SKIP: no mount namespace can be made here\n");
		skip();
	}
	assert_int_equal(status, 0);
}

static int fill(int fd)
{
	static char block[4096];
	for (int i = 0; i < 100; i++)
		if (write(fd, block, sizeof block) < 0)
			return errno;
	return 0;
}

/* What didn't fit leaves nothing behind, and what fits is written afterwards. */
static int on_full_disk(void)
{
	struct snapshots s;
	struct error err = { 0 };
	if (snapshots_open(&s, folder, 3, &err))
		return 1;
	for (int named = 0; named < 2; named++) {
		s.unnamed = !named;
		int fd = snapshots_begin(&s, &err);
		if (fd < 0 || fill(fd) != ENOSPC)
			return 2;
		snapshots_abort(&s, fd);
		if (count_files() != (unsigned)named)
			return 3;
		fd = snapshots_begin(&s, &err);
		if (fd < 0 || write(fd, "fits", 4) != 4 || snapshots_commit(&s, fd, &err))
			return 4;
		if (count_files() != (unsigned)named + 1)
			return 5;
	}
	return 0;
}

static void test_full_disk(void **state)
{
	(void)state;
	in_small_tmpfs(on_full_disk);
}

static int on_read_only(void)
{
	struct snapshots s;
	struct error err = { 0 };
	if (snapshots_open(&s, folder, 3, &err) || mount(NULL, folder, NULL, MS_REMOUNT | MS_RDONLY, NULL))
		return 1;
	/* Both what runs already and what begins now. */
	if (snapshots_begin(&s, &err) >= 0 || !strstr(err.text, "Read-only file system"))
		return 2;
	err.text[0] = '\0';
	return snapshots_open(&s, folder, 3, &err) == E_IO && strstr(err.text, "Read-only file system") ? 0 : 3;
}

static void test_read_only(void **state)
{
	(void)state;
	in_small_tmpfs(on_read_only);
}

#define EACH(test) cmocka_unit_test_setup_teardown(test, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		EACH(test_ring), EACH(test_unfinished_leave_nothing), EACH(test_without_unnamed_files),
		EACH(test_left_over_are_kept_up_to_count), EACH(test_same_number_again), EACH(test_living_and_foreign_are_not_touched),
		EACH(test_litter_of_the_dead_goes), EACH(test_names_of_programs), EACH(test_folders_that_cannot_be),
		EACH(test_folder_without_permission), EACH(test_folder_that_goes_away), EACH(test_full_disk), EACH(test_read_only),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
