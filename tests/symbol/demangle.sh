#!/bin/bash
# Every function name of some libraries: c++filt says the same.
set -u
demangle=$1
n=0

# same NAME STYLE LIBRARY… : of the first that there is.
same() {
	local name=$1 style=$2 library kind names
	n=$((n + 1))
	shift 2
	for library in "$@"; do
		[ -f "$library" ] || continue
		[ "$style" = dlang ] && kind=D || kind=ZR
		names=$({ nm "$library"; nm -D "$library"; } 2>/dev/null | awk 'NF > 2 { sub("@.*", "", $3); print $3 }' |
			grep "^_[$kind]" | grep -vE '\.(cold|part|isra|constprop|llvm|lto_priv|localalias)' | awk 'length($0) <= 1000' | sort -u | head -n 50000)
		[ "$(wc -l <<<"$names")" -gt 100 ] || continue
		if cmp -s <("$demangle" filter <<<"$names") <(c++filt -i -s "$style" <<<"$names"); then
			echo "ok $n - $name: $(wc -l <<<"$names") names as c++filt has them"
		else
			echo "not ok $n - $name: names as c++filt has them"
			diff <("$demangle" filter <<<"$names") <(c++filt -i -s "$style" <<<"$names") | head -n 6 | sed 's/^/# /'
		fi
		return
	done
	echo "ok $n - $name # SKIP there is no such library"
}

command -v c++filt >/dev/null || { echo "1..0 # SKIP c++filt is not installed"; exit 0; }
shopt -s nullglob
same "C++" auto "$(gcc -print-file-name=libstdc++.so)" /usr/lib/*/libstdc++.so.6
same "C++, big" auto /usr/lib/llvm-14/lib/libLLVM-14.so.1
sysroot=$(rustc --print sysroot 2>/dev/null)
same "Rust" auto "${sysroot:-/nowhere}"/lib/librustc_driver-*.so
same "Rust's library" auto "${sysroot:-/nowhere}"/lib/rustlib/*/lib/libstd-*.so
same "D" dlang /usr/lib/*/libgphobos.so.* /usr/lib/*/libphobos2-ldc-shared.so.*
echo "1..$n"
