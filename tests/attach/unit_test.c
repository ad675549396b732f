/* What attach knows before it touches a process: call instructions, jemalloc's files, /proc's texts. */
#include "../base/test.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>

#include "attach/code.h"
#include "attach/jemalloc_file.h"
#include "attach/process.h"

static void calls_are_seen_before_their_return_address(void **state)
{
	static const struct { uint8_t bytes[7]; bool call; const char *text; } cases[] = {
		{ { 0x90, 0x90, 0xe8, 1, 2, 3, 4 }, true, "call relative" },
		{ { 0x90, 0x90, 0x90, 0x90, 0x90, 0xff, 0xd0 }, true, "call *%rax" },
		{ { 0x90, 0x90, 0x90, 0x90, 0x41, 0xff, 0xd4 }, true, "call *%r12" },
		{ { 0x90, 0x90, 0x90, 0x90, 0xff, 0x53, 0x18 }, true, "call *0x18(%rbx)" },
		{ { 0x90, 0xff, 0x15, 1, 2, 3, 4 }, true, "call *x(%rip)" },
		{ { 0x90, 0xff, 0x90, 1, 2, 3, 4 }, true, "call *x(%rax)" },
		{ { 0xff, 0x94, 0x24, 1, 2, 3, 4 }, true, "call *x(%rsp)" },
		{ { 0xff, 0x14, 0xc5, 1, 2, 3, 4 }, true, "call *x(,%rax,8)" },
		{ { 0x90, 0x90, 0x90, 0xff, 0x54, 0x24, 8 }, true, "call *8(%rsp)" },
		{ { 0x90, 0x90, 0x90, 0x90, 0xff, 0x14, 0x24 }, true, "call *(%rsp)" },
		{ { 0x90, 0x90, 0xe9, 1, 2, 3, 4 }, false, "jmp" },
		{ { 0x90, 0x90, 0x90, 0x90, 0x90, 0xff, 0xe0 }, false, "jmp *%rax" },
		{ { 0x90, 0x90, 0x90, 0x90, 0x90, 0x0f, 0x05 }, false, "syscall" },
		{ { 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90 }, false, "nops" },
	};
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		if (code_ends_in_call(cases[i].bytes, 7) != cases[i].call)
			fail_msg("%s", cases[i].text);
}

static __attribute__((noinline)) const uint8_t *return_address(void)
{
	return __builtin_return_address(0);
}

static void the_compilers_calls_are_seen(void **state)
{
	const uint8_t *(*volatile by_pointer)(void) = return_address;
	(void)state;
	assert_true(code_ends_in_call(return_address() - 7, 7));
	assert_true(code_ends_in_call(by_pointer() - 7, 7));
}

static void prefixes_follow_from_variables(void **state)
{
	char prefix[16];
	(void)state;
	jemalloc_file_prefix("MALLOC_CONF", prefix, sizeof prefix);
	assert_string_equal(prefix, "");
	jemalloc_file_prefix("_RJEM_MALLOC_CONF", prefix, sizeof prefix);
	assert_string_equal(prefix, "_rjem_");
	jemalloc_file_prefix("MY2_MALLOC_CONF", prefix, sizeof prefix);
	assert_string_equal(prefix, "my2_");
	jemalloc_file_prefix("ABCDEFGHIJKLMNOP_MALLOC_CONF", prefix, sizeof prefix);
	assert_string_equal(prefix, "");
}

