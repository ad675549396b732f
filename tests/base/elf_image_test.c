/*
 * The tables of real ELF files (this test itself, the C library, a library made here without section headers), and of
 * files cut at every byte.
 */
#include "test.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>

#include "base/elf_image.h"

static uint8_t *read_file(const char *path, size_t *ret_n)
{
	FILE *f = fopen(path, "rbe");
	assert_non_null(f);
	assert_int_equal(fseek(f, 0, SEEK_END), 0);
	*ret_n = (size_t)ftell(f);
	rewind(f);
	uint8_t *bytes = malloc(*ret_n);
	assert_non_null(bytes);
	assert_int_equal(fread(bytes, 1, *ret_n, f), *ret_n);
	fclose(f);
	return bytes;
}

/* What the loader knows of an object of this process. */
struct loaded {
	const void *inside;
	uint64_t base;
	const uint8_t *build_id;
	size_t build_id_n;
	bool found;
};

static int ask_loader(struct dl_phdr_info *info, size_t size, void *to)
{
	struct loaded *l = to;
	(void)size;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *h = &info->dlpi_phdr[i];
		uint64_t start = info->dlpi_addr + h->p_vaddr;
		if (h->p_type == PT_LOAD && (uintptr_t)l->inside - start < h->p_memsz)
			l->found = true, l->base = info->dlpi_addr;
	}
	if (!l->found)
		return 0;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *h = &info->dlpi_phdr[i];
		const uint8_t *at = (const uint8_t *)(info->dlpi_addr + h->p_vaddr), *end = at + h->p_memsz;
		while (h->p_type == PT_NOTE && at + 12 < end) {
			const ElfW(Nhdr) *note = (const ElfW(Nhdr) *)at;
			if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4)
				l->build_id = at + 16, l->build_id_n = note->n_descsz;
			at += 12 + ((note->n_namesz + 3) & ~3u) + ((note->n_descsz + 3) & ~3u);
		}
	}
	return 1;
}

int elf_image_test_exported(int a);
int elf_image_test_exported(int a)
{
	return a + 1;
}

static void own_program(void **state)
{
	struct elf_image e;
	struct elf_symbol y;
	struct elf_section text;
	struct error err = { 0 };
	(void)state;
	struct loaded l = { .inside = (const void *)(uintptr_t)elf_image_test_exported };
	dl_iterate_phdr(ask_loader, &l);
	assert_true(l.found);
	assert_int_equal(elf_image_open(&e, "/proc/self/exe", &err), 0);
	assert_true(e.mapped && e.is64);
	assert_true(elf_find_symbol(&e, "elf_image_test_exported", &y));
	assert_int_equal(y.value + l.base, (uintptr_t)elf_image_test_exported);
	assert_int_equal(y.type, STT_FUNC);
	assert_int_equal(y.binding, STB_GLOBAL);
	assert_true(y.bytes > 0);
	assert_false(elf_find_symbol(&e, "elf_image_test_exporte", &y));
	assert_true(elf_section_named(&e, ".text", &text));
	assert_int_equal(text.type, SHT_PROGBITS);
	const uint8_t *code = elf_section_bytes(&e, &text);
	assert_non_null(code);
	uint64_t in = (uintptr_t)elf_image_test_exported - l.base - text.address;
	assert_memory_equal(code + in, (const void *)(uintptr_t)elf_image_test_exported, 8);
	uint64_t address;
	assert_true(elf_address_of_offset(&e, text.offset + in, &address));
	assert_int_equal(address + l.base, (uintptr_t)elf_image_test_exported);
	assert_false(elf_address_of_offset(&e, e.n + 1, &address));
	assert_true(elf_section_named(&e, ".bss", &text));
	assert_null(elf_section_bytes(&e, &text));
	assert_false(elf_section_named(&e, ".nosuch", &text));
	elf_image_close(&e);
	assert_null(e.bytes);
	elf_image_close(NULL);
}

