/*
 * Answers in the order asked, as pointers to texts: for those who have one binary and no profile. Frames are put together when they are asked
 * for, out of what a worker or the cache answered: there are several for each address, and nobody needs all of them at once.
 */
#include "symbol/symbol.h"

#include <stdlib.h>
#include <string.h>

#include "base/strings.h"
#include "symbol/lookup.h"
#include "symbol/talk.h"

#define NAMES_MAX ((size_t)1 << 30)

/* What the frames point into. */
struct storage {
	struct lookup lookup;
	enum demangle_mode mode;
	/* Of a mode that makes names of its own: */
	struct strings names;
	uint32_t *firsts;                /* per address of the lookup: its first one in ids */
	uint32_t *ids;                   /* per frame: in names; 0: as answers have it */
};

static uint32_t frames_of(const struct lookup_hit *h)
{
	return h->from ? h->from->first[h->at + 1] - h->from->first[h->at] : 0;
}

static bool makes_names(enum demangle_mode mode)
{
	return mode != DEMANGLE_FULL && mode != DEMANGLE_NONE;
}

static int make_name(struct storage *s, const struct answers *a, const struct answer_frame *f, struct buf *scratch, uint32_t *ret,
                     struct error *err)
{
	const char *plain = answers_text(a, f->function);
	const char *name = lookup_name(plain, answers_text(a, f->system_name), s->mode, scratch);
	*ret = name == plain ? 0 : strings_add(&s->names, name, strlen(name), NAMES_MAX);
	return *ret == INDEX_NONE ? error_nomem(err, "names") : 0;
}

static int make_names(struct storage *s, struct error *err)
{
	const struct lookup *l = &s->lookup;
	size_t n = 0, at = 0;
	struct buf scratch;
	if (!makes_names(s->mode))
		return 0;
	for (size_t i = 0; i < l->n; i++)
		n += frames_of(&l->hits[i]);
	if (n >= UINT32_MAX)
		return error_set(err, E_LIMIT, "%s: too many frames", l->binary->path);
	s->firsts = calloc(l->n + 1, sizeof(*s->firsts));
	s->ids = calloc(n + 1, sizeof(*s->ids));
	int rc = s->firsts && s->ids && strings_init(&s->names) ? 0 : error_nomem(err, "names");
	buf_init(&scratch, NAMES_MAX);
	for (size_t i = 0; i < l->n && rc == 0; i++) {
		const struct lookup_hit *h = &l->hits[i];
		const struct answer_frame *f = h->from ? h->from->frames + h->from->first[h->at] : NULL;
		s->firsts[i] = (uint32_t)at;
		for (uint32_t k = frames_of(h); k > 0 && rc == 0; k--, f++, at++)
			if (f->function && h->from->quality[h->at] != ANSWER_START)
				rc = make_name(s, h->from, f, &scratch, &s->ids[at], err);
	}
	buf_finish(&scratch);
	return rc;
}

static const char *name_of(const struct storage *s, uint32_t id, const struct symbol_frame *f)
{
	if (s->mode == DEMANGLE_NONE && f->system_name)
		return f->system_name;
	return id ? strings_get(&s->names, id) : f->function;
}

static const struct lookup_hit *hit_of(const struct symbol_answers *a, size_t i)
{
	const struct storage *s = a->storage;
	uint32_t at = s && i < a->n ? s->lookup.of[i] : UINT32_MAX;
	return at == UINT32_MAX ? NULL : &s->lookup.hits[at];
}

void symbol_answer_expect(const struct symbol_answers *a, size_t i)
{
	const struct lookup_hit *far = hit_of(a, i + 12), *near = hit_of(a, i + 8), *next = hit_of(a, i + 4);
	if (far)
		__builtin_prefetch(far);
	if (near && near->from)
		__builtin_prefetch(&near->from->first[near->at]);
	if (next && next->from)
		__builtin_prefetch(&next->from->frames[next->from->first[next->at]]);
}

size_t symbol_answer(const struct symbol_answers *a, size_t i, struct symbol_frame *ret)
{
	const struct storage *s = a->storage;
	uint32_t at = s && i < a->n ? s->lookup.of[i] : UINT32_MAX;
	if (at == UINT32_MAX)
		return 0;
	const struct lookup_hit *h = &s->lookup.hits[at];
	const struct answers *from = h->from;
	uint32_t n = frames_of(h) < SYMBOL_FRAMES_MAX ? frames_of(h) : SYMBOL_FRAMES_MAX;
	for (uint32_t k = 0; k < n; k++) {
		const struct answer_frame *f = &from->frames[from->first[h->at] + k];
		ret[k] = (struct symbol_frame){
			.function = answers_text(from, f->function), .system_name = answers_text(from, f->system_name),
			.file = answers_text(from, f->file), .line = f->line, .column = f->column, .start_line = f->start_line,
			.is_start = from->quality[h->at] == ANSWER_START,
		};
		__builtin_prefetch(ret[k].function);
		ret[k].function = name_of(s, s->ids ? s->ids[s->firsts[at] + k] : 0, &ret[k]);
	}
	return n;
}

