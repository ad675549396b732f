#!/bin/bash
# Signals that come while a process is attached to are neither lost, nor doubled, nor do they make calls fail.
. "$(dirname "$0")/../cli/lib.sh"
. "$(dirname "$0")/lib.sh"
may_trace
visits=${ATTACH_VISITS:-100}
for mode in queue wake children; do
	start "$SIGNALS" "$mode"
	for way in w d; do
		"$VISIT" "$pid" $way "$visits" >visit
		ok $? "$mode: $visits visits ($way)"
		diagnose visit
	done
	stop
	ok $? "$mode: all counts agree"
	diagnose output
done
done_testing
