#!/usr/bin/env bash
# Tests the live page in Chromium. Ends with "N passed, N failed".
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")"
# shellcheck source=scripts/lib/browser.sh
. ../../scripts/lib/browser.sh

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

chromium_find
[[ -n $CHROMIUM ]] || { echo 'no Chromium in PATH; scripts/packages.sh test installs it' >&2 && exit 1; }

../../agent/show/web/build.sh --check
npm_install "$work"
(cd ../.. && go build -o "$work/benchwatch" .)

code=0
BENCHWATCH=$work/benchwatch node_test "$work" page.test.mjs || code=$?
echo "$passed passed, $failed failed"
exit "$code"
