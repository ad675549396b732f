/*
 * A program with something like a jemalloc that was built without profiling inside: attach knows it by the same
 * strings and the same function. Never a real allocator.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int mallctl(const char *name, void *old, size_t *length, void *new, size_t new_length);
const char *volatile strings[] = { "MALLOC_CONF", "opt.dirty_decay_ms", "opt.hpa_dirty_mult" };

int mallctl(const char *name, void *old, size_t *length, void *new, size_t new_length)
{
	static const char *const version = "5.3.0-fake";
	(void)new, (void)new_length;
	if (strcmp(name, "config.prof") == 0 && old && *length == 1)
		*(char *)old = 0;
	else if (strcmp(name, "version") == 0 && old && *length == sizeof version)
		memcpy(old, &version, sizeof version);
	else
		return ENOENT;
	return 0;
}

int main(void)
{
	char c;
	printf("ready %s\n", strings[0]);
	fflush(stdout);
	while (read(STDIN_FILENO, &c, 1) > 0) {
	}
	return 0;
}
