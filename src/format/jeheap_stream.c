/*
 * Each stack becomes samples as soon as its counts are read, and is forgotten. What samples refer to comes behind them in the
 * file: locations, which have their numbers from the first stack that has them, then mappings, which the dump has at
 * its end, the header and the strings. What a stack's counts mean must be known when it comes: see jeheap_counts.
 */
#include "format/gz_sink.h"
#include "format/jeheap_base.h"
#include "format/pprof_encode.h"

#include <stdlib.h>

#define PIECE ((size_t)32 << 10)        /* for the sink, at a time */

/* One reading of a dump whose samples are emitted at once. */
struct pass {
	struct dump d;
	struct lines l;
	enum jeheap_counts counts;
	bool raw, with_accum;
	struct unsampler *unsampler;    /* as soon as the header is known */
	dump_emit *emit;
	int (*begin)(struct pass *p, struct error *err);       /* right before unsampler; or NULL */
	void *context;
	uint64_t *addresses;            /* of the stack at hand, for its base_key */
	size_t addresses_capacity;
	uint64_t stack_hash;            /* 0: not asked for yet */
};

/* --- reading -------------------------------------------------------------- */

static int begin(struct pass *p, struct error *err)
{
	struct dump *d = &p->d;
	p->raw = d->rate > 1 && (p->counts == JEHEAP_COUNTS_RAW ||
	                         (p->counts == JEHEAP_COUNTS_BY_HEADER && jeheap_header_is_raw(d)));
	p->with_accum = d->header.accum_objects > 0 || d->header.accum_bytes > 0;
	int rc = p->begin ? p->begin(p, err) : E_OK;
	if (rc)
		return rc;
	p->unsampler = unsampler_new(d, p->raw, p->with_accum, p->emit, p->context);
	return p->unsampler ? E_OK : error_nomem(err, "the samples");
}

static int read_frames(struct dump *d, const struct lines *l, const char *at, const char *end, struct error *err)
{
	struct pass *p = d->sink_context;
	int rc = p->unsampler ? E_OK : begin(p, err);
	if (rc == E_OK)
		rc = frames_read(&d->frames, l, at, end, err);
	d->n_addresses = d->frames.n;
	p->stack_hash = 0;
	return rc;
}

static int emit_stack(struct dump *d, struct error *err)
{
	struct pass *p = d->sink_context;
	size_t n;
	if (d->n_accum > 0 && !p->with_accum)
		return error_set(err, E_UNSUPPORTED,
		    "%s: a stack has accumulated counts, of which the totals have none", d->name);
	int rc = unsampler_add(p->unsampler, 0, &n, err);
	d->n_lines = d->n_accum = 0;
	return rc ? rc : d->profile->failure.code ? dump_failed(d, err) : E_OK;
}

static const struct dump_sink at_once = { .frames = read_frames, .counts = emit_stack };

static int pass_read(struct pass *p, struct stream *in, const struct read_limits *limits, struct error *err)
{
	struct read_limits strict = *limits;
	strict.partial = false;
	p->d.sink = &at_once;
	p->d.sink_context = p;
	int rc = dump_init(&p->d, &p->l, in, &strict, err);
	if (rc == E_OK)
		rc = dump_read(&p->d, &p->l, &strict, NULL, err);
	if (rc == E_OK && !p->unsampler)
		rc = begin(p, err);
	if (rc == E_OK && p->counts == JEHEAP_COUNTS_BY_HEADER && p->d.n_stacks > 0 && p->raw != jeheap_is_raw(&p->d))
		rc = error_set(err, E_UNSUPPORTED,
		    "%s: the header does not tell whether the counts are raw; whoever converts the dump while it is read "
		    "must know", p->d.name);
	return rc;
}

static void pass_finish(struct pass *p)
{
	unsampler_free(p->unsampler);
	lines_finish(&p->l);
	dump_finish(&p->d);
	free(p->addresses);
}

/* The key of a sample of the stack at hand. */
static int key_of(struct pass *p, const struct dump_sample *s, struct base_key *ret, struct error *err)
{
	const struct frames *f = &p->d.frames;
	if (p->stack_hash == 0) {
		if (!memory_grow((void **)&p->addresses, &p->addresses_capacity, f->stack_n + 1, sizeof(*p->addresses),
		                 SIZE_MAX))
			return error_nomem(err, "a stack");
		p->stack_hash = base_key_stack(f, p->addresses);
	}
	*ret = (struct base_key){ p->stack_hash, s->thread == STAR ? UINT64_MAX : p->d.threads[s->thread].uid };
	return E_OK;
}

