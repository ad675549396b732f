#!/bin/bash
# The manual pages and the options' tables say the same.
. "$(dirname "$0")/lib.sh"
man=$SOURCE/man

page() {
	awk -v directory="$man" -f "$man/include.awk" "$man/heapgauge-$1.1.scd"
}

for command in $(heapgauge help --words); do heapgauge help --words "$command"; done | tr ' ' '\n' | sort -u >any

for command in $(heapgauge help --words); do
	[ -f "$man/heapgauge-$command.1.scd" ]
	ok $? "$command has a page" || continue
	page "$command" >page
	grep -oE '^(\*-.\*, )?\*--[a-z-]+\*' page | grep -oE -- '--[a-z-]+' | sort >documented
	heapgauge help --words "$command" | tr ' ' '\n' | grep -vx -- --help | sort >real
	cmp -s documented real
	ok $? "$command: page and table have the same options" || diff documented real | diagnose
	heapgauge help "$command" | grep -oE '^ .{5,6}--[a-z-]+|^  -., --[a-z-]+' | grep -oE -- '--[a-z-]+' | sort >help
	cmp -s help real
	ok $? "$command: help and table have the same options" || diff help real | diagnose
	# Words of a choice, too: the page gives them as the help does.
	heapgauge help "$command" | grep -oE -- '--[a-z-]+ [a-z]+\|[a-z|]+' | while read -r option words; do
		grep -qF -- "*$option* $words" page || echo "$option $words"
	done >missing
	[ ! -s missing ]
	ok $? "$command: choices are the same" || diagnose missing
	grep -q '^# EXAMPLES' page && grep -A3 '^# EXAMPLES' page | grep -q .
	ok $? "$command: there is an example"
	grep -qE "^\*heapgauge-$command\*\(1\)" "$man/heapgauge.1.scd"
	ok $? "$command: heapgauge(1) names it"
	if command -v scdoc >/dev/null; then
		scdoc <page >roff 2>scdoc-err && grep -q '^\.SH OPTIONS\|^\.SH SYNOPSIS' roff
		ok $? "$command: scdoc takes the page" || diagnose scdoc-err
	else
		skip "$command: scdoc takes the page" "scdoc is not installed"
	fi
	# Options in the examples exist.
	sed -n '/^# EXAMPLES/,/^# SEE/p' page | grep -E '^heapgauge ' | sed 's/ -- .*//' |
		grep -oE -- ' --[a-z-]+' | sort -u | while read -r option; do
		grep -qx -- "$option" any || echo "$option"
	done >missing
	[ ! -s missing ]
	ok $? "$command: options in examples exist" || diagnose missing
done
done_testing
