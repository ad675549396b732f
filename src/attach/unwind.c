/*
 * Bare words are looked at first (stack.c); this is asked only when some of them point into the allocator and may be
 * leftovers. elfutils' libdwfl unwinds; where a file has no table for a place, it guesses by the frame pointer, and
 * guesses don't count here. All memory that it reads is written down: a thread needs to stand only for a moment to
 * learn its registers, and later for another to see that the words are still the same.
 */
#include "attach/unwind.h"

#include <elfutils/libdwfl.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"

#define WORDS_MAX 65536
#define FRAMES_MAX 4096
#define REGISTERS 17            /* of the x86-64 ABI's DWARF numbers; the last is the return address */

struct word {
	uint64_t address, value;
};

struct unwinder {
	Dwfl *dwfl;
	Dwfl_Callbacks callbacks;
	struct tracee thread;           /* whose registers and memory are read */
	const struct code *code;
	struct word *words;
	size_t n_words, words_capacity;
	unsigned frames;
	bool at_entry, clear;
};

/* --- what libdwfl asks for --- */

static int no_debug_file(Dwfl_Module *m, void **user, const char *name, Dwarf_Addr base, const char *file,
                         const char *link, GElf_Word crc, char **ret)
{
	(void)m, (void)user, (void)name, (void)base, (void)file, (void)link, (void)crc, (void)ret;
	return -1;
}

static pid_t next_thread(Dwfl *dwfl, void *context, void **at)
{
	const struct unwinder *u = context;
	(void)dwfl;
	if (*at)
		return 0;
	*at = context;
	return u->thread.thread;
}

static bool get_thread(Dwfl *dwfl, pid_t thread, void *context, void **at)
{
	const struct unwinder *u = context;
	(void)dwfl;
	*at = context;
	return thread == u->thread.thread;
}

static bool read_memory(Dwfl *dwfl, Dwarf_Addr address, Dwarf_Word *ret, void *context)
{
	struct unwinder *u = context;
	uint64_t value;
	(void)dwfl;
	if (!process_read(u->thread.process, address, &value, sizeof value))
		return false;
	struct word *w = ARRAY_PUSH(u->words, u->n_words, u->words_capacity, WORDS_MAX);
	if (!w)
		return false;
	*w = (struct word){ address, value };
	*ret = value;
	return true;
}

static bool set_registers(Dwfl_Thread *thread, void *context)
{
	const struct user_regs_struct *r = &((const struct unwinder *)context)->thread.regs;
	const Dwarf_Word values[REGISTERS] = {
		r->rax, r->rdx, r->rcx, r->rbx, r->rsi, r->rdi, r->rbp, r->rsp, r->r8,
		r->r9,  r->r10, r->r11, r->r12, r->r13, r->r14, r->r15, r->rip,
	};
	return dwfl_thread_state_registers(thread, 0, REGISTERS, values);
}

static const Dwfl_Thread_Callbacks thread_callbacks = {
	.next_thread = next_thread,
	.get_thread = get_thread,
	.memory_read = read_memory,
	.set_initial_registers = set_registers,
};

/* --- files --- */

static void report(struct unwinder *u, const struct process *p, const struct region *r)
{
	struct elf_image e;
	struct error ignored;
	uint64_t bias;
	int fd = process_file(p, r, &ignored);
	if (fd < 0)
		return;
	if (elf_image_open_fd(&e, fd, process_path(p, r), &ignored)) {
		close(fd);
		return;
	}
	bool good = process_bias(r, &e, &bias);
	elf_image_close(&e);
	/* The file is libdwfl's from there on. */
	if (!good || !dwfl_report_elf(u->dwfl, process_path(p, r), process_path(p, r), fd, bias, false))
		close(fd);
}

struct unwinder *unwinder_new(const struct process *p)
{
	struct unwinder *u = calloc(1, sizeof *u);
	if (!u)
		return NULL;
	u->callbacks.find_debuginfo = no_debug_file;
	u->dwfl = dwfl_begin(&u->callbacks);
	uint64_t inode = 0;
	for (size_t i = 0; u->dwfl && i < p->n_regions; i++) {
		const struct region *r = &p->regions[i];
		if (r->executable && r->inode && r->inode != inode)
			report(u, p, r);
		if (r->executable)
			inode = r->inode;
	}
	u->thread.thread = p->pid;
	if (u->dwfl && dwfl_report_end(u->dwfl, NULL, NULL) == 0 &&
	    dwfl_attach_state(u->dwfl, NULL, p->pid, &thread_callbacks, u))
		return u;
	unwinder_free(u);
	return NULL;
}

void unwinder_free(struct unwinder *u)
{
	if (!u)
		return;
	dwfl_end(u->dwfl);
	free(u->words);
	free(u);
}

/* --- frames --- */

static bool has_table(struct unwinder *u, Dwarf_Addr pc)
{
	Dwfl_Module *m = dwfl_addrmodule(u->dwfl, pc);
	Dwarf_Addr bias;
	Dwarf_CFI *cfi = m ? dwfl_module_eh_cfi(m, &bias) : NULL;
	Dwarf_Frame *frame = NULL;
	bool found = cfi && dwarf_cfi_addrframe(cfi, pc - bias, &frame) == 0;
	free(frame);
	return found;
}

static int look_at_frame(Dwfl_Frame *frame, void *context)
{
	struct unwinder *u = context;
	Dwarf_Addr pc;
	bool exact;
	u->clear = false;
	if (!dwfl_frame_pc(frame, &pc, &exact) || ++u->frames > FRAMES_MAX)
		return DWARF_CB_ABORT;
	bool entry = u->at_entry && u->frames == 1;
	pc -= !exact;
	if (!has_table(u, pc) || (!entry && code_is_unsafe(u->code, pc)))
		return DWARF_CB_ABORT;
	u->clear = true;
	return DWARF_CB_OK;
}

bool unwinder_is_clear(struct unwinder *u, const struct tracee *t, const struct code *code, bool at_entry)
{
	u->thread = *t;
	u->code = code;
	u->at_entry = at_entry;
	u->n_words = 0;
	u->frames = 0;
	u->clear = false;
	return dwfl_getthread_frames(u->dwfl, t->thread, look_at_frame, u) == 0 && u->clear;
}

bool unwinder_still_holds(const struct unwinder *u, const struct tracee *t)
{
	const struct user_regs_struct *a = &u->thread.regs, *b = &t->regs;
	if (u->thread.thread != t->thread || a->rip != b->rip || a->rsp != b->rsp || a->rbp != b->rbp ||
	    a->rbx != b->rbx || a->r12 != b->r12 || a->r13 != b->r13 || a->r14 != b->r14 || a->r15 != b->r15)
		return false;
	for (size_t i = 0; i < u->n_words; i++) {
		uint64_t now;
		if (!process_read(t->process, u->words[i].address, &now, sizeof now) || now != u->words[i].value)
			return false;
	}
	return true;
}
