#!/bin/bash
# symbolize: names for a profile that has none, in and out of the sandbox, in every form.
. "$(dirname "$0")/lib.sh"
[ -n "${GROW_JEMALLOC:-}" ] || skip_all "there is no libjemalloc to link with"
dump exact 0 '' 2000 700
grown=$((700 * 3072))
heapgauge convert --raw -o raw.pb.gz "$dumped"
heapgauge top --symbols none raw.pb.gz >out
unlike "the profile has no names before" out grow_here

runs 0 "pprof is the default" heapgauge symbolize raw.pb.gz
cp out named.pb.gz
heapgauge top --symbols none --json named.pb.gz >out
json "pprof: named, with the same figures" out "row('grow_here')['flat']['value'] == $grown"
heapgauge top --symbols none --by line named.pb.gz >out
like "pprof: with lines" out 'grow\.c:[0-9]+'
heapgauge symbolize -o file.pb.gz raw.pb.gz
cmp -s file.pb.gz named.pb.gz
ok $? "-o: the same bytes"
heapgauge symbolize "$dumped" >out && cmp -s out <(heapgauge convert "$dumped")
ok $? "a dump is a profile, too: what convert makes of it"

for format in pprof folded svg html text json; do
	heapgauge symbolize --to $format - <raw.pb.gz >plain.$format
	runs_sandboxed="--to $format, sandboxed, from standard input"
	heapgauge symbolize --sandbox --to $format - <raw.pb.gz >boxed.$format 2>err
	ok $? "$runs_sandboxed" || diagnose err
	[ ! -s err ] || grep -q 'this kernel has no\|seccomp refused' err
	ok $? "$runs_sandboxed: no other warning" || diagnose err
	cmp -s plain.$format boxed.$format
	ok $? "$runs_sandboxed: the same bytes as without"
done
for format in folded svg html text json; do
	like "--to $format: with names" boxed.$format grow_here
done
for format in folded svg html json; do
	heapgauge convert --to $format - <raw.pb.gz | cmp -s - boxed.$format
	ok $? "--to $format: as convert has it"
done
heapgauge top - <raw.pb.gz | cmp -s - boxed.text
ok $? "--to text: as top has it"
heapgauge symbolize --sandbox --to folded <(cat raw.pb.gz) | cmp -s - boxed.folded
ok $? "sandboxed: from a pipe by name"
heapgauge symbolize --sandbox --to folded raw.pb.gz | cmp -s - boxed.folded
ok $? "sandboxed: from a file"
runs 0 "filters apply to the forms that are views" heapgauge symbolize --sandbox --to folded --focus stay_here raw.pb.gz
unlike "filters apply to the forms that are views: only those" out grow_here
misused "filters have no meaning for pprof" "--focus has no meaning for pprof" heapgauge symbolize --focus x raw.pb.gz

# The page: nothing from elsewhere, its policy before anything that acts, the title harmless.
heapgauge symbolize --to html --title '<script>x</script>' raw.pb.gz >page.html
like "html: a page" <(head -n 1 page.html) '^<!DOCTYPE html>$'
like "html: its policy" page.html "Content-Security-Policy.*default-src 'none'"
[ "$(grep -n Content-Security-Policy page.html | cut -d: -f1 | head -n 1)" -lt "$(grep -n '<script' page.html | cut -d: -f1 | head -n 1)" ]
ok $? "html: its policy comes first"
unlike "html: nothing is loaded" page.html '(src|href)='
like "html: the title is text" page.html '<title>&lt;script&gt;x&lt;/script&gt;</title>'
[ "$(grep -c '<script>' page.html)" -eq 1 ]
ok $? "html: one script"
heapgauge flame --to html - <raw.pb.gz | cmp -s - boxed.html
ok $? "flame --to html: the same page"
heapgauge flame -o flame.html - <raw.pb.gz && cmp -s flame.html boxed.html
ok $? "flame -o: a file's suffix .html means html"

# What the sandbox forbids, and what does not work in it.
misused "sandboxed: -o" "--sandbox forbids making files" heapgauge symbolize --sandbox -o no.pb.gz raw.pb.gz
[ ! -e no.pb.gz ]
ok $? "sandboxed: -o: no file"
misused "--memory-limit without --sandbox" "belongs to --sandbox" heapgauge symbolize --memory-limit 1G raw.pb.gz
fails "sandboxed: a damaged profile" "truncated|ends|corrupt|cut" \
	heapgauge symbolize --sandbox <(head -c 300 raw.pb.gz)
fails "sandboxed: no such file" "nowhere: cannot open" heapgauge symbolize --sandbox nowhere
if heapgauge symbolize --sandbox --to text raw.pb.gz 2>&1 >/dev/null | grep -q Landlock; then
	skip "sandboxed: a profile in /proc" "this kernel has no Landlock"
else
	fails "sandboxed: a profile in /proc" "cannot open: Permission denied" heapgauge symbolize --sandbox /proc/version
fi
# No address space for the binaries' debug information: names are missing, or libdw ends or aborts the process; no hang,
# nothing half done.
if nm -D "$HEAPGAUGE" 2>/dev/null | grep -q __asan; then
	skip "sandboxed: too little memory" "not under a sanitizer"
else
	timeout 60 "$HEAPGAUGE" symbolize --sandbox --memory-limit 40M --to folded raw.pb.gz >out 2>err
	case $? in
	0) [ "$(grep -c . out)" -eq "$(grep -c . boxed.folded)" ] && [ -s err ] ;;
	1 | 134) [ ! -s out ] && [ -s err ] ;;
	*) false ;;
	esac
	ok $? "sandboxed: too little memory" || diagnose err
fi

# Under strace: what was given up before the profile was read.
if command -v strace >/dev/null && strace -f -o trace true 2>/dev/null; then
	ASAN_OPTIONS=detect_leaks=0 strace -f -o trace "$HEAPGAUGE" symbolize --sandbox raw.pb.gz >out 2>err
	awk '/PR_SET_SECCOMP/ { entered = 1 } /"raw.pb.gz"/ && !/execve/ { exit !entered }' trace
	ok $? "sandboxed: before the profile is opened"
	unlike "sandboxed: nothing is killed" trace 'SIGSYS'
else
	skip "sandboxed: before the profile is opened" "strace is not installed, or may not trace"
fi
done_testing
