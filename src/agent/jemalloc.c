/*
 * jemalloc is known by its functions' names: something ends in "mallctl" and its siblings with the same prefix are
 * beside it. Those that the dynamic linker can see are found by name at once; others by reading symbol
 * tables: of each loaded file the dynamic one, of the program the full one, too, since that is where a jemalloc linked in
 * (Rust's) is.
 */
#include "agent/jemalloc.h"

#include <elf.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>

#include "base/elf_image.h"

#define NAME_ENDING "mallctl"
#define CANDIDATES 8

hg_mallctl_function mallctl __attribute__((weak));
hg_mallctl_function je_mallctl __attribute__((weak));
hg_mallctl_function _rjem_mallctl __attribute__((weak));

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* Under the lock: */
static struct jemalloc found;
static unsigned long long searched_adds;    /* libraries ever loaded when nothing was found */
static bool searched;
static char prof_off_advice[320] = "profiling is off in this process' jemalloc (opt.prof is false): start it with MALLOC_CONF=prof:true";

void jemalloc_after_fork(void)
{
	pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;
	lock = fresh;
}

/* --- asking it ------------------------------------------------------------ */

static bool get_bool(const struct jemalloc *j, const char *name)
{
	bool value = false;
	size_t n = sizeof value;
	return j->mallctl(name, &value, &n, NULL, 0) == 0 && value;
}

uint64_t jemalloc_number(const struct jemalloc *j, const char *name)
{
	uint64_t value = 0;
	size_t n = sizeof value;
	return j->mallctl(name, &value, &n, NULL, 0) == 0 && n == sizeof value ? value : 0;
}

void jemalloc_refresh(const struct jemalloc *j)
{
	uint64_t epoch = 1;
	size_t n = sizeof epoch;
	j->mallctl("epoch", &epoch, &n, &epoch, sizeof epoch);
}

/* "5.3.0-0-g54ea…": everything before 5.3 prints raw counts. */
static bool is_before_5_3(const char *version)
{
	int major = 0, minor = 0;
	return sscanf(version, "%d.%d", &major, &minor) == 2 && (major < 5 || (major == 5 && minor < 3));
}

/* Fills in what it says of itself; false when it doesn't answer as jemalloc does. */
static bool ask(struct jemalloc *j)
{
	const char *version = NULL;
	size_t n = sizeof version;
	if (j->mallctl("version", &version, &n, NULL, 0) != 0 || !version)
		return false;
	snprintf(j->version, sizeof j->version, "%s", version);
	j->profiling_built_in = get_bool(j, "config.prof");
	j->profiling_enabled = j->profiling_built_in && get_bool(j, "opt.prof");
	j->accumulates = j->profiling_enabled && get_bool(j, "opt.prof_accum");
	j->raw_counts = is_before_5_3(j->version);
	return true;
}

/* --- finding it ----------------------------------------------------------- */

static void set_prefix(struct jemalloc *j, const char *prefix, size_t n)
{
	if (n >= sizeof j->prefix)
		n = sizeof j->prefix - 1;
	memcpy(j->prefix, prefix, n);
	j->prefix[n] = '\0';
	size_t i = 0;
	for (; i < n; i++)
		j->conf_variable[i] = j->prefix[i] >= 'a' && j->prefix[i] <= 'z' ? (char)(j->prefix[i] - 32) : j->prefix[i];
	snprintf(j->conf_variable + i, sizeof j->conf_variable - i, "MALLOC_CONF");
}

static unsigned rank(const struct jemalloc *j)
{
	return !j->mallctl ? 0 : j->profiling_enabled ? 3 : j->profiling_built_in ? 2 : 1;
}

static void consider(struct jemalloc *best, hg_mallctl_function *function, const char *prefix, size_t prefix_n,
                     const char *path)
{
	struct jemalloc j = { .mallctl = function };
	if (!function || !ask(&j))
		return;
	set_prefix(&j, prefix, prefix_n);
	snprintf(j.path, sizeof j.path, "%s", path);
	if (rank(&j) > rank(best))
		*best = j;
}

struct object_of {
	uintptr_t address;
	char *to;
	size_t room;
};

static bool object_has(const struct dl_phdr_info *info, uintptr_t address)
{
	for (unsigned i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *h = &info->dlpi_phdr[i];
		if (h->p_type == PT_LOAD && address - info->dlpi_addr - h->p_vaddr < h->p_memsz)
			return true;
	}
	return false;
}

static int name_object(struct dl_phdr_info *info, size_t size, void *context)
{
	struct object_of *o = context;
	(void)size;
	if (!object_has(info, o->address))
		return 0;
	snprintf(o->to, o->room, "%s", info->dlpi_name && *info->dlpi_name ? info->dlpi_name : "/proc/self/exe");
	return 1;
}

