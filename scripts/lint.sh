#!/usr/bin/env bash
# gofmt, go vet, staticcheck and shellcheck over the whole repository. Ends with
# "N passed, N failed".
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
STATICCHECK=honnef.co/go/tools/cmd/staticcheck@v0.8.2
passed=0 failed=0

check() { # NAME COMMAND...
	local name=$1 output
	shift
	if output=$("$@" 2>&1) && [[ -z $output ]]; then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
		printf '%s:\n%s\n' "$name" "$output"
	fi
}

shell_scripts() {
	git ls-files --cached --others --exclude-standard '*.sh' .ci/run
}

check gofmt gofmt -l agent tests
check vet go vet -tags e2e ./...
check staticcheck go run "$STATICCHECK" -tags e2e ./...
mapfile -t scripts < <(shell_scripts)
check shellcheck shellcheck -x "${scripts[@]}"

printf '%s passed, %s failed\n' "$passed" "$failed"
((failed == 0))
