/*
 * The server behind `view`: the page and its data at an address of loopback that has a secret in its path, so that other users of the machine
 * and pages of strangers can't ask. What the addresses are is in docs/page.md.
 */
#ifndef CLI_SERVE_H
#define CLI_SERVE_H

#include "cli/shown.h"

struct serve_settings {
	const char *listen;                 /* "127.0.0.1:0"; E_USAGE unless it is an address of loopback */
	size_t max_bytes;                   /* of the block that is sent first; 0: it is complete */
	/* Called once, when requests are answered; url: with the secret. */
	void (*started)(const char *url, const void *context);
	/* Lines for the user, from another thread. */
	void (*say)(const struct buf *lines);
	const void *context;
};

/*
 * Serves until SIGINT, SIGTERM or SIGHUP. shown has been read; it is looked after by a thread of its own from here on. When that is
 * busy at the end, it isn't waited for: *ret_busy is true, and shown must be left alone.
 */
int serve(struct shown *shown, const struct serve_settings *s, bool *ret_busy, struct error *err);

#endif