static void only_jemalloc_is_taken_for_it(void **state)
{
	struct elf_image e;
	struct jemalloc_file f;
	struct error err = { 0 };
	Dl_info libc;
	(void)state;
	assert_true(dladdr(dlsym(RTLD_DEFAULT, "getrusage"), &libc) != 0);
	assert_int_equal(elf_image_open(&e, libc.dli_fname, &err), 0);
	assert_false(jemalloc_file_look(&e, &f));
	elf_image_close(&e);
	/* This program has the recognizer inside, which must not recognize itself. */
	assert_int_equal(elf_image_open(&e, "/proc/self/exe", &err), 0);
	assert_false(jemalloc_file_look(&e, &f));
	elf_image_close(&e);
	const char *library = getenv("LIBJEMALLOC");
	if (!library || elf_image_open(&e, library, &err))
		skip();
	assert_true(jemalloc_file_look(&e, &f));
	assert_int_equal(f.n_variables, 1);
	assert_string_equal(f.variables[0], "MALLOC_CONF");
	assert_true(f.version[0] >= '4' && f.version[0] <= '9' && f.version[1] == '.');
	elf_image_close(&e);
}

static void a_process_as_it_sees_itself(void **state)
{
	struct process p;
	struct error err = { 0 };
	static const char strange[] = "/tmp/heapgauge test\nof maps";
	char exe[PATH_MAX] = "";
	(void)state;
	int fd = open(strange, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0 && ftruncate(fd, 4096) == 0);
	void *map = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
	assert_ptr_not_equal(map, MAP_FAILED);
	unlink(strange);
	assert_int_equal(process_open(&p, getpid(), &err), 0);
	assert_true(readlink("/proc/self/exe", exe, sizeof exe - 1) > 0);
	assert_string_equal(p.exe, exe);
	assert_true(p.is64 == (sizeof(void *) == 8) && !p.is_static);
	const struct region *r = process_region_at(&p, (uintptr_t)map);
	assert_non_null(r);
	assert_string_equal(process_path(&p, r), strange);
	assert_true(r->readable && !r->writable && !r->executable);
	r = process_region_at(&p, (uintptr_t)a_process_as_it_sees_itself);
	assert_true(r && r->executable);
	struct elf_image e;
	struct elf_symbol y;
	uint64_t bias;
	assert_int_equal(process_image(&p, r, &e, &err), 0);
	assert_true(process_bias(r, &e, &bias));
	assert_true(elf_find_symbol(&e, "a_process_as_it_sees_itself", &y));
	assert_int_equal(y.value + bias, (uintptr_t)a_process_as_it_sees_itself);
	elf_image_close(&e);
	assert_null(process_region_at(&p, 1));
	process_close(&p);
	munmap(map, 4096);
	close(fd);
}

static void endpoints_are_read_from_descriptors(void **state)
{
	char url[64] = "untouched";
	(void)state;
	assert_false(process_endpoint(getpid(), url, sizeof url));
	int other = memfd_create("heapgauge-dump", MFD_CLOEXEC),
	    fd = memfd_create("heapgauge:unix:/run/a b", MFD_CLOEXEC);
	assert_true(fd >= 0);
	assert_true(process_endpoint(getpid(), url, sizeof url));
	assert_string_equal(url, "unix:/run/a b");
	assert_false(process_endpoint(getpid(), url, 5));
	close(fd);
	close(other);
}

static void numbers_of_status(void **state)
{
	uint64_t n;
	(void)state;
	assert_true(process_status_number(getpid(), getpid(), "Tgid", 10, &n));
	assert_int_equal(n, getpid());
	assert_true(process_status_number(getpid(), getpid(), "SigIgn", 16, &n));
	assert_false(process_status_number(getpid(), getpid(), "NoSuchKey", 10, &n));
	assert_false(process_status_number(getpid(), getpid(), "Name", 10, &n));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(calls_are_seen_before_their_return_address),
		cmocka_unit_test(the_compilers_calls_are_seen),
		cmocka_unit_test(prefixes_follow_from_variables),
		cmocka_unit_test(only_jemalloc_is_taken_for_it),
		cmocka_unit_test(a_process_as_it_sees_itself),
		cmocka_unit_test(endpoints_are_read_from_descriptors),
		cmocka_unit_test(numbers_of_status),
	};
	return cmocka_run_group_tests_name("attach", tests, NULL, NULL);
}
