/* What the watch believes a process uses: /proc and /sys/fs/cgroup as they are met, made of files. */
#include "../base/test.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "agent/usage.h"

static char root[64], proc[80], cgroups[80];

static int begin(void **state)
{
	(void)state;
	snprintf(root, sizeof root, "/tmp/usage-test-XXXXXX");
	if (!mkdtemp(root))
		return -1;
	snprintf(proc, sizeof proc, "%s/proc", root);
	snprintf(cgroups, sizeof cgroups, "%s/cgroup", root);
	return 0;
}

static int end(void **state)
{
	char command[128];
	(void)state;
	snprintf(command, sizeof command, "rm -rf '%s'", root);
	return system(command);
}

/* A file under the root, with its folders. */
static void put(const char *path, const char *text)
{
	char whole[PATH_MAX];
	snprintf(whole, sizeof whole, "%s/%s", root, path);
	for (char *at = whole + strlen(root) + 1; (at = strchr(at, '/')); *at++ = '/') {
		*at = '\0';
		assert_true(mkdir(whole, 0700) == 0 || errno == EEXIST);
	}
	int fd = open(whole, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
}

static void put_v1(const char *group, const char *limit, const char *usage, const char *stat)
{
	char path[PATH_MAX];
	snprintf(path, sizeof path, "cgroup/memory%s/memory.limit_in_bytes", group);
	put(path, limit);
	snprintf(path, sizeof path, "cgroup/memory%s/memory.usage_in_bytes", group);
	put(path, usage);
	snprintf(path, sizeof path, "cgroup/memory%s/memory.stat", group);
	put(path, stat);
}

static void put_v2(const char *group, const char *max, const char *current, const char *stat)
{
	char path[PATH_MAX];
	snprintf(path, sizeof path, "cgroup%s/memory.max", group);
	put(path, max);
	snprintf(path, sizeof path, "cgroup%s/memory.current", group);
	put(path, current);
	snprintf(path, sizeof path, "cgroup%s/memory.stat", group);
	put(path, stat);
}

static struct usage look(void)
{
	struct usage u;
	memset(&u, 0xff, sizeof u);
	usage_read_at(proc, cgroups, &u);
	return u;
}

/* The fullest limit. */
static void assert_limit(enum usage_kind kind, uint64_t limit, uint64_t used)
{
	struct usage u = look();
	const struct usage_limit *l = usage_fullest(&u);
	assert_non_null(l);
	assert_int_equal(l->kind, kind);
	assert_int_equal(l->limit_bytes, limit);
	assert_int_equal(l->used_bytes, used);
}

static void assert_no_limit(void)
{
	struct usage u = look();
	assert_int_equal(u.n_limits, 0);
	assert_null(usage_fullest(&u));
}

/* --- v1 and v2 ------------------------------------------------------------------ */

static void test_version1(void **state)
{
	(void)state;
	put("proc/self/cgroup", "9:name=systemd:/x\n4:memory:/job\n1:cpu,cpuacct:/y\n");
	put_v1("/job", "1000000\n", "700000\n", "cache 1\ninactive_file 1\nactive_file 1\ntotal_inactive_file 100000\ntotal_active_file 50000\n");
	assert_limit(USAGE_CGROUP, 1000000, 550000);
	put("proc/self/cgroup", "4:hugetlb,memory,pids:/job\n");
	assert_limit(USAGE_CGROUP, 1000000, 550000);
	put("proc/self/cgroup", "4:memorymemory,mem:/job\n");
	assert_no_limit();
}

static void test_version2(void **state)
{
	(void)state;
	put("proc/self/cgroup", "0::/job\n");
	put_v2("/job", "1000000\n", "700000\n", "anon 5\ninactive_file 100000\nactive_file 50000\nslab_reclaimable 7000\nslab 1\n");
	assert_limit(USAGE_CGROUP, 1000000, 543000);
	put("cgroup/job/memory.stat", "inactive_file 900000\n");
	assert_limit(USAGE_CGROUP, 1000000, 0);
	put("cgroup/job/memory.stat", "");
	assert_limit(USAGE_CGROUP, 1000000, 700000);
}

static void test_high_counts_without_max(void **state)
{
	(void)state;
	put("proc/self/cgroup", "0::/job\n");
	put_v2("/job", "max\n", "700000\n", "");
	assert_no_limit();
	put("cgroup/job/memory.high", "800000\n");
	assert_limit(USAGE_CGROUP, 800000, 700000);
	put("cgroup/job/memory.max", "1000000\n");
	assert_limit(USAGE_CGROUP, 1000000, 700000);
	put("cgroup/job/memory.max", "max\n");
	put("cgroup/job/memory.high", "max\n");
	assert_no_limit();
}

static void test_no_limit(void **state)
{
	(void)state;
	put("proc/self/cgroup", "4:memory:/job\n0::/\n");
	put_v1("/job", "9223372036854771712\n", "700000\n", "");
	put_v1("", "9223372036854771712\n", "1700000\n", "");
	assert_no_limit();
	put("cgroup/memory/job/memory.limit_in_bytes", "18446744073709551615\n");
	assert_no_limit();
	put("cgroup/memory/job/memory.limit_in_bytes", "0\n");
	assert_no_limit();
}

static void test_nested_limits(void **state)
{
	(void)state;
	put("proc/self/cgroup", "0::/a/b/c\n");
	put_v2("/a/b/c", "max\n", "300\n", "");
	put_v2("/a/b", "1000\n", "400\n", "");
	put_v2("/a", "2000\n", "1900\n", "");
	assert_limit(USAGE_CGROUP, 2000, 1900);
	struct usage u = look();
	assert_int_equal(u.n_limits, 2);
	put_v2("/a/b/c", "310\n", "300\n", "");
	assert_limit(USAGE_CGROUP, 310, 300);
}

static void test_more_levels_than_places(void **state)
{
	char group[64] = "", line[80];
	(void)state;
	for (int i = 0; i < USAGE_LIMITS + 4; i++) {
		size_t n = strlen(group);
		snprintf(group + n, sizeof group - n, "/%d", i);
		put_v2(group, "1000\n", i == 1 || i == USAGE_LIMITS + 2 ? "900\n" : "100\n", "");
	}
	put("cgroup/0/memory.current", "950\n");
	snprintf(line, sizeof line, "0::%s\n", group);
	put("proc/self/cgroup", line);
	struct usage u = look();
	assert_int_equal(u.n_limits, USAGE_LIMITS);
	assert_limit(USAGE_CGROUP, 1000, 950);
	unsigned full = 0;
	for (size_t i = 0; i < u.n_limits; i++)
		full += u.limits[i].used_bytes >= 900;
	assert_int_equal(full, 3);
}

/* Its own path is the host's, and what is mounted is the group itself. */
static void test_container(void **state)
{
	(void)state;
	put("proc/self/cgroup", "4:memory:/docker/0123456789abcdef\n0::/system.slice/docker.service\n");
	put_v1("", "5000\n", "4000\n", "");
	assert_limit(USAGE_CGROUP, 5000, 4000);
}

static void test_namespaces(void **state)
{
	(void)state;
	put("proc/self/cgroup", "0::/\n");
	put_v2("", "5000\n", "4000\n", "");
	assert_limit(USAGE_CGROUP, 5000, 4000);
	put("proc/self/cgroup", "0::/../../elsewhere\n");
	assert_limit(USAGE_CGROUP, 5000, 4000);
}

static void test_unified_hybrid(void **state)
{
	(void)state;
	put("proc/self/cgroup", "4:memory:/job\n0::/session\n");
	put_v1("/job", "1000\n", "600\n", "");
	put("cgroup/unified/session/memory.pressure", "some avg10=0.00 avg60=0.00 avg300=0.00 total=77\nfull avg10=0 total=5\n");
	assert_limit(USAGE_CGROUP, 1000, 600);
	assert_int_equal(look().stalled_us, 77);
	/* The controller may be there, too. */
	put("cgroup/unified/session/memory.max", "100\n");
	put("cgroup/unified/session/memory.current", "99\n");
	assert_limit(USAGE_CGROUP, 100, 99);
}

/* --- the process and the machine ------------------------------------------- */

static void test_process(void **state)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	(void)state;
	put("proc/self/statm", "5000 1234 200 1 0 300 0\n");
	assert_int_equal(look().rss_bytes, 1234 * page);
	put("proc/self/statm", "5000\n");
	assert_int_equal(look().rss_bytes, 0);
	put("proc/self/statm", "");
	assert_int_equal(look().rss_bytes, 0);
}

