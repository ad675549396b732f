#compdef heapgauge
# zsh completion for heapgauge: commands, their options, and files.
_heapgauge() {
	if (( CURRENT == 2 )) || [[ $CURRENT == 3 && $words[2] == help ]]; then
		compadd -- $(heapgauge help --words)
	elif [[ $PREFIX == -* ]]; then
		compadd -- $(heapgauge help --words $words[2] 2>/dev/null)
	else
		_files
	fi
}
[[ $funcstack[1] != _heapgauge ]] || _heapgauge "$@"
