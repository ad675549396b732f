/*
 * The cache of answers: what was kept is found, by this process and by others, while several write and some are killed; what is
 * damaged, somebody else's, or in the way is as if it weren't there; and it stays within its size.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "symbol/cache.h"

#define ID "0123456789abcdef0123456789abcdef01234567"

static char root[] = "/tmp/heapgauge-cache-XXXXXX";

static const char *path_of(const char *name)
{
	static char path[512];
	snprintf(path, sizeof(path), "%s/heapgauge%s%s", root, *name ? "/" : "", name);
	return path;
}

static size_t count_files(void)
{
	size_t n = 0;
	DIR *d = opendir(path_of(""));
	for (const struct dirent *e; d && (e = readdir(d));)
		n += e->d_name[0] != '.';
	if (d)
		closedir(d);
	return n;
}

static int empty(void **state)
{
	(void)state;
	chmod(path_of(""), 0700);
	DIR *d = opendir(path_of(""));
	for (const struct dirent *e; d && (e = readdir(d));)
		unlinkat(dirfd(d), e->d_name, 0);
	if (d)
		closedir(d);
	rmdir(path_of(""));
	unlink(path_of(""));
	return 0;
}

/* --- blocks: address a is named "f_<a>", or with a salt "f_<a>_<salt>" --- */

static void make_block(struct buf *block, uint64_t first, size_t n, uint64_t step, enum answer_quality quality, int salt)
{
	struct answers_builder b;
	char name[64];
	answers_begin(&b);
	buf_init(block, BUF_MAX_DEFAULT);
	for (size_t i = 0; i < n; i++) {
		uint64_t address = first + i * step;
		snprintf(name, sizeof(name), salt ? "f_%llx_%d" : "f_%llx", (unsigned long long)address, salt);
		struct answer_frame f = { answers_string(&b, name, strlen(name)), 0, 0, (uint32_t)address, 0, 0 };
		assert_int_equal(answers_add(&b, address, quality, &f, quality != ANSWER_NOTHING, NULL), 0);
	}
	assert_int_equal(answers_write((const struct answers_builder *const[]){ &b }, 1, block, NULL), 0);
	answers_end(&b);
}

static void keep(const char *id, uint64_t first, size_t n, enum answer_quality quality, const char *note, int salt)
{
	struct buf block;
	make_block(&block, first, n, 16, quality, salt);
	cache_append(id, block.data, block.len, note, strlen(note));
	buf_finish(&block);
}

/* The name that the newest segment with the address has for it; "" when it has no frame, NULL when nobody knows it. */
static const char *name_in(const struct cache_file *c, uint64_t address)
{
	for (size_t k = 0; k < c->n; k++) {
		const struct answers *a = &c->segments[k].answers;
		size_t at = answers_find(a, address);
		if (at != SIZE_MAX)
			return a->first[at] == a->first[at + 1] ? "" : a->strings + a->frames[a->first[at]].function;
	}
	return NULL;
}

static void assert_name(uint64_t address, const char *want)
{
	struct cache_file c;
	cache_open(&c, ID);
	const char *got = name_in(&c, address);
	if (want && (!got || strcmp(got, want)))
		fail_msg("0x%llx: %s, not %s", (unsigned long long)address, got ? got : "nothing", want);
	if (!want && got)
		fail_msg("0x%llx: %s", (unsigned long long)address, got);
	cache_close(&c);
}

/* --- tests --- */

