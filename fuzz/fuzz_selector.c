/*
 * A selector is right, and then its matchers have names, and expressions that compile; or it gives an error of one line. What is right stays
 * right when it is written again by its parts.
 */
#include "record/query_selector.h"

#include <regex.h>
#include <stdlib.h>
#include <string.h>

#include "record/relabel.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static struct selector first, second;

static void check_matcher(const struct store_matcher *m)
{
	regex_t compiled;
	if (!label_name_valid(m->name) || !m->value)
		abort();
	if (m->match != MATCH_REGEX && m->match != MATCH_NOT_REGEX)
		return;
	if (regcomp(&compiled, m->value, REG_EXTENDED | REG_NOSUB))
		abort();
	regfree(&compiled);
}

static void add_escaped(struct buf *out, const char *text)
{
	for (; *text; text++)
		buf_printf(out, "\\x%02x", (unsigned char)*text);
}

/* Matchers of values, written with every byte escaped, are the same. */
static void check_again(const struct selector *s)
{
	struct buf text;
	struct error err;
	size_t n = 0;
	buf_init(&text, 1 << 20);
	buf_addc(&text, '{');
	for (size_t i = 0; i < s->n; i++) {
		if (s->matchers[i].match != MATCH_EQUAL && s->matchers[i].match != MATCH_NOT_EQUAL)
			continue;
		buf_printf(&text, "%s%s='", s->matchers[i].name, s->matchers[i].match == MATCH_EQUAL ? "" : "!");
		add_escaped(&text, s->matchers[i].value);
		buf_adds(&text, "',");
	}
	buf_addc(&text, '}');
	if (selector_parse(text.data, &second, &err))
		abort();
	for (size_t i = 0; i < s->n; i++) {
		if (s->matchers[i].match != MATCH_EQUAL && s->matchers[i].match != MATCH_NOT_EQUAL)
			continue;
		const struct store_matcher *m = &second.matchers[n++];
		if (strcmp(m->name, s->matchers[i].name) || strcmp(m->value, s->matchers[i].value) || m->match != s->matchers[i].match)
			abort();
	}
	if (n != second.n)
		abort();
	buf_finish(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct error err = { 0 };
	char text[SELECTOR_BYTES_MAX];
	if (n >= sizeof text)
		return 0;
	memcpy(text, data, n);
	text[n] = '\0';
	if (selector_parse(text, &first, &err)) {
		if (err.code != E_USAGE || !err.text[0])
			abort();
		return 0;
	}
	for (size_t i = 0; i < first.n; i++)
		check_matcher(&first.matchers[i]);
	check_again(&first);
	return 0;
}
