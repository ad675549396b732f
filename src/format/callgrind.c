/*
 * callgrind's format, for KCachegrind and callgrind_annotate. It is a call graph: what a function
 * holds itself by line, and what its calls hold, each with the memory of all
 * stacks that have the call (once a stack, recursion or not). "calls=" counts stacks,
 * since a heap profile counts no calls. Names are written once and numbered from then on.
 */
#include "format/format.h"

#include "format/export.h"

#include <stdlib.h>
#include <string.h>

#define UNKNOWN "???"

struct cost {
	double value[EXPORT_COLUMNS];
};

/* A function is what has one binary, file and name; its lines are entries. */
struct line_cost {
	uint32_t name;              /* of the export */
	uint32_t function;
	uint32_t object, file;      /* strings; 0: unknown */
	int64_t line;
	struct cost self;
};

struct call {
	uint32_t from;              /* a line */
	uint32_t to;                /* a function */
	uint32_t stack;             /* the last one counted, + 1 */
	uint64_t stacks;
	struct cost cost;
};

struct callgrind {
	struct export x;
	struct export_column columns[EXPORT_COLUMNS];
	size_t n_columns;
	struct line_cost *lines;    /* as x.names, later ordered by function */
	uint32_t *place;            /* name -> index in the ordered lines */
	uint32_t n_functions;
	uint32_t *first_line;       /* of each function */
	struct call *calls;
	size_t n_calls, calls_capacity;
	struct index call_index;
	bool *object_named, *file_named, *function_named;
	struct buf *out;
};

/* --- functions and lines --- */

static int compare_functions(const struct callgrind *c, const struct line_cost *a, const struct line_cost *b)
{
	const struct profile *p = c->x.v->profile;
	int order = strcmp(profile_text(p, a->object), profile_text(p, b->object));
	if (order == 0)
		order = strcmp(profile_text(p, a->file), profile_text(p, b->file));
	if (order == 0)
		order = strcmp(export_name(&c->x, a->name), export_name(&c->x, b->name));
	return order;
}

static int compare_lines(const void *a, const void *b, void *context)
{
	const struct line_cost *x = a, *y = b;
	int order = compare_functions(context, x, y);
	if (order == 0)
		order = (x->line > y->line) - (x->line < y->line);
	return order ? order : (x->name > y->name) - (x->name < y->name);
}

static bool make_lines(struct callgrind *c)
{
	const struct view *v = c->x.v;
	size_t n = c->x.n_names;
	c->lines = calloc(n + 1, sizeof(*c->lines));
	c->place = calloc(n + 1, sizeof(*c->place));
	c->first_line = calloc(n + 1, sizeof(*c->first_line));
	if (!c->lines || !c->place || !c->first_line)
		return false;
	for (size_t i = 0; i < n; i++) {
		struct line_cost *l = &c->lines[i];
		l->name = (uint32_t)i;
		if (c->x.names[i].entry == PROFILE_NONE)
			continue;
		const struct entry *e = &v->entries[c->x.names[i].entry];
		l->file = e->file;
		l->line = e->line > 0 ? e->line : 0;
		l->object = e->mapping == PROFILE_NONE ? 0 : v->profile->mappings[e->mapping].file;
	}
	if (n)
		qsort_r(c->lines, n, sizeof(*c->lines), compare_lines, c);
	for (size_t i = 0; i < n; i++) {
		if (i == 0 || compare_functions(c, &c->lines[i - 1], &c->lines[i]) != 0)
			c->first_line[c->n_functions++] = (uint32_t)i;
		c->lines[i].function = c->n_functions - 1;
		c->place[c->lines[i].name] = (uint32_t)i;
	}
	return true;
}

/* --- calls --- */

struct call_key {
	const struct call *calls;
	uint32_t from, to;
};

static bool same_call(const void *context, uint32_t item)
{
	const struct call_key *k = context;
	return k->calls[item].from == k->from && k->calls[item].to == k->to;
}

static void add_cost(const struct callgrind *c, struct cost *sum, const struct amount *a)
{
	for (size_t i = 0; i < c->n_columns; i++)
		sum->value[i] += c->columns[i].value(a);
}

static bool add_call(struct callgrind *c, uint32_t from, uint32_t to, size_t stack)
{
	uint64_t hash = hash_u64((uint64_t)from << 32 | to);
	struct call_key key = { c->calls, from, to };
	uint32_t id = index_find(&c->call_index, hash, same_call, &key);
	if (id == INDEX_NONE) {
		struct call *call = index_reserve(&c->call_index)
		                        ? ARRAY_PUSH(c->calls, c->n_calls, c->calls_capacity, INDEX_NONE - 1)
		                        : NULL;
		if (!call)
			return false;
		*call = (struct call){ .from = from, .to = to };
		id = (uint32_t)(c->n_calls - 1);
		index_insert(&c->call_index, hash, id);
	}
	struct call *call = &c->calls[id];
	if (call->stack == stack + 1)
		return true;
	call->stack = (uint32_t)stack + 1;
	call->stacks++;
	add_cost(c, &call->cost, &c->x.stacks[stack].amount);
	return true;
}

static bool add_stacks(struct callgrind *c)
{
	for (size_t i = 0; i < c->x.n_stacks; i++) {
		const struct export_stack *s = &c->x.stacks[i];
		const uint32_t *frames = c->x.frames + s->first;
		add_cost(c, &c->lines[c->place[frames[s->n - 1]]].self, &s->amount);
		for (uint32_t k = 1; k < s->n; k++)
			if (!add_call(c, c->place[frames[k - 1]], c->lines[c->place[frames[k]]].function, i))
				return false;
	}
	return true;
}

