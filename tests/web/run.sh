#!/usr/bin/env bash
# Tests the live page in Chromium. Ends with "N passed, N failed".
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cd "$here"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

chromium=${CHROMIUM:-}
for name in chromium chromium-browser google-chrome; do
	[[ -n $chromium ]] || chromium=$(command -v "$name" || true)
done
[[ -n $chromium ]] || { echo 'no Chromium in PATH; scripts/packages.sh test installs it' >&2 && exit 1; }

../../agent/web/build.sh
[[ -e ../../agent/web/dist/index.html ]] || { echo 'the live page could not be built' >&2 && exit 1; }
if ! cmp -s package-lock.json node_modules/.benchwatch-lock; then
	npm ci --no-audit --no-fund >"$work/npm" 2>&1 || { cat "$work/npm" >&2 && exit 1; }
	cp package-lock.json node_modules/.benchwatch-lock
fi
(cd ../.. && go build -o "$work/benchwatch" ./agent)

code=0
BENCHWATCH=$work/benchwatch CHROMIUM=$chromium node --test --test-reporter=tap page.test.mjs >"$work/tap" || code=$?
grep -vE '^ *(---|\.\.\.|duration_ms|type)' "$work/tap" || true
count() { sed -nE "s/^# $1 ([0-9]+)$/\1/p" "$work/tap"; }
passed=$(count pass) failed=$(count fail)
echo "${passed:-0} passed, ${failed:-1} failed"
exit "$code"