/* The ones the dynamic linker knew when we were loaded. */
static void find_linked(struct jemalloc *best)
{
	static const struct {
		const char *prefix;
		hg_mallctl_function *function;
	} known[] = { { "", mallctl }, { "je_", je_mallctl }, { "_rjem_", _rjem_mallctl } };
	for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
		char path[256] = "";
		hg_mallctl_function *volatile function = known[i].function;
		if (!function)
			continue;
		dl_iterate_phdr(name_object, &(struct object_of){ (uintptr_t)function, path, sizeof path });
		consider(best, function, known[i].prefix, strlen(known[i].prefix), path);
	}
}

/* Names that end in "mallctl", of one file. */
struct names {
	struct { char prefix[32]; uint64_t value; } items[CANDIDATES];
	size_t n;
};

static void collect_names(const struct elf_image *image, bool dynamic, struct names *names)
{
	struct elf_symbols symbols;
	struct elf_symbol s;
	if (!elf_symbols_begin(&symbols, image, dynamic))
		return;
	while (names->n < CANDIDATES && elf_symbols_next(&symbols, &s)) {
		size_t n = strlen(s.name), ending = strlen(NAME_ENDING);
		if (s.type != STT_FUNC || s.section == SHN_UNDEF || s.binding == STB_LOCAL || n < ending ||
		    n - ending >= sizeof names->items[0].prefix || strcmp(s.name + n - ending, NAME_ENDING) != 0)
			continue;
		memcpy(names->items[names->n].prefix, s.name, n - ending);
		names->items[names->n].prefix[n - ending] = '\0';
		names->items[names->n++].value = s.value;
	}
}

/* A sibling with the same prefix is there, too. Linkers leave out what nobody calls: of Rust programs, most of them. */
static bool has_sibling(const struct elf_image *image, const char *prefix)
{
	static const char *const siblings[] = { "mallctlbymib", "mallocx", "sdallocx" };
	char name[64];
	struct elf_symbol s;
	for (size_t i = 0; i < sizeof siblings / sizeof *siblings; i++) {
		snprintf(name, sizeof name, "%s%s", prefix, siblings[i]);
		if (elf_find_symbol(image, name, &s))
			return true;
	}
	return false;
}

struct searched_object {
	struct { uintptr_t base; char path[256]; } items[256];
	size_t n;
	unsigned long long adds;
};

static int list_object(struct dl_phdr_info *info, size_t size, void *context)
{
	struct searched_object *all = context;
	if (size >= offsetof(struct dl_phdr_info, dlpi_subs))
		all->adds = info->dlpi_adds;
	if (all->n == sizeof all->items / sizeof *all->items)
		return 0;
	bool program = all->n == 0;
	const char *path = program ? "/proc/self/exe" : info->dlpi_name;
	if (!path || *path != '/')
		return 0;
	all->items[all->n].base = info->dlpi_addr;
	snprintf(all->items[all->n++].path, sizeof all->items[0].path, "%s", path);
	return 0;
}

/* The mapped file may be the program itself: its address in the file is an offset from where it was loaded. */
static void search_object(uintptr_t base, const char *path, bool program, struct jemalloc *best)
{
	struct elf_image image;
	if (elf_image_open(&image, path, NULL))
		return;
	struct names names = { .n = 0 };
	collect_names(&image, true, &names);
	if (program)
		collect_names(&image, false, &names);
	for (size_t i = 0; i < names.n; i++)
		if (has_sibling(&image, names.items[i].prefix))
			consider(best, (hg_mallctl_function *)(base + names.items[i].value), names.items[i].prefix,
			         strlen(names.items[i].prefix), path);
	elf_image_close(&image);
}

static void find_in_objects(struct jemalloc *best)
{
	static struct searched_object all;      /* under the lock */
	all.n = 0;
	all.adds = 0;
	dl_iterate_phdr(list_object, &all);
	if (searched && all.adds == searched_adds)
		return;
	searched = true;
	searched_adds = all.adds;
	for (size_t i = 0; i < all.n; i++)
		search_object(all.items[i].base, all.items[i].path, i == 0, best);
}

static void word_advice(void)
{
	snprintf(prof_off_advice, sizeof prof_off_advice,
	         "profiling is off in this process' jemalloc (opt.prof is false) and can only be switched on when it starts: "
	         "set %s=prof:true (or prof:true,prof_active:false to sample only when asked)", found.conf_variable);
}

