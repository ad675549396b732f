/*
 * Below the messages of profile.proto: wording of errors, plain fields, strings, ids.
 */
#include "format/pprof_reader.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* --- errors --------------------------------------------------------------- */

static void add_place(struct buf *b, struct pprof_place step)
{
	if (!step.field)
		return;
	buf_printf(b, "%s%s", b->len ? "." : "", step.field);
	if (step.ordinal != PPROF_SINGLE)
		buf_printf(b, "[%zu]", step.ordinal);
}

int pprof_fail(struct pprof_reader *r, struct pprof_place leaf, const uint8_t *at, int code,
               const char *format, ...)
{
	char what[256];
	va_list args;
	va_start(args, format);
	vsnprintf(what, sizeof what, format, args);
	va_end(args);
	struct buf path;
	buf_init(&path, 256);
	for (unsigned i = 0; i < r->steps; i++)
		add_place(&path, r->path[i]);
	add_place(&path, leaf);
	error_set(r->err, code, "%s: byte %zu: %s%s%s", r->name, (size_t)(at - r->bytes),
	          path.len ? path.data : "", path.len ? ": " : "", what);
	buf_finish(&path);
	return code;
}

int pprof_fail_wire(struct pprof_reader *r, const struct proto_field *f, enum proto_status status,
                    const uint8_t *end)
{
	bool top = r->steps == 0;       /* what is missing at the top level is missing from the file */
	switch (status) {
	case PROTO_CUT:
		return pprof_fail(r, pprof_nowhere, f->at, top ? E_TRUNCATED : E_FORMAT, "%s",
		                  top ? "the file ends inside a field; it was cut"
		                      : "the message ends inside a field");
	case PROTO_LONG_VARINT:
		return pprof_fail(r, pprof_nowhere, f->at, E_FORMAT, "a varint of more than 64 bits");
	case PROTO_PAST_END:
		return pprof_fail(r, pprof_nowhere, f->at, top ? E_TRUNCATED : E_FORMAT,
		                  "field %" PRIu64 " is %" PRIu64 " bytes long, but only %zu follow%s",
		                  f->number, f->value, (size_t)(end - f->bytes),
		                  top ? "; the file was cut" : "");
	case PROTO_NUMBER_ZERO:
		return pprof_fail(r, pprof_nowhere, f->at, E_FORMAT, "a field with the number 0");
	case PROTO_GROUP:
		return pprof_fail(r, pprof_nowhere, f->at, E_FORMAT,
		                  "field %" PRIu64 " is a group, which pprof has not", f->number);
	default:
		return pprof_fail(r, pprof_nowhere, f->at, E_FORMAT,
		                  "field %" PRIu64 " has the unknown wire type %d", f->number,
		                  (int)f->wire);
	}
}

int pprof_fail_memory(struct pprof_reader *r)
{
	error_nomem(r->err, "reading a pprof profile");
	return error_prefix(r->err, "%s: ", r->name);
}

int pprof_built(struct pprof_reader *r)
{
	if (!r->p->failure.code)
		return E_OK;
	if (r->err) {
		*r->err = r->p->failure;
		error_prefix(r->err, "%s: ", r->name);
	}
	return r->p->failure.code;
}

/* --- fields --------------------------------------------------------------- */

int pprof_want_wire(struct pprof_reader *r, struct pprof_place leaf, const struct proto_field *f,
                    enum proto_wire wire)
{
	static const char *const names[] = { "a number", "8 fixed bytes", "bytes with a length",
		                             "a group",  "a group",       "4 fixed bytes" };
	if (f->wire == wire)
		return E_OK;
	return pprof_fail(r, leaf, f->at, E_FORMAT, "the wire type says %s, it should be %s",
	                  names[f->wire], names[wire]);
}

