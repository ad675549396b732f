/*
 * Names, debug files, whole profiles and build ids, on the binaries that programs/fixtures.sh
 * builds in the folder given as argument.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "symbol/elf_file.h"
#include "symbol/symbol.h"

static const char *folder;

static const char *fixture(const char *name)
{
	static char paths[64][4096];     /* the last 64 stay valid */
	static int next;
	char *path = paths[next++ % 64];
	snprintf(path, sizeof(paths[0]), "%s/%s", folder, name);
	return path;
}

/* File offset of a symbol in a fixture. */
static uint64_t offset_of(const char *file, const char *symbol)
{
	struct elf_file f;
	uint64_t found = 0;
	assert_int_equal(elf_file_open(&f, fixture(file), NULL), 0);
	struct elf_symbols symbols;
	struct elf_symbol y;
	for (int dynamic = 0; dynamic < 2; dynamic++)
		if (elf_symbols_begin(&symbols, &f.image, dynamic))
			while (elf_symbols_next(&symbols, &y))
				if (!strcmp(y.name, symbol))
					assert_true(elf_file_offset(&f, y.value, &found));
	elf_file_finish(&f);
	assert_int_not_equal(found, 0);
	return found;
}

/* Every third byte of a file's executable segments. */
static uint64_t *code_offsets(const char *file, size_t *ret_n)
{
	struct elf_file f;
	size_t n = 0, capacity = 0;
	uint64_t *offsets = NULL;
	assert_int_equal(elf_file_open(&f, fixture(file), NULL), 0);
	for (size_t i = 0; i < f.n_segments; i++)
		for (uint64_t at = 0; f.segments[i].executable && at < f.segments[i].file_bytes; at += 3)
			*ARRAY_PUSH(offsets, n, capacity, 1 << 20) = f.segments[i].offset + at;
	elf_file_finish(&f);
	*ret_n = n;
	return offsets;
}

/* --- symbol tables --- */

static void assert_name(uint64_t offset, const char *want)
{
	struct symbol_answers a;
	struct symbol_frame frames[SYMBOL_FRAMES_MAX];
	struct error err;
	assert_int_equal(symbol_resolve(fixture("labels"), "", &offset, 1, SYMBOL_TABLE, NULL, &a, &err), 0);
	assert_int_equal(symbol_answer(&a, 0, frames), want != NULL);
	if (want)
		assert_string_equal(frames[0].function, want);
	symbol_answers_finish(&a);
}

static void a_symbol_names_only_what_its_size_covers(void **state)
{
	(void)state;
	uint64_t start = offset_of("labels", "_start");
	assert_name(start, "_start");
	assert_name(start + 15, "_start");
	assert_name(start + 16, NULL);
	assert_name(start + 31, NULL);
}

static void global_and_plain_names_are_preferred(void **state)
{
	(void)state;
	assert_name(offset_of("labels", "plain") + 3, "exported_plain");
}

static void the_innermost_symbol_wins_and_the_outer_returns_behind_it(void **state)
{
	(void)state;
	uint64_t outside = offset_of("labels", "outside");
	assert_name(outside + 7, "outside");
	assert_name(outside + 8, "inside");
	assert_name(outside + 15, "inside");
	assert_name(outside + 16, "outside");
	assert_name(outside + 31, "outside");
}

static void symbols_without_size_reach_to_the_next_symbol(void **state)
{
	(void)state;
	uint64_t unsized = offset_of("labels", "unsized");
	assert_name(unsized, "unsized");
	assert_name(unsized + 15, "unsized");
	assert_name(unsized + 16, "bare_label");
	assert_name(unsized + 31, "bare_label");
	assert_name(unsized + 32, NULL);         /* local_label: not a function */
	assert_name(unsized + 47, NULL);
	assert_name(unsized + 48, "versioned");
	assert_name(unsized + 64, "last");
	assert_name(unsized + 79, "last");
	assert_name(unsized + 80, NULL);         /* another section */
}

static void unsorted_and_repeated_offsets_keep_their_order(void **state)
{
	(void)state;
	uint64_t start = offset_of("labels", "_start"), inside = offset_of("labels", "inside");
	uint64_t asked[] = { inside, start, UINT64_MAX, inside, start + 20, start, 0 };
	const char *want[] = { "inside", "_start", NULL, "inside", NULL, "_start", NULL };
	struct symbol_answers a;
	struct symbol_frame frames[SYMBOL_FRAMES_MAX];
	assert_int_equal(symbol_resolve(fixture("labels"), "", asked, 7, SYMBOL_FULL, NULL, &a, NULL), 0);
	for (size_t i = 0; i < 7; i++) {
		assert_int_equal(symbol_answer(&a, i, frames), want[i] != NULL);
		if (want[i])
			assert_string_equal(frames[0].function, want[i]);
	}
	assert_int_equal(symbol_answer(&a, 7, frames), 0);
	symbol_answers_finish(&a);
}

