/*
 * A unit's line table: decoded once by libdw, sorted by address, searched for every address asked.
 * The last row at or before an address tells; a row that ends a sequence tells that there is none.
 */
#include <dwarf.h>
#include <string.h>

#include "base/buf.h"
#include "symbol/debug_info.h"

#define PATH_BYTES_MAX 16384

const char *lines_folder(Dwarf_Die *unit)
{
	Dwarf_Attribute a;
	return dwarf_attr(unit, DW_AT_comp_dir, &a) ? dwarf_formstring(&a) : NULL;
}

const char *lines_path(struct debug_info *d, const char *folder, const char *path)
{
	if (path[0] == '/' || !folder || folder[0] != '/' || strnlen(folder, PATH_BYTES_MAX) == PATH_BYTES_MAX)
		return names_keep(d->names, path, strlen(path));
	struct buf joined;
	buf_init(&joined, PATH_BYTES_MAX);
	buf_printf(&joined, "%s/%s", folder, path);
	const char *kept = joined.failed ? names_keep(d->names, path, strlen(path))
	                                 : names_keep(d->names, joined.data, joined.len);
	buf_finish(&joined);
	return kept;
}

/* Rows at or before the address: the last of them counts. */
static size_t rows_before(Dwarf_Lines *lines, size_t from, size_t n, uint64_t address)
{
	size_t low = from, count = n - from;
	while (count > 0) {
		size_t half = count / 2;
		Dwarf_Addr at;
		if (dwarf_lineaddr(dwarf_onesrcline(lines, low + half), &at))
			return from;
		if (at <= address) {
			low += half + 1;
			count -= half + 1;
		} else {
			count = half;
		}
	}
	return low;
}

static int set_place(struct debug_info *d, const char *folder, Dwarf_Line *row,
                     struct code_place *place, struct error *err)
{
	bool end;
	int line = 0, column = 0;
	if (dwarf_lineendsequence(row, &end) || end)
		return 0;
	const char *file = dwarf_linesrc(row, NULL, NULL);
	if (!file || !*file || strnlen(file, NAME_BYTES_MAX) == NAME_BYTES_MAX)
		return 0;
	dwarf_lineno(row, &line);
	dwarf_linecol(row, &column);
	place->file = lines_path(d, folder, file);
	place->line = line > 0 ? (uint32_t)line : 0;
	place->column = column > 0 ? (uint32_t)column : 0;
	return place->file ? 0 : error_nomem(err, "file names");
}

int lines_unit(struct debug_info *d, Dwarf_Die *unit, const struct asked_list *asked,
               struct error *err)
{
	Dwarf_Lines *lines;
	size_t n, row = 0;
	if (dwarf_getsrclines(unit, &lines, &n))
		return 0;                        /* none, or damaged: functions remain */
	if (!debug_spend(&d->budget, &d->budget.rows, n))
		return 0;
	const char *folder = lines_folder(unit);
	for (size_t i = 0; i < asked->n; i++) {
		row = rows_before(lines, row ? row - 1 : 0, n, asked->items[i].address);
		struct code_place *place = &d->places[asked->items[i].index];
		if (row == 0 || place->file)
			continue;
		int rc = set_place(d, folder, dwarf_onesrcline(lines, row - 1), place, err);
		if (rc)
			return rc;
	}
	return 0;
}
