/*
 * Conversations about a binary: whatever is asked, in whatever pieces and order, has the answers that all of it has at once; the cache
 * is told of them; and where the reader fails over debug information, symbols answer, which the cache does not keep.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "symbol/elf_file.h"
#include "symbol/symbol.h"

#define ADDRESSES_MAX 20000
#define MUCH_LIMIT ((uint64_t)1 << 20)

static const char *folder;

static const char *fixture(const char *name)
{
	static char path[4096];
	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return path;
}

static double seconds(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Of a file's executable segments, spread over all of them. */
static size_t code_addresses(const char *file, uint64_t *ret)
{
	struct elf_file f;
	size_t n = 0;
	uint64_t bytes = 0;
	assert_int_equal(elf_file_open(&f, fixture(file), NULL), 0);
	for (size_t i = 0; i < f.n_segments; i++)
		bytes += f.segments[i].executable ? f.segments[i].file_bytes : 0;
	uint64_t step = bytes / ADDRESSES_MAX + 3;
	for (size_t i = 0; i < f.n_segments; i++)
		for (uint64_t at = 0; f.segments[i].executable && at < f.segments[i].file_bytes && n < ADDRESSES_MAX; at += step)
			ret[n++] = f.segments[i].address + at;
	elf_file_finish(&f);
	return n;
}

static uint64_t address_of(const char *file, const char *symbol)
{
	struct elf_file f;
	struct elf_symbol y;
	assert_int_equal(elf_file_open(&f, fixture(file), NULL), 0);
	assert_true(elf_find_symbol(&f.image, symbol, &y));
	elf_file_finish(&f);
	return y.value;
}

static void shuffle(uint64_t *addresses, size_t n)
{
	uint32_t random = 1;
	for (size_t i = n; i > 1; i--) {
		random = random * 1664525 + 1013904223;
		size_t other = (random >> 8) % i;
		uint64_t address = addresses[i - 1];
		addresses[i - 1] = addresses[other];
		addresses[other] = address;
	}
}

static bool same_text(const char *a, const char *b)
{
	return a == b || (a && b && !strcmp(a, b));
}

static void assert_same(const char *file, uint64_t address, const struct symbol_answers *a, size_t i, const struct symbol_answers *b, size_t k)
{
	static struct symbol_frame x[SYMBOL_FRAMES_MAX], y[SYMBOL_FRAMES_MAX];
	size_t n = symbol_answer(a, i, x), m = symbol_answer(b, k, y);
	bool same = n == m;
	for (size_t f = 0; f < n && same; f++)
		same = same_text(x[f].function, y[f].function) && same_text(x[f].system_name, y[f].system_name) && same_text(x[f].file, y[f].file) &&
		       x[f].line == y[f].line && x[f].column == y[f].column && x[f].start_line == y[f].start_line && x[f].is_start == y[f].is_start;
	if (!same)
		fail_msg("%s: 0x%lx: %zu frames (%s, line %u) at once, %zu (%s, line %u) in a conversation", file, address, n,
		         n && x->function ? x->function : "", n ? x->line : 0, m, m && y->function ? y->function : "", m ? y->line : 0);
}

/* Names, lines: how many there were. */
static void assert_conversation(const char *file, size_t least_named, size_t least_lines)
{
	static uint64_t addresses[ADDRESSES_MAX];
	static const size_t pieces[] = { 1, 1, 1, 2, 1, 7, 1, 64, 1, 65, 1, 1, 300, 1, 1, 1500 };
	struct symbol_options o = { .no_cache = true };
	struct symbol_answers all, some;
	struct symbol_talk *talk = NULL;
	static struct symbol_frame frames[SYMBOL_FRAMES_MAX];
	size_t n = code_addresses(file, addresses), named = 0, lines = 0;
	shuffle(addresses, n);
	assert_int_equal(symbol_resolve_addresses(fixture(file), "", addresses, n, SYMBOL_FULL, &o, &all, NULL), 0);
	assert_int_equal(symbol_talk_begin(&talk, fixture(file), "", SYMBOL_FULL, &o, NULL), 0);
	for (size_t i = 0, turn = 0; i < n && turn < 1500; turn++) {
		size_t piece = pieces[turn % (sizeof(pieces) / sizeof(*pieces))];
		piece = piece < n - i ? piece : n - i;
		assert_int_equal(symbol_talk_ask(talk, addresses + i, piece, &some, NULL), 0);
		for (size_t k = 0; k < piece; k++) {
			assert_same(file, addresses[i + k], &all, i + k, &some, k);
			size_t n_frames = symbol_answer(&some, k, frames);
			named += n_frames && frames->function;
			lines += n_frames && frames->line;
		}
		assert_int_equal(some.poor.code, 0);
		symbol_answers_finish(&some);
		i += piece;
	}
	symbol_answers_finish(&all);
	symbol_talk_end(talk);
	if (named < least_named || lines < least_lines)
		fail_msg("%s: %zu named, %zu lines", file, named, lines);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
}