/* --- debug information in other places --- */

static bool same_text(const char *a, const char *b)
{
	return a == b || (a && b && !strcmp(a, b));
}

/* Answers of two files to the same offsets; the number of frames that have a line. */
static size_t assert_same_answers(const char *one, const char *const *search_one, const char *two)
{
	size_t n, lines = 0;
	uint64_t *offsets = code_offsets(two, &n);
	struct symbol_options o = { .search = search_one };
	struct symbol_answers a, b;
	struct symbol_frame xs[SYMBOL_FRAMES_MAX], ys[SYMBOL_FRAMES_MAX];
	struct error err;
	assert_int_equal(symbol_resolve(fixture(one), "", offsets, n, SYMBOL_FULL, &o, &a, &err), 0);
	assert_int_equal(symbol_resolve(fixture(two), "", offsets, n, SYMBOL_FULL, NULL, &b, &err), 0);
	for (size_t i = 0; i < n; i++) {
		size_t n_frames = symbol_answer(&a, i, xs);
		assert_int_equal(symbol_answer(&b, i, ys), n_frames);
		for (size_t k = 0; k < n_frames; k++) {
			const struct symbol_frame *x = &xs[k], *y = &ys[k];
			assert_true(same_text(x->function, y->function));
			assert_true(same_text(x->system_name, y->system_name));
			assert_true(same_text(x->file, y->file));
			assert_int_equal(x->line, y->line);
			assert_int_equal(x->column, y->column);
			assert_int_equal(x->start_line, y->start_line);
			lines += x->line != 0;
		}
	}
	symbol_answers_finish(&a);
	symbol_answers_finish(&b);
	free(offsets);
	return lines;
}

static void debug_files_are_found_where_they_may_be(void **state)
{
	(void)state;
	const char *ids[] = { fixture("ids"), NULL };
	assert_true(assert_same_answers("compressed", NULL, "whole") > 200);
	assert_true(assert_same_answers("beside", NULL, "whole") > 200);
	assert_true(assert_same_answers("below/below", NULL, "whole") > 200);
	assert_true(assert_same_answers("bare/program", ids, "whole") > 200);
	assert_true(assert_same_answers("no-id-beside", NULL, "no-id") > 200);
}

static void compressed_symbols_of_a_stripped_binary_are_read(void **state)
{
	(void)state;
	uint64_t at = offset_of("whole", "push") + 1;
	struct symbol_answers a;
	struct symbol_frame frames[SYMBOL_FRAMES_MAX];
	assert_int_equal(symbol_resolve(fixture("mini"), "", &at, 1, SYMBOL_TABLE, NULL, &a, NULL), 0);
	assert_int_equal(symbol_answer(&a, 0, frames), 1);
	assert_string_equal(frames[0].function, "push");
	symbol_answers_finish(&a);
	assert_int_equal(symbol_resolve(fixture("bare/program"), "", &at, 1, SYMBOL_TABLE, NULL, &a, NULL), 0);
	assert_int_equal(symbol_answer(&a, 0, frames), 1);
	assert_true(frames[0].is_start);
	assert_memory_equal(frames[0].function, "fn_", 3);
	symbol_answers_finish(&a);
}

/* How many frames of all answers have a line; *ret_frames: how many there are. */
static size_t lines_of(const struct symbol_answers *a, size_t *ret_frames)
{
	struct symbol_frame frames[SYMBOL_FRAMES_MAX];
	size_t lines = 0;
	*ret_frames = 0;
	for (size_t i = 0; i < a->n; i++) {
		size_t n = symbol_answer(a, i, frames);
		for (size_t k = 0; k < n; k++)
			lines += frames[k].line != 0;
		*ret_frames += n;
	}
	return lines;
}

static size_t count_lines(const char *file)
{
	size_t n, frames;
	uint64_t *offsets = code_offsets(file, &n);
	struct symbol_answers a;
	assert_int_equal(symbol_resolve(fixture(file), "", offsets, n, SYMBOL_FULL, NULL, &a, NULL), 0);
	size_t lines = lines_of(&a, &frames);
	symbol_answers_finish(&a);
	free(offsets);
	return lines;
}

static void debug_files_of_another_build_are_not_used(void **state)
{
	(void)state;
	assert_int_equal(count_lines("mismatched"), 0);   /* another build id */
	assert_int_equal(count_lines("no-id-wrong"), 0);  /* another checksum */
	assert_int_equal(count_lines("bare/program"), 0); /* nobody said where */
}

