/* A store's file with all that lies beside it. */
#ifndef STORE_FILE_H
#define STORE_FILE_H

#include <stdio.h>
#include <unistd.h>

static inline void remove_store(const char *path)
{
	static const char *const endings[] = { "", "-wal", "-shm", "-lock" };
	for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
		char name[80];
		snprintf(name, sizeof name, "%s%s", path, endings[i]);
		unlink(name);
	}
}

#endif
