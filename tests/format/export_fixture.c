/*
 * Makes profiles that tests of pictures and exports look at, and writes one of them:
 *
 *   export_fixture PROFILE FORMAT [BY [METRIC]] > file
 *
 * PROFILE: server, diff, same (a diff without change), exact (rate 1), folded (no binaries), hostile
 * (names that attack), deep (one stack of 65,536 frames and 2,000 recursions), wide (20,000 callees
 * of one function), long (a name of a million characters), empty, or a number of stacks (20-60 frames, 20,000 functions);
 * series has the two sides of diff as snapshots. FORMAT: that of a writer, or block, the web page's data; block:N in at most N bytes.
 * The processor time the writer took goes to stderr.
 */
#include "format/format.h"
#include "profile/operations.h"
#include "report/page.h"
#include "report/report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define RATE (512 * 1024)

static uint64_t random_state = 42;

static uint64_t random_below(uint64_t n)
{
	random_state = hash_u64(random_state + 0x9e3779b97f4a7c15u);
	return random_state % n;
}

/* --- building --- */

struct fixture {
	struct profile *p;
	uint32_t mapping[8];
	uint32_t n_mappings;
	uint32_t source;
};

static void add_mapping(struct fixture *f, const char *path)
{
	uint64_t start = 0x555500000000 + f->n_mappings * 0x10000000ull;
	struct mapping m = { .start = start, .limit = start + 0x8000000, .executable = true,
		             .file = profile_cstring(f->p, path) };
	f->mapping[f->n_mappings++] = profile_add_mapping(f->p, &m);
}

static void begin(struct fixture *f, const char *name, double rate)
{
	*f = (struct fixture){ .p = profile_new(0) };
	profile_add_heap_types(f->p, true);
	struct source s = { .name = profile_cstring(f->p, name), .rate = rate, .header_objects = -1,
		            .header_bytes = -1 };
	f->source = profile_add_source(f->p, &s);
}

static uint32_t add_frame(struct fixture *f, uint32_t which, const char *name, const char *file, int64_t line)
{
	struct function fn = { .name = profile_cstring(f->p, name), .file = profile_cstring(f->p, file) };
	struct line l = { .function = profile_intern_function(f->p, &fn), .line = line };
	uint32_t mapping = which < f->n_mappings && which < 8 ? f->mapping[which] : PROFILE_NONE;
	uint64_t address = mapping == PROFILE_NONE ? 0 : f->p->mappings[mapping].start;
	return profile_add_location(f->p, mapping, address + 16 * f->p->n_locations + 1, false, &l, 1);
}

/* root_first: as one writes a stack down; the model wants the leaf first. */
static void add_sample(struct fixture *f, const uint32_t *root_first, size_t n, const char *thread,
                       int64_t objects, uint64_t block_size)
{
	uint32_t *leaf_first = malloc((n + 1) * sizeof(*leaf_first));
	for (size_t i = 0; i < n; i++)
		leaf_first[i] = root_first[n - 1 - i];
	uint32_t stack = profile_intern_stack(f->p, leaf_first, n);
	uint32_t labels = profile_intern_heap_labels(f->p, thread ? profile_cstring(f->p, thread) : 0, block_size);
	int64_t bytes = objects * (int64_t)block_size;
	profile_add_sample(f->p, stack, labels, f->source, (int64_t[]){ objects * 3, bytes * 3, objects, bytes });
	free(leaf_first);
}

/* --- a server that looks like one --- */

struct function_name {
	const char *name, *file;
	uint32_t mapping;
};

