#include "symbol/message.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#define HEAD_BYTES offsetof(struct message, text)

bool message_send(int socket, const struct message *m, size_t text_bytes, int fd, int flags)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec bytes = { (void *)(uintptr_t)m, HEAD_BYTES + text_bytes };
	struct msghdr h = { .msg_iov = &bytes, .msg_iovlen = 1 };
	if (fd >= 0) {
		memset(&control, 0, sizeof control);
		h.msg_control = &control;
		h.msg_controllen = sizeof control;
		control.head = (struct cmsghdr){ .cmsg_len = CMSG_LEN(sizeof fd), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS };
		memcpy(CMSG_DATA(&control.head), &fd, sizeof fd);
	}
	ssize_t n;
	do
		n = sendmsg(socket, &h, MSG_NOSIGNAL | flags);
	while (n < 0 && errno == EINTR);
	return n == (ssize_t)bytes.iov_len;
}

int message_receive(int socket, struct message *m, size_t *ret_text_bytes, int *ret_fd, int flags)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec bytes = { m, sizeof *m - 1 };
	struct msghdr h = { .msg_iov = &bytes, .msg_iovlen = 1 };
	if (ret_fd) {
		*ret_fd = -1;
		h.msg_control = &control;
		h.msg_controllen = sizeof control;
	}
	ssize_t n;
	do
		n = recvmsg(socket, &h, MSG_CMSG_CLOEXEC | flags);
	while (n < 0 && errno == EINTR);
	if (n == 0 || (n < 0 && (errno == ECONNRESET || errno == EPIPE)))
		return 0;
	const struct cmsghdr *c = n > 0 && ret_fd ? CMSG_FIRSTHDR(&h) : NULL;
	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS && c->cmsg_len == CMSG_LEN(sizeof(int)))
		memcpy(ret_fd, CMSG_DATA(c), sizeof(int));
	if (n < 0)
		return -1;
	if (n < (ssize_t)HEAD_BYTES || (h.msg_flags & MSG_TRUNC)) {
		errno = EPROTO;
		return -1;
	}
	*ret_text_bytes = (size_t)n - HEAD_BYTES;
	m->text[*ret_text_bytes] = '\0';
	return 1;
}
