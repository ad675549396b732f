#!/bin/bash
# Inlined calls of real programs on real jemalloc, in C (gcc), C++ (clang++) and Rust: twenty stacks against what stacks/ says of them, which was
# found by reading the source. TARGET is where cargo may build.
. "$(dirname "$0")/lib.sh"
stacks=$SOURCE/tests/cli/stacks

# check NAME SOURCE-FILE DUMP : each stack of the source's beginning, as traces has it by line; and what top and peek make of them.
cat >check.py <<'P'
import json, re, subprocess, sys
heapgauge, source, dump = sys.argv[1:]
text = open(source).read().split("\n")
marks = {mark: number for number, line in enumerate(text, 1) for mark in re.findall(r"/\*(\w+)\*/", line)}
name = source.rsplit("/", 1)[1]
def ask(*words):
    return subprocess.run([heapgauge, *words, dump], check=True, stdout=subprocess.PIPE, text=True).stdout
got = {}
for line in ask("convert", "--to", "folded", "--by", "line").splitlines():
    frames, size = line.rsplit(" ", 1)
    got.setdefault(int(size) // 1024, []).append(frames.split(";")[::-1])   # the C++ library keeps some, too
def fits(pattern, frame):
    wanted, mark = pattern.split("@")
    function, _, place = frame.rpartition(" ")
    regex = ".*".join(map(re.escape, wanted.split("*")))
    return place == "%s:%d" % (name, marks[mark]) and re.fullmatch(r"(.*(::|[ &]))?%s(<.*>)?(\(.*\)( const)?)?" % regex, function)
def matches(patterns, frames):
    if not patterns:
        return True
    if patterns[0] == "*":
        n = 0
        while n < len(frames) and (" " + name + ":") not in frames[n]:
            n += 1
        return matches(patterns[1:], frames[n:])
    return bool(frames and fits(patterns[0], frames[0])) and matches(patterns[1:], frames[1:])
wanted = re.findall(r"stack (\d+)K: (.*)", "\n".join(text))
for size, patterns in wanted:
    found = got.get(int(size), [["no such stack"]])
    good = any(matches(patterns.split(), frames) for frames in found)
    print("%sok %s, stack of %s KiB: %s" % ("" if good else "not ", name, size, patterns))
    if not good:
        print("# " + "\n# ".join(found[0][:12]))
total = sum(int(size) << 10 for size, _ in wanted)
rows = json.loads(ask("top", "--json", "-n", "0", "--by", "function"))["rows"]
def cum(function):
    return sum(r["cum"]["value"] for r in rows if re.fullmatch(r"(.*::)?%s(\(.*)?" % function, r["name"]))
kept = sum(int(size) << 10 for size, patterns in wanted if "keep@" in patterns)
print("%sok %s: top has all of it below main" % ("" if cum("main") >= total else "not ", name))
print("%sok %s: top gives the inlined keep what is allocated in it (%d of %d)" % ("" if cum("keep") == kept else "not ", name, cum("keep"), kept))
peek = ask("peek", r"^(.*::)?keep(\(|$)")
callers = {re.sub(r"[<(].*|.*::", "", p.split()[p.split().index("keep@k1") + 1].split("@")[0]) for _, p in wanted if "keep@k1" in p.split()}
missing = [c for c in callers if c and c.strip("*") not in peek]
print("%sok %s: peek has the callers of keep" % ("" if not missing else "not ", name))
if missing:
    print("# missing: %s" % missing)
    print("# " + "\n# ".join(peek.split("\n")[:40]))
P

check() {
	local line
	while read -r line; do
		case $line in
		ok\ *) ok 0 "${line#ok }" ;;
		not\ ok\ *) ok 1 "${line#not ok }" ;;
		*) echo "$line" ;;
		esac
	done < <(python3 check.py "$HEAPGAUGE" "$1" "$2" 2>&1 || echo "not ok $1 could be checked")
}

compiled() { # COMPILER SOURCE FLAGS...
	if ! command -v "$1" >/dev/null; then skip "$2" "$1 is not installed"; return; fi
	if ! "$1" -g "${@:3}" -o program "$stacks/$2" -ljemalloc 2>err; then
		if grep -q 'jemalloc' err; then skip "$2" "there is no libjemalloc to link with"; else ok 1 "$2 compiles" || diagnose err; fi
		return
	fi
	env MALLOC_CONF=prof:true,lg_prof_sample:0 ./program program.heap || ok 1 "$2 runs"
	check "$stacks/$2" program.heap
}

compiled gcc stacks.c -O2
compiled gcc stacks.c -O2 -gdwarf-4 -no-pie
compiled clang++-14 stacks.cc -O2 -std=c++17
compiled g++ stacks.cc -O2 -std=c++17

if ! command -v cargo >/dev/null; then
	skip "stacks/src/main.rs" "cargo is not installed"
elif ! (
	cd "$SOURCE/bindings/rust" && . "$SOURCE/tests/rust/packages.sh" && rust_build
) 2>err; then
	if grep -qiE 'download|resolve host|registry' err; then skip "stacks/src/main.rs" "its crates can't be had"; else ok 1 "main.rs compiles" || diagnose err; fi
else
	env _RJEM_MALLOC_CONF=prof:true,lg_prof_sample:0 "$TARGET/checked/stacks" rust.heap || ok 1 "main.rs runs"
	check "$stacks/src/main.rs" rust.heap
fi
done_testing
