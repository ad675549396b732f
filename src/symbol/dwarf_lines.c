/*
 * A unit's line program, run past the sorted addresses: rows are never stored. A row holds from its address up to the next row's, and of
 * several at one address the last one holds. Where a few addresses are asked again and again, the program is run once to the end
 * and cut into chunks, which can be run by themselves.
 */
#include <stdlib.h>

#include "symbol/dwarf.h"
#include "symbol/dwarf_constants.h"

#define FILES_MAX ((size_t)1 << 20)
#define FORMATS_MAX 16
#define CHUNK_ROWS 128
#define CHUNKS_MAX ((size_t)1 << 22)

/* --- the header --- */

struct format {
	uint16_t content, form;
};

static bool add_folder(struct line_table *t, const char *name)
{
	const char **slot = ARRAY_PUSH(t->folders, t->n_folders, t->folders_capacity, FILES_MAX);
	if (slot)
		*slot = name;
	t->no_memory |= !slot && t->n_folders < FILES_MAX;
	return slot != NULL;
}

static bool add_file(struct line_table *t, const char *name, uint64_t folder)
{
	struct line_file *slot = ARRAY_PUSH(t->files, t->n_files, t->files_capacity, FILES_MAX);
	if (slot)
		*slot = (struct line_file){ .name = name, .folder = folder, .path = DWARF_NO_TEXT };
	t->no_memory |= !slot && t->n_files < FILES_MAX;
	return slot != NULL;
}

/* The text at p, which moves behind it; NULL when it has no end. */
static const char *take_text(const uint8_t **p, const uint8_t *end)
{
	const char *text = (const char *)*p;
	const uint8_t *nul = *p < end ? memchr(*p, 0, (size_t)(end - *p)) : NULL;
	if (!nul || (size_t)(nul - *p) >= NAME_BYTES_MAX)
		return NULL;
	*p = nul + 1;
	return text;
}

/* One of version 4's files, or of DW_LNE_define_file. */
static bool take_file(struct line_table *t, const uint8_t **p, const uint8_t *end)
{
	const char *name = take_text(p, end);
	if (!name)
		return false;
	uint64_t folder = read_uleb(p);
	skip_leb(p);
	skip_leb(p);
	return add_file(t, name, folder);
}

/* Versions 2 to 4: folder 0 is the unit's own, file 0 its own source. */
static bool old_tables(struct line_table *t, const uint8_t *p, const uint8_t *end)
{
	const struct unit *u = t->unit;
	const char *name;
	if (!add_folder(t, u->folder) || !add_file(t, u->name, 0))
		return false;
	while (p < end && *p) {
		name = take_text(&p, end);
		if (!name || !add_folder(t, name))
			return false;
	}
	for (p++; p < end && *p;)
		if (!take_file(t, &p, end))
			return false;
	return true;
}

static const uint8_t *take_formats(const uint8_t *p, const uint8_t *end, struct format *formats, size_t *ret_n)
{
	*ret_n = *p++;
	if (*ret_n > FORMATS_MAX)
		return NULL;
	for (size_t i = 0; i < *ret_n && p < end; i++) {
		uint64_t content = read_uleb(&p), form = read_uleb(&p);
		formats[i] = (struct format){ content > UINT16_MAX ? 0 : (uint16_t)content, form > UINT16_MAX ? 0 : (uint16_t)form };
	}
	return p < end ? p : NULL;
}

