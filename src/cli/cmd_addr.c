/*
 * addr: what addr2line does, in its options and in its output to the byte, by our own readers. Programs run it as a child and
 * talk to it through pipes, so what has arrived is answered and flushed before more is waited for; but all that has arrived
 * is asked at once, which is what makes it fast.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/elf_image.h"
#include "base/memory.h"
#include "base/text.h"
#include "cli/addr_symbols.h"
#include "cli/addr_text.h"
#include "cli/command.h"
#include "cli/naming.h"
#include "cli/progress.h"

#define BATCH_MAX ((size_t)64 << 10)         /* addresses */
#define LINE_MAX_BYTES 99                    /* what addr2line takes for a line; the rest is the next one */
#define CROWD 16                             /* lines that nobody writes who waits for each answer */
#define REMEMBER_MOST 256                    /* addresses at once; answers to more are not kept for later */
#define CROWD_WAIT_MS 2
#define POOR "; names are those of symbols: no lines, and inlined functions are missing"
#define REMEMBERED_MAX ((size_t)1 << 20)     /* addresses, and as many times 256 bytes of text */

struct addr_settings {
	struct names_settings names;
	const char *binary, *section, *target;
	const char *style;                   /* of -C: NULL, "", or its word */
	bool addresses, basenames, functions, inlines, pretty, limit, no_limit, version;
};

/* Text of an answer, without the line of -a. */
struct answer {
	uint64_t address;
	size_t text, length;
};

struct addr {
	const struct addr_settings *settings;
	const char *binary;
	struct addr_form form;
	struct addr_text text;
	struct elf_image image;
	struct addr_symbols symbols;
	uint64_t base, limit;                /* -j: the section's; else 0 and UINT64_MAX */
	uint64_t *asked;             size_t n_asked, asked_capacity;
	uint64_t *fresh;             size_t n_fresh, fresh_capacity;      /* of the file; not answered before */
	struct answer *answers;      size_t n_answers, answers_capacity;
	struct index index;                  /* of answers, by address */
	struct buf texts;
	struct buf out;
	bool converses;                      /* questions come through standard input: who knows how many */
	struct symbol_talk *talk;            /* NULL before the first of those */
	bool warned;
};

/* --- the binary --- */

static int open_section(struct addr *a, struct error *err)
{
	struct elf_section section;
	const char *name = a->settings->section;
	if (!name)
		return 0;
	if (!elf_section_named(&a->image, name, &section))
		return error_set(err, E_FORMAT, "%.200s: it has no section %.100s", a->binary, name);
	a->base = section.address;
	a->limit = section.bytes;
	return 0;
}

static int open_binary(struct addr *a, struct error *err)
{
	int failed = elf_image_open(&a->image, a->binary, err);
	if (failed)
		return failed;
	addr_symbols_init(&a->symbols, &a->image);
	a->form.wide = a->image.is64;
	return open_section(a, err);
}

/* --- addresses --- */

