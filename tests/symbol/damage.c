/*
 * damage BINARY CUTS FLIPS SEED: asks about a binary's whole code after cutting it at CUTS places, then after cutting
 * one of its sections short CUTS times, and FLIPS times after damaging a few random bytes, of the whole file or of one
 * section. Whatever comes out, it must come, soon, and without a crash: it is asked in this process, not in a worker.
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
#include "symbol/elf_file.h"
#include "symbol/lookup.h"
#include "symbol/resolve.h"

#define SECONDS_MAX 20
#define OFFSETS 2000

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

/* 0, and how many frames there are; or the error. */
static int resolve_here(int fd, const uint64_t *offsets, size_t n, size_t *ret_frames)
{
	struct elf_file f;
	struct lookup l = { .n = 0 };
	struct answers_builder b;
	struct resolve_options o = { .depth = SYMBOL_FULL };
	struct resolve_result result;
	uint64_t addresses[OFFSETS];
	answers_begin(&b);
	int rc = elf_file_open_fd(&f, fd, "damaged", NULL);
	for (size_t i = 0; i < n && rc == 0; i++)
		if (!elf_file_address(&f, offsets[i], &addresses[i]))
			addresses[i] = NO_ADDRESS;
	if (rc == 0)
		rc = lookup_begin(&l, &f, addresses, n, NULL);
	if (rc == 0)
		rc = resolve(&f, l.addresses, l.n, &o, &b, &result, NULL);
	*ret_frames = b.n_frames;
	answers_end(&b);
	lookup_end(&l);
	elf_file_finish(&f);
	return rc;
}

static void ask(const void *bytes, size_t n, const uint64_t *offsets, size_t n_offsets, struct tally *t)
{
	size_t frames;
	int fd = memfd_create("damaged", MFD_CLOEXEC);
	if (fd < 0 || write(fd, bytes, n) != (ssize_t)n)
		fail("memfd");
	double before = now();
	alarm(10 * SECONDS_MAX);         /* for what would never end */
	int rc = resolve_here(fd, offsets, n_offsets, &frames);
	if (now() - before > SECONDS_MAX) {
		keep(bytes, n);
		fail("took too long (see ./damaged-binary)");
	}
	t->tries++;
	if (rc == 0) {
		t->answered++;
		t->frames += frames;
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
	struct tally cuts = { 0 }, sections = { 0 }, flips = { 0 };
	uint64_t offsets[OFFSETS];
	size_t n = 0;
	if (argc != 5)
		return 2;
	buf_init(&whole, 1 << 28);
	if (stream_open(&s, argv[1], &err) || stream_read_all(&s, &whole, &err) ||
	    elf_file_open(&f, argv[1], &err)) {
		fprintf(stderr, "damage: %s\n", err.text);
		return 1;
	}
	stream_close(&s);
	for (size_t i = 0; i < f.n_segments; i++)
		for (uint64_t at = 0; f.segments[i].executable && at < f.segments[i].file_bytes && n < OFFSETS; at += 7)
			offsets[n++] = f.segments[i].offset + at;
	elf_file_finish(&f);
	uint64_t n_cuts = parse(argv[2]), n_flips = parse(argv[3]), state = parse(argv[4]);
	for (uint64_t i = 0; i < n_cuts; i++)
		ask(whole.data, whole.len * i / n_cuts, offsets, n, &cuts);
	char *copy = malloc(whole.len);
	if (!copy)
		fail("memory");
	for (uint64_t i = 0; i < n_cuts; i++) {
		memcpy(copy, whole.data, whole.len);
		shorten(copy, whole.len, &state);
		ask(copy, whole.len, offsets, n, &sections);
	}
	for (uint64_t i = 0; i < n_flips; i++) {
		memcpy(copy, whole.data, whole.len);
		flip(copy, whole.len, &state);
		ask(copy, whole.len, offsets, n, &flips);
	}
	printf("cuts %zu answered %zu; sections %zu answered %zu frames %zu; flips %zu answered %zu frames %zu\n",
	       cuts.tries, cuts.answered, sections.tries, sections.answered, sections.frames, flips.tries, flips.answered, flips.frames);
	free(copy);
	buf_finish(&whole);
	return 0;
}
