#!/bin/bash
# addr: addr2line's options, its output to the byte, its reading of nonsense, and the programs that run it.
. "$(dirname "$0")/lib.sh"
command -v addr2line >/dev/null && command -v g++ >/dev/null || skip_all "binutils or g++ is not installed"

cat >program.cc <<'END'
#include <cstdio>
#include <string>
#include <vector>
namespace ns {
struct A {
	std::vector<int> v;
	__attribute__((noinline)) int sum(int k)
	{
		int t = 0;
		for (size_t i = 0; i < v.size(); i++)
			t += v.at(i) * k;
		return t;
	}
};
template <class T> __attribute__((noinline)) T twice(T x)
{
	auto f = [&](T y) {
		std::string s(3, 'x');
		return y + x + (T)s.size();
	};
	return f(x) * 2;
}
}
static __attribute__((noinline)) int local(int x) { return std::printf("%d\n", x); }
extern "C" int plain(int x)
{
	if (x > 100)
		throw x;
	return local(x);
}
int main(int argc, char **)
{
	ns::A a;
	for (int i = 0; i < argc; i++)
		a.v.push_back(i);
	return a.sum(3) + (int)ns::twice<long>(argc) + plain(argc);
}
END

# every_byte BINARY : the addresses of its own functions. Not _start: GNU guesses at what comes with the compiler.
every_byte() {
	nm -S --defined-only "$1" | awk 'NF == 4 && $3 ~ /[tTwW]/ && $4 != "_start" { print $1, $2 }' |
		python3 -c 'import sys
for line in sys.stdin:
    start, size = (int(x, 16) for x in line.split())
    print(*(hex(a) for a in range(start, start + size)), sep="\n")'
}

# What the manual says is left out: discriminators, and the suffixes of parts of functions.
as_we_do() {
	sed -E 's/ \(discriminator [0-9]+\)//; s/\.cold( at |$)/\1/; s/ \[clone \.cold\]//'
}

# same NAME FILE FILE
same() {
	[ -s "$2" ] && cmp -s "$2" "$3"
	ok $? "$1" || diff "$2" "$3" | head -n 12 | diagnose
}

compilers=("g++ -O2 -g" "g++ -O2 -gdwarf-4")
for clang in clang++ clang++-14; do
	command -v "$clang" >/dev/null && { compilers+=("$clang -O2 -gdwarf-4"); break; }
done
for compiler in "${compilers[@]}"; do
	$compiler -o program program.cc
	every_byte program >addresses
	[ "$(wc -l <addresses)" -gt 300 ]
	ok $? "$compiler: there is something to ask"
	case $compiler in
	clang*) all=("" -i -a -s) ;;           # GNU has the wrong function where an inlined call is scattered
	*) all=("" -f -fC -i -fi -fCi -afipCs -a -pf -sf "--functions --demangle --inlines --addresses --pretty-print --basenames"
		"-f -C -i -r" "-R -b elf64-x86-64 -f") ;;
	esac
	for options in "${all[@]}"; do
		addr2line $options -e program <addresses | as_we_do >wanted
		heapgauge addr $options -e program <addresses >got
		same "$compiler: addr2line ${options:-without options}" wanted got
	done
	# Without -C only: LLVM demangles otherwise.
	for options in -f -fi -i; do
		if command -v llvm-addr2line-14 >/dev/null; then
			llvm-addr2line-14 $options -e program <addresses | as_we_do | sed 's/:0$/:?/' >wanted
			heapgauge addr $options -e program <addresses >got
			same "$compiler: llvm-addr2line $options" wanted got
		fi
	done
done

# Stripped of debug information: names without lines. GNU adds the source file of local symbols.
g++ -O2 -g -o program program.cc
objcopy --strip-debug program nodebug
every_byte program >addresses
for options in -f -fC -fCi -afipCs; do
	addr2line $options -e nodebug <addresses | as_we_do | sed -E 's/(^| )[a-z_.]+:\?/\1??:?/' >wanted
	heapgauge addr --no-cache $options -e nodebug <addresses | as_we_do >got
	same "no debug information: addr2line $options" wanted got
done

