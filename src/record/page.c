/*
 * The page lies ready in a memfd: an answer is a copy of its descriptor.
 */
#include "record/page.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "report/page.h"

/* Nothing but the page's own script and style, which its own policy names, and our data. */
static const char policy[] =
    "Content-Security-Policy: default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; connect-src 'self'; "
    "img-src data: blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'\r\nReferrer-Policy: no-referrer\r\n";

struct recorder_page {
	int fd;                         /* -1: there is none, and missing says why */
	uint64_t n;
	struct error missing;
	struct http_route route;
};

static void answer_page(void *context, struct http_exchange *e)
{
	const struct recorder_page *p = context;
	int fd = p->fd < 0 ? -1 : fcntl(p->fd, F_DUPFD_CLOEXEC, 3);
	if (p->fd < 0)
		http_answer_text(e, 404, "%s.", p->missing.text);
	else if (fd < 0)
		http_answer_text(e, 500, "There are no more descriptors.");
	else
		http_answer_fd(e, 200, "text/html; charset=utf-8", policy, fd, p->n);
}

int recorder_page_new(struct recorder_page **ret, struct error *err)
{
	struct recorder_page *p = calloc(1, sizeof *p);
	struct buf bytes;
	if (!p)
		return error_nomem(err, "the page");
	p->fd = -1;
	p->route = (struct http_route){ .path = "/", .methods = HTTP_GET, .handle = answer_page, .context = p };
	buf_init(&bytes, BUF_MAX_DEFAULT);
	int failed = page_recorder(&bytes, &p->missing);
	if (!failed) {
		p->n = bytes.len;
		p->fd = file_in_memory("heapgauge-page", bytes.data, bytes.len);
		failed = p->fd < 0 ? error_set(err, E_IO, "there is no memory for the page: %s", strerror(errno)) : E_OK;
	} else if (failed == E_UNSUPPORTED) {
		failed = E_OK;
	} else if (err) {
		*err = p->missing;
	}
	buf_finish(&bytes);
	if (failed)
		recorder_page_free(p);
	else
		*ret = p;
	return failed;
}

const struct http_route *recorder_page_routes(const struct recorder_page *p, size_t *ret_n)
{
	*ret_n = 1;
	return &p->route;
}

void recorder_page_free(struct recorder_page *p)
{
	if (!p)
		return;
	if (p->fd >= 0)
		close(p->fd);
	free(p);
}
