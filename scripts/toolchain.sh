#!/usr/bin/env bash
# Fails with a clear message if Go or Node.js is missing or too old, as Debian's may be.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."

fail() {
	printf '%s\n' "$*" >&2
	exit 1
}

for tool; do
	case $tool in
	go)
		wanted=$(sed -nE 's/^go ([0-9.]+)/\1/p' go.mod)
		command -v go >/dev/null || fail "Go $wanted or newer is needed and no go is in PATH: see https://go.dev/doc/install"
		# Go 1.21 and newer fetch the version that go.mod names by themselves, if allowed.
		go list -m >/dev/null 2>&1 || fail "Go $wanted or newer is needed, this is $(go version | cut -d' ' -f3): see https://go.dev/doc/install"
		;;
	node)
		wanted=20
		command -v npm >/dev/null || fail "Node.js $wanted or newer with npm is needed for the dashboards: see https://nodejs.org/en/download"
		have=$(node --version)
		have=${have#v}
		((${have%%.*} >= wanted)) || fail "Node.js $wanted or newer is needed for the dashboards, this is $have: see https://nodejs.org/en/download"
		;;
	*) fail "go or node expected, not: $tool" ;;
	esac
done
