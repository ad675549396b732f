/*
 * A heap_v2 dump as a profile. The lines of all stacks are kept until the end has told what they are, then each becomes
 * its samples. A large file's frames are read ahead by a second thread.
 */
#include "format/ahead.h"
#include "format/jeheap.h"
#include "base/processors.h"

#include <stdlib.h>

_Static_assert(AHEAD_BLOCK <= DUMP_LINE_MAX / 2, "what two blocks hold is not too long for a line");
#define AHEAD_FROM ((uint64_t)4 << 20)     /* bytes of a file that a second thread makes faster */

static int intern_frames(struct dump *d, const struct lines *l, const char *at, const char *end, struct error *err)
{
	struct ahead_stack ahead;
	if (ahead_stack(l, at, &ahead)) {
		index_prefetch(&d->profile->stack_index, ahead.next_hash);
		d->open_stack = profile_intern_hashed_stack(d->profile, ahead.frames, ahead.n, ahead.hash);
		d->n_addresses = ahead.addresses;
		return E_OK;
	}
	int rc = frames_read(&d->frames, l, at, end, err);
	if (rc)
		return rc;
	d->open_stack = profile_intern_stack(d->profile, d->frames.stack, d->frames.stack_n);
	d->n_addresses = d->frames.n;
	return E_OK;
}

static const struct dump_sink model = { .frames = intern_frames };

struct adder {
	struct dump *d;
	struct unsampler *unsampler;
	uint32_t source;
};

static int add_sample(void *context, const struct dump_sample *s, struct error *err)
{
	struct adder *a = context;
	(void)err;      /* the profile's failure is sticky */
	profile_add_sample(a->d->profile, s->stack, unsampler_labels(a->unsampler, s), a->source, s->values);
	return E_OK;
}

/* The header line's estimate; raw counts of mixed sizes give none. */
static uint32_t add_source(struct dump *d, bool raw, struct unsampler *unsampler)
{
	struct source s = {
		.name = profile_cstring(d->profile, d->name),
		.rate = d->rate,
		.process = profile_process_identity(d->profile),
		.raw_counts = raw,
		.header_objects = -1,
		.header_bytes = -1,
	};
	if (!raw)
		unsampler_scale(unsampler, d->header.objects, d->header.bytes, &s.header_objects, &s.header_bytes);
	return profile_add_source(d->profile, &s);
}

static int add_samples(struct dump *d, bool raw, struct error *err)
{
	bool with_accum = d->n_accum > 0 || d->header.accum_objects > 0 || d->header.accum_bytes > 0;
	struct adder a = { .d = d };
	a.unsampler = unsampler_new(d, raw, with_accum, add_sample, &a);
	if (!a.unsampler)
		return error_nomem(err, "the samples");
	dump_add_types(d, with_accum);
	a.source = add_source(d, raw, a.unsampler);
	int rc = E_OK;
	for (size_t i = 0, n; i < d->n_lines && rc == E_OK; i += n)
		rc = unsampler_add(a.unsampler, i, &n, err);
	unsampler_free(a.unsampler);
	return rc;
}

static int build(struct dump *d, struct read_report *report, struct error *err)
{
	struct profile *p = d->profile;
	int rc = maps_finish(d->maps, p, d->frames.addresses, d->frames.n, err);
	if (rc == E_OK)
		rc = frames_locate(&d->frames, d->maps, p, err);
	if (rc == E_OK) {
		bool raw = jeheap_is_raw(d);
		frames_finish(&d->frames);
		rc = add_samples(d, raw, err);
		if (rc == E_OK)
			jeheap_warn(d, raw, report);
	}
	if (rc == E_OK)
		rc = profile_finish(p, err);
	return rc ? error_prefix(err, "%s: ", d->name) : E_OK;
}

int jeheap_read(struct stream *in, const struct read_limits *limits, struct read_report *report,
                struct profile **ret, struct error *err)
{
	struct dump d = { .sink = &model };
	struct lines l = { 0 };
	int rc = dump_init(&d, &l, in, limits, err);
	if (rc == E_OK && in->size_hint >= AHEAD_FROM && processors_available() > 1)
		ahead_start(&l, &d.frames, AHEAD_BLOCK);
	if (rc == E_OK)
		rc = dump_read(&d, &l, limits, report, err);
	lines_finish(&l);
	if (rc == E_OK)
		rc = build(&d, report, err);
	if (rc == E_OK) {
		*ret = d.profile;
		d.profile = NULL;
	}
	dump_finish(&d);
	return rc;
}
