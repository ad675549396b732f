/* libyaml's loader makes a table of nodes, aliases are numbers in it: nothing here follows a text deeper than a table of ours says. */
#include "record/doc.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/nearest.h"
#include "base/text.h"

#define KEYS_MAX 32
#define SHOWN_MAX 60
#define LABELS_MAX 256

static int fail_at(struct doc *t, yaml_mark_t mark, const char *format, va_list arguments)
{
	char text[400];
	vsnprintf(text, sizeof text, format, arguments);
	/* Keys and values may have newlines in them; an error has one line. */
	for (char *at = text; *at; at++)
		if ((unsigned char)*at < ' ' || *at == '\177')
			*at = ' ';
	return error_set(t->err, E_FORMAT, "%s:%zu:%zu: %s", t->name, mark.line + 1, mark.column + 1, text);
}

static int fail_mark(struct doc *t, yaml_mark_t mark, const char *format, ...) __attribute__((format(printf, 3, 4)));
static int fail_mark(struct doc *t, yaml_mark_t mark, const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	int failed = fail_at(t, mark, format, arguments);
	va_end(arguments);
	return failed;
}

int doc_fail(struct doc *t, const yaml_node_t *node, const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	int failed = fail_at(t, node->start_mark, format, arguments);
	va_end(arguments);
	return failed;
}

int doc_place(struct doc *t, const yaml_node_t *node, int failed)
{
	if (!failed)
		return E_OK;
	char text[sizeof t->err->text];
	snprintf(text, sizeof text, "%s", t->err->text);
	if (failed == E_NOMEM)
		return failed;
	return doc_fail(t, node, "%s", text);
}

static int fail_memory(struct doc *t)
{
	return error_set(t->err, E_NOMEM, "%s: no memory for a configuration of this size", t->name);
}

int doc_init(struct doc *t, const char *text, size_t n, yaml_node_t **ret_root)
{
	yaml_parser_t parser;
	yaml_document_t more;
	int failed = E_OK;
	if (!yaml_parser_initialize(&parser))
		return fail_memory(t);
	yaml_parser_set_input_string(&parser, (const unsigned char *)text, n);
	bool loaded = yaml_parser_load(&parser, &t->document);
	if (!loaded || !yaml_parser_load(&parser, &more)) {
		if (parser.error == YAML_MEMORY_ERROR)
			failed = fail_memory(t);
		else if (parser.error == YAML_READER_ERROR)
			failed = error_set(t->err, E_FORMAT, "%s: byte %zu: %s", t->name, parser.problem_offset, parser.problem);
		else
			failed = fail_mark(t, parser.problem_mark, "%s%s%s", parser.context ? parser.context : "", parser.context ? ": " : "",
			                   parser.problem ? parser.problem : "not YAML");
		if (loaded)
			yaml_document_delete(&t->document);
		yaml_parser_delete(&parser);
		return failed;
	}
	yaml_node_t *second = yaml_document_get_root_node(&more);
	if (second) {
		failed = fail_mark(t, second->start_mark, "a second document: there can be one only");
		yaml_document_delete(&t->document);
	} else {
		*ret_root = yaml_document_get_root_node(&t->document);
	}
	yaml_document_delete(&more);
	yaml_parser_delete(&parser);
	return failed;
}

void doc_finish(struct doc *t)
{
	yaml_document_delete(&t->document);
}

/* --- shapes --- */

static const char *scalar(const yaml_node_t *node)
{
	return node->type == YAML_SCALAR_NODE && strlen((const char *)node->data.scalar.value) == node->data.scalar.length
	           ? (const char *)node->data.scalar.value : NULL;
}

/* "key:" without a value, "~", "null". */
static bool is_nothing(const yaml_node_t *node)
{
	const char *text = scalar(node);
	return text && node->data.scalar.style == YAML_PLAIN_SCALAR_STYLE &&
	       (!*text || strcmp(text, "~") == 0 || strcmp(text, "null") == 0);
}

static int fail_key(struct doc *t, const yaml_node_t *key, const char *what, const struct doc_key *keys, size_t n)
{
	const char *names[KEYS_MAX], *text = scalar(key);
	for (size_t i = 0; i < n && i < KEYS_MAX; i++)
		names[i] = keys[i].name;
	if (!text)
		return doc_fail(t, key, "%s: a key that is no text", what);
	const char *near = nearest_word(text, names, n < KEYS_MAX ? n : KEYS_MAX);
	if (near)
		return doc_fail(t, key, "%s has no key '%.*s': is '%s' meant?", what, SHOWN_MAX, text, near);
	return doc_fail(t, key, "%s has no key '%.*s'", what, SHOWN_MAX, text);
}