static void local_symbols_are_in_symtab_only(void **state)
{
	struct elf_image e;
	struct elf_symbols s;
	struct elf_symbol y;
	struct error err = { 0 };
	bool found[2] = { false, false };
	(void)state;
	assert_int_equal(elf_image_open(&e, "/proc/self/exe", &err), 0);
	for (int dynamic = 0; dynamic < 2; dynamic++) {
		assert_true(elf_symbols_begin(&s, &e, dynamic));
		while (elf_symbols_next(&s, &y))
			found[dynamic] |= strcmp(y.name, "local_symbols_are_in_symtab_only") == 0;
	}
	assert_true(found[0]);
	assert_false(found[1]);
	elf_image_close(&e);
}

static void c_library_agrees_with_the_loader(void **state)
{
	struct elf_image e;
	struct elf_symbol y;
	struct error err = { 0 };
	Dl_info info;
	const uint8_t *id;
	(void)state;
	void *function = dlsym(RTLD_DEFAULT, "getrusage");
	assert_non_null(function);
	assert_true(dladdr(function, &info) != 0);
	struct loaded l = { .inside = function };
	dl_iterate_phdr(ask_loader, &l);
	assert_int_equal(elf_image_open(&e, info.dli_fname, &err), 0);
	assert_true(elf_find_symbol(&e, "getrusage", &y));
	assert_int_equal(y.value + l.base, (uintptr_t)function);
	assert_int_equal(elf_build_id(&e, &id), l.build_id_n);
	assert_true(l.build_id_n > 0);
	assert_memory_equal(id, l.build_id, l.build_id_n);
	elf_image_close(&e);
}

static size_t count_symbols(const struct elf_image *e, bool dynamic, uint64_t *ret_sum)
{
	struct elf_symbols s;
	struct elf_symbol y;
	size_t n = 0;
	*ret_sum = 0;
	if (!elf_symbols_begin(&s, e, dynamic))
		return 0;
	for (; elf_symbols_next(&s, &y); n++)
		*ret_sum += y.value + strlen(y.name);
	return n;
}

/* Without section headers PT_DYNAMIC leads to the same symbols. */
static void without_section_headers(void **state)
{
	struct elf_image e;
	struct error err = { 0 };
	Dl_info info;
	uint64_t sum, sum_again;
	size_t n;
	(void)state;
	assert_true(dladdr(dlsym(RTLD_DEFAULT, "getrusage"), &info) != 0);
	uint8_t *bytes = read_file(info.dli_fname, &n);
	assert_int_equal(elf_image_memory(&e, bytes, n, "libc", &err), 0);
	size_t symbols = count_symbols(&e, true, &sum);
	assert_true(symbols > 1000);
	((Elf64_Ehdr *)bytes)->e_shoff = 0;
	((Elf64_Ehdr *)bytes)->e_shnum = 0;
	assert_int_equal(elf_image_memory(&e, bytes, n, "libc", &err), 0);
	assert_int_equal(e.n_sections, 0);
	assert_int_equal(count_symbols(&e, true, &sum_again), symbols);
	assert_int_equal(sum, sum_again);
	assert_int_equal(count_symbols(&e, false, &sum_again), 0);
	struct elf_symbol y;
	assert_true(elf_find_symbol(&e, "getrusage", &y));
	free(bytes);
}

