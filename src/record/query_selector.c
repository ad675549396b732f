/* One pass over the text; names and values are copied behind each other. */
#include "record/query_selector.h"

#include <string.h>

#include "base/text.h"
#include "record/relabel.h"

struct parser {
	const char *text, *at;
	struct selector *to;
	size_t n_texts;
	struct error *err;
};

static int fail(struct parser *p, const char *what)
{
	return error_set(p->err, E_USAGE, "match: %s at character %zu of %.200s: a selector is like {job=\"x\",instance=~\"a.*\"}", what,
	                 (size_t)(p->at - p->text) + 1, p->text);
}

static void skip_blanks(struct parser *p)
{
	p->at += strspn(p->at, " \t\r\n");
}

static bool put(struct parser *p, unsigned c)
{
	if (p->n_texts + 1 >= sizeof p->to->texts)
		return false;
	p->to->texts[p->n_texts++] = (char)c;
	return true;
}

static bool is_name(char c, bool first)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (!first && c >= '0' && c <= '9');
}

static int read_name(struct parser *p, const char **ret)
{
	size_t first = p->n_texts;
	if (!is_name(*p->at, true))
		return fail(p, "a label's name is expected");
	for (; is_name(*p->at, false); p->at++)
		if (!put(p, (unsigned char)*p->at))
			return fail(p, "too long");
	if (!put(p, 0))
		return fail(p, "too long");
	*ret = p->to->texts + first;
	return 0;
}

/* --- strings --- */

static bool put_utf8(struct parser *p, uint64_t c)
{
	if (c < 0x80)
		return c && put(p, (unsigned)c);
	if (c < 0x800)
		return put(p, (unsigned)(0xc0 | c >> 6)) && put(p, (unsigned)(0x80 | (c & 63)));
	if (c < 0x10000)
		return (c < 0xd800 || c > 0xdfff) && put(p, (unsigned)(0xe0 | c >> 12)) && put(p, (unsigned)(0x80 | (c >> 6 & 63))) &&
		       put(p, (unsigned)(0x80 | (c & 63)));
	return c < 0x110000 && put(p, (unsigned)(0xf0 | c >> 18)) && put(p, (unsigned)(0x80 | (c >> 12 & 63))) &&
	       put(p, (unsigned)(0x80 | (c >> 6 & 63))) && put(p, (unsigned)(0x80 | (c & 63)));
}

/* n digits of a number. */
static bool put_number(struct parser *p, size_t n, unsigned base, bool character)
{
	uint64_t value = 0;
	if (strnlen(p->at, n) < n)
		return false;
	if (base == 16 ? !text_parse_u64(p->at, n, 16, &value) : strspn(p->at, "01234567") < n)
		return false;
	for (size_t i = 0; base == 8 && i < n; i++)
		value = value * 8 + (uint64_t)(p->at[i] - '0');
	p->at += n;
	return character ? put_utf8(p, value) : value > 0 && value < 256 && put(p, (unsigned)value);
}

/* Behind the backslash. */
static bool put_escape(struct parser *p)
{
	static const char letters[] = "abfnrtv\\'\"", meant[] = "\a\b\f\n\r\t\v\\'\"";
	char c = *p->at;
	const char *found = c ? strchr(letters, c) : NULL;
	if (c >= '0' && c <= '7')
		return put_number(p, 3, 8, false);
	if (!c)
		return false;
	p->at++;
	if (found)
		return put(p, (unsigned char)meant[found - letters]);
	switch (c) {
	case 'x': return put_number(p, 2, 16, false);
	case 'u': return put_number(p, 4, 16, true);
	case 'U': return put_number(p, 8, 16, true);
	}
	return false;
}

static int read_string(struct parser *p, const char **ret)
{
	size_t first = p->n_texts;
	char quote = *p->at;
	if (quote != '"' && quote != '\'' && quote != '`')
		return fail(p, "a value in quotes is expected");
	p->at++;
	while (*p->at && *p->at != quote) {
		if (*p->at == '\\' && quote != '`') {
			p->at++;
			if (!put_escape(p))
				return fail(p, "an escape that is none, or a text too long,");
		} else if (!put(p, (unsigned char)*p->at++)) {
			return fail(p, "too long");
		}
	}
	if (!*p->at)
		return fail(p, "a closing quote is missing");
	p->at++;
	if (!put(p, 0))
		return fail(p, "too long");
	*ret = p->to->texts + first;
	return 0;
}

/* --- expressions --- */

/* RE2's, as far as relabelling understands them, become POSIX's. */
static int translate(struct parser *p, const char **value)
{
	struct buf posix;
	struct error why;
	size_t first = p->n_texts;
	buf_init(&posix, sizeof p->to->texts);
	int failed = relabel_posix(*value, &posix, &why);
	if (failed)
		failed = error_set(p->err, E_USAGE, "match: the expression %.100s: %.200s", *value, why.text);
	for (size_t i = 0; i < posix.len && !failed; i++)
		if (!put(p, (unsigned char)posix.data[i]))
			failed = fail(p, "too long");
	if (!failed && (posix.failed || !put(p, 0)))
		failed = fail(p, "too long");
	buf_finish(&posix);
	*value = p->to->texts + first;
	return failed;
}

/* --- matchers --- */

static int read_operator(struct parser *p, enum store_match *ret)
{
	static const struct {
		const char *text;
		enum store_match match;
	} operators[] = { { "=~", MATCH_REGEX }, { "!~", MATCH_NOT_REGEX }, { "!=", MATCH_NOT_EQUAL }, { "=", MATCH_EQUAL } };
	for (size_t i = 0; i < sizeof operators / sizeof *operators; i++) {
		size_t n = strlen(operators[i].text);
		if (strncmp(p->at, operators[i].text, n) == 0) {
			p->at += n;
			*ret = operators[i].match;
			return 0;
		}
	}
	return fail(p, "one of = != =~ !~ is expected");
}

static int read_matcher(struct parser *p)
{
	struct store_matcher m;
	if (p->to->n == SELECTOR_MATCHERS_MAX)
		return fail(p, "too many matchers");
	int failed = read_name(p, &m.name);
	skip_blanks(p);
	if (!failed)
		failed = read_operator(p, &m.match);
	skip_blanks(p);
	if (!failed)
		failed = read_string(p, &m.value);
	if (failed)
		return failed;
	if (m.match == MATCH_REGEX || m.match == MATCH_NOT_REGEX)
		failed = translate(p, &m.value);
	if (failed)
		return failed;
	p->to->matchers[p->to->n++] = m;
	return 0;
}

int selector_parse(const char *text, struct selector *ret, struct error *err)
{
	struct parser p = { .text = text, .at = text, .to = ret, .err = err };
	ret->n = 0;
	skip_blanks(&p);
	if (*p.at != '{')
		return fail(&p, "'{' is expected");
	p.at++;
	skip_blanks(&p);
	while (*p.at != '}') {
		int failed = read_matcher(&p);
		if (failed)
			return failed;
		skip_blanks(&p);
		if (*p.at != ',' && *p.at != '}')
			return fail(&p, "',' or '}' is expected");
		if (*p.at == ',')
			p.at++;
		skip_blanks(&p);
	}
	p.at++;
	skip_blanks(&p);
	return *p.at ? fail(&p, "nothing more is expected") : 0;
}
