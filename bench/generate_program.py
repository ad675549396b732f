#!/usr/bin/env python3
"""Writes the C sources of the program whose dumps the benchmark reads.

Four files (a main program's part and three libraries) of FUNCTIONS functions each. A function calls one of
three others, by call sites on lines of their own, until the walk's depth is reached; then it allocates. Every third
function does so through an inlined helper. Which callee belongs to which call site is fixed, as in
any program, so the number of stacks is as good as unlimited and the number of frames is not.

usage: generate_program.py DIRECTORY
"""
import random
import sys

FUNCTIONS = 600
PARTS = ("engine", "parser", "storage", "network")

HEAD = '''#include "walk.h"

static inline __attribute__((always_inline)) void *{part}_helper(struct walk *w, step *next)
{{
	void *p = next(w);
	__asm__ volatile("" : "+r"(p));
	return p;
}}
'''

FUNCTION = '''
__attribute__((noinline)) void *{name}(struct walk *w)
{{
	void *p;
	if (w->left-- == 0) {{
		p = walk_allocate(w);
	}} else switch (walk_choice(w)) {{
	case 0:
		p = {calls[0]};
		break;
	case 1:
		p = {calls[1]};
		break;
	default:
		p = {calls[2]};
	}}
	__asm__ volatile("# {number}" : "+r"(p));
	return p;
}}
'''


def main():
    directory = sys.argv[1]
    rng = random.Random(1)
    names = [f"{part}_function_{i:03}" for part in PARTS for i in range(FUNCTIONS)]
    with open(f"{directory}/functions.h", "w") as out:
        out.writelines(f"step {name};\n" for name in names)
    for part in PARTS:
        with open(f"{directory}/{part}.c", "w") as out:
            out.write(HEAD.format(part=part))
            for number in range(FUNCTIONS):
                callees = rng.sample(names, 3)
                calls = [f"{callee}(w)" for callee in callees]
                if number % 3 == 0:
                    calls[0] = f"{part}_helper(w, {callees[0]})"
                out.write(FUNCTION.format(name=f"{part}_function_{number:03}", calls=calls, number=number))


main()
