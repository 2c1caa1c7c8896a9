#!/usr/bin/env bash
# Lints the repository: golangci-lint (.golangci.yml), shellcheck, where npm is
# Biome, and where https://vuln.go.dev can be reached govulncheck. Ends with
# "N passed, N failed, N skipped". golangci-lint is built once and kept in the
# user's cache.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
GOLANGCI=v2.15.0
GOVULNCHECK=v1.1.4
passed=0 failed=0 skipped=0

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

golangci_lint=$(scripts/gotool.sh "github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$GOLANGCI")
check golangci-lint "$golangci_lint" run ./...
mapfile -t scripts < <(git ls-files '*.sh' .ci/run)
check shellcheck shellcheck -x "${scripts[@]}"
if command -v npm >/dev/null; then
	[[ -x agent/show/web/node_modules/.bin/biome ]] || npm --prefix agent/show/web ci --no-audit --no-fund --silent
	check biome agent/show/web/node_modules/.bin/biome check
fi

# Vulnerabilities of the functions that the agent calls.
if output=$(go run "golang.org/x/vuln/cmd/govulncheck@$GOVULNCHECK" . 2>&1); then
	passed=$((passed + 1))
elif [[ $output == *"fetching vulnerabilities"* || $output == *"reading https://"* || $output == *"dial tcp"* ]]; then
	skipped=$((skipped + 1))
	printf 'govulncheck skipped: %s\n' "$(tail -n 1 <<<"${output%$'\n'exit status*}")"
else
	failed=$((failed + 1))
	printf 'govulncheck:\n%s\n' "$output"
fi

printf '%s passed, %s failed, %s skipped\n' "$passed" "$failed" "$skipped"
((failed == 0))