/* Version 5: counted entries of a form that a list of formats tells. */
static const uint8_t *new_table(struct line_table *t, const struct unit *forms, const uint8_t *p, const uint8_t *end, bool folders)
{
	struct format formats[FORMATS_MAX] = { 0 };
	size_t n_formats;
	p = p < end ? take_formats(p, end, formats, &n_formats) : NULL;
	if (!p)
		return NULL;
	uint64_t n = read_uleb(&p);
	if (n && !n_formats)
		return NULL;
	for (uint64_t i = 0; i < n; i++) {
		const char *name = NULL;
		const uint8_t *entry = p;
		uint64_t folder = 0;
		for (size_t k = 0; k < n_formats; k++) {
			const uint8_t *at = p;
			p = form_skip(formats[k].form, p, end, forms);
			if (!p)
				return NULL;
			if (formats[k].content == DW_LNCT_path)
				name = form_string(formats[k].form, at, forms);
			else if (formats[k].content == DW_LNCT_directory_index)
				folder = form_number(formats[k].form, 0, &at, forms);
		}
		/* Entries without bytes would let a count of billions pass. */
		if (p == entry || (folders ? !add_folder(t, name) : !add_file(t, name, folder)))
			return NULL;
	}
	return p;
}

static bool read_tables(struct line_table *t, const uint8_t *p)
{
	if (t->version < 5)
		return old_tables(t, p, t->program);
	/* Strings are of the unit's file, sizes of this header. */
	struct unit forms = *t->unit;
	forms.offset_bytes = t->offset_bytes;
	forms.address_bytes = t->address_bytes;
	forms.version = t->version;
	p = new_table(t, &forms, p, t->program, true);
	return p && new_table(t, &forms, p, t->program, false);
}

/* False at damage. */
static bool read_lines_header(struct dwarf_worker *w, struct line_table *t)
{
	const struct unit *u = t->unit;
	struct span s = u->file->line;
	bool swapped = u->file->swapped;
	const uint8_t *p = s.at + u->lines, *section_end = s.at + s.n;
	uint64_t bytes = read_u32(p, swapped);
	p += 4;
	if (bytes == UINT32_MAX) {
		bytes = read_u64(p, swapped);
		p += 8;
		t->offset_bytes = 8;
	}
	if (p > section_end || bytes < 16 || bytes > (uint64_t)(section_end - p))
		return false;
	t->end = p + bytes;
	t->version = read_u16(p, swapped);
	p += 2;
	if (t->version < 2 || t->version > 5)
		return false;
	if (t->version >= 5) {
		t->address_bytes = p[0];
		p += 2;
	}
	uint64_t header = read_sized(p, t->offset_bytes, swapped);
	p += t->offset_bytes;
	if (p > t->end || header < 6 || header > (uint64_t)(t->end - p))
		return false;
	t->program = p + header;
	t->least_bytes = *p++;
	p += t->version >= 4;                /* operations an instruction: for machines that pack several */
	p++;                                 /* whether rows are statements at first */
	t->line_base = (int8_t)*p++;
	t->line_range = *p++;
	t->opcode_base = *p++;
	t->lengths = p;
	if (t->line_range == 0 || t->opcode_base == 0)
		return false;
	p += t->opcode_base - 1;
	return p <= t->program && spend(&w->budget, header) && read_tables(t, p);
}

bool lines_begin(struct dwarf_worker *w, const struct unit *u, struct line_table *t)
{
	*t = (struct line_table){ .unit = u, .offset_bytes = 4, .address_bytes = u->address_bytes };
	if (!u->has_lines || u->lines >= u->file->line.n)
		return false;
	bool good = read_lines_header(w, t);
	w->damaged |= !good;
	w->no_memory |= t->no_memory;
	return good;
}

void line_table_finish(struct line_table *t)
{
	if (!t)
		return;
	free(t->folders);
	free(t->files);
	*t = (struct line_table){ 0 };
}

/* --- paths --- */

/* Relative folders lie in the unit's own, which is relative itself where the build mapped its folders away: as other tools have it. */
static const char *join_path(struct dwarf_worker *w, const struct line_table *t, const struct line_file *f)
{
	const char *parts[3] = { NULL, NULL, f->name };
	size_t bytes = 0, n = 0;
	if (*f->name == '/')
		return f->name;
	parts[1] = f->folder < t->n_folders ? t->folders[f->folder] : NULL;
	const char *own = t->unit->folder;
	if (own && (!parts[1] || *parts[1] != '/') && parts[1] != own)
		parts[0] = own;
	for (int i = 0; i < 3; i++)
		bytes += parts[i] ? strnlen(parts[i], NAME_BYTES_MAX) + 1 : 0;
	char *text = bytes < NAME_BYTES_MAX && spend(&w->budget, TEXT_COST * bytes) ? worker_memory(w, bytes + 1) : NULL;
	for (int i = 0; i < 3 && text; i++) {
		size_t length = parts[i] ? strlen(parts[i]) : 0;
		if (!length)
			continue;
		if (n && text[n - 1] != '/')
			text[n++] = '/';
		memcpy(text + n, parts[i], length);
		n += length;
	}
	if (text)
		text[n] = '\0';
	return text;
}

