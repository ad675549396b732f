#include "record/relabel.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/text.h"
#include "record/md5.h"

#define EXPRESSION_MAX ((size_t)64 << 10)
#define VALUE_MAX ((size_t)1 << 20)
#define LABELS_MAX ((size_t)4096)
#define SIZE_REPEATED_MAX 5000

/* --- labels --- */

static size_t find(const struct labels *l, const char *name)
{
	size_t i = 0;
	while (i < l->n && strcmp(l->items[i].name, name) != 0)
		i++;
	return i;
}

const char *labels_get(const struct labels *l, const char *name)
{
	size_t i = find(l, name);
	return i < l->n ? l->items[i].value : "";
}

bool labels_set(struct labels *l, const char *name, const char *value)
{
	size_t i = find(l, name);
	if (!*value) {
		if (i < l->n)
			l->items[i] = l->items[--l->n];
		return true;
	}
	const char *copy = arena_text(l->arena, value, strlen(value));
	if (copy && i == l->n) {
		struct store_label *items = l->n < LABELS_MAX ? arena_grow(l->arena, l->items, l->n, sizeof *items) : NULL;
		const char *called = arena_text(l->arena, name, strlen(name));
		if (!items || !called) {
			l->arena->failed = true;
			return false;
		}
		l->items = items;
		l->items[l->n++].name = called;
	}
	if (copy)
		l->items[i].value = copy;
	return copy;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct store_label *)a)->name, ((const struct store_label *)b)->name);
}

void labels_sort(struct labels *l)
{
	if (l->n)
		qsort(l->items, l->n, sizeof *l->items, by_name);
}

static bool is_word(char c)
{
	return (unsigned)(c - '0') < 10 || (unsigned)((c | 32) - 'a') < 26 || c == '_';
}

bool label_name_valid(const char *name)
{
	if (!*name || (unsigned)(*name - '0') < 10)
		return false;
	while (is_word(*name))
		name++;
	return !*name;
}

/* --- expressions --- */

/* One escape of a bracket expression: what stands for it inside POSIX brackets, or NULL. */
static const char *bracket_class(char c)
{
	return c == 'd' ? "0-9" : c == 'w' ? "A-Za-z0-9_" : c == 's' ? " \t\n\r\f" : c == 't' ? "\t" : c == 'n' ? "\n" : NULL;
}

/*
 * "[...]" at *at. In POSIX brackets a backslash is itself, and ']', '^' and '-' stand for themselves only at certain places: they
 * are collected and written there.
 */
static int add_bracket(const char **at, struct buf *out, struct error *err)
{
	const char *p = *at + 1;
	bool negated = *p == '^', close = false, caret = false, dash = false;
	size_t before = out->len;
	struct buf others;
	p += negated;
	buf_init(&others, EXPRESSION_MAX);
	for (const char *first = p; *p && (*p != ']' || p == first);) {
		const char *class_end = p[0] == '[' && p[1] == ':' ? strstr(p, ":]") : NULL;
		const char *class = p[0] == '\\' ? bracket_class(p[1]) : NULL;
		if (class_end) {
			buf_add(&others, p, (size_t)(class_end + 2 - p));
			p = class_end + 2;
			continue;
		}
		if (class) {
			buf_adds(&others, class);
			p += 2;
			continue;
		}
		if (p[0] == '\\' && (!p[1] || is_word(p[1]))) {
			buf_finish(&others);
			return error_set(err, E_FORMAT, "'\\%.1s' inside [] is not understood", p + 1);
		}
		p += p[0] == '\\';
		if (p[1] == '-' && p[2] && p[2] != ']' && p[2] != '\\') {
			buf_add(&others, p, 3);
			p += 3;
			continue;
		}
		close |= *p == ']';
		caret |= *p == '^';
		dash |= *p == '-';
		if (*p != ']' && *p != '^' && *p != '-')
			buf_addc(&others, *p);
		p++;
	}
	buf_addc(out, '[');
	/* A lone "^" can't be written as a bracket. */
	bool lone = caret && !negated && !close && !dash && others.len == 0;
	if (negated)
		buf_addc(out, '^');
	if (close)
		buf_addc(out, ']');
	buf_add(out, others.data ? others.data : "", others.len);
	if (caret && !lone)
		buf_addc(out, '^');
	if (dash)
		buf_addc(out, '-');
	buf_addc(out, ']');
	if (lone) {
		buf_cut(out, before);
		buf_adds(out, "\\^");
	}
	buf_finish(&others);
	if (!*p)
		return error_set(err, E_FORMAT, "a '[' has no ']'");
	*at = p + 1;
	return E_OK;
}

