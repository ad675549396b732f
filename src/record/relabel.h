/*
 * Relabelling with Prometheus' semantics: rules are applied in order to a target's labels; values of the source labels are joined by the
 * separator and matched as a whole. A label that isn't there is "", and one that becomes "" is gone.
 *
 * Expressions are POSIX extended ones with what RE2 users write: \d \D \w \W \s \S, (?:...), and (?i) at the beginning. What means something
 * else here than there (lazy repetition, \b \p{..} \Q, named groups) is an error.
 */
#ifndef RECORD_RELABEL_H
#define RECORD_RELABEL_H

#include <regex.h>

#include "base/buf.h"
#include "record/arena.h"
#include "store/store.h"

/* Labels that change; texts live in the arena. Not sorted. */
struct labels {
	struct arena *arena;
	struct store_label *items;
	size_t n;
};

/* "" when it isn't there. */
const char *labels_get(const struct labels *l, const char *name);
/* value "": takes it away. False when the arena has failed. */
bool labels_set(struct labels *l, const char *name, const char *value);
void labels_sort(struct labels *l);

enum relabel_action {
	RELABEL_REPLACE, RELABEL_KEEP, RELABEL_DROP, RELABEL_LABELMAP, RELABEL_LABELDROP, RELABEL_LABELKEEP, RELABEL_HASHMOD,
	RELABEL_LOWERCASE, RELABEL_UPPERCASE, RELABEL_KEEPEQUAL, RELABEL_DROPEQUAL, RELABEL_ACTIONS
};
const char *relabel_action_name(enum relabel_action a);

#define RELABEL_GROUPS 32               /* of parentheses, those that don't count too */

struct relabel_pattern {
	regex_t compiled;                   /* of the whole value; relabel_pattern_finish frees it */
	unsigned char groups[RELABEL_GROUPS];   /* $n -> the compiled expression's group; 0: none */
	unsigned n_groups;
};

struct relabel_rule {
	const char **sources;
	size_t n_sources;
	const char *separator;              /* ";" */
	const char *target;
	const char *replacement;            /* "$1" */
	uint64_t modulus;
	enum relabel_action action;
	struct relabel_pattern pattern;     /* (.*) */
	bool has_pattern;
};

/* E_FORMAT: what is wrong with the expression. */
int relabel_pattern_init(struct relabel_pattern *p, const char *expression, struct error *err);
void relabel_pattern_finish(struct relabel_pattern *p);
/* The expression as POSIX has it, anchored, for who gives it to somebody else to compile. The same errors; (?i) is one, too. */
int relabel_posix(const char *expression, struct buf *out, struct error *err);

/* "my_label": letters, digits, '_', not a digit first. */
bool label_name_valid(const char *name);

/* False: the target is dropped. That memory ran out is in the arena. */
bool relabel(struct labels *l, const struct relabel_rule *rules, size_t n);

#endif
