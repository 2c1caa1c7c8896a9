#!/usr/bin/env bash
# Runs every fuzz test for a while: go test takes one package and one target at a time.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
fuzztime=${1:-10s}

grep -rlE '^func Fuzz[A-Z]' --include='*_test.go' agent | xargs -rn1 dirname | sort -u | while read -r package; do
	sed -nE 's/^func (Fuzz[A-Za-z0-9_]+)\(.*/\1/p' "$package"/*_test.go | while read -r target; do
		printf '%s %s\n' "$package" "$target"
		go test "./$package" -run '^$' -fuzz "^$target\$" -fuzztime "$fuzztime" -fuzzminimizetime 10x
	done
done
