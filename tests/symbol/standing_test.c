/*
 * Workers that stay: they keep what they have between questions and lose it only with their life, which ends when they crash, loop, or take
 * too much memory. Then a new one is asked once more.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "symbol/sandbox.h"
#include "symbol/standing.h"

static bool sanitized;
static struct sandbox kernel;

static double seconds(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static size_t open_descriptors(void)
{
	size_t n = 0;
	for (int fd = 0; fd < 1024; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

/* What a question is about: the job does it, and answers with how many it was asked in its life, or with so many bytes. */
enum act { ANSWER, CRASH, CRASH_IF_OLD, LOOP, LOOP_IF_OLD, LEAK, DEVOUR, COMPLAIN, FETCH, OPEN };

struct question {
	uint32_t act, bytes;
};

struct life {
	uint32_t n_asked;
};

/* And crashes when there is no room for it. */
static void leak(size_t bytes)
{
	static char *volatile last;
	last = malloc(bytes);
	if (!last)
		abort();
	memset(last, 1, bytes);
}

static int fetch(const struct file_source *files, struct buf *block)
{
	struct file_request r = { FILE_DWO, "/bin/x", "name", "folder", "", 0 };
	char path[64] = "", text[16] = "";
	int fd = files->open(files->context, &r, path, sizeof(path));
	if (fd < 0 || pread(fd, text, sizeof(text) - 1, 0) <= 0)
		return E_IO;
	close(fd);
	buf_adds(block, path);
	buf_adds(block, text);
	return 0;
}

static int act(void *context, const struct file_source *files, const void *question, size_t n, struct buf *block, uint32_t *ret_flags,
               struct error *err)
{
	struct life *life = context;
	struct question q = { 0 };
	memcpy(&q, question, n < sizeof(q) ? n : sizeof(q));
	*ret_flags = ++life->n_asked;
	bool old = life->n_asked > 1;
	if (q.act == CRASH || (q.act == CRASH_IF_OLD && old)) {
		signal(SIGSEGV, SIG_DFL);
		raise(SIGSEGV);
	}
	for (volatile bool loop = q.act == LOOP || (q.act == LOOP_IF_OLD && old); loop;)
		continue;
	if (q.act == LEAK)
		leak((size_t)8 << 20);
	if (q.act == DEVOUR)
		return error_nomem(err, "all of it");
	if (q.act == COMPLAIN)
		return error_set(err, E_FORMAT, "question %u is no question", life->n_asked);
	if (q.act == FETCH && fetch(files, block))
		return error_set(err, E_IO, "no file");
	if (q.act == OPEN)
		*ret_flags = open("/etc/passwd", O_RDONLY | O_CLOEXEC) < 0 ? (uint32_t)errno : 0;
	for (uint32_t i = 0; i < q.bytes; i++)
		buf_addc(block, (char)('a' + i % 23));
	return 0;
}

static struct standing *begin(struct life *life, const struct file_source *files, uint32_t timeout_ms, uint64_t memory_bytes)
{
	struct worker_options o = { .timeout_ms = timeout_ms, .memory_bytes = memory_bytes };
	struct standing *s = NULL;
	*life = (struct life){ 0 };
	assert_int_equal(standing_new(&s, act, life, files, &o, NULL), 0);
	return s;
}

static enum worker_end ask(struct standing *s, enum act what, uint32_t bytes, struct worker_task *ret)
{
	struct question q = { what, bytes };
	standing_ask(s, &q, sizeof(q), ret);
	return ret->end;
}

/* Answered, by a worker that had been asked so many in its life. */
static void assert_answer(struct standing *s, enum act what, uint32_t n_asked)
{
	struct worker_task t;
	if (ask(s, what, 10, &t) != WORKER_ANSWERED)
		fail_msg("%s", t.error.text);
	assert_int_equal(t.flags, n_asked);
	assert_int_equal(t.block_bytes, 10);
	assert_memory_equal(t.block, "abcdefghij", 10);
	worker_task_finish(&t);
}

