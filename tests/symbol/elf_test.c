/*
 * ELF files, their debug sections, symbols and unwind entries, on the binaries that programs/fixtures.sh builds in the folder
 * given as argument: what binutils compressed, listed and dumped is the reference.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <elf.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "symbol/eh_frame.h"
#include "symbol/elf_file.h"
#include "symbol/sections.h"
#include "symbol/symtab.h"

#define GIB ((uint64_t)1 << 30)

static const char *folder;

static const char *fixture(const char *name)
{
	static char paths[8][4096];      /* the last 8 stay valid */
	static int next;
	char *path = paths[next++ % 8];
	snprintf(path, sizeof(paths[0]), "%s/%s", folder, name);
	return path;
}

static void open_fixture(struct elf_file *f, const char *name)
{
	struct error err;
	if (elf_file_open(f, fixture(name), &err))
		fail_msg("%s", err.text);
}

/* --- sections --- */

static volatile unsigned touched;

static void touch_slack(struct span s)
{
	for (size_t i = 0; s.at && i < SPAN_SLACK; i++)
		touched += s.at[s.n + i];
}

/* All sections of two files have the same bytes; how many are mapped where they lie in the first. */
static size_t assert_same_sections(const char *one, const char *two)
{
	struct elf_file f, g;
	struct debug_sections a, b;
	size_t in_place = 0, n = 0;
	open_fixture(&f, one);
	open_fixture(&g, two);
	sections_init(&a, &f.image, GIB);
	sections_init(&b, &g.image, GIB);
	for (enum debug_section i = 0; i < DEBUG_SECTIONS; i++) {
		uint64_t bytes = sections_bytes(&a, i);
		struct span x = sections_get(&a, i), y = sections_get(&b, i);
		assert_int_equal(x.at == NULL, y.at == NULL);
		assert_int_equal(x.n, y.n);
		assert_int_equal(x.n, bytes);
		assert_ptr_equal(sections_get(&a, i).at, x.at);
		if (x.at)
			assert_memory_equal(x.at, y.at, x.n);
		touch_slack(x);
		touch_slack(y);
		in_place += x.at >= f.image.bytes && x.at < f.image.bytes + f.image.n;
		n += x.at != NULL;
	}
	assert_true(n >= 5);
	assert_false(a.damaged || b.damaged);
	assert_true(f.has_debug_info && g.has_debug_info);
	sections_finish(&a);
	sections_finish(&b);
	elf_file_finish(&f);
	elf_file_finish(&g);
	return in_place;
}

static void compressed_sections_are_the_same_as_plain_ones(void **state)
{
	(void)state;
	assert_true(assert_same_sections("whole", "compressed") >= 5);
	assert_true(assert_same_sections("compressed", "whole") < 5);
	assert_true(assert_same_sections("compressed-legacy", "whole") < 5);
	assert_same_sections("s390x-none.o", "s390x-zlib.o");
	assert_same_sections("powerpc-none.o", "powerpc-zlib.o");
	if (access(fixture("compressed-zstd"), F_OK) == 0)
		assert_true(assert_same_sections("compressed-zstd", "whole") < 5);
	else
		print_message("# compressed-zstd: this objcopy can't make it\n");
}

static void split_files_give_their_own_sections(void **state)
{
	(void)state;
	static const char *const files[] = { "split/made/unit.dwo", "split/moved/packed.dwp", "split/both.o", "split/program" };
	for (size_t i = 0; i < 4; i++) {
		struct elf_file f;
		struct debug_sections s;
		struct elf_section dwo = { "", 0, 0, 0, 0, 0, 0, 0, 0 };
		open_fixture(&f, files[i]);
		sections_init(&s, &f.image, GIB);
		assert_int_equal(s.split, i < 3);
		assert_int_equal(f.has_split_info, i < 3);
		assert_int_equal(elf_section_named(&f.image, ".debug_info.dwo", &dwo), i < 3);
		if (i < 3)
			assert_ptr_equal(sections_get(&s, DEBUG_INFO).at, f.image.bytes + dwo.offset);
		assert_int_equal(sections_get(&s, DEBUG_CU_INDEX).at != NULL, i == 1);
		/* A split unit's addresses stay in the program. */
		assert_int_equal(sections_get(&s, DEBUG_ADDR).at != NULL, i == 3);
		sections_finish(&s);
		elf_file_finish(&f);
	}
}

