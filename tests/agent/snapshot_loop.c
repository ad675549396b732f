/*
 * Writes snapshots into a folder, one after the other, as the watch does and as fast as it can, until somebody kills it:
 *
 *   snapshot_loop FOLDER COUNT unnamed|named
 *
 * A byte on standard output says that it begins. named: as on file systems without unnamed files. COUNT 0: only opens the folder.
 */
#include <heapgauge.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/snapshots.h"

static void *blocks[64];

__attribute__((noinline)) static void *planted_leak(size_t bytes)
{
	return malloc(bytes);
}

int main(int argc, char **argv)
{
	static struct snapshots s;
	struct error err = { 0 };
	if (argc != 4)
		return 2;
	for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++)
		blocks[i] = planted_leak(4096 + i);
	unsigned count = (unsigned)strtoul(argv[2], NULL, 10);
	if (snapshots_open(&s, argv[1], count ? count : 1000, &err)) {
		fprintf(stderr, "%s\n", err.text);
		return 1;
	}
	s.unnamed = s.unnamed && strcmp(argv[3], "unnamed") == 0;
	if (write(STDOUT_FILENO, "b", 1) != 1 || count == 0)
		return count == 0 ? 0 : 1;
	for (;;) {
		int fd = snapshots_begin(&s, &err);
		if (fd < 0 || hg_dump_pprof_fd(fd) != HG_OK || snapshots_commit(&s, fd, &err)) {
			fprintf(stderr, "%s\n", err.text);
			return 1;
		}
	}
}
