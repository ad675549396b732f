/*
 * The block's bytes: docs/page.md. A choice of stacks is walked once, from the root; what it meets first gets the first number. Then how
 * large it became tells how much more or less may be chosen.
 */
#include "report/page_private.h"

#include "base/text.h"
#include "report/header.h"
#include "report/json.h"

#include <libdeflate.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MAGIC "HGPAGE1\n"
#define LEVEL 6                 /* of the compression; 7 and more take twice the time for 1 % */

enum stream {
	STRING_LENGTHS, STRING_BYTES, MAPPING_FILE, FRAME_NAME, FRAME_FILE, FRAME_LINE, FRAME_MAPPING, FRAME_FLAGS, NODE_UP,
	NODE_FRAME, LABEL_THREAD, LABEL_SIZE, LABEL_TEXT, ROW_NODE, ROW_STACK, ROW_LABELS, ROW_SOURCE, ROW_REST, STREAMS
};

static const char *const stream_names[STREAMS] = {
	"string_lengths", "string_bytes", "mapping_file", "frame_name", "frame_file", "frame_line", "frame_mapping", "frame_flags",
	"node_up", "node_frame", "label_thread", "label_size", "label_text", "row_node", "row_stack", "row_labels", "row_source",
	"row_rest",
};

struct encoder {
	struct page_source *s;
	struct page_tree *t;
	struct buf streams[STREAMS];
	struct buf *values;         /* per type */
	/* Numbers in the block + 1, 0 while there is none: per string of the profile, string as a mapping's file, frame, label set. */
	uint32_t *strings, *mappings, *frames, *labels;
	uint32_t n_strings, n_mappings, n_frames, n_labels;
	struct page_row *of_node;   /* rows of the node at hand */
	size_t of_node_capacity;
	uint32_t last_row_node;
};

/* --- numbers and strings --- */

static void put(struct buf *b, uint64_t value)
{
	if (!buf_reserve(b, 10))
		return;
	while (value > 127) {
		b->data[b->len++] = (char)(value | 128);
		value >>= 7;
	}
	b->data[b->len++] = (char)value;
}

static void put_signed(struct buf *b, int64_t value)
{
	put(b, ((uint64_t)value << 1) ^ (uint64_t)(value >> 63));
}

static void put_utf8(struct buf *b, const char *text, size_t length)
{
	size_t kept = 0;
	for (size_t i = 0; i < length;) {
		size_t n = (unsigned char)text[i] < 0x80 ? 1 : text_utf8_length(text + i, length - i);
		if (n == 0) {
			buf_add(b, text + kept, i - kept);
			buf_adds(b, "\xef\xbf\xbd");
			kept = i + 1;
		}
		i += n ? n : 1;
	}
	buf_add(b, text + kept, length - kept);
}

static uint32_t string_number(struct encoder *e, uint32_t string)
{
	if (!e->strings[string]) {
		struct buf *bytes = &e->streams[STRING_BYTES];
		size_t before = bytes->len;
		put_utf8(bytes, profile_text(e->s->p, string), strings_length(&e->s->p->strings, string));
		put(&e->streams[STRING_LENGTHS], bytes->len - before);
		e->strings[string] = ++e->n_strings;
	}
	return e->strings[string] - 1;
}

static uint32_t mapping_number(struct encoder *e, uint32_t file)
{
	if (!e->mappings[file]) {
		put(&e->streams[MAPPING_FILE], string_number(e, file));
		e->mappings[file] = ++e->n_mappings;
	}
	return e->mappings[file] - 1;
}

static uint32_t frame_number(struct encoder *e, uint32_t frame)
{
	if (!e->frames[frame]) {
		const struct page_frame *f = &e->s->frames[frame];
		const struct entry *x = &e->s->v->entries[f->entry];
		put(&e->streams[FRAME_NAME], string_number(e, x->name));
		put(&e->streams[FRAME_FILE], string_number(e, x->file));
		put(&e->streams[FRAME_LINE], x->line > 0 && x->line <= UINT32_MAX ? (uint64_t)x->line : 0);
		put(&e->streams[FRAME_MAPPING], f->mapping ? mapping_number(e, f->mapping) + 1 : 0);
		put(&e->streams[FRAME_FLAGS], f->flags);
		e->frames[frame] = ++e->n_frames;
	}
	return e->frames[frame] - 1;
}

