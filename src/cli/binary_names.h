/* What of one binary there is to read names from, what it unwinds stacks with, and whether it is Rust. */
#ifndef CLI_BINARY_NAMES_H
#define CLI_BINARY_NAMES_H

#include <limits.h>
#include <stdbool.h>

#include "base/error.h"

struct binary_names {
	bool symtab, debug_info;    /* in the file itself */
	bool mini;                  /* .gnu_debugdata */
	char debug_file[PATH_MAX];  /* found by build id or debuglink; "": none */
	char build_id[129];
};

int binary_names_read(const char *path, struct binary_names *ret, struct error *err);

enum unwinder { UNWINDER_UNKNOWN, UNWINDER_LIBGCC, UNWINDER_LIBUNWIND };

/* By the functions that the file takes from others, or has in it. */
enum unwinder binary_unwinder(const char *path);

bool binary_is_rust(const char *path);

#endif
