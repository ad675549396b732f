/*
 * Asks us and a reference about the same addresses of a binary and counts where the answers
 * differ, by kind. Addresses are drawn at random from the executable segments (or from function
 * symbols only, or given on standard input).
 *
 *   compare [options] REFERENCE BINARY    (llvm-symbolizer, or with -a addr2line)
 *     -n N          addresses (2000)         -s SEED
 *     -d DIR        search directory for us (and --debug-file-directory for the reference)
 *     -t            symbol tables only       -v    show each difference
 *     -p            print our answers instead of comparing (no reference; BINARY only)
 *     -a            the reference is binutils' addr2line
 *     -q            only the time it takes   -i    addresses (hex) from standard input
 *
 * Prints one line of counts: addresses frames chains names lines neighbours aliases missed
 *   chains: different number of frames    names: linkage names differ (after the known rewriting)
 *   lines:  different file or line        neighbours: the reference names an address that no symbol covers
 *   missed: a symbol covers the address, and only the reference says so
 *   aliases: the reference put another symbol of the same code in place of DWARF's name (not counted in names)
 * What is known to be spelled differently and doesn't count: a clone suffix (.cold, .part.0, ...); scopes and
 * parameters of functions that have no linkage name in DWARF; line 0.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/text.h"
#include "symbol/elf_file.h"
#include "symbol/symbol.h"

#include <gelf.h>

struct reference_frame {
	char *function, *file;
	uint32_t line;
};

struct settings {
	size_t n;
	uint64_t seed;
	const char *search[2];
	bool table, verbose, print, quiet, from_stdin, addr2line;
	const char *reference, *binary;
};

struct counts {
	size_t addresses, frames, chains, names, lines, neighbours, unknown, aliases, missed;
};

static void fail(const char *what)
{
	fprintf(stderr, "compare: %s: %s\n", what, strerror(errno));
	exit(1);
}

static uint64_t next_random(uint64_t *state)
{
	uint64_t z = (*state += 0x9e3779b97f4a7c15u);
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

/* File offsets, drawn from the executable segments. */
static void draw(const struct elf_file *f, const struct settings *s, uint64_t *offsets)
{
	uint64_t total = 0, state = s->seed;
	for (size_t i = 0; i < f->n_segments; i++)
		total += f->segments[i].executable ? f->segments[i].file_bytes : 0;
	for (size_t k = 0; k < s->n; k++) {
		uint64_t at = total ? next_random(&state) % total : 0;
		for (size_t i = 0; i < f->n_segments; i++) {
			const struct elf_segment *g = &f->segments[i];
			if (!g->executable)
				continue;
			if (at < g->file_bytes) {
				offsets[k] = g->offset + at;
				break;
			}
			at -= g->file_bytes;
		}
	}
}

static size_t read_addresses(const struct elf_file *f, uint64_t **ret)
{
	size_t n = 0, capacity = 0;
	uint64_t *offsets = NULL;
	char line[64];
	while (fgets(line, sizeof(line), stdin)) {
		uint64_t address;
		char *hex = strncmp(line, "0x", 2) ? line : line + 2;
		uint64_t *slot = ARRAY_PUSH(offsets, n, capacity, SIZE_MAX);
		if (!slot || !text_parse_u64(hex, strcspn(hex, "\n"), 16, &address) ||
		    !elf_file_offset(f, address, slot))
			fail("bad address");
	}
	*ret = offsets;
	return n;
}

/* Runs the reference on the addresses; its answers are left in a temporary file. */
static FILE *ask_reference(const struct settings *s, const struct elf_file *f,
                           const uint64_t *offsets, size_t n)
{
	FILE *in = tmpfile(), *out = tmpfile();
	if (!in || !out)
		fail("tmpfile");
	for (size_t i = 0; i < n; i++) {
		uint64_t address = 0;
		elf_file_address(f, offsets[i], &address);
		fprintf(in, "0x%llx\n", (unsigned long long)address);
	}
	fflush(in);
	rewind(in);
	pid_t pid = fork();
	if (pid < 0)
		fail("fork");
	if (pid == 0) {
		char directory[4096];
		snprintf(directory, sizeof(directory), "--debug-file-directory=%s",
		         s->search[0] ? s->search[0] : "/usr/lib/debug");
		dup2(fileno(in), 0);
		dup2(fileno(out), 1);
		if (s->addr2line)
			execlp(s->reference, s->reference, "-a", "-f", "-i", "-e", s->binary, (char *)NULL);
		execlp(s->reference, s->reference, "--obj", s->binary, "--inlines", "--no-demangle",
		       directory, (char *)NULL);
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
static size_t read_answer(const struct settings *s, FILE *in, struct reference_frame *frames, size_t max)
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
		if (n == max)
			fail("too many frames");
		frames[n].function = strdup(line);
		if (!read_line(in, &line, &room))
			fail("reference's output");
		split_place(line, !s->addr2line, &frames[n++]);
	}
	free(line);
	return n;
}