/* Sets keep their order, so that a node's rows keep theirs. */
static void put_labels(struct encoder *e)
{
	const struct page_tree *t = e->t;
	e->labels[0] = 1;
	for (size_t i = 0; i < t->n_rows; i++)
		e->labels[t->rows[i].labels] = 1;
	for (size_t i = 0; i < e->s->n_labels; i++) {
		const struct page_labels *l = &e->s->labels[i];
		if (!e->labels[i])
			continue;
		put(&e->streams[LABEL_THREAD], string_number(e, l->thread));
		put(&e->streams[LABEL_SIZE], l->size);
		put(&e->streams[LABEL_TEXT], string_number(e, l->text));
		e->labels[i] = ++e->n_labels;
	}
}

/* --- rows and nodes --- */

static void put_values(struct encoder *e, const struct page_row *r)
{
	const struct profile *p = e->s->p;
	const int64_t *values = r->stack == PROFILE_NONE ? e->t->sums + r->values : p->values + r->values;
	uint64_t size = e->s->labels[r->labels].size;
	for (size_t i = 0; i < p->n_types; i++) {
		uint64_t value = (uint64_t)values[i];
		if (size && e->s->times[i] >= 0)
			value -= (uint64_t)values[e->s->times[i]] * size;
		put_signed(&e->values[i], (int64_t)value);
	}
}

static int compare_others(const void *a, const void *b)
{
	const struct page_row *x = a, *y = b;
	if (x->labels != y->labels)
		return x->labels < y->labels ? -1 : 1;
	return (x->source > y->source) - (x->source < y->source);
}

/* The rows of a node, stack by stack; those of one stack are in order already, the (other) come last. */
static bool put_rows(struct encoder *e, uint32_t node, uint32_t number)
{
	const struct page_tree *t = e->t;
	size_t n = 0, told = 0;
	for (uint32_t r = t->nodes[node].first_row; r; r = t->rows[r - 1].next) {
		struct page_row *slot = ARRAY_PUSH(e->of_node, n, e->of_node_capacity, INDEX_NONE - 1);
		if (!slot)
			return false;
		*slot = t->rows[r - 1];
		told += slot->stack != PROFILE_NONE;
	}
	if (n - told > 1)
		qsort(e->of_node + told, n - told, sizeof(*e->of_node), compare_others);
	for (size_t i = 0; i < n; i++) {
		const struct page_row *r = &e->of_node[i];
		put(&e->streams[ROW_NODE], number - e->last_row_node);
		put(&e->streams[ROW_STACK], i > 0 && r->stack != r[-1].stack);
		put(&e->streams[ROW_LABELS], e->labels[r->labels] - 1);
		put(&e->streams[ROW_SOURCE], r->source);
		put(&e->streams[ROW_REST], r->rest);
		put_values(e, r);
		e->last_row_node = number;
	}
	return true;
}

static bool put_nodes(struct encoder *e)
{
	const struct page_node *nodes = e->t->nodes;
	uint32_t number = 0, node = 0, up = 0;
	if (!put_rows(e, 0, 0))
		return false;
	for (;;) {
		/* The next one: a child, or the sibling of the nearest that has one. */
		if (nodes[node].first_child) {
			node = nodes[node].first_child;
			up = 0;
		} else {
			for (up = 1; node && !nodes[node].next_sibling; up++)
				node = nodes[node].parent;
			if (!node)
				return true;
			node = nodes[node].next_sibling;
		}
		put(&e->streams[NODE_UP], up);
		put(&e->streams[NODE_FRAME], frame_number(e, nodes[node].frame));
		if (!put_rows(e, node, ++number))
			return false;
	}
}

/* --- header --- */

static void json_time(struct json *j, int64_t nanos)
{
	if (nanos > 0)
		json_integer(j, "time_ms", nanos / 1000000);
	else
		json_null(j, "time_ms");
}

static void json_string(struct json *j, const char *key, const struct profile *p, uint32_t string)
{
	json_text(j, key, profile_text(p, string), strings_length(&p->strings, string));
}

static void json_optional(struct json *j, const char *key, const char *text)
{
	if (text)
		json_cstring(j, key, text);
	else
		json_null(j, key);
}

static void add_types(const struct page_source *s, struct json *j)
{
	const struct profile *p = s->p;
	json_open(j, "types", '[');
	for (size_t i = 0; i < p->n_types; i++) {
		json_open(j, NULL, '{');
		json_string(j, "type", p, p->types[i].type);
		json_string(j, "unit", p, p->types[i].unit);
		json_integer(j, "times", s->times[i]);
		json_close(j, '}');
	}
	json_close(j, ']');
	json_integer(j, "default_type", s->column);
	json_open(j, "metric", '{');
	for (int m = 0; m < METRICS; m++)
		json_integer(j, metric_name((enum metric)m), p->metric[m]);
	json_close(j, '}');
}

