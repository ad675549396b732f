#!/bin/bash
# damage.sh SYMBOL-DAMAGE PROGRAMS TRIES: damaged binaries of several compilers must not crash or hang us.
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
	if ! "${@:2}" -o "$folder/$name" "$programs/shapes.c" 2>"$folder/log"; then
		echo "not ok $count - $name compiles"
		return
	fi
	out=$("$damage" "$folder/$name" $((tries / 5)) "$tries" 1 2>&1)
	n=$(echo "$out" | sed -n 's/.*flips [0-9]* answered \([0-9]*\) frames.*/\1/p')
	frames=$(echo "$out" | sed -n 's/.*frames \([0-9]*\)$/\1/p')
	if [ "${n:-0}" -gt $((tries / 2)) ] && [ "${frames:-0}" -gt $((tries * 20)) ]; then
		echo "ok $count - $name: damaged $tries times, answered $n times"
	else
		echo "not ok $count - $name"
		echo "$out" | head -30 | sed 's/^/# /'
	fi
}

try gcc-dwarf5 gcc -g -O2
try gcc-dwarf4 gcc -g -O2 -gdwarf-4
try gcc-compressed gcc -g -O2 -gz
try clang-dwarf5 clang-14 -g -O2 -gdwarf-5
try clang-dwarf4 clang-14 -g -O2 -gdwarf-4
echo "1..$count"
