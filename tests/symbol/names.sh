#!/bin/bash
# names.sh SYMBOL-TEST PROGRAMS: builds the fixtures in a temporary folder and runs the C tests on them.
set -u
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
if ! "$2/fixtures.sh" "$folder" >"$folder/log" 2>&1; then
	echo "Bail out! fixtures: $(tail -1 "$folder/log")"
	exit 1
fi
"$1" "$folder"
