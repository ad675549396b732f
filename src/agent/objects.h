/* The files that this process has loaded, as the dynamic linker and the kernel tell. Nothing here allocates from the host. */
#ifndef AGENT_OBJECTS_H
#define AGENT_OBJECTS_H

#include <limits.h>
#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/elf_image.h"

#define OBJECT_ID_MAX 64

struct loaded_object {
	uint64_t base, start, end;      /* what it was loaded at; its lowest address and the one after its highest */
	bool program;                   /* the first */
	char path[1024];                /* as the linker knows it; "": the program, or no file at all */
	uint64_t layout;                /* of its segments */
	uint8_t id[OBJECT_ID_MAX];      /* its build id */
	size_t id_n;
};

/* From a callback of dl_iterate_phdr, where the object can't go away. */
void objects_describe(const struct dl_phdr_info *info, bool program, struct loaded_object *ret);
/* dl_iterate_phdr, with forks held off meanwhile. */
void objects_each(int (*look)(struct dl_phdr_info *info, size_t size, void *context), void *context);

/*
 * The file it was loaded from, if that is still there: one that has been replaced since (its segments or its build id are others) would tell
 * wrong addresses and is refused, E_UNSUPPORTED.
 */
int objects_open(const struct loaded_object *o, struct elf_image *ret, struct error *err);

/* What a person calls its file: the last part of its path; "program" when the program's can't be told. */
void objects_name(const struct loaded_object *o, char *to, size_t room);

/*
 * The build id of the loaded object that has that address: how many bytes, and where; 0: it has none, or there is no such object. They are
 * good until the next call, for the one who holds the session. The first two arguments are not looked at (format/format.h asks in this form).
 */
size_t objects_build_id(void *context, const char *path, uint64_t address, const uint8_t **ret_bytes);

#endif
