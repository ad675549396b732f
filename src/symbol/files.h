/*
 * Where a reader gets the files that belong to a binary. Readers never open any: in the worker they ask its parent, who finds
 * the file, checks its build id or checksum, and passes a descriptor.
 */
#ifndef SYMBOL_FILES_H
#define SYMBOL_FILES_H

#include <stdbool.h>
#include <stdint.h>

enum file_kind {
	FILE_DEBUG,          /* the separate debug file of a binary */
	FILE_ALT,            /* what .gnu_debugaltlink names (dwz) */
	FILE_DWO,            /* one unit's split debug information */
	FILE_DWP,            /* those of all units in one file */
};

struct file_request {
	enum file_kind kind;
	const char *of;              /* path of the file that asks */
	const char *name;            /* FILE_DEBUG: of .gnu_debuglink, NULL when there is none; FILE_ALT, FILE_DWO: as written there; FILE_DWP: NULL */
	const char *folder;          /* FILE_DWO: the unit's DW_AT_comp_dir, or NULL */
	const char *build_id;        /* hex, that it must have; "" when not known */
	uint32_t crc;                /* FILE_DEBUG: decides when a build id is missing */
};

/* A descriptor of a regular file that is the caller's, or -1. ret_path (size bytes): its path, for messages and for requests of its own. */
struct file_source {
	int (*open)(void *context, const struct file_request *r, char *ret_path, unsigned long size);
	void *context;
};

#endif