int jemalloc_find(const struct jemalloc **ret_jemalloc)
{
	pthread_mutex_lock(&lock);
	if (!found.mallctl) {
		struct jemalloc best = { .mallctl = NULL };
		find_linked(&best);
		if (rank(&best) < 3)
			find_in_objects(&best);
		if (best.mallctl) {
			found = best;
			word_advice();
		}
	}
	int rc = found.mallctl ? HG_OK : HG_NO_JEMALLOC;
	pthread_mutex_unlock(&lock);
	if (ret_jemalloc && rc == HG_OK)
		*ret_jemalloc = &found;
	return rc;
}

int jemalloc_use(hg_mallctl_function *function, const char *conf_variable)
{
	struct jemalloc j = { .mallctl = function };
	bool fine = !function || ask(&j);
	if (fine && function)
		snprintf(j.conf_variable, sizeof j.conf_variable, "%s", conf_variable ? conf_variable : "MALLOC_CONF");
	if (!fine)
		return HG_INVALID;
	pthread_mutex_lock(&lock);
	found = j;
	searched = false;
	if (function)
		word_advice();
	pthread_mutex_unlock(&lock);
	return HG_OK;
}

int jemalloc_ready(const struct jemalloc **ret_jemalloc)
{
	const struct jemalloc *j;
	int rc = jemalloc_find(&j);
	if (rc == HG_OK && !j->profiling_built_in)
		rc = HG_NO_PROFILING;
	else if (rc == HG_OK && !j->profiling_enabled)
		rc = HG_PROF_OFF;
	if (rc == HG_OK && ret_jemalloc)
		*ret_jemalloc = j;
	return rc;
}

/* --- profiling ------------------------------------------------------------ */

bool jemalloc_active(const struct jemalloc *j)
{
	return get_bool(j, "prof.active");
}

int jemalloc_set_active(const struct jemalloc *j, bool active)
{
	return j->mallctl("prof.active", NULL, NULL, &active, sizeof active) == 0 ? HG_OK : HG_FAILED;
}

bool jemalloc_set_thread_active(const struct jemalloc *j, bool active)
{
	bool before = true;
	size_t n = sizeof before;
	return j->mallctl("thread.prof.active", &before, &n, &active, sizeof active) != 0 || before;
}

unsigned jemalloc_lg_sample(const struct jemalloc *j)
{
	size_t value = 0, n = sizeof value;
	if (j->mallctl("prof.lg_sample", &value, &n, NULL, 0) != 0 &&
	    j->mallctl("opt.lg_prof_sample", &value, &n, NULL, 0) != 0)
		return 0;
	return (unsigned)value;
}

int jemalloc_reset(const struct jemalloc *j, int lg_sample)
{
	size_t value = lg_sample < 0 ? jemalloc_lg_sample(j) : (size_t)lg_sample;
	return j->mallctl("prof.reset", NULL, NULL, &value, sizeof value) == 0 ? HG_OK : HG_FAILED;
}

int jemalloc_dump(const struct jemalloc *j, const char *path)
{
	int rc = j->mallctl("prof.dump", NULL, NULL, &path, sizeof path);
	return rc == 0 ? HG_OK : rc == ENOENT ? HG_PROF_OFF : HG_IO;
}

const char *jemalloc_advice(int code)
{
	switch (code) {
	case HG_OK:
		return "no error";
	case HG_NO_JEMALLOC:
		return "no jemalloc in this process: link with it, preload it (LD_PRELOAD=libjemalloc.so.2), or start the program with "
		       "\"heapgauge run\"; if it is in a stripped program, name its mallctl with hg_use_mallctl()";
	case HG_NO_PROFILING:
		return "this process' jemalloc was built without profiling: build it with --enable-prof, in Rust with tikv-jemallocator's "
		       "feature \"profiling\"";
	case HG_PROF_OFF:
		return prof_off_advice;
	case HG_INACTIVE:
		return "jemalloc is not sampling (prof.active is false) and has no samples: activate it with POST /heapgauge/activate or "
		       "hg_activate()";
	case HG_BUSY:
		return "another dump is on its way: try again when it is done";
	case HG_NO_MEMORY:
		return "out of memory";
	case HG_IO:
		return "the system refused it: no /proc, no memory for the dump's text, or a full disk; a spool_dir on a disk needs less memory";
	case HG_INVALID:
		return "an argument makes no sense: see heapgauge.h";
	case HG_UNSAFE:
		return "refused: an address that others can reach needs allow_remote and a token_file";
	case HG_RUNNING:
		return "the agent runs already in this process: stop that one first";
	case HG_NO_SYMBOLIZER:
		return "names need the heapgauge program, and there is none beside the library nor in /usr/local/bin or /usr/bin: install it, or name it "
		       "in hg_agent_options.symbolizer";
	case HG_FAILED:
		return "jemalloc refused, or its dump could not be read";
	default:
		return "not a result of heapgauge";
	}
}
