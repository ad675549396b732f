/*
 * Every aligned word of the stack in use is looked at, from rsp up to the thread's own control block (at fs_base; for
 * the main thread to the end of the mapping). A word that is a return address into the allocator's code means that a
 * call of it may be under way. Words left behind by calls that are over make this too careful at times, never too
 * bold. Where a signal handler runs, what it interrupted is no return address, so then every word that points there
 * counts.
 */
#include "attach/stack.h"

#include <string.h>

#define ROOM_BYTES ((uint64_t)64 << 10)         /* that a dump may need */
#define SCANNED_MAX ((uint64_t)64 << 20)
#define BLOCK 16384

static bool ends_in_call(pid_t process, uint64_t address)
{
	uint8_t before[7];
	return process_read(process, address - sizeof before, before, sizeof before) &&
	       code_ends_in_call(before, sizeof before);
}

/* Where its own stack ends; 0 when it isn't on it. */
static uint64_t end_of_stack(const struct tracee *t, const struct process *map)
{
	const struct region *r = process_region_at(map, t->regs.rsp);
	if (!r || !r->writable)
		return 0;
	if (strcmp(process_path(map, r), "[stack]") == 0)
		return r->end;
	if (t->regs.fs_base <= t->regs.rsp || t->regs.fs_base >= r->end || t->regs.rsp - r->start < ROOM_BYTES)
		return 0;
	return t->regs.fs_base;
}

enum stack_verdict stack_check(const struct tracee *t, const struct process *map, const struct code *code,
                               bool at_entry)
{
	uint64_t words[BLOCK / 8];
	uint64_t at = t->regs.rsp, end = end_of_stack(t, map);
	bool in_handler = false, seen = false;
	if (!end || end - at > SCANNED_MAX || (at & 7))
		return STACK_FOREIGN;
	if (!at_entry && code_is_unsafe(code, t->regs.rip))
		return STACK_IN_ALLOCATOR;
	end &= ~7ull;
	while (at < end) {
		size_t n = end - at < BLOCK ? (size_t)(end - at) : BLOCK;
		if (!process_read(t->process, at, words, n))
			return STACK_FOREIGN;
		for (size_t i = 0; i < n / 8; i++) {
			if (code_is_restorer(code, words[i]))
				in_handler = true;
			if (!code_is_unsafe(code, words[i]))
				continue;
			seen = true;
			if (in_handler || ends_in_call(t->process, words[i]))
				return STACK_IN_ALLOCATOR;
		}
		at += n;
	}
	return seen && in_handler ? STACK_IN_ALLOCATOR : STACK_SAFE;
}