static int compare_calls(const void *a, const void *b)
{
	const struct call *x = a, *y = b;
	if (x->from != y->from)
		return x->from < y->from ? -1 : 1;
	return (x->to > y->to) - (x->to < y->to);
}

/* --- text --- */

/* "fl=(12) name" the first time, "fl=(12)" from then on. */
static void add_reference(struct callgrind *c, const char *key, uint32_t number, bool *named, const char *text,
                          size_t n)
{
	buf_adds(c->out, key);
	buf_addc(c->out, '(');
	export_integer(c->out, (double)number + 1);
	buf_addc(c->out, ')');
	if (!named[number]) {
		named[number] = true;
		buf_addc(c->out, ' ');
		if (n)
			export_add_clean(text, n, c->out);
		else
			buf_adds(c->out, UNKNOWN);
	}
	buf_addc(c->out, '\n');
}

static void add_string(struct callgrind *c, const char *key, uint32_t string, bool *named)
{
	const struct profile *p = c->x.v->profile;
	add_reference(c, key, string, named, profile_text(p, string), strings_length(&p->strings, string));
}

static void add_function(struct callgrind *c, uint32_t function, const char *const keys[3])
{
	const struct line_cost *l = &c->lines[c->first_line[function]];
	add_string(c, keys[0], l->object, c->object_named);
	add_string(c, keys[1], l->file, c->file_named);
	add_reference(c, keys[2], function, c->function_named, export_name(&c->x, l->name),
	              c->x.names[l->name].length);
}

static void add_cost_line(struct callgrind *c, int64_t line, const struct cost *cost)
{
	export_integer(c->out, (double)line);
	for (size_t i = 0; i < c->n_columns; i++) {
		buf_addc(c->out, ' ');
		export_integer(c->out, cost->value[i]);
	}
	buf_addc(c->out, '\n');
}

static bool is_zero(const struct callgrind *c, const struct cost *cost)
{
	for (size_t i = 0; i < c->n_columns; i++)
		if (cost->value[i] >= 0.5)
			return false;
	return true;
}

/* An event's name is one word. */
static void add_event_names(struct callgrind *c)
{
	buf_adds(c->out, "events:");
	for (size_t i = 0; i < c->n_columns; i++) {
		buf_addc(c->out, ' ');
		for (const char *s = c->x.v->type; *s; s++)
			buf_addc(c->out, (*s >= 'a' && *s <= 'z') || (*s >= 'A' && *s <= 'Z') ||
			                 (*s >= '0' && *s <= '9') ? *s : '_');
		if (c->columns[i].name) {
			buf_addc(c->out, '_');
			buf_adds(c->out, c->columns[i].name);
		}
	}
	buf_addc(c->out, '\n');
}

static void add_head(struct callgrind *c, const char *command)
{
	struct cost total = { { 0 } };
	for (size_t i = 0; i < c->x.n_stacks; i++)
		add_cost(c, &total, &c->x.stacks[i].amount);
	buf_adds(c->out, "# callgrind format\nversion: 1\ncreator: heapgauge\ncmd: ");
	if (command)
		export_add_clean(command, strlen(command), c->out);
	buf_adds(c->out, "\npositions: line\n");
	add_event_names(c);
	buf_adds(c->out, "summary:");
	for (size_t i = 0; i < c->n_columns; i++) {
		buf_addc(c->out, ' ');
		export_integer(c->out, total.value[i]);
	}
	buf_addc(c->out, '\n');
}

static void add_body(struct callgrind *c)
{
	static const char *const own[3] = { "ob=", "fl=", "fn=" }, *const called[3] = { "cob=", "cfi=", "cfn=" };
	const struct call *call = c->calls, *end = call ? call + c->n_calls : NULL;
	for (size_t i = 0; i < c->x.n_names; i++) {
		const struct line_cost *l = &c->lines[i];
		if (i == c->first_line[l->function]) {
			buf_addc(c->out, '\n');
			add_function(c, l->function, own);
		}
		if (!is_zero(c, &l->self))
			add_cost_line(c, l->line, &l->self);
		for (; call < end && call->from == i; call++) {
			add_function(c, call->to, called);
			buf_adds(c->out, "calls=");
			export_integer(c->out, (double)call->stacks);
			buf_addc(c->out, ' ');
			export_integer(c->out, (double)c->lines[c->first_line[call->to]].line);
			buf_addc(c->out, '\n');
			add_cost_line(c, l->line, &call->cost);
		}
	}
}

static bool write_all(struct callgrind *c, const char *command)
{
	if (!make_lines(c) || !add_stacks(c))
		return false;
	if (c->n_calls)
		qsort(c->calls, c->n_calls, sizeof(*c->calls), compare_calls);
	size_t strings = c->x.v->profile->strings.n;
	c->object_named = calloc(strings + 1, 1);
	c->file_named = calloc(strings + 1, 1);
	c->function_named = calloc((size_t)c->n_functions + 1, 1);
	if (!c->object_named || !c->file_named || !c->function_named)
		return false;
	add_head(c, command);
	add_body(c);
	return true;
}

int callgrind_write(struct view *v, const char *command, struct buf *out, struct error *err)
{
	struct callgrind c = { .out = out };
	int code = export_make(v, EXPORT_BY_ENTRY, false, &c.x, err);
	if (code)
		return code;
	c.n_columns = export_columns(v, c.columns);
	if (!write_all(&c, command))
		code = error_nomem(err, "the call graph");
	else
		code = export_check(out, "callgrind", err);
	free(c.lines);
	free(c.place);
	free(c.first_line);
	free(c.calls);
	index_finish(&c.call_index);
	free(c.object_named);
	free(c.file_named);
	free(c.function_named);
	export_finish(&c.x);
	return code;
}