/* Frames with a line of the stripped program, whose debug file is found only with a search directory. */
static size_t bare_lines(const char *search, bool no_cache, size_t *ret_frames)
{
	const char *folders[] = { search, NULL };
	struct symbol_options o = { .search = search ? folders : NULL, .no_cache = no_cache };
	struct symbol_answers a;
	size_t n;
	uint64_t *offsets = code_offsets("bare/program", &n);
	assert_int_equal(symbol_resolve(fixture("bare/program"), "", offsets, n, SYMBOL_FULL, &o, &a, NULL), 0);
	size_t lines = lines_of(&a, ret_frames);
	symbol_answers_finish(&a);
	free(offsets);
	return lines;
}

/* Bytes of all files of the cache: it grows when something was asked that it did not know. */
static long cached_bytes(void)
{
	char command[4200], text[64] = "";
	snprintf(command, sizeof(command), "cat '%s'/heapgauge/*.names | wc -c", fixture("cache"));
	FILE *f = popen(command, "re");
	assert_non_null(f);
	assert_non_null(fgets(text, sizeof(text), f));
	pclose(f);
	return strtol(text, NULL, 10);
}

static void answers_are_kept_and_get_better(void **state)
{
	(void)state;
	size_t frames, poor_frames;
	unsetenv("HEAPGAUGE_CACHE");
	assert_int_equal(mkdir(fixture("cache"), 0700), 0);
	setenv("XDG_CACHE_HOME", fixture("cache"), 1);
	assert_int_equal(bare_lines(NULL, false, &poor_frames), 0);
	assert_true(poor_frames > 0);
	long poor = cached_bytes();
	assert_true(poor > 100);
	/* As poor as before, and nobody has to be asked. */
	assert_int_equal(bare_lines(NULL, false, &frames), 0);
	assert_int_equal(frames, poor_frames);
	assert_int_equal(cached_bytes(), poor);
	/* Its debug file has appeared: asked again. */
	assert_true(bare_lines(fixture("ids"), false, &frames) > 200);
	long rich = cached_bytes();
	assert_true(rich > poor);
	/* It is gone again: what it said stays known. */
	size_t rich_frames = frames;
	assert_true(bare_lines(NULL, false, &frames) > 200);
	assert_int_equal(frames, rich_frames);
	assert_true(bare_lines(fixture("ids"), false, &frames) > 200);
	assert_int_equal(cached_bytes(), rich);
	/* Others with that build id are helped, too; and nobody who doesn't want it. */
	assert_int_equal(bare_lines(NULL, true, &frames), 0);
	assert_int_equal(frames, poor_frames);
	setenv("HEAPGAUGE_CACHE", "off", 1);
	assert_int_equal(bare_lines(NULL, false, &frames), 0);
	assert_int_equal(cached_bytes(), rich);
}

static void inlined_calls_come_innermost_first(void **state)
{
	(void)state;
	uint64_t start = offset_of("whole", "descend");
	struct symbol_answers a;
	struct symbol_frame f[SYMBOL_FRAMES_MAX];
	size_t chains = 0;
	for (uint64_t at = start; at < start + 200; at++) {
		assert_int_equal(symbol_resolve(fixture("whole"), "", &at, 1, SYMBOL_FULL, NULL, &a, NULL), 0);
		if (symbol_answer(&a, 0, f) == 3 && !strcmp(f[2].function, "descend")) {
			assert_string_equal(f[0].function, "twice");
			assert_string_equal(f[1].function, "fourfold");
			assert_int_equal(f[1].line, 18);
			assert_int_equal(f[2].line, 56);
			assert_int_equal(f[0].start_line, 11);
			assert_int_equal(f[2].start_line, 46);
			chains++;
		}
		symbol_answers_finish(&a);
	}
	assert_true(chains > 5);
}

/* --- refusals --- */

static void wrong_files_are_refused_with_a_reason(void **state)
{
	(void)state;
	struct symbol_answers a;
	struct error err;
	uint64_t at = 0x1000;
	int rc = symbol_resolve(fixture("whole"), "0123456789abcdef", &at, 1, SYMBOL_FULL, NULL, &a, &err);
	assert_int_equal(rc, E_FORMAT);
	assert_non_null(strstr(err.text, "is not the file the profile was taken from"));
	assert_non_null(strstr(err.text, "0123456789abcdef"));
	assert_int_equal(symbol_resolve(fixture("nowhere"), "", &at, 1, SYMBOL_FULL, NULL, &a, &err), E_IO);
	assert_non_null(strstr(err.text, "No such file"));
	assert_int_equal(symbol_resolve(folder, "", &at, 1, SYMBOL_FULL, NULL, &a, &err), E_IO);
	assert_int_equal(symbol_resolve("/dev/null", "", &at, 1, SYMBOL_FULL, NULL, &a, &err), E_IO);
	assert_int_equal(symbol_resolve("/proc/self/cmdline", "", &at, 1, SYMBOL_FULL, NULL, &a, &err), E_FORMAT);
	unlink(fixture("fifo"));
	assert_int_equal(mkfifo(fixture("fifo"), 0600), 0);
	assert_int_equal(symbol_resolve(fixture("fifo"), "", &at, 1, SYMBOL_FULL, NULL, &a, &err), E_IO);
}

