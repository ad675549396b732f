#!/bin/bash
# What is not a profile, or not a whole one: exit 1, one line that names the file, nothing written.
. "$(dirname "$0")/lib.sh"
[ -n "${GROW_JEMALLOC:-}" ] || skip_all "there is no libjemalloc to link with"
dump real 12 '' 50 50
heapgauge convert -o real.pb.gz "$dumped"

: >empty
fails "an empty file" "empty: .*empty" heapgauge top empty
fails "an empty standard input" "standard input: .*empty" heapgauge top -
fails "a missing file" "missing: cannot open: No such file" heapgauge top missing
mkdir folder
fails "a directory" "folder is a directory" heapgauge top folder
head -c 100000 /dev/urandom >junk
fails "junk" "junk: " heapgauge top junk
fails "a program" "sh: " heapgauge top "$(readlink -f /bin/sh)"
echo 'some words in a text file' >words
fails "a text" "words: " heapgauge top words
if [ "$(id -u)" -ne 0 ]; then
	cp real.pb.gz closed && chmod 000 closed
	fails "a file one may not read" "closed: cannot open: Permission denied" heapgauge top closed
else
	skip "a file one may not read" "root may read everything"
fi
fails "a file one cannot read" "/proc/self/mem: cannot read" heapgauge top /proc/self/mem

head -c 3000 "$dumped" >cut.heap
fails "a cut dump" "cut.heap.*(cut|trunc|end)" heapgauge top cut.heap
runs 0 "a cut dump with --partial" heapgauge top --partial cut.heap
like "a cut dump with --partial: a warning" err "^heapgauge: warning: .*cut.heap"
head -c $(($(stat -c %s real.pb.gz) / 2)) real.pb.gz >cut.pb.gz
fails "a cut gzip" "cut.pb.gz" heapgauge top cut.pb.gz
gzip -dc real.pb.gz | head -c 500 >cut.pb
fails "a cut pprof" "cut.pb" heapgauge top cut.pb
{ cat real.pb.gz; echo more; } >tail.pb.gz
fails "a gzip with something behind it" "tail.pb.gz" heapgauge top tail.pb.gz
cp real.pb.gz flipped.pb.gz
printf '\377\377' | dd of=flipped.pb.gz bs=1 seek=$(($(stat -c %s real.pb.gz) - 8)) conv=notrunc 2>/dev/null
fails "a gzip with a wrong checksum" "flipped.pb.gz" heapgauge top flipped.pb.gz
# 1 GiB of zeros in 1 MB: sixteen members of 64 MiB.
head -c 64M /dev/zero | gzip >member
for _ in $(seq 16); do cat member; done >bomb
rm member
fails "a gzip bomb" "bomb: " heapgauge top bomb
head -c 64M /dev/zero | gzip -9 | cat - <(head -c 64M /dev/zero | gzip) | heapgauge top - >out 2>err
complains $? 1 1 "a gzip bomb on standard input" "standard input: "
sed 's/^\(  t\*: [0-9]*\): [0-9]*/\1: 99999999999999999999999/' "$dumped" >number.heap
fails "a number past 64 bits" "number.heap: line 2" heapgauge top number.heap
sed '3s/.*/@ 0xzz/' "$dumped" >address.heap
fails "an address that is none" "address.heap: line 3" heapgauge top address.heap

for command in top tree traces flame convert 'convert --to folded' 'convert --to svg'; do
	rm -f result
	fails "$command of a cut dump: an error" "cut.heap" heapgauge $command -o result cut.heap
	[ ! -e result ]
	ok $? "$command of a cut dump: no output file"
done
echo before >result
fails "diff with a bad base" "empty" heapgauge diff -o result empty "$dumped"
fails "diff with a bad profile" "empty" heapgauge diff -o result "$dumped" empty
fails "--base with a bad file" "missing: cannot open" heapgauge top --base missing -o result "$dumped"
fails "--merge with a bad file" "junk" heapgauge top --merge -o result "$dumped" junk
is "the file that was there is untouched" "$(cat result)" before

# Binaries: gone, unreadable, replaced: a warning, and the rest of the report.
cp "$GROW_JEMALLOC" program
GROW_JEMALLOC=$scratch/program dump own 0 '' 2000 700
mv program old-program
runs 0 "the binary is gone" heapgauge top "$dumped"
like "the binary is gone: a warning names it" err "^heapgauge: warning: .*program"
like "the binary is gone: frames by offset" out "program!0x"
cp "$GROW_GLIBC" program
runs 0 "the binary was rebuilt" heapgauge top "$dumped"
like "the binary was rebuilt: a warning, even when its segments fit" err "^heapgauge: warning: .*program was changed after"
rm program
cp "$(readlink -f /bin/sh)" program
touch -d '2020-01-01' program
runs 0 "the binary was replaced" heapgauge top "$dumped"
like "the binary was replaced: a warning names it" err "^heapgauge: warning: .*program"
unlike "the binary was replaced: no names from the wrong one" out "grow_here|stay_here"
heapgauge convert --raw -o named.pb.gz --binary old-program "$dumped"
runs 0 "the binary has another build id" heapgauge top named.pb.gz
like "the binary has another build id: a warning names it" err "^heapgauge: warning: .*program"
unlike "the binary has another build id: no names from the wrong one" out "grow_here|stay_here"
rm program
head -c 300 "$GROW_JEMALLOC" >program
runs 0 "the binary is damaged" heapgauge top "$dumped"
like "the binary is damaged: a warning names it" err "^heapgauge: warning: .*program"
rm program
mkdir program
runs 0 "the binary is a folder" heapgauge top "$dumped"
like "the binary is a folder: a warning names it" err "^heapgauge: warning: .*program"

# Names that would act on a terminal.
printf 'main;ev\033[31mil;\302\233x\n 3\nmain;ev\033[31mil 5\n' >names.folded
heapgauge top names.folded >out 2>err
unlike "escape sequences in names do not get out" out $'\e|\302\233'
unlike "nor in messages" err $'\e|\302\233'
heapgauge top $'missing\e[31m' >out 2>err
unlike "nor those in file names" err $'\e'
done_testing
