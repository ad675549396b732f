#!/bin/sh
# Profiles go between us and google/pprof (its Go package and `go tool pprof`), both ways, and must
# say the same afterwards. Needs Go and the module, which go fetches once and then has.
# Arguments: the pprof_client of this build.
set -u
client=$1
here=$(cd "$(dirname "$0")" && pwd)
PATH=$PATH:/usr/local/go/bin
export LC_ALL=C PATH

skip() {
	echo "1..0 # SKIP $1"
	exit 0
}

command -v go >/dev/null || skip "go is not installed"
(cd "$here/gopprof" && go mod download >/dev/null 2>&1) || skip "go cannot fetch github.com/google/pprof"
(cd "$here/gopprof" && go list -deps . >/dev/null 2>&1) || skip "this go is too old for github.com/google/pprof"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export PPROF_TMPDIR="$work"
n=0
check() {
	n=$((n + 1))
	what=$1
	shift
	if "$@" >"$work/log" 2>&1; then
		echo "ok $n - $what"
	else
		echo "not ok $n - $what"
		head -c 4000 "$work/log" | sed 's/^/# /'
	fi
}

go="$work/gopprof"
in_dirs() {
	for dir; do mkdir "$work/$dir"; done
}
in_dirs go go_ours go_ours_again go_back ours ours_go tool heap heap_ours

check "the Go side builds" sh -c "cd '$here/gopprof' && go vet . && go build -o '$go' ."

# From google/pprof to us, to us again, and back.
check "1,000 profiles are generated in Go" "$go" generate "$work/go" 1000 1
check "we read and write them" "$client" copy "$work/go" "$work/go_ours"
check "google/pprof reads what it gave us" "$go" expect "$work/go" "$work/go_ours"
check "we read and write our own output" "$client" copy "$work/go_ours" "$work/go_ours_again"
check "nothing changes then" "$client" same "$work/go_ours" "$work/go_ours_again"
mkdir "$work/cut"
cp "$work"/go/000[0-4][02468].pb "$work/cut"
check "no cut of a file of google/pprof loses samples unseen" "$client" cut "$work/cut" "$work/cut"
check "google/pprof re-encodes our output" "$go" recode "$work/go_ours" "$work/go_back"
check "nothing is lost then" "$client" same "$work/go_ours" "$work/go_back"

# From our model to google/pprof and back.
check "1,000 profiles of our model are written" "$client" generate "$work/ours" 1000 1
check "google/pprof re-encodes them" "$go" recode "$work/ours" "$work/ours_go"
check "we read what we gave it" "$client" same "$work/ours" "$work/ours_go"

# The tool, on some of them: the program itself where it can be had, not the go command, which looks for changes each time.
pprof=$(go tool -n pprof 2>/dev/null) && [ -x "$pprof" ] || pprof="go tool pprof"
if $pprof -h >/dev/null 2>&1 || [ $? -eq 2 ]; then
	mkdir "$work/some"
	for file in "$work"/ours/000[01]?.pb; do
		cp "$file" "$work/some/"
		$pprof -symbolize=none -proto -output="$work/tool/${file##*/}" "$file" >/dev/null 2>&1
	done
	# Whether it knows columns is asked with files of google/pprof, so that ours could not hide it.
	mkdir "$work/known"
	for file in "$work"/go/0000?.pb; do
		$pprof -symbolize=none -proto -output="$work/known/${file##*/}" "$file" >/dev/null 2>&1
	done
	if "$go" columns "$work/known"; then
		check "go tool pprof -proto loses nothing" "$go" compact "$work/some" "$work/tool"
	else
		n=$((n + 1))
		echo "ok $n - go tool pprof -proto loses nothing # SKIP this one is older than columns, which it drops"
	fi

	# A program's real profile.
	check "a Go program writes its heap profiles" "$go" heap "$work/heap"
	check "we read and write them" "$client" copy "$work/heap" "$work/heap_ours"
	check "they say the same" "$go" expect "$work/heap" "$work/heap_ours"
	for type in alloc_objects alloc_space inuse_objects inuse_space; do
		for file in heap allocs; do
			unit=B
			case $type in *objects) unit=count ;; esac
			$pprof -symbolize=none -top -unit=$unit -nodecount=100000 -nodefraction=0 -sample_index=$type \
				"$work/heap_ours/$file.pb.gz" 2>/dev/null |
				awk 'seen { flat = $1; cum = $4; sub(/B$/, "", flat); sub(/B$/, "", cum); sub(/ \(inline\)$/, "")
					sub(/^[^%]*%[^%]*%[^%]*% +/, ""); print flat, cum, $0 } /flat%/ { seen = 1 }' | sort >"$work/top"
			"$client" totals "$work/heap/$file.pb.gz" $type | sort >"$work/totals"
			check "go tool pprof -top prints our numbers: $file, $type, $(wc -l <"$work/totals") functions" \
				sh -c "test -s '$work/totals' && diff '$work/totals' '$work/top'"
		done
	done
else
	n=$((n + 1))
	echo "ok $n - # SKIP go tool pprof is not part of this go"
fi
echo "1..$n"