uint32_t lines_path(struct dwarf_worker *w, struct line_table *t, uint64_t file)
{
	if (file >= t->n_files || !t->files[file].name || !*t->files[file].name)
		return DWARF_NO_TEXT;
	struct line_file *f = &t->files[file];
	if (f->path == DWARF_NO_TEXT || f->serial != t->serial) {
		const char *path = join_path(w, t, f);
		f->path = path ? worker_text(w, path, false) : DWARF_NO_TEXT;
		f->serial = t->serial;
	}
	return f->path;
}

/* --- the program --- */

/* The registers that matter, and the row before the current one. */
struct machine {
	uint64_t address, row_address;
	uint64_t next;               /* asked address; past it a row is looked at */
	uint32_t file, line, column;
	uint32_t row_file, row_line, row_column;
};

struct run {
	struct dwarf_worker *w;
	struct line_table *table;
	const struct asked *asked;
	size_t n, at, left;          /* at: of the next asked address; left: without a line */
	uint32_t address_steps[256]; /* of special operations */
	int32_t line_steps[256];
	/* When it is cut: */
	struct kept_unit *keeping;
	size_t rows;                 /* of the chunk that is open; 0: there is none */
	bool has_code;               /* where its ascending rows begin */
};

/* The first asked address that rows from here on can be for. */
static uint64_t seek(struct run *r, uint64_t address)
{
	r->at = join_has_code(r->w->join, address) ? asked_lower_bound(r->asked, r->n, address) : r->n;
	return r->at < r->n ? r->asked[r->at].address : UINT64_MAX;
}

/* Asked addresses before that of the current row get the row before; the next one is returned. */
static uint64_t give(struct run *r, uint64_t address, uint32_t file, uint32_t line, uint32_t column)
{
	for (; r->at < r->n && r->asked[r->at].address < address; r->at++) {
		struct place *place = &r->w->join->places[r->asked[r->at].index];
		if (place->has_line)
			continue;
		place->has_line = true;
		place->line_thread = r->w->number;
		place->line = line;
		place->column = column;
		place->path = lines_path(r->w, r->table, file);
		r->left--;
	}
	return r->at < r->n ? r->asked[r->at].address : UINT64_MAX;
}

/* m never leaves registers: what is out of line gets values. */
static inline __attribute__((always_inline)) void row(struct run *r, struct machine *m)
{
	if (__builtin_expect(m->address > m->next, 0))
		m->next = give(r, m->address, m->row_file, m->row_line, m->row_column);
	/* At the beginning of a sequence, too. */
	if (__builtin_expect(m->address < m->row_address, 0))
		m->next = seek(r, m->address);
	m->row_address = m->address;
	m->row_file = m->file;
	m->row_line = m->line;
	m->row_column = m->column;
}

/* --- cutting it --- */

/* The open chunk ends before an address; p: where the program goes on. */
static void close_chunk(struct run *r, uint64_t address, const uint8_t *p)
{
	struct kept_unit *k = r->keeping;
	if (r->rows == 0)
		return;
	r->rows = 0;
	struct chunk *c = &k->chunks[k->n_chunks - 1];
	c->to = p;
	if (address <= c->address || !r->has_code)
		k->n_chunks--;
	else if (!intervals_add(&k->rows, c->address, address, (uint32_t)(k->n_chunks - 1)))
		k->cannot = true;
}

