/* A dump that is converted while it is read says what the model says, or fails and leaves no whole file behind. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "stream_helpers.h"

#define HEADER "heap_v2/524288\n  t*: 3: 1300 [0: 0]\n  t0: 1: 300 [0: 0]\n  t5: 2: 1000 [0: 0] worker\n"
#define STACKS "@ 0x1001 0x2001\n  t*: 1: 300 [0: 0]\n  t0: 1: 300 [0: 0]\n" \
               "@ 0x1001\n  t*: 2: 1000 [0: 0]\n  t5: 2: 1000 [0: 0]\n"
#define MAPS "\nMAPPED_LIBRARIES:\n" \
             "00001000-00002000 r-xp 00003000 08:01 77                         /bin/a program\n" \
             "00002000-00003000 r-xp 00000000 08:01 78                         /lib/libx.so (deleted)\n" \
             "7ffc0000-7ffd0000 rw-p 00000000 00:00 0                          [stack]\n"
#define ONE_THREAD "heap_v2/524288\n  t*: 3: 1304 [0: 0]\n  t0: 3: 1304 [0: 0]\n" \
                   "@ 0x1001\n  t*: 1: 304 [0: 0]\n  t0: 1: 304 [0: 0]\n@ 0x1002\n  t*: 2: 1000 [0: 0]\n  t0: 2: 1000 [0: 0]\n"

static const struct jeheap_stream_options by_header = { .counts = JEHEAP_COUNTS_BY_HEADER };

static int says(const char *text, const struct jeheap_stream_options *o, struct buf *to, struct error *err)
{
	buf_init(to, BUF_MAX_DEFAULT);
	return stream_says(text, strlen(text), &read_limits_default, o, to, err);
}

static void expect_error(const char *text, const struct jeheap_stream_options *o, int code, const char *words)
{
	struct buf b;
	struct error err = { 0 };
	int rc = says(text, o, &b, &err);
	if (rc != code || !strstr(err.text, words))
		fail_msg("for \"%.80s\": %d \"%s\"", text, rc, rc ? err.text : "");
	buf_finish(&b);
}

static void agree(const char *text, enum jeheap_counts counts)
{
	bool both;
	must_agree(text, strlen(text), &read_limits_default, counts, &both);
	if (!both)
		fail_msg("not read by both ways: \"%.80s\"", text);
}

/* --- the same as the model ------------------------------------------------ */

static void small_dumps(void **state)
{
	static const char *const dumps[] = {
		HEADER STACKS MAPS,
		HEADER STACKS,                          /* its counts add up */
		HEADER STACKS "\n",
		HEADER MAPS,
		"heap_v2/1\n  t*: 0: 0 [0: 0]\n" MAPS,
		"heap_v2/1\n  t*: 3: 320 [5: 640]\n  t7: 3: 320 [5: 640] a  b\n@ 0x5\n  t*: 3: 320 [5: 640]\n  t7: 3: 320 [5: 640]\n" MAPS,
		/* The middle stack has nothing, but an address that no other has; the last is the first again. */
		"heap_v2/4096\n  t*: 9: 600 [0: 0]\n  t1: 8: 577 [0: 0]\n@ 0x9 0x8\n  t*: 3: 200 [0: 0]\n  t1: 3: 199 [0: 0]\n"
		"@ 0x7 0x9\n  t*: 0: 0 [0: 0]\n  t1: 0: 0 [0: 0]\n  t2: 0: 0 [0: 0]\n"
		"@ 0x9 0x8\n  t*: 5: 400 [0: 0]\n  t1: 3: 200 [0: 0]\n  t2: 3: 200 [0: 0]\n@\n  t*: 1: 8 [0: 0]\n" MAPS,
		/* Counts in the t* line alone, which has no thread. */
		"heap_v2/4096\n  t*: 9: 601 [0: 0]\n@ 0x0 0xffffffffffffffff\n  t*: 9: 601 [0: 0]\n" MAPS,
	};
	(void)state;
	for (size_t i = 0; i < sizeof dumps / sizeof *dumps; i++) {
		agree(dumps[i], JEHEAP_COUNTS_RAW);     /* as the model takes them */
		agree(dumps[i], JEHEAP_COUNTS_BY_HEADER);
	}
}

