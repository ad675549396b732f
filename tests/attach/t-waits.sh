#!/bin/bash
# Programs that wait in a system call see nothing of being attached to: no EINTR, no wait that ends early.
. "$(dirname "$0")/../cli/lib.sh"
. "$(dirname "$0")/lib.sh"
may_trace
visits=${ATTACH_VISITS:-100}
for mode in read poll poll_limit select epoll epoll_limit nanosleep futex accept recv_limit sigtimedwait semop msgrcv; do
	start "$WAITS" "$mode"
	"$VISIT" "$pid" w "$visits" >visit
	ok $? "$mode: $visits visits"
	diagnose visit
	stop
	ok $? "$mode: no EINTR, nothing early"
	diagnose output
done

# Without a restart by hand a wait in epoll_wait would have seen it: the counting itself is seen to count.
start "$WAITS" epoll
kill -STOP "$pid"; sleep 0.1; kill -CONT "$pid"; sleep 0.1
! stop
ok $? "epoll: SIGSTOP and SIGCONT do give an EINTR, and it is counted"
grep -q 'eintr=1 ' output
ok $? "epoll: as one" || diagnose output
done_testing
