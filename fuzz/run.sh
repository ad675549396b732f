#!/bin/sh
# Fuzzes one reader: fuzz/run.sh NAME [SECONDS]. Needs clang with libFuzzer. The corpus grows in
# build-fuzz/NAME; fuzz/corpus/NAME holds the small one that is kept (see -merge=1 of libFuzzer).
set -eu
cd "$(dirname "$0")/.."
name=$1 seconds=${2:-1800}
mkdir -p "build-fuzz/$name"
clang=$(command -v clang || command -v clang-14)
"$clang" -std=gnu11 -D_GNU_SOURCE -g -O1 -fno-omit-frame-pointer -Isrc \
	-fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all -o "build-fuzz/fuzz_$name" \
	"fuzz/fuzz_$name.c" src/base/*.c src/profile/*.c src/format/*.c -ldeflate -lisal -lz -lm -pthread
exec "build-fuzz/fuzz_$name" -max_total_time="$seconds" -timeout=60 -rss_limit_mb=2048 -print_final_stats=1 \
	-artifact_prefix="build-fuzz/$name-" "build-fuzz/$name" "fuzz/corpus/$name"
