#!/bin/bash
# fixtures.sh DIR: builds the binaries that the C tests look at. Prints nothing when all is well.
set -eu
programs=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1" && cd "$1"

gcc -c -o labels.o "$programs/labels.S"
gcc -nostdlib -static -Wl,--build-id=none -o labels labels.o

gcc -c -o hostile.o "$programs/hostile.S"
gcc -nostdlib -static -o hostile hostile.o

for name in first second; do
	gcc -O2 -g -fPIC -shared -DNAME=$name -o lib$name.so "$programs/twin.c"
done

# The same program in many states; all of them have equal code.
gcc -O2 -g -Wl,--build-id -o whole "$programs/shapes.c"
g++ -O2 -g -Wl,--build-id -o whole-cc "$programs/shapes.cc"
objcopy --compress-debug-sections=zlib whole compressed

# separate PROGRAM TO : TO.debug with the debug information, TO without.
separate() {
	objcopy --only-keep-debug "$1" "$2.debug"
	objcopy --strip-all --add-gnu-debuglink="$2.debug" "$1" "$2"
}

build_id() { readelf -n "$1" | sed -n 's/.*Build ID: //p'; }

separate whole beside                   # PROGRAM.debug in its folder
mkdir -p below && (cd below && separate ../whole below && mkdir -p .debug && mv below.debug .debug/)

id=$(build_id whole)
mkdir -p "ids/.build-id/${id:0:2}" bare
objcopy --only-keep-debug whole "ids/.build-id/${id:0:2}/${id:2}.debug"
strip -o bare/program whole             # no link: only its build id leads there

# As Fedora strips: the local functions' names stay, compressed.
objcopy --strip-debug whole functions
xz functions
objcopy --add-section .gnu_debugdata=functions.xz bare/program mini

gcc -O2 -g -Wl,--build-id=none -o no-id "$programs/shapes.c"
separate no-id no-id-beside             # the checksum decides
separate no-id no-id-wrong && printf 'x' >>no-id-wrong.debug

gcc -O1 -g -Wl,--build-id -o other "$programs/shapes.c"
gcc -O2 -g -no-pie -Wl,--build-id -o fixed "$programs/shapes.c"
separate whole mismatched && cp other mismatched.debug
