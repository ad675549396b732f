/*
 * Which reader: by the first bytes, behind gzip if there is any. Text formats say what they are in
 * their first line; a pprof file is protobuf, which has no magic number, so it is what is left when
 * the bytes could begin a message, and well-known other files are named for what they are.
 */
#include "format/format.h"
#include "format/lines.h"
#include "format/proto.h"

#include <stdlib.h>

#define HEAD_BYTES ((size_t)64 << 10)
#define HEAD_INFLATED ((size_t)4 << 10)
#define FIELD_NUMBER_MAX ((1u << 29) - 1)      /* protobuf's */

enum kind { KIND_EMPTY, KIND_JEHEAP, KIND_GPERF, KIND_FOLDED, KIND_PPROF, KIND_OTHER };

/* Files that people give by mistake. */
static const struct {
	const char *magic;
	size_t n;
	const char *what;
} others[] = {
	{ "\177ELF", 4, "a program or library, not a profile (unlike jeprof, no binary is needed: give the profile alone)" },
	{ "PERFILE2", 8, "a perf.data file; convert it with perf script and a folder of stacks" },
	{ "--- symbol", 10, "jeprof's --raw output; give the dump itself" },
	{ "\x28\xb5\x2f\xfd", 4, "compressed with zstd; decompress it first" },
	{ "\xfd" "7zXZ", 5, "compressed with xz; decompress it first" },
	{ "BZh", 3, "compressed with bzip2; decompress it first" },
	{ "PK\x03\x04", 4, "a zip archive; unpack it first" },
	{ "{", 1, "JSON, not a profile" },
	{ "<", 1, "HTML or XML, not a profile (an error page of a server?)" },
};

/*
 * "a;b;c 123": one line of printable text with a number at its end. Of a line that is longer than
 * what was looked at only the text is asked for.
 */
static bool is_folded(const uint8_t *head, size_t n, bool whole_input)
{
	size_t at = 0;
	while (at < n && (head[at] == '\n' || head[at] == '\r'))
		at++;
	/* Comments first, as some writers have them. */
	while (at < n && head[at] == '#') {
		const uint8_t *newline = memchr(head + at, '\n', n - at);
		if (!newline)
			return false;
		at = (size_t)(newline - head) + 1;
	}
	size_t end = at;
	while (end < n && (head[end] >= ' ' || head[end] == '\t') && head[end] != 0x7f)
		end++;
	bool line_ends = end < n ? head[end] == '\n' || head[end] == '\r' : whole_input;
	if (!line_ends)
		return end == n && n >= HEAD_INFLATED;
	size_t digits = end;
	while (digits > at && head[digits - 1] == ' ')
		digits--;
	size_t number_end = digits;
	while (digits > at && ((unsigned)(head[digits - 1] - '0') < 10 || head[digits - 1] == '.'))
		digits--;
	return digits < number_end && digits > at && head[digits - 1] == ' ';
}

/* Nothing but characters and line ends: no protobuf of more than a few bytes looks so. */
static bool is_plain_text(const uint8_t *head, size_t n)
{
	size_t some = n < 64 ? n : 64;
	for (size_t i = 0; i < some; i++)
		if ((head[i] < ' ' && head[i] != '\t' && head[i] != '\n' && head[i] != '\r') || head[i] == 0x7f)
			return false;
	return true;
}

static bool is_profile_field(uint64_t number, enum proto_wire wire)
{
	bool numeric = number >= PPROF_DROP_FRAMES && number != PPROF_PERIOD_TYPE;
	return number >= 1 && number < PPROF_FIELDS && (wire == PROTO_BYTES || (numeric && wire == PROTO_VARINT));
}

/* Could a profile.proto message begin so. */
static bool is_pprof(const uint8_t *head, size_t n)
{
	return n >= 2 && is_profile_field(head[0] >> 3, head[0] & 7);
}

/*
 * The same of messages that begin with a field which profile.proto doesn't have, tags of two bytes and more. Many
 * other files begin with such bytes, so everything that can be seen must be well formed, and one field known.
 */
static bool is_pprof_extended(const uint8_t *head, size_t n, bool whole_input)
{
	struct proto_cursor c = { head, head + n };
	struct proto_field f = { 0 };
	enum proto_status status;
	bool known = false;
	if (n < 2 || head[0] < 0x80)
		return false;
	while ((status = proto_next(&c, &f)) == PROTO_FIELD) {
		if (f.number < PPROF_FIELDS ? !is_profile_field(f.number, f.wire) : f.number > FIELD_NUMBER_MAX)
			return false;
		known |= f.number < PPROF_FIELDS;
	}
	if (status == PROTO_END)
		return known || !whole_input;
	/* Cut: what is missing lies behind the head, or a reader can say where. */
	return (status == PROTO_CUT || status == PROTO_PAST_END) && f.number <= FIELD_NUMBER_MAX &&
	       (known || !whole_input);
}