/* --- a base --------------------------------------------------------------- */

struct base_reader {
	struct pass pass;
	struct jeheap_base *base;
};

static int begin_base(struct pass *p, struct error *err)
{
	struct base_reader *r = p->context;
	r->base = base_new(p->with_accum ? 4 : 2, p->d.limit_bytes);
	return r->base ? E_OK : error_nomem(err, "what the base counts");
}

static int add_to_base(void *context, const struct dump_sample *s, struct error *err)
{
	struct base_reader *r = context;
	struct base_key key;
	int rc = key_of(&r->pass, s, &key, err);
	if (rc == E_OK && !base_add(r->base, key, s->block_size, s->values))
		rc = error_set(err, E_LIMIT, "%s: no memory for what all its stacks count", r->pass.d.name);
	return rc;
}

int jeheap_base_read(struct stream *in, const struct read_limits *limits, enum jeheap_counts counts,
                     struct jeheap_base **ret, struct error *err)
{
	struct base_reader r = { .pass = { .counts = counts, .emit = add_to_base, .begin = begin_base } };
	r.pass.context = &r;
	int rc = pass_read(&r.pass, in, limits, err);
	pass_finish(&r.pass);
	if (rc) {
		jeheap_base_free(r.base);
		return rc;
	}
	*ret = r.base;
	return E_OK;
}

/* --- a pprof file --------------------------------------------------------- */

struct converter {
	struct pass pass;
	const struct jeheap_stream_options *o;
	struct gz_sink *gz;
	struct buf piece;
	struct pprof_encoder e;
	struct error failure;           /* of the sink */
	struct wire_id *ids;            /* by address number; n 0: no sample has it */
	size_t ids_capacity;
	uint32_t *order;                /* address numbers by id - 1 */
	size_t n_locations, order_capacity;
};

static void compress(void *context, struct buf *piece)
{
	struct converter *c = context;
	gz_sink_add(c->gz, piece->data, piece->len, &c->failure);
	buf_reset(piece);
}

static int check(const struct converter *c, struct error *err)
{
	if (c->failure.code && err)
		*err = c->failure;
	if (c->failure.code)
		return c->failure.code;
	return c->e.failed || c->piece.failed ? error_nomem(err, "writing a pprof profile") : E_OK;
}

/* Sees that every location of the stack has an id. */
static bool number_frames(struct converter *c)
{
	const struct frames *f = &c->pass.d.frames;
	size_t had = c->ids_capacity;
	if (!memory_grow((void **)&c->ids, &c->ids_capacity, f->n, sizeof(*c->ids), SIZE_MAX))
		return false;
	if (c->ids_capacity > had)
		memset(c->ids + had, 0, (c->ids_capacity - had) * sizeof(*c->ids));
	for (size_t i = 0; i < f->stack_n; i++) {
		uint32_t number = f->stack[i];
		if (c->ids[number].n)
			continue;
		uint32_t *slot = ARRAY_PUSH(c->order, c->n_locations, c->order_capacity, SIZE_MAX);
		if (!slot)
			return false;
		*slot = number;
		c->ids[number] = wire_id((uint32_t)c->n_locations);
	}
	return true;
}

static int write_sample(struct converter *c, const struct dump_sample *s, struct error *err)
{
	const struct frames *f = &c->pass.d.frames;
	const struct wire_labels *labels = pprof_labels(&c->e, unsampler_labels(c->pass.unsampler, s));
	if (!number_frames(c))
		return error_nomem(err, "the locations");
	int rc = check(c, err);
	if (rc)
		return rc;
	pprof_encode_sample(&(struct wire_sample){
		.ids = c->ids,
		.frames = f->stack,
		.n_frames = f->stack_n,
		.values = s->values,
		.n_values = c->pass.with_accum ? 4 : 2,
		.labels = labels->n ? c->e.label_bytes.data + labels->first : NULL,
		.labels_n = labels->n,
	}, &c->piece);
	pprof_flush(&c->e);
	return check(c, err);
}

static int emit_sample(void *context, const struct dump_sample *sample, struct error *err)
{
	struct converter *c = context;
	struct dump_sample s = *sample;
	int64_t left[4];
	if (c->o->base) {
		size_t columns = c->pass.with_accum ? 4 : 2;
		struct base_key key;
		int rc = key_of(&c->pass, &s, &key, err);
		if (rc)
			return rc;
		memcpy(left, s.values, columns * sizeof(*left));
		s.values = left;
		if (!base_take(c->o->base, key, &s.block_size, left, columns))
			return E_OK;
	}
	return write_sample(c, &s, err);
}

