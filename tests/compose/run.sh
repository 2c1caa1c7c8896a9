#!/usr/bin/env bash
# Checks compose/ without a Docker engine. Ends with "N passed, N failed".
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

events=$(mktemp)
trap 'rm -f "$events"' EXIT
code=0
go test -count=1 -json ./... >"$events" || code=$?
jq -Rrn -f ../../scripts/gotest.jq "$events"
exit "$code"
