/* The files that this process has loaded, as the dynamic linker and the kernel tell. Nothing here allocates from the host. */
#ifndef AGENT_OBJECTS_H
#define AGENT_OBJECTS_H

#include <stddef.h>
#include <stdint.h>

/*
 * The build id of the loaded object that has that address: how many bytes, and where they lie in its memory; 0: it has none, or there is no such
 * object. The first two arguments are not looked at (format/format.h asks in this form).
 */
size_t objects_build_id(void *context, const char *path, uint64_t address, const uint8_t **ret_bytes);

#endif