static void one_at_a_time_has_the_answers_of_all_at_once(void **state)
{
	(void)state;
	assert_conversation("whole", 100, 100);
	assert_conversation("whole-cc", 300, 300);
	assert_conversation("compressed", 100, 100);
	assert_conversation("compressed-legacy", 100, 100);
	assert_conversation("split/program", 100, 100);
	assert_conversation("split/moved/packed", 100, 100);
	assert_conversation("alt/one", 300, 300);
	assert_conversation("beside", 100, 100);
	assert_conversation("fixed", 100, 100);
	assert_conversation("mini", 100, 0);
	assert_conversation("bare/program", 10, 0);
	assert_conversation("labels", 1, 0);
	assert_conversation("libc", 5000, 0);
}

/* --- the cache --- */

static size_t files_in_cache(void)
{
	char path[4096];
	size_t n = 0;
	snprintf(path, sizeof(path), "%s/cache/heapgauge", folder);
	DIR *d = opendir(path);
	for (const struct dirent *e; d && (e = readdir(d)) != NULL;)
		n += e->d_name[0] != '.';
	if (d)
		closedir(d);
	return n;
}

static int with_cache(void **state)
{
	char command[4200];
	(void)state;
	snprintf(command, sizeof(command), "%s/cache", folder);
	assert_int_equal(mkdir(command, 0700), 0);
	setenv("XDG_CACHE_HOME", command, 1);
	unsetenv("HEAPGAUGE_CACHE");
	return 0;
}

static int without_cache(void **state)
{
	char path[4200], file[4600];
	(void)state;
	snprintf(path, sizeof(path), "%s/cache/heapgauge", folder);
	DIR *d = opendir(path);
	for (const struct dirent *e; d && (e = readdir(d)) != NULL;) {
		snprintf(file, sizeof(file), "%s/%s", path, e->d_name);
		(void)unlink(file);
	}
	if (d)
		closedir(d);
	(void)rmdir(path);
	(void)rmdir(fixture("cache"));
	setenv("HEAPGAUGE_CACHE", "off", 1);
	return 0;
}

static void the_cache_is_told(void **state)
{
	(void)state;
	static uint64_t addresses[ADDRESSES_MAX];
	struct symbol_talk *talk = NULL;
	struct symbol_answers first[900], again;
	size_t n = code_addresses("whole-cc", addresses);
	n = n < 900 ? n : 900;
	shuffle(addresses, n);
	assert_true(n > 600);
	assert_int_equal(symbol_talk_begin(&talk, fixture("whole-cc"), "", SYMBOL_FULL, NULL, NULL), 0);
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(symbol_talk_ask(talk, &addresses[i], 1, &first[i], NULL), 0);
		/* By the hundred. */
		assert_int_equal(files_in_cache(), i >= 511);
	}
	assert_int_not_equal(waitpid(-1, NULL, WNOHANG), -1);
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(symbol_talk_ask(talk, &addresses[i], 1, &again, NULL), 0);
		assert_same("whole-cc", addresses[i], &first[i], 0, &again, 0);
		symbol_answers_finish(&again);
	}
	symbol_talk_end(talk);
	/* Then nobody has to read it any more. */
	assert_int_equal(symbol_talk_begin(&talk, fixture("whole-cc"), "", SYMBOL_FULL, NULL, NULL), 0);
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(symbol_talk_ask(talk, &addresses[i], 1, &again, NULL), 0);
		assert_same("whole-cc", addresses[i], &first[i], 0, &again, 0);
		symbol_answers_finish(&again);
		symbol_answers_finish(&first[i]);
	}
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	symbol_talk_end(talk);
}

/* --- less than everything --- */

static void assert_frame(const struct symbol_answers *a, size_t i, const char *name, bool line)
{
	static struct symbol_frame frames[SYMBOL_FRAMES_MAX];
	assert_int_equal(symbol_answer(a, i, frames), 1);
	assert_string_equal(frames->function, name);
	assert_int_equal(frames->line != 0, line);
}

static void assert_much(const struct symbol_answers *a, const char *name, bool lines)
{
	assert_frame(a, 0, name, lines);
	assert_int_equal(a->poor.code, lines ? 0 : E_NOMEM);
	assert_true(lines || strstr(a->poor.text, "much: its reader ran out of memory (limit 1 MiB)"));
	assert_false(a->damaged);
}