static void of_many_sections_the_one_outside_groups_is_taken(void **state)
{
	(void)state;
	struct elf_file f;
	struct debug_sections s;
	struct elf_section x;
	size_t n = 0, grouped = 0;
	const uint8_t *want = NULL;
	open_fixture(&f, "types.o");
	for (uint32_t i = 0; elf_section(&f.image, i, &x); i++) {
		if (strcmp(x.name, ".debug_info"))
			continue;
		n++;
		if (x.flags & SHF_GROUP)
			grouped++;
		else
			want = f.image.bytes + x.offset;
	}
	assert_true(grouped > 10 && n == grouped + 1);
	sections_init(&s, &f.image, GIB);
	assert_ptr_equal(sections_get(&s, DEBUG_INFO).at, want);
	sections_finish(&s);
	elf_file_finish(&f);
}

/* The file's bytes with the section's header changed. */
static uint8_t *with_lie(const struct elf_file *f, const char *section, uint64_t size, uint32_t type, struct elf_image *ret)
{
	struct elf_section x;
	Elf64_Chdr header;
	uint8_t *bytes = malloc(f->image.n);
	assert_non_null(bytes);
	memcpy(bytes, f->image.bytes, f->image.n);
	assert_true(elf_section_named(&f->image, section, &x));
	assert_true(x.flags & SHF_COMPRESSED);
	memcpy(&header, bytes + x.offset, sizeof(header));
	header.ch_size = size ? size : header.ch_size;
	header.ch_type = type ? type : header.ch_type;
	memcpy(bytes + x.offset, &header, sizeof(header));
	assert_int_equal(elf_image_memory(ret, bytes, f->image.n, "a lie", NULL), 0);
	return bytes;
}

static void assert_lie(const char *file, uint64_t size, uint32_t type, uint64_t limit, bool good)
{
	struct elf_file f;
	struct elf_image e;
	struct debug_sections s;
	open_fixture(&f, file);
	uint8_t *bytes = with_lie(&f, ".debug_info", size, type, &e);
	sections_init(&s, &e, limit);
	assert_int_equal(sections_get(&s, DEBUG_INFO).at != NULL, good);
	assert_int_equal(s.damaged, !good);
	/* The others are as good as ever, but for a limit. */
	assert_int_equal(sections_get(&s, DEBUG_LINE).at != NULL, limit == GIB);
	sections_finish(&s);
	free(bytes);
	elf_file_finish(&f);
}

static void sizes_that_lie_are_refused(void **state)
{
	(void)state;
	static const uint64_t sizes[] = { 1, 100, 1 << 16, 1 << 20, 1 << 30, (uint64_t)1 << 40, UINT64_MAX };
	static const char *const files[] = { "compressed", "compressed-zstd" };
	for (size_t k = 0; k < 2; k++) {
		if (access(fixture(files[k]), F_OK))
			continue;
		assert_lie(files[k], 0, 0, GIB, true);
		for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
			assert_lie(files[k], sizes[i], 0, GIB, false);
		assert_lie(files[k], 0, k == 0 ? 2 : 1, GIB, false);
		assert_lie(files[k], 0, 77, GIB, false);
		assert_lie(files[k], 0, 0, 100, false);
	}
}

static void memory_without_slack_is_copied(void **state)
{
	(void)state;
	struct elf_file f;
	struct elf_image e;
	struct debug_sections s;
	open_fixture(&f, "whole");
	uint8_t *bytes = malloc(f.image.n);
	assert_non_null(bytes);
	memcpy(bytes, f.image.bytes, f.image.n);
	assert_int_equal(elf_image_memory(&e, bytes, f.image.n, "memory", NULL), 0);
	sections_init(&s, &e, 0);
	struct span info = sections_get(&s, DEBUG_INFO);
	assert_true(info.n > 100 && !(info.at >= bytes && info.at < bytes + f.image.n));
	touch_slack(info);
	sections_finish(&s);
	free(bytes);
	elf_file_finish(&f);
}

static void *get_all(void *context)
{
	struct debug_sections *s = context;
	uintptr_t sum = 0;
	for (enum debug_section i = 0; i < DEBUG_SECTIONS; i++)
		sum += (uintptr_t)sections_get(s, i).at * (i + 1);
	return (void *)sum;
}

