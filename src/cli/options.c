/*
 * The tables of options.h are turned into what getopt_long wants; its answers are
 * turned into values at their offsets. Every complaint is worded here, with the
 * option's name as it was typed.
 */
#include "cli/options.h"

#include <getopt.h>
#include <string.h>

#include "base/text.h"

#define LONG_BASE 256       /* getopt's value of the option with index i is LONG_BASE + i */
#define VALUE_HELP (LONG_BASE + OPTIONS_MAX)
#define HELP_COLUMN 26
#define HELP_WIDTH 80

struct flat_option {
	const struct option_spec *spec;
	size_t group_at;
};

struct parser {
	struct flat_option flat[OPTIONS_MAX];
	size_t n;
	struct option longs[OPTIONS_MAX + 2];
	char shorts[2 * OPTIONS_MAX + 8];
};

static bool takes_argument(const struct option_spec *s)
{
	return s->kind != OPTION_ON && s->kind != OPTION_OFF && s->kind != OPTION_MAYBE && s->kind != OPTION_CONSTANT;
}

static void parser_init(struct parser *p, const struct option_group *groups, bool stop_early)
{
	memset(p, 0, sizeof *p);
	size_t at = 0;
	if (stop_early)
		p->shorts[at++] = '+';
	p->shorts[at++] = ':';
	p->shorts[at++] = 'h';
	for (const struct option_group *g = groups; g->specs; g++) {
		for (size_t i = 0; i < g->n && p->n < OPTIONS_MAX; i++) {
			const struct option_spec *s = &g->specs[i];
			p->longs[p->n] = (struct option){ s->name,
				takes_argument(s) ? required_argument
				: s->kind == OPTION_MAYBE ? optional_argument : no_argument, NULL,
				LONG_BASE + (int)p->n };
			p->flat[p->n++] = (struct flat_option){ s, g->at };
			if (s->letter) {
				p->shorts[at++] = s->letter;
				if (takes_argument(s))
					p->shorts[at++] = ':';
			}
		}
	}
	p->longs[p->n] = (struct option){ "help", no_argument, NULL, VALUE_HELP };
}

static const struct flat_option *parser_find(const struct parser *p, int value)
{
	if (value >= LONG_BASE && (size_t)(value - LONG_BASE) < p->n)
		return &p->flat[value - LONG_BASE];
	for (size_t i = 0; i < p->n; i++)
		if (p->flat[i].spec->letter && p->flat[i].spec->letter == value)
			return &p->flat[i];
	return NULL;
}

/* --- values --- */

static int choice_parse(const char *words, const char *text, int *ret)
{
	size_t length = strlen(text);
	int position = 0;
	for (const char *w = words; w; position++) {
		const char *end = strchr(w, '|');
		size_t n = end ? (size_t)(end - w) : strlen(w);
		if (n == length && memcmp(w, text, n) == 0) {
			*ret = position;
			return 0;
		}
		w = end ? end + 1 : NULL;
	}
	return E_USAGE;
}

/* "0.005" or "0.5%"; strictly digits and one point, so that no locale and no "nan" gets in. */
static bool fraction_parse(const char *text, double *ret)
{
	double value = 0, scale = 0;
	const char *c = text;
	for (; (*c >= '0' && *c <= '9') || (*c == '.' && scale == 0); c++) {
		if (*c == '.') {
			scale = 1;
			continue;
		}
		value = value * 10 + (*c - '0');
		scale *= 10;
	}
	if (c == text || c - text > 15 || (c == text + 1 && *text == '.'))
		return false;
	if (scale > 0)
		value /= scale;
	if (*c == '%') {
		value /= 100;
		c++;
	}
	if (*c || value > 1)
		return false;
	*ret = value;
	return true;
}

static int number_parse(const struct option_spec *s, const char *text, void *target, struct error *err)
{
	uint64_t n;
	if (!text_parse_u64(text, strlen(text), 10, &n) || n > UINT32_MAX)
		return error_set(err, E_USAGE, "--%s takes a number from 0 to %u, not '%s'", s->name,
		                 UINT32_MAX, text);
	*(uint32_t *)target = (uint32_t)n;
	return 0;
}

static int list_add(const struct option_spec *s, const char *text, struct text_list *list,
                    struct error *err)
{
	if (list->n == TEXT_LIST_MAX)
		return error_set(err, E_USAGE, "--%s may be given at most %d times", s->name,
		                 TEXT_LIST_MAX);
	list->items[list->n++] = text;
	return 0;
}

static int option_store(const struct flat_option *f, void *settings, const char *text,
                        struct error *err)
{
	const struct option_spec *s = f->spec;
	void *target = (char *)settings + f->group_at + s->at;
	switch (s->kind) {
	case OPTION_ON:
		*(bool *)target = true;
		return 0;
	case OPTION_OFF:
		*(bool *)target = false;
		return 0;
	case OPTION_TEXT:
		*(const char **)target = text;
		return 0;
	case OPTION_MAYBE:
		*(const char **)target = text ? text : "";
		return 0;
	case OPTION_CONSTANT:
		*(const char **)target = s->argument;
		return 0;
	case OPTION_LIST:
		return list_add(s, text, target, err);
	case OPTION_NUMBER:
		return number_parse(s, text, target, err);
	case OPTION_FRACTION:
		if (!fraction_parse(text, target))
			return error_set(err, E_USAGE, "--%s takes a part of the whole, like 0.01 or 1%%, not '%s'",
			                 s->name, text);
		return 0;
	case OPTION_SIZE:
		if (!text_parse_bytes(text, target))
			return error_set(err, E_USAGE, "--%s takes a size in bytes, like 524288 or 512k, not '%s'",
			                 s->name, text);
		return 0;
	case OPTION_CHOICE:
		if (choice_parse(s->argument, text, target) < 0)
			return error_set(err, E_USAGE, "--%s takes one of %s, not '%s'", s->name,
			                 s->argument, text);
		return 0;
	}
	return error_set(err, E_USAGE, "--%s has no known kind", s->name);
}