/* A snapshot is called as its first source; one of several has the time of the last. */
static void add_snapshot(const struct page_source *s, uint32_t snapshot, struct json *j)
{
	const struct profile *p = s->p;
	uint32_t name = 0;
	int64_t time = 0;
	size_t n = 0;
	for (size_t i = 0; i < p->n_sources; i++) {
		const struct source *x = &p->sources[i];
		if (x->snapshot != snapshot)
			continue;
		name = n++ ? name : x->name;
		time = x->time_nanos > time ? x->time_nanos : time;
	}
	struct buf text;
	buf_init(&text, BUF_MAX_DEFAULT);
	buf_add(&text, profile_text(p, name), strings_length(&p->strings, name));
	if (n > 1)
		buf_printf(&text, " and %zu more", n - 1);
	json_open(j, NULL, '{');
	json_text(j, "name", text.data ? text.data : "", text.len);
	json_time(j, time);
	json_close(j, '}');
	j->out->failed = j->out->failed || text.failed;
	buf_finish(&text);
}

static void add_source(const struct profile *p, const struct source *x, struct json *j)
{
	json_open(j, NULL, '{');
	json_string(j, "name", p, x->name);
	json_integer(j, "snapshot", x->snapshot);
	json_number(j, "rate", x->rate);
	json_time(j, x->time_nanos);
	if (x->process) {
		char hex[24];
		struct buf b = { .data = hex, .capacity = sizeof(hex), .max = sizeof(hex) - 1 };
		buf_printf(&b, "0x%llx", (unsigned long long)x->process);
		json_cstring(j, "process", hex);
	} else {
		json_null(j, "process");
	}
	if (x->pid)
		json_integer(j, "pid", (int64_t)x->pid);
	else
		json_null(j, "pid");
	json_bool(j, "raw_counts", x->raw_counts);
	json_close(j, '}');
}

static void add_sources(const struct page_source *s, struct json *j)
{
	json_open(j, "snapshots", '[');
	for (uint32_t i = 0; i < s->n_snapshots; i++)
		add_snapshot(s, i, j);
	json_close(j, ']');
	if (s->o->base != PROFILE_NONE)
		json_integer(j, "base", s->o->base);
	else
		json_null(j, "base");
	json_open(j, "sources", '[');
	for (size_t i = 0; i < s->p->n_sources; i++)
		add_source(s->p, &s->p->sources[i], j);
	json_close(j, ']');
}

static void add_begin(const struct page_source *s, struct json *j)
{
	static const char *const granularities[] = { "function", "line", "file", "binary", "thread", "line" };
	const struct view_options *o = &s->o->view;
	const struct { const char *key, *text; } expressions[] = {
		{ "focus", o->focus }, { "ignore", o->ignore }, { "hide", o->hide }, { "show", o->show }, { "show_from", o->show_from },
	};
	json_open(j, "view", '{');
	/* Not v->type: labels added strings since, which may have moved them. */
	json_cstring(j, "metric", profile_text(s->p, s->p->types[s->v->column].type));
	json_cstring(j, "by", granularities[o->by]);
	json_bool(j, "inverted", s->o->inverted);
	for (size_t i = 0; i < sizeof(expressions) / sizeof(expressions[0]); i++)
		json_cstring(j, expressions[i].key, expressions[i].text ? expressions[i].text : "");
	json_close(j, '}');
}

/* What the reports say of a single profile, and what the caller has to say. */
static void add_notes(const struct page_source *s, struct json *j)
{
	const struct buf *own = s->o->notes;
	struct notes notes;
	notes_init(&notes);
	if (s->p->n_sources == 1)
		header_notes(s->v, &notes);
	json_open(j, "notes", '[');
	for (size_t at = 0; at < notes.text.len; at += strlen(notes.text.data + at) + 1)
		json_cstring(j, NULL, notes.text.data + at);
	for (size_t at = 0, end; own && at < own->len; at = end + 1) {
		const char *newline = memchr(own->data + at, '\n', own->len - at);
		end = newline ? (size_t)(newline - own->data) : own->len;
		json_text(j, NULL, own->data + at, end - at);
	}
	json_close(j, ']');
	j->out->failed = j->out->failed || notes.text.failed;
	notes_finish(&notes);
}

