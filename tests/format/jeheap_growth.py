"""jeheap_growth.py BASE NOW GROWN: what jeheap_print printed; is GROWN the positive part of NOW - BASE, thread by thread?"""
import sys
from collections import defaultdict


def samples(path):
    """(thread, addresses) -> values, and block sizes"""
    values, sizes = defaultdict(lambda: None), {}
    for line in open(path):
        if not line.startswith("sample "):
            continue
        numbers, thread, frames = line[len("sample "):].rstrip("\n").split(" |", 2)
        size, *amounts = map(int, numbers.split())
        key = thread.strip(), tuple(frame.split(":")[0] for frame in frames.split())
        had = values[key] or [0] * len(amounts)
        values[key] = [a + b for a, b in zip(had, amounts)]
        sizes[key] = size if sizes.get(key, size) == size else 0
    return values, sizes


(base, base_sizes), (now, now_sizes), (grown, sizes) = map(samples, sys.argv[1:4])
expected = {}
for key, amounts in now.items():
    left = [max(0, a - b) for a, b in zip(amounts, base[key] or [0] * len(amounts))]
    if any(left):
        expected[key] = left
expected_sizes = {key: 0 if base_sizes.get(key, now_sizes[key]) != now_sizes[key] else now_sizes[key] for key in expected}
less = sum(1 for key in base if base[key] and sum(base[key]) > sum(now[key] or [0]))
print(f"{len(base)} in the base, {len(now)} now, {len(expected)} grew, {less} shrank")
assert len(base) > 10 and len(expected) > 10
wrong = {key for key in expected.keys() | grown.keys() if expected.get(key) != grown[key] or expected_sizes.get(key) != sizes.get(key)}
for key in list(wrong)[:5]:
    print(key, "expected", expected.get(key), expected_sizes.get(key), "got", grown[key], sizes.get(key))
sys.exit(bool(wrong))
