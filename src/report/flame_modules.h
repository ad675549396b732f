/*
 * Colours of a flame graph: frames of one binary have one hue, the binaries with the most memory
 * of their own get a hue each. Three shades by name tell neighbours apart.
 */
#ifndef REPORT_FLAME_MODULES_H
#define REPORT_FLAME_MODULES_H

#include "report/flame_boxes.h"

#define FLAME_HUES 8
#define FLAME_HUE_REST 8           /* all other binaries */

struct flame_module {
	uint32_t file;             /* string: the binary's path; 0: unmapped */
	double weight;
	uint32_t hue;
};

struct flame_modules {
	struct flame_module *modules;   /* heaviest first */
	size_t n, capacity;
	uint32_t *of_mapping;           /* module of each mapping; [n_mappings]: of unmapped frames */
	bool by_name;                   /* nothing is known of binaries: hues are by name */
};

struct flame_colour {
	unsigned hue, shade;
};

bool flame_modules_make(const struct view *v, const struct flame_stacks *s, bool inverted,
                        struct flame_modules *ret);
void flame_modules_finish(struct flame_modules *m);

uint32_t flame_module_of(const struct flame_modules *m, const struct view *v, uint32_t entry);
void flame_module_name(const struct view *v, const struct flame_module *m, struct buf *out);
struct flame_colour flame_colour(const struct flame_modules *m, const struct view *v, uint32_t entry);

#endif
