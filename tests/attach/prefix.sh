#!/bin/bash
# prefix.sh ARCHIVE OUT : jemalloc with all its public functions called je_*.
set -eu
args=()
for name in aligned_alloc calloc dallocx free mallctl mallctlbymib mallctlnametomib malloc malloc_conf malloc_message \
	malloc_stats_print malloc_usable_size mallocx memalign nallocx posix_memalign rallocx realloc sallocx sdallocx valloc xallocx; do
	args+=(--redefine-sym "$name=je_$name")
done
objcopy "${args[@]}" "$1" "$2"
