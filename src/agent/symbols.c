/*
 * All addresses at once: sorted, then each file's functions, sorted, are joined with those that lie in it. A file is opened
 * only when an address lies in it, and stays mapped until the answer is written, which takes its names from there.
 */
#include "agent/symbols.h"

#include <elf.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/dump.h"
#include "agent/memory.h"
#include "agent/objects.h"
#include "base/buf.h"
#include "base/elf_image.h"
#include "base/memory.h"

#define OBJECTS_MAX 4096
#define OUTPUT_MAX ((uint64_t)32 << 20)
#define OUTPUT_PIECE ((size_t)64 << 10)
#define FUNCTIONS_MAX ((size_t)16 << 20)

struct object {
	struct loaded_object loaded;
	struct elf_image image;
	bool open;
	char name[256];                 /* "": not asked for yet */
};

struct objects {
	struct object *items;
	size_t n, capacity;
	bool failed;
};

struct function {
	uint64_t start, bytes;          /* as the file counts */
	uint64_t reach;                 /* the end of the one that ends last, of this one and those before */
	const char *name;
};

struct query {
	uint64_t address;
	uint64_t offset;                /* in its file, as the file counts */
	struct object *object;
	const char *name;
	uint32_t place;                 /* in the order they came */
};

/* --- the loaded files ------------------------------------------------------ */

static int add_object(struct dl_phdr_info *info, size_t size, void *context)
{
	struct objects *all = context;
	(void)size;
	struct object *o = ARRAY_PUSH(all->items, all->n, all->capacity, OBJECTS_MAX);
	if (!o) {
		all->failed = true;
		return 1;
	}
	memset(o, 0, sizeof *o);
	objects_describe(info, all->n == 1, &o->loaded);
	return 0;
}

static struct object *object_at(struct objects *all, uint64_t address)
{
	for (size_t i = 0; i < all->n; i++)
		if (address >= all->items[i].loaded.start && address < all->items[i].loaded.end)
			return &all->items[i];
	return NULL;
}

/* --- functions of a file --------------------------------------------------- */

static int by_start(const void *a, const void *b)
{
	const struct function *x = a, *y = b;
	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return x->bytes > y->bytes ? -1 : x->bytes < y->bytes;
}

struct functions {
	struct function *items;
	size_t n, capacity;
};

static bool add_functions(const struct elf_image *image, bool dynamic, struct functions *to)
{
	struct elf_symbols symbols;
	struct elf_symbol s;
	if (!elf_symbols_begin(&symbols, image, dynamic))
		return true;
	while (elf_symbols_next(&symbols, &s)) {
		if ((s.type != STT_FUNC && s.type != STT_GNU_IFUNC) || s.section == SHN_UNDEF || s.bytes == 0)
			continue;
		struct function *f = ARRAY_PUSH(to->items, to->n, to->capacity, FUNCTIONS_MAX);
		if (!f)
			return false;
		*f = (struct function){ .start = s.value, .bytes = s.bytes, .name = s.name };
	}
	return true;
}