static uint64_t random_state;

static uint64_t next_random(uint64_t below)
{
	random_state = random_state * UINT64_C(6364136223846793005) + 1442695040888963407u;
	return (random_state >> 33) % below;
}

struct made {
	bool raw, accum;
	unsigned threads;
	uint64_t total[4], thread_total[8][4];
	struct buf stacks, dump;
};

static void add_counts(struct buf *b, const uint64_t c[4])
{
	buf_printf(b, "%" PRIu64 ": %" PRIu64 " [%" PRIu64 ": %" PRIu64 "]\n", c[0], c[1], c[2], c[3]);
}

static void add_thread_counts(struct made *m, unsigned thread, struct buf *lines, uint64_t star[4])
{
	static const uint64_t sizes[] = { 8, 48, 64, 320, 5120, 81920, 1000003, 2097152 };
	uint64_t objects = next_random(4), size = sizes[next_random(8)], gone = next_random(3);
	uint64_t c[4] = { objects, objects * size, 0, 0 };
	if (m->accum) {
		c[2] = objects + gone;
		c[3] = (objects + gone) * size;
	}
	buf_printf(lines, "  t%u: ", thread * 3);
	add_counts(lines, c);
	for (int i = 0; i < 4; i++) {
		star[i] += c[i];
		m->thread_total[thread][i] += c[i];
		m->total[i] += c[i];
	}
}

static void add_stack(struct made *m)
{
	struct buf lines;
	uint64_t star[4] = { 0 };
	unsigned first = (unsigned)next_random(m->threads), n = 1 + (unsigned)next_random(m->threads - first);
	buf_init(&lines, BUF_MAX_DEFAULT);
	buf_adds(&m->stacks, "@");
	for (uint64_t k = 1 + next_random(40); k > 0; k--)
		buf_printf(&m->stacks, next_random(50) ? " 0x7f00%08" PRIx64 : "  %" PRIX64, next_random(600) * 0x1111);
	for (unsigned t = first; t < first + n; t++)
		add_thread_counts(m, t, &lines, star);
	if (!m->raw && n > 1 && star[0] > 1)
		star[1] -= star[1] / 7;
	buf_adds(&m->stacks, "\n  t*: ");
	add_counts(&m->stacks, star);
	buf_add(&m->stacks, lines.data, lines.len);
	buf_finish(&lines);
}

/* Raw counts add up, bent ones don't; threads with names and without; mappings that touch, that lie inside others, gaps. */
static void make_dump(struct made *m, uint64_t seed)
{
	static const unsigned rates[] = { 1, 1024, 524288, 1u << 30 };
	random_state = seed;
	*m = (struct made){ .raw = next_random(2), .accum = next_random(2), .threads = 1 + (unsigned)next_random(8) };
	unsigned rate = rates[next_random(4)];
	buf_init(&m->stacks, BUF_MAX_DEFAULT);
	buf_init(&m->dump, BUF_MAX_DEFAULT);
	for (uint64_t n = next_random(400); n > 0; n--)
		add_stack(m);
	if (!m->raw)
		m->total[1] -= m->total[1] / 11;
	buf_printf(&m->dump, "heap_v2/%u\n  t*: ", rate);
	add_counts(&m->dump, m->total);
	for (unsigned t = 0; t < m->threads; t++) {
		buf_printf(&m->dump, "  t%u: %" PRIu64 ": %" PRIu64 " [%" PRIu64 ": %" PRIu64 "]%s\n", t * 3, m->thread_total[t][0],
		           m->thread_total[t][1], m->thread_total[t][2], m->thread_total[t][3], t % 2 ? " caf\xe9 \xc3\xa9" : "");
	}
	if (m->stacks.len > 0)
		buf_add(&m->dump, m->stacks.data, m->stacks.len);
	buf_adds(&m->dump, "\nMAPPED_LIBRARIES:\n");
	for (unsigned i = 0; i < 40; i++) {
		uint64_t start = UINT64_C(0x7f0000000000) + next_random(600) * 0x1000;
		buf_printf(&m->dump, "%" PRIx64 "-%" PRIx64 " %s %08x 08:01 %u %s\n", start, start + (1 + next_random(30)) * 0x1000,
		           i % 3 ? "r-xp" : "rw-p", i * 0x1000, i % 5, i % 4 ? i % 7 ? "/lib/li\\012b.so.1" : "/bin/\xff main" : "");
	}
	buf_adds(&m->dump, "fish\nffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0 [vsyscall]\n");
	assert_false(m->dump.failed);
	buf_finish(&m->stacks);
}

