/* Relabelling, held to what Prometheus documents and its own tests show. Sets of labels are written "a=1 b=2". */
#include "../base/test.h"

#include "record/md5.h"
#include "record/relabel.h"

#define RULES_MAX 4

struct rule {
	const char *sources;                /* "a b" */
	const char *separator, *regex, *target, *replacement;
	uint64_t modulus;
	enum relabel_action action;
};

static void read_words(struct arena *a, const char *text, struct relabel_rule *to)
{
	while (text && *text) {
		size_t n = strcspn(text, " ");
		to->sources = arena_grow(a, to->sources, to->n_sources, sizeof *to->sources);
		to->sources[to->n_sources++] = arena_text(a, text, n);
		text += n + (text[n] != 0);
	}
}

static void check(const char *labels, const struct rule *rules, size_t n, const char *expected)
{
	struct arena a;
	struct relabel_rule made[RULES_MAX] = { 0 };
	struct error err;
	char got[512] = "";
	arena_init(&a, 1 << 20);
	struct labels l = { .arena = &a };
	for (const char *at = labels; *at;) {
		size_t end = strcspn(at, " "), equals = strcspn(at, "=");
		assert_true(labels_set(&l, arena_text(&a, at, equals), arena_text(&a, at + equals + 1, end - equals - 1)));
		at += end + (at[end] != 0);
	}
	for (size_t i = 0; i < n; i++) {
		made[i].action = rules[i].action;
		made[i].separator = rules[i].separator ? rules[i].separator : ";";
		made[i].target = rules[i].target;
		made[i].replacement = rules[i].replacement ? rules[i].replacement : "$1";
		made[i].modulus = rules[i].modulus;
		read_words(&a, rules[i].sources, &made[i]);
		if (relabel_pattern_init(&made[i].pattern, rules[i].regex ? rules[i].regex : "(.*)", &err))
			fail_msg("%s: %s", rules[i].regex, err.text);
	}
	if (!relabel(&l, made, n)) {
		snprintf(got, sizeof got, "dropped");
	} else {
		labels_sort(&l);
		for (size_t i = 0; i < l.n; i++)
			snprintf(got + strlen(got), sizeof got - strlen(got), "%s%s=%s", i ? " " : "", l.items[i].name, l.items[i].value);
	}
	assert_string_equal(got, expected);
	assert_false(a.failed);
	for (size_t i = 0; i < n; i++)
		relabel_pattern_finish(&made[i].pattern);
	arena_finish(&a);
}

