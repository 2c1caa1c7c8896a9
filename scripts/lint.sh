#!/usr/bin/env bash
# gofmt, go vet, staticcheck and shellcheck over the whole repository. Ends with
# "N passed, N failed".
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
TAGS=e2e,mysql9
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

# go run would look for it in the module that is checked.
staticcheck_in() { (cd "$1" && "$tools/staticcheck" -tags "$TAGS" ./...); }

tools=$(mktemp -d)
trap 'rm -rf "$tools"' EXIT
GOBIN=$tools go install "$STATICCHECK" 2>"$tools/log" || {
	cat "$tools/log" >&2
	exit 1
}
check gofmt gofmt -l agent tests
for module in $(git ls-files '*go.mod' | xargs -n1 dirname); do
	check "vet $module" go -C "$module" vet -tags "$TAGS" ./...
	check "staticcheck $module" staticcheck_in "$module"
done
mapfile -t scripts < <(git ls-files '*.sh' .ci/run)
check shellcheck shellcheck -x "${scripts[@]}"

printf '%s passed, %s failed\n' "$passed" "$failed"
((failed == 0))