static enum kind kind_of(const uint8_t *head, size_t n, bool whole_input, const char **ret_what)
{
	const char *text = (const char *)head;
	*ret_what = "of no known format";
	if (n == 0)
		return KIND_EMPTY;
	/* Also when cut within these words: the reader then says so. */
	if (lines_starts(text, n, "heap_v2/", 8) || (n < 8 && !memcmp(text, "heap_v2/", n)))
		return KIND_JEHEAP;
	if (lines_starts(text, n, "heap profile:", 13) || (n < 13 && !memcmp(text, "heap profile:", n)))
		return KIND_GPERF;
	if (is_folded(head, n, whole_input))
		return KIND_FOLDED;
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (lines_starts(text, n, others[i].magic, others[i].n)) {
			*ret_what = others[i].what;
			return KIND_OTHER;
		}
	if (is_pprof_extended(head, n, whole_input))
		return KIND_PPROF;
	if (is_plain_text(head, n)) {
		*ret_what = "text of no known format (folded stacks are lines of \"a;b;c 123\")";
		return KIND_OTHER;
	}
	return is_pprof(head, n) ? KIND_PPROF : KIND_OTHER;
}

/* Looks behind the gzip without taking anything from in. */
static int kind_behind_gzip(struct stream *in, const uint8_t *head, size_t n, const struct read_limits *limits,
                            enum kind *ret, const char **ret_what, struct error *err)
{
	struct stream some, inflated;
	const uint8_t *bytes;
	size_t bytes_n = 0;
	stream_open_memory(&some, in->name, head, n);
	int rc = gz_stream(&some, limits, &inflated, err);
	if (rc)
		return rc;
	/* As much as comes out of the head; that it ends too early is for the reader to say. */
	struct error ignored;
	size_t want = HEAD_INFLATED;
	while ((rc = stream_peek(&inflated, want, &bytes, &bytes_n, &ignored)) && want > 16)
		want /= 2;
	if (rc == E_OK)
		*ret = kind_of(bytes, bytes_n, bytes_n < want, ret_what);
	else
		*ret = KIND_PPROF;
	stream_close(&inflated);
	return E_OK;
}

static int read_text(enum kind kind, struct stream *in, const struct read_limits *limits,
                     struct read_report *report, struct profile **ret, struct error *err)
{
	switch (kind) {
	case KIND_JEHEAP:
		return jeheap_read(in, limits, report, ret, err);
	case KIND_GPERF:
		return gperf_read(in, limits, report, ret, err);
	default:
		return folded_read(in, limits, report, ret, err);
	}
}

/* pprof needs all of it at once. */
static int read_pprof(struct stream *in, bool gzip, const struct read_limits *limits, struct profile **ret,
                      struct error *err)
{
	struct buf raw, plain;
	buf_init(&raw, limits->input_bytes);
	buf_init(&plain, limits->input_bytes);
	int rc = stream_read_all(in, &raw, err);
	if (rc == E_OK && gzip) {
		rc = gz_inflate(raw.data, raw.len, in->name, limits, &plain, err);
		buf_finish(&raw);
	}
	const struct buf *message = gzip ? &plain : &raw;
	if (rc == E_OK)
		rc = pprof_read(message->data, message->len, in->name, limits, ret, err);
	buf_finish(&raw);
	buf_finish(&plain);
	return rc;
}

int format_read(struct stream *in, const struct read_limits *limits, struct read_report *report,
                struct profile **ret, struct error *err)
{
	const uint8_t *head;
	const char *what = "";
	size_t n;
	enum kind kind = KIND_EMPTY;
	int rc = stream_peek(in, HEAD_BYTES, &head, &n, err);
	if (rc)
		return rc;
	bool gzip = gz_is(head, n);
	if (gzip)
		rc = kind_behind_gzip(in, head, n, limits, &kind, &what, err);
	else
		kind = kind_of(head, n, n < HEAD_BYTES, &what);
	if (rc)
		return rc;
	if (kind == KIND_EMPTY)
		return error_set(err, E_FORMAT, "%s: empty, not a profile", in->name);
	if (kind == KIND_OTHER)
		return error_set(err, E_FORMAT,
		    "%s: %s; heapgauge reads jemalloc and gperftools heap dumps, pprof, and "
		    "folded stacks", in->name, what);
	if (kind == KIND_PPROF)
		return read_pprof(in, gzip, limits, ret, err);
	if (!gzip)
		return read_text(kind, in, limits, report, ret, err);
	struct stream inflated;
	rc = gz_stream(in, limits, &inflated, err);
	if (rc)
		return rc;
	rc = read_text(kind, &inflated, limits, report, ret, err);
	stream_close(&inflated);
	return rc;
}
