#!/bin/bash
# Outputs appear whole or not at all, and a failure to write is a failure.
. "$(dirname "$0")/lib.sh"
[ -n "${GROW_JEMALLOC:-}" ] || skip_all "there is no libjemalloc to link with"
dump real 12 '' 500 500

heapgauge top "$dumped" >/dev/full 2>err
is "standard output on a full disk: exit status, lines" "$? $(wc -l <err)" "1 1"
like "standard output on a full disk: why" err '^heapgauge: standard output: cannot write: No space left'
fails "-o into a full device" "/dev/full: cannot write: No space left" heapgauge top -o /dev/full "$dumped"
fails "-o into no folder" "nowhere/x: cannot create: No such file" heapgauge top -o nowhere/x "$dumped"
mkdir folder
fails "-o onto a folder" "folder is a directory" heapgauge top -o folder "$dumped"
heapgauge top "$dumped" >&- 2>err
is "no standard output: exit status, lines" "$? $(wc -l <err)" "1 1"

# A full file system: a small one where one may mount it, else a limit on file size.
if mkdir full && mount -t tmpfs -o size=16k none full 2>/dev/null; then
	trap 'umount "$scratch/full"; rm -rf "$scratch"' EXIT
	fails "-o on a full file system" "full/x.svg: cannot write: No space left" heapgauge flame -o full/x.svg "$dumped"
	is "-o on a full file system: nothing is left" "$(ls -A full)" ""
	echo before >full/y.svg
	fails "-o over a file on a full file system" "full/y.svg: cannot write" heapgauge flame -o full/y.svg "$dumped"
	is "the file that was there is untouched" "$(cat full/y.svg)" before
	umount full
	trap 'rm -rf "$scratch"' EXIT
else
	skip "-o on a full file system" "no right to mount one"
fi
# File size limits come with a signal; ignored, they are an error like a full disk.
(
	trap '' XFSZ
	ulimit -f 4
	"$HEAPGAUGE" flame -o limited.svg "$dumped" >out 2>err
	echo $? >status
)
is "-o past the file size limit: exit status, lines" "$(cat status) $(wc -l <err)" "1 1"
[ ! -e limited.svg ]
ok $? "-o past the file size limit: no file"

echo before >old.txt
ln -s old.txt link.txt
runs 0 "-o through a link" heapgauge top -o link.txt "$dumped"
[ -L link.txt ] && grep -q grow_here old.txt
ok $? "-o through a link: the link stays, its file is new"
runs 0 "-o - is standard output" heapgauge top -o - "$dumped"
like "-o - is standard output: it is there" out grow_here
runs 0 "-o /dev/null" heapgauge top -o /dev/null "$dumped"
heapgauge top "$dumped" | head -n 1 >out
like "a reader that stops early" out '^File'
is "nothing left behind" "$(find . -name '.heapgauge*' -o -name '*.tmp')" ""
done_testing
