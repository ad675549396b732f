/* How a target comes to be. */
#ifndef RECORD_TARGET_MAKE_H
#define RECORD_TARGET_MAKE_H

#include "record/targets_private.h"

/*
 * Of an address in a group with labels of its own. *ret NULL and 0: relabelling drops it. E_USAGE: what came of it can't be
 * scraped. The target has one reference.
 */
int target_make(const struct config *c, const struct config_job *job, const char *address, const struct config_labels *own,
                struct target **ret, struct error *err);

/* Equal for targets whose series would be the same. */
uint64_t target_labels_hash(const struct target *x);

#endif
