// gperf_fixture SAMPLE GROWTH: allocates under tcmalloc and writes its sampled profile and its growth profile.
// Run with TCMALLOC_SAMPLE_PARAMETER=bytes.
#include <cstdio>
#include <cstdlib>
#include <string>

#include <gperftools/malloc_extension.h>

static void *keep(void *p)
{
	asm volatile("" : "+r"(p));
	return p;
}

__attribute__((noinline)) static void small()
{
	for (int i = 0; i < 20000; i++)
		keep(malloc(100));
}

__attribute__((noinline)) static void large()
{
	for (int i = 0; i < 200; i++) {
		void *p = keep(malloc(100000));
		if (i % 2)
			free(p);
	}
}

static int write(const char *path, const std::string &text)
{
	FILE *f = fopen(path, "w");
	if (!f)
		return 1;
	size_t n = fwrite(text.data(), 1, text.size(), f);
	return fclose(f) || n != text.size();
}

int main(int argc, char **argv)
{
	if (argc != 3)
		return 2;
	small();
	large();
	std::string sample, growth;
	MallocExtension::instance()->GetHeapSample(&sample);
	MallocExtension::instance()->GetHeapGrowthStacks(&growth);
	return write(argv[1], sample) || write(argv[2], growth);
}
