/*
 * Files with targets (file_sd_configs): looked at every two seconds, read again when they have changed, and at the latest after their refresh
 * interval. A file that is gone has no targets; one that is damaged keeps those it had.
 */
#ifndef RECORD_DISCOVERY_H
#define RECORD_DISCOVERY_H

#include "record/targets_private.h"

struct discovery;
struct recorder;

/* For one configuration, which it borrows. Reads nothing yet. */
int discovery_new(const struct config *c, struct discovery **ret, struct error *err);
void discovery_free(struct discovery *d);
/* Looks, if it is time to. True: something has changed. Damage is said to the recorder's log and counted, once for each version of a file. */
bool discovery_look(struct discovery *d, struct recorder *r, int64_t now_ms);

const struct targets_found *discovery_found(const struct discovery *d);
size_t discovery_n(const struct discovery *d);

#endif
