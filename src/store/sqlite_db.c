/*
 * Connections to the file, what they say when something is wrong, and the schema. A store is made beside its place and put there
 * whole, so a file at that place either is a store or is somebody else's, and is then never written to.
 */
#include "store/sqlite_reads.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define BUSY_MS 10000

static const char *const texts[STATEMENTS] = {
#define X(name, text) text,
	SQLITE_STATEMENTS(X)
#undef X
};

/*
 * What is not a number of SQLite's is a number of 32 bits, given once. Hashes are unseeded hash_bytes. Heads are in an index, too: those of
 * many series lie together there, without what they are the heads of.
 */
static const char schema[] =
    "CREATE TABLE strings(id INTEGER PRIMARY KEY, hash INTEGER NOT NULL, text BLOB NOT NULL);"
    "CREATE INDEX strings_hash ON strings(hash);"
    "CREATE TABLE builds(id INTEGER PRIMARY KEY, kind INTEGER NOT NULL, build_id TEXT NOT NULL, path BLOB NOT NULL);"
    "CREATE INDEX builds_id ON builds(build_id, path);"
    "CREATE TABLE frames(id INTEGER PRIMARY KEY, build INTEGER NOT NULL, offset INTEGER NOT NULL, own BLOB, names BLOB,"
    " asked INTEGER NOT NULL);"
    "CREATE INDEX frames_place ON frames(build, offset);"
    "CREATE INDEX frames_unnamed ON frames(build) WHERE own IS NULL AND asked = 0;"
    "CREATE TABLE stacks(id INTEGER PRIMARY KEY, hash INTEGER NOT NULL, frames BLOB NOT NULL);"
    "CREATE INDEX stacks_hash ON stacks(hash);"
    "CREATE TABLE labels(id INTEGER PRIMARY KEY, hash INTEGER NOT NULL, data BLOB NOT NULL, base INTEGER);"
    "CREATE INDEX labels_hash ON labels(hash);"
    "CREATE TABLE rows(id INTEGER PRIMARY KEY AUTOINCREMENT, stack INTEGER NOT NULL, labels INTEGER NOT NULL, nth INTEGER NOT NULL,"
    " base INTEGER, seen INTEGER NOT NULL);"
    "CREATE UNIQUE INDEX rows_what ON rows(stack, labels, nth);"
    "CREATE TABLE kept(id INTEGER PRIMARY KEY, seen INTEGER NOT NULL);"
    "CREATE TABLE series(id INTEGER PRIMARY KEY AUTOINCREMENT, hash INTEGER NOT NULL, labels BLOB NOT NULL, process INTEGER NOT NULL,"
    " started INTEGER NOT NULL, build_id TEXT NOT NULL, first INTEGER, last INTEGER, n INTEGER NOT NULL, metrics INTEGER NOT NULL);"
    "CREATE INDEX series_hash ON series(hash);"
    "CREATE TABLE open (id INTEGER PRIMARY KEY, series INTEGER NOT NULL, t INTEGER NOT NULL, head BLOB NOT NULL, data BLOB NOT NULL);"
    "CREATE INDEX open_heads ON open (series, t, head);"
    "CREATE TABLE chunks(id INTEGER PRIMARY KEY, series INTEGER NOT NULL, tier INTEGER NOT NULL, t0 INTEGER NOT NULL, t1 INTEGER NOT NULL,"
    " n INTEGER NOT NULL, samples INTEGER NOT NULL, head BLOB NOT NULL, data BLOB NOT NULL);"
    "CREATE INDEX chunks_heads ON chunks(series, tier, t0, head);"
    "CREATE INDEX chunks_age ON chunks(tier, t1);"
    "CREATE TABLE gauges(id INTEGER PRIMARY KEY, series INTEGER NOT NULL, tier INTEGER NOT NULL, t INTEGER NOT NULL, t1 INTEGER NOT NULL,"
    " data BLOB NOT NULL);"
    "CREATE UNIQUE INDEX gauges_time ON gauges(series, tier, t);"
    "CREATE INDEX gauges_age ON gauges(tier, t1);";

/* --- errors --- */

