/*
 * What the readers of profile.proto's messages share: the state of reading one file, errors that
 * name the field and its byte, plain fields, strings and ids. Private to pprof_read.c and pprof_reader.c.
 */
#ifndef FORMAT_PPROF_READER_H
#define FORMAT_PPROF_READER_H

#include "format/format.h"
#include "format/proto.h"

/* A step of the path to a field, for messages: name, or name[ordinal]. */
struct pprof_place {
	const char *field;
	size_t ordinal;
};

#define PPROF_SINGLE SIZE_MAX
#define PPROF_PATH_STEPS 2

/*
 * What a file's ids stand for. Ids are dense in almost every file: a vector answers for those up to
 * about twice the number of items; the others are found through a hash index.
 */
struct pprof_ids {
	uint32_t *dense;                /* id -> item + 1; 0: none */
	uint64_t n_dense;
	struct sparse_id {
		uint64_t id;
		uint32_t item;
	} *sparse;
	size_t n_sparse, sparse_capacity;
	struct index index;             /* over sparse */
};

struct pprof_extent {
	const uint8_t *begin, *end;     /* all fields of that number lie in here */
	size_t n;
};

struct pprof_reader {
	const uint8_t *bytes;
	size_t n;
	const char *name;
	const struct read_limits *limits;
	struct profile *p;
	struct error *err;

	struct pprof_place path[PPROF_PATH_STEPS];
	unsigned steps;
	struct pprof_extent extents[PPROF_FIELDS];
	const uint8_t **strings;        /* the field of each string_table entry */
	uint32_t *string_ids;           /* number in the profile + 1; 0: not yet asked for */
	size_t n_strings, strings_capacity;
	struct pprof_ids mappings, functions, locations;

	int64_t time_nanos, duration_nanos;
	uint32_t base_source;           /* of samples marked as the base of a diff; PROFILE_NONE before the first */

	/* The message at hand. */
	uint32_t *stack;                size_t n_stack, stack_capacity;
	int64_t *values;                size_t n_values;
	struct label *labels;           size_t n_labels, labels_capacity;
	struct line *lines;             size_t n_lines, lines_capacity;
	bool is_base;
};

/* A message's field that is a plain number, and the variable it goes to. */
struct pprof_slot {
	unsigned number;
	const char *name;
	uint64_t *to;
};

typedef int pprof_field_reader(struct pprof_reader *r, const struct proto_field *f, size_t ordinal);

static const struct pprof_place pprof_nowhere = { NULL, PPROF_SINGLE };

static inline struct pprof_place pprof_single(const char *field)
{
	return (struct pprof_place){ field, PPROF_SINGLE };
}

static inline void pprof_enter(struct pprof_reader *r, const char *field, size_t ordinal)
{
	r->path[r->steps++] = (struct pprof_place){ field, ordinal };
}

static inline void pprof_leave(struct pprof_reader *r)
{
	r->steps--;
}

/* "NAME: byte 17: sample[3].location_id[0]: what is wrong"; leaf may be pprof_nowhere. Returns code. */
int pprof_fail(struct pprof_reader *r, struct pprof_place leaf, const uint8_t *at, int code,
               const char *format, ...) __attribute__((format(printf, 5, 6)));
/* What proto_next had to say, in a message (or the file) that ends at end. */
int pprof_fail_wire(struct pprof_reader *r, const struct proto_field *f, enum proto_status status,
                    const uint8_t *end);
int pprof_fail_memory(struct pprof_reader *r);
/* The model's sticky failure, if there is one. */
int pprof_built(struct pprof_reader *r);

int pprof_want_wire(struct pprof_reader *r, struct pprof_place leaf, const struct proto_field *f,
                    enum proto_wire wire);

/*
 * A message of plain numbers; other (may be NULL) reads the fields of the number that other_number
 * says. Of a number given twice, the last counts.
 */
int pprof_read_message(struct pprof_reader *r, const struct proto_field *message,
                       const struct pprof_slot *slots, size_t n_slots, unsigned other_number,
                       pprof_field_reader *other);

/* The profile's number for a string of the file's table. at: the message that names it. */
int pprof_text(struct pprof_reader *r, struct pprof_place leaf, const uint8_t *at, uint64_t index,
               uint32_t *ret);

bool pprof_ids_init(struct pprof_ids *ids, size_t n);
void pprof_ids_finish(struct pprof_ids *ids);
/* Refuses ids that are 0 or were given before. */
int pprof_ids_add(struct pprof_reader *r, struct pprof_ids *ids, const uint8_t *at, uint64_t id,
                  uint32_t item);
uint32_t pprof_ids_find_sparse(const struct pprof_ids *ids, uint64_t id);

/* The item with that id, or PROFILE_NONE. */
static inline uint32_t pprof_ids_find(const struct pprof_ids *ids, uint64_t id)
{
	/* dense: 0 - 1 is PROFILE_NONE */
	return id < ids->n_dense ? ids->dense[id] - 1 : pprof_ids_find_sparse(ids, id);
}
#endif
