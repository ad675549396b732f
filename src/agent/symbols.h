/*
 * Names for addresses of this process by the symbol tables of the files it has loaded: what the symbolz protocol asks for. For the one who
 * holds the session.
 */
#ifndef AGENT_SYMBOLS_H
#define AGENT_SYMBOLS_H

#include <stdint.h>

#include "base/error.h"

/*
 * addresses_fd: n 64-bit addresses. *ret_fd: a memfd with a line for each, in their order: "0x55d0…<tab>name". A symbol names an address only
 * when its size covers it; others are "libfoo.so!0xoffset"; what lies in no file has no line. Names are as the linker knows them. HG codes.
 */
int symbols_of_addresses(int addresses_fd, uint64_t n, int *ret_fd, uint64_t *ret_n, struct error *err);

#endif
