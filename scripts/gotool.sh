#!/usr/bin/env bash
# Prints the path of a program that is a Go module, such as a linter. It is built once
# and kept in the user's cache, and needs no entry in go.mod.
#   gotool.sh github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
# "go install" refuses a module whose go.mod replaces others. Such a module and the
# package in it are named apart; it is built in a copy, where its own go.mod and go.sum apply:
#   gotool.sh github.com/thanos-io/thanos@v0.42.4 ./cmd/thanos [BUILD FLAG...]
set -euo pipefail

name=${2:-${1%@*}}
name=${name##*/}
tools=${XDG_CACHE_HOME:-$HOME/.cache}/benchwatch/$name-${1##*@}-$(go env GOVERSION)
export GOFLAGS='' GOOS='' GOARCH=''

# build FOLDER MODULE@VERSION PACKAGE FLAG...: from a copy of the module.
build() {
	local into=$1 module=$2 package=$3 source
	shift 3
	source=$(cd "$into" && go mod download -json "$module" | sed -nE 's/^\t"Dir": "(.*)",?$/\1/p') &&
		cp -r "$source" "$into/source" && chmod -R u+w "$into/source" &&
		go build -C "$into/source" -trimpath -o "$into/$name" "$@" "$package"
}

if [[ ! -x $tools/$name ]]; then
	# Beside its place and moved, so that an interrupted build leaves nothing.
	mkdir -p "${tools%/*}"
	building=$(mktemp -d "$tools.XXXXXX")
	trap 'rm -rf "$building"' EXIT
	if (($# > 1)); then
		build "$building" "$@"
	else
		GOBIN=$building go install "$1"
	fi 2>"$building/log" || {
		cat "$building/log" >&2
		exit 1
	}
	mkdir -p "$tools"
	mv "$building/$name" "$tools/"
fi
printf '%s\n' "$tools/$name"
