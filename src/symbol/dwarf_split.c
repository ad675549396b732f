/*
 * Split debug information: a unit in the linked file (its skeleton) has addresses and lines, and names a .dwo file that has the tree.
 * A .dwp file has the trees of all, found by their ids through an index. Files come from the source of files, are asked for once,
 * and stay open, since names point into them.
 */
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#include "symbol/dwarf.h"
#include "symbol/dwarf_constants.h"

#define SPLIT_FILES_MAX 65536
#define SPLIT_LIMIT ((uint64_t)4 << 30)          /* decompressed bytes of one file */
#define COLUMNS_MAX 16
/* Of the budget: a real part has one unit and few others; a table that is looked through for each skeleton need not be small. */
#define FILE_COST 10000u
#define UNIT_COST 256u
#define SLOT_COST 8u

struct split_file {
	struct elf_file elf;
	struct debug_sections sections;
	struct dwarf_file dwarf;
};

struct split_files {
	pthread_mutex_t lock;                    /* of everything below; also keeps requests apart */
	struct split_file **files;   size_t n, capacity;
	struct dwarf_file **parts;   size_t n_parts, parts_capacity;     /* of the .dwp */
	struct split_file *package;
	bool asked_package;
};

struct split_files *split_files_new(void)
{
	struct split_files *s = calloc(1, sizeof(*s));
	if (s)
		pthread_mutex_init(&s->lock, NULL);
	return s;
}

static void close_file(struct split_file *f)
{
	dwarf_file_close(&f->dwarf);
	sections_finish(&f->sections);
	elf_file_finish(&f->elf);
	free(f);
}

void split_files_free(struct split_files *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->n_parts; i++) {
		dwarf_file_close(s->parts[i]);
		free(s->parts[i]);
	}
	for (size_t i = 0; i < s->n; i++)
		close_file(s->files[i]);
	free(s->parts);
	free(s->files);
	pthread_mutex_destroy(&s->lock);
	free(s);
}

bool split_files_too_big(const struct split_files *s)
{
	bool any = false;
	for (size_t i = 0; i < s->n; i++)
		any |= s->files[i]->sections.too_big;
	return any;
}

/* The file that is asked for, opened and kept; NULL when there is none that can be read. */
static struct split_file *open_file(struct split_files *s, const struct dwarf *d, const struct file_request *r)
{
	char path[PATH_MAX];
	const struct file_source *files = d->in.files;
	int fd = files ? files->open(files->context, r, path, sizeof path) : -1;
	if (fd < 0)
		return NULL;
	struct split_file *f = calloc(1, sizeof(*f)), **slot = NULL;
	if (!f) {
		close(fd);
		return NULL;
	}
	if (elf_file_open_fd(&f->elf, fd, path, NULL) == 0) {
		sections_init(&f->sections, &f->elf.image, SPLIT_LIMIT);
		if (dwarf_file_open(&f->dwarf, &f->sections, NULL) == 0)
			slot = ARRAY_PUSH(s->files, s->n, s->capacity, SPLIT_FILES_MAX);
		if (!slot) {
			dwarf_file_close(&f->dwarf);
			sections_finish(&f->sections);
		}
	}
	if (!slot) {
		elf_file_finish(&f->elf);
		free(f);
		return NULL;
	}
	f->dwarf.is_split = true;
	*slot = f;
	return f;
}

/* The unit of that id. Before version 5 the id is in the unit's own entry. */
static struct unit *unit_of_id(struct dwarf_file *f, const struct unit *skeleton, struct budget *budget)
{
	for (size_t i = 0; i < f->n_units && spend(budget, UNIT_COST); i++) {
		struct unit *u = &f->units[i];
		if (u->type != UNIT_COMPILE && u->type != UNIT_SPLIT_COMPILE)
			continue;
		u->skeleton = skeleton;
		unit_root(u);
		if (u->id == skeleton->id)
			return u;
	}
	return NULL;
}

/* --- .dwp --- */

struct package_index {
	const uint8_t *signatures, *rows, *columns, *offsets, *sizes;
	uint32_t n_columns, n_units, n_slots;
	bool swapped;
};

static bool read_index(struct split_file *f, struct package_index *ret)
{
	struct span s = sections_get(&f->sections, DEBUG_CU_INDEX);
	bool swapped = f->dwarf.swapped;
	if (!s.at || s.n < 16)
		return false;
	*ret = (struct package_index){ .n_columns = read_u32(s.at + 4, swapped), .n_units = read_u32(s.at + 8, swapped),
		.n_slots = read_u32(s.at + 12, swapped), .swapped = swapped };
	uint64_t cells = (uint64_t)ret->n_columns * ret->n_units;
	if (ret->n_columns == 0 || ret->n_columns > COLUMNS_MAX || ret->n_slots == 0 || (ret->n_slots & (ret->n_slots - 1)) ||
	    16 + 12 * (uint64_t)ret->n_slots + 4 * (uint64_t)ret->n_columns + 8 * cells > s.n)
		return false;
	ret->signatures = s.at + 16;
	ret->rows = ret->signatures + 8 * (size_t)ret->n_slots;
	ret->columns = ret->rows + 4 * (size_t)ret->n_slots;
	ret->offsets = ret->columns + 4 * (size_t)ret->n_columns;
	ret->sizes = ret->offsets + 4 * cells;
	return true;
}