static void too_little_memory_leaves_symbols(void **state)
{
	(void)state;
	uint64_t addresses[] = { address_of("much", "big_two"), address_of("much", "main") };
	struct symbol_options little = { .memory_limit = MUCH_LIMIT };
	struct symbol_talk *talk = NULL;
	struct symbol_answers a;
	assert_int_equal(symbol_resolve_addresses(fixture("much"), "", addresses, 1, SYMBOL_FULL, &little, &a, NULL), 0);
	assert_much(&a, "big_two", false);
	symbol_answers_finish(&a);
	assert_int_equal(symbol_talk_begin(&talk, fixture("much"), "", SYMBOL_FULL, &little, NULL), 0);
	for (int i = 0; i < 10; i++) {
		assert_int_equal(symbol_talk_ask(talk, &addresses[i % 2], 1, &a, NULL), 0);
		assert_much(&a, i % 2 ? "main" : "big_two", false);
		symbol_answers_finish(&a);
	}
	symbol_talk_end(talk);
	/* Nothing of that was kept. */
	assert_int_equal(files_in_cache(), 0);
	assert_int_equal(symbol_resolve_addresses(fixture("much"), "", addresses, 1, SYMBOL_FULL, NULL, &a, NULL), 0);
	assert_much(&a, "big_two", true);
	symbol_answers_finish(&a);
	assert_int_equal(files_in_cache(), 1);
	/* What the cache has, is had with little memory, too. */
	assert_int_equal(symbol_resolve_addresses(fixture("much"), "", addresses, 1, SYMBOL_FULL, &little, &a, NULL), 0);
	assert_much(&a, "big_two", true);
	symbol_answers_finish(&a);
	assert_int_equal(symbol_resolve_addresses(fixture("much"), "", addresses, 2, SYMBOL_FULL, &little, &a, NULL), 0);
	assert_frame(&a, 0, "big_two", true);
	assert_frame(&a, 1, "main", false);
	assert_int_equal(a.poor.code, E_NOMEM);
	symbol_answers_finish(&a);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
}

static void too_little_time_leaves_symbols(void **state)
{
	(void)state;
	uint64_t start = address_of("hostile", "_start");
	struct symbol_options hurried = { .timeout_ms = 1, .no_cache = true };
	struct symbol_talk *talk = NULL;
	struct symbol_answers a;
	uint64_t many[1000];
	for (uint64_t i = 0; i < 1000; i++)
		many[i] = start + i;
	assert_int_equal(symbol_talk_begin(&talk, fixture("hostile"), "", SYMBOL_FULL, &hurried, NULL), 0);
	double before = seconds();
	for (int i = 0; i < 100; i++) {
		assert_int_equal(symbol_talk_ask(talk, many, i == 0 ? 1000 : 1, &a, NULL), 0);
		assert_frame(&a, 0, "_start", false);
		assert_int_equal(a.poor.code, E_LIMIT);
		assert_non_null(strstr(a.poor.text, "hostile: its reader was stopped after 1 s"));
		symbol_answers_finish(&a);
	}
	/* It isn't tried again and again. */
	assert_true(seconds() - before < 20);
	symbol_talk_end(talk);
}

/* The reader's process, while it waits; 0 when that can't be told. */
static pid_t worker(void)
{
	char line[64] = "";
	FILE *children = fopen("/proc/thread-self/children", "re");
	if (!children)
		return 0;
	bool got = fgets(line, sizeof(line), children);
	fclose(children);
	return got ? (pid_t)strtoul(line, NULL, 10) : 0;
}

static void a_reader_that_is_killed_is_replaced(void **state)
{
	(void)state;
	uint64_t address = address_of("much", "big_two");
	struct symbol_options o = { .no_cache = true };
	struct symbol_talk *talk = NULL;
	struct symbol_answers a;
	assert_int_equal(symbol_talk_begin(&talk, fixture("much"), "", SYMBOL_FULL, &o, NULL), 0);
	for (int i = 0; i < 10; i++) {
		assert_int_equal(symbol_talk_ask(talk, &address, 1, &a, NULL), 0);
		assert_much(&a, "big_two", true);
		symbol_answers_finish(&a);
		pid_t pid = worker();
		if (pid > 1)
			assert_int_equal(kill(pid, SIGKILL), 0);
	}
	symbol_talk_end(talk);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
}

static void what_is_no_binary_is_refused(void **state)
{
	(void)state;
	struct symbol_talk *talk = NULL;
	struct error err;
	assert_int_equal(symbol_talk_begin(&talk, fixture("nowhere"), "", SYMBOL_FULL, NULL, &err), E_IO);
	assert_int_equal(symbol_talk_begin(&talk, fixture("much.c"), "", SYMBOL_FULL, NULL, &err), E_FORMAT);
	assert_int_equal(symbol_talk_begin(&talk, fixture("much"), "0123456789abcdef", SYMBOL_FULL, NULL, &err), E_FORMAT);
	assert_null(talk);
	symbol_talk_end(NULL);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_at_a_time_has_the_answers_of_all_at_once),
		cmocka_unit_test_setup_teardown(the_cache_is_told, with_cache, without_cache),
		cmocka_unit_test_setup_teardown(too_little_memory_leaves_symbols, with_cache, without_cache),
		cmocka_unit_test(too_little_time_leaves_symbols),
		cmocka_unit_test(a_reader_that_is_killed_is_replaced),
		cmocka_unit_test(what_is_no_binary_is_refused),
	};
	if (argc != 2)
		return 2;
	folder = argv[1];
	/* Most fixtures have the same build id, and the next run builds others. */
	setenv("HEAPGAUGE_CACHE", "off", 1);
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("talk", tests, NULL, NULL);
}