/* --- the walk over argv --- */

/* pprof writes show_from, jeprof inuse_space: in the name of a long option _ and - are one. */
static void names_normalize(int argc, char **argv, bool stop_early)
{
	for (int i = 1; i < argc; i++) {
		if (strncmp(argv[i], "--", 2) != 0) {
			if (stop_early)
				return;
			continue;
		}
		if (!argv[i][2])
			return;
		for (char *c = argv[i] + 2; *c && *c != '='; c++)
			if (*c == '_')
				*c = '-';
	}
}

static int complain_unknown(const struct parser *p, const char *word, struct error *err)
{
	const char *names[OPTIONS_MAX];
	for (size_t i = 0; i < p->n; i++)
		names[i] = p->flat[i].spec->name;
	const char *name = word + strspn(word, "-");
	size_t length = strcspn(name, "=");
	char typed[64];
	if (length >= sizeof typed)
		length = sizeof typed - 1;
	memcpy(typed, name, length);
	typed[length] = '\0';
	const char *near = nearest_word(typed, names, p->n);
	if (near)
		return error_set(err, E_USAGE, "unknown or ambiguous option '--%s': did you mean '--%s'?",
		                 typed, near);
	return error_set(err, E_USAGE, "unknown or ambiguous option '--%s'", typed);
}

static int complain(const struct parser *p, int answer, char **argv, struct error *err)
{
	const struct flat_option *f = parser_find(p, optopt);
	if (answer == ':')
		return error_set(err, E_USAGE, "--%s needs a value: %s", f ? f->spec->name : "?",
		                 f ? f->spec->argument : "?");
	if (optopt == 0)
		return complain_unknown(p, argv[optind - 1], err);
	if (f || optopt == VALUE_HELP)
		return error_set(err, E_USAGE, "--%s takes no value", f ? f->spec->name : "help");
	return error_set(err, E_USAGE, "unknown option '-%c'", optopt);
}

int options_parse(const struct option_group *groups, void *settings, bool stop_early, int argc,
                  char **argv, int *ret_first, bool *ret_help, struct error *err)
{
	struct parser p;
	parser_init(&p, groups, stop_early);
	names_normalize(argc, argv, stop_early);
	opterr = 0;
	optind = 0;     /* glibc: start afresh */
	*ret_help = false;
	for (;;) {
		int answer = getopt_long(argc, argv, p.shorts, p.longs, NULL);
		if (answer == -1)
			break;
		if (answer == 'h' || answer == VALUE_HELP) {
			*ret_help = true;
			return 0;
		}
		if (answer == '?' || answer == ':')
			return complain(&p, answer, argv, err);
		int failed = option_store(parser_find(&p, answer), settings, optarg, err);
		if (failed)
			return failed;
	}
	*ret_first = optind;
	return 0;
}

/* --- help --- */

static void add_blanks(struct buf *out, size_t n)
{
	while (n--)
		buf_addc(out, ' ');
}

static void wrap(struct buf *out, const char *text, size_t from_column)
{
	size_t column = from_column;
	for (const char *word = text; *word;) {
		size_t n = strcspn(word, " ");
		if (column + 1 + n > HELP_WIDTH && column > HELP_COLUMN) {
			buf_addc(out, '\n');
			add_blanks(out, HELP_COLUMN);
			column = HELP_COLUMN;
		} else if (word > text) {
			buf_addc(out, ' ');
			column++;
		}
		buf_add(out, word, n);
		column += n;
		word += n + (word[n] == ' ');
	}
	buf_addc(out, '\n');
}

static void help_line(struct buf *out, const struct option_spec *s)
{
	size_t start = out->len;
	if (s->letter)
		buf_printf(out, "  -%c, --%s", s->letter, s->name);
	else
		buf_printf(out, "      --%s", s->name);
	if (takes_argument(s))
		buf_printf(out, " %s", s->argument);
	else if (s->kind == OPTION_MAYBE)
		buf_printf(out, "[=%s]", s->argument);
	size_t column = out->len - start;
	if (column + 2 > HELP_COLUMN) {
		buf_addc(out, '\n');
		column = 0;
	}
	add_blanks(out, HELP_COLUMN - column);
	wrap(out, s->help, HELP_COLUMN);
}

void options_help(const struct option_group *groups, struct buf *out)
{
	for (const struct option_group *g = groups; g->specs; g++) {
		buf_printf(out, "\n%s:\n", g->title);
		for (size_t i = 0; i < g->n; i++)
			if (!g->specs[i].hidden)
				help_line(out, &g->specs[i]);
	}
}

void options_words(const struct option_group *groups, struct buf *out)
{
	for (const struct option_group *g = groups; g->specs; g++)
		for (size_t i = 0; i < g->n; i++)
			if (!g->specs[i].hidden)
				buf_printf(out, "--%s ", g->specs[i].name);
	buf_adds(out, "--help");
}
