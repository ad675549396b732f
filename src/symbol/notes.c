/* A note is a struct note, then each request that nobody answered (the first of a kind; packed), with its length before it. */
#include "symbol/notes.h"

#include <string.h>
#include <time.h>
#include <unistd.h>

#include "symbol/file_request.h"
#include "symbol/locate.h"

#define ASK_NETWORK_AGAIN_SECONDS 3600

enum note_flags {
	NOTE_DEBUG_INFO = 1,         /* the binary had some itself */
	NOTE_SYMTAB = 2,             /* and a .symtab */
	NOTE_NETWORK = 4,            /* debuginfod was asked, too */
};

struct note {
	uint32_t flags;
	uint32_t n_requests;
};

/* --- taking --- */

static int open_and_note(void *context, const struct file_request *r, char *ret_path, unsigned long size)
{
	struct note_taker *t = context;
	char packed[FILE_REQUEST_MAX];
	int fd = t->inner.open(t->inner.context, r, ret_path, size);
	if (fd >= 0 || t->seen[r->kind])
		return fd;
	uint32_t n = (uint32_t)file_request_pack(r, packed, sizeof(packed));
	t->seen[r->kind] = true;
	t->n_requests += n > 0;
	buf_add(&t->requests, &n, n ? sizeof(n) : 0);
	buf_add(&t->requests, packed, n);
	return fd;
}

void note_taker_init(struct note_taker *t, struct file_source inner)
{
	*t = (struct note_taker){ .inner = inner };
	buf_init(&t->requests, CACHE_NOTE_MAX);
}

void note_taker_finish(struct note_taker *t)
{
	buf_finish(&t->requests);
}

struct file_source note_taker_files(struct note_taker *t)
{
	return (struct file_source){ open_and_note, t };
}

void note_and_keep(const struct note_taker *t, const struct elf_file *binary, const struct symbol_options *o, const void *block,
                   size_t block_bytes)
{
	struct note note = { .n_requests = t->n_requests };
	struct buf bytes;
	note.flags = (binary->has_debug_info ? NOTE_DEBUG_INFO : 0) | (binary->has_symtab ? NOTE_SYMTAB : 0) | (o->debuginfod ? NOTE_NETWORK : 0);
	buf_init(&bytes, CACHE_NOTE_MAX);
	buf_add(&bytes, &note, sizeof(note));
	buf_add(&bytes, t->requests.data, t->requests.len);
	if (!bytes.failed && !t->requests.failed)
		cache_append(binary->build_id, block, block_bytes, bytes.data, bytes.len);
	buf_finish(&bytes);
}

/* --- reading --- */

/* The n-th request in a note; false when there is no such. */
static bool next_request(const char *bytes, size_t n, size_t *at, struct file_request *ret)
{
	uint32_t length;
	if (n - *at < sizeof(length))
		return false;
	memcpy(&length, bytes + *at, sizeof(length));
	*at += sizeof(length);
	if (length > n - *at || !file_request_unpack(bytes + *at, length, ret))
		return false;
	*at += length;
	return true;
}

static bool is_there(const struct symbol_options *o, const struct file_request *r)
{
	struct symbol_options local = *o;
	struct locator locator;
	char path[FILE_REQUEST_MAX];
	local.debuginfod = NULL;
	locator_init(&locator, &local, NULL);
	struct file_source files = locator_files(&locator);
	int fd = files.open(files.context, r, path, sizeof(path));
	if (fd >= 0)
		close(fd);
	locator_finish(&locator);
	return fd >= 0;
}

bool note_holds(const struct cache_segment *s, const struct elf_file *binary, const struct symbol_options *o)
{
	struct note note;
	size_t at = sizeof(note);
	if (s->note_bytes < at)
		return false;
	memcpy(&note, s->note, sizeof(note));
	if ((binary->has_debug_info && !(note.flags & NOTE_DEBUG_INFO)) || (binary->has_symtab && !(note.flags & NOTE_SYMTAB)))
		return false;
	uint64_t now = (uint64_t)time(NULL);
	if (note.n_requests && o->debuginfod &&
	    (!(note.flags & NOTE_NETWORK) || now < s->time || now - s->time > ASK_NETWORK_AGAIN_SECONDS))
		return false;
	for (uint32_t i = 0; i < note.n_requests; i++) {
		struct file_request r;
		if (!next_request(s->note, s->note_bytes, &at, &r) || is_there(o, &r))
			return false;
	}
	return true;
}
