/*
 * Outputs appear whole or not at all: through errors, full disks, aborts and kills. Each test
 * of a file runs twice: with nameless files, and with temporary names (access is wrapped, and
 * says there is no /proc).
 */
#include "test.h"

#include "base/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char folder[] = "/tmp/heapgauge-output-XXXXXX";
static bool named;

int __wrap_access(const char *path, int mode);
int __real_access(const char *path, int mode);

int __wrap_access(const char *path, int mode)
{
	if (named) {
		errno = ENOENT;
		return -1;
	}
	return __real_access(path, mode);
}

static int make_folder(void **state)
{
	(void)state;
	signal(SIGPIPE, SIG_IGN);
	return mkdtemp(folder) && chdir(folder) == 0 ? 0 : -1;
}

static int remove_folder(void **state)
{
	(void)state;
	return chdir("/") == 0 ? rmdir(folder) : -1;
}

/* Removes every file; how many there were besides "out". */
static int empty_folder(void)
{
	int others = 0;
	DIR *d = opendir(".");
	assert_non_null(d);
	for (struct dirent *e; (e = readdir(d));) {
		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		others += strcmp(e->d_name, "out") != 0;
		unlink(e->d_name);
	}
	closedir(d);
	return others;
}

static int entries(void)
{
	int n = -2;
	DIR *d = opendir(".");
	assert_non_null(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

static int with_nameless(void **state)
{
	(void)state;
	named = false;
	return 0;
}

static int with_names(void **state)
{
	(void)state;
	named = true;
	return 0;
}

static int clean(void **state)
{
	(void)state;
	named = false;
	return empty_folder() == 0 ? 0 : -1;
}

static void put(const char *name, const char *text)
{
	FILE *f = fopen(name, "we");
	assert_non_null(f);
	fputs(text, f);
	assert_int_equal(fclose(f), 0);
}

static void holds(const char *name, const char *text)
{
	char bytes[100] = "";
	FILE *f = fopen(name, "re");
	assert_non_null(f);
	bytes[fread(bytes, 1, sizeof(bytes) - 1, f)] = '\0';
	fclose(f);
	assert_string_equal(bytes, text);
}

static void open_output(struct output *o, const char *path)
{
	struct error err = { 0 };
	if (output_open(o, path, &err))
		fail_msg("%s", err.text);
}

static void write_text(struct output *o, const char *text)
{
	struct error err = { 0 };
	if (output_write(o, text, strlen(text), &err))
		fail_msg("%s", err.text);
}

static void commit(struct output *o)
{
	struct error err = { 0 };
	if (output_commit(o, &err))
		fail_msg("%s", err.text);
	output_abort(o);
	output_abort(o);
}

static void appears_at_commit(void **state)
{
	(void)state;
	struct output o;
	mode_t mask = umask(027);
	open_output(&o, "out");
	assert_true(fcntl(o.fd, F_GETFD) & FD_CLOEXEC);
	write_text(&o, "hello ");
	write_text(&o, "");
	write_text(&o, "world\n");
	assert_int_equal(__real_access("out", F_OK), -1);
	assert_int_equal(entries(), named ? 1 : 0);
	commit(&o);
	umask(mask);
	holds("out", "hello world\n");
	assert_int_equal(entries(), 1);
	struct stat st;
	assert_int_equal(stat("out", &st), 0);
	assert_int_equal(st.st_mode & 07777, 0640);
}

static void old_file_stands_until_commit(void **state)
{
	(void)state;
	put("out", "old");
	struct output o;
	char path[100];
	(void)snprintf(path, sizeof(path), "%s/out", folder);
	open_output(&o, path);
	write_text(&o, "new");
	holds("out", "old");
	commit(&o);
	holds("out", "new");

	open_output(&o, "./out");
	write_text(&o, "newer");
	output_abort(&o);
	output_abort(&o);
	holds("out", "new");
	assert_int_equal(entries(), 1);
}

static void empty_output_is_an_empty_file(void **state)
{
	(void)state;
	struct output o;
	open_output(&o, "out");
	commit(&o);
	holds("out", "");
}

static void large_output(void **state)
{
	(void)state;
	enum { N = 300000 };
	struct output o;
	open_output(&o, "out");
	for (uint32_t i = 0; i < N; i++) {
		struct error err;
		assert_int_equal(output_write(&o, &i, sizeof(i), &err), 0);
	}
	static char block[1000000];
	struct error err;
	assert_int_equal(output_write(&o, block, sizeof(block), &err), 0);
	commit(&o);
	FILE *f = fopen("out", "re");
	assert_non_null(f);
	for (uint32_t i = 0, seen; i < N; i++) {
		assert_int_equal(fread(&seen, sizeof(seen), 1, f), 1);
		assert_int_equal(seen, i);
	}
	assert_int_equal(fread(block, 1, sizeof(block), f), sizeof(block));
	assert_int_equal(getc(f), EOF);
	fclose(f);
}

static void two_writers_of_one_name(void **state)
{
	(void)state;
	struct output a, b;
	open_output(&a, "out");
	open_output(&b, "out");
	write_text(&a, "first");
	write_text(&b, "second");
	commit(&b);
	holds("out", "second");
	commit(&a);
	holds("out", "first");
	assert_int_equal(entries(), 1);
}

static void link_stays_a_link(void **state)
{
	(void)state;
	put("out", "old");
	assert_int_equal(symlink("out", "link"), 0);
	struct output o;
	open_output(&o, "link");
	write_text(&o, "new");
	commit(&o);
	holds("out", "new");
	struct stat st;
	assert_int_equal(lstat("link", &st), 0);
	assert_true(S_ISLNK(st.st_mode));
	assert_int_equal(unlink("link"), 0);
}

/* The disk is "full" after 100 KiB: at a write, or only at commit. */
static void full_disk_leaves_the_old_file(void **state)
{
	(void)state;
	static const size_t sizes[] = { 120000, 3000000 };
	struct rlimit before, small;
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	small = before;
	small.rlim_cur = 100 << 10;
	signal(SIGXFSZ, SIG_IGN);
	for (size_t i = 0; i < 2; i++) {
		put("out", "old");
		struct output o;
		struct error err = { 0 };
		open_output(&o, "out");
		assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
		int rc = 0;
		for (size_t n = 0; n < sizes[i] && !rc; n += 1000) {
			char bytes[1000] = "";
			rc = output_write(&o, bytes, sizeof(bytes), &err);
		}
		if (!rc)
			rc = output_commit(&o, &err);
		assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
		assert_int_equal(rc, E_IO);
		assert_non_null(strstr(err.text, "out: cannot write: File too large"));
		output_abort(&o);
		holds("out", "old");
		assert_int_equal(entries(), 1);
	}
}

static void full_device_is_reported(void **state)
{
	(void)state;
	struct output o;
	struct error err = { 0 };
	open_output(&o, "/dev/full");
	write_text(&o, "some text");
	assert_int_equal(output_commit(&o, &err), E_IO);
	assert_string_equal(err.text, "/dev/full: cannot write: No space left on device");

	static char block[1 << 20];
	open_output(&o, "/dev/full");
	assert_int_equal(output_write(&o, block, sizeof(block), &err), E_IO);
	output_abort(&o);
	struct stat st;
	assert_int_equal(stat("/dev/full", &st), 0);
	assert_true(S_ISCHR(st.st_mode));
}

static void devices_and_fifos_are_written_into(void **state)
{
	(void)state;
	struct output o;
	open_output(&o, "/dev/null");
	write_text(&o, "x");
	commit(&o);
	struct stat st;
	assert_int_equal(stat("/dev/null", &st), 0);
	assert_true(S_ISCHR(st.st_mode));

	assert_int_equal(mkfifo("fifo", 0600), 0);
	int reader = open("fifo", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	assert_true(reader >= 0);
	open_output(&o, "fifo");
	write_text(&o, "through");
	commit(&o);
	char bytes[20] = "";
	assert_int_equal(read(reader, bytes, sizeof(bytes)), 7);
	assert_string_equal(bytes, "through");
	assert_int_equal(read(reader, bytes, sizeof(bytes)), 0);
	close(reader);
	assert_int_equal(unlink("fifo"), 0);
}

static void refused(const char *path, const char *text)
{
	struct output o;
	struct error err = { 0 };
	assert_int_equal(output_open(&o, path, &err), E_IO);
	assert_string_equal(err.text, text);
	output_abort(&o);
	assert_true(output_commit(&o, &err) < 0);
}

static void refusals(void **state)
{
	(void)state;
	refused("absent/out", "absent/out: cannot create: No such file or directory");
	refused("/", "/ is a directory; give the name of a file");
	refused("", "an output needs the name of a file");
	put("out", "x");
	refused("out/out", "out/out: cannot create: Not a directory");
}

static void write_protected_file_is_not_replaced(void **state)
{
	(void)state;
	put("out", "mine");
	assert_int_equal(chmod("out", 0444), 0);
	struct output o;
	struct error err = { 0 };
	be_nobody(folder);
	int rc = output_open(&o, "out", &err);
	output_abort(&o);
	be_root_again();
	assert_int_equal(rc, E_IO);
	assert_string_equal(err.text, "out: cannot replace: Permission denied");
	holds("out", "mine");
}

/* A child writes half of an output and dies of the signal. */
static void dies_of(int number, bool caught)
{
	put("out", "old");
	int ready[2];
	assert_int_equal(pipe(ready), 0);
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		struct output o;
		struct error err;
		struct rlimit none = { 0, 0 };
		setrlimit(RLIMIT_CORE, &none);
		/* nohup and shells without job control ignore some, which would be respected. */
		signal(number, SIG_DFL);
		if (caught)
			output_catch_signals();
		if (output_open(&o, "out", &err) || output_write(&o, "half", 4, &err))
			_exit(1);
		if (write(ready[1], "r", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	close(ready[1]);
	char c;
	assert_int_equal(read(ready[0], &c, 1), 1);
	close(ready[0]);
	assert_int_equal(entries(), named ? 2 : 1);
	assert_int_equal(kill(child, number), 0);
	int status;
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), number);
	holds("out", "old");
	assert_int_equal(entries(), 1);
}

static void interrupted_program_leaves_nothing(void **state)
{
	(void)state;
	dies_of(SIGINT, true);
	dies_of(SIGTERM, true);
	dies_of(SIGHUP, true);
	if (!named) {
		dies_of(SIGTERM, false);
		dies_of(SIGKILL, false);
	}
}

static void ignored_signals_stay_ignored(void **state)
{
	(void)state;
	struct sigaction before, now;
	signal(SIGHUP, SIG_IGN);
	sigaction(SIGTERM, NULL, &before);
	output_catch_signals();
	sigaction(SIGHUP, NULL, &now);
	assert_true(now.sa_handler == SIG_IGN);
	sigaction(SIGTERM, NULL, &now);
	assert_true(now.sa_handler != before.sa_handler);
	sigaction(SIGTERM, &before, NULL);
	signal(SIGINT, SIG_DFL);
	signal(SIGHUP, SIG_DFL);
}

/* --- standard output: redirected to a file, to append; to a pipe nobody reads --- */

static int saved_stdout;

static void redirect(int fd)
{
	fflush(stdout);
	saved_stdout = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 10);
	assert_true(dup2(fd, STDOUT_FILENO) == STDOUT_FILENO);
	close(fd);
}

static void restore(void)
{
	dup2(saved_stdout, STDOUT_FILENO);
	close(saved_stdout);
}

static void standard_output_is_written_at_commit(void **state)
{
	(void)state;
	static const char *const names[] = { NULL, "-", "/dev/stdout", "out" };
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		put("out", "before;");
		redirect(open("out", O_WRONLY | O_APPEND | O_CLOEXEC));
		struct output o;
		struct error err;
		int rc = output_open(&o, names[i], &err);
		if (!rc)
			rc = output_write(&o, "never", 5, &err);
		output_abort(&o);
		struct stat early = { 0 };
		if (!rc)
			rc = output_open(&o, names[i], &err);
		if (!rc)
			rc = output_write(&o, "after", 5, &err);
		stat("out", &early);
		if (!rc)
			rc = output_commit(&o, &err);
		restore();
		assert_int_equal(rc, 0);
		assert_int_equal(early.st_size, 7);
		holds("out", "before;after");
		assert_int_equal(entries(), 1);
	}
}

static void closed_pipe_is_an_error(void **state)
{
	(void)state;
	int ends[2];
	assert_int_equal(pipe(ends), 0);
	close(ends[0]);
	redirect(ends[1]);
	struct output o;
	struct error err = { 0 };
	int rc = output_open(&o, NULL, &err);
	if (!rc)
		rc = output_write(&o, "text", 4, &err);
	int at_commit = rc ? 0 : output_commit(&o, &err);
	output_abort(&o);
	restore();
	assert_int_equal(rc, 0);
	assert_int_equal(at_commit, E_IO);
	assert_string_equal(err.text, "standard output: cannot write: Broken pipe");
}

#define BOTH(f)                                                     \
	{ #f " (nameless)", f, with_nameless, clean, NULL },        \
	{ #f " (temporary name)", f, with_names, clean, NULL }

int main(void)
{
	const struct CMUnitTest tests[] = {
		BOTH(appears_at_commit),
		BOTH(old_file_stands_until_commit),
		BOTH(empty_output_is_an_empty_file),
		BOTH(large_output),
		BOTH(two_writers_of_one_name),
		BOTH(link_stays_a_link),
		BOTH(full_disk_leaves_the_old_file),
		BOTH(refusals),
		BOTH(write_protected_file_is_not_replaced),
		BOTH(interrupted_program_leaves_nothing),
		cmocka_unit_test_teardown(full_device_is_reported, clean),
		cmocka_unit_test_teardown(devices_and_fifos_are_written_into, clean),
		cmocka_unit_test(ignored_signals_stay_ignored),
		cmocka_unit_test_teardown(standard_output_is_written_at_commit, clean),
		cmocka_unit_test(closed_pipe_is_an_error),
	};
	return cmocka_run_group_tests_name("output", tests, make_folder, remove_folder);
}
