#!/bin/bash
# What of CONTRIBUTING.md's style a machine can see: sizes, functions that are not used here,
# descriptors that leak into children, paths of somebody's machine. Each check is itself
# checked on a planted file.
set -u
export LC_ALL=C.UTF-8
root=$(cd "$(dirname "$0")/../.." && pwd)

# text_files ROOT : what people wrote, without builds, data and foreign texts.
text_files() {
	(cd "$1" && find . \( -name .git -o -path './build*' -o -path ./demo -o -path './bench/work*' -o -name corpus \
		-o -name data -o -name node_modules -o -name target -o -name LICENSE -o -name '*.lock' -o -name go.sum -o -name __pycache__ \) -prune -o \
		-type f -size -400k -printf '%P\n' | sort)
}

c_files() {
	text_files "$1" | grep -E '\.(c|h|cc)$'
}

# bare ROOT FILE... : "file:line:" and the C code there with comments and literals blanked.
bare() {
	(cd "$1" && shift && awk '
	FNR == 1 { comment = 0 }
	{
		line = $0; out = ""
		while (line != "") {
			if (comment) {
				at = index(line, "*/")
				if (!at) { line = ""; break }
				line = substr(line, at + 2); comment = 0
			} else if (match(line, /"([^"\\]|\\.)*"|\x27([^\x27\\]|\\.)*\x27|\/\*|\/\//)) {
				what = substr(line, RSTART, RLENGTH)
				out = out substr(line, 1, RSTART - 1)
				line = substr(line, RSTART + RLENGTH)
				if (what == "/*") comment = 1
				else if (what == "//") line = ""
				else out = out substr(what, 1, 1) substr(what, 1, 1)
			} else { out = out line; line = "" }
		}
		print FILENAME ":" FNR ":" out
	}' "$@")
}

# Each check prints the places that break it, as file:line: why.

banned='sprintf|vsprintf|strcpy|stpcpy|strcat|strncpy|gets|atoi|atol|atoll|atof|strtol|strtoll|strtoul|strtoull|strtok|system|popen|alloca|tmpnam|mktemp|setlocale|isalpha|isdigit|isalnum|isspace|isprint|isupper|islower|isxdigit|ispunct|toupper|tolower'
banned_functions() {
	bare "$1" $(c_files "$1" | grep -E '^(src|include|fuzz)/') | grep -E "^[^:]*:[0-9]*:(.*[^A-Za-z0-9_])?($banned)[[:space:]]*\("
}

library_prints_or_exits() {
	bare "$1" $(c_files "$1" | grep -E '^src/' | grep -v '^src/cli/') |
		grep -E '^[^:]*:[0-9]*:(.*[^A-Za-z0-9_])?(printf|vprintf|fprintf|puts|fputs|putchar|perror|exit|abort|errx|warnx)[[:space:]]*\('
}

# open, openat, socket, pipe, memfd and fopen say close-on-exec before their semicolon.
inherited_descriptors() {
	(cd "$1" && awk '
		FNR == 1 { open = 0 }
		!open && /(^|[^A-Za-z0-9_>.])(open|openat|pipe2?|socket|accept4?|memfd_create|fopen)\(/ \
			&& !/^[ \t]*(\*|\/\*|\/\/)/ { open = FNR; text = "" }
		open { text = text $0 }
		open && /;|\{[ \t]*$/ {
			if (text !~ /_CLOEXEC|fopen\([^;]*"[a-z+]*e/)
				print FILENAME ":" open ": descriptor without close-on-exec"
			open = 0
		}' $(c_files . | grep -E '^src/'))
}

long_files() {
	(cd "$1" && text_files . | grep -E '\.(c|h|cc|sh|py|js|go|rs)$' | xargs wc -l) |
		awk '$1 > 1000 && $2 != "total" { print $2 ":1: " $1 " lines, 1000 are the limit" }'
}

long_functions() {
	(cd "$1" && c_files . | ctags -L - --languages=C,C++ --kinds-C=f --kinds-C++=f --fields=ne -o - 2>/dev/null) |
		awk -F'\t' '{
			line = end = 0
			for (i = 4; i <= NF; i++) {
				if ($i ~ /^line:/) line = substr($i, 6)
				if ($i ~ /^end:/) end = substr($i, 5)
			}
			if (end - line + 1 > 100)
				print $2 ":" line ": " $1 " has " end - line + 1 " lines, 100 are the limit"
		}'
}

trailing_blanks() {
	(cd "$1" && text_files . | tr '\n' '\0' | xargs -0 grep -nIE '[ 	]+$' | sed 's/:[^:]*$/: blank at the end of the line/')
}

machine_paths() {
	(cd "$1" && text_files . | tr '\n' '\0' |
		xargs -0 grep -nIE '(^|[^A-Za-z0-9_.~$})*])/(home|work|root)/' | cut -c1-160)
}

n=0
result() {
	n=$((n + 1))
	if [ "$1" -eq 0 ]; then echo "ok $n - $2"; else echo "not ok $n - $2"; fi
}

copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT

# check NAME FUNCTION PLANTED-FILE PLANTED-TEXT : clean on the tree, and not on the planted file.
check() {
	local found
	found=$("$2" "$root")
	[ -z "$found" ] || sed 's/^/# /' <<<"$found"
	[ -z "$found" ]
	result $? "$1"
	rm -rf "${copy:?}/src"
	mkdir -p "$copy/$(dirname "$3")"
	printf '%b' "$4" >"$copy/$3"
	[ "$("$2" "$copy" | wc -l)" -eq 1 ]
	result $? "$1: a planted one is found"
}

check "no banned function" banned_functions src/base/planted.c \
	'/* strcpy(a) */\nint a = f("gets(1)");\n\tn = sprintf (b, "x");\nmy_atoi(1);\n'
check "library code neither prints nor exits" library_prints_or_exits src/base/planted.c \
	'// exit(1)\nbuf_printf(b, "exit(1)");\nsnprintf(b, 1, "a");\n\tfprintf(stderr, "x");\n'
check "descriptors are close-on-exec" inherited_descriptors src/base/planted.c \
	'fd = open(path,\n\tO_RDONLY | O_CLOEXEC);\nfd = open(path, O_RDONLY);\nstream_open(s, p);\nf = fopen(p, "re");\n'
long=$(printf 'int a;\\n%.0s' $(seq 1001))
check "no file over 1000 lines" long_files src/base/planted.c "$long"
if ctags --version 2>/dev/null | grep -q Universal; then
	body=$(printf '\\ta++;\\n%.0s' $(seq 100))
	check "no function over 100 lines" long_functions src/base/planted.c "int a;\nvoid f(void)\n{\n$body}\nvoid g(void)\n{\n}\n"
else
	n=$((n + 1))
	echo "ok $n - no function over 100 lines # SKIP universal-ctags is not installed"
fi
check "no blank at the end of a line" trailing_blanks src/base/planted.c 'int a; \nint b;\n'
slash=/
check "no path of somebody's machine" machine_paths src/base/planted.c \
	"// see ${slash}home/me/x.c\n// and https://example.org/work/ or at/home/\n"
echo "1..$n"