static const struct function_name names[] = {
	{ "_start", "", 0 }, { "__libc_start_main", "libc-start.c", 1 }, { "main", "src/main.cc", 0 },
	{ "app::Server::run()", "src/server.cc", 0 },
	{ "app::Server::accept_loop(std::chrono::duration<long, std::ratio<1l, 1000l> >)", "src/server.cc", 0 },
	{ "std::thread::_State_impl<std::thread::_Invoker<std::tuple<app::Worker> > >::_M_run()", "/usr/include/c++/12/thread", 0 },
	{ "app::Worker::handle(app::Request const&)", "src/worker.cc", 0 },
	{ "app::cache::(anonymous namespace)::insert_or_evict(std::string const&, app::Blob&&)", "src/cache.cc", 0 },
	{ "std::unordered_map<std::string, app::Blob, std::hash<std::string>, std::equal_to<std::string>, std::allocator<std::pair<std::string const, app::Blob> > >::operator[](std::string const&)", "/usr/include/c++/12/bits/unordered_map.h", 0 },
	{ "SSL_accept", "ssl/ssl_lib.c", 2 }, { "tls_process_client_hello", "ssl/statem.c", 2 },
	{ "CRYPTO_zalloc", "crypto/mem.c", 2 }, { "<alloc::vec::Vec<u8> as core::clone::Clone>::clone", "library/alloc/src/vec/mod.rs", 3 },
	{ "serde_json::de::from_slice::<app::Config>", "serde_json/src/de.rs", 3 }, { "sqlite3_prepare_v2", "sqlite3.c", 4 },
	{ "sqlite3Parser", "sqlite3.c", 4 }, { "sqlite3DbMallocRawNN", "sqlite3.c", 4 }, { "strdup", "string/strdup.c", 1 },
	{ "deflateInit2_", "deflate.c", 5 }, { "app::metrics::Registry::observe(double)", "src/metrics.cc", 0 },
	{ "\xe8\xa8\x98\xe6\x86\xb6\xe4\xbd\x93::\xe7\xa2\xba\xe4\xbf\x9d(\xe3\x83\x90\xe3\x82\xa4\xe3\x83\x88)", "src/\xe6\x97\xa5\xe6\x9c\xac.cc", 0 },
};

#define NAMES (sizeof(names) / sizeof(names[0]))

static void add_server_mappings(struct fixture *f)
{
	add_mapping(f, "/usr/local/bin/app-server");
	add_mapping(f, "/usr/lib/x86_64-linux-gnu/libc.so.6");
	add_mapping(f, "/usr/lib/x86_64-linux-gnu/libssl.so.3");
	add_mapping(f, "/opt/app/lib/libconfig.so");
	add_mapping(f, "/usr/lib/x86_64-linux-gnu/libsqlite3.so.0");
	add_mapping(f, "/usr/lib/x86_64-linux-gnu/libz.so.1");
}

/* Stacks below handle(): some of its callees, each with its own bits of memory. */
static void make_server(struct fixture *f, const char *source, int growth)
{
	uint32_t frame[NAMES];
	begin(f, source, RATE);
	add_server_mappings(f);
	random_state = 42;
	for (size_t i = 0; i < NAMES; i++)
		frame[i] = add_frame(f, names[i].mapping, names[i].name, names[i].file, (int64_t)(10 + i * 7));
	for (unsigned k = 0; k < 400; k++) {
		uint32_t stack[64], n = 0;
		for (uint32_t i = 0; i < 4; i++)
			stack[n++] = frame[i];
		if (k % 3) {
			stack[n++] = frame[4];
			stack[n++] = frame[5];
			stack[n++] = frame[6];
		}
		uint64_t more = 1 + random_below(9);
		for (uint64_t i = 0; i < more; i++)
			stack[n++] = frame[6 + random_below(NAMES - 6)];
		char thread[32];
		snprintf(thread, sizeof(thread), "t%u worker", k % 7);
		int64_t objects = (int64_t)(random_below(40) * random_below(200) + 1);
		uint64_t size = 16u << random_below(9);
		/* growth: 0 the base; 1: some stacks grow, some shrink, come and go. */
		if (growth && k % 11 == 3)
			objects = 0;
		if (!growth && k % 13 == 5)
			objects = 0;
		if (growth && k % 4 == 0)
			objects = objects * (int64_t)(1 + random_below(6));
		if (growth && k % 7 == 1)
			objects /= 3;
		add_sample(f, stack, n, thread, objects, size);
	}
}

