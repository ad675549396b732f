#!/bin/bash
# Commands, options, help, exit statuses.
. "$(dirname "$0")/lib.sh"

misused "no command" "command is missing" heapgauge
misused "an unknown command, near one" "unknown command 'tpo': did you mean 'top'" heapgauge tpo
misused "the beginning of one" "did you mean 'convert'" heapgauge conv
misused "an unknown command, near none" "unknown command 'qqqqqqqq'$" heapgauge qqqqqqqq
misused "no profile" "top needs PROFILE" heapgauge top
misused "peek without profile" "peek needs RE PROFILE" heapgauge peek RE
misused "diff with one" "diff needs BASE PROFILE" heapgauge diff a
misused "an unknown option" "'--sotr': did you mean '--sort'" heapgauge top --sotr cum x
misused "an ambiguous option" "ambiguous option '--show'?|ambiguous option '--sho'" heapgauge top --sho x
misused "an unknown letter" "unknown option '-x'" heapgauge top -x
misused "a missing value" "--sort needs a value: flat.cum" heapgauge top --sort
misused "a value that is not one of the words" "--sort takes one of flat.cum, not 'up'" heapgauge top --sort up x
misused "a number that is none" "--count takes a number .*not '-1'" heapgauge top -n -1 x
misused "a number past its range" "--count takes a number" heapgauge top -n 4294967296 x
misused "a part that is none" "--min takes a part of the whole" heapgauge tree --min 1.5 x
misused "a flag with a value" "--json takes no value" heapgauge top --json=yes x
misused "help on nothing known" "unknown command 'tip': did you mean 'top'" heapgauge help tip
misused "too many operands" "takes \[COMMAND\]: 'x' is too much" heapgauge help top x
misused "standard input twice" "only once" heapgauge diff - -
misused "run without command" "run needs" heapgauge run
misused "run with a rate that is no power of two" "powers of two" heapgauge run --rate 3 -- true
misused "an escape sequence in a wrong command" "unknown command '.x1b\[31m" heapgauge $'\e[31mred'

runs 0 "help" heapgauge help
cp out help
runs 0 "--help" heapgauge --help
cmp -s out help
ok $? "--help says the same"
for command in $(heapgauge help --words); do
	like "help lists $command" help "^  $command  *[a-zA-Z]"
	runs 0 "help $command" heapgauge help "$command"
	cp out page
	like "help $command begins with its usage" page "^Usage: heapgauge $command( |$)"
	[ "$(wc -L <page)" -le 100 ]
	ok $? "help $command is no wider than 100 columns"
	runs 0 "$command --help" heapgauge "$command" --help
	cmp -s out page
	ok $? "$command --help says the same"
done
runs 0 "version" heapgauge version
like "version is one line" out '^heapgauge [0-9]+\.[0-9]+\.[0-9]+$'
runs 0 "--version" heapgauge --version

# The bash completion, asked like bash would.
complete_words() {
	PATH=$(dirname "$HEAPGAUGE"):$PATH bash -c '. "$0/src/cli/completion.bash"
		COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _heapgauge; echo "${COMPREPLY[*]}"' "$SOURCE" "$@"
}
is "completion of a command" "$(complete_words heapgauge t)" "top tree traces"
is "completion of an option" "$(complete_words heapgauge tree --me)" "--metric --merge --memory-limit"
is "completion of help's operand" "$(complete_words heapgauge help di)" "diff"

# zsh's, with what its completion system provides put in place: compadd filters by what was typed.
if command -v zsh >/dev/null; then
	zsh_words() {
		PATH=$(dirname "$HEAPGAUGE"):$PATH zsh -fc 'compadd() { shift; print -r -- ${(M)@:#$PREFIX*}; }; _files() { print -r -- FILES; }
			. "$0/src/cli/completion.zsh"; words=("$@"); CURRENT=$#; PREFIX=$words[-1]; _heapgauge' "$SOURCE" "$@"
	}
	is "zsh: a command" "$(zsh_words heapgauge t)" "top tree traces"
	is "zsh: an option" "$(zsh_words heapgauge tree --me)" "--metric --merge --memory-limit"
	is "zsh: help's operand" "$(zsh_words heapgauge help di)" "diff"
	is "zsh: a file" "$(zsh_words heapgauge top dump)" "FILES"
else
	skip "zsh completion" "zsh is not installed"
fi
if command -v fish >/dev/null; then
	fish_words() {
		HOME=$scratch PATH=$(dirname "$HEAPGAUGE"):$PATH fish --no-config -c 'source $argv[1]; complete -C $argv[2]' \
			"$SOURCE/src/cli/completion.fish" "$1" | cut -f 1 | sort | tr '\n' ' '
	}
	is "fish: a command" "$(fish_words 'heapgauge t')" "top traces tree "
	is "fish: an option" "$(fish_words 'heapgauge tree --me')" "--memory-limit --merge --metric "
	is "fish: help's operand" "$(fish_words 'heapgauge help di')" "diff "
else
	skip "fish completion" "fish is not installed"
fi

heapgauge help >/dev/full 2>err
is "a full standard output is an error" "$? $(wc -l <err)" "1 1"
done_testing