int db_failed(struct connection *c, const char *doing, struct error *err)
{
	int code = c->db ? sqlite3_extended_errcode(c->db) : SQLITE_NOMEM;
	int os = c->db ? sqlite3_system_errno(c->db) : 0;
	const char *why = c->db ? sqlite3_errmsg(c->db) : "out of memory";
	switch (code & 0xff) {
	case SQLITE_NOMEM:
		return error_set(err, E_NOMEM, "%s: %s: no memory", c->path, doing);
	case SQLITE_FULL:
		return error_set(err, E_IO, "%s: %s: no space left on the disk: free some, or give the store a smaller limit", c->path, doing);
	case SQLITE_READONLY:
	case SQLITE_PERM:
	case SQLITE_AUTH:
		return error_set(err, E_IO, "%s: %s: it may not be written to (%s)", c->path, doing, os ? strerror(os) : why);
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
		return error_set(err, E_LIMIT, "%s: %s: another process holds it for too long", c->path, doing);
	case SQLITE_CORRUPT:
	case SQLITE_NOTADB:
		return error_set(err, E_FORMAT, "%s: %s: the file is damaged (%s); 'heapgauge store check' says where", c->path, doing, why);
	case SQLITE_TOOBIG:
		return error_set(err, E_LIMIT, "%s: %s: larger than a store can hold", c->path, doing);
	case SQLITE_CANTOPEN:
	case SQLITE_IOERR:
		return error_set(err, E_IO, "%s: %s: %s (%s)", c->path, doing, os ? strerror(os) : "reading or writing failed", why);
	default:
		return error_set(err, E_IO, "%s: %s: %s", c->path, doing, why);
	}
}

sqlite3_stmt *db_statement(struct connection *c, enum sqlite_statement s, struct error *err)
{
	if (!c->statements[s] && sqlite3_prepare_v3(c->db, texts[s], -1, SQLITE_PREPARE_PERSISTENT, &c->statements[s], NULL) != SQLITE_OK) {
		db_failed(c, "asking", err);
		return NULL;
	}
	sqlite3_clear_bindings(c->statements[s]);
	return c->statements[s];
}

int db_step(struct connection *c, sqlite3_stmt *statement, const char *doing, struct error *err)
{
	int rc = sqlite3_step(statement);
	if (rc == SQLITE_ROW)
		return 1;
	int failed = rc == SQLITE_DONE ? 0 : db_failed(c, doing, err);
	sqlite3_reset(statement);
	return failed;
}

int db_run(struct connection *c, sqlite3_stmt *statement, const char *doing, struct error *err)
{
	int rc = statement ? db_step(c, statement, doing, err) : err ? err->code : E_NOMEM;
	if (rc > 0)
		sqlite3_reset(statement);
	return rc > 0 ? 0 : rc;
}

int db_do(struct connection *c, enum sqlite_statement s, const char *doing, struct error *err)
{
	return db_run(c, db_statement(c, s, err), doing, err);
}

int db_number(struct connection *c, enum sqlite_statement which, int64_t *ret, struct error *err)
{
	sqlite3_stmt *q = db_statement(c, which, err);
	int rc = q ? db_step(c, q, "reading", err) : err->code;
	*ret = rc > 0 ? sqlite3_column_int64(q, 0) : 0;
	if (rc > 0)
		sqlite3_reset(q);
	return rc < 0 ? rc : 0;
}

/* --- what a call may cost --- */

size_t spending_limit(const struct store_budget *b)
{
	return b && b->max_bytes ? b->max_bytes : (size_t)256 << 20;
}

#define CLOCK_BYTES 16384