static void assert_refusal(struct standing *s, enum act what, enum worker_end end, const char *words)
{
	struct worker_task t;
	assert_int_equal(ask(s, what, 0, &t), end);
	if (!strstr(t.error.text, words))
		fail_msg("%s", t.error.text);
	assert_null(t.block);
	worker_task_finish(&t);
}

static void one_worker_answers_all_and_keeps_what_it_has(void **state)
{
	(void)state;
	struct life life;
	size_t descriptors = open_descriptors();
	struct standing *s = begin(&life, NULL, 10000, 0);
	for (uint32_t i = 1; i <= 1000; i++)
		assert_answer(s, ANSWER, i);
	assert_int_equal(life.n_asked, 0);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), 0);
	standing_free(s);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	assert_int_equal(open_descriptors(), descriptors);
	standing_free(begin(&life, NULL, 0, 0));
	standing_free(NULL);
}

static void answers_have_any_length(void **state)
{
	(void)state;
	static const uint32_t lengths[] = { 0, 1, 16000, 16383, 16384, 20000, 5000000, 3, 16384 };
	struct life life;
	struct worker_task t;
	struct standing *s = begin(&life, NULL, 20000, 0);
	for (uint32_t i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
		if (ask(s, ANSWER, lengths[i], &t) != WORKER_ANSWERED)
			fail_msg("%s", t.error.text);
		assert_int_equal(t.flags, i + 1);
		assert_int_equal(t.block_bytes, lengths[i]);
		assert_int_equal(t.block == NULL, lengths[i] == 0);
		for (uint32_t k = 0; k < lengths[i]; k++)
			if (((const char *)t.block)[k] != (char)('a' + k % 23))
				fail_msg("byte %u of %u", k, lengths[i]);
		worker_task_finish(&t);
	}
	static char long_question[STANDING_QUESTION_MAX + 1];
	standing_ask(s, long_question, sizeof(long_question), &t);
	assert_int_equal(t.end, WORKER_FAILED);
	worker_task_finish(&t);
	standing_ask(s, long_question, STANDING_QUESTION_MAX, &t);
	assert_int_equal(t.end, WORKER_ANSWERED);
	worker_task_finish(&t);
	standing_free(s);
}

static void one_that_died_is_replaced_for_the_question(void **state)
{
	(void)state;
	struct life life;
	struct standing *s = begin(&life, NULL, 10000, 0);
	assert_answer(s, ANSWER, 1);
	assert_answer(s, ANSWER, 2);
	assert_answer(s, CRASH_IF_OLD, 1);
	assert_answer(s, ANSWER, 2);
	/* That a new one dies of, too. */
	assert_refusal(s, CRASH, WORKER_DIED, "crashed (signal 11)");
	assert_answer(s, ANSWER, 1);
	standing_free(s);
}

/* Somebody else ends it, while it has nothing to do. */
static void one_that_is_gone_between_questions_is_replaced(void **state)
{
	(void)state;
	struct life life;
	struct standing *s = begin(&life, NULL, 10000, 0);
	char line[64] = "";
	assert_answer(s, ANSWER, 1);
	FILE *children = fopen("/proc/thread-self/children", "re");
	if (!children || !fgets(line, sizeof(line), children)) {
		print_message("no /proc/thread-self/children\n");
		skip();
	}
	fclose(children);
	pid_t worker = (pid_t)strtoul(line, NULL, 10);
	assert_true(worker > 1 && kill(worker, SIGKILL) == 0);
	siginfo_t info;
	assert_int_equal(waitid(P_PID, (id_t)worker, &info, WEXITED | WNOWAIT), 0);
	assert_answer(s, ANSWER, 1);
	assert_answer(s, ANSWER, 2);
	standing_free(s);
}

