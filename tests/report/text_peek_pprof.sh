#!/bin/bash
# peek's callers and callees against `go tool pprof -peek`, on random stacks with recursion.
# Usage: text_peek_pprof.sh HEAPGAUGE
set -u
heapgauge=$1
if ! command -v go >/dev/null || ! go tool pprof -h >/dev/null 2>&1; then
	echo "1..0 # SKIP no go tool pprof"
	exit 0
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

python3 - "$work/in.folded" <<'PY'
import random, sys
random.seed(4)
with open(sys.argv[1], 'w') as f:
    for i in range(400):
        f.write(';'.join('f%d' % random.choice([0, 1, 2, 3, 4, 4, 5, 6, 7, 8, 9, 10, 11])
                         for _ in range(random.randint(1, 12))) + ' %d\n' % random.randint(1, 100000))
PY

"$heapgauge" convert --to pprof -o "$work/in.pb.gz" "$work/in.folded" || exit 1
"$heapgauge" peek --json . "$work/in.pb.gz" >"$work/ours.json" || exit 1
go tool pprof -symbolize=none -unit=B -peek . "$work/in.pb.gz" >"$work/theirs.txt" 2>/dev/null || exit 1

python3 - "$work/ours.json" "$work/theirs.txt" <<'PY'
import json, re, sys
ours, theirs, cums = {}, {}, ({}, {})
for e in json.load(open(sys.argv[1]))['entries']:
    cums[0][e['name']] = (e['flat']['value'], e['cum']['value'])
    for kind in 'callers', 'callees':
        for x in e[kind]:
            if x['name'] != e['name']:   # pprof leaves out what calls itself
                ours[e['name'], kind, x['name']] = x['amount']['value']
size = lambda text: int(text[:-1]) if text.endswith('B') else int(text)
above, subject = [], None
for line in open(sys.argv[2]):
    edge = re.match(r'^ {20,}(\d+B?) +[\d.]+% \|   (\S+)$', line)
    entry = re.match(r'^ *(\d+B?) +[\d.]+% +[\d.]+% +(\d+B?) +[\d.]+% +\| (\S+)$', line)
    if edge and subject is None:
        above.append((edge[2], size(edge[1])))
    elif edge:
        theirs[subject, 'callees', edge[2]] = size(edge[1])
    elif entry:
        subject = entry[3]
        cums[1][subject] = (size(entry[1]), size(entry[2]))
        for name, value in above:
            theirs[subject, 'callers', name] = value
    elif line.startswith('---'):
        above, subject = [], None
def tell(n, name, good, text):
    print(('ok' if good else 'not ok') + ' %d - %s' % (n, name))
    if not good:
        print('# ' + text[:2000])
    return not good
wrong = [(k, ours.get(k), theirs.get(k)) for k in sorted(set(ours) | set(theirs)) if ours.get(k) != theirs.get(k)]
failed = tell(1, 'flat and cum of %d functions' % len(cums[1]), len(cums[1]) == 12 and cums[0] == cums[1], str(cums))
failed |= tell(2, '%d callers and callees' % len(theirs), len(theirs) > 200 and not wrong, str(wrong))
print('1..2')
sys.exit(failed)
PY
