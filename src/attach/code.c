/*
 * A jemalloc library is the allocator as a whole. One that is linked into a program is found by the program's symbols:
 * those with its prefixes, and the local functions that follow a file symbol of one of its sources. The loader is a
 * file of its own, or some functions of libc. fork counts too: jemalloc's handlers hold all its locks while it runs,
 * with no frame of theirs on the stack.
 */
#include "attach/code.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

#define RANGES_MAX 1000000
#define FUNCTIONS_MAX 20000000

static bool starts(const char *name, const char *with)
{
	return strncmp(name, with, strlen(with)) == 0;
}

static bool add_range(struct code *c, uint64_t start, uint64_t end)
{
	struct code_range *r = ARRAY_PUSH(c->unsafe, c->n_unsafe, c->unsafe_capacity, RANGES_MAX);
	if (r)
		*r = (struct code_range){ start, end };
	return r != NULL;
}

/* --- jemalloc in a program --- */

/*
 * Its sources, by the word before the first dot. Those that others are likely to have too count only among what surely
 * is its own.
 */
static bool is_source(const char *name, bool *ret_sure)
{
	static const char *const sure[] = {
		"arena", "background_thread", "bin_info", "buf_writer", "cache_bin", "ckh", "ctl", "decay",
		"ecache", "edata", "edata_cache", "ehooks", "emap", "eset", "exp_grow", "extent", "extent_dss",
		"extent_mmap", "fxp", "hpa", "hpa_hooks", "hpdata", "jemalloc", "malloc_io", "nstime", "pa_extra",
		"pac", "pai", "peak_event", "prof", "prof_data", "prof_log", "prof_recent", "prof_stack_range",
		"prof_stats", "prof_sys", "prof_threshold", "psset", "rtree", "safety_check", "san", "san_bump",
		"sz", "tcache", "thread_event", "thread_event_registry", "tsd", "witness",
	};
	static const char *const likely[] = {
		"base", "bin", "bitmap", "batcher", "conf", "counter", "div", "hook", "inspect", "large", "log",
		"mutex", "pa", "pages", "sc", "sec", "stats", "test_hooks", "ticker", "util", "zone",
	};
	size_t n = strcspn(name, ".");
	for (size_t i = 0; i < sizeof sure / sizeof *sure; i++)
		if (strlen(sure[i]) == n && strncmp(name, sure[i], n) == 0)
			return *ret_sure = true;
	*ret_sure = false;
	for (size_t i = 0; i < sizeof likely / sizeof *likely; i++)
		if (strlen(likely[i]) == n && strncmp(name, likely[i], n) == 0)
			return true;
	return false;
}

static bool is_interface(const char *name)
{
	static const char *const names[] = {
		"malloc", "calloc", "realloc", "free", "posix_memalign", "aligned_alloc", "memalign", "valloc",
		"pvalloc", "mallocx", "rallocx", "xallocx", "sallocx", "dallocx", "sdallocx", "nallocx", "mallctl",
		"mallctlnametomib", "mallctlbymib", "malloc_stats_print", "malloc_usable_size", "free_sized",
		"free_aligned_sized", "reallocarray",
	};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (strcmp(name, names[i]) == 0)
			return true;
	return false;
}

static bool is_its_name(const char *name, const char *prefix)
{
	size_t n = strlen(prefix);
	if (starts(name, "je_") || (n && starts(name, prefix)))
		return true;
	return !n && is_interface(name);
}

enum kind { FOREIGN, UNKNOWN, LIKELY, SURELY };

struct function {
	uint64_t start, end;
	enum kind kind;
	bool its;
};

struct functions {
	struct function *items;
	size_t n, capacity;
	bool by_source;         /* its local functions are known by file symbols */
};

/* A local function without a file symbol is unknown, unless its name says that it is C++ or Rust. */
static enum kind kind_of(const struct elf_symbol *y, const char *prefix, bool in_source, bool in_sure_source)
{
	if (is_its_name(y->name, prefix))
		return SURELY;
	if (y->binding != STB_LOCAL || starts(y->name, "_Z") || starts(y->name, "_R"))
		return FOREIGN;
	return !in_source ? UNKNOWN : in_sure_source ? SURELY : LIKELY;
}

static bool list_functions(struct functions *f, const struct elf_image *e, const char *prefix)
{
	struct elf_symbols s;
	struct elf_symbol y;
	bool in_source = false, sure = false;
	if (!elf_symbols_begin(&s, e, false) && !elf_symbols_begin(&s, e, true))
		return false;
	while (elf_symbols_next(&s, &y)) {
		if (y.type == STT_FILE)
			in_source = is_source(y.name, &sure);
		if (y.type != STT_FUNC || y.section == SHN_UNDEF || !y.value)
			continue;
		struct function *to = ARRAY_PUSH(f->items, f->n, f->capacity, FUNCTIONS_MAX);
		if (!to)
			return false;
		*to = (struct function){ y.value, y.value + (y.bytes ? y.bytes : 16), kind_of(&y, prefix, in_source, sure), false };
		f->by_source |= in_source && sure && y.binding == STB_LOCAL;
	}
	return true;
}

