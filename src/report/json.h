/*
 * JSON, written straight into a buf: commas and quoting are taken care of, nesting is
 * the caller's. key is NULL inside an array. Numbers that are none (infinite) become null.
 */
#ifndef REPORT_JSON_H
#define REPORT_JSON_H

#include "base/buf.h"
#include "profile/view.h"

struct json {
	struct buf *out;
	bool comma;         /* something stands before at this level */
};

void json_open(struct json *j, const char *key, char bracket);     /* '{' or '[' */
void json_close(struct json *j, char bracket);                     /* '}' or ']' */
void json_text(struct json *j, const char *key, const char *text, size_t length);
void json_cstring(struct json *j, const char *key, const char *text);
void json_number(struct json *j, const char *key, double value);   /* 6 significant digits */
void json_amount_number(struct json *j, const char *key, double value);    /* rounded to a whole number */
void json_integer(struct json *j, const char *key, int64_t value);
void json_bool(struct json *j, const char *key, bool value);
void json_null(struct json *j, const char *key);

/*
 * {"value","low","high"}, of a diff {"base","new","change","low","high"}: the 95 % interval is that of
 * value or change; null without errors.
 */
void json_amount(struct json *j, const char *key, const struct view *v, const struct amount *a);
/* The keys of an entry: name, file, line, binary, address, inlined (file ... only where known). */
void json_entry(struct json *j, const struct view *v, uint32_t entry);

#endif