static void test_actions(void **state)
{
	(void)state;
	static const struct {
		const char *labels;
		struct rule rule;
		const char *expected;
	} cases[] = {
		/* replace */
		{ "a=foo b=bar c=baz", { .sources = "a", .regex = "f(.*)", .target = "d", .replacement = "ch${1}-ch${1}" }, "a=foo b=bar c=baz d=choo-choo" },
		{ "a=foo b=bar c=baz", { .sources = "a b", .regex = "f(.*);(.*)r", .target = "a", .replacement = "b${1}${2}m" }, "a=boobam b=bar c=baz" },
		{ "a=foo", { .sources = "a", .regex = "no", .target = "b" }, "a=foo" },
		{ "a=foo", { .sources = "a", .regex = "o", .target = "b" }, "a=foo" },            /* anchored */
		{ "a=foo b=x", { .sources = "a", .target = "b", .replacement = "" }, "a=foo" },    /* "" takes it away */
		{ "a=foo", { .target = "b", .replacement = "v" }, "a=foo b=v" },
		{ "a=foo", { .sources = "a missing", .separator = "", .target = "b" }, "a=foo b=foo" },
		{ "a=some-name-value", { .sources = "a", .regex = "some-([^-]+)-([^,]+)", .target = "${1}", .replacement = "${2}" },
		  "a=some-name-value name=value" },
		{ "a=some-name-0", { .sources = "a", .regex = "some-([^-]+)-([^,]+)", .target = "${3}", .replacement = "${2}" }, "a=some-name-0" },
		{ "a=foo", { .sources = "a", .target = "x-y", .replacement = "v" }, "a=foo" },     /* no name of a label */
		{ "a=foo", { .sources = "a", .target = "b", .replacement = "$1x$$${1}$" }, "a=foo b=$foo$" },    /* $1x is no group */
		{ "a=b:80", { .sources = "a", .regex = "([^:]+)(?::(\\d+))?", .target = "p", .replacement = "$1-$2" }, "a=b:80 p=b-80" },
		/* keep, drop */
		{ "a=foo", { .sources = "a", .regex = "f.*", .action = RELABEL_KEEP }, "a=foo" },
		{ "a=foo", { .sources = "a", .regex = "f", .action = RELABEL_KEEP }, "dropped" },
		{ "a=foo", { .sources = "a", .regex = ".*o.*", .action = RELABEL_DROP }, "dropped" },
		{ "a=foo", { .sources = "a", .regex = "f|foo", .action = RELABEL_DROP }, "dropped" },
		{ "a=foo", { .sources = "missing", .regex = "", .action = RELABEL_DROP }, "dropped" },
		{ "a=foo b=bar", { .sources = "a b", .separator = "|", .regex = "foo\\|bar", .action = RELABEL_KEEP }, "a=foo b=bar" },
		/* names */
		{ "a=foo b1=bar b2=baz", { .regex = "(b.*)", .replacement = "bar_${1}", .action = RELABEL_LABELMAP }, "a=foo b1=bar b2=baz bar_b1=bar bar_b2=baz" },
		{ "__meta_my_bar=aaa __meta_my_baz=bbb __meta_other=ccc", { .regex = "__meta_(my.*)", .action = RELABEL_LABELMAP },
		  "__meta_my_bar=aaa __meta_my_baz=bbb __meta_other=ccc my_bar=aaa my_baz=bbb" },
		{ "a=foo b1=bar b2=baz", { .regex = "(b.*)", .action = RELABEL_LABELDROP }, "a=foo" },
		{ "a=foo b1=bar b2=baz", { .regex = "(b.*)", .action = RELABEL_LABELKEEP }, "b1=bar b2=baz" },
		/* hashmod: Prometheus' own cases */
		{ "a=foo b=bar c=baz", { .sources = "c", .target = "d", .modulus = 1000, .action = RELABEL_HASHMOD }, "a=foo b=bar c=baz d=976" },
		{ "a=foo\nbar", { .sources = "a", .target = "b", .modulus = 1000, .action = RELABEL_HASHMOD }, "a=foo\nbar b=734" },
		/* case, equality */
		{ "foo=bAr123Foo", { .sources = "foo", .target = "u", .action = RELABEL_UPPERCASE }, "foo=bAr123Foo u=BAR123FOO" },
		{ "foo=bAr123Foo", { .sources = "foo", .target = "l", .action = RELABEL_LOWERCASE }, "foo=bAr123Foo l=bar123foo" },
		{ "a=1 b=1", { .sources = "a", .target = "b", .action = RELABEL_KEEPEQUAL }, "a=1 b=1" },
		{ "a=1 b=2", { .sources = "a", .target = "b", .action = RELABEL_KEEPEQUAL }, "dropped" },
		{ "a=1 b=1", { .sources = "a", .target = "b", .action = RELABEL_DROPEQUAL }, "dropped" },
		{ "a=1 b=2", { .sources = "a", .target = "b", .action = RELABEL_DROPEQUAL }, "a=1 b=2" },
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		check(cases[i].labels, &cases[i].rule, 1, cases[i].expected);
}

static void test_order(void **state)
{
	(void)state;
	static const struct rule rules[] = {
		{ .sources = "a", .regex = "f(.*)", .target = "d", .replacement = "ch${1}-ch${1}" },
		{ .sources = "d", .regex = "choo-choo", .target = "e", .replacement = "yes" },
		{ .regex = "a|d", .action = RELABEL_LABELDROP },
		{ .sources = "e", .regex = "yes", .action = RELABEL_KEEP },
	};
	check("a=foo b=bar", rules, 4, "b=bar e=yes");
}

static void test_expressions(void **state)
{
	(void)state;
	static const struct {
		const char *expression, *matches, *not;
	} good[] = {
		{ "\\d+\\.\\d", "12.3", "12x3" }, { "[\\w.-]+", "a-b.c_9", "a b" }, { "[^\\d]", "x", "1" }, { "[\\]x]", "]", "[" }, { "[a\\-z]", "-", "m" },
		{ "[\\^a]", "^", "b" }, { "[^a-c]+", "xyz", "a" }, { "(?i)abc", "aBC", "abd" }, { "(?:a|b)c", "bc", "c" }, { "a{2,3}", "aaa", "a" },
		{ "\\Sx\\s", "yx ", " x " }, { "[[:alpha:]]", "q", "1" }, { "a\\/b", "a/b", "a\\/b" }, { "\\tx", "\tx", "tx" }, { "", "", "a" },
		{ "[\\^]", "^", "\\" }, { "\\D", "x", "5" }, { "(a+)+b{2,}", "aabbb", "ab" }, { "\\{x\\}", "{x}", "x" }, { "(a|b)*", "abab", "c" },
	};
	static const char *const bad[] = { "a*?", "a+?", "(?P<n>x)", "\\bx", "\\pL", "(?!x)", "\\1", "[a", "(a", "[\\b]", "a\\", "a++", "a**", "*a", "a|+", "(+a)",
	                             "((((((((((((((x+)+)+)+)+)+)+)+)+)+)+)+)+)+)+", "((a{99}){99}){99}", "a{1", "a{x}", "a{99999999}", ")+", "a)b", "a)|(b" };
	for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
		struct relabel_pattern p;
		struct error err;
		assert_int_equal(relabel_pattern_init(&p, good[i].expression, &err), E_OK);
		assert_int_equal(regexec(&p.compiled, good[i].matches, 0, NULL, 0), 0);
		assert_int_equal(regexec(&p.compiled, good[i].not, 0, NULL, 0), REG_NOMATCH);
		relabel_pattern_finish(&p);
	}
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct relabel_pattern p;
		struct error err = { 0 };
		assert_int_equal(relabel_pattern_init(&p, bad[i], &err), E_FORMAT);
		assert_true(err.text[0]);
	}
}

static void test_md5(void **state)
{
	(void)state;
	/* RFC 1321's, the last eight bytes. */
	assert_true(md5_tail("", 0) == 0xe9800998ecf8427eull);
	assert_true(md5_tail("message digest", 14) == 0x525a2f31aaf161d0ull);
	assert_true(md5_tail("12345678901234567890123456789012345678901234567890123456789012345678901234567890", 80) == 0xac49da2e2107b67aull);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_actions), cmocka_unit_test(test_order), cmocka_unit_test(test_expressions), cmocka_unit_test(test_md5),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
