/* What the files of symbols share: symbols.c (the thread), symbols_files.c (the folder), symbols_api.c (the routes). */
#ifndef RECORD_SYMBOLS_PRIVATE_H
#define RECORD_SYMBOLS_PRIVATE_H

#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>

#include "http/server.h"
#include "record/symbols.h"
#include "symbol/elf_file.h"

#define UPLOADS_MAX 4                   /* at a time */
#define BUILD_ID_MIN 8                  /* digits; shorter ones are none */

enum symbols_kind { SYMBOLS_BINARY, SYMBOLS_DEBUG, SYMBOLS_KINDS };
extern const char *const symbols_kind_names[SYMBOLS_KINDS + 1];

/* A file that is coming, or has come and waits to be looked at. */
struct upload {
	struct symbols *symbols;
	char build_id[BUILD_ID_TEXT];
	enum symbols_kind kind;
	int fd;
	char path[PATH_MAX];                /* of the temporary file */
	uint64_t expected, received;
	struct http_ticket ticket;
	struct upload *next;                /* under the lock */
};

struct symbols {
	struct symbols_settings settings;   /* no zeros */
	struct http_server *server;         /* of the uploads' tickets */
	struct http_route routes[2];
	const char **search;                /* the folder of uploads, and the configured ones */
	pthread_t thread;
	bool started;

	pthread_mutex_t lock;               /* of what follows */
	pthread_cond_t wake;
	bool stop;
	struct upload *arrived;             /* oldest first */
	unsigned n_uploads;                 /* under way, arrived ones too */
	uint64_t reserved;                  /* bytes that they will have */
	uint64_t folder_bytes;              /* of what is there */
	struct {
		uint64_t uploads, upload_bytes, refused, named, unnamed, failed;
	} totals;

	struct waiting_build *waiting;      /* the thread's */
	size_t n_waiting, waiting_capacity;
};

/* Lower-case hex, not too short or long. */
bool symbols_build_id_valid(const char *build_id);

/* --- the folder --- */

/* Path of that file, whether it is there or not; false: too long. */
bool symbols_file_path(const struct symbols *s, const char *build_id, enum symbols_kind kind, char to[PATH_MAX]);
/* Is it there, and has it debug information? */
bool symbols_file_has(const struct symbols *s, const char *build_id, enum symbols_kind kind, bool *ret_debug_info);
/* Each uploaded file. The callback must not call back. */
void symbols_files_each(const struct symbols *s, void (*each)(void *context, const char *build_id, enum symbols_kind kind, uint64_t bytes),
                        void *context);
/* What an interrupted recorder has left is removed; returns the bytes of the others. */
uint64_t symbols_files_clean(const struct symbols *s);
/* A new temporary file in the folder: u->fd, u->path. */
int symbols_file_begin(struct upload *u, struct error *err);
/* The file is what it is said to be, and now has its name: on the disk, whole. E_USAGE: it isn't. */
int symbols_file_finish(struct upload *u, struct error *err);
/* Closes and removes what is left of it, and frees it. */
void symbols_upload_free(struct upload *u);

/* --- the thread --- */

void symbols_arrived(struct upload *u);                    /* from the server's thread */

/* --- routes --- */

/* Of uploads; *ret_n is 0 when s is NULL or takes none. */
const struct http_route *symbols_routes(struct symbols *s, size_t *ret_n);
void symbols_set_server(struct symbols *s, struct http_server *server);

#endif