/* --- the others --- */

static void make_hostile(struct fixture *f)
{
	static const char *const attacks[] = {
		"</script><script>window.attacked=1</script>", "]]><script>window.attacked=1</script><![CDATA[",
		"\"/><rect onload=\"window.attacked=1\"/>", "&lt;&amp;&#x3c;", "a;b\nc\rd\te", "\x1b[31mred\x07\x01",
		"rtl\xe2\x80\xae\x67\x76\x73\xe2\x81\xa6x", "bad\xff\xfe\xc0\xafutf8", "noncharacter\xef\xbf\xbe\xef\xbf\xbf",
		"';window.attacked=1;//", "<!--", "\\\"]};", "digraph{a->b};\\n\\N\\G", "(1) compressed", "=cmd|'/c calc'!A1",
		"javascript:window.attacked=1", "\xf0\x9f\x94\xa5\xf0\x9f\x94\xa5", "", " ", "+1", "fn=(1) x", "__proto__", "constructor",
	};
	begin(f, "hostile\n<b>.heap", RATE);
	add_mapping(f, "/tmp/<script>window.attacked=1</script>\"'&;\n.so");
	add_mapping(f, "/tmp/]]>.so");
	size_t n = sizeof(attacks) / sizeof(attacks[0]);
	uint32_t frame[64];
	for (size_t i = 0; i < n; i++)
		frame[i] = add_frame(f, (uint32_t)(i % 3), attacks[i], attacks[(i + 1) % n], (int64_t)i);
	for (size_t i = 0; i < n; i++)
		add_sample(f, (uint32_t[]){ frame[i], frame[(i + 7) % n] }, 2, attacks[(i + 2) % n], 5000, 1024);
	add_sample(f, NULL, 0, NULL, 1000, 512);
}

static void make_deep(struct fixture *f)
{
	static uint32_t stack[PROFILE_MAX_DEPTH];
	begin(f, "deep.heap", RATE);
	add_mapping(f, "/usr/bin/deep");
	uint32_t main_frame = add_frame(f, 0, "main", "deep.c", 1);
	for (size_t i = 1; i < 200; i++) {
		char name[32];
		snprintf(name, sizeof(name), "step_%zu", i);
		stack[i] = add_frame(f, 0, name, "deep.c", (int64_t)i);
	}
	for (size_t i = 200; i < PROFILE_MAX_DEPTH; i++)
		stack[i] = stack[1 + i % 199];
	stack[0] = main_frame;
	add_sample(f, stack, PROFILE_MAX_DEPTH, NULL, 100000, 64);
	for (size_t i = 1; i < 2000; i++)
		stack[i] = stack[7];
	add_sample(f, stack, 2000, NULL, 50000, 64);
}

static void make_wide(struct fixture *f)
{
	begin(f, "wide.heap", RATE);
	add_mapping(f, "/usr/bin/wide");
	uint32_t main_frame = add_frame(f, 0, "main", "wide.c", 1);
	for (size_t i = 0; i < 20000; i++) {
		char name[40];
		snprintf(name, sizeof(name), "callee_%05zu", i);
		uint32_t callee = add_frame(f, 0, name, "wide.c", (int64_t)i);
		add_sample(f, (uint32_t[]){ main_frame, callee }, 2, NULL, (int64_t)(100 + i % 900), 64);
	}
}