struct symbol_talk {
	struct elf_file file;
	struct symbol_options options;
	struct talk *talk;
};

/* f's own addresses; talk may be NULL. */
static int resolve_in(const struct elf_file *f, const uint64_t *addresses, size_t n, const struct symbol_options *o, struct talk *talk,
                      struct symbol_answers *ret, struct error *err)
{
	struct symbol_answers a = { .n = n, .storage = calloc(1, sizeof(struct storage)) };
	struct storage *s = a.storage;
	if (!s)
		return error_nomem(err, "answers");
	struct lookup *l = &s->lookup;
	s->mode = o->demangle;
	int rc = lookup_begin(l, f, addresses, n, err);
	if (rc == 0 && o->depth != SYMBOL_NONE)
		rc = talk ? talk_ask(talk, l, err) : lookups_run(l, 1, o, NULL, err);
	if (rc == 0 && l->error.code)
		error_set(&a.poor, l->error.code, "%s: %s", f->path, l->error.text);
	if (rc == 0 && l->error.code && !l->poor)
		rc = error_set(err, l->error.code, "%s", a.poor.text);
	if (rc == 0)
		rc = make_names(s, err);
	a.damaged = l->damaged;
	l->binary = NULL;
	if (rc)
		symbol_answers_finish(&a);
	else
		*ret = a;
	return rc;
}

static struct symbol_options options_of(const struct symbol_options *o, enum symbol_depth depth)
{
	struct symbol_options options = o ? *o : (struct symbol_options){ .depth = depth };
	options.depth = depth;
	return options;
}

static int open_binary(struct elf_file *f, const char *path, const char *build_id, struct error *err)
{
	int rc = elf_file_open(f, path, err);
	if (rc == 0 && build_id && *build_id && *f->build_id && strcmp(build_id, f->build_id))
		rc = error_set(err, E_FORMAT, "%s is not the file the profile was taken from (build id %s, profile has %s)",
		               path, f->build_id, build_id);
	return rc;
}

int symbol_resolve_addresses(const char *path, const char *build_id, const uint64_t *addresses, size_t n,
                             enum symbol_depth depth, const struct symbol_options *o,
                             struct symbol_answers *ret, struct error *err)
{
	struct elf_file f;
	struct symbol_options options = options_of(o, depth);
	int rc = open_binary(&f, path, build_id, err);
	if (rc == 0)
		rc = resolve_in(&f, addresses, n, &options, NULL, ret, err);
	elf_file_finish(&f);
	return rc;
}

int symbol_resolve(const char *path, const char *build_id, const uint64_t *file_offsets, size_t n,
                   enum symbol_depth depth, const struct symbol_options *o,
                   struct symbol_answers *ret, struct error *err)
{
	struct elf_file f;
	struct symbol_options options = options_of(o, depth);
	uint64_t *addresses = malloc((n + 1) * sizeof(*addresses));
	int rc = open_binary(&f, path, build_id, err);
	if (rc == 0 && !addresses)
		rc = error_nomem(err, "addresses");
	for (size_t i = 0; i < n && rc == 0; i++)
		if (!elf_file_address(&f, file_offsets[i], &addresses[i]))
			addresses[i] = NO_ADDRESS;
	if (rc == 0)
		rc = resolve_in(&f, addresses, n, &options, NULL, ret, err);
	free(addresses);
	elf_file_finish(&f);
	return rc;
}

int symbol_talk_begin(struct symbol_talk **ret, const char *path, const char *build_id, enum symbol_depth depth,
                      const struct symbol_options *o, struct error *err)
{
	struct symbol_talk *t = calloc(1, sizeof(*t));
	if (!t)
		return error_nomem(err, "a conversation");
	t->options = options_of(o, depth);
	int rc = open_binary(&t->file, path, build_id, err);
	if (rc == 0)
		rc = talk_begin(&t->talk, &t->file, &t->options, err);
	if (rc)
		symbol_talk_end(t);
	else
		*ret = t;
	return rc;
}

int symbol_talk_ask(struct symbol_talk *t, const uint64_t *addresses, size_t n, struct symbol_answers *ret, struct error *err)
{
	return resolve_in(&t->file, addresses, n, &t->options, t->talk, ret, err);
}

void symbol_talk_end(struct symbol_talk *t)
{
	if (!t)
		return;
	talk_end(t->talk);
	elf_file_finish(&t->file);
	free(t);
}

void symbol_answers_finish(struct symbol_answers *a)
{
	if (!a)
		return;
	struct storage *s = a->storage;
	if (s) {
		lookup_end(&s->lookup);
		strings_finish(&s->names);
		free(s->firsts);
		free(s->ids);
	}
	free(s);
	memset(a, 0, sizeof(*a));
}