static void made_up_dumps(void **state)
{
	(void)state;
	unsigned told = 0, rounds = 120;
	for (uint64_t seed = 1; seed <= rounds; seed++) {
		struct made m;
		bool both;
		make_dump(&m, seed);
		must_agree(m.dump.data, m.dump.len, &read_limits_default, JEHEAP_COUNTS_RAW, &both);
		assert_true(both);
		must_agree(m.dump.data, m.dump.len, &read_limits_default, JEHEAP_COUNTS_BY_HEADER, &both);
		told += both;
		buf_finish(&m.dump);
	}
	/* One raw dump in eight has one thread; the header of nearly all others is enough. */
	assert_true(told > rounds * 8 / 10 && told < rounds);
}

/* --- a dump that is being written ----------------------------------------- */

struct slow {
	const char *text;
	size_t n, at, step;
};

static int slow_fill(struct stream *s, void *to, size_t room, size_t *ret_n, struct error *err)
{
	struct slow *from = s->context;
	size_t n = from->n - from->at;
	(void)err;
	n = n < from->step ? n : from->step;
	*ret_n = n < room ? n : room;
	memcpy(to, from->text + from->at, *ret_n);
	from->at += *ret_n;
	return E_OK;
}

static void as_it_grows(void **state)
{
	(void)state;
	struct made m;
	struct buf at_once;
	struct error err = { 0 };
	struct jeheap_stream_options o = { .counts = JEHEAP_COUNTS_UNBIASED };
	make_dump(&m, 12);
	buf_init(&at_once, BUF_MAX_DEFAULT);
	assert_int_equal(stream_says(m.dump.data, m.dump.len, &read_limits_default, &o, &at_once, &err), E_OK);
	for (size_t step = 1; step < 5000; step = step * 3 + 1) {
		struct slow slow = { m.dump.data, m.dump.len, 0, step };
		struct stream in = { .fill = slow_fill, .name = "input", .context = &slow, .fd = -1 };
		struct gathered g;
		struct profile *p;
		struct buf text;
		buf_init(&text, BUF_MAX_DEFAULT);
		assert_int_equal(stream_converts(&in, &read_limits_default, &o, &g, &err), E_OK);
		assert_int_equal(gathered_profile(&g, &p, &err), E_OK);
		say_profile(p, &text);
		assert_int_equal(text.len, at_once.len);
		assert_memory_equal(text.data, at_once.data, text.len);
		profile_free(p);
		buf_finish(&text);
		buf_finish(&g.bytes);
		stream_close(&in);
	}
	buf_finish(&at_once);
	buf_finish(&m.dump);
}

/* --- what is refused ------------------------------------------------------ */

static void cut_at_every_byte(void **state)
{
	(void)state;
	static const char whole[] = HEADER STACKS MAPS;
	struct made m;
	bool both;
	for (size_t n = 0; n < sizeof whole; n++) {
		must_agree(whole, n, &read_limits_default, JEHEAP_COUNTS_RAW, &both);
		assert_true(n > strlen(HEADER STACKS) || !both || n == strlen(HEADER STACKS));
	}
	make_dump(&m, 77);
	for (size_t n = m.dump.len; n > 0; n -= 1 + n / 100)
		must_agree(m.dump.data, n - 1, &read_limits_default, JEHEAP_COUNTS_BY_HEADER, &both);
	buf_finish(&m.dump);
}

static void every_byte_damaged(void **state)
{
	(void)state;
	static const char whole[] = HEADER STACKS MAPS;
	static const char put[] = { '\n', '@', '9', ' ', '\0', 't' };
	char text[sizeof whole];
	for (size_t i = 0; i + 1 < sizeof whole; i++)
		for (size_t k = 0; k < sizeof put; k++) {
			bool both;
			memcpy(text, whole, sizeof whole);
			text[i] = put[k];
			must_agree(text, sizeof whole - 1, &read_limits_default, JEHEAP_COUNTS_RAW, &both);
		}
}

