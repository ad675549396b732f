/*
 * ELF files of any bytes, as readers of debug information see them: every section handed out can be read to the end of its slack,
 * nothing is unpacked past the limit, symbols and unwind entries cover what they are given for, and names end.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "symbol/eh_frame.h"
#include "symbol/elf_file.h"
#include "symbol/sections.h"
#include "symbol/symtab.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

#define LIMIT ((uint64_t)8 << 20)
#define ADDRESSES 256

static volatile size_t touched;

static void require(bool holds)
{
	if (!holds)
		abort();
}

static void touch(const uint8_t *at, size_t n)
{
	for (size_t i = 0; i < n; i += 1 + n / 64)
		touched += at[i];
	if (n)
		touched += at[n - 1];
}

static void read_sections(const struct elf_image *e)
{
	struct debug_sections s;
	uint64_t unpacked = 0;
	sections_init(&s, e, LIMIT);
	for (enum debug_section i = 0; i < DEBUG_SECTIONS; i++) {
		struct span x = sections_get(&s, i);
		if (x.at)
			touch(x.at, x.n + SPAN_SLACK);
		require(x.at ? x.n == sections_bytes(&s, i) : x.n == 0);
		if (s.owned[i] && e->mapped)
			unpacked += x.n;
	}
	require(unpacked <= LIMIT && unpacked <= LIMIT - s.limit_bytes);
	sections_finish(&s);
}

/* Spread over the code, and some odd ones; ascending. */
static size_t choose_addresses(const struct elf_file *f, uint64_t *ret)
{
	const struct loaded_segment *code = NULL;
	size_t n = 0;
	for (size_t i = 0; i < f->n_segments && !code; i++)
		if (f->segments[i].executable)
			code = &f->segments[i];
	uint64_t first = code ? code->address : 0, bytes = code ? code->memory_bytes : 4 * ADDRESSES;
	uint64_t step = bytes / (ADDRESSES - 1) + 1;
	ret[n++] = first;
	while (n < ADDRESSES - 1 && ret[n - 1] + step > ret[n - 1]) {
		ret[n] = ret[n - 1] + step;
		n++;
	}
	if (ret[n - 1] != UINT64_MAX)
		ret[n++] = UINT64_MAX;
	return n;
}

static void read_symbols(const struct elf_image *e, enum symtab_kind kind, const uint64_t *addresses, size_t n)
{
	struct symtab_hit hits[ADDRESSES], same[ADDRESSES];
	struct symtab table;
	memset(hits, 0, sizeof(hits));
	memset(same, 0, sizeof(same));
	symtab_init(&table, e, kind);
	require(symtab_join(&table, addresses, n, false, hits, NULL) == 0);
	/* A few of a kept table have the same names. */
	require(symtab_join(&table, addresses, n / 2, true, same, NULL) == 0);
	require(symtab_join(&table, addresses + n / 2, n - n / 2, true, same + n / 2, NULL) == 0);
	for (size_t i = 0; i < n; i++)
		require(hits[i].name == same[i].name && hits[i].start == same[i].start);
	symtab_finish(&table);
	for (size_t i = 0; i < n; i++)
		if (hits[i].name) {
			require(hits[i].start <= addresses[i] && hits[i].length > 0 && hits[i].kind == kind);
			require(strlen(hits[i].name) >= hits[i].length);
		}
}

static void read_starts(const struct elf_image *e, const uint64_t *addresses, size_t n)
{
	uint64_t starts[ADDRESSES], one;
	eh_frame_starts(e, addresses, n, starts);
	for (size_t i = 0; i < n; i++)
		require(starts[i] == EH_FRAME_NONE || starts[i] <= addresses[i]);
	eh_frame_starts(e, addresses + n / 2, 1, &one);
	require(one == EH_FRAME_NONE || one <= addresses[n / 2]);
}

static void read_rest(const struct elf_file *f)
{
	char id[BUILD_ID_TEXT];
	struct elf_image mini;
	uint8_t *bytes;
	uint32_t crc = 0;
	const char *name = elf_file_debuglink(f, &crc);
	if (name)
		touched += strlen(name) + crc;
	name = elf_file_altlink(f, id);
	if (name)
		touched += strlen(name) + strlen(id);
	require(strlen(f->build_id) < BUILD_ID_TEXT);
	uint64_t address = 0, offset = 0;
	if (elf_file_address(f, f->bytes / 2, &address))
		touched += elf_file_has_code(f, address) + elf_file_offset(f, address, &offset) + elf_file_covers(f, offset, 1);
	if (elf_file_mini(f, &mini, &bytes)) {
		uint64_t at[2] = { address, UINT64_MAX };
		if (address < UINT64_MAX)
			read_symbols(&mini, SYMTAB_PART, at, 2);
		free(bytes);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct elf_file f;
	struct error err = { 0 };
	uint64_t addresses[ADDRESSES];
	int fd = memfd_create("fuzz", MFD_CLOEXEC);
	require(fd >= 0 && write(fd, data, n) == (ssize_t)n);
	if (elf_file_open_fd(&f, fd, "fuzz", &err) == 0) {
		size_t count = choose_addresses(&f, addresses);
		read_sections(&f.image);
		read_symbols(&f.image, SYMTAB_FULL, addresses, count);
		read_symbols(&f.image, SYMTAB_DYNAMIC, addresses, count);
		read_starts(&f.image, addresses, count);
		read_rest(&f);
	} else {
		require(err.code == E_FORMAT && err.text[0] && !strchr(err.text, '\n'));
	}
	elf_file_finish(&f);
	return 0;
}