int pprof_read_message(struct pprof_reader *r, const struct proto_field *message,
                       const struct pprof_slot *slots, size_t n_slots, unsigned other_number,
                       pprof_field_reader *other)
{
	struct proto_cursor c = { message->bytes, message->end };
	struct proto_field f;
	enum proto_status status;
	size_t n_other = 0;
	while ((status = proto_next(&c, &f)) == PROTO_FIELD) {
		int rc = E_OK;
		if (other && f.number == other_number)
			rc = other(r, &f, n_other++);
		for (size_t i = 0; i < n_slots && !rc; i++) {
			if (slots[i].number != f.number)
				continue;
			rc = pprof_want_wire(r, pprof_single(slots[i].name), &f, PROTO_VARINT);
			*slots[i].to = f.value;
		}
		if (rc)
			return rc;
	}
	return status == PROTO_END ? E_OK : pprof_fail_wire(r, &f, status, message->end);
}

int pprof_text(struct pprof_reader *r, struct pprof_place leaf, const uint8_t *at, uint64_t index,
               uint32_t *ret)
{
	if (index >= r->n_strings)
		return pprof_fail(r, leaf, at, E_FORMAT,
		                  "string %" PRId64 " does not exist, string_table has %zu", (int64_t)index,
		                  r->n_strings);
	if (!r->string_ids[index]) {
		struct proto_cursor c = { r->strings[index], r->bytes + r->n };
		struct proto_field f = { 0 };
		if (proto_next(&c, &f) != PROTO_FIELD)
			return pprof_fail(r, leaf, at, E_FORMAT, "string %" PRIu64 " cannot be read", index);
		uint32_t id = profile_string(r->p, (const char *)f.bytes, (size_t)(f.end - f.bytes));
		int rc = pprof_built(r);
		if (rc)
			return rc;
		r->string_ids[index] = id + 1;
	}
	*ret = r->string_ids[index] - 1;
	return E_OK;
}

/* --- ids ------------------------------------------------------------------ */

bool pprof_ids_init(struct pprof_ids *ids, size_t n)
{
	ids->n_dense = n ? (uint64_t)n * 2 + 64 : 0;
	ids->dense = n ? calloc(ids->n_dense, sizeof *ids->dense) : NULL;
	return !n || ids->dense;
}

void pprof_ids_finish(struct pprof_ids *ids)
{
	free(ids->dense);
	free(ids->sparse);
	index_finish(&ids->index);
}

struct id_sought {
	const struct sparse_id *sparse;
	uint64_t id;
};

static bool same_id(const void *context, uint32_t item)
{
	const struct id_sought *sought = context;
	return sought->sparse[item].id == sought->id;
}

uint32_t pprof_ids_find_sparse(const struct pprof_ids *ids, uint64_t id)
{
	struct id_sought sought = { ids->sparse, id };
	uint32_t at = index_find(&ids->index, hash_u64(id), same_id, &sought);
	return at == INDEX_NONE ? PROFILE_NONE : ids->sparse[at].item;
}

int pprof_ids_add(struct pprof_reader *r, struct pprof_ids *ids, const uint8_t *at, uint64_t id,
                  uint32_t item)
{
	if (id == 0)
		return pprof_fail(r, pprof_single("id"), at, E_FORMAT, "the id is missing or 0");
	if (pprof_ids_find(ids, id) != PROFILE_NONE)
		return pprof_fail(r, pprof_single("id"), at, E_FORMAT,
		                  "the id %" PRIu64 " was given before", id);
	if (id < ids->n_dense) {
		ids->dense[id] = item + 1;
		return E_OK;
	}
	struct sparse_id *slot = ARRAY_PUSH(ids->sparse, ids->n_sparse, ids->sparse_capacity,
	                                    INDEX_NONE - 1);
	if (!slot || !index_reserve(&ids->index))
		return pprof_fail_memory(r);
	*slot = (struct sparse_id){ id, item };
	index_insert(&ids->index, hash_u64(id), (uint32_t)(ids->n_sparse - 1));
	return E_OK;
}

