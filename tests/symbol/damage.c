/*
 * damage BINARY CUTS FLIPS SINGLES SEED: asks about a binary's whole code after cutting it at CUTS places, then after cutting
 * one of its sections short CUTS times, FLIPS times after damaging a few random bytes, of the whole file or of one
 * section, and SINGLES times after changing one byte of its debug information. Whatever comes out, it must come, soon, and without a crash.
 * Prints how many of them could be opened and how many frames there were, so that a test can see that it tested.
 */
#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/text.h"
#include "symbol/resolve.h"

#define SECONDS_MAX 20            /* also under sanitizers */
#define ADDRESSES 2000

static uint64_t next_random(uint64_t *state)
{
	uint64_t z = (*state += 0x9e3779b97f4a7c15u);
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

struct tally {
	size_t tries, answered, frames;
};

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);       /* the machine may be busy */
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void fail(const char *what)
{
	fprintf(stderr, "damage: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void keep(const void *bytes, size_t n)
{
	FILE *f = fopen("damaged-binary", "we");
	if (f && fwrite(bytes, 1, n, f) == n)
		fclose(f);
}

/* false: it is no ELF file any more. */
static bool resolve_it(struct elf_file *f, const uint64_t *addresses, size_t n, struct tally *t)
{
	struct error err;
	struct answers a;
	struct buf block;
	struct resolve_result result;
	struct resolve_options o = { .depth = SYMBOL_FULL, .threads = 1 };
	buf_init(&block, BUF_MAX_DEFAULT);
	int rc = resolve(f, addresses, n, &o, &block, &result, &err);
	if (rc && rc != E_LIMIT && rc != E_NOMEM)
		fail("resolve() may only fail for want of memory");
	if (rc == 0 && (answers_open(&a, block.data, block.len, NULL) || a.n != n))
		fail("not an answer for each address");
	t->frames += rc == 0 ? a.n_frames : 0;
	buf_finish(&block);
	return rc == 0;
}

static void ask(const void *bytes, size_t n, const uint64_t *addresses, size_t n_addresses, struct tally *t)
{
	struct elf_file f;
	int fd = memfd_create("damaged", MFD_CLOEXEC);
	if (fd < 0 || write(fd, bytes, n) != (ssize_t)n)
		fail("memfd");
	double before = now();
	alarm(10 * SECONDS_MAX);         /* for what would never end */
	t->tries++;
	if (elf_file_open_fd(&f, fd, "damaged", NULL) == 0)
		t->answered += resolve_it(&f, addresses, n_addresses, t);
	elf_file_finish(&f);
	if (now() - before > SECONDS_MAX) {
		keep(bytes, n);
		fail("took too long (see ./damaged-binary)");
	}
}

/* Cuts a random section short: its header says a smaller size than it has. */
static void shorten(char *bytes, size_t n, uint64_t *state)
{
	Elf64_Ehdr header;
	Elf64_Shdr section;
	memcpy(&header, bytes, sizeof(header));
	size_t at = header.e_shoff + next_random(state) % header.e_shnum * sizeof(section);
	if (at > n - sizeof(section))
		return;
	memcpy(&section, bytes + at, sizeof(section));
	if (section.sh_size)
		section.sh_size = next_random(state) % section.sh_size;
	memcpy(bytes + at, &section, sizeof(section));
}

/* A few single bytes, or one run, anywhere in the file or (mostly) in one section of it. */
static void flip(char *bytes, size_t n, uint64_t *state)
{
	Elf64_Ehdr header;
	Elf64_Shdr section;
	size_t first = 0, room = n, count = 1 + next_random(state) % 12;
	memcpy(&header, bytes, sizeof(header));
	size_t at = header.e_shoff + next_random(state) % header.e_shnum * sizeof(section);
	if (next_random(state) % 4 && at <= n - sizeof(section)) {
		memcpy(&section, bytes + at, sizeof(section));
		if (section.sh_type != SHT_NOBITS && section.sh_size) {
			first = section.sh_offset;
			room = section.sh_size;
		}
	}
	size_t begin = next_random(state) % room;
	bool run = next_random(state) % 4 == 0;
	for (size_t k = 0; k < count; k++) {
		size_t where = first + (run ? begin + k : next_random(state)) % room;
		if (where < n)
			bytes[where] = (char)next_random(state);
	}
}

/* One byte of one of the sections that readers of debug information read. */
static void change(char *bytes, const struct elf_file *f, uint64_t *state)
{
	struct elf_section s;
	for (int tries = 0; tries < 1000; tries++) {
		if (!elf_section(&f->image, (uint32_t)(next_random(state) % f->image.n_sections), &s) || !strstr(s.name, "debug_") || !s.bytes)
			continue;
		bytes[s.offset + next_random(state) % s.bytes] ^= (char)(1 + next_random(state) % 255);
		return;
	}
	fail("it has no debug information");
}

static size_t choose(const struct elf_file *f, uint64_t *ret)
{
	uint64_t bytes = 0;
	size_t n = 0;
	for (size_t i = 0; i < f->n_segments; i++)
		bytes += f->segments[i].executable ? f->segments[i].file_bytes : 0;
	for (size_t i = 0; i < f->n_segments; i++)
		for (uint64_t at = 0; f->segments[i].executable && at < f->segments[i].file_bytes && n < ADDRESSES; at += 1 + bytes / ADDRESSES)
			ret[n++] = f->segments[i].address + at;
	return n;
}

static uint64_t parse(const char *text)
{
	uint64_t value;
	if (!text_parse_u64(text, strlen(text), 10, &value))
		fail(text);
	return value;
}

int main(int argc, char **argv)
{
	struct stream s;
	struct buf whole;
	struct error err;
	struct elf_file f;
	struct tally cuts = { 0 }, sections = { 0 }, flips = { 0 }, singles = { 0 };
	uint64_t addresses[ADDRESSES];
	if (argc != 6)
		return 2;
	buf_init(&whole, 1 << 28);
	if (stream_open(&s, argv[1], &err) || stream_read_all(&s, &whole, &err) || elf_file_open(&f, argv[1], &err)) {
		fprintf(stderr, "damage: %s\n", err.text);
		return 1;
	}
	stream_close(&s);
	size_t n = choose(&f, addresses);
	uint64_t n_cuts = parse(argv[2]), n_flips = parse(argv[3]), n_singles = parse(argv[4]), state = parse(argv[5]);
	char *copy = malloc(whole.len);
	if (!copy)
		fail("memory");
	for (uint64_t i = 0; i < n_cuts; i++)
		ask(whole.data, whole.len * i / n_cuts, addresses, n, &cuts);
	for (uint64_t i = 0; i < n_cuts + n_flips + n_singles; i++) {
		struct tally *t = i < n_cuts ? &sections : i < n_cuts + n_flips ? &flips : &singles;
		memcpy(copy, whole.data, whole.len);
		if (t == &sections)
			shorten(copy, whole.len, &state);
		else if (t == &flips)
			flip(copy, whole.len, &state);
		else
			change(copy, &f, &state);
		ask(copy, whole.len, addresses, n, t);
	}
	printf("addresses %zu; cuts %zu answered %zu; sections %zu answered %zu frames %zu; flips %zu answered %zu frames %zu; singles %zu answered %zu frames %zu\n",
	       n, cuts.tries, cuts.answered, sections.tries, sections.answered, sections.frames, flips.tries, flips.answered, flips.frames,
	       singles.tries, singles.answered, singles.frames);
	free(copy);
	elf_file_finish(&f);
	buf_finish(&whole);
	return 0;
}