static void threads_get_the_same_sections(void **state)
{
	(void)state;
	struct elf_file f;
	open_fixture(&f, "compressed");
	for (int round = 0; round < 50; round++) {
		struct debug_sections s;
		pthread_t threads[4];
		void *sums[4];
		sections_init(&s, &f.image, GIB);
		for (int i = 0; i < 4; i++)
			assert_int_equal(pthread_create(&threads[i], NULL, get_all, &s), 0);
		for (int i = 0; i < 4; i++)
			pthread_join(threads[i], &sums[i]);
		assert_non_null(sums[0]);
		for (int i = 1; i < 4; i++)
			assert_ptr_equal(sums[i], sums[0]);
		sections_finish(&s);
	}
	elf_file_finish(&f);
}

static void much_is_unpacked_by_several_threads(void **state)
{
	(void)state;
	struct elf_file f, plain;
	struct debug_sections s, p;
	open_fixture(&f, "large-compressed");
	open_fixture(&plain, "large");
	sections_init(&p, &plain.image, 0);
	sections_unpack(&p, 4);
	for (size_t threads = 1; threads < 4; threads++) {
		sections_init(&s, &f.image, GIB);
		sections_unpack(&s, threads);
		assert_true(s.asked[DEBUG_INFO] && s.asked[DEBUG_STR] && s.asked[DEBUG_LINE]);
		for (enum debug_section i = 0; i < DEBUG_SECTIONS; i++) {
			struct span x = sections_get(&s, i), y = sections_get(&p, i);
			assert_int_equal(x.n, y.n);
			if (x.n)
				assert_memory_equal(x.at, y.at, x.n);
		}
		assert_int_equal(s.limit_bytes, GIB - 9001000);
		sections_finish(&s);
	}
	/* Where the limit is passed, what fits is there. */
	sections_init(&s, &f.image, 7000000);
	sections_unpack(&s, 1);
	assert_null(sections_get(&s, DEBUG_INFO).at);
	assert_int_equal(sections_get(&s, DEBUG_STR).n, 6000000);
	assert_true(s.damaged);
	sections_finish(&s);
	sections_finish(&p);
	elf_file_finish(&f);
	elf_file_finish(&plain);
}

/* --- links --- */

static void links_to_other_files_are_read(void **state)
{
	(void)state;
	struct elf_file f, common;
	uint32_t crc;
	char id[BUILD_ID_TEXT];
	open_fixture(&f, "beside");
	assert_string_equal(elf_file_debuglink(&f, &crc), "beside.debug");
	assert_int_not_equal(crc, 0);
	assert_null(elf_file_altlink(&f, id));
	assert_false(f.has_mini);
	elf_file_finish(&f);
	open_fixture(&f, "alt/one");
	open_fixture(&common, "alt/common");
	assert_string_equal(elf_file_altlink(&f, id), "common");
	assert_int_equal(strlen(id), 40);
	assert_string_equal(id, common.build_id);
	assert_null(elf_file_debuglink(&f, &crc));
	elf_file_finish(&f);
	elf_file_finish(&common);
}

static void a_descriptor_is_as_good_as_a_path(void **state)
{
	(void)state;
	struct elf_file f, g;
	struct error err;
	open_fixture(&f, "whole");
	assert_int_equal(elf_file_open_fd(&g, dup(f.fd), "some/name", &err), 0);
	assert_string_equal(g.path, "some/name");
	assert_string_equal(g.build_id, f.build_id);
	assert_int_equal(g.inode, f.inode);
	int fd = g.fd;
	elf_file_finish(&g);
	assert_int_equal(close(fd), -1);
	elf_file_finish(&f);
	int ends[2];
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(elf_file_open_fd(&g, ends[0], "a pipe", &err), E_IO);
	assert_non_null(strstr(err.text, "not a regular file"));
	elf_file_finish(&g);
	assert_int_equal(close(ends[0]), -1);
	close(ends[1]);
}

static void compressed_symbols_are_unpacked(void **state)
{
	(void)state;
	struct elf_file f, whole;
	struct elf_image mini;
	uint8_t *bytes;
	struct elf_symbol in_mini, in_whole;
	open_fixture(&f, "mini");
	open_fixture(&whole, "whole");
	assert_true(f.has_mini);
	assert_false(f.has_symtab);
	assert_true(elf_file_mini(&f, &mini, &bytes));
	assert_true(elf_find_symbol(&mini, "push", &in_mini));
	assert_true(elf_find_symbol(&whole.image, "push", &in_whole));
	assert_int_equal(in_mini.value, in_whole.value);
	elf_image_close(&mini);
	free(bytes);
	assert_false(elf_file_mini(&whole, &mini, &bytes));
	elf_file_finish(&f);
	elf_file_finish(&whole);
}

