#compdef benchwatch
# Completion of benchwatch for zsh.
local -a matches
matches=(${(f)"$(${words[1]} --completion-bash "${(@)words[2,$CURRENT]}" 2>/dev/null)"})
if (( $#matches )) && compadd -V benchwatch -a matches; then
	return 0
fi
_files
