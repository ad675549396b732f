#!/bin/bash
# Which module may include which: the arrows of docs/ARCHITECTURE.md, checked over every
# #include of src/. The check is itself checked with violations planted in a copy.
set -u

# module: what it may include besides itself
arrows='
base:
profile:  base
format:   base profile
symbol:   base profile
report:   base profile
http:     base
attach:   base
sampler:  base profile
agent:    base profile format http
store:    base profile format
record:   base profile format symbol report http store
cli:      base profile format symbol report http attach sampler agent store record
'

# violations SRC : one line for each include that follows no arrow.
violations() {
	(cd "$1" && find . -name '*.[ch]' -printf '%P\n' | sort | xargs awk -v arrows="$arrows" '
		BEGIN {
			n = split(arrows, lines, "\n")
			for (i = 1; i <= n; i++) {
				words = split(lines[i], word, " ")
				if (!words)
					continue
				from = word[1]
				sub(":$", "", from)
				known[from] = may[from, from] = 1
				for (j = 2; j <= words; j++)
					may[from, word[j]] = 1
			}
		}
		FNR == 1 {
			split(FILENAME, path, "/")
			module = path[1]
			if (!(module in known))
				print FILENAME ": " module " is a module without arrows"
		}
		/^[ \t]*#[ \t]*include[ \t]*["<]/ {
			split($0, quoted, /["<>]/)
			target = quoted[2]
			other = target
			sub("/.*", "", other)
			if ($0 ~ /</ && !(other in known && target ~ "/"))
				next
			where = FILENAME ":" FNR ": "
			if (target !~ "/")
				print where "\"" target "\" is not named by its module"
			else if (target ~ /(^|\/)\.\.?\//)
				print where "\"" target "\" goes around the module names"
			else if (!(other in known))
				print where "\"" target "\" is of no known module"
			else if (!((module, other) in may))
				print where module " may not include " other " (\"" target "\")"
			else if (other != module && target ~ /_private\.h$/)
				print where "\"" target "\" is private to " other
		}')
}

n=0
result() {	# STATUS NAME: 0 is ok
	n=$((n + 1))
	if [ "$1" -eq 0 ]; then echo "ok $n - $2"; else echo "not ok $n - $2"; fi
}

src=$(cd "$(dirname "$0")/../../src" && pwd)
found=$(violations "$src")
for module in $(find "$src" -mindepth 1 -maxdepth 1 -type d -printf '%f\n' | sort); do
	bad=$(grep "^$module/" <<<"$found")
	[ -z "$bad" ] || sed 's/^/# src\//' <<<"$bad"
	[ -z "$bad" ]
	result $? "includes of src/$module follow the arrows"
done

# caught FILE INCLUDE-LINE PATTERN : that line in that file of a copy is a violation.
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
caught() {
	rm -rf "$copy/src"
	mkdir -p "$copy/src/$(dirname "$1")"
	printf '#include <stdio.h>\n#include "base/buf.h"\n%s\n' "$2" >"$copy/src/$1"
	[ "$(violations "$copy/src" | wc -l)" -eq 1 ] && violations "$copy/src" | grep -q "^$1:3: .*$3"
	result $? "planted: $2 in $1"
}
caught base/planted.c '#include "profile/profile.h"' 'base may not include profile'
caught format/planted.h '# include "symbol/symbol.h"' 'format may not include symbol'
caught report/planted.c '#include <format/format.h>' 'report may not include format'
caught symbol/planted.c '#include "cli/options.h"' 'symbol may not include cli'
caught profile/planted.c '#include "operations.h"' 'not named by its module'
caught profile/planted.c '#include "../base/buf.h"' 'around the module names'
caught report/planted.c '#include "profile/view_private.h"' 'private to profile'
caught cli/planted.c '#include "elsewhere/thing.h"' 'no known module'

rm -rf "$copy/src"
mkdir -p "$copy/src/newcomer"
echo '#include "base/buf.h"' >"$copy/src/newcomer/planted.c"
violations "$copy/src" | grep -q 'newcomer is a module without arrows'
result $? "planted: a module nobody drew an arrow for"
echo "1..$n"