/* A big-endian header with one section header and one program header, its fields at unaligned places. */
static void the_other_byte_order(void **state)
{
	struct error err = { 0 };
	struct elf_image e;
	struct elf_segment segment;
	struct elf_section section;
	uint8_t bytes[1 + 64 + 56 + 64] = { 0 }, *file = bytes + 1;
	(void)state;
	memcpy(file, "\177ELF\2\2\1", 7);
	file[16 + 1] = ET_DYN;
	file[18 + 1] = EM_PPC64;
	file[32 + 7] = 64;                       /* program headers */
	file[40 + 7] = 64 + 56;                  /* section headers */
	file[54 + 1] = 56;
	file[56 + 1] = 1;
	file[58 + 1] = 64;
	file[60 + 1] = 1;
	file[64 + 3] = PT_LOAD;
	file[64 + 7] = PF_X;
	memcpy(file + 64 + 16, "\0\1\2\3\4\5\6\7", 8);
	file[64 + 56 + 7] = SHT_NOTE;
	memcpy(file + 64 + 56 + 32, "\7\6\5\4\3\2\1\0", 8);
	assert_int_equal(elf_image_memory(&e, file, sizeof bytes - 1, "big", &err), 0);
	assert_int_equal(e.swapped, __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__);
	assert_int_equal(e.machine, EM_PPC64);
	assert_int_equal(e.type, ET_DYN);
	assert_true(elf_segment(&e, 0, &segment));
	assert_int_equal(segment.type, PT_LOAD);
	assert_int_equal(segment.flags, PF_X);
	assert_int_equal(segment.address, 0x0001020304050607);
	assert_true(elf_section(&e, 0, &section));
	assert_int_equal(section.bytes, 0x0706050403020100);
	assert_false(elf_section(&e, 1, &section));
}

/* Behind the last page of the file, too. */
static void a_mapped_file_has_slack(void **state)
{
	struct elf_image e;
	unsigned sum = 0;
	(void)state;
	assert_int_equal(elf_image_open(&e, "/proc/self/exe", NULL), 0);
	for (size_t i = 0; i < ELF_IMAGE_SLACK; i++)
		sum |= e.bytes[e.n + i];
	assert_int_equal(sum, 0);
	elf_image_close(&e);
}

static void refusals(void **state)
{
	struct elf_image e = { .n = 7 };
	struct error err = { 0 };
	(void)state;
	assert_int_equal(elf_image_open(&e, "/nonexistent/x", &err), E_IO);
	assert_non_null(strstr(err.text, "No such file"));
	assert_int_equal(elf_image_open(&e, "/dev/null", &err), E_IO);
	assert_non_null(strstr(err.text, "not a regular file"));
	assert_int_equal(elf_image_memory(&e, "#!/bin/sh\necho hello", 20, "script", &err), E_FORMAT);
	assert_string_equal(err.text, "script: is no ELF file");
	assert_int_equal(elf_image_memory(&e, "", 0, "empty", &err), E_FORMAT);
	uint8_t header[64] = "\177ELF\2\3\1";
	assert_int_equal(elf_image_memory(&e, header, sizeof header, "neither", &err), E_FORMAT);
	assert_non_null(strstr(err.text, "its byte order is none"));
	assert_int_equal(e.n, 7);
}

/* Every length gives an error or tables that can be read to the end; each in a block of exactly its size. */
static void cut_anywhere(void **state)
{
	struct error err;
	uint64_t sum;
	size_t n, refused = 0, step = 1;
	const uint8_t *id;
	(void)state;
	uint8_t *whole = read_file("/proc/self/exe", &n);
	for (size_t length = 0; length < n; length += step) {
		uint8_t *cut = malloc(length + 1);
		assert_non_null(cut);
		memmove(cut + 1, whole, length);
		struct elf_image e;
		err.code = 0;
		if (elf_image_memory(&e, cut + 1, length, "cut", &err)) {
			assert_int_equal(err.code, E_FORMAT);
			refused++;
		} else {
			count_symbols(&e, true, &sum);
			count_symbols(&e, false, &sum);
			elf_build_id(&e, &id);
		}
		free(cut);
		step = length < 2000 ? 1 : 1009;
	}
	assert_true(refused >= 64 && refused < 2000);
	free(whole);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(own_program),
		cmocka_unit_test(local_symbols_are_in_symtab_only),
		cmocka_unit_test(c_library_agrees_with_the_loader),
		cmocka_unit_test(without_section_headers),
		cmocka_unit_test(the_other_byte_order),
		cmocka_unit_test(a_mapped_file_has_slack),
		cmocka_unit_test(refusals),
		cmocka_unit_test(cut_anywhere),
	};
	return cmocka_run_group_tests_name("elf image", tests, NULL, NULL);
}
