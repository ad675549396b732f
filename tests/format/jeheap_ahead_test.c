/*
 * A dump that is large enough to be read ahead by a second thread gives what it gives on one processor: the same profile
 * or the same error, whole and in part, whatever is wrong with it.
 */
#include "jeheap_helpers.h"

#include <sched.h>

#define STACKS 20000u           /* some 6 MB: above what is read ahead */

static cpu_set_t all;

static void add_stacks(struct buf *b, unsigned from, unsigned n, uint64_t base)
{
	for (unsigned i = from; i < from + n; i++) {
		buf_adds(b, "@");
		for (unsigned k = 0; k < 12 + i % 7; k++)
			buf_printf(b, " 0x%" PRIx64, base + (i * 31 + k * k) % 5000 * 16 + (k == 3 ? i : 0));
		buf_printf(b, "\n  t*: 1: %u [0: 0]\n  t%u: 1: %u [0: 0]\n", 64 + i % 9 * 16, i % 3, 64 + i % 9 * 16);
	}
}

/* text stands in the middle of the stacks, more among the mappings. */
static void make_dump(struct buf *b, const char *text, const char *more)
{
	struct buf stacks;
	buf_init(&stacks, BUF_MAX_DEFAULT);
	buf_init(b, BUF_MAX_DEFAULT);
	uint64_t bytes = 0;
	for (unsigned i = 0; i < STACKS; i++)
		bytes += 64 + i % 9 * 16;
	add_stacks(&stacks, 0, STACKS / 2, 0x7f1234000000);
	buf_adds(&stacks, text);
	add_stacks(&stacks, STACKS / 2, STACKS / 2, 0x561200000000);
	buf_printf(b, "heap_v2/524288\n  t*: %u: %" PRIu64 " [0: 0]\n", STACKS, bytes);
	buf_add(b, stacks.data, stacks.len);
	buf_adds(b, "\nMAPPED_LIBRARIES:\n561200000000-561200100000 rw-p 00000000 00:00 0 [heap]\n");
	buf_adds(b, more);
	buf_adds(b, "7f1234000000-7f1234100000 r-xp 00000000 08:01 77 /lib/libx.so\n");
	buf_finish(&stacks);
	assert_true(b->len > (size_t)5 << 20);
}

static void read_on(const cpu_set_t *processors, const struct buf *dump, size_t n, bool partial, struct buf *log)
{
	assert_int_equal(sched_setaffinity(0, sizeof *processors, processors), 0);
	struct outcome o = read_bytes(jeheap_read, dump->data, n, partial);
	assert_int_equal(sched_setaffinity(0, sizeof all, &all), 0);
	buf_init(log, BUF_MAX_DEFAULT);
	buf_printf(log, "%d %s\n%s\n", o.rc, o.rc ? o.error.text : "", o.report.warnings.data ? o.report.warnings.data : "");
	if (o.rc == E_OK) {
		const struct profile *p = o.profile;
		buf_printf(log, "%zu stacks, %zu locations, %zu mappings, %zu label sets, process %" PRIx64 "\n", p->n_stacks,
		           p->n_locations, p->n_mappings, p->n_label_sets, profile_process_identity(p));
		describe(p, true, log);
	}
	outcome_finish(&o);
}

static void must_be_alike(const struct buf *dump, size_t n, bool partial)
{
	struct buf one, both;
	cpu_set_t first;
	CPU_ZERO(&first);
	for (int i = 0; CPU_COUNT(&first) == 0; i++)
		if (CPU_ISSET(i, &all))
			CPU_SET(i, &first);
	read_on(&first, dump, n, partial, &one);
	read_on(&all, dump, n, partial, &both);
	if (one.len != both.len || memcmp(one.data, both.data, one.len))
		fail_msg("of %zu bytes, partial %d: alone\n%.600s\nahead\n%.600s", n, partial, one.data, both.data);
	buf_finish(&one);
	buf_finish(&both);
}

static void damage_is_the_same(void **state)
{
	static const char *const middle[] = { "", "fish\n", "@ 0x12 fish\n", "@\n", "\n", "  t9: 5: 5 [0: 0]\n",
		"\nMAPPED_LIBRARIES:\n", "@ 0xffffffffff600000\n  t*: 1: 64 [0: 0]\n" };
	static const char *const maps[] = { "", "@ 0xffffffffff600000\n", "@ 0x7fff00000000\nnothing\n",
		"7ffe00000000-7ffe00001000 rw-p 00000000 00:00 0 [stack]\n" };
	(void)state;
	for (size_t i = 0; i < sizeof middle / sizeof *middle; i++)
		for (size_t k = 0; k < sizeof maps / sizeof *maps; k++) {
			struct buf dump;
			if (i > 1 && k > 0)
				continue;
			make_dump(&dump, middle[i], maps[k]);
			must_be_alike(&dump, dump.len, false);
			must_be_alike(&dump, dump.len, true);
			buf_finish(&dump);
		}
}

static void cuts_are_the_same(void **state)
{
	struct buf dump;
	(void)state;
	make_dump(&dump, "", "");
	for (size_t cut = 1; cut < dump.len / 6; cut = cut * 5 + 1)
		for (int partial = 0; partial < 2; partial++)
			must_be_alike(&dump, dump.len - cut, partial);
	buf_finish(&dump);
}

static int need_processors(void **state)
{
	(void)state;
	return sched_getaffinity(0, sizeof all, &all) == 0 ? 0 : -1;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(damage_is_the_same),
		cmocka_unit_test(cuts_are_the_same),
	};
	return cmocka_run_group_tests(tests, need_processors, NULL);
}
