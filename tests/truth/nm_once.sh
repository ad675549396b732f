#!/bin/sh
# nm_once.sh ARGUMENT... : what nm prints for them, asked once and then kept in $NM_KEPT, an empty folder when a test begins. jeprof and google-pprof
# ask four times for each file and run, and nm first loads its plugins each time, LLVM among them.
all=$*

kept_as() {
	IFS=/
	set -f
	set -- $all
	IFS=_
	kept=$NM_KEPT/$*
}

kept_as
unset IFS
[ -e "$kept" ] || { nm "$@" >"$kept.$$" && mv "$kept.$$" "$kept"; } || {
	rm -f "$kept.$$"
	exec nm "$@"
}
exec cat "$kept"
