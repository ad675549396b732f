#!/bin/sh
# Fuzzes one reader: fuzz/run.sh NAME [SECONDS [LIBFUZZER-OPTION...]]. Needs clang with libFuzzer. The corpus grows in
# build-fuzz/NAME; fuzz/corpus/NAME holds the small one that is kept (see -merge=1 of libFuzzer). For many runs of
# what is known well: FUZZ_CFLAGS=-fno-sanitize-coverage=trace-cmp,indirect-calls is twice as fast, and FUZZ_SANITIZERS=fuzzer (no others; pages
# that can't be touched still end it) several times for units.
set -eu
cd "$(dirname "$0")/.."
name=$1 seconds=${2:-1800}
shift $(($# < 2 ? $# : 2))
mkdir -p "build-fuzz/$name"
# Of what a harness doesn't use the counters would be looked at after every run.
case $name in
http) modules="base http" ;;
symbol_body) modules="base" ;;
demangle) modules="base" extra="src/symbol/demangle.c -liberty" ;;
sections) modules="base" extra="src/symbol/elf_file.c src/symbol/sections.c src/symbol/symtab.c src/symbol/intervals.c src/symbol/eh_frame.c -lzstd -llzma" ;;
dwarf)
	modules="base"
	extra="$(ls src/symbol/dwarf_*.c) src/symbol/answers.c src/symbol/compose.c src/symbol/demangle.c src/symbol/eh_frame.c src/symbol/elf_file.c
		src/symbol/intervals.c src/symbol/resolve.c src/symbol/sections.c src/symbol/symtab.c -lzstd -llzma -liberty"
	set -- -max_len=65536 -malloc_limit_mb=512 -report_slow_units=1 "$@"
	;;
units)
	modules="base"
	extra="$(ls src/symbol/dwarf_*.c) src/symbol/elf_file.c src/symbol/intervals.c src/symbol/sections.c -lzstd -llzma -Wl,--wrap=elf_file_open_fd,--wrap=sections_init"
	set -- -max_len=2560 -malloc_limit_mb=512 -report_slow_units=1 "$@"
	;;
perf_map) modules="base" extra="src/symbol/perf_map.c" ;;
answers) modules="base" extra="src/symbol/answers.c" ;;
selector)
	modules="base"
	extra="src/record/arena.c src/record/md5.c src/record/query_selector.c src/record/relabel.c"
	;;
config)
	modules="base"
	extra="src/record/address.c src/record/arena.c src/record/config.c src/record/config_job.c src/record/doc.c src/record/md5.c src/record/relabel.c -lyaml"
	;;
metrics_text) modules="base" extra="src/record/metrics_text.c" ;;
*) modules="base profile format" ;;
esac
sources=$(for module in $modules; do echo "src/$module/"*.c; done)
clang=$(command -v clang || command -v clang-14)
"$clang" -std=gnu11 -D_GNU_SOURCE -g -O2 -fno-omit-frame-pointer -Isrc -Iinclude \
	-fsanitize="${FUZZ_SANITIZERS:-fuzzer,address,undefined}" -fno-sanitize-recover=all -o "build-fuzz/fuzz_$name" \
	${FUZZ_CFLAGS:-} "fuzz/fuzz_$name.c" $sources ${extra:-} -ldeflate -lisal -lz -lm -pthread
[ ! -f "fuzz/$name.dict" ] || set -- "-dict=fuzz/$name.dict" "$@"
exec "build-fuzz/fuzz_$name" -max_total_time="$seconds" -timeout=60 -rss_limit_mb=2048 -print_final_stats=1 "$@" \
	-artifact_prefix="build-fuzz/$name-" "build-fuzz/$name" "fuzz/corpus/$name"