static int add_escape(const char **at, struct buf *out, struct error *err)
{
	char c = (*at)[1];
	if (c == 'd' || c == 'D')
		buf_adds(out, c == 'd' ? "[0-9]" : "[^0-9]");
	else if (c == 't' || c == 'n')
		buf_addc(out, c == 't' ? '\t' : '\n');
	else if (c && (strchr("wWsS", c) || !is_word(c)))
		buf_add(out, *at, 2);
	else
		return error_set(err, E_FORMAT, "'\\%.1s' is not understood", *at + 1);
	*at += 2;
	return E_OK;
}

/* What regcomp will make of an expression, which writes repetitions out: "(((x+)+)+)+" has 16 x. */
struct size {
	uint64_t sum[RELABEL_GROUPS + 1];   /* of each open group */
	unsigned depth;
	uint64_t last;                      /* what a repetition would repeat; 0: nothing */
};

static void add_size(struct size *z, uint64_t n)
{
	z->sum[z->depth] += n;
	z->last = n;
}

static int add_group(const char **at, struct relabel_pattern *p, unsigned *compiled_groups, struct size *z, struct buf *out, struct error *err)
{
	bool plain = (*at)[1] != '?';
	if (!plain && (*at)[2] != ':')
		return error_set(err, E_FORMAT, "'%.4s' is not understood: of (?...) there are (?:...), and (?i) at the beginning", *at);
	if (++*compiled_groups >= RELABEL_GROUPS)
		return error_set(err, E_FORMAT, "more than %d groups", RELABEL_GROUPS - 2);
	if (plain)
		p->groups[++p->n_groups] = (unsigned char)*compiled_groups;
	buf_addc(out, '(');
	z->sum[++z->depth] = 0;
	z->last = 0;
	*at += plain ? 1 : 3;
	return E_OK;
}

static int end_group(const char **at, struct size *z, struct buf *out, struct error *err)
{
	if (!z->depth)
		return error_set(err, E_FORMAT, "a ')' has no '('");
	uint64_t n = z->sum[z->depth--] + 1;
	add_size(z, n);
	buf_addc(out, *(*at)++);
	return E_OK;
}

/* "{n}", "{n,}", "{n,m}": how often at most; 0: it is none of these. */
static uint64_t repetitions(const char *at, size_t n)
{
	size_t first = strspn(at + 1, "0123456789"), comma = at[1 + first] == ',';
	size_t second = comma ? strspn(at + 2 + first, "0123456789") : 0;
	uint64_t least, most = 0;
	if (1 + first + comma + second + 1 != n || at[n - 1] != '}' || !text_parse_u64(at + 1, first, 10, &least) ||
	    (second && !text_parse_u64(at + 2 + first, second, 10, &most)))
		return 0;
	return (least > most ? least : most) + 1;
}

static int add_repetition(const char **at, struct size *z, struct buf *out, struct error *err)
{
	size_t n = **at == '{' ? strcspn(*at, "}") + 1 : 1;
	uint64_t times = **at == '+' ? 2 : **at == '{' ? repetitions(*at, n) : 1;
	if (!times)
		return error_set(err, E_FORMAT, "a '{' that is no repetition like {2} or {2,5}; a brace is \\{");
	if ((*at)[n] == '?')
		return error_set(err, E_FORMAT, "'%.*s': repetition that takes as little as it can is not understood", (int)n + 1, *at);
	if (!z->last)
		return error_set(err, E_FORMAT, "'%.*s': there is nothing that it could repeat", (int)n, *at);
	if (times > SIZE_REPEATED_MAX || z->last * times > SIZE_REPEATED_MAX || z->sum[z->depth] + z->last * times > SIZE_REPEATED_MAX)
		return error_set(err, E_FORMAT, "repetitions that make it too large");
	z->sum[z->depth] += z->last * (times - 1);
	z->last = 0;
	buf_add(out, *at, n);
	*at += n;
	return E_OK;
}