/* The innermost one that covers the address. */
static const char *name_in(const struct functions *f, uint64_t address)
{
	size_t low = 0, high = f->n;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (f->items[middle].start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	while (low-- > 0 && address < f->items[low].reach)
		if (address - f->items[low].start < f->items[low].bytes)
			return f->items[low].name;
	return NULL;
}

/* Names queries[0..n), which all lie in one object. */
static int name_queries(struct object *o, struct query *queries, size_t n, struct error *err)
{
	struct functions f = { .items = NULL };
	if (objects_open(&o->loaded, &o->image, NULL))
		return E_OK;            /* no file: the vdso, or one that is gone, or has been replaced */
	o->open = true;
	bool fine = add_functions(&o->image, false, &f) && add_functions(&o->image, true, &f);
	if (!fine)
		return error_nomem(err, "the functions of a file");
	qsort(f.items, f.n, sizeof *f.items, by_start);
	for (uint64_t i = 0, reach = 0; i < f.n; i++) {
		uint64_t end = f.items[i].bytes < UINT64_MAX - f.items[i].start ? f.items[i].start + f.items[i].bytes : UINT64_MAX;
		f.items[i].reach = reach = end > reach ? end : reach;
	}
	for (size_t i = 0; i < n; i++)
		queries[i].name = name_in(&f, queries[i].offset);
	free(f.items);
	return E_OK;
}

/* --- an answer -------------------------------------------------------------- */

static int by_object(const void *a, const void *b)
{
	const struct query *x = a, *y = b;
	if (x->object != y->object)
		return x->object < y->object ? -1 : 1;
	return x->address < y->address ? -1 : x->address > y->address;
}

static int by_place(const void *a, const void *b)
{
	const struct query *x = a, *y = b;
	return x->place < y->place ? -1 : x->place > y->place;
}

static int name_all(struct objects *all, const uint64_t *addresses, struct query *queries, size_t n, struct error *err)
{
	for (size_t i = 0; i < n; i++) {
		struct object *o = object_at(all, addresses[i]);
		queries[i] = (struct query){ .address = addresses[i], .object = o, .place = (uint32_t)i,
			                     .offset = o ? addresses[i] - o->loaded.base : 0 };
	}
	qsort(queries, n, sizeof *queries, by_object);
	int rc = E_OK;
	for (size_t i = 0, end; i < n && rc == E_OK; i = end) {
		for (end = i + 1; end < n && queries[end].object == queries[i].object; end++) {
		}
		if (queries[i].object)
			rc = name_queries(queries[i].object, queries + i, end - i, err);
	}
	qsort(queries, n, sizeof *queries, by_place);
	return rc;
}

/* A name is what some compiler, or somebody with a hex editor, wrote: one line of ours stays one. */
static void add_name(struct buf *out, const char *name)
{
	for (const char *at = name; *at; at++)
		buf_addc(out, (unsigned char)*at < ' ' || *at == 0x7f ? '?' : *at);
}

static void write_query(struct buf *out, const struct query *q)
{
	if (!q->object)
		return;
	if (!q->name && !q->object->name[0])
		objects_name(&q->object->loaded, q->object->name, sizeof q->object->name);
	buf_printf(out, "0x%" PRIx64 "\t", q->address);
	if (q->name)
		add_name(out, q->name);
	else
		buf_printf(out, "%s!0x%" PRIx64, q->object->name, q->offset);
	buf_addc(out, '\n');
}

static int write_lines(int fd, const struct query *queries, size_t n, uint64_t *ret_n, struct error *err)
{
	struct buf out;
	uint64_t sum = 0;
	int rc = E_OK;
	buf_init(&out, OUTPUT_MAX);
	for (size_t i = 0; i < n && rc == E_OK; i++) {
		write_query(&out, &queries[i]);
		if (out.failed)
			rc = error_nomem(err, "the names");
		else if (sum + out.len > OUTPUT_MAX)
			rc = error_set(err, E_LIMIT, "the names are more than %u MiB: ask for fewer addresses at once",
			               (unsigned)(OUTPUT_MAX >> 20));
		else if (out.len >= OUTPUT_PIECE || i + 1 == n) {
			rc = dump_to_fd(&fd, out.data, out.len, err);
			sum += out.len;
			out.len = 0;
		}
	}
	buf_finish(&out);
	*ret_n = sum;
	return rc;
}

static int write_answer(const struct query *queries, size_t n, int *ret_fd, uint64_t *ret_n, struct error *err)
{
	int fd = dump_open_nameless(NULL, err);
	int rc = fd < 0 ? E_IO : write_lines(fd, queries, n, ret_n, err);
	if (rc == E_OK)
		*ret_fd = fd;
	else if (fd >= 0)
		close(fd);
	return rc;
}

static int answer(const uint64_t *addresses, size_t n, int *ret_fd, uint64_t *ret_n, struct error *err)
{
	struct objects all = { .items = NULL };
	struct query *queries = malloc((n + 1) * sizeof *queries);
	objects_each(add_object, &all);
	int rc = queries && !all.failed ? E_OK : error_nomem(err, "the addresses");
	if (rc == E_OK)
		rc = name_all(&all, addresses, queries, n, err);
	if (rc == E_OK)
		rc = write_answer(queries, n, ret_fd, ret_n, err);
	for (size_t i = 0; i < all.n; i++)
		if (all.items[i].open)
			elf_image_close(&all.items[i].image);
	free(queries);
	free(all.items);
	return rc;
}

int symbols_of_addresses(int addresses_fd, uint64_t n, int *ret_fd, uint64_t *ret_n, struct error *err)
{
	size_t bytes = (size_t)n * sizeof(uint64_t);
	void *map = bytes ? mmap(NULL, bytes, PROT_READ, MAP_PRIVATE, addresses_fd, 0) : NULL;
	if (map == MAP_FAILED) {
		error_set(err, E_NOMEM, "no memory for %" PRIu64 " addresses", n);
		return HG_NO_MEMORY;
	}
	int rc = answer(map, (size_t)n, ret_fd, ret_n, err);
	if (map)
		munmap(map, bytes);
	return rc == E_OK ? HG_OK : rc == E_NOMEM ? HG_NO_MEMORY : HG_IO;
}
