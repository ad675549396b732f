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

# Compressed in every way there is; the last two need newer tools than some have.
objcopy --compress-debug-sections=zlib-gnu whole compressed-legacy
objcopy --compress-debug-sections=zstd whole compressed-zstd 2>/dev/null || rm -f compressed-zstd

# Enough of it that threads share the work.
gcc -c -o large -x assembler - <<'END'
	.section .debug_info, "", @progbits
	.fill 3000000, 1, 7
	.section .debug_str, "", @progbits
	.fill 6000000, 1, 65
	.section .debug_line, "", @progbits
	.fill 1000, 1, 1
END
objcopy --compress-debug-sections=zlib large large-compressed

# What readelf says of them: function symbols, and ranges that have unwind entries.
for name in whole-cc libc; do
	file=$name
	[ $name = whole-cc ] || file=$(ldconfig -p | awk '/libc\.so\.6/ { print $NF; exit }')
	[ -e $name ] || cp "$file" $name
	readelf -sW $name | awk '($4 == "FUNC" || $4 == "IFUNC") && $7 != "UND" && $3 != "0" { sub("@.*", "", $8); print $2, $3, $8 }' |
		sort -u >$name.functions
	readelf --debug-dump=frames $name 2>/dev/null | sed -n 's/.* FDE .*pc=\([0-9a-f]*\)\.\.\([0-9a-f]*\).*/\1 \2/p' >$name.frames
done

# The other byte order, and 32 bits. Objects: nobody links for that here.
for target in s390x powerpc; do
	for gz in none zlib; do
		clang-14 --target=$target-linux-gnu -O2 -g -funwind-tables -gz=$gz -c -o $target-$gz.o "$programs/plain.c"
	done
	readelf -sW $target-none.o | awk '$4 == "FUNC" && $3 != "0" { print $2, $3, $8 }' | sort -u >$target.functions
done

# Type units are in sections of the same name, each in a group of its own.
g++ -O0 -gdwarf-5 -fdebug-types-section -c -o types.o "$programs/shapes.cc"

# Split: .dwo beside the binary's objects, and all of them in a .dwp.
mkdir -p split/made split/moved
(cd split/made && gcc -O2 -gdwarf-4 -gsplit-dwarf -c -o unit.o "$programs/shapes.c" && gcc -Wl,--build-id -o ../program unit.o)
cp split/program split/moved/packed
dwp -o split/moved/packed.dwp split/made/unit.dwo
clang-14 -O2 -gdwarf-5 -gsplit-dwarf=single -c -o split/both.o "$programs/shapes.c"

# dwz's common file.
mkdir -p alt
cp whole-cc alt/one
cp whole-cc alt/two
dwz -m alt/common -r alt/one alt/two

# A system below a folder, and an unpacked debug package.
mkdir -p system/usr/bin system/usr/lib/debug/usr/bin "package/usr/lib/debug/.build-id/${id:0:2}"
cp bare/program system/usr/bin/by-id
cp -r ids/.build-id system/usr/lib/debug/
cp ids/.build-id/*/*.debug "package/usr/lib/debug/.build-id/${id:0:2}/"
separate no-id system/usr/bin/linked && mv system/usr/bin/linked.debug system/usr/lib/debug/usr/bin/

# As pprof keeps them; and a file with nothing but symbols.
mkdir -p "pprof/$id" symbols/.build-id/${id:0:2}
cp whole "pprof/$id/anything"
strip --strip-debug -o "symbols/.build-id/${id:0:2}/${id:2}.debug" whole

# Debug information of megabytes, packed into little.
{
	echo 'enum much {'
	awk 'BEGIN { for (i = 0; i < 60000; i++) printf "\tword_number_%d,\n", i }'
	printf '};\nenum much big_one;\nint big_two(int x)\n{\n\treturn x * 3 + (big_one == word_number_7);\n}\n'
	printf 'int main(int n, char **v)\n{\n\t(void)v;\n\treturn big_two(n);\n}\n'
} >much.c
gcc -O1 -fno-inline -g -gz=zlib -Wl,--build-id -o much much.c
