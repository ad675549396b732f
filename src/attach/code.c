/*
 * A jemalloc library is the allocator as a whole. One that is linked into a program is found by the program's symbols: those
 * with its prefixes, and the local functions that follow a file symbol of one of its sources. The loader is a file of its own, or some
 * functions of libc. fork counts too: jemalloc's handlers hold all its locks while it runs, with no frame of theirs on the stack.
 */
#include "attach/code.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

#define RANGES_MAX 200000
#define BYTES_OF_STATIC_JEMALLOC ((uint64_t)8 << 20)

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

/* Its sources. Names that other programs' sources are likely to have count only between functions that surely are its own. */
static bool is_source(const char *name, bool *ret_sure)
{
	static const char *const sure[] = {
		"arena.c", "background_thread.c", "bin_info.c", "buf_writer.c", "cache_bin.c", "ckh.c", "ctl.c", "decay.c", "ecache.c",
		"edata.c", "edata_cache.c", "ehooks.c", "emap.c", "eset.c", "exp_grow.c", "extent.c", "extent_dss.c", "extent_mmap.c",
		"fxp.c", "hpa.c", "hpa_hooks.c", "hpdata.c", "jemalloc.c", "malloc_io.c", "nstime.c", "pa_extra.c", "pac.c", "pai.c",
		"peak_event.c", "prof.c", "prof_data.c", "prof_log.c", "prof_recent.c", "prof_stack_range.c", "prof_stats.c",
		"prof_sys.c", "prof_threshold.c", "psset.c", "rtree.c", "safety_check.c", "san.c", "san_bump.c", "sz.c", "tcache.c",
		"thread_event.c", "thread_event_registry.c", "tsd.c", "witness.c",
	};
	static const char *const likely[] = {
		"base.c", "bin.c", "bitmap.c", "batcher.c", "conf.c", "counter.c", "div.c", "hook.c", "inspect.c", "large.c", "log.c",
		"mutex.c", "pa.c", "pages.c", "sc.c", "sec.c", "stats.c", "test_hooks.c", "ticker.c", "util.c", "zone.c",
	};
	for (size_t i = 0; i < sizeof sure / sizeof *sure; i++)
		if (strcmp(name, sure[i]) == 0)
			return *ret_sure = true;
	*ret_sure = false;
	for (size_t i = 0; i < sizeof likely / sizeof *likely; i++)
		if (strcmp(name, likely[i]) == 0)
			return true;
	return false;
}

