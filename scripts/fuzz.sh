#!/usr/bin/env bash
# Runs every fuzz test for a while: go test takes one package and one target at a time.
# It continues after a failure, and prints the commands that repeat failures at the end.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
fuzztime=${1:-10s}
only=${2:-.}

log=$(mktemp)
trap 'rm -f "$log"' EXIT
failed=()
while read -r package; do
	while read -r target; do
		printf '%s %s\n' "$package" "$target"
		if go test "./$package" -run '^$' -fuzz "^$target\$" -fuzztime "$fuzztime" -fuzzminimizetime 10x 2>&1 | tee "$log"; then
			continue
		fi
		# Go writes the input into the corpus and names it; one of the corpus or of f.Add fails before.
		name=$(sed -nE "s|.*go test -run=($target/[^ ]+).*|\1|p; s|.*--- FAIL: ($target/[^ ]+) .*|\1|p; s|.*failure while testing seed corpus entry: ($target/[^ ]+).*|\1|p" "$log" | head -1)
		# Go before 1.27 may report the end of the time as a failure, without an input: golang/go#75804.
		if [[ -z $name ]] && grep -A1 -E "^--- FAIL: $target " "$log" | grep -qx '    context deadline exceeded'; then
			printf 'no input failed: the time was over (golang/go#75804)\n'
			continue
		fi
		file=$package/testdata/fuzz/$name
		failed+=("go test ./$package -run '^${name:-$target}\$'")
		if [[ -n $name && -f $file ]]; then
			failed+=("    # input: $file, keep it as a test: git add $file")
		fi
	done < <(sed -nE 's/^func (Fuzz[A-Za-z0-9_]+)\(.*/\1/p' "$package"/*_test.go | grep -E "$only" || true)
done < <(grep -rlE '^func Fuzz[A-Z]' --include='*_test.go' agent | xargs -rn1 dirname | sort -u)
if ((${#failed[@]})); then
	printf '\nfailed; each is repeated by:\n' >&2
	printf '  %s\n' "${failed[@]}" >&2
	exit 1
fi
