#!/bin/bash
# prefix.sh OUTPUT: libjemalloc_pic.a with "hgt_" before each of its public functions.
set -eu
archive=$(gcc -print-file-name=libjemalloc_pic.a)
functions='malloc calloc realloc free cfree memalign valloc pvalloc posix_memalign aligned_alloc malloc_usable_size mallocx rallocx xallocx sallocx
	dallocx sdallocx nallocx mallctl mallctlnametomib mallctlbymib malloc_stats_print malloc_conf malloc_message'
redefine=()
for name in $functions; do
	redefine+=(--redefine-sym "$name=hgt_$name")
done
objcopy --strip-unneeded "${redefine[@]}" "$archive" "$1"
# C++'s operator new is in there, too, and would take over the program's.
ar d "$1" jemalloc_cpp.pic.o