/* --- lists of the references --- */

struct range {
	uint64_t start, end;
	char name[200];
};

/* Lines "START SIZE NAME", the size decimal or 0x...; or "START END", both hexadecimal. */
static struct range *read_ranges(const char *file, size_t *ret_n)
{
	FILE *list = fopen(fixture(file), "re");
	size_t n = 0, capacity = 0;
	struct range *ranges = NULL, r;
	char line[8192], size[32];
	assert_non_null(list);
	while (fgets(line, sizeof(line), list)) {
		memset(&r, 0, sizeof(r));
		int got = sscanf(line, "%lx %31s %199s", &r.start, size, r.name);
		assert_true(got >= 2);
		r.end = got == 3 ? r.start + strtoull(size, NULL, 0) : strtoull(size, NULL, 16);
		if (n == capacity)
			ranges = realloc(ranges, (capacity = 2 * capacity + 64) * sizeof(*ranges));
		assert_non_null(ranges);
		if (r.end > r.start)
			ranges[n++] = r;
	}
	fclose(list);
	assert_true(n > 0);
	*ret_n = n;
	return ranges;
}

static int compare_addresses(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return x < y ? -1 : x > y;
}

/* Where ranges begin, are, end, and what is behind them. */
static uint64_t *addresses_of(const struct range *r, size_t n, size_t *ret_n)
{
	uint64_t *a = malloc(n * 4 * sizeof(*a));
	size_t unique = 0;
	assert_non_null(a);
	for (size_t i = 0; i < n; i++) {
		a[4 * i] = r[i].start;
		a[4 * i + 1] = r[i].start + (r[i].end - r[i].start) / 2;
		a[4 * i + 2] = r[i].end - 1;
		a[4 * i + 3] = r[i].end;
	}
	qsort(a, 4 * n, sizeof(*a), compare_addresses);
	for (size_t i = 0; i < 4 * n; i++)
		if (unique == 0 || a[unique - 1] != a[i])
			a[unique++] = a[i];
	*ret_n = unique;
	return a;
}

/* The latest start of those that cover the address; UINT64_MAX: none does. */
static uint64_t innermost(const struct range *r, size_t n, uint64_t address)
{
	uint64_t start = UINT64_MAX;
	for (size_t i = 0; i < n; i++)
		if (address >= r[i].start && address < r[i].end && (start == UINT64_MAX || r[i].start > start))
			start = r[i].start;
	return start;
}

static bool is_named(const struct range *r, size_t n, const struct symtab_hit *hit)
{
	for (size_t i = 0; i < n; i++)
		if (r[i].start == hit->start && !strncmp(r[i].name, hit->name, hit->length) && !r[i].name[hit->length])
			return true;
	return false;
}

/* --- symbols --- */

static void join(const struct elf_file *f, enum symtab_kind kind, const uint64_t *addresses, size_t n, struct symtab_hit *hits)
{
	struct symtab table;
	struct error err;
	symtab_init(&table, &f->image, kind);
	assert_int_equal(symtab_join(&table, addresses, n, false, hits, &err), 0);
	symtab_finish(&table);
}

/* A name for each address a function covers, of a function that covers it; how many have one. */
static size_t assert_symbols(const char *file, const char *list, enum symtab_kind kind)
{
	struct elf_file f;
	size_t n_ranges, n, named = 0;
	open_fixture(&f, file);
	struct range *ranges = read_ranges(list, &n_ranges);
	uint64_t *addresses = addresses_of(ranges, n_ranges, &n);
	struct symtab_hit *hits = calloc(n, sizeof(*hits));
	assert_non_null(hits);
	join(&f, kind, addresses, n, hits);
	for (size_t i = 0; i < n; i++) {
		uint64_t want = innermost(ranges, n_ranges, addresses[i]);
		if (want == UINT64_MAX)
			continue;        /* labels may cover it */
		if (!hits[i].name || hits[i].start != want || hits[i].kind != kind || !is_named(ranges, n_ranges, &hits[i]))
			fail_msg("%s: 0x%lx: %.*s at 0x%lx, not 0x%lx", file, addresses[i], (int)hits[i].length,
			         hits[i].name ? hits[i].name : "", hits[i].start, want);
		named++;
	}
	free(hits);
	free(addresses);
	free(ranges);
	elf_file_finish(&f);
	return named;
}

