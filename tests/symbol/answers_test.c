/*
 * The block of answers: what was put in comes out, strings are kept once, and a block of which any byte was changed either
 * is refused or still stays inside itself.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "symbol/answers.h"

static uint32_t text(struct answers_builder *b, const char *s)
{
	return answers_string(b, s, strlen(s));
}

/* n addresses 16 apart; address i has i % 4 frames, named after it. */
static void fill(struct answers_builder *b, size_t n)
{
	char name[64];
	answers_begin(b);
	for (size_t i = 0; i < n; i++) {
		struct answer_frame f[3];
		for (size_t k = 0; k < i % 4; k++) {
			snprintf(name, sizeof(name), "function_%zu(int, char const*)", i * 7 % (n / 2 + 1) + k);
			f[k] = (struct answer_frame){ text(b, name), 0, text(b, "/src/a.c"), (uint32_t)i, (uint32_t)k, 1 };
		}
		assert_int_equal(answers_add(b, 0x1000 + 16 * i, i % 4 ? ANSWER_DEBUG : ANSWER_NOTHING, f, i % 4, NULL), 0);
	}
}

static void block_of(size_t n, struct buf *ret)
{
	struct answers_builder b;
	buf_init(ret, BUF_MAX_DEFAULT);
	fill(&b, n);
	assert_int_equal(answers_write((const struct answers_builder *const[]){ &b }, 1, ret, NULL), 0);
	answers_end(&b);
}

static void what_was_added_is_found(void **state)
{
	(void)state;
	struct buf block;
	struct answers a;
	char name[64];
	block_of(1001, &block);
	assert_int_equal(answers_open(&a, block.data, block.len, NULL), 0);
	assert_int_equal(a.n, 1001);
	for (size_t i = 0; i < 1001; i++) {
		assert_int_equal(answers_find(&a, 0x1000 + 16 * i), i);
		assert_int_equal(answers_find(&a, 0x1001 + 16 * i), SIZE_MAX);
		assert_int_equal(a.first[i + 1] - a.first[i], i % 4);
		assert_int_equal(a.quality[i], i % 4 ? ANSWER_DEBUG : ANSWER_NOTHING);
		for (size_t k = 0; k < i % 4; k++) {
			const struct answer_frame *f = &a.frames[a.first[i] + k];
			snprintf(name, sizeof(name), "function_%zu(int, char const*)", i * 7 % 501 + k);
			assert_string_equal(a.strings + f->function, name);
			assert_string_equal(a.strings + f->file, "/src/a.c");
			assert_string_equal(a.strings + f->system_name, "");
			assert_int_equal(f->line, i);
			assert_int_equal(f->column, k);
		}
	}
	assert_int_equal(answers_find(&a, 0), SIZE_MAX);
	assert_int_equal(answers_find(&a, UINT64_MAX), SIZE_MAX);
	buf_finish(&block);
}

static void strings_are_kept_once(void **state)
{
	(void)state;
	struct answers_builder b;
	answers_begin(&b);
	assert_int_equal(answers_string(&b, NULL, 0), 0);
	assert_int_equal(answers_string(&b, "\0abc", 4), 0);
	uint32_t one = text(&b, "one"), other = text(&b, "on");
	assert_int_equal(one, 1);
	assert_int_not_equal(other, one);
	assert_int_equal(answers_string(&b, "one\0more", 8), one);
	assert_int_equal(answers_string(&b, "ones", 3), one);
	assert_int_equal(text(&b, "on"), other);
	assert_int_equal(b.strings.len, 1 + 4 + 3);
	answers_end(&b);
	answers_end(NULL);
}

