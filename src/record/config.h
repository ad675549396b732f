/*
 * The recorder's configuration: Prometheus' keys with Prometheus' meaning (scrape_configs, file_sd_configs, relabel_configs, ...), and the
 * store, symbols and web sections of our own. Read whole, or one error with line and column: unknown keys, wrong types and values that make
 * no sense are errors, so that no mistake goes unseen. docs/operating.md lists the keys.
 */
#ifndef RECORD_CONFIG_H
#define RECORD_CONFIG_H

#include "base/buf.h"
#include "record/arena.h"
#include "record/relabel.h"
#include "store/store.h"

struct config_texts {
	const char **items;
	size_t n;
};

struct config_labels {
	struct store_label *items;
	size_t n;
};

/* A group of static_configs, or of a discovery file. */
struct config_group {
	struct config_texts targets;        /* "host:port", "http://host:port/path?query", "unix:/sock", "pid:7" */
	struct config_labels labels;
};

struct config_groups {
	struct config_group *items;
	size_t n;
};

struct config_files {
	struct config_texts patterns;       /* paths, in their last part with '*'; relative ones begin at the configuration's folder */
	int64_t refresh_ms;
};

/* How a request shows who it is. Files are read at each scrape: secrets change. NULL: none. */
struct config_access {
	const char *username, *password, *password_file;
	const char *authorization_type;     /* "Bearer" */
	const char *credentials, *credentials_file;
	const char *ca_file, *cert_file, *key_file, *server_name;
	bool insecure_skip_verify;
};

struct config_job {
	const char *name;
	int64_t interval_ms, timeout_ms;
	const char *scheme;                 /* "http", "https" */
	const char *profile_path, *metrics_path;    /* metrics_path "": not asked for */
	struct config_labels params;        /* of the query; a name may come again */
	struct config_groups groups;
	struct config_files *files;
	size_t n_files;
	struct relabel_rule *relabel;
	size_t n_relabel;
	struct config_access access;
	uint64_t body_limit;                /* bytes, also unpacked */
	uint64_t sample_limit, target_limit;    /* 0: none */
};

struct config {
	struct arena arena;                 /* of everything in here */
	const char *folder;                 /* where paths begin */
	struct config_labels external_labels;   /* of every series that hasn't its own of that name */
	struct {
		int64_t interval_ms, timeout_ms;
		uint64_t body_limit, sample_limit, target_limit;
	} defaults;                         /* of "global", already in the jobs */
	struct config_job *jobs;
	size_t n_jobs;
	struct {
		const char *path;
		struct store_options options;
	} store;
	struct {
		struct config_texts debug_dirs; /* more folders with debug files */
		const char *upload_dir;         /* NULL: beside the store */
		uint64_t upload_limit;          /* of all uploads together; 0: the default */
		struct config_texts debuginfod; /* URLs */
		bool has_debuginfod;            /* false: as DEBUGINFOD_URLS says */
	} symbols;
	struct {
		const char *listen;             /* as of http_server_new */
		const char *token, *token_file; /* NULL: none */
		const char *external_url;       /* how others reach it, for links and commands; NULL: as it listens */
		bool allow_remote;
		struct config_texts hosts;      /* more names it may be asked by */
	} web;
};

/* E_FORMAT: "FILE:LINE:COLUMN: what is wrong", and what was meant where that can be told. */
int config_read(const char *path, struct config **ret, struct error *err);
/* The same of a text; name is what errors call it, and paths begin at folder. */
int config_parse(const char *name, const char *folder, const char *text, size_t n, struct config **ret, struct error *err);
/* One job of these addresses, as on the command line; everything else as by default. E_USAGE: not an address. */
int config_of_addresses(char *const *addresses, size_t n, int64_t interval_ms, struct config **ret, struct error *err);
void config_free(struct config *c);

/* Targets and labels of a discovery file, .json or .yml, into the arena. */
int config_read_groups(const char *path, struct arena *a, struct config_groups *ret, struct error *err);

/* "15s", "1h30m", "2d", "500ms", "1w", "1y"; largest unit first, each once. False: it is none. */
bool config_duration(const char *text, int64_t *ret_ms);

/* What an address says besides where it is. */
struct config_address {
	const char *scheme;                 /* "http", "https"; NULL: as the job has it */
	const char *address;                /* "host:port", "unix:/sock", "pid:7" */
	const char *path, *query;           /* NULL: as the job has them; query "": none */
};
/* Parts are copied into the arena. E_USAGE says what is wrong with it. */
int config_address(const char *text, struct arena *a, struct config_address *ret, struct error *err);

#endif
