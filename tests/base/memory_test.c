/* Checked sizes, growing arrays, the hash's spread and the index. */
#include "test.h"

#include "base/memory.h"

static void products_saturate(void **state)
{
	(void)state;
	assert_int_equal(memory_product(6, 7), 42);
	assert_int_equal(memory_product(0, SIZE_MAX), 0);
	assert_int_equal(memory_product(1, SIZE_MAX), SIZE_MAX);
	assert_int_equal(memory_product((size_t)1 << 32, (size_t)1 << 32), SIZE_MAX);
	assert_int_equal(memory_product(SIZE_MAX, 2), SIZE_MAX);
}

static void arrays_grow_to_their_maximum(void **state)
{
	(void)state;
	uint64_t *items = NULL;
	size_t n = 0, capacity = 0;
	for (uint64_t i = 0; i < 1000; i++) {
		uint64_t *item = ARRAY_PUSH(items, n, capacity, 1000);
		assert_non_null(item);
		*item = i * i;
	}
	assert_null(ARRAY_PUSH(items, n, capacity, 1000));
	assert_int_equal(n, 1000);
	assert_int_equal(capacity, 1000);
	for (uint64_t i = 0; i < n; i++)
		assert_int_equal(items[i], i * i);
	free(items);
}

static void refused_growth_changes_nothing(void **state)
{
	(void)state;
	char *data = NULL;
	size_t capacity = 0;
	assert_true(memory_grow((void **)&data, &capacity, 10, 1, 1000));
	size_t before = capacity;
	memset(data, 'k', before);
	char *was = data;
	assert_false(memory_grow((void **)&data, &capacity, 1001, 1, 1000));
	assert_false(memory_grow((void **)&data, &capacity, SIZE_MAX, 1, SIZE_MAX));
	assert_false(memory_grow((void **)&data, &capacity, SIZE_MAX / 4, 8, SIZE_MAX));
	assert_false(memory_grow((void **)&data, &capacity, before + 1, 0, SIZE_MAX));
	assert_ptr_equal(data, was);
	assert_int_equal(capacity, before);
	assert_true(memory_grow((void **)&data, &capacity, 3, 1, 1000));
	assert_ptr_equal(data, was);
	free(data);
}

static int compare_u64(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return (x > y) - (x < y);
}