/* Addresses of the first, then of the second; what each says is what it says alone, wherever the strings went. */
static void parts_become_one_block(void **state)
{
	(void)state;
	struct answers_builder parts[3];
	struct answers a;
	struct buf block;
	const char *texts[3] = { "both", "only the second", "both" };
	buf_init(&block, BUF_MAX_DEFAULT);
	for (size_t i = 0; i < 3; i++) {
		answers_begin_part(&parts[i], i);
		/* Of the part before, which may be used by the next. */
		uint32_t borrowed = i ? text(&parts[i - 1], "lent") : 0;
		size_t start = answers_string_begin(&parts[i]);
		buf_adds(&parts[i].strings, texts[i]);
		uint32_t made = answers_string_end(&parts[i], start);
		assert_string_equal(answers_string_text(&parts[i], made), texts[i]);
		assert_int_equal(text(&parts[i], texts[i]), made);
		start = answers_string_begin(&parts[i]);
		buf_adds(&parts[i].strings, texts[i]);
		assert_int_equal(answers_string_end(&parts[i], start), made);
		assert_int_equal(answers_string_end(&parts[i], answers_string_begin(&parts[i])), 0);
		struct answer_frame f[2] = { { made, borrowed, 0, (uint32_t)i, 0, 0 }, { text(&parts[i], "end"), 0, 0, 0, 0, 0 } };
		assert_int_equal(answers_add(&parts[i], 0x10 + i, ANSWER_DEBUG, f, 2, NULL), 0);
	}
	assert_int_equal(answers_add(&parts[2], 0x20, ANSWER_NOTHING, NULL, 0, NULL), 0);
	assert_int_equal(answers_write((const struct answers_builder *const[]){ &parts[0], &parts[1], &parts[2] }, 3, &block, NULL), 0);
	assert_int_equal(answers_open(&a, block.data, block.len, NULL), 0);
	assert_int_equal(a.n, 4);
	assert_int_equal(a.n_frames, 6);
	for (size_t i = 0; i < 3; i++) {
		const struct answer_frame *f = &a.frames[a.first[answers_find(&a, 0x10 + i)]];
		assert_string_equal(answers_text(&a, f[0].function), texts[i]);
		assert_string_equal(a.strings + f[0].system_name, i ? "lent" : "");
		assert_null(answers_text(&a, f[0].file));
		assert_int_equal(f[0].line, i);
		assert_string_equal(answers_text(&a, f[1].function), "end");
		answers_end(&parts[i]);
	}
	buf_finish(&block);
}

static void nothing_is_a_block_too(void **state)
{
	(void)state;
	struct answers_builder b;
	struct answers a;
	struct buf block;
	answers_begin(&b);
	buf_init(&block, BUF_MAX_DEFAULT);
	assert_int_equal(answers_write((const struct answers_builder *const[]){ &b }, 1, &block, NULL), 0);
	assert_int_equal(answers_open(&a, block.data, block.len, NULL), 0);
	assert_int_equal(a.n, 0);
	assert_int_equal(answers_find(&a, 0), SIZE_MAX);
	assert_string_equal(a.strings, "");
	answers_end(&b);
	buf_finish(&block);
}

/* Every byte that answers say is theirs, read; the sanitizers watch. */
static size_t read_all(const struct answers *a)
{
	size_t sum = 0;
	for (size_t i = 0; i < a->n; i++) {
		assert_true(answers_find(a, a->addresses[i]) == i);
		for (uint32_t k = a->first[i]; k < a->first[i + 1]; k++)
			sum += strlen(a->strings + a->frames[k].function) + strlen(a->strings + a->frames[k].system_name) +
			       strlen(a->strings + a->frames[k].file);
	}
	return sum;
}

static void a_changed_block_is_refused_or_stays_inside(void **state)
{
	(void)state;
	struct buf block;
	struct answers a;
	struct error err;
	size_t refused = 0, read = 0;
	block_of(20, &block);
	for (size_t n = 0; n < block.len; n++)
		assert_int_equal(answers_open(&a, block.data, n, NULL), E_FORMAT);
	for (size_t at = 0; at < block.len; at++) {
		for (int bit = 0; bit < 8; bit++) {
			/* In a block of exactly its size, so that one byte past the end is noticed. */
			char *copy = malloc(block.len);
			assert_non_null(copy);
			memcpy(copy, block.data, block.len);
			copy[at] = (char)(copy[at] ^ 1 << bit);
			if (answers_open(&a, copy, block.len, &err)) {
				assert_int_equal(err.code, E_FORMAT);
				refused++;
			} else {
				read += read_all(&a);
			}
			free(copy);
		}
	}
	assert_true(refused > 1000);
	assert_true(read > 1000);
	buf_finish(&block);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_added_is_found),
		cmocka_unit_test(strings_are_kept_once),
		cmocka_unit_test(parts_become_one_block),
		cmocka_unit_test(nothing_is_a_block_too),
		cmocka_unit_test(a_changed_block_is_refused_or_stays_inside),
	};
	return cmocka_run_group_tests_name("answers", tests, NULL, NULL);
}
