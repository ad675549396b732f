/*
 * Focus, ignore, hide, show, show-from and the tag filters, with pprof's meaning. An expression is tried once
 * on each distinct name; frames then carry one flag each.
 */
#include "profile/view_private.h"

#include <regex.h>
#include <stdio.h>
#include <stdlib.h>

static int compile(regex_t *re, const char *text, const char *option, struct error *err)
{
	int code = regcomp(re, text, REG_EXTENDED | REG_NOSUB);
	if (!code)
		return E_OK;
	char why[200];
	regerror(code, re, why, sizeof why);
	return error_set(err, E_USAGE, "%s: '%s' is not a regular expression: %s", option, text, why);
}

int view_check_expressions(const struct view_options *o, struct error *err)
{
	const struct { const char *text, *option; } all[] = {
		{ o->focus, "--focus" }, { o->ignore, "--ignore" }, { o->hide, "--hide" }, { o->show, "--show" },
		{ o->show_from, "--show-from" },
	};
	for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
		regex_t re;
		int code = all[i].text ? compile(&re, all[i].text, all[i].option, err) : E_OK;
		if (code)
			return code;
		if (all[i].text)
			regfree(&re);
	}
	return E_OK;
}

/* --- frames ---------------------------------------------------------------- */

/* One expression over the profile's strings, each asked once. */
struct matcher {
	regex_t re;
	const struct profile *p;
	uint8_t *known;             /* per string: 0 not asked, 1 no, 2 yes */
};

static bool matches(struct matcher *m, uint32_t string)
{
	if (!string)
		return false;
	if (!m->known[string])
		m->known[string] =
		    regexec(&m->re, profile_text(m->p, string), 0, NULL, 0) == 0 ? 2 : 1;
	return m->known[string] == 2;
}

static bool slot_matches(struct matcher *m, const struct view *v, uint32_t location, uint32_t slot)
{
	const struct profile *p = m->p;
	const struct location *l = &p->locations[location];
	if (l->mapping != PROFILE_NONE && matches(m, p->mappings[l->mapping].file))
		return true;
	if (l->n_lines == 0)
		return matches(m, v->entries[v->private->slot_entry[slot]].name);
	uint32_t first = v->private->slot_first[location], n = v->private->slot_first[location + 1] - first;
	uint32_t line = l->first_line + (l->n_lines - n) + (slot - first);
	const struct function *f = &p->functions[p->lines[line].function];
	return matches(m, f->name) || matches(m, f->system_name) || matches(m, f->file);
}

/* Sets flag on the slots that match (or, when inverted, on those that do not). */
static int flag_slots(struct view *v, const char *text, const char *option, uint8_t flag, bool inverted,
                      bool *ret_used, struct error *err)
{
	if (!text)
		return E_OK;
	const struct profile *p = v->profile;
	struct matcher m = { .p = p };
	int code = compile(&m.re, text, option, err);
	if (code)
		return code;
	m.known = calloc(p->strings.n, 1);
	if (!m.known)
		code = error_nomem(err, option);
	for (uint32_t i = 0; !code && i < p->n_locations; i++)
		for (uint32_t s = v->private->slot_first[i]; s < v->private->slot_first[i + 1]; s++)
			if (slot_matches(&m, v, i, s) != inverted)
				v->private->slot_flags[s] |= flag;
	free(m.known);
	regfree(&m.re);
	*ret_used = true;
	return code;
}

static void flag_allocator(struct view *v)
{
	const struct profile *p = v->profile;
	struct view_private *x = v->private;
	uint8_t *known = calloc(p->n_functions + 1, 1);   /* without memory for it: asked each time */
	for (uint32_t i = 0; i < p->n_locations; i++) {
		const struct location *l = &p->locations[i];
		bool mapped = l->mapping != PROFILE_NONE &&
		              mapping_is_allocator(profile_text(p, p->mappings[l->mapping].file));
		uint32_t first = x->slot_first[i], n = x->slot_first[i + 1] - first;
		for (uint32_t k = 0; k < n; k++) {
			bool allocator = mapped, unnamed = l->n_lines == 0;
			if (!allocator && !unnamed) {
				uint32_t at = l->first_line + (l->n_lines - n) + k;
				uint32_t f = p->lines[at].function;
				const char *name = profile_text(p, p->functions[f].name);
				uint8_t what = known ? known[f] : 0;
				if (!what)
					what = function_is_allocator(name) ? 1
					       : function_is_unnamed(name) ? 2
					                                   : 4;
				if (known)
					known[f] = what;
				allocator = what == 1;
				unnamed = what == 2;
			}
			x->slot_flags[first + k] |= (uint8_t)(allocator ? FRAME_ALLOCATOR
			                                      : unnamed ? FRAME_UNNAMED
			                                                : 0);
		}
	}
	free(known);
}

int view_filter_slots(struct view *v, const struct view_options *o, struct error *err)
{
	struct view_private *x = v->private;
	if (!x->keep_allocator)
		flag_allocator(v);
	int code = flag_slots(v, o->focus, "--focus", SLOT_FOCUS, false, &x->has_focus, err);
	if (!code)
		code = flag_slots(v, o->ignore, "--ignore", SLOT_IGNORE, false, &x->has_ignore, err);
	if (!code)
		code = flag_slots(v, o->hide, "--hide", SLOT_REMOVED, false, &x->has_removed, err);
	if (!code)
		code = flag_slots(v, o->show, "--show", SLOT_REMOVED, true, &x->has_removed, err);
	if (!code)
		code = flag_slots(v, o->show_from, "--show-from", SLOT_SHOW_FROM, false, &x->has_show_from,
		                  err);
	return code;
}

