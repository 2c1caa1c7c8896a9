#!/usr/bin/env bash
# Lints the repository: golangci-lint (.golangci.yml), shellcheck and, where npm
# is, Biome. Ends with "N passed, N failed". golangci-lint is built once and kept
# in the user's cache.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
GOLANGCI=v2.15.0
passed=0 failed=0

check() { # NAME COMMAND...
	local name=$1 output
	shift
	if output=$("$@" 2>&1); then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
		printf '%s:\n%s\n' "$name" "$output"
	fi
}

tools=${XDG_CACHE_HOME:-$HOME/.cache}/benchwatch/golangci-lint-$GOLANGCI-$(go env GOVERSION)
if [[ ! -x $tools/golangci-lint ]]; then
	# Beside its place and moved, so that an interrupted build leaves nothing.
	mkdir -p "${tools%/*}"
	building=$(mktemp -d "$tools.XXXXXX")
	trap 'rm -rf "$building"' EXIT
	GOFLAGS='' GOBIN=$building go install "github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$GOLANGCI" 2>"$building/log" || {
		cat "$building/log" >&2
		exit 1
	}
	mkdir -p "$tools"
	mv "$building/golangci-lint" "$tools/"
fi

check golangci-lint "$tools/golangci-lint" run ./...
mapfile -t scripts < <(git ls-files '*.sh' .ci/run)
check shellcheck shellcheck -x "${scripts[@]}"
if command -v npm >/dev/null; then
	[[ -x agent/web/node_modules/.bin/biome ]] || npm --prefix agent/web ci --no-audit --no-fund --silent
	check biome agent/web/node_modules/.bin/biome check
fi

printf '%s passed, %s failed\n' "$passed" "$failed"
((failed == 0))
