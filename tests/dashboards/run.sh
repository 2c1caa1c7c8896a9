#!/usr/bin/env bash
# Checks that dashboards/*.json are what their source says, that every query
# parses and asks for what exists, and that the dashboards are sound. With
# PROMETHEUS_URL set it also asks that Prometheus (see data_test.go).
set -euo pipefail
cd "$(dirname "$0")"

../../dashboards/build.sh --check

log=$(mktemp)
trap 'rm -f "$log"' EXIT
if ! go test -count=1 -v . >"$log" 2>&1; then
  grep -v '^=== RUN\|^--- PASS\|^--- SKIP' "$log" >&2
  exit 1
fi
echo "dashboards: $(grep -c '^--- PASS' "$log") checks passed"
