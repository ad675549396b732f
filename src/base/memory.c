/*
 * Growth doubles and leaves the moving to realloc, which in glibc and musl remaps
 * blocks that came from mmap: their pages are not copied and the unused half of them
 * is never touched.
 */
#include "base/memory.h"

#include <stdlib.h>

size_t memory_product(size_t a, size_t b)
{
	size_t product;
	return __builtin_mul_overflow(a, b, &product) ? SIZE_MAX : product;
}

bool memory_grow(void **data, size_t *capacity, size_t need, size_t item_bytes, size_t max)
{
	if (need <= *capacity)
		return true;
	if (need > max || item_bytes == 0)
		return false;
	size_t least = item_bytes < 64 ? 64 / item_bytes : 1;
	size_t wanted = *capacity > SIZE_MAX / 2 ? SIZE_MAX : *capacity * 2;
	if (wanted < least)
		wanted = least;
	if (wanted < need)
		wanted = need;
	if (wanted > max)
		wanted = max;
	size_t bytes = memory_product(wanted, item_bytes);
	void *grown = bytes <= PTRDIFF_MAX ? realloc(*data, bytes) : NULL;
	if (!grown && wanted > need) {
		/* The double is too much; just enough may still do. */
		wanted = need;
		bytes = memory_product(wanted, item_bytes);
		grown = bytes <= PTRDIFF_MAX ? realloc(*data, bytes) : NULL;
	}
	if (!grown)
		return false;
	*data = grown;
	*capacity = wanted;
	return true;
}

static uint64_t load64(const uint8_t *p)
{
	uint64_t x;
	memcpy(&x, p, sizeof(x));
	return x;
}

static uint64_t load32(const uint8_t *p)
{
	uint32_t x;
	memcpy(&x, p, sizeof(x));
	return x;
}

/* The 128-bit product's halves folded together: every bit of a and b reaches the result. */
static uint64_t fold(uint64_t a, uint64_t b)
{
	unsigned __int128 product = (unsigned __int128)a * b;
	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* Odd, with about half of their bits set; digits of the square roots of 2, 3 and 5. */
#define ROOT2 0x6a09e667f3bcc909u
#define ROOT3 0xbb67ae8584caa73bu
#define ROOT5 0x3c6ef372fe94f82bu

/* Sixteen bytes a step through one multiplication; the last ones overlap what was read already. */
uint64_t hash_bytes(const void *bytes, size_t n)
{
	const uint8_t *p = bytes;
	uint64_t h = ROOT5 ^ n;
	uint64_t a = 0, b = 0;
	if (n > 16) {
		size_t left = n;
		for (; left > 16; left -= 16, p += 16)
			h = fold(load64(p) ^ ROOT2 ^ h, load64(p + 8) ^ ROOT3) ^ (h << 1 | h >> 63);
		a = load64(p + left - 16);
		b = load64(p + left - 8);
	} else if (n >= 8) {
		a = load64(p);
		b = load64(p + n - 8);
	} else if (n >= 4) {
		a = load32(p);
		b = load32(p + n - 4);
	} else if (n > 0) {
		a = (uint64_t)p[0] << 16 | (uint64_t)p[n / 2] << 8 | p[n - 1];
	}
	return hash_u64(fold(a ^ ROOT2, b ^ h ^ ROOT3) ^ h);
}

void index_finish(struct index *x)
{
	if (!x)
		return;
	free(x->slots);
	*x = (struct index){ 0 };
}

bool index_reserve(struct index *x)
{
	size_t slots = x->slots ? x->mask + 1 : 0;
	if (x->n < slots / 2)
		return true;
	size_t grown = slots ? slots * 2 : 16;
	if (grown > (size_t)1 << 32)
		return false;
	struct index old = *x;
	x->slots = calloc(grown, sizeof(*x->slots));
	if (!x->slots) {
		*x = old;
		return false;
	}
	x->mask = grown - 1;
	for (size_t i = 0; i < slots; i++) {
		if (!old.slots[i].item)
			continue;
		size_t to = old.slots[i].tag & x->mask;
		while (x->slots[to].item)
			to = (to + 1) & x->mask;
		x->slots[to] = old.slots[i];
	}
	free(old.slots);
	return true;
}