static double seconds(void)
{
	struct timespec t;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void absurd_debug_information_costs_little(void **state)
{
	(void)state;
	uint64_t start = offset_of("hostile", "_start"), offsets[4000];
	struct symbol_answers a;
	struct symbol_frame f[SYMBOL_FRAMES_MAX];
	for (size_t i = 0; i < 4000; i++)
		offsets[i] = start + i;
	double before = seconds();
	assert_int_equal(symbol_resolve(fixture("hostile"), "", offsets, 4000, SYMBOL_FULL, NULL, &a, NULL), 0);
	assert_true(seconds() - before < 20);
	for (size_t i = 0; i < 4000; i++) {
		size_t n = symbol_answer(&a, i, f);
		assert_true(n >= 1 && n <= 512);
		/* Nothing in the debug information has a name; the symbol table does. */
		assert_true(n == 512 || !strcmp(f[n - 1].function, "_start"));
	}
	symbol_answers_finish(&a);
}

/* --- profiles --- */

static uint32_t add_mapping(struct profile *p, const char *path, uint64_t start, uint64_t bytes,
                            uint64_t offset)
{
	struct mapping m = { .start = start, .limit = start + bytes, .offset = offset,
		             .file = profile_cstring(p, path), .executable = true };
	return profile_add_mapping(p, &m);
}

/* The executable segment of a fixture, mapped at start. */
static uint32_t add_binary(struct profile *p, const char *path, uint64_t start)
{
	struct elf_file f;
	uint32_t mapping = PROFILE_NONE;
	assert_int_equal(elf_file_open(&f, path, NULL), 0);
	for (size_t i = 0; i < f.n_segments; i++) {
		const struct loaded_segment *s = &f.segments[i];
		uint64_t first = s->offset & ~(uint64_t)4095;
		if (s->executable)
			mapping = add_mapping(p, path, start, (s->offset + s->file_bytes - first + 4095) & ~(uint64_t)4095,
			                      first);
	}
	elf_file_finish(&f);
	return mapping;
}

static uint32_t add_at(struct profile *p, uint32_t mapping, uint64_t file_offset)
{
	const struct mapping *m = &p->mappings[mapping];
	return profile_intern_location(p, mapping, m->start + file_offset - m->offset);
}

/* The name of a location's n-th line. */
static const char *name_of(const struct profile *p, uint32_t location, uint32_t n)
{
	const struct location *l = &p->locations[location];
	assert_true(n < l->n_lines);
	return profile_text(p, p->functions[p->lines[l->first_line + n].function].name);
}

static void every_location_gets_a_name(void **state)
{
	(void)state;
	struct profile *p = profile_new(0);
	struct buf warnings;
	struct error err;
	buf_init(&warnings, 1 << 16);
	uint32_t whole = add_binary(p, fixture("whole"), 0x555555554000);
	uint32_t first = add_binary(p, fixture("libfirst.so"), 0x7f0000000000);
	uint32_t second = add_binary(p, fixture("libsecond.so"), 0x7f0000100000);
	uint32_t vdso = add_mapping(p, "[vdso]", 0x7ffff7fc1000, 0x2000, 0);
	uint32_t anonymous = add_mapping(p, "", 0x7e0000000000, 0x1000, 0);
	uint32_t memfd = add_mapping(p, "/memfd:jit", 0x7e0000100000, 0x1000, 0);
	uint64_t get = offset_of("libfirst.so", "first_get");
	assert_int_equal(get, offset_of("libsecond.so", "second_get"));
	uint32_t locations[] = {
		add_at(p, whole, offset_of("whole", "descend") + 4),
		add_at(p, first, get + 1),
		add_at(p, second, get + 1),
		add_at(p, vdso, 0x5f0),
		add_at(p, anonymous, 0x10),
		add_at(p, memfd, 0x20),
		profile_intern_location(p, PROFILE_NONE, 0xdead),
		add_at(p, first, p->mappings[first].offset + 0x3),     /* .init: no, before: code without symbol */
	};
	assert_int_equal(symbol_profile(p, NULL, &warnings, &err), 0);
	assert_int_equal(warnings.len, 0);
	for (size_t i = 0; i < p->n_locations; i++)
		assert_true(p->locations[i].n_lines > 0);
	assert_string_equal(name_of(p, locations[0], p->locations[locations[0]].n_lines - 1), "descend");
	assert_string_equal(name_of(p, locations[1], p->locations[locations[1]].n_lines - 1), "first_get");
	assert_string_equal(name_of(p, locations[2], p->locations[locations[2]].n_lines - 1), "second_get");
	assert_string_equal(name_of(p, locations[3], 0), "[vdso]!0x5f0");
	assert_string_equal(name_of(p, locations[4], 0), "0x7e0000000010");
	assert_string_equal(name_of(p, locations[5], 0), "memfd:jit!0x20");
	assert_string_equal(name_of(p, locations[6], 0), "0xdead");
	assert_true(p->mappings[whole].has_functions && p->mappings[whole].has_line_numbers);
	assert_true(p->mappings[whole].has_filenames);
	assert_true(p->mappings[vdso].has_functions && !p->mappings[vdso].has_line_numbers);
	profile_free(p);
	buf_finish(&warnings);
}

static void lines_that_are_there_stay(void **state)
{
	(void)state;
	struct profile *p = profile_new(0);
	uint32_t whole = add_binary(p, fixture("whole"), 0x555555554000);
	struct function f = { .name = profile_cstring(p, "already") };
	struct line line = { profile_intern_function(p, &f), 0, 7 };
	uint64_t address = p->mappings[whole].start + offset_of("whole", "descend") - p->mappings[whole].offset;
	uint32_t location = profile_add_location(p, whole, address, false, &line, 1);
	assert_int_equal(symbol_profile(p, NULL, NULL, NULL), 0);
	assert_int_equal(p->locations[location].n_lines, 1);
	assert_string_equal(name_of(p, location, 0), "already");
	profile_free(p);
}

static void unnamed_code_is_shown_by_the_files_own_address(void **state)
{
	(void)state;
	struct profile *p = profile_new(0);
	uint64_t gap = offset_of("labels", "_start") + 20, address = 0;
	struct elf_file f;
	char want[64];
	assert_int_equal(elf_file_open(&f, fixture("labels"), NULL), 0);
	assert_true(elf_file_address(&f, gap, &address));
	elf_file_finish(&f);
	snprintf(want, sizeof(want), "labels!0x%llx", (unsigned long long)address);
	assert_int_not_equal(address, gap);
	uint32_t mapping = add_binary(p, fixture("labels"), 0x401000);
	uint32_t location = add_at(p, mapping, gap);
	assert_int_equal(symbol_profile(p, NULL, NULL, NULL), 0);
	assert_string_equal(name_of(p, location, 0), want);
	profile_free(p);
}

static size_t count_lines_of(const struct buf *b)
{
	size_t n = 0;
	for (size_t i = 0; i < b->len; i++)
		n += b->data[i] == '\n';
	return n;
}

/* Symbolizes one location of fixture path under the given claims; returns its name (copied). */
static char *try_profile(const char *path, const char *build_id, uint64_t extra_pages, bool deleted,
                         const struct symbol_options *o, struct buf *warnings, int *ret_rc,
                         struct error *err)
{
	struct profile *p = profile_new(0);
	struct error unused;
	uint32_t mapping = add_binary(p, fixture("whole"), 0x555555554000);
	struct mapping *m = &p->mappings[mapping];
	m->file = profile_cstring(p, path);
	m->build_id = profile_cstring(p, build_id);
	m->deleted = deleted;
	m->limit += extra_pages * 4096;
	uint32_t location = add_at(p, mapping, offset_of("whole", "descend") + 4);
	*ret_rc = symbol_profile(p, o, warnings, err ? err : &unused);
	char *name = *ret_rc ? NULL : strdup(name_of(p, location, p->locations[location].n_lines - 1));
	profile_free(p);
	return name;
}

static void assert_profile(const char *path, const char *build_id, uint64_t extra_pages, bool deleted,
                           const struct symbol_options *o, const char *want_name,
                           const char *want_warning)
{
	struct buf warnings;
	int rc;
	buf_init(&warnings, 1 << 16);
	char *name = try_profile(path, build_id, extra_pages, deleted, o, &warnings, &rc, NULL);
	assert_int_equal(rc, 0);
	if (strncmp(name, want_name, strlen(want_name)))
		fail_msg("%s is named %s, not %s", path, name, want_name);
	assert_int_equal(count_lines_of(&warnings), want_warning != NULL);
	if (want_warning && !strstr(warnings.data, want_warning))
		fail_msg("warning: %s", warnings.data);
	free(name);
	buf_finish(&warnings);
}

static void replaced_and_missing_binaries_are_never_used(void **state)
{
	(void)state;
	char id[129];
	struct elf_file f;
	assert_int_equal(elf_file_open(&f, fixture("whole"), NULL), 0);
	snprintf(id, sizeof(id), "%s", f.build_id);
	elf_file_finish(&f);
	const char *whole = fixture("whole");
	assert_profile(whole, id, 0, false, NULL, "descend", NULL);
	assert_profile(whole, "", 0, false, NULL, "descend", NULL);
	assert_profile(whole, "00112233", 0, false, NULL, "whole!0x", "was replaced since the profile was taken (build id");
	assert_profile(whole, "", 100, false, NULL, "whole!0x", "was replaced since the profile was taken (no code at");
	assert_profile(whole, "", 0, true, NULL, "whole!0x", "was deleted or replaced while");
	assert_profile(whole, id, 0, true, NULL, "descend", NULL);
	assert_profile(fixture("none"), "", 0, false, NULL, "none!0x", "is not on this machine");
	assert_profile(folder, "", 0, false, NULL, strrchr(folder, '/') + 1, "not a regular file");
	/* The old file, where the user says. */
	const char *search[] = { folder, NULL };
	struct symbol_options o = { .depth = SYMBOL_FULL, .search = search };
	assert_profile("/gone/whole", id, 0, false, &o, "descend", NULL);
	assert_profile("/gone/other", id, 0, false, &o, "other!0x", "is not on this machine");
	search[0] = whole;
	assert_profile("/gone/anything", id, 0, false, &o, "descend", NULL);
}

static void a_reader_that_takes_too_long_is_a_warning(void **state)
{
	(void)state;
	struct symbol_options o = { .depth = SYMBOL_FULL, .timeout_ms = 1 };
	struct profile *p = profile_new(0);
	struct buf warnings;
	struct error err;
	buf_init(&warnings, 1 << 16);
	uint32_t hostile = add_binary(p, fixture("hostile"), 0x555555554000);
	uint64_t start = offset_of("hostile", "_start");
	for (uint64_t i = 0; i < 4000; i++)
		add_at(p, hostile, start + i);
	assert_int_equal(symbol_profile(p, &o, &warnings, &err), 0);
	assert_int_equal(count_lines_of(&warnings), 1);
	assert_non_null(strstr(warnings.data, "hostile: its reader was stopped after 1 s; its frames have names of symbols only: no lines"));
	assert_string_equal(name_of(p, 0, 0), "_start");
	uint64_t offsets[] = { start };
	struct symbol_answers a;
	assert_int_equal(symbol_resolve(fixture("hostile"), "", offsets, 1, SYMBOL_FULL, &o, &a, &err), 0);
	assert_int_equal(a.poor.code, E_LIMIT);
	assert_non_null(strstr(a.poor.text, "hostile: its reader was stopped"));
	static struct symbol_frame frames[SYMBOL_FRAMES_MAX];
	assert_int_equal(symbol_answer(&a, 0, frames), 1);
	assert_string_equal(frames->function, "_start");
	symbol_answers_finish(&a);
	profile_free(p);
	buf_finish(&warnings);
}

static void many_missing_files_are_counted(void **state)
{
	(void)state;
	struct profile *p = profile_new(0);
	struct buf warnings;
	buf_init(&warnings, 1 << 16);
	for (int i = 0; i < 10; i++) {
		char path[64];
		snprintf(path, sizeof(path), "/nowhere/lib%d.so", i);
		add_at(p, add_mapping(p, path, 0x10000u * (i + 1), 0x1000, 0), 0x10);
	}
	assert_int_equal(symbol_profile(p, NULL, &warnings, NULL), 0);
	assert_int_equal(count_lines_of(&warnings), 1);
	assert_non_null(strstr(warnings.data, "10 files of the profile are not on this machine"));
	profile_free(p);
	buf_finish(&warnings);
}

static void a_path_in_a_warning_cannot_act_on_the_terminal(void **state)
{
	(void)state;
	assert_profile("/nowhere/\033[31mred", "", 0, false, NULL, "\033[31mred!0x", "/nowhere/\\x1b[31mred");
}

static void a_binary_that_was_asked_for_must_be_right(void **state)
{
	(void)state;
	struct symbol_options o = { .depth = SYMBOL_FULL, .binary = fixture("whole") };
	struct error err;
	int rc;
	assert_profile("/gone/server", "", 0, false, &o, "descend", NULL);
	assert_profile(fixture("other"), "", 0, false, &o, "descend", NULL);
	assert_null(try_profile("/gone/server", "00112233", 0, false, &o, NULL, &rc, &err));
	assert_int_equal(rc, E_FORMAT);
	assert_non_null(strstr(err.text, "is not the program the profile was taken from"));
	assert_null(try_profile("/gone/server", "", 100, false, &o, NULL, &rc, &err));
	assert_int_equal(rc, E_FORMAT);
	o.binary = fixture("none");
	assert_null(try_profile("/gone/server", "", 0, false, &o, NULL, &rc, &err));
	assert_int_equal(rc, E_IO);
	o.binary = "/proc/self/cmdline";
	assert_null(try_profile("/gone/server", "", 0, false, &o, NULL, &rc, &err));
	assert_int_equal(rc, E_FORMAT);
}

static void a_fixed_program_is_named_without_mappings(void **state)
{
	(void)state;
	struct symbol_options o = { .depth = SYMBOL_FULL, .binary = fixture("fixed") };
	struct profile *p = profile_new(0);
	struct elf_file f;
	uint64_t address = 0;
	assert_int_equal(elf_file_open(&f, fixture("fixed"), NULL), 0);
	assert_true(elf_file_address(&f, offset_of("fixed", "descend"), &address));
	elf_file_finish(&f);
	uint32_t location = profile_intern_location(p, PROFILE_NONE, address + 4);
	assert_int_equal(symbol_profile(p, &o, NULL, NULL), 0);
	assert_string_equal(name_of(p, location, p->locations[location].n_lines - 1), "descend");
	profile_free(p);
}

/* One location of a mapping from 0 to limit, at the file's own address; its name, copied. */
static char *name_in_file_space(const char *path, const char *build_id, uint64_t limit, uint64_t address,
                                const struct symbol_options *o, struct buf *warnings)
{
	struct profile *p = profile_new(0);
	struct mapping m = { .limit = limit, .file = profile_cstring(p, path),
		             .build_id = profile_cstring(p, build_id), .executable = true };
	uint32_t location = profile_intern_location(p, profile_add_mapping(p, &m), address);
	struct error err;
	assert_int_equal(symbol_build_ids(p, o, warnings, &err), 0);
	assert_string_equal(profile_text(p, p->mappings[0].build_id), build_id);
	assert_int_equal(symbol_profile(p, o, warnings, &err), 0);
	char *name = strdup(name_of(p, location, p->locations[location].n_lines - 1));
	profile_free(p);
	return name;
}

static void assert_file_space(const char *path, const char *build_id, uint64_t limit, uint64_t address,
                              const char *search, const char *want_name, const char *want_warning)
{
	struct buf warnings;
	const char *folders[] = { search, NULL };
	struct symbol_options o = { .depth = SYMBOL_FULL, .search = search ? folders : NULL };
	buf_init(&warnings, 1 << 16);
	char *name = name_in_file_space(path, build_id, limit, address, &o, &warnings);
	if (strcmp(name, want_name) || count_lines_of(&warnings) != (want_warning != NULL) ||
	    (want_warning && !strstr(warnings.data, want_warning)))
		fail_msg("limit 0x%llx: %s is named %s, not %s; %s", (unsigned long long)limit, path, name, want_name,
		         warnings.len ? warnings.data : "no warning");
	free(name);
	buf_finish(&warnings);
}

static void a_mapping_of_all_memory_holds_the_files_own_addresses(void **state)
{
	(void)state;
	static const uint64_t limits[] = { UINT64_MAX, 0, INT64_MAX, (uint64_t)1 << 47 };
	const char *fixed = fixture("fixed");
	uint64_t address = 0;
	struct elf_file f;
	char id[129];
	assert_int_equal(elf_file_open(&f, fixed, NULL), 0);
	assert_true(elf_file_address(&f, offset_of("fixed", "descend") + 4, &address));
	assert_int_not_equal(address, offset_of("fixed", "descend") + 4);
	snprintf(id, sizeof(id), "%s", f.build_id);
	elf_file_finish(&f);
	for (size_t i = 0; i < sizeof(limits) / sizeof(*limits); i++) {
		assert_file_space(fixed, "", limits[i], address, NULL, "descend", NULL);
		assert_file_space(fixed, id, limits[i], address, NULL, "descend", NULL);
		assert_file_space(fixed, "", limits[i], 0x7f0012345678, NULL, "fixed!0x7f0012345678", NULL);
		assert_file_space(fixed, "00112233", limits[i], 0x401234, NULL, "fixed!0x401234",
		                  "was replaced since the profile was taken (build id");
		/* Elsewhere: by build id, else by name alone. */
		assert_file_space("/gone/fixed", "", limits[i], address, folder, "descend", NULL);
		assert_file_space("/gone/fixed", "", limits[i], address, fixed, "descend", NULL);
		assert_file_space("/gone/other", id, limits[i], address, fixed, "descend", NULL);
		assert_file_space("/gone/other", "", limits[i], 0x401234, fixed, "other!0x401234",
		                  "is not on this machine");
	}
}

/* Debug files have a program's build id and none of its code. */
static void a_debug_file_is_not_taken_for_the_binary(void **state)
{
	(void)state;
	struct elf_file f;
	char id[129];
	assert_int_equal(elf_file_open(&f, fixture("whole"), NULL), 0);
	snprintf(id, sizeof(id), "%s", f.build_id);
	elf_file_finish(&f);
	assert_file_space("/gone/whole", id, UINT64_MAX, 0x1234, fixture("beside.debug"), "whole!0x1234",
	                  "is not on this machine");
}

static void depth_decides_what_is_read(void **state)
{
	(void)state;
	struct symbol_options o = { .depth = SYMBOL_TABLE };
	for (int depth = SYMBOL_NONE; depth <= SYMBOL_TABLE; depth++) {
		struct profile *p = profile_new(0);
		uint32_t mapping = add_binary(p, fixture("whole"), 0x555555554000);
		uint32_t location = add_at(p, mapping, offset_of("whole", "descend") + 4);
		o.depth = (enum symbol_depth)depth;
		assert_int_equal(symbol_profile(p, &o, NULL, NULL), 0);
		assert_int_equal(p->locations[location].n_lines, 1);
		const char *name = name_of(p, location, 0);
		assert_int_equal(strncmp(name, depth ? "descend" : "whole!0x", 7), 0);
		assert_false(p->mappings[mapping].has_line_numbers);
		profile_free(p);
	}
}

/* --- build ids --- */

static void build_ids_come_from_files_that_fit(void **state)
{
	(void)state;
	struct profile *p = profile_new(0);
	struct buf warnings;
	buf_init(&warnings, 1 << 16);
	uint32_t whole = add_binary(p, fixture("whole"), 0x555555554000);
	uint32_t none = add_binary(p, fixture("no-id"), 0x600000000000);
	uint32_t deleted = add_binary(p, fixture("compressed"), 0x610000000000);
	uint32_t grown = add_binary(p, fixture("other"), 0x620000000000);
	uint32_t known = add_binary(p, fixture("beside"), 0x630000000000);
	uint32_t vdso = add_mapping(p, "[vdso]", 0x7ffff7fc1000, 0x2000, 0);
	uint32_t missing = add_mapping(p, "/nowhere/lib.so", 0x640000000000, 0x1000, 0);
	p->mappings[deleted].deleted = true;
	p->mappings[grown].limit += 100 * 4096;
	p->mappings[known].build_id = profile_cstring(p, "feedface");
	assert_int_equal(symbol_build_ids(p, NULL, &warnings, NULL), 0);
	struct elf_file f;
	assert_int_equal(elf_file_open(&f, fixture("whole"), NULL), 0);
	assert_int_equal(strlen(f.build_id), 40);
	assert_string_equal(profile_text(p, p->mappings[whole].build_id), f.build_id);
	elf_file_finish(&f);
	uint32_t empty[] = { none, deleted, grown, vdso, missing };
	for (size_t i = 0; i < sizeof(empty) / sizeof(*empty); i++)
		assert_string_equal(profile_text(p, p->mappings[empty[i]].build_id), "");
	assert_string_equal(profile_text(p, p->mappings[known].build_id), "feedface");
	assert_int_equal(count_lines_of(&warnings), 2);          /* deleted, grown */
	/* Naming afterwards repeats nothing. */
	for (uint32_t i = 0; i < p->n_mappings; i++)
		add_at(p, i, p->mappings[i].offset + 0x100);
	assert_int_equal(symbol_profile(p, NULL, &warnings, NULL), 0);
	assert_int_equal(count_lines_of(&warnings), 4);          /* and known, missing */
	profile_free(p);
	buf_finish(&warnings);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_symbol_names_only_what_its_size_covers),
		cmocka_unit_test(global_and_plain_names_are_preferred),
		cmocka_unit_test(the_innermost_symbol_wins_and_the_outer_returns_behind_it),
		cmocka_unit_test(symbols_without_size_reach_to_the_next_symbol),
		cmocka_unit_test(unsorted_and_repeated_offsets_keep_their_order),
		cmocka_unit_test(debug_files_are_found_where_they_may_be),
		cmocka_unit_test(compressed_symbols_of_a_stripped_binary_are_read),
		cmocka_unit_test(debug_files_of_another_build_are_not_used),
		cmocka_unit_test(answers_are_kept_and_get_better),
		cmocka_unit_test(inlined_calls_come_innermost_first),
		cmocka_unit_test(wrong_files_are_refused_with_a_reason),
		cmocka_unit_test(absurd_debug_information_costs_little),
		cmocka_unit_test(every_location_gets_a_name),
		cmocka_unit_test(lines_that_are_there_stay),
		cmocka_unit_test(unnamed_code_is_shown_by_the_files_own_address),
		cmocka_unit_test(replaced_and_missing_binaries_are_never_used),
		cmocka_unit_test(a_reader_that_takes_too_long_is_a_warning),
		cmocka_unit_test(many_missing_files_are_counted),
		cmocka_unit_test(a_path_in_a_warning_cannot_act_on_the_terminal),
		cmocka_unit_test(a_binary_that_was_asked_for_must_be_right),
		cmocka_unit_test(a_fixed_program_is_named_without_mappings),
		cmocka_unit_test(a_mapping_of_all_memory_holds_the_files_own_addresses),
		cmocka_unit_test(a_debug_file_is_not_taken_for_the_binary),
		cmocka_unit_test(depth_decides_what_is_read),
		cmocka_unit_test(build_ids_come_from_files_that_fit),
	};
	char real[4096];
	if (argc != 2 || !realpath(argv[1], real))
		return 2;
	folder = real;
	/* Most fixtures have the same build id, and the next run builds others. */
	setenv("HEAPGAUGE_CACHE", "off", 1);
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
