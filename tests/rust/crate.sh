#!/bin/bash
# crate.sh : the Rust crate on a real tikv-jemallocator, with its prefix and without, as TAP: one case for each of cargo's tests; and
# the axum example.
#
# HEAPGAUGE is the heapgauge program, LIBRARY where libheapgauge.a is, SOURCE the top of the source tree, TARGET where cargo
# builds. The crates are those of Cargo.lock, from the registry or from where an earlier run put them.
set -u
export LC_ALL=C.UTF-8
unset MALLOC_CONF _RJEM_MALLOC_CONF LD_PRELOAD HEAPGAUGE_LIB_DIR
export HEAPGAUGE PAGE
. "$SOURCE/tests/rust/packages.sh"
scratch=$(mktemp -d)
trap '[ -z "${server:-}" ] || kill "$server"; rm -rf "$scratch"' EXIT
count=0

skip_all() {
	echo "1..0 # SKIP $1"
	exit 0
}

result() {	# STATUS NAME: 0 is ok
	count=$((count + 1))
	if [ "$1" -eq 0 ]; then echo "ok $count - $2"; else echo "not ok $count - $2"; fi
	return "$1"
}

get_crates() {
	command -v cargo >/dev/null || skip_all "cargo is not installed"
	local version
	version=$(rustc --version | sed 's/^rustc 1\.\([0-9]*\)\..*/\1/')
	[ "$version" -ge 82 ] || skip_all "rustc is older than 1.82"
	cd "$SOURCE/bindings/rust" || exit 1
	cargo fetch --locked --offline >/dev/null 2>&1 && return
	timeout 120 cargo fetch --locked >"$scratch/fetch" 2>&1 && return
	if grep -q 'lock file' "$scratch/fetch"; then
		sed 's/^/# /' "$scratch/fetch"
		echo "Bail out! Cargo.lock is not that of Cargo.toml"
		exit 1
	fi
	skip_all "the crates are not here, and the registry can't be reached"
}

# cargo_test WHAT OPTION... : a case for each test that cargo ran.
cargo_test() {
	local what=$1 status
	shift
	cargo test --locked --offline --profile checked --no-fail-fast "$@" >"$scratch/log" 2>&1
	status=$?
	sed -nE 's/^test (.*) \.\.\. (ok|FAILED)$/\2 \1/p' "$scratch/log" >"$scratch/tests"
	while read -r outcome name; do
		[ "$outcome" = ok ]
		result $? "$what: $name"
	done <"$scratch/tests"
	[ $status -eq 0 ] && [ -s "$scratch/tests" ]
	result $? "$what: cargo test"
	[ $status -eq 0 ] || sed 's/^/# /' "$scratch/log"
}

# start CONF : the axum example, its own way but for CONF; $url is where it listens.
start() {
	: >"$scratch/said" # What the one before said goes now, not when the new one is forked.
	_RJEM_MALLOC_CONF=$1 PORT=0 "$scratch/heapgauge-axum" >"$scratch/said" 2>&1 &
	server=$!
	for _ in $(seq 100); do
		url=$(sed -n 's/^listening on //p' "$scratch/said")
		[ -z "$url" ] || return 0
		sleep 0.1
	done
	return 1
}

stop() {
	kill "$server"
	wait "$server"
	server=
}

# fetch FILE PATH : prints the status.
fetch() {
	curl -s -m 30 -o "$1" -w '%{http_code}' "$url$2"
}

# axum_example OPTION... : the README's five lines, and what it says when there is no profile.
axum_example() {
	cargo build --locked --offline --profile checked "$@" >"$scratch/log" 2>&1 || sed 's/^/# /' "$scratch/log"
	cp "$TARGET/checked/heapgauge-axum" "$scratch/" && ln -s "$HEAPGAUGE" "$scratch/heapgauge"
	start "" && [ "$(fetch "$scratch/answer" /leak/65536)" = 200 ]
	result $? "axum: the leak"
	[ "$(fetch "$scratch/heap.pb.gz" /debug/pprof/heap)" = 200 ] &&
		"$HEAPGAUGE" top --json -n 0 "$scratch/heap.pb.gz" |
		python3 -c 'import json, sys
row = [r for r in json.load(sys.stdin)["rows"] if r["name"].endswith("::remember_visit")][0]["cum"]
print("#", row)
assert abs(row["value"] / (65536 * 1024) - 1) < 0.4, row'
	result $? "axum: the profile names it, with about 64 MiB"
	[ "$(fetch "$scratch/heap.svg" /debug/pprof/heap/flamegraph)" = 200 ] && grep -q '<svg.*' "$scratch/heap.svg" &&
		grep -q remember_visit "$scratch/heap.svg"
	result $? "axum: so does the flame graph"
	stop
	start prof_active:false && [ "$(fetch "$scratch/answer" /debug/pprof/heap)" = 403 ] && grep -q activate "$scratch/answer"
	result $? "axum: 403 and the reason when nothing was sampled" || sed 's/^/# /' "$scratch/answer"
	stop
	start prof:false && [ "$(fetch "$scratch/answer" /debug/pprof/heap)" = 403 ] &&
		grep -q _RJEM_MALLOC_CONF= "$scratch/answer"
	result $? "axum: 403 and the variable when profiling is off" || sed 's/^/# /' "$scratch/answer"
	stop
}

get_crates

cargo_test "_rjem_" "${rust_packages[@]}"
axum_example "${rust_packages[@]}"

# Linked with the library of this build instead of one that cargo makes.
export HEAPGAUGE_LIB_DIR=$LIBRARY
# Debian's jemalloc where it is: the crate's own would be compiled a second time, for a minute and a half.
for library in /usr/lib/*/libjemalloc_pic.a; do
	[ ! -f "$library" ] || export JEMALLOC_OVERRIDE=$library
done
cargo_test "no prefix" -p heapgauge-tests --features unprefixed
echo "1..$count"
