/* MD5, for hashmod only: a configuration that shards by it must put each target where Prometheus puts it. Not for secrets. */
#ifndef RECORD_MD5_H
#define RECORD_MD5_H

#include <stddef.h>
#include <stdint.h>

/* The last eight of its sixteen bytes as one big-endian number. */
uint64_t md5_tail(const void *bytes, size_t n);

#endif
