#!/bin/bash
# The last lines of `make check`: made-up logs of Meson, and what must be counted in them.
set -u
root=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
n=0

# counts NAME STATUS LAST-LINE EXPECTED-IN-OUTPUT : of the log lines on standard input.
counts() {
	local out status
	cat >"$work/log"
	out=$(python3 "$root/scripts/summary.py" "run=$work/log" 2>&1)
	status=$?
	n=$((n + 1))
	if [ $status -eq "$2" ] && [ "$(tail -n 1 <<<"$out")" = "$3" ] && grep -qF -- "$4" <<<"$out"; then
		echo "ok $n - $1"
	else
		echo "not ok $n - $1"
		sed 's/^/# /' <<<"exit $status: $out"
	fi
}

counts "cases of TAP, one for other tests" 0 "4 passed, 0 failed, 0 skipped" "" <<'E'
{"name": "quick / a", "result": "OK", "stdout": "1..3\nok 1 - x\nok 2 - y # not a directive\nok 3\n# ok - tests\n"}
{"name": "quick / b", "result": "OK", "stdout": "ok, this is no TAP\n"}
E
counts "failed cases" 1 "1 passed, 1 failed, 0 skipped" "run: a: y" <<'E'
{"name": "quick / a", "result": "FAIL", "returncode": 1, "stdout": "ok 1 - x\nnot ok 2 - y\n1..2\n"}
E
counts "a crash after good cases" 1 "1 passed, 1 failed, 0 skipped" "run: a (error, exit status 139)" <<'E'
{"name": "quick / a", "result": "ERROR", "returncode": 139, "stdout": "1..2\nok 1 - x\n"}
E
counts "a test without cases that fails" 1 "0 passed, 1 failed, 0 skipped" "run: a (timeout)" <<'E'
{"name": "quick / a", "result": "TIMEOUT", "returncode": -15}
E
counts "skipped cases with reasons" 0 "1 passed, 0 failed, 2 skipped" "run: a: y (no cake # today)" <<'E'
{"name": "quick / a", "result": "OK", "stdout": "ok 1 - x\nok 2 - y # SKIP no cake # today\nok 3 - z # skip\n"}
E
counts "a test skipped whole" 0 "1 passed, 0 failed, 1 skipped" "run: a (no cake)" <<'E'
{"name": "quick / a", "result": "SKIP", "stdout": "1..0 # SKIP no cake\n"}
{"name": "quick / b", "result": "OK"}
E
counts "known failures are not passes" 0 "1 passed, 0 failed, 1 skipped" "known to fail: later" <<'E'
{"name": "quick / a", "result": "OK", "stdout": "ok 1 - x\nnot ok 2 - y # TODO later\n"}
E
counts "no test at all" 1 "0 passed, 1 failed, 0 skipped" "no test ran" </dev/null
counts "only skips" 1 "0 passed, 0 failed, 1 skipped" "nobody home" <<'E'
{"name": "quick / a", "result": "SKIP", "stdout": "1..0 # SKIP nobody home\n"}
E
echo "1..$n"