int doc_mapping(struct doc *t, const yaml_node_t *node, const char *what, const struct doc_key *keys, size_t n, void *to)
{
	bool seen[KEYS_MAX] = { false };
	if (is_nothing(node))
		return E_OK;
	if (node->type != YAML_MAPPING_NODE)
		return doc_fail(t, node, "%s has to be a mapping, lines of \"key: value\"", what);
	for (yaml_node_pair_t *pair = node->data.mapping.pairs.start; pair < node->data.mapping.pairs.top; pair++) {
		const yaml_node_t *key = yaml_document_get_node(&t->document, pair->key);
		const yaml_node_t *value = yaml_document_get_node(&t->document, pair->value);
		const char *text = scalar(key);
		size_t i = 0;
		while (i < n && !(text && strcmp(text, keys[i].name) == 0))
			i++;
		if (i == n)
			return fail_key(t, key, what, keys, n);
		if (seen[i])
			return doc_fail(t, key, "%s has '%s' twice", what, text);
		seen[i] = true;
		int failed = keys[i].read(t, value, (char *)to + keys[i].at);
		if (failed)
			return failed;
	}
	return t->arena->failed ? fail_memory(t) : E_OK;
}

int doc_list(struct doc *t, const yaml_node_t *node, const char *what, doc_read *read, void *to)
{
	if (is_nothing(node))
		return E_OK;
	if (node->type != YAML_SEQUENCE_NODE)
		return doc_fail(t, node, "%s has to be a list, lines of \"- value\" or [a, b]", what);
	for (yaml_node_item_t *item = node->data.sequence.items.start; item < node->data.sequence.items.top; item++) {
		int failed = read(t, yaml_document_get_node(&t->document, *item), to);
		if (failed)
			return failed;
	}
	return t->arena->failed ? fail_memory(t) : E_OK;
}

const yaml_node_t *doc_find(struct doc *t, const yaml_node_t *mapping, const char *key)
{
	if (mapping->type != YAML_MAPPING_NODE)
		return NULL;
	for (yaml_node_pair_t *pair = mapping->data.mapping.pairs.start; pair < mapping->data.mapping.pairs.top; pair++) {
		const char *text = scalar(yaml_document_get_node(&t->document, pair->key));
		if (text && strcmp(text, key) == 0)
			return yaml_document_get_node(&t->document, pair->value);
	}
	return NULL;
}

/* --- values --- */

static int need_scalar(struct doc *t, const yaml_node_t *node, const char *what, const char **ret)
{
	*ret = scalar(node);
	return *ret ? E_OK : doc_fail(t, node, "here has to be %s", what);
}

int doc_text(struct doc *t, const yaml_node_t *node, void *to)
{
	const char *text;
	int failed = need_scalar(t, node, "a text", &text);
	if (!failed)
		*(const char **)to = arena_text(t->arena, text, strlen(text));
	return failed;
}

int doc_path(struct doc *t, const yaml_node_t *node, void *to)
{
	const char *text;
	struct buf whole;
	int failed = need_scalar(t, node, "a path", &text);
	if (failed)
		return failed;
	if (!*text)
		return doc_fail(t, node, "an empty path");
	buf_init(&whole, 1 << 16);
	if (*text != '/' && t->folder && *t->folder)
		buf_printf(&whole, "%s/", t->folder);
	buf_adds(&whole, text);
	if (whole.failed)
		failed = doc_fail(t, node, "a path of more than 64 KiB");
	else
		*(const char **)to = arena_text(t->arena, whole.data, whole.len);
	buf_finish(&whole);
	return failed;
}

int doc_flag(struct doc *t, const yaml_node_t *node, void *to)
{
	const char *text;
	int failed = need_scalar(t, node, "true or false", &text);
	if (failed)
		return failed;
	bool yes = strcmp(text, "true") == 0;
	if (!yes && strcmp(text, "false") != 0)
		return doc_fail(t, node, "'%.*s' is neither true nor false", SHOWN_MAX, text);
	*(bool *)to = yes;
	return E_OK;
}

int doc_count(struct doc *t, const yaml_node_t *node, void *to)
{
	const char *text;
	int failed = need_scalar(t, node, "a number", &text);
	if (!failed && !text_parse_u64(text, strlen(text), 10, to))
		return doc_fail(t, node, "'%.*s' is no whole number of 0 or more", SHOWN_MAX, text);
	return failed;
}

int doc_bytes(struct doc *t, const yaml_node_t *node, void *to)
{
	const char *text;
	int failed = need_scalar(t, node, "a size like 64MB", &text);
	if (!failed && !text_parse_bytes(text, to))
		return doc_fail(t, node, "'%.*s' is no size like 64MB", SHOWN_MAX, text);
	return failed;
}