bool view_filter_stack(struct view *v, uint32_t stack)
{
	struct view_private *x = v->private;
	if (!x->has_focus && !x->has_ignore && !x->has_show_from)
		return true;
	size_t n = view_stack_slots(v, stack);
	if (n == SIZE_MAX)
		return false;
	uint8_t seen = 0;
	for (size_t i = 0; i < n; i++)
		seen |= x->slot_flags[x->slots[i]];
	return (!x->has_focus || (seen & SLOT_FOCUS)) && !(seen & SLOT_IGNORE) &&
	       (!x->has_show_from || (seen & SLOT_SHOW_FROM));
}

/* --- labels ---------------------------------------------------------------- */

/* "regex", "key=regex", or for numbers "64kb", "64kb:", ":1mb", "64kb:1mb". */
struct tag_filter {
	char key[256];
	bool range;
	uint64_t low, high;
	regex_t re;
};

/* "64kb" and "64k" alike; a bare number has no unit and counts as is. */
static bool parse_amount(const char *text, size_t n, uint64_t *ret)
{
	uint64_t value = 0;
	size_t i = 0;
	for (; i < n && text[i] >= '0' && text[i] <= '9'; i++)
		if (__builtin_mul_overflow(value, 10, &value) ||
		    __builtin_add_overflow(value, (uint64_t)(text[i] - '0'), &value))
			return false;
	if (i == 0)
		return false;
	static const char units[] = "bkmgt";
	if (i < n) {
		const char *unit = memchr(units, text[i] | 0x20, sizeof units - 1);
		int shift = unit ? 10 * (int)(unit - units) : 64;
		if (shift == 64 || (value && shift >= __builtin_clzll(value)))
			return false;
		value <<= shift;
		i++;
		if (i < n && (text[i] | 0x20) == 'i')
			i++;
		if (i < n && (text[i] | 0x20) == 'b')
			i++;
	}
	*ret = value;
	return i == n;
}

static bool parse_range(const char *text, uint64_t *ret_low, uint64_t *ret_high)
{
	const char *colon = strchr(text, ':');
	uint64_t low = 0, high = UINT64_MAX;
	if (!colon) {
		if (!parse_amount(text, strlen(text), &low))
			return false;
		high = low;
	} else {
		if (colon > text && !parse_amount(text, (size_t)(colon - text), &low))
			return false;
		if (colon[1] && !parse_amount(colon + 1, strlen(colon + 1), &high))
			return false;
		if (colon == text && !colon[1])
			return false;
	}
	*ret_low = low;
	*ret_high = high;
	return true;
}

static int tag_parse(struct tag_filter *f, const char *text, const char *option, struct error *err)
{
	const char *equals = strchr(text, '=');
	*f = (struct tag_filter){ 0 };
	if (equals && (size_t)(equals - text) < sizeof f->key) {
		memcpy(f->key, text, (size_t)(equals - text));
		text = equals + 1;
	}
	f->range = parse_range(text, &f->low, &f->high);
	return f->range ? E_OK : compile(&f->re, text, option, err);
}

static bool tag_matches(const struct tag_filter *f, const struct profile *p, const struct label_set *set)
{
	for (uint32_t i = 0; i < set->n; i++) {
		const struct label *l = &p->labels[set->first + i];
		const char *key = profile_text(p, l->key);
		if (f->key[0] && strcmp(f->key, key))
			continue;
		if (!l->str) {
			if (f->range && l->number >= 0 && (uint64_t)l->number >= f->low &&
			    (uint64_t)l->number <= f->high)
				return true;
			continue;
		}
		if (f->range)
			continue;
		/* pprof also matches "key:value" */
		char both[1024];
		snprintf(both, sizeof both, "%s:%s", key, profile_text(p, l->str));
		if (!regexec(&f->re, f->key[0] ? profile_text(p, l->str) : both, 0, NULL, 0) ||
		    !regexec(&f->re, profile_text(p, l->str), 0, NULL, 0))
			return true;
	}
	return false;
}

int view_filter_labels(const struct profile *p, const struct view_options *o, bool *ret_keep, struct error *err)
{
	const char *const texts[2] = { o->tagfocus, o->tagignore };
	static const char *const names[2] = { "--tagfocus", "--tagignore" };
	for (size_t i = 0; i < p->n_label_sets; i++)
		ret_keep[i] = true;
	for (int k = 0; k < 2; k++) {
		if (!texts[k])
			continue;
		struct tag_filter f;
		int code = tag_parse(&f, texts[k], names[k], err);
		if (code)
			return code;
		for (size_t i = 0; i < p->n_label_sets; i++)
			ret_keep[i] = ret_keep[i] && tag_matches(&f, p, &p->label_sets[i]) == (k == 0);
		if (!f.range)
			regfree(&f.re);
	}
	return E_OK;
}