static int begin_converter(struct pass *p, struct error *err)
{
	struct converter *c = p->context;
	if (!pprof_encoder_init(&c->e, p->d.profile, &c->piece))
		return error_nomem(err, "writing a pprof profile");
	c->e.full_bytes = PIECE;
	c->e.full = compress;
	c->e.context = c;
	return E_OK;
}

static uint32_t build_id_string(struct profile *p, const uint8_t *bytes, size_t n)
{
	static const char digits[] = "0123456789abcdef";
	char text[2 * 64];
	n = n < sizeof(text) / 2 ? n : sizeof(text) / 2;
	for (size_t i = 0; i < n; i++) {
		text[2 * i] = digits[bytes[i] >> 4];
		text[2 * i + 1] = digits[bytes[i] & 15];
	}
	return profile_string(p, text, 2 * n);
}

static void add_build_ids(struct profile *p, const struct jeheap_stream_options *o)
{
	for (size_t i = 0; o->build_id && i < p->n_mappings; i++) {
		struct mapping *m = &p->mappings[i];
		const uint8_t *bytes;
		size_t n = m->file ? o->build_id(o->build_id_context, profile_text(p, m->file), m->start, &bytes) : 0;
		if (n > 0)
			m->build_id = build_id_string(p, bytes, n);
	}
}

/* All strings of the profile, before the encoder has any of its own. */
static int complete_profile(struct converter *c, struct error *err)
{
	struct dump *d = &c->pass.d;
	struct profile *p = d->profile;
	const struct jeheap_stream_options *o = c->o;
	int rc = maps_finish(d->maps, p, d->frames.addresses, d->frames.n, err);
	if (rc)
		return error_prefix(err, "%s: ", d->name);
	add_build_ids(p, o);
	dump_add_types(d, c->pass.with_accum);
	profile_add_source(p, &(struct source){
		.rate = d->rate,
		.time_nanos = o->time_nanos,
		.duration_nanos = o->duration_nanos,
	});
	if (o->comment)
		profile_add_comment(p, o->comment);
	rc = profile_finish(p, err);
	if (rc)
		return error_prefix(err, "%s: ", d->name);
	if (o->default_type && profile_type_column(p, o->default_type) >= 0)
		p->default_type = profile_cstring(p, o->default_type);
	return p->failure.code ? dump_failed(d, err) : E_OK;
}

static int write_tables(struct converter *c, struct error *err)
{
	const struct dump *d = &c->pass.d;
	int rc = complete_profile(c, err);
	if (rc)
		return rc;
	for (size_t i = 0; i < c->n_locations; i++) {
		uint64_t address = d->frames.addresses[c->order[i]];
		uint32_t mapping = maps_find(d->maps, address);
		pprof_put_location(&c->e, &(struct wire_location){
			.id = i + 1,
			.mapping = mapping == PROFILE_NONE ? 0 : (uint64_t)mapping + 1,
			.address = address,
		});
	}
	for (uint32_t i = 0; i < d->profile->n_mappings; i++)
		pprof_put_mapping(&c->e, i, 0);
	pprof_put_header(&c->e);
	pprof_put_strings(&c->e);
	if (check(c, err) == E_OK)
		compress(c, &c->piece);
	return check(c, err);
}

int jeheap_to_pprof(struct stream *in, const struct read_limits *limits, const struct jeheap_stream_options *o,
                    pprof_sink *sink, void *context, struct error *err)
{
	struct converter c = {
		.pass = { .counts = o->counts, .emit = emit_sample, .begin = begin_converter },
		.o = o,
	};
	c.pass.context = &c;
	buf_init(&c.piece, BUF_MAX_DEFAULT);
	c.gz = gz_sink_new(sink, context);
	int rc = c.gz ? pass_read(&c.pass, in, limits, err) : error_nomem(err, "the compressor");
	if (rc == E_OK)
		rc = write_tables(&c, err);
	if (rc == E_OK)
		rc = gz_sink_end(c.gz, err);
	gz_sink_free(c.gz);
	pprof_encoder_finish(&c.e);
	buf_finish(&c.piece);
	free(c.ids);
	free(c.order);
	pass_finish(&c.pass);
	return rc;
}
