#include "agent/symbol_body.h"

#include <sys/mman.h>
#include <unistd.h>

#include "agent/dump.h"
#include "agent/forks.h"
#include "agent/memory.h"

/* Addresses on their way into the memfd. */
struct batch {
	uint64_t items[512];
	size_t n;
};

static int flush(struct symbol_body *b, struct batch *batch, struct error *err)
{
	if (batch->n == 0)
		return E_OK;
	if (b->fd == 0) {
		/* Not dump_open_nameless: who forks may wait for a dump, and the server's thread doesn't wait for him. */
		int fd = forks_own(memfd_create("heapgauge-dump", MFD_CLOEXEC));
		if (fd < 0)
			return error_set(err, E_IO, "no place for the addresses: %s", strerror(errno));
		b->fd = fd + 1;
	}
	int fd = b->fd - 1;
	int rc = dump_to_fd(&fd, batch->items, batch->n * sizeof *batch->items, err);
	b->n += batch->n;
	batch->n = 0;
	return rc;
}

static int end_address(struct symbol_body *b, struct batch *batch, struct error *err)
{
	if (b->digits == 0)
		return error_set(err, E_FORMAT, "addresses such as 0x4012ab are expected, with + between them");
	batch->items[batch->n++] = b->value;
	b->value = 0;
	b->digits = 0;
	b->prefix = false;
	return batch->n == sizeof batch->items / sizeof *batch->items ? flush(b, batch, err) : E_OK;
}

static int hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = (char)(c | 0x20);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static int add_character(struct symbol_body *b, char c, struct batch *batch, struct error *err)
{
	if (c == '+' || c == ' ')
		return end_address(b, batch, err);
	if ((c == 'x' || c == 'X') && !b->prefix && b->digits == 1 && b->value == 0) {
		b->prefix = true;
		b->digits = 0;
		return E_OK;
	}
	int digit = hex_value(c);
	if (digit < 0 || b->digits == 16)
		return error_set(err, E_FORMAT, "addresses such as 0x4012ab are expected, with + between them");
	b->value = b->value << 4 | (uint64_t)digit;
	b->digits++;
	return E_OK;
}

int symbol_body_add(struct symbol_body *b, const char *bytes, size_t n, struct error *err)
{
	struct batch batch = { .n = 0 };
	for (size_t i = 0; i < n; i++) {
		/* curl --data-binary @file ends in a newline. */
		if (bytes[i] == '\n' || bytes[i] == '\r')
			continue;
		int rc = add_character(b, bytes[i], &batch, err);
		if (rc)
			return rc;
	}
	return flush(b, &batch, err);
}

int symbol_body_end(struct symbol_body *b, int *ret_fd, uint64_t *ret_n, struct error *err)
{
	struct batch batch = { .n = 0 };
	int rc = b->digits || b->prefix || b->n == 0 ? end_address(b, &batch, err) : E_OK;
	if (rc == E_OK)
		rc = flush(b, &batch, err);
	if (rc)
		return rc;
	*ret_fd = b->fd - 1;
	*ret_n = b->n;
	*b = (struct symbol_body){ 0 };
	return E_OK;
}

void symbol_body_abandon(struct symbol_body *b)
{
	if (b->fd > 0)
		close(b->fd - 1);
	*b = (struct symbol_body){ 0 };
}