# Operands, and where the binary comes from.
main=$(nm program | awk '$3 == "main" { print $1 }')
plain=$(nm program | awk '$3 == "plain" { print "0x" $1 }')
addr2line -afe program "$main" "$plain" 0 | as_we_do >wanted
heapgauge addr -afe program "$main" "$plain" 0 >got
same "addresses on the command line" wanted got
heapgauge addr -af program "$main" "$plain" 0 >got
same "the binary as the first operand" wanted got
echo "-afe program $main
'$plain' \"0\"" >arguments
heapgauge addr @arguments >got
same "arguments from a file" wanted got
printf '%s\n%s\n0' "$main" "$plain" | heapgauge addr -af program >got
same "standard input, the last line without an end" wanted got
(cp program a.out && heapgauge addr -af "$main" "$plain" 0 >got)
same "a.out" wanted got
ln -s "$HEAPGAUGE" addr2line
./addr2line -af "$main" "$plain" 0 >got
same "called addr2line: operands are addresses, of a.out" wanted got
./addr2line -Cfpie program "$main" "$plain" 0 >got
addr2line -Cfpie program "$main" "$plain" 0 | as_we_do >wanted
same "called addr2line: short options in one" wanted got
ln -s "$HEAPGAUGE" x86_64-linux-gnu-addr2line
./x86_64-linux-gnu-addr2line --exe=program -Cfpi "$main" "$plain" 0 >got
same "called x86_64-linux-gnu-addr2line" wanted got
rm a.out

