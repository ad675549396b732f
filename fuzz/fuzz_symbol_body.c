/*
 * The body of a symbolz POST: however it is cut into pieces, it is refused, or its addresses are those that a plain reading of the whole
 * finds. The first byte seeds the cuts.
 */
#define AGENT_MEMORY_PLAIN
#include "agent/symbol_body.c"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

#define MOST ((size_t)1 << 20)

static uint64_t taken[MOST], expected[MOST];
static size_t n_taken;

/* What would be in the file. */
int dump_to_fd(void *fd, const void *bytes, size_t n, struct error *err)
{
	(void)fd;
	(void)err;
	if (n % sizeof *taken || n / sizeof *taken > MOST - n_taken)
		abort();
	memcpy(taken + n_taken, bytes, n);
	n_taken += n / sizeof *taken;
	return E_OK;
}

int forks_own(int fd)
{
	return fd;
}

static int expect_address(const char *at, size_t n, uint64_t *ret)
{
	size_t i = n > 1 && at[0] == '0' && (at[1] == 'x' || at[1] == 'X') ? 2 : 0;
	if (i == n || n - i > 16)
		return -1;
	for (*ret = 0; i < n; i++) {
		const char *digits = "0123456789abcdef0123456789ABCDEF", *d = memchr(digits, at[i], 32);
		if (!d)
			return -1;
		*ret = *ret << 4 | (uint64_t)((d - digits) & 15);
	}
	return 0;
}

/* How many addresses; negative: it is no list of them. A plus at the end is fine. */
static long expect(const char *at, size_t n)
{
	static char text[MOST];
	size_t length = 0, count = 0, from = 0;
	for (size_t i = 0; i < n; i++)
		if (at[i] != '\n' && at[i] != '\r')
			text[length++] = at[i] == ' ' ? '+' : at[i];
	for (size_t i = 0; i <= length; i++) {
		if (i < length && text[i] != '+')
			continue;
		if (i == length && i == from && count > 0)
			break;
		if (expect_address(text + from, i - from, &expected[count]))
			return -1;
		count++;
		from = i + 1;
	}
	return (long)count;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct symbol_body b = { 0 };
	struct error err = { 0 };
	int fd = -1, rc = E_OK;
	uint64_t count = 0;
	if (n < 1 || n > MOST)
		return 0;
	uint32_t seed = data[0];
	const char *at = (const char *)data + 1;
	n--;
	long wanted = expect(at, n);
	n_taken = 0;
	for (size_t done = 0, piece; done < n && rc == E_OK; done += piece) {
		seed = seed * 1103515245 + 12345;
		piece = seed >> 16 & 1 ? (seed >> 17) % 4 : (seed >> 17) % 2000;
		piece = piece < n - done ? piece : n - done;
		rc = symbol_body_add(&b, at + done, piece, &err);
	}
	if (rc == E_OK)
		rc = symbol_body_end(&b, &fd, &count, &err);
	if (rc != (wanted < 0 ? E_FORMAT : E_OK) || rc != err.code)
		abort();
	if (rc == E_OK && (count != (uint64_t)wanted || n_taken != count || memcmp(taken, expected, count * sizeof *taken) || b.fd))
		abort();
	if (fd >= 0)
		close(fd);
	symbol_body_abandon(&b);
	return 0;
}
