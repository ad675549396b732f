/*
 * Which series: selectors as Prometheus writes them, {job="x",instance=~"a.*"}, read into the store's matchers.
 */
#ifndef RECORD_QUERY_SELECTOR_H
#define RECORD_QUERY_SELECTOR_H

#include "base/error.h"
#include "store/store.h"

#define SELECTOR_MATCHERS_MAX 32
#define SELECTOR_BYTES_MAX 4096         /* of a whole one; what is longer doesn't get here */

struct selector {
	struct store_matcher matchers[SELECTOR_MATCHERS_MAX];
	size_t n;
	char texts[4 * SELECTOR_BYTES_MAX];     /* names and values */
};

/*
 * E_USAGE says what is wrong at which character. Values are Go's strings, in double or single quotes with escapes, or in backquotes without.
 * Expressions are those of relabel.h; the matchers have them as POSIX's.
 */
int selector_parse(const char *text, struct selector *ret, struct error *err);

#endif
