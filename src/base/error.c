/*
 * Errors are worded into a scratch buffer first, so the old text may be an argument
 * of the new one, and a text too long ends at a character, not in the middle of it.
 */
#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Copies text, cut at the last whole character that fits. */
static void keep(struct error *err, const char *text, size_t n)
{
	size_t room = sizeof(err->text) - 1;
	if (n > room) {
		n = room;
		size_t start = n;
		while (start > 0 && n - start < 3 && ((unsigned char)text[start] & 0xc0) == 0x80)
			start--;
		if (((unsigned char)text[start] & 0xc0) == 0xc0)
			n = start;
	}
	memcpy(err->text, text, n);
	err->text[n] = '\0';
}

int error_set(struct error *err, int code, const char *format, ...)
{
	if (!err)
		return code;
	char scratch[2 * sizeof(err->text)];
	va_list args;
	va_start(args, format);
	int n = vsnprintf(scratch, sizeof(scratch), format, args);
	va_end(args);
	if (n < 0)
		n = 0;
	if ((size_t)n >= sizeof(scratch))
		n = (int)sizeof(scratch) - 1;
	keep(err, scratch, (size_t)n);
	err->code = code;
	return code;
}

int error_prefix(struct error *err, const char *format, ...)
{
	if (!err)
		return E_FORMAT;
	char scratch[2 * sizeof(err->text)];
	va_list args;
	va_start(args, format);
	int n = vsnprintf(scratch, sizeof(err->text), format, args);
	va_end(args);
	if (n < 0)
		n = 0;
	if ((size_t)n >= sizeof(err->text))
		n = (int)sizeof(err->text) - 1;
	size_t rest = strlen(err->text);
	memcpy(scratch + n, err->text, rest);
	keep(err, scratch, (size_t)n + rest);
	return err->code;
}

int error_nomem(struct error *err, const char *what)
{
	return error_set(err, E_NOMEM, "out of memory for %s", what);
}
