#!/usr/bin/env python3
"""summary.py NAME=testlog.json... : counts the test cases in Meson's logs.

A test that speaks TAP counts with each of its cases; any other counts as one. A test that
Meson calls failed without a failed case of its own (a crash, a timeout) counts as one more failure.
Prints failed cases, skipped cases with reasons, and the line "N passed, N failed, N skipped".
"""
import json
import re
import sys

TAP = re.compile(r'^(ok|not ok)\b\s*(\d*)\s*(?:-\s*)?(.*)$')
DIRECTIVE = re.compile(r'#\s*(SKIP|TODO)\S*\s*(.*)$', re.I)
PLAN_SKIP = re.compile(r'^1\.\.0\s*#\s*skip\S*\s*(.*)$', re.I)


def cases_of(test):
    """The (result, name, reason) of each case in the test's TAP output."""
    for line in test.get('stdout', '').splitlines():
        none = PLAN_SKIP.match(line)
        if none:
            yield 'skip', '', none.group(1)
            continue
        case = TAP.match(line)
        if not case:
            continue
        name, reason = case.group(3), ''
        directive = DIRECTIVE.search(name)
        if directive:
            name, reason = name[:directive.start()].strip(), directive.group(2)
            if directive.group(1).upper() == 'SKIP':
                yield 'skip', name, reason
                continue
            if case.group(1) == 'not ok':
                yield 'skip', name, 'known to fail: ' + reason
                continue
        yield ('pass' if case.group(1) == 'ok' else 'fail'), name, reason


def count(run, path, totals, failures, skips):
    with open(path, encoding='utf-8', errors='replace') as log:
        tests = [json.loads(line) for line in log if line.strip()]
    if not tests:
        totals['fail'] += 1
        failures.append(f'{run}: no test ran')
    for test in tests:
        where = f"{run}: {test['name'].split(' / ')[-1]}"
        result = test['result']
        cases = list(cases_of(test))
        if not cases:
            kind = {'OK': 'pass', 'EXPECTEDFAIL': 'pass', 'SKIP': 'skip'}.get(result, 'fail')
            cases = [(kind, '', 'no reason given' if kind == 'skip' else result.lower())]
        elif result not in ('OK', 'SKIP', 'EXPECTEDFAIL') and all(c[0] != 'fail' for c in cases):
            cases.append(('fail', '', f'{result.lower()}, exit status {test.get("returncode")}'))
        for kind, name, reason in cases:
            totals[kind] += 1
            line = where + (f': {name}' if name else '') + (f' ({reason})' if reason else '')
            if kind == 'fail':
                failures.append(line)
            elif kind == 'skip':
                skips.append(line)


def main():
    totals = {'pass': 0, 'fail': 0, 'skip': 0}
    failures, skips = [], []
    for argument in sys.argv[1:]:
        run, _, path = argument.partition('=')
        count(run, path, totals, failures, skips)
    for title, lines in (('skipped', skips), ('failed', failures)):
        if lines:
            print(f'\n{title}:')
            for line in lines:
                print('  ' + line)
    print()
    print(f"{totals['pass']} passed, {totals['fail']} failed, {totals['skip']} skipped")
    return 1 if totals['fail'] or not totals['pass'] else 0


if __name__ == '__main__':
    sys.exit(main())
