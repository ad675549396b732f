/*
 * PROFILEs that are no files: "http://…", "https://…" and "unix:…" are asked, and "pid:N" is a process here: its endpoint is
 * asked when it has one, else jemalloc is called in it (attach).
 */
#ifndef CLI_LIVE_H
#define CLI_LIVE_H

#include <sys/types.h>

#include "base/file.h"
#include "cli/fetch.h"
#include "cli/settings.h"
#include "profile/profile.h"

/* Is that text such a PROFILE? A file of this name can be given as "./pid:1". */
bool live_is(const char *text);

struct live {
	char name[256];             /* "pid 1234 (redis-server)", or the address */
	uint64_t pid;               /* 0: not known */
	int64_t time_nanos;
	bool attached;
	struct buf bytes;           /* of the stream, or empty */
};

/* The bytes of the profile, to be read from *ret_stream, whose name is ret->name. Close it, then live_finish. */
int live_open(const struct load_settings *s, const char *text, struct live *ret, struct stream *ret_stream,
              struct error *err);
void live_finish(struct live *l);

/*
 * Says where the files of a process are that this program sees otherwise or not at all: in another mount namespace, deleted,
 * replaced. Fills build ids that the profile lacks where the path alone would lead to another file.
 */
void live_find_files(const struct live *l, struct profile *p);

#define LIVE_FILES_MAX 64

/* Directories and files to look in that live_find_files found, into to (LIVE_FILES_MAX); how many. */
size_t live_search(const char **to);

/*
 * Where the JIT of that process, if it has one, writes names: /tmp/perf-PID.map, of its own root directory and with its own number
 * there. NULL when there is none of its user's or root's. Valid until the next call.
 */
const char *live_perf_map(void);

/* The token of --token-file or HEAPGAUGE_TOKEN_FILE into to (HTTP_TOKEN_MAX + 1 bytes); *ret_token is NULL when there is none. */
int live_token(const char *token_file, char *to, const char **ret_token, struct error *err);

/*
 * The address of a process' endpoint, for a path as in fetch_address_parse; a socket in another mount namespace is
 * reached through /proc. False: it has none that could be reached from here.
 */
bool live_endpoint(pid_t pid, const char *path, struct fetch_address *ret);

/* A dump of a process by attach, to be read from *ret_stream; name is borrowed, for messages. Close it. */
int live_dump(pid_t pid, const char *name, struct stream *ret_stream, struct error *err);

/* Is that namespace ("mnt", "net") of the process another one than ours? False when it can't be told. */
bool live_other_namespace(pid_t pid, const char *which);

/* Name of the process, made harmless: "redis-server"; "?" when it can't be read. */
void live_process_name(pid_t pid, char *to, size_t room);

#endif
