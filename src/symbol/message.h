/*
 * What a worker and its parent say to each other over their socket (SOCK_SEQPACKET keeps messages apart): a struct message, and
 * what its kind adds as text.
 */
#ifndef SYMBOL_MESSAGE_H
#define SYMBOL_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbol/file_request.h"

enum message_kind {
	/* of the worker */
	MESSAGE_ASK,                 /* for a file: a packed request */
	MESSAGE_ROOM,                /* for a place to write an answer to that is no text */
	MESSAGE_DONE,                /* the answer, unless it was written */
	MESSAGE_FAILED,              /* the words of an error */
	/* of its parent */
	MESSAGE_THERE,               /* with a descriptor; the file's path */
	MESSAGE_NOT_THERE,
	MESSAGE_QUESTION,
};

struct message {
	uint32_t kind;
	uint32_t flags;              /* of MESSAGE_DONE */
	int32_t code;                /* of MESSAGE_FAILED */
	char text[FILE_REQUEST_MAX]; /* as far as it was sent */
};

#define MESSAGE_TEXT_MAX (FILE_REQUEST_MAX - 1)

/* fd < 0: without one. flags: of sendmsg(). False when it can't be sent. */
bool message_send(int socket, const struct message *m, size_t text_bytes, int fd, int flags);
/* ret_fd NULL: none is taken. The text gets a NUL behind it. -1 and errno: no whole message; 0: the other end is gone; else 1. */
int message_receive(int socket, struct message *m, size_t *ret_text_bytes, int *ret_fd, int flags);

#endif