static bool is_interface(const char *name)
{
	static const char *const names[] = {
		"malloc", "calloc", "realloc", "free", "posix_memalign", "aligned_alloc", "memalign", "valloc", "pvalloc", "mallocx", "rallocx",
		"xallocx", "sallocx", "dallocx", "sdallocx", "nallocx", "mallctl", "mallctlnametomib", "mallctlbymib",
		"malloc_stats_print", "malloc_usable_size", "free_sized", "free_aligned_sized", "reallocarray",
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

enum belongs { NOT, SURELY, LIKELY, LOCALLY };

/* Walks the program's functions in the order of the table, which is what file symbols mean something in. */
struct walk {
	struct elf_symbols symbols;
	const char *prefix;
	bool in_source, in_sure_source;
};

static enum belongs next_function(struct walk *w, struct elf_symbol *y, bool *ret_end)
{
	*ret_end = !elf_symbols_next(&w->symbols, y);
	if (*ret_end)
		return NOT;
	if (y->type == STT_FILE) {
		w->in_source = is_source(y->name, &w->in_sure_source);
		return NOT;
	}
	if (y->type != STT_FUNC || y->section == SHN_UNDEF || !y->value)
		return NOT;
	if (is_its_name(y->name, w->prefix))
		return SURELY;
	if (y->binding != STB_LOCAL || !w->in_source)
		return NOT;
	return w->in_sure_source ? LOCALLY : LIKELY;
}

static bool add_static_jemalloc(struct code *c, const struct elf_image *e, uint64_t bias, const char *prefix)
{
	uint64_t low = UINT64_MAX, high = 0;
	size_t local = 0, added = 0;
	bool ended = false;
	for (int pass = 0; pass < 2; pass++, ended = false) {
		struct walk w = { .prefix = prefix };
		struct elf_symbol y;
		if (!elf_symbols_begin(&w.symbols, e, false) && !elf_symbols_begin(&w.symbols, e, true))
			return false;
		while (!ended) {
			enum belongs b = next_function(&w, &y, &ended);
			uint64_t end = y.value + (y.bytes ? y.bytes : 16);
			if (b == NOT || (b == LIKELY && (pass == 0 || y.value < low || y.value >= high)))
				continue;
			if (pass == 0) {
				low = y.value < low ? y.value : low;
				high = end > high ? end : high;
				local += b == LOCALLY;
			} else if (add_range(c, y.value + bias, end + bias)) {
				added++;
			} else {
				return false;
			}
		}
	}
	/* Without file symbols its local functions have no names of their own: all between its first and last then. */
	if (!local && high > low && high - low < BYTES_OF_STATIC_JEMALLOC)
		return add_range(c, low + bias, high + bias);
	return added > 0;
}

/* --- loader and fork --- */

static bool is_delicate(const char *name)
{
	static const char *const beginnings[] = { "_dl_", "__dl", "dl_", "_dlstart", "dlopen", "dlmopen", "dlclose", "dlsym", "dlvsym",
	                                          "dladdr", "dlinfo", "__libc_fork", "__run_fork_handlers", "__run_prefork_handlers" };
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
	for (const uint8_t *from = at; (hit = memmem(from, (size_t)(end - from), ending, sizeof ending)); from = hit + 1) {
		uint64_t place = address + (uint64_t)(hit - at);
		if (c->n_restorers == CODE_RESTORERS)
			return;
		if (hit - at >= 3 && hit[-3] == 0x48 && hit[-2] == 0xc7 && hit[-1] == 0xc0)
			c->restorers[c->n_restorers++] = place - 3;
		else if (hit - at >= 1 && hit[-1] == 0xb8)
			c->restorers[c->n_restorers++] = place - 1;
	}
}

static void find_instructions(struct code *c, const struct elf_image *e, uint64_t bias)
{
	struct elf_segment s;
	for (uint32_t i = 0; elf_segment(e, i, &s); i++) {
		if (s.type != PT_LOAD || !(s.flags & PF_X) || s.offset > e->n || s.file_bytes > e->n - s.offset)
			continue;
		const uint8_t *at = e->bytes + s.offset;
		const uint8_t *exchange = memmem(at, s.file_bytes, "\x97\xc3", 2), *call = memmem(at, s.file_bytes, "\x0f\x05\xc3", 3);
		if (exchange && !c->exchange)
			c->exchange = s.address + bias + (uint64_t)(exchange - at);
		if (call && !c->system_call)
			c->system_call = s.address + bias + (uint64_t)(call - at);
		find_restorers(c, at, s.file_bytes, s.address + bias);
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
	static const uint8_t endbr[] = { 0xf3, 0x0f, 0x1e, 0xfa }, add_fs[] = { 0x64, 0x48, 0x03, 0x04, 0x25, 0, 0, 0, 0 },
	                     move_fs[] = { 0x64, 0x48, 0x8b, 0x04, 0x25, 0, 0, 0, 0 };
	uint8_t code[32];
	struct elf_symbol y;
	struct elf_segment s;
	if (!elf_find_symbol(e, "__errno_location", &y) && !elf_find_symbol(e, "___errno_location", &y))
		return;
	uint32_t i = 0;
	while (elf_segment(e, i, &s) && !(s.type == PT_LOAD && y.value >= s.address && y.value - s.address < s.file_bytes))
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
	return starts(base, "libc.so") || starts(base, "libc-2.") || starts(base, "ld-musl-") || starts(base, "libc.musl-") ||
	       starts(base, "libdl.so") || starts(base, "libdl-2.") || starts(base, "libpthread.so") || starts(base, "libpthread-2.");
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

static int look_into(struct code *c, const struct process *p, const struct region *r, bool first_of_file, struct error *err)
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
	return good ? 0 : error_set(err, E_UNSUPPORTED, "%.200s: cannot tell where the allocator's code is in it", path);
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
		return error_set(err, E_UNSUPPORTED, "process %d: cannot tell where its allocator's code is", (int)p->pid);
	if (!c->exchange || !c->system_call || !c->n_restorers)
		return error_set(err, E_UNSUPPORTED, "process %d: its C library has no instructions to return to", (int)p->pid);
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
		size_t takes = 2 + (mode != 3 && operand == 4) + (mode == 1 ? 1 : mode == 2 || (mode == 0 && operand == 5) ? 4 : 0);
		if (takes == length)
			return true;
	}
	return false;
}
