/*
 * One error object for the whole program. The lowest level that knows what went
 * wrong words it once; every level above may put the place (a file name) before
 * it, and only the command line prints it.
 */
#ifndef BASE_ERROR_H
#define BASE_ERROR_H

enum {
	E_OK = 0,
	E_NOMEM = -1,        /* no memory */
	E_IO = -2,           /* the system refused: open, read, write */
	E_FORMAT = -3,       /* malformed input */
	E_TRUNCATED = -4,    /* input ends too early */
	E_LIMIT = -5,        /* a limit of the reader was passed */
	E_USAGE = -6,        /* the caller asked for something that makes no sense */
	E_UNSUPPORTED = -7,  /* understood, but not handled */
};

struct error {
	int code;
	char text[480];
};

/* Words the error, replacing what was there; returns code. err may be NULL. */
int error_set(struct error *err, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Puts a prefix ("file.heap: ") before the text that is there; returns err->code. */
int error_prefix(struct error *err, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* error_set(E_NOMEM) with what was being allocated. */
int error_nomem(struct error *err, const char *what);

#endif