/* Every function calls a few of the others, the first of them most often. */
static void make_many(struct fixture *f, uint64_t stacks, const char *source, bool now)
{
	enum { FUNCTIONS = 20000 };
	uint32_t *frame = malloc(FUNCTIONS * sizeof(*frame)), stack[64];
	begin(f, source, RATE);
	add_server_mappings(f);
	for (uint32_t i = 0; i < FUNCTIONS; i++) {
		char name[200];
		snprintf(name, sizeof(name), "app::module_%u::Class%u<std::vector<int, std::allocator<int> >, %u>::method_%u(std::string const&)",
		         i % 97, i % 1013, i % 7, i);
		frame[i] = add_frame(f, i % 6, name, "src/generated/module.cc", i);
	}
	random_state = 7;
	for (uint64_t k = 0; k < stacks; k++) {
		size_t n = 20 + random_below(41);
		uint64_t at = 0;
		for (size_t i = 0; i < n; i++) {
			stack[i] = frame[at];
			uint64_t way = random_below(100), choice = way < 60 ? 0 : way < 85 ? 1 : random_below(8);
			at = hash_u64(at * 8 + choice + i * 1000003) % FUNCTIONS;
		}
		int64_t objects = (int64_t)(1 + random_below(1000));
		if (now && k % 5 == 0)
			objects *= 2;
		add_sample(f, stack, n, NULL, objects, 16u << random_below(8));
	}
	free(frame);
}

static void make_folded(struct fixture *f)
{
	begin(f, "stacks.folded", 0);
	uint32_t frame[NAMES];
	for (size_t i = 0; i < NAMES; i++)
		frame[i] = add_frame(f, 9, names[i].name, "", 0);
	for (unsigned k = 0; k < 100; k++)
		add_sample(f, (uint32_t[]){ frame[2], frame[3 + k % 5], frame[6 + random_below(NAMES - 6)] }, 3, NULL,
		           1 + (int64_t)random_below(500), 100);
}

static void make_exact(struct fixture *f)
{
	begin(f, "exact.heap", 1);
	add_mapping(f, "/usr/bin/exact");
	uint32_t a = add_frame(f, 0, "main", "a.c", 3), b = add_frame(f, 0, "f", "a.c", 10),
	         c = add_frame(f, 0, "g", "b.c", 20), again = add_frame(f, 0, "f", "a.c", 12);
	add_sample(f, (uint32_t[]){ a, b, c }, 3, "t1", 10, 100);
	add_sample(f, (uint32_t[]){ a, b }, 2, "t1", 2, 100);
	add_sample(f, (uint32_t[]){ a, again, b, again }, 4, "t2 \"x\"", 1, 50);
	add_sample(f, (uint32_t[]){ a, c }, 2, NULL, 3, 1000);
	add_sample(f, (uint32_t[]){ a, b, c }, 3, "t2 \"x\"", 7, 100);
	add_sample(f, NULL, 0, NULL, 4, 8);
}

static void make_long(struct fixture *f)
{
	static char name[1000001];
	memset(name, 'n', sizeof(name) - 1);
	begin(f, "long.heap", RATE);
	add_mapping(f, "/usr/bin/long");
	uint32_t a = add_frame(f, 0, "main", "a.c", 3), b = add_frame(f, 0, name, "a.c", 10);
	add_sample(f, (uint32_t[]){ a, b }, 2, NULL, 1000, 1000);
	add_sample(f, (uint32_t[]){ a, b, a }, 3, NULL, 10, 1000);
	add_sample(f, (uint32_t[]){ a }, 1, NULL, 20, 1000);
}

static struct profile *both(struct fixture *base, struct fixture *now, bool series)
{
	struct profile *d = NULL;
	struct error err = { 0 };
	const struct profile *inputs[2] = { base->p, now->p };
	if (profile_finish(base->p, &err) || profile_finish(now->p, &err) ||
	    (series ? profile_series(inputs, 2, &d, &err) : profile_diff(base->p, now->p, &d, &err))) {
		fprintf(stderr, "two profiles: %s\n", err.text);
		exit(1);
	}
	profile_free(base->p);
	profile_free(now->p);
	return d;
}