static void what_only_the_end_tells(void **state)
{
	(void)state;
	static const struct jeheap_stream_options raw = { .counts = JEHEAP_COUNTS_RAW };
	static const struct jeheap_stream_options unbiased = { .counts = JEHEAP_COUNTS_UNBIASED };
	struct buf b;
	struct error err;
	expect_error(ONE_THREAD MAPS, &by_header, E_UNSUPPORTED, "must know");
	agree(ONE_THREAD MAPS, JEHEAP_COUNTS_RAW);
	assert_int_equal(says(ONE_THREAD MAPS, &raw, &b, &err), E_OK);
	buf_finish(&b);
	assert_int_equal(says(ONE_THREAD MAPS, &unbiased, &b, &err), E_OK);
	buf_finish(&b);
	/* The header's threads say raw, the stacks do not add up. */
	expect_error(HEADER "@ 0x1001\n  t*: 1: 300 [0: 0]\n  t0: 1: 300 [0: 0]\n" MAPS, &by_header, E_UNSUPPORTED, "must know");
	expect_error("heap_v2/512\n  t*: 1: 64 [0: 0]\n@ 0x5\n  t*: 1: 64 [1: 64]\n" MAPS, &by_header, E_UNSUPPORTED,
	             "accumulated counts");
	expect_error("heap_v2/524288\n  t*: 9: 1300 [0: 0]\n  t1: 9: 1301 [0: 0]\n"
	             "@ 0x6\n  t*: 2: 90 [0: 0]\n  t1: 2: 89 [0: 0]\n@ 0x5\n  t*: 7: 99 [0: 0]\n  t1: 7: 98 [0: 0]\n", &unbiased, E_TRUNCATED,
	             "no MAPPED_LIBRARIES");
}

static void the_sink_refuses(void **state)
{
	(void)state;
	struct made m;
	struct stream in;
	struct error err = { 0 };
	struct jeheap_stream_options o = { .counts = JEHEAP_COUNTS_UNBIASED };
	make_dump(&m, 12);
	for (size_t at = 0; at < 3000; at += 500) {
		struct gathered g = { .refuse_at = at };
		buf_init(&g.bytes, BUF_MAX_DEFAULT);
		stream_open_memory(&in, "input", m.dump.data, m.dump.len);
		assert_int_equal(jeheap_to_pprof(&in, &read_limits_default, &o, gather, &g, &err), E_IO);
		assert_string_equal(err.text, "the client is gone");
		stream_close(&in);
		buf_finish(&g.bytes);
	}
	buf_finish(&m.dump);
}

/* It is asked no more once it has said no: a large dump, of which the reader does not take the rest. */
static void nothing_is_read_for_nobody(void **state)
{
	(void)state;
	struct buf b;
	struct error err = { 0 };
	struct gathered g = { .refuse_at = 0 };
	struct stream in;
	struct jeheap_stream_options o = { .counts = JEHEAP_COUNTS_UNBIASED };
	buf_init(&b, BUF_MAX_DEFAULT);
	buf_adds(&b, "heap_v2/512\n  t*: 9: 1300 [0: 0]\n");
	random_state = 5;
	for (unsigned i = 0; i < 100000; i++)
		buf_printf(&b, "@ 0x%" PRIx64 " 0x%" PRIx64 "\n  t*: 1: %" PRIu64 " [0: 0]\n", next_random(9999), next_random(9999),
		           next_random(999));
	stream_open_memory(&in, "input", b.data, b.len);
	assert_int_equal(jeheap_to_pprof(&in, &read_limits_default, &o, gather, &g, &err), E_IO);
	assert_true(in.offset < b.len / 2);
	stream_close(&in);
	buf_finish(&b);
}

/* --- options -------------------------------------------------------------- */

static size_t some_build_id(void *context, const char *path, uint64_t start, const uint8_t **ret_bytes)
{
	static const uint8_t id[] = { 0x01, 0xab, 0xff };
	unsigned *calls = context;
	++*calls;
	*ret_bytes = id;
	if (!strcmp(path, "/bin/a program"))
		assert_int_equal(start, 0x1000);
	return strcmp(path, "/bin/a program") ? 0 : sizeof id;
}

