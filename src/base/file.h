/*
 * Files: reading whole or as a stream with a peek at the beginning, and outputs that
 * appear whole or not at all. EINTR and short reads are handled here, every
 * descriptor is close-on-exec.
 */
#ifndef BASE_FILE_H
#define BASE_FILE_H

#include "base/buf.h"
#include "base/error.h"

/*
 * A stream of bytes from a descriptor, memory, or another stream (a decompressor).
 * fill: reads some bytes into [to, to + room); *ret_n = 0 only at the end.
 */
struct stream {
	int (*fill)(struct stream *s, void *to, size_t room, size_t *ret_n, struct error *err);
	void (*close)(struct stream *s);    /* may be NULL; frees what the stream owns, not the struct */
	const char *name;                   /* for messages; borrowed */
	void *context;
	int fd;
	uint8_t *peeked;                    /* bytes read ahead by stream_peek */
	size_t peeked_at, peeked_n;
	bool ended;                         /* fill has said so; it isn't asked again */
	uint64_t offset;                    /* bytes handed out so far */
	uint64_t size_hint;                 /* of a regular file, else 0 */
};

/* path "-" is standard input. Refuses directories with a sentence that says so. */
int stream_open(struct stream *s, const char *path, struct error *err);
void stream_open_memory(struct stream *s, const char *name, const void *bytes, size_t n);
void stream_close(struct stream *s);
/* Some bytes (0 at the end). */
int stream_read(struct stream *s, void *to, size_t room, size_t *ret_n, struct error *err);
/* Looks at up to want (<= 64 KiB) of the bytes that come next without taking them. */
int stream_peek(struct stream *s, size_t want, const uint8_t **ret_bytes, size_t *ret_n,
                struct error *err);
/* All that is left, into b (its max is the limit: E_LIMIT). */
int stream_read_all(struct stream *s, struct buf *b, struct error *err);

/* The bytes as a file without a name in memory, close-on-exec; -1 with errno when there is no room. */
int file_in_memory(const char *name, const void *bytes, size_t n);

/*
 * An output file: written to a file without a name in the same directory, which gets its
 * name in output_commit and ceases to exist by itself when the program ends before. Where the file
 * system has no nameless files, it has a temporary name, removed by output_abort. path NULL or
 * "-" is standard output (written at commit, in order). A full disk or a closed pipe is E_IO at write
 * or commit. A target that exists and is not a regular file (/dev/null, a FIFO) is written directly;
 * one that is a symbolic link stays a link, its target is replaced.
 */
struct output {
	int fd;
	char *path;
	char *temporary;        /* the temporary name while there is one */
	bool direct;            /* fd is the target itself */
	struct buf pending;
};

int output_open(struct output *o, const char *path, struct error *err);
int output_write(struct output *o, const void *bytes, size_t n, struct error *err);
int output_commit(struct output *o, struct error *err);
void output_abort(struct output *o);    /* also right after commit: then it does nothing */

/*
 * Removes the temporary names of all outputs that are open, for a handler of SIGINT and its
 * like that is about to end the program; async-signal-safe.
 */
void output_interrupted(void);
/* Installs such a handler for SIGINT, SIGTERM and SIGHUP, except where they are ignored. */
void output_catch_signals(void);

#endif
