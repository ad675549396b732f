# Sourced: what the tests compile is the same in each of them and beside any build of ours. scripts/check gives a folder for it (HEAPGAUGE_KEPT);
# without one, nothing is kept.

# kept_as NAME FILE-OR-WORD... : where it is kept, by what it is made of: contents, words, compilers.
kept_as() {
	local name=$1 part
	shift
	{
		for part; do
			if [ -f "$part" ]; then cat "$part"; else echo "$part"; fi
		done
		for part in gcc g++ clang-14 rustc ld objcopy; do command -v $part && stat -Lc '%Y %s' "$(command -v $part)"; done
	} 2>/dev/null | sha256sum | sed "s|^\(.\{24\}\).*|$HEAPGAUGE_KEPT/$name-\1|"
}
