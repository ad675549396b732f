#!/bin/bash
# A dump of redis-server with its debug information: stacks/redis.txt says what is on some of its stacks, as its source has it. Debian's debug symbols
# are on no mirror, so redis is built from Debian's source, once, in REDIS (a minute and a half), or taken from there.
. "$(dirname "$0")/lib.sh"
tree=$REDIS/tree

# Its source into $REDIS/tree, by apt with lists of its own.
download() {
	local apt=$REDIS/apt options=()
	mkdir -p "$apt/lists/partial" "$apt/archives/partial" && chmod -R a+rX "$REDIS"
	apt-get indextargets --format '$(SITE) $(RELEASE)' 'Created-By: Packages' | sort -u |
		sed -E 's|(.*) (.*)|deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] \1 \2 main|' >"$apt/sources.list"
	options=(-o "Dir::Etc::SourceList=$apt/sources.list" -o Dir::Etc::SourceParts=/dev/null -o "Dir::State::Lists=$apt/lists"
		-o "Dir::Cache=$apt" -o "Dir::Cache::archives=$apt/archives" -o "APT::Sandbox::User=$(id -un)" -o Acquire::Retries=0)
	timeout 120 apt-get "${options[@]}" -qq update && (cd "$apt" && timeout 120 apt-get "${options[@]}" -qq source --download-only redis) &&
		dpkg-source --no-check -x "$apt"/redis_*.dsc "$tree.new" && mv "$tree.new" "$tree"
}

# Its Makefile sees to what it needs of deps. At -O1 what is inlined is the same, and a third of the time is saved.
build() {
	make -C "$tree/src" -j2 redis-server MALLOC=jemalloc USE_SYSTEM_JEMALLOC=yes BUILD_TLS=no USE_SYSTEMD=no OPTIMIZATION=-O1 DEBUG=-g
}

for tool in redis-cli make gcc python3; do
	command -v $tool >/dev/null || skip_all "$tool is not installed"
done
[ -e /usr/include/jemalloc/jemalloc.h ] || skip_all "there is no libjemalloc to link with"
mkdir -p "$REDIS"
if [ ! -x "$tree/src/redis-server" ]; then
	for tool in apt-get dpkg-source; do
		command -v $tool >/dev/null || skip_all "redis' source is had by $tool, which is not here"
	done
	rm -rf "$tree.new"
	[ -d "$tree" ] || download >"$scratch/log" 2>&1 || skip_all "redis' source can't be downloaded: $(tail -n 1 "$scratch/log")"
	grep -q 'USE_SYSTEM_JEMALLOC' "$tree/src/Makefile" || skip_all "this redis brings a jemalloc of its own"
	build >"$scratch/log" 2>&1
	ok $? "redis-server is built with debug information" || { tail -n 20 "$scratch/log" | diagnose; done_testing; exit; }
fi

ask() {
	redis-cli -s "$scratch/socket" "$@"
}

MALLOC_CONF=prof:true,lg_prof_sample:0,prof_final:true,prof_prefix:$scratch/redis \
	"$tree/src/redis-server" --port 0 --unixsocket "$scratch/socket" --save '' --maxclients 1000 --dir "$scratch" >server.log 2>&1 </dev/null &
trap 'kill %1 2>/dev/null; wait; rm -rf "$scratch"' EXIT
for _ in $(seq 100); do
	ask ping >/dev/null 2>&1 && break
	sleep 0.1
done
{
	ask setbit bits 8000000 1
	ask setrange range 300000 x
	seq -f 'SADD members m%.0f' 60000 | ask
	ask eval "redis.call('set', 'lua', string.rep('x', 150000)) return 1" 0
	ask rpush list "$(head -c 60000 /dev/zero | tr '\0' a)"
	ask shutdown nosave
} >client.log 2>&1
wait
dump=$(echo redis.*.f.heap)
[ -s "$dump" ]
ok $? "redis has dumped" || { tail server.log client.log | diagnose; done_testing; exit; }

heapgauge convert --offline --to folded --by line "$dump" >folded 2>err
ok $? "its stacks have names" || diagnose err
cat >check.py <<'P'
import os, re, sys
tree, wanted, folded = sys.argv[1:]
lines = {}
for folder in ("src", "deps/lua/src", "deps/hdr_histogram"):
    for name in os.listdir(os.path.join(tree, folder)):
        if name.endswith((".c", ".h")):
            with open(os.path.join(tree, folder, name), errors="replace") as source:
                lines.setdefault(name, source.read().split("\n"))
def source_line(place):
    name, _, number = place.rpartition(":")
    return lines.get(name, [])[int(number) - 1:int(number)] if number.isdigit() else []
def fits(frame, function, text):
    name, _, place = frame.rpartition(" ")
    return name == function and any(text in line for line in source_line(place))
def matches(frames, pattern):
    for function, text in pattern:
        if frames and fits(frames[0], function.lstrip("?"), text):
            frames = frames[1:]
        elif not function.startswith("?"):
            return frames[0] if frames else "nothing"
    return None
stacks = []
for line in open(folded):
    frames, size = line.rstrip("\n").rsplit(" ", 1)
    stacks.append((int(size), frames.split(";")[::-1]))
for part in re.split(r"(?m)^stack ", open(wanted).read())[1:]:
    head, *rest = part.strip().split("\n")
    size, title = head.split(" ", 1)
    pattern = [re.split(r"\s+", line.strip(), maxsplit=1) for line in rest]
    found = [frames for bytes, frames in stacks if bytes >= int(size) and matches(frames, pattern) is None]
    print("%sok %s" % ("" if found else "not ", title))
    if not found:
        near = max((frames for bytes, frames in stacks), key=lambda frames: sum(any(fits(f, w[0].lstrip("?"), w[1]) for w in pattern) for f in frames))
        print("# stops at %s of\n# %s" % (matches(near, pattern), "\n# ".join(near[:14])))
P
while read -r line; do
	case $line in
	ok\ *) ok 0 "${line#ok }" ;;
	not\ ok\ *) ok 1 "${line#not ok }" ;;
	*) echo "$line" ;;
	esac
done < <(python3 check.py "$tree" "$SOURCE/tests/cli/stacks/redis.txt" folded 2>&1 || echo "not ok its stacks could be checked")

# top: what is inlined into everything has nearly everything, and its callers are told apart.
heapgauge top --offline --json -n 0 --by function "$dump" >top.json 2>err
ok $? "top reads it" || diagnose err
python3 - <<'P' >numbers
import json
rows = {row["name"]: row for row in json.load(open("top.json"))["rows"]}
def value(name, kind):
    return rows[name][kind]["value"] if name in rows else 0
print(int(value("ztrymalloc_usable_internal", "flat") > 3000000), int(value("ztrycalloc_usable_internal", "flat") > 500000),
      int(value("setbitCommand", "cum") >= 1000001), int(value("saddCommand", "cum") >= 1900000), int(value("zmalloc", "flat") == 0))
P
is "top: inlined functions have what they allocate, commands what is below them" "$(cat numbers)" "1 1 1 1 1"
done_testing