static void test_resident_size(void **state)
{
	struct usage_rss r;
	(void)state;
	usage_rss_open(&r);
	assert_true(r.fd >= 0);
	uint64_t first = usage_rss_read(&r);
	assert_true(first > 100000);
	size_t more = (size_t)64 << 20;
	char *block = mmap(NULL, more, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(block != MAP_FAILED);
	memset(block, 1, more);
	assert_true(usage_rss_read(&r) > first + more / 2);
	munmap(block, more);
	assert_true(usage_rss_read(&r) < first + more / 2);
	int fd = r.fd;
	usage_rss_close(&r);
	assert_true(fcntl(fd, F_GETFD) < 0);
}

/* The host closes what it doesn't know, and opens a file of its own. */
static void test_closed_by_the_host(void **state)
{
	struct usage_rss r;
	(void)state;
	put("other", "1 7777777 1");
	char path[PATH_MAX];
	snprintf(path, sizeof path, "%s/other", root);
	usage_rss_open(&r);
	close(r.fd);
	int other = open(path, O_RDONLY | O_CLOEXEC);
	assert_int_equal(other, r.fd);
	assert_true(usage_rss_read(&r) > 100000);
	assert_true(usage_rss_read(&r) < (uint64_t)7777777 * 4096);
	assert_int_not_equal(r.fd, other);
	close(r.fd);
	int again = open(path, O_RDONLY | O_CLOEXEC);
	assert_int_equal(again, r.fd);
	usage_rss_close(&r);
	assert_true(fcntl(other, F_GETFD) >= 0 && fcntl(again, F_GETFD) >= 0);
	close(other);
	close(again);
}

static void test_address_space(void **state)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	int status = -1;
	(void)state;
	put("proc/self/statm", "5000 1234 200 1 0 300 0\n");
	put("proc/self/cgroup", "0::/job\n");
	put_v2("/job", "1000\n", "600\n", "");
	/* A sanitizer needs more address space than a limit leaves: in a child that does nothing else. */
	pid_t child = fork();
	if (child == 0) {
		struct rlimit limit = { 6000 * page, RLIM_INFINITY };
		struct usage u;
		bool set = setrlimit(RLIMIT_AS, &limit) == 0;
		usage_read_at(proc, cgroups, &u);
		const struct usage_limit *l = usage_fullest(&u);
		_exit(set && u.n_limits == 2 && l && l->kind == USAGE_RLIMIT && l->limit_bytes == 6000 * page &&
		      l->used_bytes == 5000 * page ? 0 : 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_limit(USAGE_CGROUP, 1000, 600);
}

static void test_machine(void **state)
{
	(void)state;
	put("proc/meminfo", "MemTotal:       1000 kB\nMemFree:          10 kB\nMemAvailable:    300 kB\nSwapTotal:       500 kB\nSwapFree:        500 kB\n");
	assert_limit(USAGE_MACHINE, 1500 * 1024, 700 * 1024);
	put("proc/meminfo", "MemTotal:       1000 kB\nMemAvailable:    300 kB\nSwapTotal:       0 kB\nSwapFree:        0 kB\n");
	assert_limit(USAGE_MACHINE, 1000 * 1024, 700 * 1024);
	/* A fuller group counts more. */
	put("proc/self/cgroup", "0::/job\n");
	put_v2("/job", "1000\n", "800\n", "");
	assert_limit(USAGE_CGROUP, 1000, 800);
	put("proc/meminfo", "MemTotal:       1000 kB\n");
	assert_int_equal(look().n_limits, 1);
}

static void test_pressure(void **state)
{
	(void)state;
	assert_false(look().has_pressure);
	put("proc/pressure/memory", "some avg10=0.00 avg60=0.00 avg300=0.00 total=90444396\nfull avg10=0.00 total=7\n");
	assert_true(look().has_pressure);
	assert_int_equal(look().stalled_us, 90444396);
	/* The group's own goes first. */
	put("proc/self/cgroup", "0::/job\n");
	put("cgroup/job/memory.pressure", "some avg10=0.00 avg60=0.00 avg300=0.00 total=12\nfull avg10=0.00 total=7\n");
	assert_int_equal(look().stalled_us, 12);
	put("cgroup/job/memory.pressure", "some avg10=0.00\nfull\n");
	assert_int_equal(look().stalled_us, 90444396);
	put("proc/pressure/memory", "some total=x\n");
	assert_false(look().has_pressure);
	assert_int_equal(look().stalled_us, 0);
}

/* --- what can't be read -------------------------------------------------------- */

static void test_nothing_there(void **state)
{
	(void)state;
	struct usage u = look();
	assert_int_equal(u.rss_bytes, 0);
	assert_int_equal(u.n_limits, 0);
	assert_false(u.has_pressure);
}

static void test_missing_files(void **state)
{
	(void)state;
	put("proc/self/cgroup", "0::/job\n");
	put("cgroup/job/memory.max", "1000\n");
	assert_no_limit();
	put("cgroup/job/memory.current", "600\n");
	assert_limit(USAGE_CGROUP, 1000, 600);
}

static void test_damaged_files(void **state)
{
	static const char *const texts[] = {
		"", "\n", "::", "::::", "0::", "0::job", "4:memory", "4:memory:", "memory:/job", ":memory:\n:::\n0:/:/job", "\xff\xfe:\x01",
	};
	char path[PATH_MAX], *large = malloc(100001);
	(void)state;
	put_v1("/job", "1000\n", "900\n", "");
	put_v2("/job", "1000\n", "900\n", "");
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		put("proc/self/cgroup", texts[i]);
		assert_no_limit();
	}
	/* Lines of any length; a group whose path is longer than a path can be. */
	memset(large, 'x', 100000);
	memcpy(large, "0::/", 4);
	large[100000] = '\0';
	put("proc/self/cgroup", large);
	assert_no_limit();
	large[PATH_MAX - 10] = '\0';
	put("proc/self/cgroup", large);
	assert_no_limit();
	free(large);
	put("proc/self/cgroup", "0::/job\n");
	static const char *const numbers[] = { "", "x", "-5", "+5", "99999999999999999999999", "0x10" };
	for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
		put("cgroup/job/memory.max", numbers[i]);
		assert_no_limit();
	}
	put("cgroup/job/memory.max", "1000");
	put("cgroup/job/memory.current", "?");
	assert_no_limit();
	put("cgroup/job/memory.current", "900");
	put("cgroup/job/memory.stat", "inactive_file x\nactive_file\nslab_reclaimable -7\nsome inactive_file 50");
	assert_limit(USAGE_CGROUP, 1000, 900);
	/* Folders in their place. */
	snprintf(path, sizeof path, "%s/proc/self/statm", root);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(look().rss_bytes, 0);
}

/* The real ones: whatever there is here, it is no nonsense. */
static void test_this_process(void **state)
{
	struct usage u;
	(void)state;
	usage_read(&u);
	if (access("/proc/self/statm", R_OK) < 0)
		skip();
	assert_true(u.rss_bytes > 100000);
	assert_true(u.n_limits > 0);
	for (size_t i = 0; i < u.n_limits; i++) {
		assert_true(u.limits[i].limit_bytes > 0);
		assert_true(usage_fraction(&u.limits[i]) <= 1.1);
		assert_true(usage_fraction(&u.limits[i]) <= usage_fraction(usage_fullest(&u)));
	}
}

#define EACH(test) cmocka_unit_test_setup_teardown(test, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		EACH(test_version1), EACH(test_version2), EACH(test_high_counts_without_max), EACH(test_no_limit),
		EACH(test_nested_limits), EACH(test_more_levels_than_places), EACH(test_container), EACH(test_namespaces),
		EACH(test_unified_hybrid), EACH(test_process), EACH(test_resident_size), EACH(test_closed_by_the_host),
		EACH(test_address_space), EACH(test_machine), EACH(test_pressure), EACH(test_nothing_there), EACH(test_missing_files), EACH(test_damaged_files), EACH(test_this_process),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
