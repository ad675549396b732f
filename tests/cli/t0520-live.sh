#!/bin/bash
# pid:N of processes whose files are gone, replaced, or only in their own mount namespace.
. "$(dirname "$0")/lib.sh"
[ -n "${GROW_JEMALLOC:-}" ] || skip_all "there is no libjemalloc to link with"
ldconfig -p 2>/dev/null | grep -q 'libcurl[-a-z]*\.so\.4' || skip_all "libcurl is not installed"
unset HEAPGAUGE_TOKEN_FILE HEAPGAUGE_AGENT
jobs_started=()
trap 'kill "${jobs_started[@]}" 2>/dev/null; wait 2>/dev/null; rm -rf "$scratch"' EXIT

# started COMMAND… : in the background, until it says "ready"; its number in $pid.
started() {
	: >ready
	"$@" >ready 2>said </dev/null &
	pid=$!
	jobs_started+=("$pid")
	for _ in $(seq 200); do grep -q ready ready && break; sleep 0.05; done
}

# named NAME [OPTION…] : the profile of $pid has its names, and nothing is said of files.
named() {
	local name=$1
	shift
	runs 0 "$name" heapgauge top --json "$@" "pid:$pid"
	cp out top.json
	json "$name: names" top.json 'row("grow_here")["flat"]["value"] == 500 * 3072'
	json "$name: lines" top.json 'any(r["name"] == "grow_here" for r in d["rows"])'
	unlike "$name: no warning" err "grow"
}
export MALLOC_CONF=prof:true,lg_prof_sample:0

cp "$GROW_JEMALLOC" gone
started ./gone 10 500 wait
rm gone
named "a deleted program, attach"
cp "$GROW_GLIBC" gone
named "a replaced program, attach"
named "a replaced program, by line" --by line --sort cum
kill "$pid"

cp "$GROW_JEMALLOC" gone2
started "$HEAPGAUGE" run -d dumps --rate 1 -- ./gone2 10 500 wait
pid=$(pgrep -P "$pid")
cp "$GROW_GLIBC" other && mv other gone2
named "a replaced program, endpoint"
kill "$pid"

if unshare --mount --propagation private true 2>/dev/null; then
	mkdir inside
	# shellcheck disable=SC2016
	within='mount -t tmpfs none inside && cp "$0" inside/grow && shift && exec'
	started unshare --mount --propagation private sh -c "$within"' ./inside/grow 10 500 wait' "$GROW_JEMALLOC" -
	is "the program is not to be seen here" "$(ls inside)" ""
	named "another mount namespace, attach"
	cp "$GROW_GLIBC" inside/grow
	named "another mount namespace, where that path is another program here"
	kill "$pid"
	rm inside/grow
	started unshare --mount --propagation private sh -c "$within"' "$@"' "$GROW_JEMALLOC" - \
		"$HEAPGAUGE" run -d dumps --rate 1 --listen "unix:$scratch/inside/sock" -- ./inside/grow 10 500 wait
	pid=$(pgrep -P "$pid")
	is "its socket is not to be seen here" "$(ls inside)" ""
	named "another mount namespace, endpoint"
	runs 0 "another mount namespace: doctor" heapgauge doctor "$pid"
	like "another mount namespace: doctor asks the endpoint" out "^endpoint +yes +unix:$scratch/inside/sock"
	kill "$pid"
else
	skip "another mount namespace" "not permitted"
fi
done_testing
