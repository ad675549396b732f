/*
 * jemalloc is known by its functions' names: something ends in "mallctl" and its siblings with the same prefix are
 * beside it. Those that the dynamic linker can see are found by name at once; others by reading symbol
 * tables: of each loaded file the dynamic one, of the program the full one, too, since that is where a jemalloc linked in
 * (Rust's) is.
 */
#include "agent/jemalloc.h"

#include <elf.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>

#include "agent/forks.h"
#include "agent/memory.h"
#include "agent/objects.h"

#define NAME_ENDING "mallctl"
#define CANDIDATES 8

hg_mallctl_function mallctl __attribute__((weak));
hg_mallctl_function je_mallctl __attribute__((weak));
hg_mallctl_function _rjem_mallctl __attribute__((weak));

#define OBJECTS_MAX 2048

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* Those that were ever found or given to us. Whoever was given one may keep it: none is changed or taken away. Under the lock. */
static struct known {
	struct jemalloc jemalloc;
	struct known *next;
} *known;
/* Written under the lock, read without: what it points to was whole before. */
static _Atomic(const struct jemalloc *) found;
/* Under the lock: */
static unsigned long long searched_adds;    /* libraries ever loaded when nothing was found */
static bool searched;

/* One at a time, as jemalloc has it, too; it waits for a dump that is being written. */
static pthread_mutex_t reset_lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_uint resets;

