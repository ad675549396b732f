/*
 * A YAML (or JSON) document as libyaml gives it, read by tables: a mapping's keys are listed with what reads each. Every error is one line
 * with file, line and column. Texts and arrays live in the reader's arena.
 */
#ifndef RECORD_DOC_H
#define RECORD_DOC_H

#include <yaml.h>

#include "record/config.h"

struct doc {
	const char *name;                   /* of the file, for errors */
	const char *folder;                 /* where its paths begin */
	struct arena *arena;
	struct error *err;
	yaml_document_t document;
};

/* What reads a value into to: 0, or doc_fail. */
typedef int doc_read(struct doc *t, const yaml_node_t *node, void *to);

struct doc_key {
	const char *name;
	doc_read *read;
	size_t at;                          /* of what it reads into, in the mapping's struct */
};

/* Loads the only document of the text; *ret_root NULL: there is nothing in it. doc_finish afterwards, unless it failed. */
int doc_init(struct doc *t, const char *text, size_t n, yaml_node_t **ret_root);
void doc_finish(struct doc *t);

/* Words the error with the node's place; returns E_FORMAT. */
int doc_fail(struct doc *t, const yaml_node_t *node, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* An error that is already worded gets the node's place. */
int doc_place(struct doc *t, const yaml_node_t *node, int failed);

/* Each key at most once, and only those n; what is the section's name for errors. Nothing at all is fine. */
int doc_mapping(struct doc *t, const yaml_node_t *node, const char *what, const struct doc_key *keys, size_t n, void *to);
/* Calls read for each item with the same to. Nothing at all is an empty list. */
int doc_list(struct doc *t, const yaml_node_t *node, const char *what, doc_read *read, void *to);
/* The value of a key, or NULL. */
const yaml_node_t *doc_find(struct doc *t, const yaml_node_t *mapping, const char *key);

/* Into const char *, bool, uint64_t, uint64_t, int64_t, struct config_texts, struct config_labels. */
int doc_text(struct doc *t, const yaml_node_t *node, void *to);
int doc_path(struct doc *t, const yaml_node_t *node, void *to);          /* relative ones begin at the folder */
int doc_flag(struct doc *t, const yaml_node_t *node, void *to);
int doc_count(struct doc *t, const yaml_node_t *node, void *to);
int doc_bytes(struct doc *t, const yaml_node_t *node, void *to);
int doc_duration(struct doc *t, const yaml_node_t *node, void *to);
int doc_texts(struct doc *t, const yaml_node_t *node, void *to);
int doc_paths(struct doc *t, const yaml_node_t *node, void *to);
int doc_labels(struct doc *t, const yaml_node_t *node, void *to);        /* names to values */
int doc_params(struct doc *t, const yaml_node_t *node, void *to);        /* names to lists of values */

/* Appends to a config_texts or config_labels. False: no memory. */
bool texts_add(struct arena *a, struct config_texts *t, const char *text);
bool config_labels_add(struct arena *a, struct config_labels *l, const char *name, const char *value);

#endif