static void what_was_kept_is_found(void **state)
{
	(void)state;
	struct cache_file c;
	struct stat st;
	assert_name(0x1000, NULL);
	keep(ID, 0x1000, 100, ANSWER_DEBUG, "a note", 0);
	assert_name(0x1000, "f_1000");
	assert_name(0x1000 + 99 * 16, "f_1630");
	assert_name(0x1001, NULL);
	keep(ID, 0x100000, 10, ANSWER_NOTHING, "another", 0);
	assert_name(0x100000, "");
	cache_open(&c, ID);
	assert_int_equal(c.n, 2);
	assert_memory_equal(c.segments[0].note, "another", c.segments[0].note_bytes);
	assert_memory_equal(c.segments[1].note, "a note", c.segments[1].note_bytes);
	assert_true(c.segments[0].time + 100 > (uint64_t)time(NULL) && c.segments[0].time <= (uint64_t)time(NULL));
	cache_close(&c);
	cache_open(&c, "0123456789abcdef0123456789abcdef01234568");
	assert_int_equal(c.n, 0);
	cache_close(&c);
	assert_int_equal(stat(path_of(""), &st), 0);
	assert_int_equal(st.st_mode & 0777, 0700);
	assert_int_equal(stat(path_of(ID ".names"), &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
}

static void names_of_files_are_build_ids(void **state)
{
	(void)state;
	static const char *const bad[] = { "", "00", "0123456789abcde", "../../0123456789abcdef", "0123456789ABCDEF0123", "0123456789abcdef/" };
	struct cache_file c;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		keep(bad[i], 0x1000, 1, ANSWER_DEBUG, "", 0);
		cache_open(&c, bad[i]);
		assert_int_equal(c.n, 0);
		cache_close(&c);
	}
	assert_int_equal(count_files(), 0);
}

static void many_segments_become_one(void **state)
{
	(void)state;
	struct cache_file c;
	for (int i = 0; i < 100; i++)
		keep(ID, 0x10000u * (unsigned)(1 + i % 50), 20, ANSWER_DEBUG, "same", i);
	cache_open(&c, ID);
	assert_true(c.n >= 1 && c.n <= CACHE_SEGMENTS);
	for (int i = 0; i < 50; i++) {
		char want[64];
		unsigned address = 0x10000u * (unsigned)(1 + i);
		snprintf(want, sizeof(want), "f_%x_%d", address, i + 50);
		assert_string_equal(name_in(&c, address), want);
	}
	cache_close(&c);
	assert_int_equal(count_files(), 1);
}

/* A merge keeps what debug information said whatever came later, and poor answers only with the newest note. */
static void merging_keeps_quality(void **state)
{
	(void)state;
	struct cache_file c;
	keep(ID, 0x1000, 1, ANSWER_DEBUG, "old", 1);
	keep(ID, 0x2000, 1, ANSWER_SYMBOL, "old", 2);
	keep(ID, 0x3000, 1, ANSWER_SYMBOL, "new", 3);
	keep(ID, 0x1000, 1, ANSWER_SYMBOL, "new", 4);
	for (int i = 0; i < CACHE_SEGMENTS - 3; i++)
		keep(ID, 0x10000u * (unsigned)(1 + i), 1, ANSWER_SYMBOL, "new", 5);
	cache_open(&c, ID);
	assert_int_equal(c.n, 1);
	cache_close(&c);
	assert_name(0x1000, "f_1000_1");
	assert_name(0x2000, NULL);
	assert_name(0x3000, "f_3000_3");
	assert_name(0x10000, "f_10000_5");
}

/* What is big is not worked over again and again for what is small. */
static void big_segments_stay_as_they_are(void **state)
{
	(void)state;
	struct cache_file c;
	keep(ID, 0x1000000, 50000, ANSWER_DEBUG, "big", 0);
	for (int i = 0; i < 200; i++)
		keep(ID, 0x10000u * (unsigned)(1 + i), 1, ANSWER_SYMBOL, "small", 0);
	cache_open(&c, ID);
	assert_true(c.n > 1 && c.n <= CACHE_SEGMENTS);
	assert_int_equal(c.segments[c.n - 1].answers.n, 50000);
	assert_int_equal(c.segments[c.n - 1].note_bytes, 3);
	size_t small = 0;
	for (size_t k = 0; k + 1 < c.n; k++)
		small += c.segments[k].answers.n;
	assert_int_equal(small, 200);
	cache_close(&c);
}

/* Each bit of a file changed: segments before it are still read, that one and those behind it are not, and never a wrong name. */
static void damage_is_never_read(void **state)
{
	(void)state;
	static char whole[8192];
	char name[32];
	keep(ID, 0x1000, 5, ANSWER_DEBUG, "first", 0);
	keep(ID, 0x2000, 5, ANSWER_DEBUG, "second", 0);
	int fd = open(path_of(ID ".names"), O_RDWR);
	ssize_t n = read(fd, whole, sizeof(whole));
	assert_true(n > 400 && n < (ssize_t)sizeof(whole));
	size_t none = 0, one = 0, both = 0;
	for (ssize_t at = 0; at < n; at++) {
		char changed = (char)(whole[at] ^ 1 << at % 8);
		assert_int_equal(pwrite(fd, &changed, 1, at), 1);
		struct cache_file c;
		cache_open(&c, ID);
		none += c.n == 0;
		one += c.n == 1;
		both += c.n == 2;
		for (uint64_t address = 0x1000; address < 0x1050; address += 16)
			for (size_t k = 0; k < c.n; k++) {
				snprintf(name, sizeof(name), "f_%llx", (unsigned long long)address + 0x1000 * k);
				assert_string_equal(name_in(&c, address + 0x1000 * k), name);
			}
		cache_close(&c);
		assert_int_equal(pwrite(fd, &whole[at], 1, at), 1);
	}
	/* Between the parts are a few bytes that mean nothing. */
	assert_true(none > 100 && one > 100 && both < 20);
	for (ssize_t cut = n - 1; cut >= 0; cut -= 7) {
		struct cache_file c;
		assert_int_equal(ftruncate(fd, cut), 0);
		cache_open(&c, ID);
		assert_true(c.n < 2);
		cache_close(&c);
	}
	close(fd);
	/* An empty file, then rubbish: the next one who has something to keep puts it there. */
	keep(ID, 0x3000, 5, ANSWER_DEBUG, "", 0);
	assert_name(0x3000, "f_3000");
	fd = open(path_of(ID ".names"), O_WRONLY | O_TRUNC);
	assert_int_equal(write(fd, "rubbish", 7), 7);
	close(fd);
	assert_name(0x3000, NULL);
	keep(ID, 0x4000, 5, ANSWER_DEBUG, "", 0);
	assert_name(0x4000, "f_4000");
	/* A writer was killed in the middle of its segment: the next one's comes in its place. */
	struct stat before, after;
	assert_int_equal(stat(path_of(ID ".names"), &before), 0);
	keep(ID, 0x5000, 50, ANSWER_DEBUG, "", 0);
	assert_int_equal(truncate(path_of(ID ".names"), before.st_size + 100), 0);
	assert_name(0x5000, NULL);
	keep(ID, 0x6000, 1, ANSWER_DEBUG, "", 0);
	assert_name(0x4000, "f_4000");
	assert_name(0x6000, "f_6000");
	assert_int_equal(stat(path_of(ID ".names"), &after), 0);
	assert_int_equal(before.st_ino, after.st_ino);
}

/* --- places that can't be used --- */

static void somebody_elses_is_not_used(void **state)
{
	(void)state;
	keep(ID, 0x1000, 5, ANSWER_DEBUG, "", 0);
	assert_int_equal(chmod(path_of(""), 0777), 0);
	assert_name(0x1000, NULL);
	keep(ID, 0x2000, 5, ANSWER_DEBUG, "", 0);
	assert_int_equal(chmod(path_of(""), 0700), 0);
	assert_name(0x1000, "f_1000");
	assert_name(0x2000, NULL);
	assert_int_equal(chmod(path_of(ID ".names"), 0666), 0);
	assert_name(0x1000, NULL);
	keep(ID, 0x2000, 5, ANSWER_DEBUG, "", 0);
	assert_int_equal(chmod(path_of(ID ".names"), 0600), 0);
	assert_name(0x2000, NULL);
	if (geteuid() == 0) {
		assert_int_equal(chown(path_of(ID ".names"), 65534, (gid_t)-1), 0);
		assert_name(0x1000, NULL);
		assert_int_equal(chown(path_of(""), 65534, (gid_t)-1), 0);
		keep("ffff456789abcdef", 0x2000, 5, ANSWER_DEBUG, "", 0);
		assert_int_equal(count_files(), 1);
		assert_int_equal(chown(path_of(""), 0, (gid_t)-1), 0);
	}
	unlink(path_of(ID ".names"));
	assert_int_equal(symlink("/dev/zero", path_of(ID ".names")), 0);
	assert_name(0x1000, NULL);
	keep(ID, 0x2000, 5, ANSWER_DEBUG, "", 0);
	unlink(path_of(ID ".names"));
	assert_int_equal(mkfifo(path_of(ID ".names"), 0600), 0);
	assert_name(0x1000, NULL);
	keep(ID, 0x2000, 5, ANSWER_DEBUG, "", 0);
	assert_name(0x2000, NULL);
}

static void switched_off_it_is_not_there(void **state)
{
	(void)state;
	setenv("HEAPGAUGE_CACHE", "off", 1);
	keep(ID, 0x1000, 5, ANSWER_DEBUG, "", 0);
	assert_int_equal(access(path_of(""), F_OK), -1);
	unsetenv("HEAPGAUGE_CACHE");
	keep(ID, 0x1000, 5, ANSWER_DEBUG, "", 0);
	setenv("HEAPGAUGE_CACHE", "off", 1);
	assert_name(0x1000, NULL);
	unsetenv("HEAPGAUGE_CACHE");
	assert_name(0x1000, "f_1000");
}

static void it_is_found_by_home_too(void **state)
{
	(void)state;
	char home[128];
	struct stat st;
	snprintf(home, sizeof(home), "%s/home", root);
	assert_int_equal(mkdir(home, 0700), 0);
	setenv("HOME", home, 1);
	setenv("XDG_CACHE_HOME", "relative/paths/do/not/count", 1);
	keep(ID, 0x1000, 5, ANSWER_DEBUG, "", 0);
	assert_name(0x1000, "f_1000");
	snprintf(home, sizeof(home), "%s/home/.cache/heapgauge/%s", root, ID ".names");
	assert_int_equal(stat(home, &st), 0);
	unsetenv("HOME");
	assert_name(0x1000, NULL);
	keep(ID, 0x2000, 5, ANSWER_DEBUG, "", 0);
	setenv("XDG_CACHE_HOME", "/proc/nobody/makes/this", 1);
	keep(ID, 0x2000, 5, ANSWER_DEBUG, "", 0);
	assert_name(0x2000, NULL);
	setenv("XDG_CACHE_HOME", root, 1);
	unlink(home);
	*strrchr(home, '/') = '\0';
	rmdir(home);
	*strrchr(home, '/') = '\0';
	rmdir(home);
	*strrchr(home, '/') = '\0';
	rmdir(home);
}

/* A disk that is full looks like this: the write stops in the middle. */
static void a_full_disk_is_no_error(void **state)
{
	(void)state;
	struct rlimit before, little;
	signal(SIGXFSZ, SIG_IGN);
	getrlimit(RLIMIT_FSIZE, &before);
	for (rlim_t room = 0; room < 20000; room += 1000) {
		keep(ID, 0x1000, 50, ANSWER_DEBUG, "", 0);
		little = before;
		little.rlim_cur = room;
		setrlimit(RLIMIT_FSIZE, &little);
		keep(ID, 0x10000, 100, ANSWER_DEBUG, "", 0);
		keep("ffff456789abcdef", 0x10000, 100, ANSWER_DEBUG, "", 0);
		setrlimit(RLIMIT_FSIZE, &before);
		assert_name(0x1000, "f_1000");
	}
}

/* --- size --- */

static void a_file_has_a_limit(void **state)
{
	(void)state;
	struct stat st;
	for (int i = 0; i < 12; i++) {
		keep(ID, 0x10000000u * (unsigned)(1 + i), 60000, ANSWER_DEBUG, "", i);
		assert_int_equal(stat(path_of(ID ".names"), &st), 0);
		assert_true((size_t)st.st_size <= CACHE_FILE_MAX);
		char want[64];
		snprintf(want, sizeof(want), "f_%x_%d", 0x10000000u * (unsigned)(1 + i), i);
		assert_name(0x10000000u * (unsigned)(1 + i), i ? want : "f_10000000");
	}
}

static void those_not_used_for_longest_go_first(void **state)
{
	(void)state;
	keep(ID, 0x1000, 1, ANSWER_DEBUG, "", 0);
	char id[64];
	for (int i = 0; i < 20; i++) {
		struct timespec times[2] = { { 1000000 + i * 100, 0 }, { 1000000 + i * 100, 0 } };
		snprintf(id, sizeof(id), "%016x.names", i);
		int fd = open(path_of(id), O_WRONLY | O_CREAT, 0600);
		/* Holes: they take no room here, and count. */
		assert_int_equal(ftruncate(fd, (off_t)CACHE_ALL_MAX / 15), 0);
		assert_int_equal(futimens(fd, times), 0);
		close(fd);
	}
	snprintf(id, sizeof(id), "left.123.new");
	int fd = open(path_of(id), O_WRONLY | O_CREAT, 0600);
	struct timespec old[2] = { { 1000000, 0 }, { 1000000, 0 } };
	assert_int_equal(futimens(fd, old), 0);
	close(fd);
	/* Reading is use. */
	struct stat st;
	assert_int_equal(utimensat(AT_FDCWD, path_of(ID ".names"), old, 0), 0);
	assert_name(0x1000, "f_1000");
	assert_int_equal(stat(path_of(ID ".names"), &st), 0);
	assert_true(st.st_mtime > 2000000);
	/* Room is made when there is a new file. */
	keep("ffff456789abcdef", 0x2000, 1, ANSWER_DEBUG, "", 0);
	keep(ID, 0x2000, 1, ANSWER_DEBUG, "", 0);
	assert_int_equal(access(path_of("left.123.new"), F_OK), -1);
	uint64_t all = 0;
	for (int i = 0; i < 20; i++) {
		snprintf(id, sizeof(id), "%016x.names", i);
		bool there = stat(path_of(id), &st) == 0;
		all += there ? (uint64_t)st.st_size : 0;
		assert_int_equal(there, i >= 7);
	}
	assert_true(all <= CACHE_ALL_MAX && all > CACHE_ALL_MAX / 2);
	assert_name(0x1000, "f_1000");
	assert_name(0x2000, "f_2000");
}

/* --- several at once --- */

#define WRITERS 8
#define ROUNDS 60

/* Writer i keeps blocks of its own, and looks after each whether anything that it can see is wrong. */
static void write_and_look(int writer)
{
	char want[64];
	for (int round = 0; round < ROUNDS; round++) {
		uint64_t first = 0x1000000u * (unsigned)(writer + 1) + 0x10000u * (unsigned)round;
		keep(ID, first, 200, ANSWER_DEBUG, "same", 0);
		struct cache_file c;
		cache_open(&c, ID);
		for (size_t k = 0; k < c.n; k++) {
			const struct answers *a = &c.segments[k].answers;
			for (size_t i = 0; i < a->n; i += 37) {
				snprintf(want, sizeof(want), "f_%llx", (unsigned long long)a->addresses[i]);
				if (strcmp(a->strings + a->frames[a->first[i]].function, want))
					_exit(1);
			}
		}
		cache_close(&c);
	}
	_exit(0);
}

static size_t count_found(int writer)
{
	struct cache_file c;
	size_t n = 0;
	cache_open(&c, ID);
	for (int round = 0; round < ROUNDS; round++)
		n += name_in(&c, 0x1000000u * (unsigned)(writer + 1) + 0x10000u * (unsigned)round) != NULL;
	cache_close(&c);
	return n;
}

static void start_writers(pid_t *pids)
{
	for (int i = 0; i < WRITERS; i++) {
		pids[i] = fork();
		if (pids[i] == 0)
			write_and_look(i);
		assert_true(pids[i] > 0);
	}
}

static void eight_write_and_nothing_is_lost(void **state)
{
	(void)state;
	pid_t pids[WRITERS];
	int status;
	start_writers(pids);
	for (int i = 0; i < WRITERS; i++) {
		assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
		assert_int_equal(status, 0);
	}
	size_t found = 0;
	for (int i = 0; i < WRITERS; i++)
		found += count_found(i);
	/* Who does not get his turn in a fifth of a second goes without. */
	if (found < WRITERS * ROUNDS * 95 / 100)
		fail_msg("%zu of %d blocks are there", found, WRITERS * ROUNDS);
}

static void killed_writers_leave_nothing_wrong(void **state)
{
	(void)state;
	unsigned seed = 1;
	size_t killed = 0;
	for (int round = 0; round < 6; round++) {
		pid_t pids[WRITERS];
		int status;
		start_writers(pids);
		for (int i = 0; i < WRITERS; i++) {
			seed = seed * 1664525u + 1013904223u;
			struct timespec pause = { 0, (long)(seed >> 8) % 20000000 };
			nanosleep(&pause, NULL);
			kill(pids[i], SIGKILL);
		}
		for (int i = 0; i < WRITERS; i++) {
			assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
			assert_true(WIFSIGNALED(status) || WEXITSTATUS(status) == 0);
			killed += WIFSIGNALED(status);
		}
		/* It works as before. */
		keep(ID, 0x1000, 1, ANSWER_DEBUG, "same", 0);
		assert_name(0x1000, "f_1000");
	}
	assert_true(killed > 20);
	size_t found = 0;
	for (int i = 0; i < WRITERS; i++)
		found += count_found(i);
	assert_true(found > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(what_was_kept_is_found, empty),
		cmocka_unit_test_setup(names_of_files_are_build_ids, empty),
		cmocka_unit_test_setup(many_segments_become_one, empty),
		cmocka_unit_test_setup(merging_keeps_quality, empty),
		cmocka_unit_test_setup(big_segments_stay_as_they_are, empty),
		cmocka_unit_test_setup(damage_is_never_read, empty),
		cmocka_unit_test_setup(somebody_elses_is_not_used, empty),
		cmocka_unit_test_setup(switched_off_it_is_not_there, empty),
		cmocka_unit_test_setup(it_is_found_by_home_too, empty),
		cmocka_unit_test_setup(a_full_disk_is_no_error, empty),
		cmocka_unit_test_setup(a_file_has_a_limit, empty),
		cmocka_unit_test_setup(those_not_used_for_longest_go_first, empty),
		cmocka_unit_test_setup(eight_write_and_nothing_is_lost, empty),
		cmocka_unit_test_setup_teardown(killed_writers_leave_nothing_wrong, empty, empty),
	};
	if (!mkdtemp(root))
		return 1;
	unsetenv("HEAPGAUGE_CACHE");
	setenv("XDG_CACHE_HOME", root, 1);
	int failed = cmocka_run_group_tests_name("cache", tests, NULL, NULL);
	rmdir(root);
	return failed;
}