bool config_duration(const char *text, int64_t *ret_ms)
{
	static const struct {
		const char *name;
		int64_t ms;
	} units[] = { { "y", 365 * 86400000LL }, { "w", 7 * 86400000LL }, { "d", 86400000 }, { "h", 3600000 }, { "m", 60000 }, { "s", 1000 },
	              { "ms", 1 } };
	size_t next = 0, n = sizeof units / sizeof *units;
	int64_t sum = 0, part;
	if (!*text)
		return false;
	while (*text) {
		uint64_t value;
		size_t digits = strspn(text, "0123456789");
		if (!text_parse_u64(text, digits, 10, &value) || value > INT64_MAX)
			return false;
		text += digits;
		size_t letters = strspn(text, "ywdhms"), i = next;
		while (i < n && (strlen(units[i].name) != letters || strncmp(units[i].name, text, letters) != 0))
			i++;
		if (i == n || __builtin_mul_overflow((int64_t)value, units[i].ms, &part) || __builtin_add_overflow(sum, part, &sum))
			return false;
		text += letters;
		next = i + 1;
	}
	*ret_ms = sum;
	return true;
}

int doc_duration(struct doc *t, const yaml_node_t *node, void *to)
{
	const char *text;
	int64_t ms;
	int failed = need_scalar(t, node, "a duration like 15s", &text);
	if (failed)
		return failed;
	if (!config_duration(text, &ms))
		return doc_fail(t, node, "'%.*s' is no duration like 15s, 1h30m or 2d (units y w d h m s ms, the largest first)", SHOWN_MAX, text);
	if (ms <= 0)
		return doc_fail(t, node, "a duration of 0");
	*(int64_t *)to = ms;
	return E_OK;
}

bool texts_add(struct arena *a, struct config_texts *t, const char *text)
{
	const char **items = arena_grow(a, t->items, t->n, sizeof *items);
	if (!items || !text)
		return false;
	t->items = items;
	items[t->n++] = text;
	return true;
}

static int add_text(struct doc *t, const yaml_node_t *node, void *to)
{
	const char *text = NULL;
	int failed = doc_text(t, node, &text);
	if (!failed)
		texts_add(t->arena, to, text);
	return failed;
}

static int add_path(struct doc *t, const yaml_node_t *node, void *to)
{
	const char *text = NULL;
	int failed = doc_path(t, node, &text);
	if (!failed)
		texts_add(t->arena, to, text);
	return failed;
}

int doc_texts(struct doc *t, const yaml_node_t *node, void *to)
{
	return doc_list(t, node, "this", add_text, to);
}

int doc_paths(struct doc *t, const yaml_node_t *node, void *to)
{
	return doc_list(t, node, "this", add_path, to);
}

bool config_labels_add(struct arena *a, struct config_labels *l, const char *name, const char *value)
{
	struct store_label *items = arena_grow(a, l->items, l->n, sizeof *items);
	if (!items || !name || !value)
		return false;
	l->items = items;
	items[l->n++] = (struct store_label){ name, value };
	return true;
}

int doc_labels(struct doc *t, const yaml_node_t *node, void *to)
{
	struct config_labels *l = to;
	if (is_nothing(node))
		return E_OK;
	if (node->type != YAML_MAPPING_NODE)
		return doc_fail(t, node, "labels have to be a mapping, lines of \"name: value\"");
	for (yaml_node_pair_t *pair = node->data.mapping.pairs.start; pair < node->data.mapping.pairs.top; pair++) {
		const yaml_node_t *key = yaml_document_get_node(&t->document, pair->key);
		const char *name = NULL, *value = NULL;
		int failed = doc_text(t, key, &name);
		if (!failed)
			failed = doc_text(t, yaml_document_get_node(&t->document, pair->value), &value);
		if (failed || !name || !value)
			return failed ? failed : fail_memory(t);
		if (!label_name_valid(name))
			return doc_fail(t, key, "'%.*s' is no name of a label: letters, digits and '_', no digit first", SHOWN_MAX, name);
		if (l->n >= LABELS_MAX)
			return doc_fail(t, key, "more than %d labels", LABELS_MAX);
		for (size_t i = 0; i < l->n; i++)
			if (strcmp(l->items[i].name, name) == 0)
				return doc_fail(t, key, "the label '%.*s' is there twice", SHOWN_MAX, name);
		config_labels_add(t->arena, l, name, value);
	}
	return E_OK;
}

int doc_params(struct doc *t, const yaml_node_t *node, void *to)
{
	if (is_nothing(node))
		return E_OK;
	if (node->type != YAML_MAPPING_NODE)
		return doc_fail(t, node, "params have to be a mapping, lines of \"name: [value]\"");
	for (yaml_node_pair_t *pair = node->data.mapping.pairs.start; pair < node->data.mapping.pairs.top; pair++) {
		struct config_texts values = { NULL, 0 };
		const char *name = NULL;
		int failed = doc_text(t, yaml_document_get_node(&t->document, pair->key), &name);
		if (!failed)
			failed = doc_texts(t, yaml_document_get_node(&t->document, pair->value), &values);
		if (failed)
			return failed;
		for (size_t i = 0; i < values.n; i++)
			config_labels_add(t->arena, to, name, values.items[i]);
	}
	return E_OK;
}
