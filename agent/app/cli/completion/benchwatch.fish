# Completion of benchwatch for fish.
function __benchwatch_words
    set -l words (commandline -opc) (commandline -ct)
    $words[1] --completion-bash $words[2..-1] 2>/dev/null
end
# Files are offered where there are no words.
complete -c benchwatch -k -n '__benchwatch_words | string length -q' -f -a '(__benchwatch_words)'