static void add_counts(const struct encoder *e, struct json *j)
{
	const struct page_tree *t = e->t;
	const struct page_source *s = e->s;
	if (t->folded_stacks) {
		json_open(j, "rest", '{');
		json_integer(j, "rows", (int64_t)t->folded_rows);
		json_integer(j, "stacks", (int64_t)t->folded_stacks);
		json_number(j, "part", s->value > 0 ? t->folded_value / s->value : 0);
		json_close(j, '}');
	} else {
		json_null(j, "rest");
	}
	json_open(j, "counts", '{');
	json_integer(j, "strings", e->n_strings);
	json_integer(j, "mappings", e->n_mappings);
	json_integer(j, "frames", e->n_frames);
	json_integer(j, "nodes", (int64_t)t->n_nodes);
	json_integer(j, "labels", e->n_labels);
	json_integer(j, "rows", (int64_t)t->n_rows);
	json_close(j, '}');
}

static const struct buf *stream_at(const struct encoder *e, size_t i)
{
	return i < STREAMS ? &e->streams[i] : &e->values[i - STREAMS];
}

static void add_header(const struct encoder *e, struct buf *out)
{
	struct json json = { .out = out }, *j = &json;
	const struct page_source *s = e->s;
	const struct profile *p = s->p;
	json_open(j, NULL, '{');
	json_integer(j, "version", 1);
	json_optional(j, "title", s->o->title);
	if (p->n_mappings && p->mappings[0].file)
		json_string(j, "program", p, p->mappings[0].file);
	else
		json_null(j, "program");
	add_types(s, j);
	add_sources(s, j);
	add_begin(s, j);
	add_notes(s, j);
	json_open(j, "command", '[');
	for (size_t i = 0; i < s->o->n_command; i++)
		json_cstring(j, NULL, s->o->command[i]);
	json_close(j, ']');
	add_counts(e, j);
	json_open(j, "streams", '[');
	for (size_t i = 0; i < STREAMS + p->n_types; i++) {
		char name[32];
		struct buf b = { .data = name, .capacity = sizeof(name), .max = sizeof(name) - 1 };
		buf_printf(&b, "value_%zu", i - STREAMS);
		json_open(j, NULL, '{');
		json_cstring(j, "name", i < STREAMS ? stream_names[i] : name);
		json_integer(j, "bytes", (int64_t)stream_at(e, i)->len);
		json_close(j, '}');
	}
	json_close(j, ']');
	json_close(j, '}');
}

/* --- the block --- */

static bool encoder_init(struct encoder *e, struct page_source *s, struct page_tree *t)
{
	*e = (struct encoder){ .s = s, .t = t };
	for (size_t i = 0; i < STREAMS; i++)
		buf_init(&e->streams[i], BUF_MAX_DEFAULT);
	e->values = calloc(s->p->n_types + 1, sizeof(*e->values));
	for (size_t i = 0; e->values && i < s->p->n_types; i++)
		buf_init(&e->values[i], BUF_MAX_DEFAULT);
	e->strings = calloc(s->p->strings.n + 1, sizeof(*e->strings));
	e->mappings = calloc(s->p->strings.n + 1, sizeof(*e->mappings));
	e->frames = calloc(s->n_frames + 1, sizeof(*e->frames));
	e->labels = calloc(s->n_labels + 1, sizeof(*e->labels));
	return e->values && e->strings && e->mappings && e->frames && e->labels;
}

static void encoder_finish(struct encoder *e)
{
	for (size_t i = 0; i < STREAMS; i++)
		buf_finish(&e->streams[i]);
	for (size_t i = 0; e->values && i < e->s->p->n_types; i++)
		buf_finish(&e->values[i]);
	free(e->values);
	free(e->strings);
	free(e->mappings);
	free(e->frames);
	free(e->labels);
	free(e->of_node);
}

/* Everything that is compressed. */
static bool encode(struct encoder *e, struct buf *raw)
{
	string_number(e, 0);
	put_labels(e);
	if (!put_nodes(e))
		return false;
	struct buf header;
	buf_init(&header, BUF_MAX_DEFAULT);
	add_header(e, &header);
	buf_adds(raw, MAGIC);
	for (unsigned i = 0; i < 4; i++)
		buf_addc(raw, (char)(header.len >> (8 * i)));
	buf_add(raw, header.data, header.len);
	raw->failed = raw->failed || header.failed || header.len > UINT32_MAX;
	buf_finish(&header);
	for (size_t i = 0; i < STREAMS + e->s->p->n_types; i++) {
		const struct buf *b = stream_at(e, i);
		buf_add(raw, b->data, b->len);
		raw->failed = raw->failed || b->failed;
	}
	return !raw->failed;
}