static void its_memory_limit_is_for_its_life(void **state)
{
	(void)state;
	struct life life;
	uint32_t lives = 1;
	if (sanitized || !kernel.limits)
		skip();
	struct standing *s = begin(&life, NULL, 10000, (uint64_t)36 << 20);
	for (uint32_t i = 0; i < 20; i++) {
		struct worker_task t;
		if (ask(s, LEAK, 0, &t) != WORKER_ANSWERED)
			fail_msg("%s", t.error.text);
		assert_true(t.flags <= 4);
		lives += i > 0 && t.flags == 1;
		worker_task_finish(&t);
	}
	assert_true(lives >= 5);
	assert_refusal(s, DEVOUR, WORKER_NO_MEMORY, "ran out of memory (limit 36 MiB)");
	assert_answer(s, ANSWER, 1);
	standing_free(s);
}

static void each_question_has_its_time(void **state)
{
	(void)state;
	struct life life;
	struct standing *s = begin(&life, NULL, 300, 0);
	double before = seconds();
	for (uint32_t i = 1; i <= 3; i++) {
		assert_answer(s, ANSWER, i);
		(void)usleep(150000);
	}
	/* All its time is gone: nobody is asked again. */
	double began = seconds();
	assert_refusal(s, LOOP_IF_OLD, WORKER_TIMEOUT, "stopped after 1 s");
	assert_true(seconds() - began > 0.25);
	assert_answer(s, ANSWER, 1);
	assert_refusal(s, LOOP, WORKER_TIMEOUT, "stopped after 1 s");
	assert_true(seconds() - before < 10);
	standing_free(s);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
}

static void an_error_of_its_own_leaves_it_alive(void **state)
{
	(void)state;
	struct life life;
	struct standing *s = begin(&life, NULL, 10000, 0);
	assert_answer(s, ANSWER, 1);
	assert_refusal(s, COMPLAIN, WORKER_FAILED, "question 2 is no question");
	assert_answer(s, ANSWER, 3);
	standing_free(s);
}

static int give_file(void *context, const struct file_request *r, char *ret_path, unsigned long size)
{
	int fd = memfd_create("file", MFD_CLOEXEC);
	assert_true(fd >= 0 && write(fd, "text", 4) == 4);
	snprintf(ret_path, size, "%s/%s:", r->folder, r->name);
	++*(int *)context;
	return fd;
}

static void files_are_opened_outside_for_any_question(void **state)
{
	(void)state;
	struct life life;
	struct worker_task t;
	int opened = 0;
	struct file_source files = { give_file, &opened };
	size_t descriptors = open_descriptors();
	struct standing *s = begin(&life, &files, 10000, 0);
	for (int i = 1; i <= 50; i++) {
		if (ask(s, FETCH, 0, &t) != WORKER_ANSWERED)
			fail_msg("%s", t.error.text);
		assert_int_equal(t.block_bytes, strlen("folder/name:text"));
		assert_memory_equal(t.block, "folder/name:text", t.block_bytes);
		assert_int_equal(opened, i);
		worker_task_finish(&t);
	}
	standing_free(s);
	assert_int_equal(open_descriptors(), descriptors);
}

static void it_has_no_rights_however_long_it_lives(void **state)
{
	(void)state;
	struct life life;
	struct worker_task t;
	if (!kernel.filter && !kernel.landlock)
		skip();
	struct standing *s = begin(&life, NULL, 10000, 0);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(ask(s, OPEN, 0, &t), WORKER_ANSWERED);
		assert_true(t.flags == EPERM || t.flags == EACCES);
		worker_task_finish(&t);
	}
	standing_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_worker_answers_all_and_keeps_what_it_has),
		cmocka_unit_test(answers_have_any_length),
		cmocka_unit_test(one_that_died_is_replaced_for_the_question),
		cmocka_unit_test(one_that_is_gone_between_questions_is_replaced),
		cmocka_unit_test(its_memory_limit_is_for_its_life),
		cmocka_unit_test(each_question_has_its_time),
		cmocka_unit_test(an_error_of_its_own_leaves_it_alive),
		cmocka_unit_test(files_are_opened_outside_for_any_question),
		cmocka_unit_test(it_has_no_rights_however_long_it_lives),
	};
	const char *value = getenv("SANITIZED");
	sanitized = value && *value;
	if (!sandbox_probe(&kernel))
		return 1;
	return cmocka_run_group_tests_name("standing", tests, NULL, NULL);
}