/* A row of a program that is cut; p is behind the operation that made it. */
static void cut_row(struct run *r, struct machine *m, const uint8_t *p)
{
	struct kept_unit *k = r->keeping;
	bool begins = m->address < m->row_address;
	uint64_t before = m->row_address;
	m->row_address = m->address;
	if (!begins && r->rows && (r->rows < CHUNK_ROWS || m->address == k->chunks[k->n_chunks - 1].address)) {
		r->rows++;
		return;
	}
	close_chunk(r, begins ? before : m->address, p);
	if (begins)
		r->has_code = join_has_code(r->w->join, m->address);
	struct chunk *c = ARRAY_PUSH(k->chunks, k->n_chunks, k->chunks_capacity, CHUNKS_MAX);
	if (c)
		*c = (struct chunk){ .from = p, .address = m->address, .file = m->file, .line = m->line, .column = m->column };
	else
		k->cannot = true;
	r->rows = c != NULL;
}

/* --- the operations --- */

static inline void begin_sequence(struct machine *m)
{
	*m = (struct machine){ .row_address = UINT64_MAX, .file = 1, .line = 1, .next = UINT64_MAX };
}

/* The whole of an extended operation at p, or NULL at damage. *ret_n: its bytes. */
static const uint8_t *extended(const struct line_table *t, const uint8_t *p, uint64_t *ret_n)
{
	*ret_n = read_uleb(&p);
	return *ret_n && p <= t->end && *ret_n <= (uint64_t)(t->end - p) ? p : NULL;
}

/* One that this reader doesn't know. */
static const uint8_t *unknown(const struct line_table *t, uint8_t operation, const uint8_t *p)
{
	for (unsigned i = 0; i < t->lengths[operation - 1]; i++)
		skip_leb(&p);
	return p;
}

enum use { GIVE, CUT, GIVE_AGAIN };

static inline __attribute__((always_inline)) void use_row(struct run *r, struct machine *m, const uint8_t *p, enum use use)
{
	if (use == CUT)
		cut_row(r, m, p);
	else
		row(r, m);
}

/* At the end of a sequence; whether there may be another one that matters. */
static inline bool end_rows(struct run *r, const struct machine *m, const uint8_t *after, enum use use)
{
	if (use == CUT)
		close_chunk(r, m->address, after);
	else if (m->address > m->next)
		give(r, m->address, m->row_file, m->row_line, m->row_column);
	return use == CUT || r->left > 0;
}

/* From p to end; NULL at damage. */
static inline __attribute__((always_inline)) const uint8_t *execute(struct run *r, struct machine m, const uint8_t *p, const uint8_t *end, enum use use)
{
	struct line_table *t = r->table;
	const uint8_t *after, opcode_base = t->opcode_base;
	uint32_t least_bytes = t->least_bytes;
	bool swapped = t->unit->file->swapped;
	uint64_t n;
	while (p < end) {
		uint8_t operation = *p++;
		if (__builtin_expect(operation >= opcode_base, 1)) {
			m.address += r->address_steps[operation];
			m.line += (uint32_t)r->line_steps[operation];
			use_row(r, &m, p, use);
			continue;
		}
		switch (operation) {
		case DW_LNS_copy:
			use_row(r, &m, p, use);
			break;
		case DW_LNS_advance_pc:
			m.address += read_uleb(&p) * least_bytes;
			break;
		case DW_LNS_advance_line:
			m.line += (uint32_t)read_sleb(&p);
			break;
		case DW_LNS_set_file:
			m.file = (uint32_t)read_uleb(&p);
			break;
		case DW_LNS_set_column:
			m.column = (uint32_t)read_uleb(&p);
			break;
		case DW_LNS_negate_stmt:
		case DW_LNS_set_basic_block:
		case DW_LNS_set_prologue_end:
		case DW_LNS_set_epilogue_begin:
			break;
		case DW_LNS_const_add_pc:
			m.address += r->address_steps[255];
			break;
		case DW_LNS_fixed_advance_pc:
			m.address += read_u16(p, swapped);
			p += 2;
			break;
		case 0:
			p = extended(t, p, &n);
			if (!p)
				return NULL;
			after = p + n;
			if (*p == DW_LNE_end_sequence) {
				if (!end_rows(r, &m, after, use))
					return after;
				begin_sequence(&m);
			} else if (*p == DW_LNE_set_address && (n == 5 || n == 9)) {
				m.address = read_sized(p + 1, (unsigned)n - 1, swapped);
			} else if (*p == DW_LNE_define_file && t->version < 5 && use != GIVE_AGAIN) {
				p++;
				if (!take_file(t, &p, after))
					return NULL;
			}
			p = after;
			break;
		default:
			p = unknown(t, operation, p);
			break;
		}
	}
	if (use == CUT)
		close_chunk(r, m.row_address, p);
	return p;
}