# Sections.
text=$(readelf -SW program | awk '$2 == ".text" || $3 == ".text" { sub(/.*\.text/, ""); print $2 }')
for a in "$main" "${plain#0x}"; do printf '%x\n' $((16#$a - 16#$text)); done >offsets
echo ffffff >>offsets
addr2line -afj .text -e program <offsets | as_we_do >wanted
heapgauge addr -afj .text -e program <offsets >got
same "-j: addresses in a section" wanted got
[ "$(head -n 2 got | tail -n 1)" = main ]
ok $? "-j: the right ones"

# Nonsense.
{
	printf '%s\n' "" zz 0x 0xzz 0X"$main" -1 +"$main" " $main" "	$main junk" "$main,$main" ffffffffffffffffffff -10 , . "0x ff" ''
	printf '%250s\n' "$main"
	head -c 300 /dev/zero | tr '\0' '1'
	printf '\n%s\r\n%s\0%s\n' "$main" "$main" junk
	printf '%s\n' main main+0x10 main+16 "main + 16" main+ main+zz plain+010 plain-4 _ZN2ns1A3sumEi+4 "ns::A::sum(int)+4" " main" "main " \
		"main+16 junk" nosuch+5 +5 +0x5 main+main main+-4 add a+5 0x10+0x10 10+main \
		-0x10 "- 1" 0x-5 g1 "x$main" 0x0x10 1g
	printf '%s' "$main"
} >nonsense
for options in "" -a -fa; do
	addr2line $options -e program <nonsense | as_we_do >wanted
	heapgauge addr $options -e program <nonsense >got
	same "nonsense is read as addr2line reads it: ${options:-without options}" wanted got
done
for much in 0xffffffffffffffff 99999999999999999999 -1 010000000000000000000000; do
	is "an offset that is too much: $much" "$(heapgauge addr -a program "main+$much" | head -n 1)" \
		"$(addr2line -ae program "main+$much" | head -n 1)"
done
heapgauge addr -e program </dev/null >got
[ ! -s got ]
ok $? "no input: no output"
fails "no such file" "nowhere: cannot open" heapgauge addr -e nowhere 1
fails "no ELF file" "program.cc" heapgauge addr -e program.cc 1
fails "a folder" "regular file" heapgauge addr -e . 1
fails "no such section" "program: it has no section .nowhere" heapgauge addr -j .nowhere -e program 1
misused "no such form of names" "full|templates|simple|none" heapgauge addr --demangle=pretty -e program 1
heapgauge addr -V | grep -q "heapgauge addr" && ./addr2line --version | grep -q addr2line
ok $? "a version is told"
if [ -w /dev/full ]; then
	heapgauge addr -e program "$main" >/dev/full 2>err
	is "a full disk: exit status" $? 1
	like "a full disk: why" err "^heapgauge: standard output: cannot write: No space left"
fi

# Forms of names.
twice=$(nm program | awk '/twice/ { print $1; exit }')
is "-C" "$(heapgauge addr -fCe program "$twice" | head -n 1)" "long ns::twice<long>(long)"
is "--demangle=templates" "$(heapgauge addr -f --demangle=templates program "$twice" | head -n 1)" "ns::twice<long>"
is "--demangle=simple" "$(heapgauge addr -f --demangle=simple program "$twice" | head -n 1)" "ns::twice"
is "--demangle=none" "$(heapgauge addr -f --demangle=none program "$twice" | head -n 1)" "_ZN2ns5twiceIlEET_S1_"
is "--demangle=gnu-v3" "$(heapgauge addr -f --demangle=gnu-v3 program "$twice" | head -n 1)" "long ns::twice<long>(long)"

# Clients that write one address and wait for the answer: pprof's, perf's (whose sentinel is a comma), and one that writes bytes.
cat >client.py <<'END'
import os, select, subprocess, sys

addresses = [line.strip() for line in open(sys.argv[2])][:40]
wanted = open(sys.argv[3]).read().split("\n@\n")
style = sys.argv[1]
p = subprocess.Popen([os.environ["HEAPGAUGE"], "addr", "-aife", "program"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
have = b""

def until(end):
    global have
    while not have.endswith(end):
        if not select.select([p.stdout], [], [], 20)[0]:
            sys.exit(f"no answer after 20 s; so far: {have!r}")
        piece = os.read(p.stdout.fileno(), 65536)
        if not piece:
            sys.exit("it ended")
        have += piece
    text, have = have[: -len(end)].decode(), b""
    return text

sentinel, said = {"pprof": ("0xffffffffffffffff\n", b"0xffffffffffffffff\n??\n??:0\n"),
                  "perf": (",\n", b"0x0000000000000000\n??\n??:0\n"),
                  "bytes": ("0xffffffffffffffff\n", b"0xffffffffffffffff\n??\n??:0\n")}[style]
for i, address in enumerate(addresses):
    request = (address + "\n" + sentinel).encode()
    for part in ([bytes([b]) for b in request] if style == "bytes" else [request]):
        os.write(p.stdin.fileno(), part)
    got = until(said)
    if got != wanted[i] + "\n":
        sys.exit(f"{address}: {got!r}, wanted {wanted[i]!r}")
p.stdin.close()
sys.exit(p.wait() or (p.stdout.read() != b"" and "something at the end"))
END
shuf -n 40 --random-source=program addresses >some
while read -r address; do
	addr2line -aife program "$address" | as_we_do
	echo @
done <some >wanted
for style in pprof perf bytes; do
	python3 client.py $style some wanted >err 2>&1
	ok $? "a client in $style' style" || diagnose err
done

# One worker reads for the whole conversation; if it is killed, another one goes on; and it ends with addr.
cat >talk.py <<'END'
import os, signal, subprocess, sys, time

addresses = [line.strip() for line in open("some")]
wanted = open("wanted").read().split("\n@\n")
p = subprocess.Popen([os.environ["HEAPGAUGE"], "addr", "--no-cache", "-aife", "program"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

def workers():
    return open(f"/proc/{p.pid}/task/{p.pid}/children").read().split()

def ask(i):
    os.write(p.stdin.fileno(), (addresses[i] + "\n").encode())
    got = b""
    while len(got) < len(wanted[i]) + 1:
        piece = os.read(p.stdout.fileno(), 65536)
        if not piece:
            sys.exit("it ended")
        got += piece
    if got.decode() != wanted[i] + "\n":
        sys.exit(f"{addresses[i]}: {got!r}, wanted {wanted[i]!r}")

ask(0)
first = workers()
for i in range(1, 20):
    ask(i)
    if workers() != first or len(first) != 1:
        sys.exit(f"workers {first}, then {workers()}")
os.kill(int(first[0]), signal.SIGKILL)
for i in range(20, 40):
    ask(i)
    if len(workers()) != 1 or workers() == first:
        sys.exit(f"workers {first}, killed; then {workers()}")
last = workers()[0]
p.stdin.close()
status = p.wait()
for _ in range(100):
    if not os.path.exists(f"/proc/{last}"):
        break
    time.sleep(0.02)
else:
    sys.exit("its worker is still there")
sys.exit(status)
END
if [ -r "/proc/$$/task/$$/children" ]; then
	python3 talk.py >err 2>&1
	ok $? "one worker for a conversation, and another one when it is killed" || diagnose err
else
	skip "one worker for a conversation" "the kernel does not list children"
fi

# Debug information that takes more than it may: symbols answer, once with a warning, and the cache has none of that.
{
	echo 'enum much {'
	awk 'BEGIN { for (i = 0; i < 60000; i++) printf "\tword_number_%d,\n", i }'
	printf '};\nenum much big_one;\n__attribute__((noinline)) int big_two(int x)\n{\n\treturn x * 3 + (big_one == word_number_7);\n}\n'
	printf 'int main(int n, char **v)\n{\n\t(void)v;\n\treturn big_two(n);\n}\n'
} >much.c
gcc -O1 -g -gz=zlib -Wl,--build-id -o much much.c
at=$(nm much | awk '$3 == "big_two" { print $1 }')
printf '%s\nmain\n%s\n' "$at" "$at" >questions
rm -rf "$XDG_CACHE_HOME"
runs 0 "too little memory" heapgauge addr --memory-limit 1M -fe much @questions
is "names are symbols'" "$(tr '\n' ' ' <out)" "big_two ??:? main ??:? big_two ??:? "
is "said once" "$(cat err)" "heapgauge: warning: much: its reader ran out of memory (limit 1 MiB); names are those of symbols: no lines, and inlined functions are missing; --memory-limit gives it more"
is "nothing is kept" "$(find "$XDG_CACHE_HOME" -type f 2>/dev/null | wc -l)" 0
runs 0 "with enough of it" heapgauge addr -sfe much "$at"
is "there are lines" "$(tr '\n' ' ' <out)" "big_two much.c:60006 "
is "which are kept" "$(find "$XDG_CACHE_HOME" -type f 2>/dev/null | wc -l)" 1

# A crowd of addresses through a pipe, in pieces, comes back whole and in order.
for _ in $(seq 30); do cat addresses; done | head -n 20000 >crowd
heapgauge addr -fi -e program <crowd >wanted
split -b 3001 --filter=cat crowd | heapgauge addr -fi -e program >got
same "20,000 lines through a pipe" wanted got
[ "$(heapgauge addr -e program <crowd | wc -l)" -eq "$(wc -l <crowd)" ]
ok $? "an answer for each"
# Crowds are written by several threads, a few addresses by one.
head -n 3000 crowd | xargs -n 200 "$HEAPGAUGE" addr -fi -e program >few
head -n 3000 crowd | heapgauge addr -fi -e program >got
same "3,000 at once and 200 at a time" few got
if [ -w /dev/full ]; then
	timeout 60 "$HEAPGAUGE" addr -fi -e program <crowd >/dev/full 2>err
	is "a crowd's answers and a full disk: exit status" $? 1
	like "a crowd's answers and a full disk: why" err "^heapgauge: standard output: cannot write: No space left"
fi
timeout 60 "$HEAPGAUGE" addr -fi -e program <crowd | head -n 1 >got
[ -s got ]
ok $? "a reader that has enough ends it"

# Calls of scripts.
addr2line -i -e program "$main" | as_we_do >wanted                  # decode_stacktrace.sh
heapgauge addr -i -e program "$main" >got
same "as the kernel's decode_stacktrace.sh calls it" wanted got
addr2line -a -e program -i -f -s -C "$twice" | as_we_do >wanted     # stackcollapse-perf.pl --inline
heapgauge addr -a -e program -i -f -s -C "$twice" >got
same "as FlameGraph's stackcollapse-perf.pl calls it" wanted got

# jeprof makes the same report of a real dump with either, but for what comes before main(): the loader's labels without a size.
if command -v jeprof >/dev/null && [ -n "${GROW_JEMALLOC:-}" ]; then
	dump exact 0 '' 2000 700
	tools="addr2line:$PWD/addr2line,$(dirname "$(command -v nm)")/"
	for how in --text "--text --lines" "--text --addresses" --collapsed --raw; do
		jeprof $how "$GROW_JEMALLOC" "$dumped" 2>/dev/null | as_we_do >jeprof-wanted
		jeprof $how --tools="$tools" "$GROW_JEMALLOC" "$dumped" 2>jeprof-err >jeprof-got
		for side in wanted got; do
			sed '/^--- heap/,$d' jeprof-$side | LC_ALL=C sort | if [ "$how" = "--text" ]; then
				grep -av '_dl_'
			else
				grep -aE 'grow_here|stay_here|main'
			fi | sed -E 's,(libc_start_[a-z_]*) [^ ]*,\1,' >$side
		done
		same "jeprof $how with addr2line and with us" wanted got
		grep -aq grow_here got && grep -aq stay_here got
		ok $? "jeprof $how: it has names" || diagnose jeprof-err
	done
else
	skip "jeprof with addr2line and with us" "jeprof or libjemalloc is not installed"
fi
done_testing