static int digit_of(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static bool is_blank(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

static const char *past_blanks(const char *c, const char *end)
{
	while (c < end && is_blank(*c))
		c++;
	return c;
}

/* The digits at *at, which moves behind them, as strtoul() has them: UINT64_MAX when they are too many. */
static uint64_t take_digits(const char **at, const char *end, unsigned base)
{
	uint64_t value = 0;
	bool overflow = false;
	for (int digit; *at < end && (digit = digit_of(**at)) >= 0 && (unsigned)digit < base; ++*at) {
		overflow |= __builtin_mul_overflow(value, (uint64_t)base, &value);
		overflow |= __builtin_add_overflow(value, (uint64_t)digit, &value);
	}
	return overflow ? UINT64_MAX : value;
}

static bool has_prefix(const char *c, const char *end)
{
	return end - c > 2 && c[0] == '0' && (c[1] == 'x' || c[1] == 'X') && digit_of(c[2]) >= 0;
}

/* Of a number in C's notation: behind the plus of "main+16". */
static uint64_t parse_offset(const char *c, const char *end)
{
	c = past_blanks(c, end);
	bool minus = c < end && *c == '-';
	if (c < end && (*c == '-' || *c == '+'))
		c++;
	bool hex = has_prefix(c, end);
	c += hex ? 2 : 0;
	uint64_t value = take_digits(&c, end, hex ? 16 : c < end && *c == '0' ? 8 : 10);
	return minus ? -value : value;
}

/*
 * Hexadecimal digits as far as there are some, or a symbol, with a "+" and an offset behind it or not; the first letter
 * decides, and between "a", the number, and "abort+4", the plus. What is neither is 0, as addr2line has it.
 */
static uint64_t parse_address(struct addr *a, const char *text, size_t length)
{
	const char *end = text + strnlen(text, length);
	const char *c = past_blanks(text, end);
	if (c == end)
		return 0;
	bool hex = has_prefix(c, end);
	if (hex || (*c >= '0' && *c <= '9') || (digit_of(*c) >= 0 && !memchr(c, '+', (size_t)(end - c)))) {
		c += hex ? 2 : 0;
		return take_digits(&c, end, 16);
	}
	const char *name = c;
	while (c < end && !is_blank(*c) && *c != '+')
		c++;
	uint64_t value = addr_symbols_value(&a->symbols, name, (size_t)(c - name));
	bool known = value || c == name;
	c = past_blanks(c, end);
	return known && c < end && *c == '+' ? value + parse_offset(c + 1, end) : value;
}

static int ask(struct addr *a, const char *text, size_t length, struct error *err)
{
	uint64_t *slot = ARRAY_PUSH(a->asked, a->n_asked, a->asked_capacity, BATCH_MAX + 1);
	if (!slot)
		return error_nomem(err, "addresses");
	*slot = parse_address(a, text, length);
	if (!a->image.is64)
		*slot &= UINT32_MAX;
	return 0;
}

/* --- answers --- */

struct wanted {
	const struct addr *a;
	uint64_t address;
};

static bool same_address(const void *context, uint32_t item)
{
	const struct wanted *w = context;
	return w->a->answers[item].address == w->address;
}

static const struct answer *find(const struct addr *a, uint64_t address)
{
	uint32_t item = index_find(&a->index, hash_u64(address), same_address, &(struct wanted){ a, address });
	return item == INDEX_NONE ? NULL : &a->answers[item];
}

/* The file's address of one that was asked: in a section they begin at 0. */
static uint64_t in_file(const struct addr *a, uint64_t asked)
{
	return asked < a->limit ? asked + a->base : UINT64_MAX;
}

static int remember(struct addr *a, uint64_t address, const struct symbol_frame *frames, size_t n, struct error *err)
{
	struct answer *fresh = index_reserve(&a->index)
	                           ? ARRAY_PUSH(a->answers, a->n_answers, a->answers_capacity, 2 * REMEMBERED_MAX) : NULL;
	if (!fresh)
		return error_nomem(err, "answers");
	size_t start = a->texts.len;
	addr_text_answer(&a->text, frames, n, &a->texts);
	*fresh = (struct answer){ address, start, a->texts.len - start };
	index_insert(&a->index, hash_u64(address), (uint32_t)(a->n_answers - 1));
	return a->texts.failed ? error_nomem(err, "answers") : 0;
}

static void forget(struct addr *a)
{
	index_finish(&a->index);
	a->n_answers = 0;
	buf_reset(&a->texts);
}

static int gather_fresh(struct addr *a, struct error *err)
{
	a->n_fresh = 0;
	for (size_t i = 0; i < a->n_asked; i++) {
		uint64_t address = in_file(a, a->asked[i]);
		if (find(a, address))
			continue;
		uint64_t *slot = ARRAY_PUSH(a->fresh, a->n_fresh, a->fresh_capacity, BATCH_MAX + 1);
		if (!slot)
			return error_nomem(err, "addresses");
		*slot = address;
	}
	return 0;
}

/* A client waits for as many answers as it asked, whatever can't be read; what is missing is said once. */
static void warn(struct addr *a, const struct error *reason, const char *missing)
{
	struct buf warning;
	if (a->warned)
		return;
	a->warned = true;
	buf_init(&warning, 4096);
	buf_adds(&warning, reason->text);
	buf_adds(&warning, missing);
	print_warnings(&warning);
	buf_finish(&warning);
}

static int look_up(struct addr *a, struct symbol_answers *ret, struct error *err)
{
	struct symbol_options o = naming_symbol_options(&a->settings->names);
	o.demangle = a->form.mode;
	if (!a->converses)
		return symbol_resolve_addresses(a->binary, "", a->fresh, a->n_fresh, SYMBOL_FULL, &o, ret, err);
	int failed = a->talk ? 0 : symbol_talk_begin(&a->talk, a->binary, "", SYMBOL_FULL, &o, err);
	return failed ? failed : symbol_talk_ask(a->talk, a->fresh, a->n_fresh, ret, err);
}

/* Of the addresses in fresh; what has none is warned of. */
static void resolve_fresh(struct addr *a, struct symbol_answers *ret)
{
	struct error reason;
	*ret = (struct symbol_answers){ .n = a->n_fresh };
	int failed = look_up(a, ret, &reason);
	progress_stop();
	if (failed)
		warn(a, &reason, "");
	else if (ret->poor.code)
		warn(a, &ret->poor, ret->poor.code == E_NOMEM ? POOR "; --memory-limit gives it more" : POOR);
}

/* A few: who asks so asks again, often for the same (jeprof puts one between any two). */
static int answer_some(struct addr *a, struct error *err)
{
	struct symbol_answers named = { 0 };
	struct symbol_frame frames[SYMBOL_FRAMES_MAX];
	if (a->n_answers > REMEMBERED_MAX || a->texts.len > REMEMBERED_MAX * 256)
		forget(a);
	int failed = gather_fresh(a, err);
	if (!failed && a->n_fresh)
		resolve_fresh(a, &named);
	for (size_t i = 0; i < a->n_fresh && !failed; i++) {
		if (!find(a, a->fresh[i]))
			failed = remember(a, a->fresh[i], frames, symbol_answer(&named, i, frames), err);
	}
	addr_text_forget(&a->text);
	symbol_answers_finish(&named);
	for (size_t i = 0; i < a->n_asked && !failed; i++) {
		const struct answer *known = find(a, in_file(a, a->asked[i]));
		addr_text_address(&a->form, a->asked[i], &a->out);
		buf_add(&a->out, a->texts.data + known->text, known->length);
	}
	return failed;
}

/* Many: written as they are made. */
static int answer_crowd(struct addr *a, struct error *err)
{
	struct symbol_answers named;
	if (!memory_grow((void **)&a->fresh, &a->fresh_capacity, a->n_asked, sizeof(*a->fresh), BATCH_MAX + 1))
		return error_nomem(err, "addresses");
	for (size_t i = 0; i < a->n_asked; i++)
		a->fresh[i] = in_file(a, a->asked[i]);
	a->n_fresh = a->n_asked;
	resolve_fresh(a, &named);
	int failed = addr_text_print(&a->form, a->asked, &named, err);
	symbol_answers_finish(&named);
	return failed;
}

/* All that was asked, in that order. */
static int answer(struct addr *a, struct error *err)
{
	int failed = a->n_asked > REMEMBER_MOST ? answer_crowd(a, err) : answer_some(a, err);
	a->n_asked = 0;
	return failed ? failed : addr_text_flush(&a->out, err);
}

/* --- where addresses come from --- */

/* Whole lines of [text, text + n), and at the end of the input what is left; how many bytes they were. */
static size_t take_lines(struct addr *a, const char *text, size_t n, bool ended, int *ret_failed, struct error *err)
{
	size_t at = 0;
	while (at < n && a->n_asked < BATCH_MAX && !*ret_failed) {
		size_t room = n - at < LINE_MAX_BYTES ? n - at : LINE_MAX_BYTES;
		const char *newline = memchr(text + at, '\n', room);
		size_t length = newline ? (size_t)(newline - text) - at + 1 : room;
		if (!newline && room < LINE_MAX_BYTES && !ended)
			break;
		*ret_failed = ask(a, text + at, length, err);
		at += length;
	}
	return at;
}

/* Is there more to read now, or, of a crowd, in a moment? */
static bool more_comes(const struct addr *a)
{
	struct pollfd in = { .fd = STDIN_FILENO, .events = POLLIN };
	return poll(&in, 1, a->n_asked > CROWD ? CROWD_WAIT_MS : 0) > 0;
}

static int answer_input(struct addr *a, struct error *err)
{
	static char bytes[64 << 10];
	size_t have = 0;
	bool ended = false;
	int failed = 0;
	a->converses = true;
	while (!ended && !failed) {
		ssize_t n = read(STDIN_FILENO, bytes + have, sizeof bytes - have);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return error_set(err, E_IO, "standard input: cannot read: %s", strerror(errno));
		ended = n == 0;
		have += (size_t)n;
		/* What stays is less than a line. */
		for (bool full = true; full && !failed;) {
			size_t taken = take_lines(a, bytes, have, ended, &failed, err);
			have -= taken;
			memmove(bytes, bytes + taken, have);
			full = a->n_asked == BATCH_MAX;
			if (full && !failed)
				failed = answer(a, err);
		}
		if (!failed && a->n_asked && (ended || !more_comes(a)))
			failed = answer(a, err);
	}
	return failed;
}

static int answer_operands(struct addr *a, char **operands, size_t n, struct error *err)
{
	int failed = 0;
	for (size_t i = 0; i < n && !failed; i++) {
		failed = ask(a, operands[i], strlen(operands[i]), err);
		if (!failed && (a->n_asked == BATCH_MAX || i == n - 1))
			failed = answer(a, err);
	}
	return failed;
}

/* --- the command --- */

/* addr2line's words for a demangler all mean what we do: the name itself tells which. */
static int choose_mode(const char *style, enum demangle_mode *ret, struct error *err)
{
	static const struct { const char *word; enum demangle_mode mode; } words[] = {
		{ "", DEMANGLE_FULL }, { "full", DEMANGLE_FULL }, { "templates", DEMANGLE_TEMPLATES }, { "simple", DEMANGLE_SIMPLE },
		{ "none", DEMANGLE_NONE }, { "auto", DEMANGLE_FULL }, { "gnu-v3", DEMANGLE_FULL }, { "rust", DEMANGLE_FULL },
		{ "dlang", DEMANGLE_FULL }, { "java", DEMANGLE_FULL }, { "gnat", DEMANGLE_FULL },
	};
	*ret = DEMANGLE_NONE;
	if (!style)
		return 0;
	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		if (strcmp(words[i].word, style) == 0) {
			*ret = words[i].mode;
			return 0;
		}
	return error_set(err, E_USAGE, "--demangle takes one of full|templates|simple|none, not '%.60s'", style);
}

/* An operand that is a number and no file: then the binary is addr2line's a.out. */
static bool is_address(const char *text)
{
	const char *c = text, *end = text + strlen(text);
	c += has_prefix(c, end) ? 2 : 0;
	const char *digits = c;
	take_digits(&c, end, 16);
	return c == end && c > digits && access(text, F_OK) != 0;
}

static void finish(struct addr *a)
{
	forget(a);
	symbol_talk_end(a->talk);
	free(a->asked);
	free(a->fresh);
	free(a->answers);
	addr_text_finish(&a->text);
	buf_finish(&a->texts);
	buf_finish(&a->out);
	addr_symbols_finish(&a->symbols);
	elf_image_close(&a->image);
}

static int run(const void *settings, char **operands, size_t n, struct error *err)
{
	const struct addr_settings *s = settings;
	struct addr a = {
		.settings = s, .binary = s->binary, .limit = UINT64_MAX,
		.form = { .addresses = s->addresses, .basenames = s->basenames, .functions = s->functions, .inlines = s->inlines, .pretty = s->pretty },
	};
	if (s->version) {
		printf("heapgauge addr %s, with the options and the output of GNU addr2line\n", HEAPGAUGE_VERSION);
		return 0;
	}
	int failed = choose_mode(s->style, &a.form.mode, err);
	if (failed)
		return failed;
	if (!a.binary && n && !command_is_addr2line() && !is_address(operands[0])) {
		a.binary = *operands++;
		n--;
	}
	if (!a.binary)
		a.binary = "a.out";
	buf_init(&a.texts, BUF_MAX_DEFAULT);
	buf_init(&a.out, BUF_MAX_DEFAULT);
	failed = addr_text_begin(&a.text, &a.form) ? open_binary(&a, err) : error_nomem(err, "answers");
	if (!failed)
		failed = n ? answer_operands(&a, operands, n, err) : answer_input(&a, err);
	finish(&a);
	struct buf warnings;
	buf_init(&warnings, 4096);
	naming_finish(&warnings);
	print_warnings(&warnings);
	buf_finish(&warnings);
	return failed;
}

#define AT(field) offsetof(struct addr_settings, field)

static const struct option_spec own_options[] = {
	{ "exe", 'e', false, OPTION_TEXT, "FILE", "the binary (default: the first operand, or a.out)", AT(binary) },
	{ "functions", 'f', false, OPTION_ON, NULL, "the function's name on a line before", AT(functions) },
	{ "demangle", 'C', false, OPTION_MAYBE, "FORM",
	  "names readable: full (default), templates, simple, or none, as of other commands' --demangle", AT(style) },
	{ "inlines", 'i', false, OPTION_ON, NULL, "also the functions that it was inlined into, innermost first", AT(inlines) },
	{ "addresses", 'a', false, OPTION_ON, NULL, "the address on a line before", AT(addresses) },
	{ "pretty-print", 'p', false, OPTION_ON, NULL, "all of one function on one line", AT(pretty) },
	{ "basenames", 's', false, OPTION_ON, NULL, "files without their folders", AT(basenames) },
	{ "section", 'j', false, OPTION_TEXT, "NAME", "addresses count from the beginning of that section", AT(section) },
	{ "target", 'b', true, OPTION_TEXT, "NAME", "addr2line's; means nothing here", AT(target) },
	{ "recurse-limit", 'R', true, OPTION_ON, NULL, "same", AT(limit) },
	{ "recursion-limit", 0, true, OPTION_ON, NULL, "same", AT(limit) },
	{ "no-recurse-limit", 'r', true, OPTION_ON, NULL, "same", AT(no_limit) },
	{ "no-recursion-limit", 0, true, OPTION_ON, NULL, "same", AT(no_limit) },
	{ "version", 'v', true, OPTION_ON, NULL, "the version", AT(version) },
	{ "print-version", 'V', true, OPTION_ON, NULL, "same", AT(version) },
};

static const struct option_group groups[] = {
	{ "Options", own_options, sizeof own_options / sizeof *own_options, 0 },
	GROUP_NAMES(AT(names)),
	{ NULL, NULL, 0, 0 },
};

static const struct addr_settings defaults;

const struct command cmd_addr = {
	.name = "addr",
	.operands = "[BINARY] [ADDRESS…]",
	.summary = "files and lines of addresses, in place of addr2line",
	.description =
	    "Says where in the source the addresses of a binary are. They are the file's own, hexadecimal or\n"
	    "like main+0x10, from the command line or, when there are none, from standard input, a line each.\n"
	    "Options and output are those of GNU addr2line, so that it can stand in wherever that is called:\n"
	    "also by that name, as a link.\n",
	.example = "  heapgauge addr -Cfpi ./server 0x12340 0x4f210\n"
	           "  ln -s $(command -v heapgauge) ~/bin/addr2line\n",
	.groups = groups,
	.defaults = &defaults,
	.settings_bytes = sizeof defaults,
	.max_operands = SIZE_MAX,
	.run = run,
};