/* As POSIX has it, the whole of it anchored. */
static int translate(struct relabel_pattern *p, const char *at, struct buf *out, struct error *err)
{
	struct size z = { .depth = 0 };
	unsigned compiled_groups = 1;
	int failed = E_OK;
	buf_adds(out, "^(");
	while (*at && !failed) {
		if (*at == '\\') {
			failed = add_escape(&at, out, err);
			add_size(&z, 1);
		} else if (*at == '[') {
			failed = add_bracket(&at, out, err);
			add_size(&z, 1);
		} else if (*at == '(') {
			failed = add_group(&at, p, &compiled_groups, &z, out, err);
		} else if (*at == ')') {
			failed = end_group(&at, &z, out, err);
		} else if (strchr("*+?{", *at)) {
			failed = add_repetition(&at, &z, out, err);
		} else {
			add_size(&z, *at != '|');
			buf_addc(out, *at++);
		}
	}
	buf_adds(out, ")$");
	return failed;
}

int relabel_pattern_init(struct relabel_pattern *p, const char *expression, struct error *err)
{
	struct buf posix;
	char reason[128];
	memset(p, 0, sizeof *p);
	bool any_case = strncmp(expression, "(?i)", 4) == 0;
	buf_init(&posix, EXPRESSION_MAX);
	int failed = translate(p, expression + (any_case ? 4 : 0), &posix, err);
	if (!failed && posix.failed)
		failed = error_set(err, E_FORMAT, "longer than %zu bytes", EXPRESSION_MAX);
	int code = failed ? 0 : regcomp(&p->compiled, posix.data, REG_EXTENDED | (any_case ? REG_ICASE : 0));
	if (code) {
		regerror(code, &p->compiled, reason, sizeof reason);
		failed = error_set(err, E_FORMAT, "%s", reason);
	}
	buf_finish(&posix);
	return failed;
}

int relabel_posix(const char *expression, struct buf *out, struct error *err)
{
	struct relabel_pattern p;
	if (strncmp(expression, "(?i)", 4) == 0)
		return error_set(err, E_FORMAT, "(?i) is not understood here: write [aA] for a");
	int failed = relabel_pattern_init(&p, expression, err);
	if (failed)
		return failed;
	relabel_pattern_finish(&p);
	memset(&p, 0, sizeof p);
	return translate(&p, expression, out, err);
}

void relabel_pattern_finish(struct relabel_pattern *p)
{
	regfree(&p->compiled);
}

static bool matches(const struct relabel_pattern *p, const char *value, regmatch_t m[RELABEL_GROUPS])
{
	return regexec(&p->compiled, value, RELABEL_GROUPS, m, 0) == 0;
}

/* Digits are a group's number; another name is no group's, and stands for nothing. */
static void add_reference(const struct relabel_pattern *p, const char *name, size_t n, const char *value, const regmatch_t *m,
                          struct buf *out)
{
	unsigned group = 0;
	for (size_t i = 0; i < n; i++) {
		if ((unsigned)(name[i] - '0') >= 10 || group >= RELABEL_GROUPS)
			return;
		group = group * 10 + (unsigned)(name[i] - '0');
	}
	if (group > p->n_groups)
		return;
	const regmatch_t *at = &m[group ? p->groups[group] : 0];
	if (at->rm_so >= 0)
		buf_add(out, value + at->rm_so, (size_t)(at->rm_eo - at->rm_so));
}

/* "$1", "${1}", "$$"; a '$' before anything else is itself. */
static void expand(const struct relabel_pattern *p, const char *template, const char *value, const regmatch_t *m, struct buf *out)
{
	for (const char *at = template; *at;) {
		bool braced = at[0] == '$' && at[1] == '{';
		const char *name = at + (braced ? 2 : 1);
		size_t n = 0;
		while (*at == '$' && is_word(name[n]))
			n++;
		if (at[0] == '$' && at[1] == '$') {
			buf_addc(out, '$');
			at += 2;
		} else if (n && (!braced || name[n] == '}')) {
			add_reference(p, name, n, value, m, out);
			at = name + n + braced;
		} else {
			buf_addc(out, *at++);
		}
	}
}

/* --- actions --- */

static const char *const action_names[RELABEL_ACTIONS] = {
	"replace", "keep", "drop", "labelmap", "labeldrop", "labelkeep", "hashmod", "lowercase", "uppercase", "keepequal", "dropequal",
};

const char *relabel_action_name(enum relabel_action a)
{
	return action_names[a];
}

