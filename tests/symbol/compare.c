/*
 * Asks us and a reference about the same addresses of a binary and counts where the answers differ, by kind. We are asked in
 * this process (resolve.h: no worker, no cache), so this is also what to run under a debugger or a profiler.
 *
 *   compare [options] REFERENCE BINARY    (llvm-symbolizer, or with -a addr2line)
 *   compare -p | -q [options] BINARY
 *     -n N          random addresses of .text (2000)     -s SEED (1)
 *     -w            of all that is executable, not only of .text
 *     -i            addresses (hex) from standard input
 *     -d DIR        look for debug files there, too      -t    symbol tables only      -j N   threads (1)
 *     -r FILE       the reference reads this file instead: the same code, with debug information in a form it understands
 *     -a            the reference is binutils' addr2line
 *     -v            show each difference                 -k KIND   only those of that kind
 *     -p            print our answers instead of comparing
 *     -q            only the time it takes, and what it takes of memory
 *
 * Prints one line of counts; every address is in exactly one of these:
 *   same        function, file and line of each frame are equal, or differ in one of these ways:
 *               a clone suffix (.cold, .part.0) that only one has; linkage names of which the same name is made (variants of a
 *               constructor, hashes of Rust); scopes and parameters of a function whose linkage name is not in DWARF; another
 *               alias of a C library function (__GI___fork, fork); line 0 (the reference then says the unit's file)
 *   alias       the outermost function is named by another symbol that covers the address (folded or aliased code)
 *   start       there is no symbol: we say where the function begins (fn_2a300), the reference says nothing
 *   neighbour   the reference names a symbol that does not cover the address (padding, PLT stubs): checked in the symbol table, and for
 *               symbols without a size in .eh_frame
 *   unnamed     no name from the reference, but a symbol that covers the address from us: checked
 *   extra       no name from the reference, and one from us that no symbol confirms
 *   missed      something from the reference, and nothing from us
 *   chain       different numbers of frames
 *   name, file, line   the innermost frame that differs does so there
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/text.h"
#include "symbol/resolve.h"

enum { FRAMES_MAX = 4096 };

struct reference_frame {
	char *function, *file;
	uint32_t line;
};

struct settings {
	size_t n, threads;
	uint64_t seed;
	bool wide, table, verbose, print, quiet, from_stdin, addr2line;
	const char *search, *kind, *reference, *binary, *reference_binary;
};

/* A function symbol, the end of its section, and the end of whatever begins before it. */
struct symbol {
	uint64_t start, end, section_end, all_end;
	bool unsized;
	const char *name;
};

struct symbols {
	struct symbol *items;
	size_t n, capacity;
};

struct asked {
	const struct settings *s;
	struct elf_file file, debug;
	bool has_debug;
	uint64_t *addresses;
	size_t n;
	struct symbols symbols;
	struct answers answers;
	struct buf block;
};

enum kind { SAME, ALIAS, START, NEIGHBOUR, UNNAMED, EXTRA, MISSED, CHAIN, NAME, FILE_NAME, LINE, KINDS };
static const char *const kind_names[KINDS] = { "same", "alias", "start", "neighbour", "unnamed", "extra", "missed", "chain", "name", "file", "line" };