/* --- all of it --- */

static void begin_run(struct run *r, struct dwarf_worker *w, struct line_table *t, const struct asked *asked, size_t n)
{
	r->w = w;
	r->table = t;
	r->asked = asked;
	r->n = n;
	r->at = r->left = 0;
	r->keeping = NULL;
	for (size_t i = 0; i < n; i++)
		r->left += !w->join->places[asked[i].index].has_line;
	for (unsigned i = 0; i < 256; i++) {
		unsigned adjusted = i >= t->opcode_base ? i - t->opcode_base : 0;
		r->address_steps[i] = adjusted / t->line_range * t->least_bytes;
		r->line_steps[i] = t->line_base + (int32_t)(adjusted % t->line_range);
	}
}

void lines_run(struct dwarf_worker *w, struct line_table *t, const struct asked *asked, size_t n)
{
	struct run r;
	struct machine m;
	begin_run(&r, w, t, asked, n);
	begin_sequence(&m);
	if (r.left == 0 || !spend(&w->budget, (uint64_t)(t->end - t->program)))
		return;
	if (!execute(&r, m, t->program, t->end, GIVE))
		w->damaged = true;
}

bool lines_cut(struct dwarf_worker *w, struct kept_unit *k)
{
	struct run r;
	struct machine m;
	begin_run(&r, w, &k->lines, NULL, 0);
	begin_sequence(&m);
	r.keeping = k;
	r.rows = 0;
	r.has_code = false;
	if (!spend(&w->budget, 2 * (uint64_t)(k->lines.end - k->lines.program)))
		return false;
	/* Rows before damage count; where they end only a run past addresses knows. */
	if (!execute(&r, m, k->lines.program, k->lines.end, CUT))
		return false;
	intervals_sort(&k->rows);
	return !k->cannot;
}

static int compare_chunks(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	return x < y ? -1 : x > y;
}

void lines_run_kept(struct dwarf_worker *w, struct kept_unit *k, const struct asked *asked, size_t n)
{
	struct run r;
	uint32_t *chunks = malloc((n + 1) * sizeof(*chunks));
	size_t n_chunks = 0;
	if (!chunks) {
		w->no_memory = true;
		return;
	}
	begin_run(&r, w, &k->lines, asked, n);
	for (size_t i = 0; i < n; i++) {
		const struct interval *found = w->join->places[asked[i].index].has_line ? NULL : intervals_first(&k->rows, asked[i].address);
		if (found)
			chunks[n_chunks++] = found->value;
	}
	qsort(chunks, n_chunks, sizeof(*chunks), compare_chunks);
	for (size_t i = 0; i < n_chunks && r.left; i++) {
		const struct chunk *c = &k->chunks[chunks[i]];
		if ((i && chunks[i] == chunks[i - 1]) || !spend(&w->budget, (uint64_t)(c->to - c->from)))
			continue;
		struct machine m = { .address = c->address, .row_address = c->address, .file = c->file, .line = c->line, .column = c->column,
			             .row_file = c->file, .row_line = c->line, .row_column = c->column };
		m.next = seek(&r, c->address);
		(void)execute(&r, m, c->from, c->to, GIVE_AGAIN);
	}
	free(chunks);
}
