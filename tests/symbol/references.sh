#!/bin/bash
# references.sh SYMBOL-COMPARE PROGRAMS [rest]: our answers next to llvm-symbolizer's and addr2line's, for thousands of
# random addresses of programs compiled in many ways, of whatever is installed on this system, and of the Rust toolchain's libraries.
# Without "rest" a few of each kind, with it all others.
#
# Under sanitizers (SANITIZED) the rest is asked for the same answers but not compared: that takes as long beside any build of ours.
#
# compare.c says what counts as the same, and in which kinds differences are counted. These are known, checked by it against the
# symbol table each time, and don't count as wrong:
#   alias       the reference replaces DWARF's name by another symbol of the same code: pread64 for __libc_pread64, one of two
#               functions that the linker folded into one (then only DWARF's fits the file and line that both give)
#   start       it has no name; we group the code by function with .eh_frame
#   neighbour   it names a symbol that does not cover the address: _init for PLT stubs, the function before for padding
#   unnamed     it has no name where a symbol covers the address: it doesn't look into a debug file's symbol table, and
#               ignores local labels of hand-written code
# All others must not occur, or (on programs that we did not build) in at most one of a thousand addresses:
#   name, file, line of addr2line: it puts the symbol's name on the innermost inlined frame when DWARF has no linkage name; loses
#               inlined frames of clang's DWARF 5; sometimes takes the unit's file for a header's line (shapes.cc:523: it has no such line)
set -u
compare=$(realpath "$1") programs=$(realpath "$2") rest=${3:-}
llvm=$(command -v llvm-symbolizer-14 || command -v llvm-symbolizer)
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
. "$programs/kept.sh"
uncompared=${SANITIZED:+$rest}
count=0

report() { # STATUS NAME [NOTE]
	count=$((count + 1))
	if [ "$1" = 0 ]; then echo "ok $count - $2"; else
		echo "not ok $count - $2"
		[ $# -gt 2 ] && echo "# $3"
	fi
}

skip() {
	count=$((count + 1))
	echo "ok $count - $1 # SKIP $2"
}

value() { # NAME LINE
	echo "$2" | sed -n "s/.*\b$1 \([0-9]*\).*/\1/p"
}

# Nothing may differ but what is known, and enough must have been compared.
agrees() { # NAME LINE LEAST-FRAMES [PER-THOUSAND]
	local wrong=0 kind
	for kind in extra missed chain name file line; do
		wrong=$((wrong + $(value $kind "$2")))
	done 2>/dev/null
	[ "$(value frames "$2")" -ge "$3" ] 2>/dev/null && [ $((wrong * 1000)) -le $((${4:-0} * $(value addresses "$2"))) ]
	report $? "$1" "$2"
}

# All that is asked has an answer.
answers() { # NAME BINARY LEAST-FRAMES [COMPARE OPTIONS]
	local frames
	frames=$("$compare" -p "${@:4}" "$2" 2>"$folder/log" | grep -c '^ ')
	[ "$frames" -ge "$3" ] && [ ! -s "$folder/log" ]
	report $? "$1: answers" "$frames frames; $(head -n 5 "$folder/log")"
}

against_llvm() { # NAME BINARY LEAST-FRAMES [COMPARE OPTIONS]
	if [ -n "$uncompared" ]; then answers "$1" "$2" "$3" -n 4000 "${@:4}"; return; fi
	if [ -z "$llvm" ]; then skip "$1: as llvm-symbolizer" "llvm-symbolizer is not installed"; return; fi
	agrees "$1: as llvm-symbolizer" "$("$compare" -n 4000 "${@:4}" "$llvm" "$2" 2>&1)" "$3"
}

compile() { # OUT COMMAND... SOURCE
	local kept=
	[ -z "${HEAPGAUGE_KEPT:-}" ] || kept=$(kept_as "$1" "${@:2}")
	if [ -n "$kept" ] && [ -e "$kept" ]; then cp "$kept" "$folder/$1"; return; fi
	"${@:2}" -o "$folder/$1" 2>"$folder/log" || { report 1 "$1 compiles" "$(head -1 "$folder/log")"; return 1; }
	[ -z "$kept" ] || { cp "$folder/$1" "$kept.$$" && mv "$kept.$$" "$kept"; }
}

variant() { # NAME LANGUAGE COMPILER FLAGS...
	local name=$1 source=$programs/shapes.$2 compiler=$3
	shift 3
	if ! command -v "$compiler" >/dev/null; then skip "$name" "$compiler is not installed"; return; fi
	compile "$name" "$compiler" "$@" "$source" || return
	against_llvm "$name" "$folder/$name" 900 -w
	against_addr2line "$name" "$folder/$name"
}

against_addr2line() { # NAME BINARY
	[ -z "$uncompared" ] || return
	command -v addr2line >/dev/null || { skip "$1: as addr2line" "addr2line is not installed"; return; }
	local line
	line=$("$compare" -a -w -n 4000 addr2line "$2" 2>&1)
	case $1 in
	cc-clang*-5-O2*)
		[ "$(value chain "$line")" -gt 100 ]
		report $? "$1: addr2line loses inlined frames of clang's DWARF 5, we and llvm-symbolizer don't" "$line" ;;
	cc-clang-lines)
		[ "$(value name "$line")" -gt 100 ]
		report $? "$1: addr2line gives inlined functions without a linkage name the symbol's, we and llvm-symbolizer don't" "$line" ;;
	cc-*) agrees "$1: as addr2line" "$line" 900 60 ;;
	*) agrees "$1: as addr2line" "$line" 900 ;;
	esac
}

