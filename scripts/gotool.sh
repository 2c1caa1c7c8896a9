#!/usr/bin/env bash
# Prints the path of a program that is a Go module, such as a linter. It is built once
# and kept in the user's cache, and needs no entry in go.mod.
#   gotool.sh github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
set -euo pipefail

name=${1%@*}
name=${name##*/}
tools=${XDG_CACHE_HOME:-$HOME/.cache}/benchwatch/$name-${1##*@}-$(go env GOVERSION)
if [[ ! -x $tools/$name ]]; then
	# Beside its place and moved, so that an interrupted build leaves nothing.
	mkdir -p "${tools%/*}"
	building=$(mktemp -d "$tools.XXXXXX")
	trap 'rm -rf "$building"' EXIT
	GOFLAGS='' GOOS='' GOARCH='' GOBIN=$building go install "$1" 2>"$building/log" || {
		cat "$building/log" >&2
		exit 1
	}
	mkdir -p "$tools"
	mv "$building/$name" "$tools/"
fi
printf '%s\n' "$tools/$name"