void jemalloc_after_fork(void)
{
	pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;
	lock = reset_lock = fresh;
	atomic_store(&resets, 0);
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

/* Fills in what it says of itself; false when it doesn't answer as jemalloc does: it says no, too. */
static bool ask(struct jemalloc *j)
{
	const char *version = NULL;
	bool flag = false;
	size_t n = sizeof version, flag_n = sizeof flag;
	if (j->mallctl("heapgauge.no.such.name", NULL, NULL, NULL, 0) == 0 ||
	    j->mallctl("config.prof", &flag, &flag_n, NULL, 0) != 0 || flag_n != sizeof flag ||
	    j->mallctl("version", &version, &n, NULL, 0) != 0 || n != sizeof version || !version)
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
	} linked[] = { { "", mallctl }, { "je_", je_mallctl }, { "_rjem_", _rjem_mallctl } };
	for (size_t i = 0; i < sizeof linked / sizeof *linked; i++) {
		char path[256] = "";
		hg_mallctl_function *volatile function = linked[i].function;
		if (!function)
			continue;
		objects_each(name_object, &(struct object_of){ (uintptr_t)function, path, sizeof path });
		consider(best, function, linked[i].prefix, strlen(linked[i].prefix), path);
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

struct listing {
	struct loaded_object *items;    /* OBJECTS_MAX, or none: then they are only counted */
	size_t n;
	unsigned long long adds;
};

static int list_object(struct dl_phdr_info *info, size_t size, void *context)
{
	struct listing *all = context;
	if (size >= offsetof(struct dl_phdr_info, dlpi_subs))
		all->adds = info->dlpi_adds;
	if (!all->items || all->n == OBJECTS_MAX)
		return 1;
	objects_describe(info, all->n == 0, &all->items[all->n]);
	all->n++;
	return 0;
}

static void search_object(const struct loaded_object *o, struct jemalloc *best)
{
	struct elf_image image;
	if (objects_open(o, &image, NULL))
		return;
	struct names names = { .n = 0 };
	collect_names(&image, true, &names);
	if (o->program)
		collect_names(&image, false, &names);
	for (size_t i = 0; i < names.n; i++)
		if (has_sibling(&image, names.items[i].prefix))
			consider(best, (hg_mallctl_function *)(uintptr_t)(o->base + names.items[i].value), names.items[i].prefix,
			         strlen(names.items[i].prefix), o->program ? "/proc/self/exe" : o->path);
	elf_image_close(&image);
}

/* Again only when something was loaded since. */
static void find_in_objects(struct jemalloc *best)
{
	struct listing all = { .items = NULL };
	objects_each(list_object, &all);
	if (searched && all.adds == searched_adds)
		return;
	size_t bytes = OBJECTS_MAX * sizeof *all.items;
	void *map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (map == MAP_FAILED)
		return;
	all.items = map;
	objects_each(list_object, &all);
	searched = true;
	searched_adds = all.adds;
	for (size_t i = 0; i < all.n; i++)
		search_object(&all.items[i], best);
	munmap(map, bytes);
}

static void word_advice(struct jemalloc *j)
{
	snprintf(j->prof_off_advice, sizeof j->prof_off_advice,
	         "profiling is off in this process' jemalloc (opt.prof is false) and can only be switched on when it starts: "
	         "set %s=prof:true (or prof:true,prof_active:false to sample only when asked)", j->conf_variable);
}

static bool is_same(const struct jemalloc *a, const struct jemalloc *b)
{
	return a->mallctl == b->mallctl && strcmp(a->conf_variable, b->conf_variable) == 0 && strcmp(a->path, b->path) == 0;
}

/* Under the lock. One that was known before is taken again. HG_NO_MEMORY. */
static int make_known(const struct jemalloc *j)
{
	struct known *k = known;
	while (k && !is_same(&k->jemalloc, j))
		k = k->next;
	if (!k) {
		k = mmap(NULL, sizeof *k, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (k == MAP_FAILED)
			return HG_NO_MEMORY;
		k->jemalloc = *j;
		word_advice(&k->jemalloc);
		k->next = known;
		known = k;
		forks_watch_jemalloc();
	}
	atomic_store_explicit(&found, &k->jemalloc, memory_order_release);
	return HG_OK;
}

/* Under the lock. */
static int search(void)
{
	struct jemalloc best = { .mallctl = NULL };
	find_linked(&best);
	if (rank(&best) < 3)
		find_in_objects(&best);
	return best.mallctl ? make_known(&best) : HG_NO_JEMALLOC;
}

int jemalloc_find(const struct jemalloc **ret_jemalloc)
{
	const struct jemalloc *j = atomic_load_explicit(&found, memory_order_acquire);
	int rc = HG_OK;
	if (!j) {
		pthread_mutex_lock(&lock);
		j = atomic_load_explicit(&found, memory_order_acquire);
		if (!j)
			rc = search();
		j = atomic_load_explicit(&found, memory_order_acquire);
		pthread_mutex_unlock(&lock);
	}
	if (ret_jemalloc && rc == HG_OK)
		*ret_jemalloc = j;
	return rc;
}

int jemalloc_use(hg_mallctl_function *function, const char *conf_variable)
{
	struct jemalloc j = { .mallctl = function };
	int rc = HG_OK;
	if (function && !ask(&j))
		return HG_INVALID;
	snprintf(j.conf_variable, sizeof j.conf_variable, "%s", conf_variable ? conf_variable : "MALLOC_CONF");
	pthread_mutex_lock(&lock);
	searched = false;
	if (function)
		rc = make_known(&j);
	else
		atomic_store_explicit(&found, NULL, memory_order_release);
	pthread_mutex_unlock(&lock);
	return rc;
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
	pthread_mutex_lock(&reset_lock);
	atomic_fetch_add(&resets, 1);
	int rc = j->mallctl("prof.reset", NULL, NULL, &value, sizeof value);
	atomic_fetch_add(&resets, 1);
	pthread_mutex_unlock(&reset_lock);
	return rc == 0 ? HG_OK : HG_FAILED;
}

unsigned jemalloc_resets(void)
{
	return atomic_load(&resets);
}

int jemalloc_dump(const struct jemalloc *j, const char *path)
{
	int rc = j->mallctl("prof.dump", NULL, NULL, &path, sizeof path);
	return rc == 0 ? HG_OK : rc == ENOENT ? HG_PROF_OFF : HG_IO;
}

const char *jemalloc_advice(int code)
{
	const struct jemalloc *j = atomic_load_explicit(&found, memory_order_acquire);
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
		return j ? j->prof_off_advice : "profiling is off in this process' jemalloc (opt.prof is false): start it with MALLOC_CONF=prof:true";
	case HG_INACTIVE:
		return "jemalloc is not sampling (prof.active is false) and has no samples: activate it with POST /heapgauge/activate or "
		       "hg_activate()";
	case HG_BUSY:
		return "another dump is on its way: try again when it is done";
	case HG_NO_MEMORY:
		return "no memory, or no more threads may be started (ulimit -u)";
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
