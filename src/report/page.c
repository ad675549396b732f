/*
 * The page around its data. web/ makes it, one file with everything inside; here only the data, or the address of them, are put in
 * where it has a comment.
 */
#include "report/page.h"

#include <string.h>

#ifdef HEAPGAUGE_NO_PAGE
static const char page_html[] = "";
static const uint64_t page_html_size = 0;
#else
extern const char page_html[];          /* web/embed.sh */
extern const uint64_t page_html_size;
#endif

static const char mark[] = "<!--heapgauge-data-->";

#define AROUND 256                      /* bytes of the element that the data are in, at most */

int page_available(struct error *err)
{
	if (page_html_size)
		return E_OK;
	return error_set(err, E_UNSUPPORTED, "this heapgauge was built without the web page (-Dweb=disabled, or npm was missing): "
	                 "'heapgauge flame --to svg' draws a picture that browsers show, too");
}

static void add_base64(const struct buf *bytes, struct buf *out)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const unsigned char *in = (const unsigned char *)bytes->data;
	if (!buf_reserve(out, (bytes->len / 3 + 1) * 4))
		return;
	char *to = out->data + out->len;
	size_t i = 0;
	for (; i < bytes->len; i += 3) {
		size_t left = bytes->len - i;
		uint32_t three = (uint32_t)in[i] << 16 | (left > 1 ? (uint32_t)in[i + 1] << 8 : 0) | (left > 2 ? in[i + 2] : 0);
		*to++ = digits[three >> 18];
		*to++ = digits[three >> 12 & 63];
		*to++ = left > 1 ? digits[three >> 6 & 63] : '=';
		*to++ = left > 2 ? digits[three & 63] : '=';
	}
	out->len = (size_t)(to - out->data);
}

/* The page with an element in place of the mark: before, the data as text when there are some, after. */
static int add_page(const char *before, const struct buf *block, const char *after, struct buf *out, struct error *err)
{
	const char *at = page_html_size ? memmem(page_html, page_html_size, mark, sizeof(mark) - 1) : NULL;
	int code = page_available(err);
	if (code)
		return code;
	if (!at)
		return error_set(err, E_UNSUPPORTED, "the web page in this heapgauge has no place for data: build it anew");
	buf_add(out, page_html, (size_t)(at - page_html));
	buf_adds(out, before);
	if (block)
		add_base64(block, out);
	buf_adds(out, after);
	at += sizeof(mark) - 1;
	buf_add(out, at, page_html_size - (size_t)(at - page_html));
	return out->failed ? error_set(err, E_LIMIT, "the page is larger than the output may be, or out of memory") : E_OK;
}

int page_file(struct profile *p, const struct page_options *o, size_t limit_bytes, struct buf *out, struct error *err)
{
	struct page_options own = *o;
	int code = page_available(err);
	if (code)
		return code;
	own.limit_bytes = 0;
	if (limit_bytes && limit_bytes <= page_html_size + AROUND)
		return error_set(err, E_USAGE, "the page without any data has %zu bytes: allow more than %zu (--max-size)",
		                 (size_t)page_html_size, limit_bytes);
	if (limit_bytes)
		own.limit_bytes = (limit_bytes - page_html_size - AROUND) / 4 * 3 + 1;
	struct buf block;
	buf_init(&block, BUF_MAX_DEFAULT);
	code = page_block(p, &own, &block, NULL, err);
	if (!code)
		code = add_page("<script id=\"heapgauge-data\" type=\"application/octet-stream\">", &block, "</script>", out, err);
	buf_finish(&block);
	return code;
}

int page_served(struct buf *out, struct error *err)
{
	return add_page("<meta name=\"heapgauge-data\" content=\"data\">", NULL, "", out, err);
}

int page_recorder(struct buf *out, struct error *err)
{
	return add_page("<meta name=\"heapgauge-recorder\" content=\"1\">", NULL, "", out, err);
}
