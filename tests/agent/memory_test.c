/* The agent's own memory: blocks in mappings of its own, all given back at the end, and a sort that needs none. */
#include "../base/test.h"

#define AGENT_MEMORY_PLAIN
#include "agent/memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static uint64_t seed = 88172645463325252u;

static uint32_t some(uint32_t below)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (uint32_t)(seed >> 32) % below;
}

static size_t mappings(void)
{
	char text[4096];
	size_t n = 0;
	ssize_t got;
	int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	while ((got = read(fd, text, sizeof text)) > 0)
		for (ssize_t i = 0; i < got; i++)
			n += text[i] == '\n';
	close(fd);
	return n;
}

static bool is_mapped(const void *at)
{
	unsigned char one;
	return mincore((void *)((uintptr_t)at & ~(uintptr_t)4095), 1, &one) == 0;
}

/* --- blocks --- */

#define BLOCKS 2000

struct block {
	unsigned char *at;
	size_t n;
	unsigned char fill;
};

static void check_block(const struct block *b)
{
	assert_int_equal((uintptr_t)b->at % 16, 0);
	for (size_t i = 0; i < b->n; i++)
		if (b->at[i] != b->fill)
			fail_msg("byte %zu of %zu was changed", i, b->n);
}

static void fill_block(struct block *b, size_t n)
{
	b->n = n;
	b->fill = (unsigned char)(1 + some(255));
	memset(b->at, b->fill, n);
}

static size_t some_size(void)
{
	static const uint32_t most[] = { 16, 300, 5000, 70000, 300000 };
	return some(most[some(5)]) + (some(20) == 0 ? 65536 - 8 : 0);
}

static void step(struct block *b)
{
	size_t n = some_size();
	if (!b->at) {
		b->at = some(2) ? agent_malloc(n) : agent_calloc(n, 1);
		assert_non_null(b->at);
		fill_block(b, n);
	} else if (some(2)) {
		check_block(b);
		unsigned char *moved = agent_realloc(b->at, n ? n : 1);
		assert_non_null(moved);
		b->at = moved;
		b->n = n < b->n ? n : b->n;
		check_block(b);
		fill_block(b, n);
	} else {
		check_block(b);
		agent_free(b->at);
		b->at = NULL;
	}
}

static void blocks_keep_their_bytes(void **state)
{
	static struct block all[BLOCKS];
	(void)state;
	size_t before = mappings();
	for (int session = 0; session < 5; session++) {
		memset(all, 0, sizeof all);
		agent_memory_begin((size_t)1 << 30);
		for (int i = 0; i < 20000; i++)
			step(&all[some(BLOCKS)]);
		for (size_t i = 0; i < BLOCKS; i++)
			if (all[i].at)
				check_block(&all[i]);
		agent_memory_end();
		for (size_t i = 0; i < BLOCKS; i++)
			assert_false(all[i].at && is_mapped(all[i].at));
	}
	assert_int_equal(mappings(), before);
}

static void fresh_blocks_are_zero(void **state)
{
	(void)state;
	agent_memory_begin((size_t)1 << 30);
	for (int i = 0; i < 2000; i++) {
		size_t n = some_size() + 1;
		unsigned char *block = agent_calloc(1, n);
		for (size_t k = 0; k < n; k++)
			assert_int_equal(block[k], 0);
		memset(block, 0xff, n);
		if (some(2))
			agent_free(block);
	}
	agent_memory_end();
}

static void the_limit_holds(void **state)
{
	(void)state;
	assert_null(agent_malloc(1));
	agent_memory_begin((size_t)1 << 20);
	assert_null(agent_malloc((size_t)1 << 20));
	assert_null(agent_malloc(SIZE_MAX));
	assert_null(agent_malloc(PTRDIFF_MAX));
	assert_null(agent_calloc(SIZE_MAX / 2, 3));
	size_t small = 0, large = 0;
	while (agent_malloc(1000))
		small++;
	assert_true(small > 900 && small < 1050);
	agent_memory_end();
	agent_memory_begin((size_t)1 << 20);
	void *block = agent_malloc(100000);
	assert_non_null(block);
	assert_null(agent_realloc(block, (size_t)1 << 20));
	assert_null(agent_realloc(block, SIZE_MAX));
	/* It is as it was. */
	memset(block, 1, 100000);
	block = agent_realloc(block, 800000);
	assert_non_null(block);
	while (agent_malloc(70000))
		large++;
	assert_true(large <= 3);
	/* What is given back can be had again. */
	agent_free(block);
	assert_non_null(agent_malloc(700000));
	agent_memory_end();
	assert_null(agent_malloc(1));
}

