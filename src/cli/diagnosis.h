/*
 * What doctor finds out: questions with answers, and what to do about the ones that stand in the way.
 */
#ifndef CLI_DIAGNOSIS_H
#define CLI_DIAGNOSIS_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/error.h"

enum answer { ANSWER_NO, ANSWER_YES, ANSWER_UNKNOWN };

struct finding {
	const char *name;           /* "allocator", "enabled", ... */
	enum answer answer;
	char text[640];
};

struct remedy {
	bool needed;                /* without it there is no profile; otherwise it only gets better */
	char why[480];              /* a sentence without its full stop */
	char command[640];          /* a line to type or to put somewhere; "" : the sentence says it all */
};

#define FINDINGS_MAX 20
#define REMEDIES_MAX 12

struct diagnosis {
	char name[64];
	char program[PATH_MAX];
	pid_t pid;                  /* 0: a file was asked about */
	char how[PATH_MAX + 64];    /* the command that gives a profile, when it can be had */
	struct finding findings[FINDINGS_MAX];
	size_t n_findings;
	struct remedy remedies[REMEDIES_MAX];
	size_t n_remedies;
};

void diagnosis_find(struct diagnosis *d, const char *name, enum answer answer, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* command may be NULL. The same command is only kept once. */
void diagnosis_advise(struct diagnosis *d, bool needed, const char *command, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* The findings in the order of a reader's questions. */
void diagnosis_sort(struct diagnosis *d);
/* Nothing that is needed is missing. */
bool diagnosis_is_fine(const struct diagnosis *d);

struct diagnosis_options {
	bool attach;                /* a process without an endpoint may be stopped for a moment */
	const char *token_file;
};

/* A process (diagnose_process.c) or a file (diagnose_file.c). Errors are only what keeps from looking at all. */
int diagnose_process(pid_t pid, const struct diagnosis_options *o, struct diagnosis *ret, struct error *err);
int diagnose_file(const char *name, struct diagnosis *ret, struct error *err);

/* --- what both ask (diagnosis.c) --- */

/* Symbols, debug information and build id of the file at path. */
void diagnose_names(struct diagnosis *d, const char *path);
/* What the jemalloc in the file at path walks stacks with. */
void diagnose_unwinder(struct diagnosis *d, const char *path);
/* jemalloc was built without profiling: variable is the one it reads, path where it is. */
void advise_build(struct diagnosis *d, const char *variable, const char *path);
/* How to start it with profiling on. */
void advise_start(struct diagnosis *d, const char *variable);

#endif
