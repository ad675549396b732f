/* A request for a file as bytes: between a worker and its parent, and in the notes of the cache. */
#ifndef SYMBOL_FILE_REQUEST_H
#define SYMBOL_FILE_REQUEST_H

#include <stdbool.h>
#include <stddef.h>

#include "symbol/files.h"

#define FILE_REQUEST_MAX ((size_t)16 << 10)     /* bytes */

/* Length; 0 when it doesn't fit. */
size_t file_request_pack(const struct file_request *r, char *to, size_t room);

/* Its texts point into bytes. False unless it is one, whole, with texts that end. */
bool file_request_unpack(const char *bytes, size_t n, struct file_request *ret);

#endif