static void options(void **state)
{
	(void)state;
	unsigned calls = 0;
	struct jeheap_stream_options o = {
		.counts = JEHEAP_COUNTS_RAW, .time_nanos = 1234567890123456789, .duration_nanos = 30000000000, .comment = "by a test",
		.default_type = "alloc_space", .build_id = some_build_id, .build_id_context = &calls,
	};
	struct buf b;
	struct error err;
	assert_int_equal(says(HEADER STACKS MAPS, &o, &b, &err), E_OK);
	assert_int_equal(calls, 2);
	assert_non_null(strstr(b.data, "default inuse_space, drop "));  /* there is no alloc_space */
	assert_non_null(strstr(b.data, "time 1234567890123456789 + 30000000000"));
	assert_non_null(strstr(b.data, "period 524288 space bytes"));
	assert_non_null(strstr(b.data, "comment by a test\n"));
	assert_non_null(strstr(b.data, "mapping 1000 2000 3000 /bin/a program 01abff\n"));
	assert_non_null(strstr(b.data, "mapping 2000 3000 0 /lib/libx.so \n"));
	buf_finish(&b);
	o.counts = JEHEAP_COUNTS_UNBIASED;
	assert_int_equal(says("heap_v2/1\n  t*: 3: 320 [5: 640]\n@ 0x5\n  t*: 3: 320 [5: 640]\n" MAPS, &o, &b, &err), E_OK);
	assert_non_null(strstr(b.data, "default alloc_space"));
	buf_finish(&b);
}

/* --- since an earlier dump ------------------------------------------------ */

static struct jeheap_base *base_of(const char *text)
{
	struct stream in;
	struct error err = { 0 };
	struct jeheap_base *base = NULL;
	stream_open_memory(&in, "base", text, strlen(text));
	if (jeheap_base_read(&in, &read_limits_default, JEHEAP_COUNTS_UNBIASED, &base, &err))
		fail_msg("%s", err.text);
	stream_close(&in);
	return base;
}

static void grown(const char *before, const char *now, const char *samples)
{
	struct jeheap_stream_options o = { .counts = JEHEAP_COUNTS_UNBIASED, .base = base_of(before) };
	struct buf b;
	struct error err;
	assert_int_equal(says(now, &o, &b, &err), E_OK);
	const char *got = strstr(b.data, " locations\n") + strlen(" locations\n");
	assert_string_equal(got, samples);
	buf_finish(&b);
	jeheap_base_free(o.base);
}

#define EXACT(counts) "heap_v2/1\n  t*: " counts "\n"
#define END "\nMAPPED_LIBRARIES:\n7ffc0000-7ffd0000 rw-p 00000000 00:00 0 [stack]\n"