/* Inputs that differ in one bit, in one length, in two swapped words: all hashes distinct. */
static void hashes_of_like_inputs_differ(void **state)
{
	(void)state;
	enum { BYTES = 100, N = BYTES * 8 + 4 * BYTES };
	uint64_t *hashes = calloc(N, sizeof(*hashes));
	assert_non_null(hashes);
	uint8_t bytes[4 * BYTES] = { 0 };
	size_t n = 0;
	for (size_t bit = 0; bit < BYTES * 8; bit++) {
		bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
		hashes[n++] = hash_bytes(bytes, BYTES);
		bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
	for (size_t length = 0; length < 4 * BYTES; length++)
		hashes[n++] = hash_bytes(bytes, length);
	qsort(hashes, n, sizeof(*hashes), compare_u64);
	size_t equal = 0;
	for (size_t i = 1; i < n; i++)
		equal += hashes[i] == hashes[i - 1];
	/* The all-zero input of BYTES bytes is in both lists' neighbourhood, but in one of them only. */
	assert_int_equal(equal, 0);
	free(hashes);

	uint64_t words[8] = { 1, 2, 3, 4, 5, 6, 7, 8 };
	uint64_t one = hash_bytes(words, sizeof(words));
	words[0] = 3, words[2] = 1;
	assert_int_not_equal(one, hash_bytes(words, sizeof(words)));
}

static void hash_looks_at_nothing_but_its_bytes(void **state)
{
	(void)state;
	for (size_t length = 0; length < 70; length++) {
		/* Exactly sized blocks: the sanitizer sees a read past the end. */
		uint8_t *a = malloc(length + 1), *b = malloc(length ? length : 1);
		assert_non_null(a);
		assert_non_null(b);
		for (size_t i = 0; i < length; i++)
			a[i + 1] = b[i] = (uint8_t)(i * 37 + 1);
		assert_int_equal(hash_bytes(a + 1, length), hash_bytes(b, length));
		free(a);
		free(b);
	}
	assert_int_equal(hash_bytes(NULL, 0), hash_bytes("", 0));
}

/* Chi-squared of the tag's low bits, which place an item, over decimal names and stepping words. */
static void tags_spread_evenly(void **state)
{
	(void)state;
	enum { BINS = 1024, N = 64 * BINS };
	for (int kind = 0; kind < 3; kind++) {
		uint32_t bins[BINS] = { 0 };
		for (uint64_t i = 0; i < N; i++) {
			char name[32];
			int n = snprintf(name, sizeof(name), "function_%llu", (unsigned long long)i);
			uint64_t hash = kind == 0 ? hash_bytes(name, (size_t)n)
			                : kind == 1 ? hash_u64(0x7f0000000000u + i * 4096)
			                            : hash_mix(hash_u64(i / 256), i % 256);
			bins[(hash >> 32) % BINS]++;
		}
		double chi = 0;
		for (size_t i = 0; i < BINS; i++)
			chi += (bins[i] - 64.0) * (bins[i] - 64.0) / 64.0;
		/* 1023 degrees of freedom: sigma 45; seven of them either way. */
		assert_true(chi < 1023 + 7 * 45 && chi > 1023 - 7 * 45);
	}
}

static bool same_word(const void *context, uint32_t item)
{
	const uint64_t *const *sought = context;
	return sought[0][item] == *sought[1];
}

static void index_finds_all_and_only_what_is_in_it(void **state)
{
	(void)state;
	enum { N = 100000 };
	uint64_t *words = calloc(N, sizeof(*words));
	assert_non_null(words);
	struct index x = { 0 };
	for (uint32_t i = 0; i < N; i++) {
		words[i] = (uint64_t)i * i * 2 + 7;
		const uint64_t *sought[] = { words, &words[i] };
		assert_int_equal(index_find(&x, hash_u64(words[i]), same_word, sought), INDEX_NONE);
		assert_true(index_reserve(&x));
		index_insert(&x, hash_u64(words[i]), i);
		assert_true(x.n * 2 <= x.mask + 1);
	}
	for (uint32_t i = 0; i < N; i++) {
		const uint64_t *sought[] = { words, &words[i] };
		assert_int_equal(index_find(&x, hash_u64(words[i]), same_word, sought), i);
		uint64_t absent = words[i] + 1;
		const uint64_t *wrong[] = { words, &absent };
		assert_int_equal(index_find(&x, hash_u64(absent), same_word, wrong), INDEX_NONE);
	}
	index_finish(&x);
	index_finish(&x);
	index_finish(NULL);
	free(words);
}

/* Equal tags, one place in the table: items are still told apart, also across growth. */
static void index_survives_equal_hashes(void **state)
{
	(void)state;
	uint64_t words[200];
	struct index x = { 0 };
	for (uint32_t i = 0; i < 200; i++) {
		words[i] = i;
		assert_true(index_reserve(&x));
		index_insert(&x, 0xffffffffffffffffu, i);
	}
	for (uint32_t i = 0; i < 200; i++) {
		const uint64_t *sought[] = { words, &words[i] };
		assert_int_equal(index_find(&x, 0xffffffffffffffffu, same_word, sought), i);
	}
	index_finish(&x);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(products_saturate),
		cmocka_unit_test(arrays_grow_to_their_maximum),
		cmocka_unit_test(refused_growth_changes_nothing),
		cmocka_unit_test(hashes_of_like_inputs_differ),
		cmocka_unit_test(hash_looks_at_nothing_but_its_bytes),
		cmocka_unit_test(tags_spread_evenly),
		cmocka_unit_test(index_finds_all_and_only_what_is_in_it),
		cmocka_unit_test(index_survives_equal_hashes),
	};
	return cmocka_run_group_tests_name("memory", tests, NULL, NULL);
}