static void fail(const char *what)
{
	fprintf(stderr, "compare: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void fail_with(const struct error *err)
{
	fprintf(stderr, "compare: %s\n", err->text);
	exit(1);
}

/* --- which addresses --- */

static uint64_t next_random(uint64_t *state)
{
	uint64_t z = (*state += 0x9e3779b97f4a7c15u);
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

static uint64_t draw_wide(const struct elf_file *f, uint64_t random)
{
	uint64_t total = 0;
	for (size_t i = 0; i < f->n_segments; i++)
		total += f->segments[i].executable ? f->segments[i].file_bytes : 0;
	uint64_t at = total ? random % total : 0;
	for (size_t i = 0; i < f->n_segments; i++) {
		const struct loaded_segment *g = &f->segments[i];
		if (g->executable && at < g->file_bytes)
			return g->address + at;
		at -= g->executable ? g->file_bytes : 0;
	}
	return 0;
}

static void draw(struct asked *a)
{
	struct elf_section text;
	uint64_t state = a->s->seed;
	bool wide = a->s->wide || !elf_section_named(&a->file.image, ".text", &text) || text.bytes == 0;
	a->n = a->s->n;
	a->addresses = calloc(a->n + 1, sizeof(*a->addresses));
	if (!a->addresses)
		fail("memory");
	for (size_t i = 0; i < a->n; i++) {
		uint64_t random = next_random(&state);
		a->addresses[i] = wide ? draw_wide(&a->file, random) : text.address + random % text.bytes;
	}
}

static void read_addresses(struct asked *a)
{
	size_t capacity = 0;
	char line[64];
	while (fgets(line, sizeof(line), stdin)) {
		char *hex = strncmp(line, "0x", 2) ? line : line + 2;
		uint64_t *slot = ARRAY_PUSH(a->addresses, a->n, capacity, SIZE_MAX);
		if (!slot || !text_parse_u64(hex, strcspn(hex, "\n"), 16, slot))
			fail("bad address");
	}
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return (x > y) - (x < y);
}

static void sort_addresses(struct asked *a)
{
	size_t n = 0;
	qsort(a->addresses, a->n, sizeof(*a->addresses), by_value);
	for (size_t i = 0; i < a->n; i++)
		if (n == 0 || a->addresses[n - 1] != a->addresses[i])
			a->addresses[n++] = a->addresses[i];
	a->n = n;
}

/* --- what symbols there are --- */

static void add_symbols(struct symbols *to, const struct elf_image *image, bool dynamic)
{
	struct elf_symbols walk;
	struct elf_symbol s;
	struct elf_section in;
	if (!elf_symbols_begin(&walk, image, dynamic))
		return;
	while (elf_symbols_next(&walk, &s)) {
		if (s.section == 0 || !*s.name || s.type == 1 || s.type == 3 || s.type == 4 || s.type == 6)
			continue;               /* undefined; data, section, file, thread-local */
		struct symbol *slot = ARRAY_PUSH(to->items, to->n, to->capacity, SIZE_MAX);
		if (!slot)
			fail("symbols");
		uint64_t section_end = elf_section(image, s.section, &in) ? in.address + in.bytes : UINT64_MAX;
		*slot = (struct symbol){ s.value, s.value + s.bytes, section_end, 0, s.bytes == 0, s.name };
	}
}

static int by_start(const void *a, const void *b)
{
	const struct symbol *x = a, *y = b;
	return (x->start > y->start) - (x->start < y->start);
}

static void load_symbols(struct asked *a)
{
	struct symbols *s = &a->symbols;
	add_symbols(s, &a->file.image, false);
	add_symbols(s, &a->file.image, true);
	if (a->has_debug)
		add_symbols(s, &a->debug.image, false);
	if (s->n)
		qsort(s->items, s->n, sizeof(*s->items), by_start);
	/* Hand-written code without sizes reaches up to the next symbol, but no further than its section. */
	for (size_t i = 0, k; i < s->n; i++) {
		for (k = i + 1; k < s->n && s->items[k].start == s->items[i].start;)
			k++;
		if (s->items[i].end == s->items[i].start) {
			uint64_t next = k < s->n ? s->items[k].start : UINT64_MAX;
			s->items[i].end = next < s->items[i].section_end ? next : s->items[i].section_end;
		}
		uint64_t before = i ? s->items[i - 1].all_end : 0;
		s->items[i].all_end = s->items[i].end > before ? s->items[i].end : before;
	}
}

/*
 * Does a symbol of that name cover the address? start: where the function begins that .eh_frame knows there (or NO_START); what has no size
 * and begins elsewhere is another one's.
 */
#define NO_START UINT64_MAX
static bool covers_from(const struct symbols *s, const char *name, uint64_t address, uint64_t start)
{
	size_t from = 0, to = s->n;
	while (from < to) {
		size_t middle = from + (to - from) / 2;
		if (s->items[middle].start <= address)
			from = middle + 1;
		else
			to = middle;
	}
	for (; from-- > 0 && s->items[from].all_end > address;)
		if (s->items[from].end > address && !strcmp(s->items[from].name, name) &&
		    (start == NO_START || !s->items[from].unsized || s->items[from].start == start))
			return true;
	return false;
}

static bool covers(const struct symbols *s, const char *name, uint64_t address)
{
	return covers_from(s, name, address, NO_START);
}

/* --- us --- */

static int open_plain(const char *path, char *ret_path, unsigned long size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0 && (size_t)snprintf(ret_path, size, "%s", path) >= size) {
		close(fd);
		return -1;
	}
	return fd;
}

static int open_beside(const char *of, const char *name, char *ret_path, unsigned long size)
{
	char path[8192], folder[4096];
	snprintf(folder, sizeof(folder), "%s", of);
	snprintf(path, sizeof(path), name[0] == '/' ? "%.0s%s" : "%s/%s", dirname(folder), name);
	return open_plain(path, ret_path, size);
}

/* The simplest there is: nothing is checked. What programs use is tested by other tests. */
static int open_file(void *context, const struct file_request *r, char *ret_path, unsigned long size)
{
	const struct settings *s = context;
	const char *folders[] = { s->search, "/usr/lib/debug" };
	char path[8192];
	int fd = -1;
	if (r->kind == FILE_DWP) {
		snprintf(path, sizeof(path), "%s.dwp", r->of);
		return open_plain(path, ret_path, size);
	}
	if (r->kind == FILE_DWO) {
		snprintf(path, sizeof(path), r->name[0] == '/' || !r->folder ? "%.0s%s" : "%s/%s", r->folder ? r->folder : "", r->name);
		return open_plain(path, ret_path, size);
	}
	for (size_t i = 0; i < 2 && fd < 0 && r->build_id[0]; i++) {
		snprintf(path, sizeof(path), "%s/.build-id/%.2s/%s.debug", folders[i] ? folders[i] : ".", r->build_id, r->build_id + 2);
		fd = open_plain(path, ret_path, size);
	}
	return fd >= 0 || !r->name ? fd : open_beside(r->of, r->name, ret_path, size);
}

static double now(clockid_t clock)
{
	struct timespec t;
	clock_gettime(clock, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static long status_kib(const char *name)
{
	char line[256];
	long kib = 0;
	FILE *f = fopen("/proc/self/status", "re");
	while (f && fgets(line, sizeof(line), f))
		if (!strncmp(line, name, strlen(name)))
			sscanf(line + strlen(name), ": %ld", &kib);
	if (f)
		fclose(f);
	return kib;
}

static void ask_us(struct asked *a)
{
	struct error err;
	struct resolve_result result;
	struct file_source files = { open_file, (void *)(uintptr_t)a->s };
	struct resolve_options o = { .depth = a->s->table ? SYMBOL_TABLE : SYMBOL_FULL, .files = &files, .threads = a->s->threads };
	double wall = now(CLOCK_MONOTONIC), cpu = now(CLOCK_PROCESS_CPUTIME_ID);
	buf_init(&a->block, BUF_MAX_DEFAULT);
	if (resolve(&a->file, a->addresses, a->n, &o, &a->block, &result, &err))
		fail_with(&err);
	wall = now(CLOCK_MONOTONIC) - wall;
	cpu = now(CLOCK_PROCESS_CPUTIME_ID) - cpu;
	if (answers_open(&a->answers, a->block.data, a->block.len, &err))
		fail_with(&err);
	if (a->s->quiet)
		printf("addresses %zu frames %zu seconds %.4f cpu %.4f anonymous-kib %ld peak-kib %ld%s\n", a->n, a->answers.n_frames, wall, cpu,
		       status_kib("RssAnon"), status_kib("VmHWM"), result.damaged ? " damaged" : "");
}

/* --- the reference --- */

/* Runs it on the addresses; its answers are left in a temporary file. */
static FILE *ask_reference(const struct asked *a)
{
	const struct settings *s = a->s;
	const char *binary = s->reference_binary ? s->reference_binary : s->binary;
	FILE *in = tmpfile(), *out = tmpfile();
	if (!in || !out)
		fail("tmpfile");
	for (size_t i = 0; i < a->n; i++)
		fprintf(in, "0x%llx\n", (unsigned long long)a->addresses[i]);
	fflush(in);
	rewind(in);
	pid_t pid = fork();
	if (pid < 0)
		fail("fork");
	if (pid == 0) {
		char directory[4096];
		snprintf(directory, sizeof(directory), "--debug-file-directory=%s", s->search ? s->search : "/usr/lib/debug");
		dup2(fileno(in), 0);
		dup2(fileno(out), 1);
		if (s->addr2line)
			execlp(s->reference, s->reference, "-a", "-f", "-i", "-e", binary, (char *)NULL);
		execlp(s->reference, s->reference, "--obj", binary, "--inlines", "--no-demangle", "--output-style=LLVM",
		       "--functions=linkage", directory, (char *)NULL);
		_exit(127);
	}
	int status;
	if (waitpid(pid, &status, 0) < 0 || status)
		fail(s->reference);
	fclose(in);
	rewind(out);
	return out;
}

/* A line without its end, and without what addr2line puts behind (" (discriminator 3)"); false at the end. */
static bool read_line(FILE *in, char **line, size_t *room)
{
	ssize_t got = getline(line, room, in);
	if (got <= 0)
		return false;
	(*line)[strcspn(*line, "\n")] = '\0';
	char *note = strstr(*line, " (discriminator ");
	if (note)
		*note = '\0';
	return true;
}

/* "FILE:LINE" or "FILE:LINE:COLUMN". */
static void split_place(char *place, bool has_column, struct reference_frame *ret)
{
	uint64_t value = 0;
	char *column = has_column ? strrchr(place, ':') : NULL;
	if (column)
		*column = '\0';
	char *number = strrchr(place, ':');
	if (number) {
		*number = '\0';
		if (!text_parse_u64(number + 1, strlen(number + 1), 10, &value))
			value = 0;
	}
	ret->line = (uint32_t)value;
	ret->file = strdup(place);
}

/*
 * The frames of one answer: pairs of lines up to an empty one. addr2line writes the address before them instead, so
 * the next answer's must be kept.
 */
static size_t read_answer(const struct settings *s, FILE *in, struct reference_frame *frames)
{
	static bool begun;
	char *line = NULL;
	size_t room = 0, n = 0;
	while (read_line(in, &line, &room)) {
		if (!*line || !strncmp(line, "0x", 2)) {
			bool first = s->addr2line && !begun;
			begun = true;
			if (first)
				continue;
			break;
		}
		if (n == FRAMES_MAX)
			fail("too many frames");
		frames[n].function = strdup(line);
		if (!read_line(in, &line, &room))
			fail("reference's output");
		split_place(line, !s->addr2line, &frames[n++]);
	}
	free(line);
	return n;
}

/* --- is it the same --- */

struct our_frame {
	const char *function, *system_name, *file;      /* NULL: unknown */
	uint32_t line, column, start_line;
};

static struct our_frame our_frame(const struct asked *a, size_t i)
{
	const struct answer_frame *f = &a->answers.frames[i];
	const char *strings = a->answers.strings;
	return (struct our_frame){ f->function ? strings + f->function : NULL, f->system_name ? strings + f->system_name : NULL,
		                   f->file ? strings + f->file : NULL, f->line, f->column, f->start_line };
}

/* The last part of a name: without scopes, template arguments, parameters. Good enough to compare. */
static void last_part(const char *name, char *to, size_t room)
{
	static const char *const behind[] = { " const", " volatile", " &", " [" };
	size_t depth = 0, start = 0, length = strlen(name);
	for (size_t i = 0; i < sizeof(behind) / sizeof(*behind); i++) {
		const char *tail = strrchr(name, ')');
		tail = tail ? strstr(tail, behind[i]) : NULL;
		length = tail && (size_t)(tail - name) < length ? (size_t)(tail - name) : length;
	}
	size_t end = length;
	for (size_t i = 0; i < length; i++) {
		char c = name[i];
		if (c == '<' || c == '(' || c == '{')
			depth++;
		if ((c == '>' || c == ')' || c == '}') && depth)
			depth--;
		if (depth == 0 && c == ':' && i + 1 < length && name[i + 1] == ':')
			start = i + 2;
		if (depth == 0 && c == ' ')
			start = i + 1;
	}
	for (size_t i = start; i < length; i++)
		if (i > start && (name[i] == '<' || name[i] == '(')) {
			end = i;
			break;
		}
	snprintf(to, room, "%.*s", (int)(end - start), name + start);
}

/* Without what makes an alias internal: "__GI___fork" is "fork". */
static const char *bare(const char *name)
{
	if (!strncmp(name, "_Z", 2) || !strncmp(name, "_R", 2))
		return name;
	if (!strncmp(name, "__GI_", 5))
		name += 5;
	return name + strspn(name, "_");
}

/* What lies before a suffix that compilers put behind a linkage name. */
static size_t stem(const char *name)
{
	const char *dot = *name ? strchr(name + 1, '.') : NULL;
	return dot ? (size_t)(dot - name) : strlen(name);
}

/* Constructors (C1, C2, C4) are the same name to people, and so are Rust's functions that differ in their hash. */
static bool same_demangled(const char *a, const char *b)
{
	struct buf x, y;
	buf_init(&x, 1 << 20);
	buf_init(&y, 1 << 20);
	demangle(a, DEMANGLE_FULL, &x);
	demangle(b, DEMANGLE_FULL, &y);
	bool same = x.len == y.len && !memcmp(x.data, y.data, x.len);
	buf_finish(&x);
	buf_finish(&y);
	return same;
}

/* The linkage name decides where both have one; DWARF without one has the bare name, and only that can be compared. */
static bool same_name(const struct our_frame *ours, const char *theirs)
{
	const char *linkage = ours->system_name ? ours->system_name : ours->function;
	if (!linkage)
		return !strcmp(theirs, "??");
	if (!strcmp(linkage, theirs))
		return true;
	if (!strcmp(bare(linkage), bare(theirs)) || !strcmp(bare(ours->function), bare(theirs)))
		return true;
	if (stem(linkage) == stem(theirs) && !strncmp(linkage, theirs, stem(linkage)))
		return true;
	if (same_demangled(linkage, theirs))
		return true;
	bool mangled = !strncmp(theirs, "_Z", 2) || !strncmp(theirs, "_R", 2);
	if (mangled && ours->system_name && strncmp(ours->system_name, "__GI_", 5))
		return false;
	struct buf plain;
	char a[1024], b[1024];
	buf_init(&plain, 1 << 20);
	char *cut = strndup(theirs, mangled ? stem(theirs) : strlen(theirs));
	demangle(cut, DEMANGLE_FULL, &plain);
	last_part(ours->function, a, sizeof(a));
	last_part(plain.data, b, sizeof(b));
	buf_finish(&plain);
	free(cut);
	return !strcmp(a, b);
}

static bool same_file(const struct our_frame *ours, const struct reference_frame *theirs)
{
	if (ours->line == 0 && theirs->line == 0)
		return true;
	if (!ours->file)
		return !strcmp(theirs->file, "??");
	/* Below a relative compilation directory the reference repeats it: "./time/./time/x.c". */
	size_t a = strlen(ours->file), b = strlen(theirs->file);
	return !strcmp(ours->file, theirs->file) ||
	       (ours->file[0] != '/' && b > a && !strcmp(theirs->file + b - a, ours->file));
}

static enum kind judge_frames(const struct asked *a, size_t i, const struct reference_frame *theirs, size_t n)
{
	uint64_t address = a->addresses[i];
	enum kind kind = SAME;
	for (size_t k = 0; k < n; k++) {
		struct our_frame ours = our_frame(a, a->answers.first[i] + k);
		if (!same_name(&ours, theirs[k].function)) {
			const char *linkage = ours.system_name ? ours.system_name : ours.function;
			bool silent = !strcmp(theirs[k].function, "??");
			if (k == n - 1 && silent && linkage && covers(&a->symbols, linkage, address)) {
				kind = UNNAMED;
				continue;
			}
			if (k < n - 1 || !covers(&a->symbols, theirs[k].function, address))
				return NAME;
			kind = ALIAS;
		}
		if (!same_file(&ours, &theirs[k]))
			return FILE_NAME;
		if (ours.line != theirs[k].line)
			return LINE;
	}
	return kind;
}

static enum kind judge(const struct asked *a, size_t i, const struct reference_frame *theirs, size_t n_theirs)
{
	uint64_t address = a->addresses[i];
	size_t n = a->answers.first[i + 1] - a->answers.first[i];
	uint8_t quality = a->answers.quality[i];
	bool they_name = n_theirs && strcmp(theirs[0].function, "??");
	bool they_know = they_name || (n_theirs && theirs[0].line);
	struct our_frame ours = n ? our_frame(a, a->answers.first[i]) : (struct our_frame){ 0 };
	bool we_know = ours.function || ours.line;
	if (!we_know && !they_know)
		return SAME;                    /* at most the file that padding is from */
	uint64_t start = NO_START;
	if (quality == ANSWER_START && (!ours.function || sscanf(ours.function, "fn_%" SCNx64, &start) != 1))
		return NAME;
	if (they_name && n <= 1 && n_theirs == 1 && (n == 0 || quality == ANSWER_START || !ours.function) &&
	    !covers_from(&a->symbols, theirs[0].function, address, start))
		return NEIGHBOUR;
	if (quality == ANSWER_START)
		return they_know ? MISSED : START;
	if (n == 0)
		return MISSED;
	if (!they_know) {
		const char *linkage = ours.system_name ? ours.system_name : ours.function;
		return n == 1 && linkage && covers(&a->symbols, linkage, address) ? UNNAMED : EXTRA;
	}
	return n == n_theirs ? judge_frames(a, i, theirs, n) : CHAIN;
}

/* --- telling --- */

static void show_ours(const struct asked *a, size_t i)
{
	for (size_t k = a->answers.first[i]; k < a->answers.first[i + 1]; k++) {
		struct our_frame f = our_frame(a, k);
		printf("  %s [%s] %s:%u:%u (from %u)\n", f.function ? f.function : "??", f.system_name ? f.system_name : "",
		       f.file ? f.file : "??", f.line, f.column, f.start_line);
	}
}

static void compare(const struct asked *a)
{
	static struct reference_frame theirs[FRAMES_MAX];
	const struct settings *s = a->s;
	size_t counts[KINDS] = { 0 };
	FILE *out = ask_reference(a);
	for (size_t i = 0; i < a->n; i++) {
		size_t n_theirs = read_answer(s, out, theirs);
		enum kind kind = judge(a, i, theirs, n_theirs);
		counts[kind]++;
		if (kind != SAME && s->verbose && (!s->kind || !strcmp(s->kind, kind_names[kind]))) {
			printf("%s 0x%llx\n ours\n", kind_names[kind], (unsigned long long)a->addresses[i]);
			show_ours(a, i);
			printf(" reference\n");
			for (size_t k = 0; k < n_theirs; k++)
				printf("  %s %s:%u\n", theirs[k].function, theirs[k].file, theirs[k].line);
		}
		for (size_t k = 0; k < n_theirs; k++) {
			free(theirs[k].function);
			free(theirs[k].file);
		}
	}
	fclose(out);
	printf("addresses %zu frames %zu", a->n, a->answers.n_frames);
	for (size_t k = 0; k < KINDS; k++)
		printf(" %s %zu", kind_names[k], counts[k]);
	printf("\n");
}

static size_t number(const char *text)
{
	uint64_t value;
	if (!text_parse_u64(text, strlen(text), 10, &value))
		fail(text);
	return value;
}

static void parse(struct settings *s, int argc, char **argv)
{
	for (int c; (c = getopt(argc, argv, "n:s:wid:tj:r:avk:pq")) >= 0;) {
		switch (c) {
		case 'n': s->n = number(optarg); break;
		case 's': s->seed = number(optarg); break;
		case 'w': s->wide = true; break;
		case 'i': s->from_stdin = true; break;
		case 'd': s->search = optarg; break;
		case 't': s->table = true; break;
		case 'j': s->threads = number(optarg); break;
		case 'r': s->reference_binary = optarg; break;
		case 'a': s->addr2line = true; break;
		case 'v': s->verbose = true; break;
		case 'k': s->kind = optarg; s->verbose = true; break;
		case 'p': s->print = true; break;
		case 'q': s->quiet = true; break;
		default: exit(2);
		}
	}
	bool compares = !s->print && !s->quiet;
	if (argc - optind != (compares ? 2 : 1)) {
		fprintf(stderr, "usage: compare [options] REFERENCE BINARY, compare -p|-q [options] BINARY (the source says more)\n");
		exit(2);
	}
	s->reference = compares ? argv[optind++] : NULL;
	s->binary = argv[optind];
}

/* Only to know its symbols. */
static void open_debug(struct asked *a)
{
	struct error err;
	char path[4096];
	uint32_t crc = 0;
	struct file_request r = { FILE_DEBUG, a->s->binary, elf_file_debuglink(&a->file, &crc), NULL, a->file.build_id, crc };
	int fd = open_file((void *)(uintptr_t)a->s, &r, path, sizeof(path));
	a->has_debug = fd >= 0 && elf_file_open_fd(&a->debug, fd, path, &err) == 0;
}

int main(int argc, char **argv)
{
	struct settings s = { .n = 2000, .seed = 1, .threads = 1 };
	struct asked a = { .s = &s };
	struct error err;
	parse(&s, argc, argv);
	if (elf_file_open(&a.file, s.binary, &err))
		fail_with(&err);
	if (s.from_stdin)
		read_addresses(&a);
	else
		draw(&a);
	sort_addresses(&a);
	ask_us(&a);
	if (s.print)
		for (size_t i = 0; i < a.n; i++) {
			printf("0x%llx\n", (unsigned long long)a.addresses[i]);
			show_ours(&a, i);
		}
	if (!s.print && !s.quiet) {
		open_debug(&a);
		load_symbols(&a);
		compare(&a);
	}
	buf_finish(&a.block);
	free(a.symbols.items);
	if (a.has_debug)
		elf_file_finish(&a.debug);
	elf_file_finish(&a.file);
	free(a.addresses);
	return 0;
}
