# fish completion for heapgauge: commands, their options, and files.
function __heapgauge_words
    heapgauge help --words $argv 2>/dev/null | string split ' '
end
complete -c heapgauge -n __fish_use_subcommand -f -a '(__heapgauge_words)'
complete -c heapgauge -n '__fish_seen_subcommand_from help' -f -a '(__heapgauge_words)'
complete -c heapgauge -n 'not __fish_use_subcommand; and string match -q -- "-*" (commandline -ct)' -f \
    -a '(__heapgauge_words (commandline -opc)[2])'