/* An array that grows in place, as all here do, costs about what it holds. */
static void growing_costs_little(void **state)
{
	(void)state;
	agent_memory_begin((size_t)3 << 20);
	char *array = NULL;
	for (size_t n = 16; n <= (size_t)1 << 20; n *= 2) {
		array = agent_realloc(array, n);
		assert_non_null(array);
		memset(array, 1, n);
	}
	/* The last block comes back at once. */
	for (int i = 0; i < 100000; i++)
		agent_free(agent_malloc(5000));
	char *text = agent_strdup("words");
	assert_string_equal(text, "words");
	agent_free(NULL);
	agent_memory_end();
}

static void a_child_has_none(void **state)
{
	(void)state;
	agent_memory_begin((size_t)1 << 20);
	char *small = agent_malloc(100), *large = agent_malloc(100000);
	memset(large, 1, 100000);
	pid_t child = fork();
	if (child == 0) {
		bool gone = !is_mapped(small) && !is_mapped(large);
		agent_memory_forget();
		agent_memory_begin((size_t)1 << 20);
		char *own = agent_malloc(100);
		_exit(gone && own ? 0 : 1);
	}
	int status = -1;
	waitpid(child, &status, 0);
	assert_int_equal(status, 0);
	memset(small, 1, 100);
	agent_memory_end();
}

/* --- sorting --- */

struct item {
	uint32_t key;
	unsigned char rest[128];
};

static int by_number(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	return x < y ? -1 : x > y;
}

static int by_number_and(const void *a, const void *b, void *calls)
{
	++*(size_t *)calls;
	return by_number(a, b);
}

static void sorts_as_qsort(void **state)
{
	static uint32_t ours[3000], theirs[3000];
	(void)state;
	for (int i = 0; i < 2000; i++) {
		size_t n = some(i % 50 ? 40 : 3000), kinds = 1 + some(i % 3 ? 1000000 : 5);
		for (size_t k = 0; k < n; k++)
			ours[k] = theirs[k] = i % 7 == 0 ? (uint32_t)k : i % 7 == 1 ? (uint32_t)(n - k) : some((uint32_t)kinds);
		size_t calls = 0;
		qsort(theirs, n, sizeof *theirs, by_number);
		if (i % 2)
			agent_sort(ours, n, sizeof *ours, by_number);
		else
			agent_sort_r(ours, n, sizeof *ours, by_number_and, &calls);
		assert_memory_equal(ours, theirs, n * sizeof *ours);
		/* Never many more than n log n, whatever the order was. */
		assert_true(calls <= 2 * 12 * n + 16);
	}
}

/* Each item stays whole, of whatever size. */
static void items_move_whole(void **state)
{
	static struct item items[500];
	(void)state;
	for (size_t i = 0; i < 500; i++) {
		items[i].key = some(200);
		memset(items[i].rest, (int)items[i].key, sizeof items[i].rest);
	}
	agent_sort(items, 500, sizeof *items, by_number);
	for (size_t i = 0; i < 500; i++) {
		assert_true(i == 0 || items[i - 1].key <= items[i].key);
		for (size_t k = 0; k < sizeof items[i].rest; k++)
			assert_int_equal(items[i].rest[k], (unsigned char)items[i].key);
	}
}

static void errors_have_words(void **state)
{
	(void)state;
	assert_string_equal(agent_strerror(ENOENT), "No such file or directory");
	assert_non_null(agent_strerror(123456));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(blocks_keep_their_bytes), cmocka_unit_test(fresh_blocks_are_zero), cmocka_unit_test(the_limit_holds),
		cmocka_unit_test(growing_costs_little), cmocka_unit_test(a_child_has_none), cmocka_unit_test(sorts_as_qsort),
		cmocka_unit_test(items_move_whole), cmocka_unit_test(errors_have_words),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
