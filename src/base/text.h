/*
 * Text in and out: strict numbers, human sizes, and the escaping that keeps names
 * out of profiles from acting on a terminal, a page or a file. Nothing here looks
 * at the locale.
 */
#ifndef BASE_TEXT_H
#define BASE_TEXT_H

#include "base/buf.h"

/* Whole text is one unsigned number in base 10 or 16 (no sign, no blanks, no 0x); false otherwise or on overflow. */
bool text_parse_u64(const char *text, size_t length, unsigned base, uint64_t *ret_value);

/* "512", "64k", "1.5MiB", "2GB", "1.5 MiB": bytes, powers of 1024; false when it is not such a size. */
bool text_parse_bytes(const char *text, uint64_t *ret_bytes);

/* At most 10 columns: "0 B", "512 B", "1.50 KiB", "12.3 MiB", "1023 MiB"; negative with '-'; "?" for NaN. */
void text_add_bytes(struct buf *b, double bytes);
/* "17", "1,234", "12.3k", "4.56M": a count, at most 7 columns. */
void text_add_count(struct buf *b, double count);

/* Well-formed UTF-8 length of the character at s (1-4), or 0 when malformed. */
size_t text_utf8_length(const char *s, size_t left);

/*
 * Each appends the text made harmless for its place; every malformed byte becomes U+FFFD.
 * terminal: control characters (C0, C1, DEL) as \xNN; bidirectional controls and line separators as \u{NNNN}.
 * xml: & < > " ' tab and newline as entities, other controls and bidirectional ones U+FFFD; right for
 *      XML and HTML, text and attributes.
 * json: a quoted string, quotes included; also harmless inside a <script> and on a terminal.
 * url: a name or value of a query, percent-encoded; bytes as they are, malformed or not.
 * csv: a field, quoted when it must be; one that begins with = + - @ gets a quote mark before it.
 */
void text_add_terminal(struct buf *b, const char *s, size_t length);
void text_add_xml(struct buf *b, const char *s, size_t length);
void text_add_json(struct buf *b, const char *s, size_t length);
void text_add_url(struct buf *b, const char *s, size_t length);
void text_add_csv(struct buf *b, const char *s, size_t length);

/* Columns the text takes on a terminal (one per character; enough for symbol names). */
size_t text_columns(const char *s, size_t length);

#endif
