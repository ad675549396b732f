# bash completion for heapgauge: commands, their options, and files.
_heapgauge() {
	local word=${COMP_WORDS[COMP_CWORD]} command=${COMP_WORDS[1]}
	COMPREPLY=()
	if [ "$COMP_CWORD" -eq 1 ]; then
		mapfile -t COMPREPLY < <(compgen -W "$(heapgauge help --words)" -- "$word")
	elif [ "$command" = help ] && [ "$COMP_CWORD" -eq 2 ]; then
		mapfile -t COMPREPLY < <(compgen -W "$(heapgauge help --words)" -- "$word")
	elif [[ $word == -* ]]; then
		mapfile -t COMPREPLY < <(compgen -W "$(heapgauge help --words "$command" 2>/dev/null)" -- "$word")
	fi
}
complete -o default -F _heapgauge heapgauge
