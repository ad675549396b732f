/*
 * Runs a fuzz harness over the files of the folders given as arguments, so that what the fuzzer once found
 * stays an ordinary test. Files go in one by one, each in a block of exactly its size.
 */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static int run_file(const char *path)
{
	FILE *f = fopen(path, "rbe");
	if (!f)
		return perror(path), 1;
	static uint8_t block[4 << 20];
	size_t n = fread(block, 1, sizeof block, f);
	fclose(f);
	uint8_t *data = malloc(n + !n);
	if (!data)
		return 1;
	memcpy(data, block, n);
	LLVMFuzzerTestOneInput(data, n);
	free(data);
	return 0;
}

static int run_folder(const char *path, int *n)
{
	DIR *d = opendir(path);
	struct dirent *e;
	int failed = 0;
	if (!d)
		return perror(path), 1;
	while ((e = readdir(d))) {
		char file[4096];
		if (e->d_name[0] == '.')
			continue;
		snprintf(file, sizeof file, "%s/%s", path, e->d_name);
		failed |= run_file(file);
		++*n;
	}
	closedir(d);
	return failed;
}

int main(int argc, char **argv)
{
	int failed = 0, n = 0;
	for (int i = 1; i < argc; i++)
		failed |= run_folder(argv[i], &n);
	printf("%d inputs\n", n);
	return failed || n == 0;
}
