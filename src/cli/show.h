/*
 * What top, tree, peek, traces, diff, leaks and flame have in common: read, name, make a
 * view, let the command render it, and put the result where it belongs.
 */
#ifndef CLI_SHOW_H
#define CLI_SHOW_H

#include "cli/settings.h"
#include "report/report.h"

typedef int render_fn(struct view *v, const void *context, const struct report_style *style,
                      struct buf *out, struct error *err);

int show_profiles(const struct show_settings *s, char *const *paths, size_t n, render_fn *render,
                  const void *context, struct error *err);

/* The same with what was read already; warnings are those of reading, and more are added. */
int show_loaded(const struct show_settings *s, struct profile *p, struct buf *warnings, render_fn *render,
                const void *context, struct error *err);

/* What s asks for. E_USAGE when p has no such metric. */
int show_options(const struct view_settings *s, const struct profile *p, struct view_options *ret, struct error *err);
/* The view of p that s asks for. */
int show_view(const struct view_settings *s, struct profile *p, struct view **ret, struct error *err);

/* text into path (NULL, "-": standard output), whole or not at all. */
int write_whole(const char *path, const struct buf *text, struct error *err);

#endif