programs_of() { # VERSION LEVEL [FLAGS]
	local v=$1 level=$2
	shift 2
	variant "c-gcc-$v$level$*" c gcc -g "-gdwarf-$v" "$level" "$@"
	variant "cc-g++-$v$level$*" cc g++ -g "-gdwarf-$v" "$level" "$@"
	variant "c-clang-$v$level$*" c clang-14 -g "-gdwarf-$v" "$level" "$@"
	variant "cc-clang-$v$level$*" cc clang++-14 -g "-gdwarf-$v" "$level" "$@"
}

if [ -z "$rest" ]; then
	programs_of 5 -O2
else
	programs_of 4 -O2
	programs_of 5 -O0
	programs_of 4 -O0 -no-pie
	programs_of 5 -O2 -no-pie
	variant cc-g++-gz cc g++ -g -O2 -gz
	variant cc-g++-shared cc g++ -g -O2 -fPIC -shared
	variant cc-g++-sections cc g++ -g -O2 -ffunction-sections -Wl,--gc-sections
	variant cc-g++-lto cc g++ -g -O2 -flto -no-pie
	variant cc-clang-lines cc clang++-14 -O2 -gdwarf-4 -gmlt
fi

# Debug information in .dwo files, and what distributions make of it: types shared through dwz, in the file or in
# another one. llvm-symbolizer doesn't follow the latter, so there our own answers before dwz are the reference.
if [ -n "$rest" ]; then
	mkdir -p "$folder/split4" "$folder/split5"
	for v in 4 5; do
		(cd "$folder/split$v" && clang++-14 -g "-gdwarf-$v" -gsplit-dwarf -O2 -o program "$programs/shapes.cc") 2>/dev/null &&
			against_llvm "split DWARF $v" "$folder/split$v/program" 8000
	done
	if ! command -v dwz >/dev/null; then
		skip "dwz" "dwz is not installed"
	else
		compile cc-g++-5-O2 g++ -g -gdwarf-5 -O2 "$programs/shapes.cc"
		for name in cc-g++-4-O2 cc-g++-5-O2; do
			cp "$folder/$name" "$folder/$name-dwz" && dwz "$folder/$name-dwz" &&
				against_llvm "$name after dwz" "$folder/$name-dwz" 1500
		done
		cp "$folder/cc-g++-4-O2" "$folder/one" &&
			compile two g++ -g -gdwarf-4 -O2 -no-pie "$programs/shapes.cc"
		"$compare" -p -n 4000 "$folder/one" >"$folder/before"
		dwz -m "$folder/common.dwz" -M "$folder/common.dwz" "$folder/one" "$folder/two"
		"$compare" -p -n 4000 "$folder/one" >"$folder/after"
		readelf -SW "$folder/one" | grep -q gnu_debugaltlink && cmp -s "$folder/before" "$folder/after"
		report $? "debug information shared with a second file by dwz: the answers stay"
	fi