static void since_a_base(void **state)
{
	(void)state;
	/* More, less, gone, new, the same; the addresses come in another order. */
	grown(EXACT("9: 900 [0: 0]")
	      "@ 0x11 0x12\n  t*: 2: 128 [0: 0]\n  t1: 2: 128 [0: 0]\n@ 0x13\n  t*: 4: 64 [0: 0]\n  t1: 4: 64 [0: 0]\n"
	      "@ 0x14\n  t*: 1: 32 [0: 0]\n  t1: 1: 32 [0: 0]\n@ 0x15\n  t*: 1: 48 [0: 0]\n  t1: 1: 48 [0: 0]\n" END,
	      EXACT("9: 900 [0: 0]")
	      "@ 0x16 0x15\n  t*: 1: 96 [0: 0]\n  t1: 1: 96 [0: 0]\n@ 0x15\n  t*: 1: 48 [0: 0]\n  t1: 1: 48 [0: 0]\n"
	      "@ 0x13\n  t*: 3: 48 [0: 0]\n  t1: 3: 48 [0: 0]\n@ 0x11 0x12\n  t*: 5: 320 [0: 0]\n  t1: 5: 320 [0: 0]\n" END,
	      "1 96  thread=t10 bytes=96bytes 15:-1 14:-1\n3 192  thread=t10 bytes=64bytes 10:-1 11:-1\n");
	/* By thread; a thread that is new in one of them; no size in common with the base is none. */
	grown(EXACT("9: 900 [0: 0]")
	      "@ 0x11\n  t*: 3: 150 [0: 0]\n  t2: 1: 50 [0: 0]\n  t3: 2: 100 [0: 0]\n" END,
	      EXACT("9: 900 [0: 0]")
	      "@ 0x11\n  t*: 6: 384 [0: 0]\n  t1: 1: 64 [0: 0]\n  t2: 4: 256 [0: 0]\n  t3: 1: 64 [0: 0]\n" END,
	      "1 64  thread=t10 bytes=64bytes 10:-1\n3 206  thread=t20 10:-1\n");
	/* What was accumulated, which the base has not where nothing ever was. */
	grown(EXACT("0: 0 [0: 0]") END,
	      EXACT("1: 64 [3: 192]") "@ 0x11\n  t*: 1: 64 [3: 192]\n  t1: 1: 64 [3: 192]\n" END,
	      "3 192 1 64  thread=t10 bytes=64bytes 10:-1\n");
	grown(EXACT("1: 64 [3: 192]") "@ 0x11\n  t*: 1: 64 [3: 192]\n  t1: 1: 64 [3: 192]\n" END,
	      EXACT("0: 0 [4: 256]") "@ 0x11\n  t*: 0: 0 [4: 256]\n  t1: 0: 0 [4: 256]\n" END,
	      "1 64 0 0  thread=t10 bytes=64bytes 10:-1\n");
}

/* From nothing, all has come since; from itself, nothing. A stack that is there twice loses the base's amount once. */
static void since_others(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed < 20; seed++) {
		struct made m;
		struct buf plain, grown_text;
		struct error err = { 0 };
		struct jeheap_stream_options o = { .counts = JEHEAP_COUNTS_UNBIASED };
		make_dump(&m, seed);
		buf_addc(&m.dump, '\0');
		assert_int_equal(says(m.dump.data, &o, &plain, &err), E_OK);
		o.base = base_of(EXACT("0: 0 [0: 0]") END);
		assert_int_equal(says(m.dump.data, &o, &grown_text, &err), E_OK);
		assert_string_equal(plain.data, grown_text.data);
		jeheap_base_free(o.base);
		buf_finish(&grown_text);
		o.base = base_of(m.dump.data);
		assert_int_equal(says(m.dump.data, &o, &grown_text, &err), E_OK);
		assert_non_null(strstr(grown_text.data, "\n0 locations\n"));
		assert_null(strstr(strstr(grown_text.data, "\n0 locations\n"), "thread"));
		jeheap_base_free(o.base);
		buf_finish(&grown_text);
		buf_finish(&plain);
		buf_finish(&m.dump);
	}
	grown(EXACT("3: 192 [0: 0]") "@ 0x11\n  t*: 3: 192 [0: 0]\n" END,
	      EXACT("4: 256 [0: 0]") "@ 0x11\n  t*: 2: 128 [0: 0]\n@ 0x11\n  t*: 2: 128 [0: 0]\n" END, "1 64  bytes=64bytes 10:-1\n");
}

static void a_damaged_base(void **state)
{
	(void)state;
	struct stream in;
	struct error err = { 0 };
	struct jeheap_base *base = NULL;
	stream_open_memory(&in, "base", HEADER STACKS, strlen(HEADER STACKS) - 1);
	assert_int_equal(jeheap_base_read(&in, &read_limits_default, JEHEAP_COUNTS_RAW, &base, &err), E_TRUNCATED);
	assert_null(base);
	stream_close(&in);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(small_dumps),
		cmocka_unit_test(made_up_dumps),
		cmocka_unit_test(as_it_grows),
		cmocka_unit_test(cut_at_every_byte),
		cmocka_unit_test(every_byte_damaged),
		cmocka_unit_test(what_only_the_end_tells),
		cmocka_unit_test(the_sink_refuses),
		cmocka_unit_test(nothing_is_read_for_nobody),
		cmocka_unit_test(options),
		cmocka_unit_test(since_a_base),
		cmocka_unit_test(since_others),
		cmocka_unit_test(a_damaged_base),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