static int by_address(const void *a, const void *b)
{
	const struct function *x = a, *y = b;
	return x->start < y->start ? -1 : x->start > y->start;
}

/* An unknown function is its own when the next known one, in the direction of step, is. */
static void mark_neighbours(struct functions *f, size_t from, size_t step)
{
	enum kind last = FOREIGN;
	for (size_t i = from, n = f->n; n > 0; n--, i += step) {
		if (f->items[i].kind != UNKNOWN)
			last = f->items[i].kind;
		else if (last == SURELY)
			f->items[i].its = true;
	}
}

/* Likely ones are its own between its first and its last sure one. */
static void mark_between(struct functions *f)
{
	size_t first = 0, last = f->n;
	while (first < f->n && f->items[first].kind != SURELY)
		first++;
	while (last > first && f->items[last - 1].kind != SURELY)
		last--;
	for (size_t i = first; i < last; i++)
		f->items[i].its |= f->items[i].kind == LIKELY || f->items[i].kind == SURELY;
}

/*
 * In order of address. Where file symbols were stripped, neighbours tell: a linker keeps together what came in one
 * file.
 */
static bool add_functions(struct code *c, struct functions *f, uint64_t bias)
{
	size_t added = 0;
	mark_between(f);
	if (!f->by_source && f->n) {
		mark_neighbours(f, 0, 1);
		mark_neighbours(f, f->n - 1, (size_t)-1);
	}
	for (size_t i = 0; i < f->n; i++) {
		if (!f->items[i].its)
			continue;
		if (!add_range(c, f->items[i].start + bias, f->items[i].end + bias))
			return false;
		added++;
	}
	return added > 0;
}

static bool add_static_jemalloc(struct code *c, const struct elf_image *e, uint64_t bias, const char *prefix)
{
	struct functions f = { 0 };
	bool good = list_functions(&f, e, prefix);
	if (good && f.n)
		qsort(f.items, f.n, sizeof *f.items, by_address);
	good = good && add_functions(c, &f, bias);
	free(f.items);
	return good;
}

/* --- loader and fork --- */

static bool is_delicate(const char *name)
{
	static const char *const beginnings[] = {
		"_dl_", "__dl", "dl_", "_dlstart", "dlopen", "dlmopen", "dlclose", "dlsym", "dlvsym", "dladdr",
		"dlinfo", "__libc_fork", "__run_fork_handlers", "__run_prefork_handlers",
	};
	for (size_t i = 0; i < sizeof beginnings / sizeof *beginnings; i++)
		if (starts(name, beginnings[i]))
			return true;
	return strcmp(name, "fork") == 0 || strcmp(name, "__fork") == 0 || strcmp(name, "_Fork") == 0;
}

static bool add_delicate(struct code *c, const struct elf_image *e, uint64_t bias)
{
	for (int dynamic = 0; dynamic < 2; dynamic++) {
		struct elf_symbols s;
		struct elf_symbol y;
		if (!elf_symbols_begin(&s, e, dynamic))
			continue;
		while (elf_symbols_next(&s, &y))
			if (y.type == STT_FUNC && y.section != SHN_UNDEF && y.value && is_delicate(y.name) &&
			    !add_range(c, y.value + bias, y.value + bias + (y.bytes ? y.bytes : 16)))
				return false;
	}
	return true;
}

/* --- instructions --- */

static void find_restorers(struct code *c, const uint8_t *at, size_t n, uint64_t address)
{
	/* mov $15, %rax or %eax; syscall */
	static const uint8_t ending[] = { 0x0f, 0, 0, 0, 0x0f, 0x05 };
	const uint8_t *end = at + n, *hit;
	for (const uint8_t *from = at; (hit = memmem(from, (size_t)(end - from), ending, sizeof ending));
	     from = hit + 1) {
		uint64_t place = address + (uint64_t)(hit - at);
		if (c->n_restorers == CODE_RESTORERS)
			return;
		if (hit - at >= 3 && hit[-3] == 0x48 && hit[-2] == 0xc7 && hit[-1] == 0xc0)
			c->restorers[c->n_restorers++] = place - 3;
		else if (hit - at >= 1 && hit[-1] == 0xb8)
			c->restorers[c->n_restorers++] = place - 1;
	}
}

static void find_once(uint64_t *ret, const uint8_t *at, size_t n, uint64_t address, const char *bytes, size_t length)
{
	const uint8_t *hit = *ret ? NULL : memmem(at, n, bytes, length);
	if (hit)
		*ret = address + (uint64_t)(hit - at);
}

