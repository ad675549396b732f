/*
 * Prints every JSON report of a profile on a line of its own, for text_json.sh to read with a real parser.
 * Arguments: plain, diff (two moments of one process), hostile (names full of control bytes), deep, cpu.
 */
#include "text_profiles.h"

#include <stdio.h>
#include <stdlib.h>

static struct profile *hostile(void)
{
	struct build b = build_begin(65536, false, 0);
	build_sample(&b, "\"quote\\\n\033[2J;\xff\xfe;</script>;\xe2\x80\xae", "thread\t\"1\"", 0, 1000, MIB, 0, 0);
	uint32_t key = profile_cstring(b.p, "request\"");
	struct label label = { .key = key, .str = profile_string(b.p, "a\0b", 3) };
	profile_add_sample(b.p, build_stack(&b, "leaf;main"), profile_intern_labels(b.p, &label, 1), b.source,
	                   (int64_t[]){ 3, 300 });
	profiles_origin(&b, "na\"me\n.heap", 0);
	return build_end(&b);
}

/* The deepest stack there is, every frame different. */
static struct profile *deep(void)
{
	struct build b = build_begin(1, false, 0);
	uint32_t *frames = malloc(PROFILE_MAX_DEPTH * sizeof *frames);
	for (uint32_t i = 0; frames && i < PROFILE_MAX_DEPTH; i++)
		frames[i] = profile_intern_location(b.p, b.program, 0x560000001000 + i);
	if (frames)
		profile_add_sample(b.p, profile_intern_stack(b.p, frames, PROFILE_MAX_DEPTH), 0, b.source,
		                   (int64_t[]){ 9, 9000 });
	free(frames);
	return build_end(&b);
}

static struct profile *cpu(void)
{
	struct build b = { .p = profile_new(0) };
	profile_add_type(b.p, "cpu", "nanoseconds");
	struct mapping m = { .start = 0x400000, .limit = 0x600000, .executable = true };
	b.program = profile_add_mapping(b.p, &m);
	struct source s = { .name = profile_cstring(b.p, "cpu"), .header_objects = -1, .header_bytes = -1 };
	b.source = profile_add_source(b.p, &s);
	profile_add_sample(b.p, build_stack(&b, "spin;main"), 0, b.source, (int64_t[]){ 1230000000 });
	return build_end(&b);
}

static struct profile *named(const char *name)
{
	if (!strcmp(name, "diff"))
		return profiles_diff(profiles_server(65536), profiles_server_later(65536));
	if (!strcmp(name, "noise"))
		return profiles_diff(profiles_server(8 * MIB), profiles_server_later(8 * MIB));
	return !strcmp(name, "hostile") ? hostile() :
	       !strcmp(name, "deep")    ? deep() :
	       !strcmp(name, "cpu")     ? cpu() :
	                                  profiles_server(65536);
}

int main(int argc, char **argv)
{
	struct profile *p = argc == 2 ? named(argv[1]) : NULL;
	struct view *v = profiles_view(p, BY_FUNCTION, NULL);
	struct buf out;
	struct error err = { 0 };
	struct top_options top = { .sort = SORT_FLAT };
	struct tree_options tree = { .min_fraction = 0.02 };
	if (!v)
		return 1;
	buf_init(&out, BUF_MAX_DEFAULT);
	int code = report_top_json(v, &top, &out, &err);
	code = code ? code : report_tree_json(v, &tree, &out, &err);
	/* Of the deep stack one frame will do: each of them has its own entry. */
	code = code ? code : report_peek_json(v, strcmp(argv[1], "deep") ? "." : "0x1000$", &out, &err);
	code = code ? code : report_traces_json(v, 0, &out, &err);
	if (!code && v->diff)
		code = report_diff_json(v, &top, &out, &err);
	if (!code)
		fwrite(out.data, 1, out.len, stdout);
	else
		fprintf(stderr, "%s\n", err.text);
	buf_finish(&out);
	view_free(v);
	profile_free(p);
	return code ? 1 : 0;
}