static void set_text(struct labels *l, const char *name, const struct buf *value)
{
	if (value->failed)
		l->arena->failed = true;
	else
		labels_set(l, name, value->data ? value->data : "");
}

static void replace(struct labels *l, const struct relabel_rule *r, const char *value)
{
	regmatch_t m[RELABEL_GROUPS];
	struct buf target, text;
	if (!matches(&r->pattern, value, m))
		return;
	buf_init(&target, VALUE_MAX);
	buf_init(&text, VALUE_MAX);
	expand(&r->pattern, r->target, value, m, &target);
	expand(&r->pattern, r->replacement, value, m, &text);
	if (target.data && label_name_valid(target.data))
		set_text(l, target.data, &text);
	buf_finish(&target);
	buf_finish(&text);
}

/* What matches is copied under its new name; the copies themselves aren't looked at. */
static void map_names(struct labels *l, const struct relabel_rule *r)
{
	regmatch_t m[RELABEL_GROUPS];
	size_t n = l->n;
	struct store_label *before = arena_take(l->arena, (n + 1) * sizeof *before);
	if (!before)
		return;
	if (n)
		memcpy(before, l->items, n * sizeof *before);
	for (size_t i = 0; i < n; i++) {
		struct buf name;
		if (!matches(&r->pattern, before[i].name, m))
			continue;
		buf_init(&name, VALUE_MAX);
		expand(&r->pattern, r->replacement, before[i].name, m, &name);
		if (name.data && *name.data)
			labels_set(l, name.data, before[i].value);
		buf_finish(&name);
	}
}

static void filter_names(struct labels *l, const struct relabel_rule *r)
{
	regmatch_t m[RELABEL_GROUPS];
	size_t kept = 0;
	for (size_t i = 0; i < l->n; i++)
		if (matches(&r->pattern, l->items[i].name, m) == (r->action == RELABEL_LABELKEEP))
			l->items[kept++] = l->items[i];
	l->n = kept;
}

static void change_case(struct labels *l, const struct relabel_rule *r, struct buf *value)
{
	char first = r->action == RELABEL_LOWERCASE ? 'A' : 'a';
	for (size_t i = 0; i < value->len; i++)
		if ((unsigned)(value->data[i] - first) < 26)
			value->data[i] ^= 32;
	set_text(l, r->target, value);
}

static void set_modulus(struct labels *l, const struct relabel_rule *r, const struct buf *value)
{
	char text[24];
	snprintf(text, sizeof text, "%" PRIu64, md5_tail(value->data, value->len) % r->modulus);
	labels_set(l, r->target, text);
}

/* False: the target is dropped. */
static bool apply(struct labels *l, const struct relabel_rule *r, struct buf *joined)
{
	regmatch_t m[RELABEL_GROUPS];
	const char *value = joined->data ? joined->data : "";
	switch (r->action) {
	case RELABEL_REPLACE:
		replace(l, r, value);
		break;
	case RELABEL_KEEP:
		return matches(&r->pattern, value, m);
	case RELABEL_DROP:
		return !matches(&r->pattern, value, m);
	case RELABEL_LABELMAP:
		map_names(l, r);
		break;
	case RELABEL_LABELDROP:
	case RELABEL_LABELKEEP:
		filter_names(l, r);
		break;
	case RELABEL_HASHMOD:
		set_modulus(l, r, joined);
		break;
	case RELABEL_LOWERCASE:
	case RELABEL_UPPERCASE:
		change_case(l, r, joined);
		break;
	case RELABEL_KEEPEQUAL:
		return strcmp(labels_get(l, r->target), value) == 0;
	case RELABEL_DROPEQUAL:
		return strcmp(labels_get(l, r->target), value) != 0;
	case RELABEL_ACTIONS:
		break;
	}
	return true;
}

bool relabel(struct labels *l, const struct relabel_rule *rules, size_t n)
{
	bool kept = true;
	for (size_t i = 0; i < n && kept && !l->arena->failed; i++) {
		struct buf joined;
		buf_init(&joined, VALUE_MAX);
		for (size_t k = 0; k < rules[i].n_sources; k++) {
			if (k)
				buf_adds(&joined, rules[i].separator);
			buf_adds(&joined, labels_get(l, rules[i].sources[k]));
		}
		if (joined.failed)
			l->arena->failed = true;
		else
			kept = apply(l, &rules[i], &joined);
		buf_finish(&joined);
	}
	return kept;
}
