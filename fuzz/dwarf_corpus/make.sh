#!/bin/bash
# make.sh OUT: the corpus of fuzz_dwarf, from tiny.cc and tiny.rs with the compilers that are here. What is kept in fuzz/corpus/dwarf was made
# with gcc 12, clang 14, lld 14, rustc 1.95, dwz 0.15 and binutils 2.40 of Debian 12, and has in addition what fuzzing found.
set -u
out=$(mkdir -p "$1" && realpath "$1") || exit 1
here=$(dirname "$(realpath "$0")")
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
cp "$here"/tiny.* .

put() { # NAME FILE [SECOND]: the second file behind the first, then its length
	{
		cat "$2"
		[ $# -lt 3 ] || { cat "$3" && printf "$(printf '%08x' "$(stat -c %s "$3")" | sed 's/\(..\)\(..\)\(..\)\(..\)/\\x\4\\x\3\\x\2\\x\1/')"; }
	} >"$out/$1"
}

link() { # NAME COMPILER FLAGS...
	"${@:2}" -x c++ -std=c++17 -fno-exceptions -fno-rtti -fno-asynchronous-unwind-tables -nostdlib -shared -fPIC -Wl,--build-id=none -Wl,-z,norelro \
		-Wl,-z,noseparate-code -Wl,-z,max-page-size=16 -o "$1" ${sources:-tiny.cc} 2>>log || { echo "without $1: $(tail -1 log)" >&2; return 1; }
}

variant() { link "$@" && put "$1" "$1"; }

for v in 2 3 4 5; do
	variant "gcc$v" g++ -O2 -g -gdwarf-$v
	variant "clang$v" clang++-14 -O2 -g -gdwarf-$v
done
variant gcc3-strict g++ -O2 -g -gdwarf-3 -gstrict-dwarf
variant gcc4-64 g++ -O2 -g -gdwarf-4 -gdwarf64
variant gcc5-64 g++ -O2 -g -gdwarf-5 -gdwarf64
variant clang5-64 clang++-14 -O2 -g -gdwarf-5 -gdwarf64
variant gcc5-O0 g++ -O0 -g
variant clang4-O0 clang++-14 -O0 -g -gdwarf-4
variant gcc5-lto g++ -O2 -g -flto
variant gcc4-types g++ -O2 -g -gdwarf-4 -fdebug-types-section
variant gcc5-types g++ -O2 -g -fdebug-types-section
variant gcc5-sections g++ -O2 -g -ffunction-sections -Wl,--gc-sections
variant clang5-lto clang++-14 -O2 -g -gdwarf-5 -flto=thin -fuse-ld=lld
variant clang4-lines clang++-14 -O2 -gdwarf-4 -gmlt
variant clang5-names clang++-14 -O2 -g -gdwarf-5 -gpubnames
for kind in zlib zlib-gnu zstd; do
	objcopy --compress-debug-sections=$kind gcc5 gcc5-$kind && put gcc5-$kind gcc5-$kind
done
variant gcc5-32 g++ -m32 -O2 -g
variant clang5-mips clang++-14 -target mips-linux-gnu -fuse-ld=lld -O2 -g -gdwarf-5
variant clang4-ppc64 clang++-14 -target powerpc64-linux-gnu -fuse-ld=lld -O2 -g -gdwarf-4
objcopy --only-keep-debug gcc5 gcc5.debug && strip -o gcc5.stripped gcc5 && objcopy --add-gnu-debuglink=gcc5.debug gcc5.stripped &&
	put gcc5-link gcc5.stripped gcc5.debug

for v in 4 5; do
	for compiler in g++ clang++-14; do
		name=${compiler%++*}$v-split
		mkdir "$name" && (cd "$name" && cp ../tiny.cc . && link program $compiler -O2 -g -gdwarf-$v -gsplit-dwarf -gno-pubnames) || continue
		dwo=$(find "$name" -name '*.dwo' | head -1)
		[ -z "$dwo" ] || put "$name" "$name/program" "$dwo"
		llvm-dwp-14 "$dwo" -o "$name/dwp" 2>>log && put "$name-dwp" "$name/program" "$name/dwp"
	done
done

# dwz wants two units that share something.
sed 's/Derived/Other/g; s/entry/entry2/g; s/^volatile int sink;//' tiny.cc >two.cc
for v in 4 5; do
	sources="tiny.cc two.cc" link alone$v g++ -O2 -g -gdwarf-$v && dwz alone$v 2>>log && put gcc$v-dwz alone$v
	cp gcc$v one$v && sources="two.cc -Wl,--unresolved-symbols=ignore-all" link two$v g++ -O2 -g -gdwarf-$v && dwz -m common$v one$v two$v 2>>log &&
		put gcc$v-dwz-m one$v common$v
done

for flags in "" "-C symbol-mangling-version=v0" "-C lto=fat" "-Z dwarf-version=5"; do
	name=rust${flags//[^a-z0-9]/}
	RUSTC_BOOTSTRAP=1 rustc --crate-type cdylib -C panic=abort -C opt-level=2 -g $flags -C link-arg=-nostdlib -C link-arg=-nostartfiles \
		-C link-arg=-Wl,--gc-sections -C link-arg=-Wl,-z,noseparate-code -C link-arg=-Wl,-z,norelro -o "$name" tiny.rs 2>>log && put "$name" "$name"
done
find "$out" -size +40k -printf 'larger than wanted: %f %s\n'
du -sh --apparent-size "$out"
