/* Answers in the order asked, as pointers to texts: for those who have one binary and no profile. */
#include "symbol/symbol.h"

#include <stdlib.h>
#include <string.h>

#include "base/strings.h"
#include "symbol/lookup.h"

#define NAMES_MAX ((size_t)1 << 30)

/* What the frames point into. */
struct storage {
	struct lookup lookup;
	struct strings names;            /* in another form than answers have them */
};

struct conversion {
	struct symbol_answers *answers;
	struct storage *storage;
	enum demangle_mode mode;
	uint32_t *names;                 /* per frame: in storage's names; 0: as it is */
	struct buf scratch;
};

static int rename_frame(struct conversion *c, size_t i, struct error *err)
{
	const struct symbol_frame *f = &c->answers->frames[i];
	if (c->mode == DEMANGLE_FULL || !f->function || f->is_start)
		return 0;
	const char *name = lookup_name(f->function, f->system_name, c->mode, &c->scratch);
	uint32_t id = name == f->function ? 0 : strings_add(&c->storage->names, name, strlen(name), NAMES_MAX);
	if (id == INDEX_NONE)
		return error_nomem(err, "names");
	c->names[i] = id;
	return 0;
}

static int convert_frame(struct conversion *c, const struct answers *a, size_t i, const struct answer_frame *f, bool is_start,
                         struct error *err)
{
	c->answers->frames[i] = (struct symbol_frame){
		.function = answers_text(a, f->function), .system_name = answers_text(a, f->system_name),
		.file = answers_text(a, f->file), .line = f->line, .column = f->column, .start_line = f->start_line,
		.is_start = is_start,
	};
	return rename_frame(c, i, err);
}

/* The frames of every address once; those who asked the same share them. */
static int convert_all(struct conversion *c, uint32_t *firsts, struct error *err)
{
	const struct lookup *l = &c->storage->lookup;
	size_t at = 0;
	int rc = 0;
	for (size_t i = 0; i < l->n && rc == 0; i++) {
		const struct lookup_hit *h = &l->hits[i];
		firsts[i] = (uint32_t)at;
		if (!h->from)
			continue;
		bool is_start = h->from->quality[h->at] == ANSWER_START;
		for (uint32_t k = h->from->first[h->at]; k < h->from->first[h->at + 1] && rc == 0; k++)
			rc = convert_frame(c, h->from, at++, &h->from->frames[k], is_start, err);
	}
	firsts[l->n] = (uint32_t)at;
	for (size_t i = 0; i < at && rc == 0; i++)
		if (c->names[i])
			c->answers->frames[i].function = strings_get(&c->storage->names, c->names[i]);
	return rc;
}

static size_t count_frames(const struct lookup *l)
{
	size_t n = 0;
	for (size_t i = 0; i < l->n; i++) {
		const struct lookup_hit *h = &l->hits[i];
		n += h->from ? h->from->first[h->at + 1] - h->from->first[h->at] : 0;
	}
	return n;
}

static int convert(struct symbol_answers *a, size_t n, enum demangle_mode mode, struct error *err)
{
	struct conversion c = { .answers = a, .storage = a->storage, .mode = mode };
	const struct lookup *l = &c.storage->lookup;
	a->n_frames = count_frames(l);
	if (a->n_frames >= UINT32_MAX)
		return error_set(err, E_LIMIT, "%s: too many frames", l->binary->path);
	uint32_t *firsts = calloc(l->n + 1, sizeof(*firsts));
	c.names = calloc(a->n_frames + 1, sizeof(*c.names));
	a->answers = calloc(n + 1, sizeof(*a->answers));
	a->frames = calloc(a->n_frames + 1, sizeof(*a->frames));
	buf_init(&c.scratch, NAMES_MAX);
	int rc = firsts && c.names && a->answers && a->frames ? convert_all(&c, firsts, err) : error_nomem(err, "answers");
	for (size_t i = 0; i < n && rc == 0; i++)
		if (l->of[i] != UINT32_MAX)
			a->answers[i] = (struct symbol_answer){ firsts[l->of[i]], firsts[l->of[i] + 1] - firsts[l->of[i]] };
	buf_finish(&c.scratch);
	free(c.names);
	free(firsts);
	return rc;
}

/* f's own addresses. */
static int resolve_in(const struct elf_file *f, const uint64_t *addresses, size_t n, enum symbol_depth depth,
                      const struct symbol_options *o, struct symbol_answers *ret, struct error *err)
{
	struct symbol_options options = o ? *o : (struct symbol_options){ .depth = depth };
	struct symbol_answers a = { .storage = calloc(1, sizeof(struct storage)) };
	struct storage *s = a.storage;
	options.depth = depth;
	if (!s)
		return error_nomem(err, "answers");
	int rc = strings_init(&s->names) ? lookup_begin(&s->lookup, f, addresses, n, err) : error_nomem(err, "names");
	if (rc == 0 && depth != SYMBOL_NONE)
		rc = lookups_run(&s->lookup, 1, &options, NULL, err);
	if (rc == 0 && s->lookup.error.code)
		rc = error_set(err, s->lookup.error.code, "%s: %s", f->path, s->lookup.error.text);
	if (rc == 0)
		rc = convert(&a, n, options.demangle, err);
	a.damaged = s->lookup.damaged;
	s->lookup.binary = NULL;
	if (rc)
		symbol_answers_finish(&a);
	else
		*ret = a;
	return rc;
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
	int rc = open_binary(&f, path, build_id, err);
	if (rc == 0)
		rc = resolve_in(&f, addresses, n, depth, o, ret, err);
	elf_file_finish(&f);
	return rc;
}

int symbol_resolve(const char *path, const char *build_id, const uint64_t *file_offsets, size_t n,
                   enum symbol_depth depth, const struct symbol_options *o,
                   struct symbol_answers *ret, struct error *err)
{
	struct elf_file f;
	uint64_t *addresses = malloc((n + 1) * sizeof(*addresses));
	int rc = open_binary(&f, path, build_id, err);
	if (rc == 0 && !addresses)
		rc = error_nomem(err, "addresses");
	for (size_t i = 0; i < n && rc == 0; i++)
		if (!elf_file_address(&f, file_offsets[i], &addresses[i]))
			addresses[i] = NO_ADDRESS;
	if (rc == 0)
		rc = resolve_in(&f, addresses, n, depth, o, ret, err);
	free(addresses);
	elf_file_finish(&f);
	return rc;
}

void symbol_answers_finish(struct symbol_answers *a)
{
	if (!a)
		return;
	struct storage *s = a->storage;
	if (s) {
		lookup_end(&s->lookup);
		strings_finish(&s->names);
	}
	free(s);
	free(a->answers);
	free(a->frames);
	memset(a, 0, sizeof(*a));
}
