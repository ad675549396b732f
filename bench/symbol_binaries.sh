#!/bin/bash
# symbol_binaries.sh WORK [GROUP...]: the programs that the symbolizer is measured and checked on, each built once and kept in WORK/bin.
#
#   mid      36 or 76 files of z3 as a library: gcc and clang, DWARF 4 and 5, link-time optimized, split into .dwo files and .dwp
#   derived  what distributions make of such a file: dwz, dwz -m, compressed in three ways, debug file by link and by build id
#   rust     ripgrep, plain, with fat LTO in one codegen unit, and after dwz
#   z3       all of z3 in one program: 430 MB (an hour with one core)
#   cargo    cargo, the Rust one: 200 MB (half an hour with one core)
#
# Without a group: all of them. What is missing or can't be downloaded is said in a line "SKIP NAME: why" and left out. Every binary gets a line in
# WORK/README. JOBS (1) says how many compilers run at once. Sources come from Debian (apt-get source) and crates.io (cargo).
set -u
work=$(mkdir -p "$1" && realpath "$1") || exit 1
shift
[ $# -gt 0 ] || set -- mid derived rust z3 cargo
jobs=${JOBS:-1}
bin=$work/bin
mkdir -p "$bin" "$work/obj" "$work/log"

skip() { echo "SKIP $1: $2"; }
have() { [ -e "$bin/$1" ]; }
need() { command -v "$1" >/dev/null; }

announce() { # NAME WHAT
	local size text
	size=$(stat -Lc %s "$bin/$1")
	text="bin/$1: $2; $((size / 1000000)) MB, of it .debug_info $(size -A "$bin/$1" | awk '$1 == ".debug_info" { print int($2 / 1e6) }') MB"
	echo "$text" >>"$work/README"
	echo "$text"
}

# --- z3's sources ---

fetch_z3() {
	[ -e "$work/src/z3/CMakeLists.txt" ] && return 0
	need apt-get && need dpkg-source || return 1
	local apt=(apt-get -q -o "Dir::Etc::sourcelist=$work/apt/sources.list" -o Dir::Etc::sourceparts=/dev/null
		-o "Dir::State::lists=$work/apt/lists" -o APT::Sandbox::User=root -o Acquire::Languages=none)
	mkdir -p "$work/apt/lists/partial" "$work/src"
	echo 'deb-src http://deb.debian.org/debian bookworm main' >"$work/apt/sources.list"
	(cd "$work/src" && "${apt[@]}" update && "${apt[@]}" source --download-only z3 &&
		dpkg-source -x z3_*.dsc z3.new && mv z3.new z3) >"$work/log/fetch-z3" 2>&1
}

configure_z3() {
	[ -e "$work/obj/z3/build.ninja" ] && return 0
	need cmake && need ninja && need g++ && [ -e /usr/include/simde/x86/sse2.h ] || return 1
	cmake -S "$work/src/z3" -B "$work/obj/z3" -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo "-DCMAKE_CXX_FLAGS_RELWITHDEBINFO=-O2 -g -gdwarf-5" \
		-DZ3_BUILD_LIBZ3_SHARED=OFF -DZ3_BUILD_TEST_EXECUTABLES=OFF -DZ3_ENABLE_EXAMPLE_TARGETS=OFF \
		-DCMAKE_C_COMPILER=gcc -DCMAKE_CXX_COMPILER=g++ >"$work/log/configure-z3" 2>&1
}

# --- a library of a tenth of it ---

# The headers that its build generates from descriptions. (Asking ninja for them builds half of z3 before.)
mid_headers() {
	local source=$work/src/z3/src to=$work/obj/z3/src description
	[ -e "$work/obj/mid-headers" ] && return 0
	need python3 || return 1
	while read -r description; do
		mkdir -p "$(dirname "$to/$description")" &&
			python3 "$work/src/z3/scripts/pyg2hpp.py" "$source/$description" "$(dirname "$to/$description")" || return 1
	done < <(cd "$source" && find . -name '*.pyg') >"$work/log/mid-headers" 2>&1
	mkdir -p "$to/ast/pattern" &&
		python3 "$work/src/z3/scripts/mk_pat_db.py" "$source/ast/pattern/database.smt2" "$to/ast/pattern/database.h" &&
		touch "$work/obj/mid-headers"
}

# Compiled where its objects stay: with -gsplit-dwarf the .dwo files beside them are part of the result.
mid() { # NAME WHAT COMPILER COMPILE-FLAGS LINK-FLAGS
	local name=$1 compiler=$3 folder=$work/obj/$1 files=76
	have "$name" && return
	[ "$compiler" != g++ ] || files=36     # which writes five times as much
	need "$compiler" || { skip "$name" "$compiler is not installed"; return 1; }
	[[ $5 != *lld* ]] || need ld.lld-14 || need ld.lld || { skip "$name" "lld is not installed"; return 1; }
	mkdir -p "$folder"
	# shellcheck disable=SC2086
	(cd "$folder" && ls "$work"/src/z3/src/smt/*.cpp | head -"$files" |
		xargs -P "$jobs" -I{} sh -c 'o=$(basename "$1" .cpp).o; [ -e "$o" ] || { shift; "$@" -o "$o.new" && mv "$o.new" "$o"; }' - {} \
		"$compiler" -O2 -g -fPIC -std=gnu++17 -w -fvisibility=hidden -fvisibility-inlines-hidden $4 -D_LINUX_ -D_MP_INTERNAL -D_USE_THREAD_LOCAL \
			-D_EXTERNAL_RELEASE "-I$work/obj/z3/src" "-I$work/src/z3/src" -c {} &&
		"$compiler" -O2 -g $4 -shared -fPIC -Wl,--build-id -Wl,--unresolved-symbols=ignore-all $5 -o "$name.new" ./*.o &&
		mv "$name.new" "$bin/$name") >"$work/log/$name" 2>&1 ||
		{ skip "$name" "did not build: $(grep -m1 -iE 'error|cannot|undefined' "$work/log/$name") ($work/log/$name)"; return 1; }
	[[ $4 = *split* ]] || rm -rf "$folder"
	announce "$name" "$2"
}

packed() { # NAME FROM TOOL: one .dwp in place of the .dwo files
	have "$1" && return
	have "$2" || return
	need "$3" || { skip "$1" "$3 is not installed"; return; }
	cp "$bin/$2" "$work/obj/$1"
	timeout 120 "$3" -e "$work/obj/$1" -o "$bin/$1.dwp" >"$work/log/$1" 2>&1 ||
		{ skip "$1" "$3: $(head -1 "$work/log/$1") (llvm-dwp 14 does not end on what GCC 12 writes)"; rm -f "$bin/$1.dwp"; return; }
	mv "$work/obj/$1" "$bin/$1"
	# The names of the .dwo files must lead nowhere, or nobody would need the .dwp.
	perl -pi -e 's,\Q/obj/'"$2"'\E,/xxx/'"$2"',g' "$bin/$1"
	announce "$1" "$2 with its debug information in $1.dwp"
}

group_mid() {
	fetch_z3 || { skip mid "apt-get source z3 failed ($work/log/fetch-z3)"; return; }
	configure_z3 || { skip mid "cmake, ninja, g++ or libsimde-dev is missing or failed ($work/log/configure-z3)"; return; }
	mid_headers || { skip mid "z3's generated headers ($work/log/mid-headers)"; return; }
	local exported="-fvisibility=default -fno-visibility-inlines-hidden"     # or there would be little left
	mid mid-gcc5.so "g++ -O2, DWARF 5" g++ -gdwarf-5 ""
	mid mid-clang5.so "clang++-14 -O2, DWARF 5" clang++-14 -gdwarf-5 ""
	mid mid-gcc5-split.so "g++ -O2 -gsplit-dwarf, DWARF 5" g++ "-gdwarf-5 -gsplit-dwarf" ""
	mid mid-gcc4.so "g++ -O2, DWARF 4" g++ -gdwarf-4 ""
	mid mid-clang4-split.so "clang++-14 -O2 -gsplit-dwarf, DWARF 4" clang++-14 "-gdwarf-4 -gsplit-dwarf" ""
	mid mid-clang5-thin.so "clang++-14 -O2 -flto=thin, lld, DWARF 5" clang++-14 "-gdwarf-5 -flto=thin $exported" "-fuse-ld=lld -Wl,--thinlto-jobs=$jobs"
	mid mid-gcc5-lto.so "g++ -O2 -flto in one partition, DWARF 5" g++ "-gdwarf-5 -flto $exported" "-flto-partition=one"
	mid mid-clang4.so "clang++-14 -O2, DWARF 4" clang++-14 -gdwarf-4 ""
	mid mid-gcc4-split.so "g++ -O2 -gsplit-dwarf, DWARF 4" g++ "-gdwarf-4 -gsplit-dwarf" ""
	mid mid-clang5-split.so "clang++-14 -O2 -gsplit-dwarf, DWARF 5" clang++-14 "-gdwarf-5 -gsplit-dwarf" ""
	packed mid-gcc5-dwp.so mid-gcc5-split.so llvm-dwp-14
	packed mid-gcc4-dwp.so mid-gcc4-split.so dwp
	packed mid-clang4-dwp.so mid-clang4-split.so llvm-dwp-14
	packed mid-clang5-dwp.so mid-clang5-split.so llvm-dwp-14
}

# --- derived ---

derive() { # NAME FROM WHAT COMMAND...: the command gets the copy's path
	have "$1" && return
	have "$2" || { skip "$1" "there is no $2"; return; }
	need "$4" || { skip "$1" "$4 is not installed"; return; }
	cp "$bin/$2" "$work/obj/$1" && "${@:4}" "$work/obj/$1" >"$work/log/$1" 2>&1 && mv "$work/obj/$1" "$bin/$1" ||
		{ skip "$1" "$4: $(head -1 "$work/log/$1")"; rm -f "$work/obj/$1"; return; }
	announce "$1" "$2 $3"
}

derive_common() { # OUT-1 FROM-1 OUT-2 FROM-2: types of both in a third file
	have "$1" && return
	have "$2" && have "$4" || return
	need dwz || { skip "$1" "dwz is not installed"; return; }
	cp "$bin/$2" "$bin/$1" && cp "$bin/$4" "$bin/$3" &&
		(cd "$bin" && dwz -l 400000000 -L 400000000 -m "$1.common" -M "$1.common" "$1" "$3") >"$work/log/$1" 2>&1 && have "$1.common" ||
		{ skip "$1" "dwz -m: $(head -1 "$work/log/$1")"; rm -f "$bin/$1" "$bin/$3"; return; }
	announce "$1" "$2 after dwz -m, common part in $1.common"
	announce "$3" "$4 after dwz -m, common part in $1.common"
}

derive_stripped() { # FROM
	local link=${1%.so}-link.so dir=${1%.so}-id.so id
	have "$1" || return
	if ! have "$link"; then
		objcopy --only-keep-debug "$bin/$1" "$bin/$link.debug" &&
			(cd "$bin" && objcopy -g --remove-section=.note.gnu.build-id --add-gnu-debuglink="$link.debug" "$1" "$link" && strip -s "$link")
		objcopy --remove-section=.note.gnu.build-id "$bin/$link.debug"
		(cd "$bin" && objcopy --remove-section=.gnu_debuglink "$link" && objcopy --add-gnu-debuglink="$link.debug" "$link")
		announce "$link" "$1 stripped, no build id, with .gnu_debuglink to bin/$link.debug"
	fi
	if ! have "$dir"; then
		id=$(readelf -n "$bin/$1" | sed -n 's/.*Build ID: //p')
		[ -n "$id" ] || return
		mkdir -p "$bin/debug/.build-id/${id:0:2}"
		objcopy --only-keep-debug "$bin/$1" "$bin/debug/.build-id/${id:0:2}/${id:2}.debug" && strip -s -o "$bin/$dir" "$bin/$1"
		announce "$dir" "$1 stripped, debug file in bin/debug/.build-id (--debug-dir bin/debug)"
	fi
}

group_derived() {
	derive mid-gcc5-dwz.so mid-gcc5.so "after dwz" dwz -l 400000000 -L 400000000
	derive mid-gcc4-dwz.so mid-gcc4.so "after dwz" dwz -l 400000000 -L 400000000
	derive mid-clang4-dwz.so mid-clang4.so "after dwz" dwz -l 400000000 -L 400000000
	derive_common mid-gcc4-dwzm.so mid-gcc4.so mid-gcc5-dwzm.so mid-gcc5.so
	derive mid-gcc5-zlib.so mid-gcc5.so "with zlib sections" objcopy --compress-debug-sections=zlib
	derive mid-gcc5-zstd.so mid-gcc5.so "with zstd sections" objcopy --compress-debug-sections=zstd
	derive mid-gcc5-zgnu.so mid-gcc5.so "with .zdebug sections" objcopy --compress-debug-sections=zlib-gnu
	derive mid-gcc5-lto-dwz.so mid-gcc5-lto.so "after dwz" dwz -l 400000000 -L 400000000
	derive_stripped mid-gcc5.so
	derive_stripped mid-clang4.so
	derive z3-dwz z3 "after dwz" dwz -l 400000000 -L 400000000
	derive z3-zlib z3 "with zlib sections" objcopy --compress-debug-sections=zlib
	derive z3-zstd z3 "with zstd sections" objcopy --compress-debug-sections=zstd
	derive rg-dwz rg "after dwz" dwz -l 400000000 -L 400000000
	derive rg-zstd rg "with zstd sections" objcopy --compress-debug-sections=zstd
	derive cargo-dwz cargo "after dwz" dwz -l 400000000 -L 400000000
	derive cargo-zstd cargo "with zstd sections" objcopy --compress-debug-sections=zstd
}

# --- Rust ---

crate() { # NAME WHAT CRATE VERSION BINARY [VAR=VALUE...]
	have "$1" && return
	need cargo || { skip "$1" "cargo is not installed"; return; }
	env CARGO_PROFILE_RELEASE_DEBUG=2 CARGO_PROFILE_RELEASE_STRIP=none CARGO_TARGET_DIR="$work/obj/$1" "${@:6}" \
		cargo install --quiet --locked --jobs "$jobs" --no-track --root "$work/obj/$1.root" "$3" --version "$4" >"$work/log/$1" 2>&1 ||
		{ skip "$1" "cargo install $3: $(grep -m1 error "$work/log/$1")"; return; }
	mv "$work/obj/$1.root/bin/$5" "$bin/$1"
	rm -rf "$work/obj/$1" "$work/obj/$1.root"
	announce "$1" "$2"
}

group_rust() {
	crate rg "ripgrep 14.1.1, release, debug=2" ripgrep 14.1.1 rg
	crate rg-lto "ripgrep 14.1.1, fat LTO, one codegen unit" ripgrep 14.1.1 rg CARGO_PROFILE_RELEASE_LTO=fat CARGO_PROFILE_RELEASE_CODEGEN_UNITS=1
}

group_z3() {
	have z3 && return
	fetch_z3 && configure_z3 || { skip z3 "no sources, cmake, ninja or libsimde-dev ($work/log)"; return; }
	ninja -C "$work/obj/z3" -j"$jobs" shell >"$work/log/z3" 2>&1 && mv "$work/obj/z3/z3" "$bin/z3" ||
		{ skip z3 "did not build ($work/log/z3)"; return; }
	rm -rf "$work/obj/z3/src"
	announce z3 "z3 4.8.12, g++ -O2 -g, DWARF 5"
}

group_cargo() {
	crate cargo "cargo 0.66, release, debug=2" cargo 0.66.0 cargo
}

for group in "$@"; do
	case $group in
	mid | derived | rust | z3 | cargo) "group_$group" ;;
	*) echo "symbol_binaries.sh: there is no group $group" >&2; exit 2 ;;
	esac
done