static void every_function_is_found_by_its_symbol(void **state)
{
	(void)state;
	assert_true(assert_symbols("whole-cc", "whole-cc.functions", SYMTAB_FULL) > 100);
	assert_true(assert_symbols("libc", "libc.functions", SYMTAB_DYNAMIC) > 5000);
	assert_int_equal(assert_symbols("s390x-none.o", "s390x.functions", SYMTAB_FULL), 9);
	assert_int_equal(assert_symbols("powerpc-none.o", "powerpc.functions", SYMTAB_FULL), 9);
}

/* One address at a time gives what all together give; so do a few of a table that is kept. */
static size_t assert_same_names(const char *file, const char *list, enum symtab_kind kind)
{
	struct elf_file f;
	struct symtab kept;
	size_t n_ranges, n;
	open_fixture(&f, file);
	struct range *ranges = read_ranges(list, &n_ranges);
	uint64_t *addresses = addresses_of(ranges, n_ranges, &n);
	struct symtab_hit *hits = calloc(n, sizeof(*hits));
	assert_non_null(hits);
	join(&f, kind, addresses, n, hits);
	symtab_init(&kept, &f.image, kind);
	for (size_t i = 0; i + 7 < n; i += 37) {
		struct symtab_hit one = { NULL, 0, 0, SYMTAB_FULL }, few[7] = { { NULL, 0, 0, SYMTAB_FULL } };
		join(&f, kind, &addresses[i], 1, &one);
		assert_ptr_equal(one.name, hits[i].name);
		assert_int_equal(one.start, hits[i].start);
		size_t n_few = 1 + i % 7;
		assert_int_equal(symtab_join(&kept, &addresses[i], n_few, true, few, NULL), 0);
		for (size_t k = 0; k < n_few; k++) {
			assert_ptr_equal(few[k].name, hits[i + k].name);
			assert_int_equal(few[k].start, hits[i + k].start);
		}
	}
	assert_true(kept.is_sorted);
	symtab_finish(&kept);
	free(hits);
	free(addresses);
	free(ranges);
	elf_file_finish(&f);
	return n;
}

static void few_addresses_have_the_same_names(void **state)
{
	(void)state;
	assert_true(assert_same_names("libc", "libc.functions", SYMTAB_DYNAMIC) > 5000);
	assert_true(assert_same_names("whole-cc", "whole-cc.functions", SYMTAB_FULL) > 100);
}

static void assert_label(const struct elf_file *f, uint64_t address, const char *want)
{
	struct symtab_hit hit = { NULL, 0, 0, SYMTAB_FULL };
	join(f, SYMTAB_FULL, &address, 1, &hit);
	if (!hit.name || !want)
		assert_ptr_equal(hit.name, want);
	else if (strlen(want) != hit.length || memcmp(want, hit.name, hit.length))
		fail_msg("0x%lx: %s, not %s", address, hit.name, want);
}

static void labels_follow_the_rules(void **state)
{
	(void)state;
	struct elf_file f;
	struct elf_symbol outside, unsized, start;
	open_fixture(&f, "labels");
	assert_true(elf_find_symbol(&f.image, "outside", &outside) && elf_find_symbol(&f.image, "unsized", &unsized) &&
	            elf_find_symbol(&f.image, "_start", &start));
	assert_label(&f, start.value + 15, "_start");
	assert_label(&f, start.value + 16, NULL);
	assert_label(&f, outside.value + 7, "outside");
	assert_label(&f, outside.value + 8, "inside");
	assert_label(&f, outside.value + 16, "outside");
	assert_label(&f, unsized.value + 15, "unsized");
	assert_label(&f, unsized.value + 16, "bare_label");
	assert_label(&f, unsized.value + 32, NULL);
	assert_label(&f, unsized.value + 48, "versioned");
	assert_label(&f, unsized.value + 79, "last");
	assert_label(&f, unsized.value + 80, NULL);
	assert_label(&f, 0, NULL);
	assert_label(&f, UINT64_MAX, NULL);
	elf_file_finish(&f);
}

/* --- unwind entries --- */

static void assert_starts(const struct elf_image *e, const struct range *ranges, size_t n_ranges, size_t batch)
{
	size_t n;
	uint64_t *addresses = addresses_of(ranges, n_ranges, &n);
	uint64_t *starts = malloc(n * sizeof(*starts));
	assert_non_null(starts);
	for (size_t i = 0; i < n; i += batch)
		eh_frame_starts(e, addresses + i, n - i < batch ? n - i : batch, starts + i);
	for (size_t i = 0; i < n; i++) {
		uint64_t want = innermost(ranges, n_ranges, addresses[i]);
		if (starts[i] != want)
			fail_msg("0x%lx: 0x%lx, not 0x%lx", addresses[i], starts[i], want);
	}
	free(starts);
	free(addresses);
}