/* The row of an id, from 0 on; UINT32_MAX when it has none. A hash table with a second hash as its step. */
static uint32_t row_of(const struct package_index *x, uint64_t id, struct budget *budget)
{
	uint32_t mask = x->n_slots - 1, at = (uint32_t)id & mask, step = ((uint32_t)(id >> 32) & mask) | 1;
	for (uint32_t i = 0; i < x->n_slots && spend(budget, SLOT_COST); i++, at = (at + step) & mask) {
		uint32_t row = read_u32(x->rows + 4 * (size_t)at, x->swapped);
		if (row == 0)
			return UINT32_MAX;
		if (read_u64(x->signatures + 8 * (size_t)at, x->swapped) == id)
			return row <= x->n_units ? row - 1 : UINT32_MAX;
	}
	return UINT32_MAX;
}

/* A unit's part of a section. */
static void cut(struct span *s, const struct package_index *x, uint32_t row, uint32_t column)
{
	size_t cell = 4 * ((size_t)row * x->n_columns + column);
	uint64_t offset = read_u32(x->offsets + cell, x->swapped), bytes = read_u32(x->sizes + cell, x->swapped);
	if (!s->at || offset > s->n || bytes > s->n - offset)
		*s = (struct span){ NULL, 0 };
	else
		*s = (struct span){ s->at + offset, bytes };
}

static struct unit *unit_of_package(struct split_files *s, const struct unit *skeleton, struct budget *budget)
{
	struct package_index x;
	if (!s->package || !read_index(s->package, &x))
		return NULL;
	uint32_t row = row_of(&x, skeleton->id, budget);
	struct dwarf_file whole = s->package->dwarf;
	if (row == UINT32_MAX)
		return NULL;
	for (uint32_t column = 0; column < x.n_columns; column++) {
		switch (read_u32(x.columns + 4 * (size_t)column, x.swapped)) {
		case DW_SECT_INFO:
			cut(&whole.info, &x, row, column);
			break;
		case DW_SECT_ABBREV:
			cut(&whole.abbrev, &x, row, column);
			break;
		case DW_SECT_STR_OFFSETS:
			cut(&whole.str_offsets, &x, row, column);
			break;
		case DW_SECT_RNGLISTS:
			/* Version 2's column 8 is another section's. */
			if (skeleton->version >= 5)
				cut(&whole.rnglists, &x, row, column);
			break;
		default:
			break;
		}
	}
	struct dwarf_file *part = whole.info.at ? calloc(1, sizeof(*part)) : NULL, **slot = NULL;
	if (part && dwarf_file_part(part, &whole, whole.info, NULL) == 0 && spend(budget, FILE_COST + UNIT_COST * (uint64_t)part->n_units))
		slot = ARRAY_PUSH(s->parts, s->n_parts, s->parts_capacity, SPLIT_FILES_MAX);
	if (!slot) {
		dwarf_file_close(part);
		free(part);
		return NULL;
	}
	*slot = part;
	return unit_of_id(part, skeleton, budget);
}

static struct unit *find_unit(struct split_files *s, const struct dwarf *d, const struct unit *skeleton, struct budget *budget)
{
	const char *of = d->in.file->path;
	if (!s->asked_package) {
		s->asked_package = true;
		s->package = open_file(s, d, &(struct file_request){ .kind = FILE_DWP, .of = of, .build_id = "" });
	}
	struct unit *u = unit_of_package(s, skeleton, budget);
	if (u || !spend(budget, FILE_COST))
		return u;
	struct split_file *f = open_file(s, d, &(struct file_request){ .kind = FILE_DWO, .of = of, .name = skeleton->split_name,
		.folder = skeleton->folder, .build_id = "" });
	return f ? unit_of_id(&f->dwarf, skeleton, budget) : NULL;
}

const struct unit *split_unit(struct dwarf_worker *w, struct unit *skeleton)
{
	struct dwarf *d = w->join->dwarf;
	pthread_mutex_lock(&d->split->lock);
	if (!skeleton->asked_split) {
		skeleton->split = find_unit(d->split, d, skeleton, &w->budget);
		skeleton->asked_split = !w->budget.exceeded;
	}
	const struct unit *u = skeleton->split;
	pthread_mutex_unlock(&d->split->lock);
	return u;
}