fi

rust() { # NAME FLAGS...
	if ! command -v rustc >/dev/null || ! rustc --version >/dev/null 2>&1; then skip "$1" "rustc is not installed"; return; fi
	compile "$1" rustc -g "${@:2}" "$programs/shapes.rs" || return
	against_llvm "$1" "$folder/$1" 8000
	against_addr2line "$1" "$folder/$1"
}
if [ -z "$rest" ]; then
	rust rust-O -O
else
	rust rust-debug
	rust rust-v0 -O -C symbol-mangling-version=v0
fi

# Symbols only: what .symtab says when there is no debug information, and .dynsym when stripped.
if [ -z "$rest" ] && compile whole g++ -O2 "$programs/shapes.cc"; then
	against_llvm symtab "$folder/whole" 1000
fi
# Every function that nm knows, asked at its beginning, has one of the names nm has for that place.
against_nm() { # NAME LIBRARY LEAST
	nm -D -S --defined-only "$2" | awk 'NF == 4 && $3 ~ /^[TtWi]$/ {
		sub(/@.*/, "", $4); sub(/^0*/, "", $1); print "0x" $1, $4 }' >"$folder/nm"
	cut -d' ' -f1 "$folder/nm" | "$compare" -t -p -i "$2" >"$folder/ours"
	local out n bad
	out=$(awk '
		FILENAME ~ /nm$/ { known[$0] = 1; next }
		/^0x/ { at = $1; asked++; next }
		{
			sub(/^ */, "")
			name = $0
			if (match(name, / \[[^]]+\] /)) name = substr(name, RSTART + 2, RLENGTH - 4)
			else sub(/ \[\].*/, "", name)
			if ((at " " name) in known) good++
			else odd = at " " name
		}
		END { print asked + 0, asked - good, odd }' "$folder/nm" "$folder/ours")
	read -r n bad _ <<<"$out"
	[ "$n" -ge "$3" ] && [ "$bad" = 0 ]
	report $? "$1: the names nm -D has ($n functions)" "$out"
}