static bool compress(const struct buf *raw, struct buf *out)
{
	struct libdeflate_compressor *c = libdeflate_alloc_compressor(LEVEL);
	size_t bound = libdeflate_gzip_compress_bound(c, raw->len);
	size_t n = c && buf_reserve(out, bound) ? libdeflate_gzip_compress(c, raw->data, raw->len, out->data + out->len, bound) : 0;
	libdeflate_free_compressor(c);
	out->len += n;
	return n > 0;
}

static int write_block(struct page_source *s, struct page_tree *t, struct buf *out, struct error *err)
{
	struct encoder e;
	struct buf raw;
	buf_init(&raw, BUF_MAX_DEFAULT);
	bool ok = encoder_init(&e, s, t) && encode(&e, &raw) && compress(&raw, out);
	encoder_finish(&e);
	buf_finish(&raw);
	return ok ? E_OK : error_nomem(err, "the page's data");
}

#define TRIES 8
#define CLOSE_TO 0.97           /* part of the limit that is aimed at */

/* Part of the limit that has to be used, by try: each takes as long as the others. */
static const double close_enough[TRIES] = { 0.87, 0.87, 0.85, 0.85, 0.8, 0.8, 0.7, 0 };

/*
 * The cost that should give the wanted size: size is nearly a straight line over cost, whose slope the last two tries tell; after the
 * first one it is taken to go through 0.
 */
static double next_cost(double cost, double size, double last_cost, double last_size, double wanted)
{
	double slope = last_cost > 0 && cost != last_cost ? (size - last_size) / (cost - last_cost) : 0;
	if (!(slope > 0.05))
		slope = cost > 0 ? size / cost : 1;
	return fmax(0, cost + (wanted - size) / slope);
}

/* What was tried, to choose the next budget by. */
struct tries {
	double limit;
	double last_cost, last_size;
	double fits, over;              /* the largest budget that fit, the smallest that didn't */
};

static double next_budget(struct tries *x, double budget, double cost, double size)
{
	if (size <= x->limit)
		x->fits = fmax(x->fits, budget);
	else
		x->over = fmin(x->over, budget);
	/* What is folded costs, too: more than the budget. */
	double next = budget * next_cost(cost, size, x->last_cost, x->last_size, x->limit * CLOSE_TO) / fmax(cost, 1);
	x->last_cost = cost;
	x->last_size = size;
	if (next > x->fits && next < x->over)
		return next;
	return isfinite(x->over) ? (x->fits + x->over) / 2 : x->fits * 1.5;
}

/* Costs are guesses, on the high side; mostly the first or the second try fits. The last one repeats the best, or tells nothing. */
static int write_within(struct page_source *s, struct buf *out, bool *ret_complete, struct error *err)
{
	double limit = (double)s->o->limit_bytes, budget = limit > 0 ? limit * CLOSE_TO : INFINITY;
	struct tries x = { .limit = limit, .over = INFINITY };
	size_t start = out->len;
	for (int i = 0; i < TRIES; i++) {
		struct page_tree t;
		out->len = start;
		int code = page_tree_make(s, i + 1 < TRIES ? budget : x.fits, &t, err);
		if (!code)
			code = write_block(s, &t, out, err);
		*ret_complete = !t.folded_stacks;
		double cost = t.cost, size = (double)(out->len - start);
		page_tree_finish(&t);
		if (code || !(limit > 0) || (size <= limit && (*ret_complete || size > limit * close_enough[i])))
			return code;
		budget = next_budget(&x, budget, cost, size);
	}
	out->len = start;
	return error_set(err, E_LIMIT, "the page's data do not fit into %zu bytes, however much is left out: allow more (--max-size)",
	                 s->o->limit_bytes);
}

int page_block(struct profile *p, const struct page_options *o, struct buf *out, bool *ret_complete, struct error *err)
{
	struct page_source s;
	bool complete;
	int code = page_source_make(p, o, &s, err);
	if (!code)
		code = write_within(&s, out, &complete, err);
	page_source_finish(&s);
	if (!code && ret_complete)
		*ret_complete = complete;
	return code;
}