int spend(struct spending *s, size_t bytes, struct error *err)
{
	const struct store_budget *b = s->budget;
	s->bytes += bytes;
	if (s->bytes > spending_limit(b))
		return error_set(err, E_LIMIT, "the answer takes more than the %zu MiB of memory it may: ask for fewer series or a shorter time",
		                 spending_limit(b) >> 20);
	/* A clock costs more than the sample that asks for it. */
	if (bytes && bytes < CLOCK_BYTES && (s->unasked += bytes) < CLOCK_BYTES)
		return 0;
	s->unasked = 0;
	if (b && b->cancelled && atomic_load_explicit(b->cancelled, memory_order_relaxed))
		return error_set(err, E_LIMIT, "cancelled");
	if (b && b->deadline_ns) {
		struct timespec now;
		clock_gettime(CLOCK_MONOTONIC, &now);
		if ((uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec > b->deadline_ns)
			return error_set(err, E_LIMIT, "the answer takes longer than it may: ask for fewer series or a shorter time");
	}
	return 0;
}

/* --- opening --- */

static int run_script(struct connection *c, const char *sql, const char *doing, struct error *err)
{
	return sqlite3_exec(c->db, sql, NULL, NULL, NULL) == SQLITE_OK ? 0 : db_failed(c, doing, err);
}

void db_close(struct connection *c)
{
	for (int i = 0; i < STATEMENTS; i++)
		sqlite3_finalize(c->statements[i]);
	sqlite3_close(c->db);
	*c = (struct connection){ 0 };
}

/* An URI's characters that mean something there. */
static void add_uri_path(struct buf *b, const char *path)
{
	buf_adds(b, "file:");
	for (; *path; path++)
		if (strchr("%?#", *path))
			buf_printf(b, "%%%02x", (unsigned char)*path);
		else
			buf_addc(b, *path);
}

int db_open(struct sqlite_store *s, struct connection *c, bool writer, struct error *err)
{
	struct buf uri;
	*c = (struct connection){ .path = s->path };
	buf_init(&uri, 1 << 16);
	add_uri_path(&uri, s->path);
	if (s->immutable)
		buf_adds(&uri, "?immutable=1");
	int flags = (writer ? SQLITE_OPEN_READWRITE : SQLITE_OPEN_READONLY) | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_URI;
	int rc = uri.failed ? SQLITE_NOMEM : sqlite3_open_v2(uri.data, &c->db, flags, NULL);
	buf_finish(&uri);
	int failed = rc == SQLITE_OK ? 0 : db_failed(c, "opening", err);
	/* What can't be opened to be written is opened to be read. */
	if (!failed && writer && sqlite3_db_readonly(c->db, "main"))
		failed = error_set(err, E_IO, "%s: opening: it may not be written to, or there is no room (%s)", s->path, strerror(errno));
	if (!failed) {
		sqlite3_extended_result_codes(c->db, 1);
		sqlite3_busy_timeout(c->db, BUSY_MS);
		failed = run_script(c, writer ? "PRAGMA synchronous=FULL; PRAGMA cache_size=-16384; PRAGMA temp_store=MEMORY;"
		                                "PRAGMA wal_autocheckpoint=2000; PRAGMA journal_size_limit=67108864"
		                              : "PRAGMA query_only=1; PRAGMA cache_size=-8192; PRAGMA temp_store=MEMORY", "opening", err);
	}
	if (failed)
		db_close(c);
	return failed;
}

/* The schema, in a file of its own that then gets its name. */
static int create(struct sqlite_store *s, struct error *err)
{
	size_t n = strlen(s->path) + 32;
	struct connection c = { .path = s->path };
	struct buf script;
	char *temporary = malloc(n);
	if (!temporary)
		return error_nomem(err, "a name");
	snprintf(temporary, n, "%s.new-%ld", s->path, (long)getpid());
	unlink(temporary);
	buf_init(&script, 1 << 16);
	buf_printf(&script, "PRAGMA page_size=%d; PRAGMA auto_vacuum=INCREMENTAL; PRAGMA synchronous=FULL; BEGIN; %s PRAGMA application_id=%d;"
	           "PRAGMA user_version=%d; COMMIT; PRAGMA journal_mode=WAL", STORE_PAGE_BYTES, schema, STORE_APPLICATION_ID, STORE_VERSION);
	int rc = sqlite3_open_v2(temporary, &c.db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, NULL);
	int failed = script.failed ? error_nomem(err, "the schema") : rc == SQLITE_OK ? 0 : db_failed(&c, "making a store", err);
	if (!failed)
		failed = run_script(&c, script.data, "making a store", err);
	db_close(&c);
	buf_finish(&script);
	if (!failed && rename(temporary, s->path) < 0)
		failed = error_set(err, E_IO, "%s: making a store: %s", s->path, strerror(errno));
	if (failed)
		unlink(temporary);
	free(temporary);
	return failed;
}

static uint32_t big_endian(const uint8_t *b)
{
	return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

/* Looks without SQLite, which might tidy up what isn't ours. *ret_there: there is a file with something in it. */
static int look(const char *path, bool *ret_there, struct error *err)
{
	uint8_t head[100];
	*ret_there = false;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT)
		return 0;
	if (fd < 0)
		return error_set(err, E_IO, "%s: %s", path, strerror(errno));
	ssize_t n = read(fd, head, sizeof head);
	int failed = n < 0 ? error_set(err, E_IO, "%s: %s", path, strerror(errno)) : 0;
	close(fd);
	if (failed)
		return failed;
	*ret_there = true;
	if (n < (ssize_t)sizeof head || memcmp(head, "SQLite format 3", 16) != 0)
		return error_set(err, E_FORMAT, "%s: not a store (%s); it was left as it is", path, n == 0 ? "it is empty" : "something else begins like this");
	if (big_endian(head + 68) != STORE_APPLICATION_ID)
		return error_set(err, E_FORMAT, "%s: an SQLite file, but not a store of heapgauge; it was left as it is", path);
	uint32_t version = big_endian(head + 60);
	if (version > STORE_VERSION)
		return error_set(err, E_FORMAT, "%s: written by a newer heapgauge (store version %u, this one knows up to %d); it was left as it is",
		                 path, version, STORE_VERSION);
	if (version < STORE_VERSION)
		return error_set(err, E_FORMAT, "%s: a store of version %u, from before the first release: record into another file; it was left as it is",
		                 path, version);
	return 0;
}

/* A file beside it says who writes: locks on the store itself would be SQLite's. It stays there, empty. */
static int take_lock(struct sqlite_store *s, struct error *err)
{
	size_t n = strlen(s->path) + 8;
	char *name = malloc(n);
	if (!name)
		return error_nomem(err, "a name");
	snprintf(name, n, "%s-lock", s->path);
	int failed = 0;
	s->lock_fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
	if (s->lock_fd < 0)
		failed = error_set(err, E_IO, "%s: %s", name, strerror(errno));
	else if (flock(s->lock_fd, LOCK_EX | LOCK_NB) < 0)
		failed = errno == EWOULDBLOCK ? error_set(err, E_LIMIT, "%s: another process writes to this store; one at a time can", s->path)
		                              : error_set(err, E_IO, "%s: %s", name, strerror(errno));
	free(name);
	return failed;
}

static bool exists(const char *path, const char *ending)
{
	struct buf name;
	buf_init(&name, 1 << 16);
	buf_printf(&name, "%s%s", path, ending);
	bool there = !name.failed && access(name.data, F_OK) == 0;
	buf_finish(&name);
	return there;
}

/* WAL needs shared memory beside the file; where that can't be and nobody writes, the file is all there is. */
static int open_to_read(struct sqlite_store *s, struct error *err)
{
	struct connection *c = db_begin_read(s, err);
	if (!c && !exists(s->path, "-wal")) {
		s->immutable = true;
		c = db_begin_read(s, err);
	}
	if (!c)
		return err ? err->code : E_IO;
	db_end_read(s, c);
	return 0;
}

static void fill_options(struct store_options *o)
{
	static const int64_t hour = 3600000, defaults[TIERS] = { 48 * hour, 15 * 24 * hour, 90 * 24 * hour, 731 * 24 * hour };
	for (int i = 0; i < TIERS; i++)
		if (o->retention_ms[i] <= 0)
			o->retention_ms[i] = defaults[i];
	if (o->chunk_profiles == 0)
		o->chunk_profiles = 60;
	if (o->chunk_profiles > CHUNK_SLOTS_MAX)
		o->chunk_profiles = CHUNK_SLOTS_MAX;
}

static void sqlite_close_store(struct store *store)
{
	struct sqlite_store *s = (struct sqlite_store *)store;
	for (size_t i = 0; i < s->pool_n; i++) {
		db_close(s->pool[i]);
		free(s->pool[i]);
	}
	db_close(&s->writer);
	translator_free(s->translator);
	sweep_finish(&s->sweep);
	if (s->lock_fd >= 0)
		close(s->lock_fd);
	pthread_mutex_destroy(&s->write_lock);
	pthread_mutex_destroy(&s->pool_lock);
	free(s->series);
	free(s->work);
	free(s->path);
	free(s);
}

static int open_to_write(struct sqlite_store *s, bool there, struct error *err)
{
	int failed = take_lock(s, err);
	/* Made by another process since we looked? */
	if (!failed && !there)
		failed = look(s->path, &there, err);
	if (!failed && !there)
		failed = create(s, err);
	if (!failed)
		failed = db_open(s, &s->writer, true, err);
	if (!failed && !(s->translator = translator_new(&s->sweep)))
		failed = error_nomem(err, "the store");
	return failed;
}

static int sqlite_open_store(const char *where, const struct store_options *o, struct store **ret, struct error *err)
{
	bool there;
	struct sqlite_store *s = calloc(1, sizeof *s);
	if (!s || !(s->path = strdup(where))) {
		free(s);
		return error_nomem(err, "the store");
	}
	s->store.engine = &sqlite_engine;
	if (o)
		s->options = *o;
	fill_options(&s->options);
	s->lock_fd = -1;
	sweep_init(&s->sweep);
	pthread_mutex_init(&s->write_lock, NULL);
	pthread_mutex_init(&s->pool_lock, NULL);
	int failed = look(where, &there, err);
	if (!failed && s->options.read_only)
		failed = there ? open_to_read(s, err) : error_set(err, E_IO, "%s: there is no store", where);
	else if (!failed)
		failed = open_to_write(s, there, err);
	if (failed)
		sqlite_close_store(&s->store);
	else
		*ret = &s->store;
	return failed;
}

/* --- transactions --- */

static struct connection *pool_take(struct sqlite_store *s)
{
	pthread_mutex_lock(&s->pool_lock);
	struct connection *c = s->pool_n ? s->pool[--s->pool_n] : NULL;
	pthread_mutex_unlock(&s->pool_lock);
	return c;
}

static void pool_give(struct sqlite_store *s, struct connection *c)
{
	pthread_mutex_lock(&s->pool_lock);
	bool kept = s->pool_n < POOL_MAX;
	if (kept)
		s->pool[s->pool_n++] = c;
	pthread_mutex_unlock(&s->pool_lock);
	if (!kept) {
		db_close(c);
		free(c);
	}
}

struct connection *db_begin_read(struct sqlite_store *s, struct error *err)
{
	struct connection *c = pool_take(s);
	int failed = 0;
	if (!c) {
		c = calloc(1, sizeof *c);
		failed = c ? db_open(s, c, false, err) : error_nomem(err, "a connection");
	}
	if (!failed)
		failed = db_do(c, S_BEGIN_READ, "reading", err);
	/* The first look at the file is what begins. */
	if (!failed)
		failed = run_script(c, "SELECT 1 FROM series LIMIT 1", "reading", err);
	if (!failed)
		return c;
	if (c)
		db_close(c);
	free(c);
	return NULL;
}

void db_end_read(struct sqlite_store *s, struct connection *c)
{
	if (sqlite3_get_autocommit(c->db) || db_do(c, S_ROLLBACK, "reading", NULL) == 0) {
		pool_give(s, c);
		return;
	}
	db_close(c);
	free(c);
}

int db_begin_write(struct sqlite_store *s, struct error *err)
{
	if (s->options.read_only)
		return error_set(err, E_USAGE, "%s: was opened to be read", s->path);
	pthread_mutex_lock(&s->write_lock);
	int failed = db_do(&s->writer, S_BEGIN_WRITE, "writing", err);
	if (failed)
		pthread_mutex_unlock(&s->write_lock);
	return failed;
}

int db_finish_write(struct sqlite_store *s, int failed, struct error *err)
{
	if (!failed)
		failed = db_do(&s->writer, S_COMMIT, "writing", err);
	if (failed) {
		if (!sqlite3_get_autocommit(s->writer.db))
			db_do(&s->writer, S_ROLLBACK, "taking back", NULL);
		translator_forget(s->translator);
	}
	return failed;
}

int db_end_write(struct sqlite_store *s, int failed, struct error *err)
{
	failed = db_finish_write(s, failed, err);
	pthread_mutex_unlock(&s->write_lock);
	return failed;
}

const struct store_engine sqlite_engine = {
	.scheme = "sqlite",
	.open = sqlite_open_store,
	.close = sqlite_close_store,
	.add_series = sqlite_add_series,
	.find_series = sqlite_find_series,
	.append = sqlite_append,
	.append_gauges = sqlite_append_gauges,
	.maintain = sqlite_maintain,
	.totals = sqlite_totals,
	.read_gauges = sqlite_read_gauges,
	.moments = sqlite_moments,
	.read = sqlite_read,
	.read_moments = sqlite_read_moments,
	.merge = sqlite_merge,
	.builds = sqlite_builds,
	.unnamed = sqlite_unnamed,
	.put_names = sqlite_put_names,
	.ask_again = sqlite_ask_again,
	.info = sqlite_info,
	.check = sqlite_check,
	.compact = sqlite_compact,
};