/* Any register that a system call leaves alone; not the stack pointer. */
static void find_exchange(struct code *c, const uint8_t *at, size_t n, uint64_t address)
{
	static const uint8_t others[] = { 7, 6, 5, 3, 2 };
	for (size_t i = 0; i < sizeof others && !c->exchange; i++) {
		const char bytes[] = { (char)(0x90 + others[i]), (char)0xc3 };
		find_once(&c->exchange, at, n, address, bytes, sizeof bytes);
		c->exchanged = others[i];
	}
}

static void find_instructions(struct code *c, const struct elf_image *e, uint64_t bias)
{
	struct elf_segment s;
	for (uint32_t i = 0; elf_segment(e, i, &s); i++) {
		if (s.type != PT_LOAD || !(s.flags & PF_X) || s.offset > e->n || s.file_bytes > e->n - s.offset)
			continue;
		const uint8_t *at = e->bytes + s.offset;
		uint64_t address = s.address + bias;
		find_exchange(c, at, s.file_bytes, address);
		find_once(&c->system_call, at, s.file_bytes, address, "\x0f\x05\xc3", 3);
		find_once(&c->pop, at, s.file_bytes, address, "\x58\xc3", 2);
		find_restorers(c, at, s.file_bytes, address);
	}
}

static bool skip(const uint8_t **at, size_t *n, const void *bytes, size_t length)
{
	if (*n < length || memcmp(*at, bytes, length) != 0)
		return false;
	*at += length;
	*n -= length;
	return true;
}

/*
 * __errno_location is three instructions in the C libraries there are, so it is read instead of called:
 *   glibc   mov offset(%rip), %rax; add %fs:0, %rax; ret        static:  mov $offset, %rax; add ...
 *   musl    mov %fs:0, %rax; add $offset, %rax; ret
 */
static void find_errno(struct code *c, const struct elf_image *e, uint64_t bias)
{
	static const uint8_t endbr[] = { 0xf3, 0x0f, 0x1e, 0xfa },
	                     add_fs[] = { 0x64, 0x48, 0x03, 0x04, 0x25, 0, 0, 0, 0 },
	                     move_fs[] = { 0x64, 0x48, 0x8b, 0x04, 0x25, 0, 0, 0, 0 };
	uint8_t code[32];
	struct elf_symbol y;
	struct elf_segment s;
	if (!elf_find_symbol(e, "__errno_location", &y) && !elf_find_symbol(e, "___errno_location", &y))
		return;
	uint32_t i = 0;
	while (elf_segment(e, i, &s) &&
	       !(s.type == PT_LOAD && y.value >= s.address && y.value - s.address < s.file_bytes))
		i++;
	uint64_t offset = y.value - s.address + s.offset;
	if (!elf_segment(e, i, &s) || offset > e->n || e->n - offset < sizeof code)
		return;
	memcpy(code, e->bytes + offset, sizeof code);
	const uint8_t *at = code;
	size_t n = sizeof code;
	int32_t number;
	skip(&at, &n, endbr, sizeof endbr);
	bool in_memory = skip(&at, &n, "\x48\x8b\x05", 3);
	if (in_memory || skip(&at, &n, "\x48\xc7\xc0", 3)) {
		memcpy(&number, at, sizeof number);
		uint64_t next = y.value + bias + (uint64_t)(at + 4 - code);
		at += 4;
		n -= 4;
		if (!skip(&at, &n, add_fs, sizeof add_fs) || *at != 0xc3)
			return;
		c->errno_is = in_memory ? ERRNO_OFFSET_IN_MEMORY : ERRNO_AT_OFFSET;
		c->errno_offset = in_memory ? next + (uint64_t)(int64_t)number : (uint64_t)(int64_t)number;
	} else if (skip(&at, &n, move_fs, sizeof move_fs) && skip(&at, &n, "\x48\x83\xc0", 3) && at[1] == 0xc3) {
		c->errno_is = ERRNO_AT_OFFSET;
		c->errno_offset = (uint64_t)(int64_t)(int8_t)at[0];
	}
}

/* --- all files --- */

static bool is_loader(const char *base)
{
	return starts(base, "ld-linux") || starts(base, "ld64.so") || starts(base, "ld.so") || starts(base, "ld-2.");
}

static bool is_libc(const char *base)
{
	return starts(base, "libc.so") || starts(base, "libc-2.") || starts(base, "ld-musl-") ||
	       starts(base, "libc.musl-") || starts(base, "libdl.so") || starts(base, "libdl-2.") ||
	       starts(base, "libpthread.so") || starts(base, "libpthread-2.");
}

