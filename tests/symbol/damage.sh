#!/bin/bash
# damage.sh SYMBOL-DAMAGE PROGRAMS TRIES: damaged binaries of several compilers must not crash or hang us; and of one with a single
# damaged byte, nearly all is still named.
set -u
damage=$1 programs=$2 tries=$3
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
count=0

try() { # NAME COMPILER FLAGS...
	local name=$1 out n frames
	count=$((count + 1))
	if ! command -v "$2" >/dev/null; then
		echo "ok $count - $name # SKIP $2 is not installed"
		return
	fi
	if ! "${@:2}" -o "$folder/$name" 2>"$folder/log"; then
		echo "not ok $count - $name compiles"
		return
	fi
	out=$("$damage" "$folder/$name" $((tries / 5)) "$tries" "$tries" 1 2>&1)
	set -- $(echo "$out" | sed -n 's/^addresses \([0-9]*\); .* flips [0-9]* answered \([0-9]*\) frames .* singles [0-9]* answered \([0-9]*\) frames \([0-9]*\)$/\1 \2 \3 \4/p')
	if [ $# = 4 ] && [ "$2" -gt $((tries / 2)) ] && [ "$3" = "$tries" ] && [ "$4" -gt $(($1 * tries / 3)) ]; then
		echo "ok $count - $name: $out"
	else
		echo "not ok $count - $name"
		echo "$out" | head -30 | sed 's/^/# /'
	fi
}

try gcc-dwarf5 gcc -g -O2 "$programs/shapes.c"
try gcc-dwarf4 gcc -g -O2 -gdwarf-4 "$programs/shapes.c"
try gcc-compressed gcc -g -O2 -gz "$programs/shapes.c"
try clang-dwarf5 clang-14 -g -O2 -gdwarf-5 "$programs/shapes.c"
try clang-dwarf4 clang-14 -g -O2 -gdwarf-4 "$programs/shapes.c"
try g++-dwarf5 g++ -g -O2 "$programs/shapes.cc"
echo "1..$count"
