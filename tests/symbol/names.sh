#!/bin/bash
# names.sh SYMBOL-TEST PROGRAMS: builds the fixtures in a temporary folder and runs the C tests on them.
set -u
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
. "$2/kept.sh"

# Into $folder; from where they are kept, if they are.
fixtures() {
	[ -n "${HEAPGAUGE_KEPT:-}" ] || { "$2/fixtures.sh" "$folder"; return; }
	local kept
	kept=$(kept_as fixtures "$2"/* "$(ldconfig -p | awk '/libc\.so\.6/ { print $NF; exit }')")
	(
		flock 9
		[ -e "$kept/made" ] || { rm -rf "$kept" && "$2/fixtures.sh" "$kept" && : >"$kept/made"; }
	) 9>"$kept.lock" && cp -a "$kept/." "$folder/"
}

if ! fixtures "$@" >"$folder/log" 2>&1; then
	echo "Bail out! fixtures: $(tail -1 "$folder/log")"
	exit 1
fi
"$1" "$folder"
