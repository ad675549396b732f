#!/bin/bash
# Where names come from and what form they have: debuginfod, --offline, --demangle, perf maps, the cache.
. "$(dirname "$0")/lib.sh"
command -v g++ >/dev/null && command -v objcopy >/dev/null || skip_all "g++ or binutils is not installed"
export DEBUGINFOD_CACHE_PATH=$scratch/debuginfod

cat >program.cc <<'END'
template <class T> __attribute__((noinline)) T twice(T x) { return x * 2; }
int main(int argc, char **) { return (int)twice<long>(argc); }
END
g++ -O1 -g -fno-inline -Wl,--build-id -o program program.cc
address=$(nm program | awk '/twice/ { print $1 }')
mkdir served
objcopy --only-keep-debug program served/program.debug
objcopy --strip-debug program stripped
line="$PWD/program.cc:1"

# --- debuginfod ---

if ! [ -e "$(echo /usr/lib/*/libdebuginfod.so.1)" ]; then
	skip "debuginfod" "libdebuginfod is not installed"
elif ! command -v debuginfod >/dev/null; then
	skip "debuginfod: a file is fetched" "debuginfod is not installed"
else
	port=$((20000 + $$ % 12000))
	debuginfod -p $port -F -d :memory: served >server 2>&1 &
	server=$!
	trap 'kill $server 2>/dev/null; wait $server 2>/dev/null; rm -rf "$scratch"' EXIT
	for _ in $(seq 100); do
		grep -q 'started http server' server && curl -sf "http://127.0.0.1:$port/metrics" | grep -q 'thread_work_total{role="scan"} [1-9]' && break
		sleep 0.1
	done
	sleep 1
	export DEBUGINFOD_URLS=http://127.0.0.1:$port
	is "--offline: no line" "$(heapgauge addr --offline --no-cache -e stripped "$address" 2>&1)" "??:?"
	[ ! -d debuginfod ]
	ok $? "--offline: nobody was asked"
	is "debuginfod: a line" "$(heapgauge addr --no-cache -e stripped "$address" 2>&1)" "$line"
	[ -n "$(find debuginfod -name debuginfo)" ]
	ok $? "debuginfod: its cache has the file"
	is "debuginfod: with the answer cache, too" "$(heapgauge addr -e stripped "$address" 2>&1)" "$line"
	kill $server
	wait $server 2>/dev/null
	is "debuginfod: from its cache when the server is gone" "$(heapgauge addr --no-cache -e stripped "$address" 2>&1)" "$line"
	is "from our cache, offline" "$(heapgauge addr --offline -e stripped "$address" 2>&1)" "$line"
	rm -rf debuginfod
	heapgauge addr --no-cache -e stripped "$address" >out 2>err
	is "debuginfod: no server: an answer without lines" "$(cat out)" "??:?"
	like "debuginfod: no server: a warning" err "^heapgauge: warning: the servers of DEBUGINFOD_URLS could not be asked: Connection refused"
	is "debuginfod: no server: one warning" "$(wc -l <err)" 1
	unset DEBUGINFOD_URLS
fi

# Without the library: as if it weren't there.
if [ "$SANITIZER" != none ]; then
	skip "debuginfod without its library" "not under a sanitizer"
else
	cat >hide.c <<'END'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <string.h>
void *dlopen(const char *name, int flags)
{
	void *(*next)(const char *, int) = (void *(*)(const char *, int))dlsym(RTLD_NEXT, "dlopen");
	return name && strstr(name, "libdebuginfod") ? NULL : next(name, flags);
}
END
	gcc -shared -fPIC -o hide.so hide.c
	LD_PRELOAD=$PWD/hide.so DEBUGINFOD_URLS=http://127.0.0.1:9 "$HEAPGAUGE" addr --no-cache -e stripped "$address" "$address" >out 2>err
	is "debuginfod without its library: answers" "$(tr '\n' ' ' <out)" "??:? ??:? "
	like "debuginfod without its library: a warning with the package" err "libdebuginfod.so.1 is not installed .*libdebuginfod1"
	is "debuginfod without its library: one warning" "$(wc -l <err)" 1
fi

# --- forms of names ---

if [ -n "${GROW_JEMALLOC:-}" ]; then
	cat >forms.cc <<'END'
#include <new>
#include <vector>
namespace ns {
template <class T> struct Box {
	template <class U> __attribute__((noinline)) void *keep(U n, std::vector<T> &) { return ::operator new((unsigned long)n * 4096); }
};
}
static std::vector<void *> all;
int main()
{
	std::vector<int> v;
	ns::Box<int> b;
	for (long i = 1; i < 50; i++)
		all.push_back(b.keep<long>(i, v));
	return 0;
}
END
	g++ -O1 -g -o forms forms.cc -Wl,--no-as-needed -ljemalloc 2>err
	if ok $? "a program with templates"; then
		MALLOC_CONF="prof:true,prof_final:true,lg_prof_sample:0,prof_prefix:forms" ./forms
		forms=$(ls forms.*.f.heap)
		for how in "full:void\* ns::Box<int>::keep<long>\(long, std::vector<int, std::allocator<int> ?>&\)" \
			"templates:ns::Box<int>::keep<long>" "simple:ns::Box::keep" "none:_ZN2ns3BoxIiE4keepIlEEPvT_RSt6vectorIiSaIiEE"; do
			runs 0 "--demangle ${how%%:*}" heapgauge top --demangle "${how%%:*}" "$forms"
			like "--demangle ${how%%:*}: the name" out " ${how#*:}$"
			unlike "--demangle ${how%%:*}: the allocator is left out" out "operator new|_Znwm"
		done
		runs 0 "--demangle in a profile" heapgauge symbolize --to folded --demangle simple "$forms"
		like "--demangle in a profile: the name" out "ns::Box::keep [0-9]"
		misused "--demangle has four words" "full|templates|simple|none" heapgauge top --demangle pretty "$forms"
	else
		diagnose err
	fi

	# --- code in no file ---

	# A dump with a frame in anonymous memory, where a JIT would have put it.
	dump jit 0 '' 2000 700
	python3 - "$dumped" <<'END' >jit.heap
import re, sys
text = open(sys.argv[1]).read()
text = re.sub(r"^@ 0x[0-9a-f]+ 0x[0-9a-f]+ 0x[0-9a-f]+", lambda m: m.group(0) + " 0x10000123", text, flags=re.M)
print(text.replace("MAPPED_LIBRARIES:\n", "MAPPED_LIBRARIES:\n10000000-10010000 rwxp 00000000 00:00 0 \n"), end="")
END
	printf '10000000 200 jitted_one /srv/app.js:7\n10000200 10 jitted_two\n' >perf.map
	runs 0 "a JIT's frame without a map" heapgauge top --sort cum jit.heap
	like "a JIT's frame without a map: an address" out '0x10000122'
	runs 0 "--perf-map" heapgauge top --perf-map perf.map --sort cum jit.heap
	like "--perf-map: the name" out 'jitted_one /srv/app.js:7'
	unlike "--perf-map: no other" out 'jitted_two|0x10000122'
	runs 0 "--perf-map of no file" heapgauge top --perf-map nowhere.map --sort cum jit.heap
	like "--perf-map of no file: a warning" err "^heapgauge: warning: nowhere.map: cannot open: No such file"
else
	skip "--demangle and --perf-map" "there is no libjemalloc to link with"
fi
done_testing
