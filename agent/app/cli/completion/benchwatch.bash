# Completion of benchwatch for bash. Labels and ids come from runs of other users, so no
# word is expanded: no compgen -W.
_benchwatch() {
	local line=${COMP_LINE:0:COMP_POINT} current start='' quoted word
	local -a words
	# Bash splits words at = and :, the program expects them whole.
	read -ra words <<<"$line"
	[[ $line != *[[:space:]] ]] || words+=('')
	current=${words[${#words[@]} - 1]}
	# It replaces what follows the last = or :
	[[ $current != *[=:]* ]] || start=${current%"${current##*[=:]}"}
	COMPREPLY=()
	while IFS= read -r word || [[ -n $word ]]; do
		[[ $word == "$current"* ]] || continue
		printf -v quoted %q "${word#"$start"}"
		COMPREPLY+=("$quoted")
	done < <("${words[0]}" --completion-bash "${words[@]:1}" 2>/dev/null)
}
complete -o default -F _benchwatch benchwatch
