#!/bin/bash
# PROFILEs over HTTP: addresses, tokens, and everything that can go wrong on the way.
. "$(dirname "$0")/lib.sh"
[ -n "${GROW_JEMALLOC:-}" ] || skip_all "there is no libjemalloc to link with"
ldconfig -p 2>/dev/null | grep -q 'libcurl[-a-z]*\.so\.4' || skip_all "libcurl is not installed"
tests=$(dirname "$0")
servers=()
trap 'kill "${servers[@]}" 2>/dev/null; rm -rf "$scratch"' EXIT
unset HEAPGAUGE_TOKEN_FILE http_proxy https_proxy all_proxy no_proxy

dump grow 0 '' 10 500
# serve ADDRESS : the server's port in $port.
serve() {
	rm -f ready             # of the one before
	python3 "$tests/serve.py" "$1" "$dumped" log >ready &
	servers+=($!)
	for _ in $(seq 200); do grep -q ready ready 2>/dev/null && break; sleep 0.05; done
	port=$(sed -n 's/^ready //p' ready)
}
serve /"$scratch"/sock
serve 0
http=http://127.0.0.1:$port

# shows NAME PROFILE REQUEST [OPTION…] : the dump's numbers, by way of that request.
shows() {
	local name=$1 profile=$2 request=$3
	shift 3
	: >log
	runs 0 "$name" heapgauge top --json "$@" "$profile"
	cp out top.json
	json "$name: what grow_here holds" top.json 'row("grow_here")["flat"]["value"] == 500 * 3072'
	is "$name: what was asked for" "$(cat log)" "$request"
}
shows "a host" "$http" "/debug/pprof/heap None 127.0.0.1:$port"
shows "a host and a slash" "$http/" "/debug/pprof/heap None 127.0.0.1:$port"
shows "a host and a query" "$http?seconds=1" "/debug/pprof/heap?seconds=1 None 127.0.0.1:$port"
shows "a path" "$http/elsewhere?x=%20" "/elsewhere?x=%20 None 127.0.0.1:$port"
shows "a name" "http://localhost:$port" "/debug/pprof/heap None localhost:$port"
shows "a socket" "unix:$scratch/sock" "/debug/pprof/heap None localhost"
shows "a socket and a query" "unix:$scratch/sock?seconds=1" "/debug/pprof/heap?seconds=1 None localhost"
shows "a socket and a path" "unix:$scratch/sock?/elsewhere?a=b" "/elsewhere?a=b None localhost"
http_proxy=http://127.0.0.1:1 shows "no proxy for this machine" "$http" "/debug/pprof/heap None 127.0.0.1:$port"
json "the source is the address, and its time is now" top.json \
	'd["sources"][0]["name"] == "'"$http"'" and d["sources"][0]["time"] is not None'

deep=$scratch/$(printf 'folder-%.0s' $(seq 20))
mkdir "$deep"
(cd "$deep" && exec python3 "$(readlink -f "$tests")/serve.py" sock "$scratch/$dumped" "$scratch/log" >ready) &
servers+=($!)
for _ in $(seq 200); do grep -q ready "$deep/ready" 2>/dev/null && break; sleep 0.05; done
shows "a socket with a long path" "unix:$deep/sock" "/debug/pprof/heap None localhost"

echo 0123456789abcdef >token && chmod 600 token
shows "--token-file" "$http" "/debug/pprof/heap Bearer 0123456789abcdef 127.0.0.1:$port" --token-file token
HEAPGAUGE_TOKEN_FILE=token shows "HEAPGAUGE_TOKEN_FILE" "unix:$scratch/sock" "/debug/pprof/heap Bearer 0123456789abcdef localhost"
fails "a token that is not there" "nowhere: can.t read the token" heapgauge top --token-file nowhere "$http"
chmod 644 token
misused "a token that others can read" "token: " heapgauge top --token-file token "$http"

runs 0 "a difference to a file" heapgauge diff --json "$dumped" "$http"
cp out diff.json
json "a difference to a file: nothing changed" diff.json 'd["total"]["change"] == 0'
runs 0 "--base" heapgauge top --json --base "$http" "$dumped"

# Errors: one line with the address and what the other side said.
fails "what the endpoint says" "$http/inactive: answers 403: nothing is being sampled: activate it$" heapgauge top "$http/inactive"
fails "what it says is made harmless" 'red .x1b\[31m text$' heapgauge top "$http/escape"
fails "a page is not quoted" "answers 503$" heapgauge top "$http/page"
fails "nothing there" "answers 404: there is nothing" heapgauge top "$http/nothing"
fails "no redirects" "answers that it is at http://127.0.0.1:$port/debug/pprof/heap: give that" heapgauge top "$http/moved"
fails "cut" "cut: the other side closed the connection before the answer was whole" heapgauge top "$http/cut"
fails "too large" "huge: the answer is larger than 1024 MiB" heapgauge top "$http/huge"
fails "no profile" "$http/text: " heapgauge top "$http/text"
fails "nobody listens" "127.0.0.1:1: cannot connect: Connection refused .does the program run" heapgauge top http://127.0.0.1:1
fails "no socket" "cannot connect: No such file" heapgauge top unix:/nowhere/sock
fails "a password is not shown" "http://127.0.0.1:1/x: cannot" heapgauge top http://me:secret@127.0.0.1:1/x
unlike "a password is not shown: nowhere" err "secret"
misused "a socket without its full path" "unix:sock: give the full path" heapgauge top unix:sock
misused "no host" "http:///x: this is no address" heapgauge top http:///x
misused "a blank" "an address has no blanks" heapgauge top "$http/a b"
misused "no process number" "pid:x: give the number of a process" heapgauge top pid:x
misused "process 0" "pid:0: give the number" heapgauge top pid:0
runs 1 "another protocol is a file's name" heapgauge top ftp://127.0.0.1/x
like "another protocol is a file's name: says so" err "ftp://127.0.0.1/x: .*No such file"

"$HEAPGAUGE" top "$http/slow" >out 2>err &
job=$!
for _ in $(seq 100); do grep -q slow log && break; sleep 0.05; done
kill -TERM "$job"
wait "$job"
is "a signal ends the waiting" "$?" 143

# A library that can't be loaded.
mkdir broken && : >broken/libcurl.so.4 && : >broken/libcurl-gnutls.so.4
LD_LIBRARY_PATH=broken fails "without libcurl" "fetching needs libcurl, .*apt install libcurl4" heapgauge top "$http"
LD_LIBRARY_PATH=broken runs 0 "without libcurl files are read" heapgauge top "$dumped"
done_testing
