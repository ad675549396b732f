#include "symbol/file_request.h"

#include <string.h>

/* Kind, checksum, which texts there are; then those, each with its NUL. */
struct head {
	uint32_t kind, crc, texts;
};

enum { TEXTS = 4 };

size_t file_request_pack(const struct file_request *r, char *to, size_t room)
{
	const char *texts[TEXTS] = { r->of, r->name, r->folder, r->build_id };
	struct head head = { (uint32_t)r->kind, r->crc, 0 };
	size_t n = sizeof head;
	for (unsigned i = 0; i < TEXTS; i++) {
		if (!texts[i])
			continue;
		size_t length = strlen(texts[i]) + 1;
		if (n > room || length > room - n)
			return 0;
		memcpy(to + n, texts[i], length);
		n += length;
		head.texts |= 1u << i;
	}
	if (n > room)
		return 0;
	memcpy(to, &head, sizeof head);
	return n;
}

bool file_request_unpack(const char *bytes, size_t n, struct file_request *ret)
{
	const char *texts[TEXTS] = { NULL };
	struct head head;
	size_t at = sizeof head;
	if (n < at)
		return false;
	memcpy(&head, bytes, sizeof head);
	if (head.kind > FILE_DWP || head.texts >> TEXTS)
		return false;
	for (unsigned i = 0; i < TEXTS; i++) {
		if (!(head.texts & 1u << i))
			continue;
		size_t length = strnlen(bytes + at, n - at);
		if (length == n - at)
			return false;
		texts[i] = bytes + at;
		at += length + 1;
	}
	if (at != n || !texts[0] || !texts[3])
		return false;
	*ret = (struct file_request){ (enum file_kind)head.kind, texts[0], texts[1], texts[2], texts[3], head.crc };
	return true;
}