static struct profile *make(const char *kind)
{
	struct fixture f = { 0 }, now = { 0 };
	if (strcmp(kind, "server") == 0) {
		make_server(&f, "server.1.heap", 1);
	} else if (strcmp(kind, "diff") == 0 || strcmp(kind, "same") == 0 || strcmp(kind, "series") == 0) {
		make_server(&f, "server.1.heap", 0);
		make_server(&now, "server.2.heap", strcmp(kind, "same") != 0);
		return both(&f, &now, strcmp(kind, "series") == 0);
	} else if (strncmp(kind, "diff:", 5) == 0) {
		make_many(&f, strtoull(kind + 5, NULL, 10), "big.1.heap", false);
		make_many(&now, strtoull(kind + 5, NULL, 10), "big.2.heap", true);
		return both(&f, &now, false);
	} else if (strcmp(kind, "hostile") == 0) {
		make_hostile(&f);
	} else if (strcmp(kind, "deep") == 0) {
		make_deep(&f);
	} else if (strcmp(kind, "wide") == 0) {
		make_wide(&f);
	} else if (strcmp(kind, "folded") == 0) {
		make_folded(&f);
	} else if (strcmp(kind, "long") == 0) {
		make_long(&f);
	} else if (strcmp(kind, "exact") == 0) {
		make_exact(&f);
	} else if (strcmp(kind, "empty") == 0) {
		begin(&f, "empty.heap", RATE);
	} else {
		make_many(&f, strtoull(kind, NULL, 10), "big.heap", false);
	}
	struct error err = { 0 };
	if (profile_finish(f.p, &err)) {
		fprintf(stderr, "profile: %s\n", err.text);
		exit(1);
	}
	return f.p;
}

/* --- writing --- */

static int write_format(struct view *v, const char *format, struct buf *out, struct error *err)
{
	struct flame_options o = { 0 };
	if (strcmp(format, "inverted") == 0)
		o.inverted = true;
	if (o.inverted || strcmp(format, "flame") == 0)
		return report_flame_svg(v, &o, out, err);
	if (strncmp(format, "block", 5) == 0) {
		static const char *const words[] = { "heapgauge", "\"x.heap\"" };
		struct page_options page = { .title = "<title>", .view = { .column = -1 }, .base = PROFILE_NONE,
			                     .command = words, .n_command = 2 };
		page.limit_bytes = format[5] ? strtoull(format + 6, NULL, 10) : 0;
		return page_block(v->profile, &page, out, NULL, err);
	}
	if (strcmp(format, "dot") == 0)
		return report_dot(v, out, err);
	if (strcmp(format, "folded") == 0)
		return folded_write(v, out, err);
	if (strcmp(format, "speedscope") == 0)
		return speedscope_write(v, "fixture \"1\"", out, err);
	if (strcmp(format, "callgrind") == 0)
		return callgrind_write(v, "fixture --x\ny", out, err);
	if (strcmp(format, "csv") == 0)
		return csv_write(v, out, err);
	if (strcmp(format, "json") == 0)
		return json_write(v, out, err);
	return error_set(err, E_USAGE, "no format %s", format);
}

static double seconds(void)
{
	struct timespec t;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

int main(int argc, char **argv)
{
	if (argc < 3) {
		fprintf(stderr, "usage: export_fixture PROFILE FORMAT [function|line|file|binary|thread|address [METRIC]]\n");
		return 2;
	}
	static const char *const by[] = { "function", "line", "file", "binary", "thread", "address" };
	struct view_options o = { .column = -1 };
	for (int i = 0; argc > 3 && i < 6; i++)
		if (strcmp(argv[3], by[i]) == 0)
			o.by = (enum granularity)i;
	struct profile *p = make(argv[1]);
	if (argc > 4)
		o.column = profile_type_column(p, argv[4]);
	struct view *v = NULL;
	struct error err = { 0 };
	struct buf out;
	buf_init(&out, BUF_MAX_DEFAULT);
	int code = view_new(p, &o, &v, &err);
	double start = seconds();
	if (!code)
		code = write_format(v, argv[2], &out, &err);
	if (code)
		fprintf(stderr, "%s\n", err.text);
	else
		fprintf(stderr, "%s %s: %zu bytes, %.3f s\n", argv[1], argv[2], out.len, seconds() - start);
	if (!code && out.len && fwrite(out.data, 1, out.len, stdout) != out.len)
		code = 1;
	buf_finish(&out);
	view_free(v);
	profile_free(p);
	return code ? 1 : 0;
}