static void functions_begin_where_readelf_says(void **state)
{
	(void)state;
	static const char *const files[] = { "whole-cc", "libc" };
	for (size_t i = 0; i < 2; i++) {
		struct elf_file f;
		struct elf_image bare;
		size_t n;
		char list[64];
		snprintf(list, sizeof(list), "%s.frames", files[i]);
		open_fixture(&f, files[i]);
		struct range *ranges = read_ranges(list, &n);
		assert_true(n > 20);
		/* Few at a time use the sorted table; all together have the entries walked. */
		assert_starts(&f.image, ranges, n, 5);
		assert_starts(&f.image, ranges, n, SIZE_MAX / 2);
		/* Without section headers, the program header leads there. */
		uint8_t *bytes = malloc(f.image.n);
		assert_non_null(bytes);
		memcpy(bytes, f.image.bytes, f.image.n);
		memset(bytes + offsetof(Elf64_Ehdr, e_shoff), 0, sizeof(Elf64_Off));
		assert_int_equal(elf_image_memory(&bare, bytes, f.image.n, "bare", NULL), 0);
		assert_int_equal(bare.n_sections, 0);
		assert_starts(&bare, ranges, n, 5);
		assert_starts(&bare, ranges, n, SIZE_MAX / 2);
		free(bytes);
		free(ranges);
		elf_file_finish(&f);
	}
}

/*
 * In an object that isn't linked, a range begins where the entry's own field lies (nobody has added where the code is) and is
 * as long as the function.
 */
static void the_other_byte_order_has_the_same_entries(void **state)
{
	(void)state;
	struct elf_file f;
	struct elf_image e;
	size_t n_ranges, starts_found = 0;
	uint64_t addresses[2000], starts[2000], covered = 0, want = 0;
	open_fixture(&f, "s390x-none.o");
	struct range *ranges = read_ranges("s390x.functions", &n_ranges);
	uint8_t *bytes = malloc(f.image.n);
	assert_non_null(bytes);
	memcpy(bytes, f.image.bytes, f.image.n);
	bytes[offsetof(Elf64_Ehdr, e_type) + 1] = ET_EXEC;
	assert_int_equal(elf_image_memory(&e, bytes, f.image.n, "object", NULL), 0);
	for (uint64_t i = 0; i < 2000; i++)
		addresses[i] = i;
	eh_frame_starts(&e, addresses, 2000, starts);
	for (size_t i = 0; i < 2000; i++) {
		starts_found += starts[i] == i;
		covered = starts[i] == EH_FRAME_NONE ? covered : i;
	}
	for (size_t i = 0; i < n_ranges; i++)
		want = ranges[i].end - ranges[i].start > want ? ranges[i].end - ranges[i].start : want;
	assert_int_equal(starts_found, n_ranges);
	assert_true(covered >= want);
	eh_frame_starts(&f.image, addresses, 2000, starts);
	for (size_t i = 0; i < 2000; i++)
		assert_int_equal(starts[i], EH_FRAME_NONE);
	free(bytes);
	free(ranges);
	elf_file_finish(&f);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(compressed_sections_are_the_same_as_plain_ones),
		cmocka_unit_test(split_files_give_their_own_sections),
		cmocka_unit_test(of_many_sections_the_one_outside_groups_is_taken),
		cmocka_unit_test(sizes_that_lie_are_refused),
		cmocka_unit_test(memory_without_slack_is_copied),
		cmocka_unit_test(threads_get_the_same_sections),
		cmocka_unit_test(much_is_unpacked_by_several_threads),
		cmocka_unit_test(links_to_other_files_are_read),
		cmocka_unit_test(a_descriptor_is_as_good_as_a_path),
		cmocka_unit_test(compressed_symbols_are_unpacked),
		cmocka_unit_test(every_function_is_found_by_its_symbol),
		cmocka_unit_test(few_addresses_have_the_same_names),
		cmocka_unit_test(labels_follow_the_rules),
		cmocka_unit_test(functions_begin_where_readelf_says),
		cmocka_unit_test(the_other_byte_order_has_the_same_entries),
	};
	char real[4096];
	if (argc != 2 || !realpath(argv[1], real))
		return 2;
	folder = real;
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
