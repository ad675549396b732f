/*
 * Profiles for tests: generated ones that use everything the model has, and a description of all
 * that a profile says, for comparing two of them.
 */
#ifndef TESTS_FORMAT_PPROF_SAMPLES_H
#define TESTS_FORMAT_PPROF_SAMPLES_H

#include "format/format.h"

/* Deterministic by seed. Needs none of the changes that pprof_write makes for viewers, so it survives as it is. */
struct profile *sample_profile(uint64_t seed);

/* Everything without indexes, labels of a set sorted; two profiles are the same when this is. */
void sample_describe(const struct profile *p, struct buf *out);

#endif
