/* What the files of the configuration share. */
#ifndef RECORD_CONFIG_PRIVATE_H
#define RECORD_CONFIG_PRIVATE_H

#include "record/doc.h"

#define CONFIG_UNSET UINT64_MAX         /* a limit that isn't in the file */

/* doc_read: one item of scrape_configs, into struct config. Defaults are left to the caller. */
int config_add_job(struct doc *t, const yaml_node_t *node, void *to);

/* The list of a discovery file. */
int config_groups_of(struct doc *t, const yaml_node_t *root, struct config_groups *ret);

#endif