/* The last part of a name: without scopes, template arguments, parameters. Good enough to compare. */
static void last_part(const char *name, char *to, size_t room)
{
	size_t depth = 0, start = 0, length = strlen(name), end = length;
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

static bool same_name(const struct symbol_frame *ours, const char *theirs)
{
	const char *linkage = ours->system_name ? ours->system_name : ours->function;
	if (!linkage)
		return !strcmp(theirs, "??");
	if (!strcmp(linkage, theirs))
		return true;
	if (!strcmp(bare(linkage), bare(theirs)) || !strcmp(bare(ours->function), bare(theirs)))
		return true;                    /* aliases of the C library */
	size_t stem = strcspn(theirs, ".");
	if (strlen(linkage) == stem && !strncmp(linkage, theirs, stem))
		return true;                    /* foo.cold */
	/* What the reference has a linker's name for must have been equal. */
	bool mangled = !strncmp(theirs, "_Z", 2) || !strncmp(theirs, "_R", 2);
	if (mangled && ours->system_name && strncmp(ours->system_name, "__GI_", 5))
		return false;
	/* Without a linkage name the reference says the bare name, or takes the symbol table's. */
	struct buf plain;
	buf_init(&plain, 1 << 20);
	char *cut = strndup(theirs, theirs[0] == '_' ? stem : strlen(theirs));
	symbol_demangle(cut, &plain);
	char a[1024], b[1024];
	last_part(ours->function, a, sizeof(a));
	last_part(plain.data, b, sizeof(b));
	buf_finish(&plain);
	free(cut);
	return !strcmp(a, b);
}

static bool same_line(const struct symbol_frame *ours, const struct reference_frame *theirs)
{
	/* Without a line the reference takes the name of some file symbol, or the unit's. */
	if (ours->line == 0 && theirs->line == 0)
		return true;
	if (!ours->file)
		return false;
	if (ours->line != theirs->line)
		return false;
	/* Below a relative compilation directory the reference repeats it: "./time/./time/x.c". */
	size_t a = strlen(ours->file), b = strlen(theirs->file);
	return !strcmp(ours->file, theirs->file) ||
	       (ours->file[0] != '/' && b > a && !strcmp(theirs->file + b - a, ours->file));
}

static void show(const struct symbol_frame *f)
{
	printf("  %s [%s] %s:%u:%u (from %u)\n", f->function ? f->function : "??",
	       f->system_name ? f->system_name : "", f->file ? f->file : "??", f->line, f->column,
	       f->start_line);
}

static void show_difference(const char *kind, uint64_t address, const struct symbol_frame *ours,
                            size_t n, const struct reference_frame *theirs, size_t n_theirs)
{
	printf("%s 0x%llx\n ours\n", kind, (unsigned long long)address);
	for (size_t i = 0; i < n; i++)
		show(&ours[i]);
	printf(" reference\n");
	for (size_t i = 0; i < n_theirs; i++)
		printf("  %s %s:%u\n", theirs[i].function, theirs[i].file, theirs[i].line);
}

/* Does the binary have a symbol of that name at that address? Then it is another name of the same code. */
static bool is_alias(const struct elf_file *f, const char *name, uint64_t address)
{
	for (Elf_Scn *scn = NULL; (scn = elf_nextscn(f->elf, scn));) {
		GElf_Shdr h;
		if (!gelf_getshdr(scn, &h) || (h.sh_type != SHT_SYMTAB && h.sh_type != SHT_DYNSYM))
			continue;
		Elf_Data *data = elf_getdata(scn, NULL);
		GElf_Sym s;
		for (int i = 0; data && gelf_getsym(data, i, &s); i++) {
			unsigned type = GELF_ST_TYPE(s.st_info);
			if (type == STT_OBJECT || type == STT_TLS || address < s.st_value || address - s.st_value >= s.st_size)
				continue;
			const char *have = elf_strptr(f->elf, h.sh_link, s.st_name);
			if (have && !strcmp(have, name))
				return true;
		}
	}
	return false;
}

static const char *judge(const struct elf_file *f, uint64_t address, const struct symbol_frame *ours, size_t n,
                         const struct reference_frame *theirs, size_t n_theirs, struct counts *c)
{
	bool they_know = n_theirs && strcmp(theirs[0].function, "??");
	if (n == 0) {
		bool missed = they_know && is_alias(f, theirs[0].function, address);
		c->unknown++;
		c->missed += missed;
		c->neighbours += they_know && !missed;
		return missed ? "missed" : they_know ? "neighbour" : NULL;
	}
	c->frames += n;
	if (n == 1 && !ours[0].function && they_know && !is_alias(f, theirs[0].function, address)) {
		c->neighbours++;                /* padding: it has a line, but no function */
		return "neighbour";
	}
	if (n != n_theirs) {
		c->chains++;
		return "chain";
	}
	const char *kind = NULL;
	for (size_t i = 0; i < n; i++) {
		bool name = same_name(&ours[i], theirs[i].function);
		bool line = same_line(&ours[i], &theirs[i]);
		if (!name && i == n - 1 && is_alias(f, theirs[i].function, address)) {
			c->aliases++;
			name = true;
		}
		c->names += !name;
		c->lines += !line;
		kind = !name ? "name" : !line ? "line" : kind;
	}
	return kind;
}

static void compare(const struct settings *s, const struct elf_file *f, const uint64_t *offsets,
                    size_t n, const struct symbol_answers *a)
{
	enum { MAX = 2048 };
	static struct reference_frame theirs[MAX];
	struct counts c = { .addresses = n };
	FILE *out = ask_reference(s, f, offsets, n);
	for (size_t i = 0; i < n; i++) {
		size_t n_theirs = read_answer(s, out, theirs, MAX);
		const struct symbol_frame *ours = a->answers[i].n ? a->frames + a->answers[i].first : NULL;
		uint64_t address = 0;
		elf_file_address(f, offsets[i], &address);
		const char *kind = judge(f, address, ours, a->answers[i].n, theirs, n_theirs, &c);
		if (kind && s->verbose)
			show_difference(kind, address, ours, a->answers[i].n, theirs, n_theirs);
		for (size_t k = 0; k < n_theirs; k++) {
			free(theirs[k].function);
			free(theirs[k].file);
		}
	}
	fclose(out);
	printf("addresses %zu unknown %zu frames %zu chains %zu names %zu lines %zu neighbours %zu aliases %zu missed %zu\n",
	       c.addresses, c.unknown, c.frames, c.chains, c.names, c.lines, c.neighbours, c.aliases, c.missed);
}

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void parse(struct settings *s, int argc, char **argv)
{
	uint64_t value;
	for (int c; (c = getopt(argc, argv, "n:s:d:tvpqia")) >= 0;) {
		switch (c) {
		case 'n':
			if (!text_parse_u64(optarg, strlen(optarg), 10, &value))
				fail("-n");
			s->n = value;
			break;
		case 's':
			if (!text_parse_u64(optarg, strlen(optarg), 10, &s->seed))
				fail("-s");
			break;
		case 'd': s->search[0] = optarg; break;
		case 't': s->table = true; break;
		case 'v': s->verbose = true; break;
		case 'p': s->print = true; break;
		case 'q': s->quiet = true; break;
		case 'a': s->addr2line = true; break;
		case 'i': s->from_stdin = true; break;
		default: exit(2);
		}
	}
	if (!s->print && !s->quiet)
		s->reference = argv[optind++];
	s->binary = argv[optind];
	if (!s->binary)
		exit(2);
}

int main(int argc, char **argv)
{
	struct settings s = { .n = 2000, .seed = 1 };
	struct error err;
	struct elf_file f;
	parse(&s, argc, argv);
	if (elf_file_open(&f, s.binary, &err)) {
		fprintf(stderr, "compare: %s\n", err.text);
		return 1;
	}
	uint64_t *offsets = NULL;
	if (s.from_stdin) {
		s.n = read_addresses(&f, &offsets);
	} else {
		offsets = calloc(s.n, sizeof(*offsets));
		if (!offsets)
			fail("memory");
		draw(&f, &s, offsets);
	}
	struct symbol_options o = { .search = s.search };
	struct symbol_answers a;
	double before = now();
	if (symbol_resolve(s.binary, "", offsets, s.n, s.table ? SYMBOL_TABLE : SYMBOL_FULL, &o, &a,
	                   &err)) {
		fprintf(stderr, "compare: %s\n", err.text);
		return 1;
	}
	double seconds = now() - before;
	if (s.quiet)
		printf("addresses %zu frames %zu seconds %.4f\n", s.n, a.n_frames, seconds);
	else if (!s.print)
		compare(&s, &f, offsets, s.n, &a);
	for (size_t i = 0; i < s.n && s.print; i++) {
		uint64_t address = 0;
		elf_file_address(&f, offsets[i], &address);
		printf("0x%llx\n", (unsigned long long)address);
		for (size_t k = 0; k < a.answers[i].n; k++)
			show(&a.frames[a.answers[i].first + k]);
	}
	symbol_answers_finish(&a);
	elf_file_finish(&f);
	free(offsets);
	return 0;
}