static const struct process_jemalloc *jemalloc_in(const struct process *p, const struct region *r)
{
	for (size_t i = 0; i < p->n_jemallocs; i++) {
		const struct region *other = &p->regions[p->jemallocs[i].region];
		if (other->inode == r->inode && other->device == r->device)
			return &p->jemallocs[i];
	}
	return NULL;
}

static int look_into(struct code *c, const struct process *p, const struct region *r, bool first_of_file,
                     struct error *err)
{
	const char *path = process_path(p, r), *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
	const struct process_jemalloc *j = jemalloc_in(p, r);
	bool program = strcmp(path, p->exe) == 0;
	if ((j && j->library) || is_loader(base)) {
		if (!add_range(c, r->start, r->end))
			return error_nomem(err, "the ranges of code");
		return 0;
	}
	if (!first_of_file || !(j || is_libc(base) || program))
		return 0;
	struct elf_image e;
	uint64_t bias;
	int failed = process_image(p, r, &e, err);
	if (failed)
		return failed;
	bool good = process_bias(r, &e, &bias);
	for (size_t i = 0; good && j && i < p->n_jemallocs; i++)
		if (p->regions[p->jemallocs[i].region].inode == r->inode && p->jemallocs[i].mallctl)
			good = add_static_jemalloc(c, &e, bias, p->jemallocs[i].prefix);
	if (good && (is_libc(base) || p->is_static))
		good = add_delicate(c, &e, bias);
	if (good) {
		find_instructions(c, &e, bias);
		if (c->errno_is == ERRNO_UNKNOWN)
			find_errno(c, &e, bias);
	}
	elf_image_close(&e);
	return good ? 0
	            : error_set(err, E_UNSUPPORTED, "%.200s: cannot tell where the allocator's code is in it", path);
}

static int by_start(const void *a, const void *b)
{
	const struct code_range *x = a, *y = b;
	return x->start < y->start ? -1 : x->start > y->start;
}

static void join_ranges(struct code *c)
{
	size_t n = 0;
	if (c->n_unsafe)
		qsort(c->unsafe, c->n_unsafe, sizeof *c->unsafe, by_start);
	for (size_t i = 0; i < c->n_unsafe; i++) {
		if (n && c->unsafe[i].start <= c->unsafe[n - 1].end) {
			if (c->unsafe[i].end > c->unsafe[n - 1].end)
				c->unsafe[n - 1].end = c->unsafe[i].end;
		} else {
			c->unsafe[n++] = c->unsafe[i];
		}
	}
	c->n_unsafe = n;
}

int code_find(struct code *c, const struct process *p, struct error *err)
{
	memset(c, 0, sizeof *c);
	uint64_t inode = 0;
	for (size_t i = 0; i < p->n_regions; i++) {
		const struct region *r = &p->regions[i];
		if (!r->executable || !r->inode)
			continue;
		int failed = look_into(c, p, r, r->inode != inode, err);
		if (failed)
			return failed;
		inode = r->inode;
	}
	join_ranges(c);
	if (!c->n_unsafe)
		return error_set(err, E_UNSUPPORTED, "process %d: cannot tell where its allocator's code is",
		                 (int)p->pid);
	if (!c->exchange || !c->system_call || (!c->n_restorers && !c->pop))
		return error_set(err, E_UNSUPPORTED, "process %d: its C library has no instructions to return to",
		                 (int)p->pid);
	return 0;
}

void code_finish(struct code *c)
{
	if (!c)
		return;
	free(c->unsafe);
	memset(c, 0, sizeof *c);
}

bool code_is_unsafe(const struct code *c, uint64_t address)
{
	size_t low = 0, high = c->n_unsafe;
	while (low < high) {
		size_t middle = (low + high) / 2;
		if (c->unsafe[middle].end <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low < c->n_unsafe && c->unsafe[low].start <= address;
}

bool code_is_restorer(const struct code *c, uint64_t address)
{
	for (size_t i = 0; i < c->n_restorers; i++)
		if (c->restorers[i] == address)
			return true;
	return false;
}

bool code_ends_in_call(const uint8_t *bytes, size_t n)
{
	const uint8_t *end = bytes + n;
	if (n >= 5 && end[-5] == 0xe8)
		return true;
	/* ff /2 with all its forms of operands, some with a prefix before it. */
	for (size_t length = 2; length <= n; length++) {
		const uint8_t *at = end - length;
		if (at[0] != 0xff || (at[1] & 0x38) != 0x10)
			continue;
		unsigned mode = at[1] >> 6, operand = at[1] & 7;
		bool scaled = mode != 3 && operand == 4;
		unsigned base = scaled && length > 2 ? at[2] & 7 : operand;
		size_t takes = 2 + scaled + (mode == 1 ? 1 : mode == 2 || (mode == 0 && base == 5) ? 4 : 0);
		if (takes == length)
			return true;
	}
	return false;
}