# Whatever is installed: what is exported, and .eh_frame. (-t would leave out the latter, and what debug packages there are.)
# First those that are big or odd, then any library, until there are enough. llvm-symbolizer's time is the same beside a sanitizer.
system() { # LEAST
	local path n=0 known least
	[ -n "$llvm" ] || { skip "binaries of this system" "llvm-symbolizer is not installed"; return; }
	known=(/usr/bin/{bash,perl,python3.11,gdb,git,openssl,cmake,ninja,redis-server,chromium,curl,ssh,vim.basic,node,qemu-x86_64,clang-14,go,find,tar,sed,make} \
		/usr/lib/gcc/x86_64-linux-gnu/12/{cc1,cc1plus,lto1} "${BASH%/*}"/gcc \
		/usr/lib/*/{libc.so.6,libm.so.6,libstdc++.so.6,libcrypto.so.3,libssl.so.3,libjemalloc.so.2,libLLVM-14.so.1,libclang-cpp.so.14,libpython3.11.so.1.0,libz.so.1} \
		/usr/lib/*/{libzstd.so.1,liblzma.so.5,libsqlite3.so.0,libglib-2.0.so.0,libgmp.so.10,libxml2.so.2,libcurl.so.4,libicuuc.so.72,libicui18n.so.72,libtcmalloc.so.4} \
		/usr/lib/*/{libdw.so.1,libelf.so.1,libbfd-*-system.so,libgnutls.so.30,libperl.so.5.36,libgcc_s.so.1,libncursesw.so.6,libtinfo.so.6,libreadline.so.8})
	[ -z "${SANITIZED:-}" ] || known=("${known[@]:0:$1}")
	for path in "${known[@]}" /usr/lib/*-linux-gnu*/lib*.so.[0-9]; do
		[ $n -lt "$1" ] || [[ " ${known[*]} " == *" $path "* ]] || break
		[ -s "$path" ] && file -L "$path" | grep -q ' ELF ' || continue
		n=$((n + 1))
		least=$([[ " ${known[*]} " == *" $path "* ]] && echo 100 || echo 20)
		if [ -n "$uncompared" ]; then
			answers "$path" "$path" "$least" -n 20000
		else
			agrees "$path" "$("$compare" -n 20000 "$llvm" "$path" 2>&1)" "$least" 1
		fi
	done
	[ "$n" -ge "$1" ]
	report $? "enough binaries of this system" "only $n"
}

toolchain() {
	local path n=0
	command -v rustc >/dev/null && [ -n "$llvm" ] || { skip "Rust's own libraries" "rustc or llvm-symbolizer is not installed"; return; }
	for path in "$(rustc --print sysroot)"/lib/{librustc_driver-*,libLLVM*.so.*,libstd-*}.so "$(rustc --print sysroot)"/lib/libLLVM.so.* \
		"$(rustc --print sysroot)"/lib/rustlib/*/lib/libstd-*.so; do
		[ -e "$path" ] || continue
		n=$((n + 1))
		if [ -n "$uncompared" ]; then
			answers "$(basename "$path")" "$path" 15000 -n 20000
		else
			agrees "$(basename "$path")" "$("$compare" -n 20000 "$llvm" "$path" 2>&1)" 15000 1
		fi
	done
	[ "$n" -ge 2 ]
	report $? "enough of Rust's own libraries" "only $n"
}
if [ -n "$rest" ]; then
	system "$([ -z "${SANITIZED:-}" ] && echo 30 || echo 8)"
	toolchain
	echo "1..$count"
	exit
fi

for library in libjemalloc.so.2 libc.so.6 libstdc++.so.6 libcrypto.so.3; do
	path=$(ls /usr/lib/*/$library /lib/*/$library 2>/dev/null | head -1)
	if [ -z "$path" ]; then skip "$library" "not installed"; continue; fi
	# Without what would lead to its debug information.
	objcopy -R .note.gnu.build-id -R .gnu_debuglink "$path" "$folder/stripped.so" 2>/dev/null
	against_llvm "$library" "$folder/stripped.so" 100 -t
	against_nm "$library" "$folder/stripped.so" 40
done
if command -v redis-server >/dev/null; then
	cp "$(command -v redis-server)" "$folder/redis"
	against_llvm "redis-server" "$folder/redis" 1000 -t -d "$folder"
else
	skip redis-server "not installed"
fi

# Where the reference is wrong, so that nobody "fixes" us: an address in .plt is not in _init. (.eh_frame knows where the PLT begins.)
if [ -n "$llvm" ] && [ -e "$folder/c-gcc-5-O2" ]; then
	plt=0x$(readelf -SW "$folder/c-gcc-5-O2" | awk '$2 == ".plt" || $3 == ".plt" { for (i = 1; i <= NF; i++) if ($i == "PROGBITS") print $(i + 1) }')
	theirs=$(echo "$plt" | "$llvm" --obj "$folder/c-gcc-5-O2" | head -1)
	ours=$(echo "$plt" | "$compare" -p -i "$folder/c-gcc-5-O2" | sed 1d)
	[ "$theirs" = _init ] && [[ $ours != *_init* ]]
	report $? "llvm-symbolizer names the PLT _init, we don't" "theirs '$theirs', ours '$ours'"
fi
echo "1..$count"
