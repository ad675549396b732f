/*
 * The body of a symbolz POST, "0x4012+0x7f34+...", taken as it streams: nothing is kept of it but the addresses, which go
 * into a memfd. On the server's thread; no memory from anywhere.
 */
#ifndef AGENT_SYMBOL_BODY_H
#define AGENT_SYMBOL_BODY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define SYMBOL_BODY_MAX ((uint64_t)1 << 20)

/* All zero at the beginning. */
struct symbol_body {
	uint64_t value, n;
	int fd;                         /* + 1; 0: not there yet */
	uint8_t digits;
	bool prefix;                    /* "0x" has been seen */
};

/* E_FORMAT: no list of addresses. */
int symbol_body_add(struct symbol_body *b, const char *bytes, size_t n, struct error *err);
/* *ret_fd is the caller's. */
int symbol_body_end(struct symbol_body *b, int *ret_fd, uint64_t *ret_n, struct error *err);
void symbol_body_abandon(struct symbol_body *b);

#endif
