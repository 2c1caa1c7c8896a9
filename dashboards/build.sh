#!/usr/bin/env bash
# Generates dashboards/*.json from dashboards/src. `build.sh --check` fails if
# what is committed differs from what the code gives.
set -euo pipefail
cd "$(dirname "$0")/src"

log=$(mktemp)
trap 'rm -f "$log"' EXIT
run() { "$@" >"$log" 2>&1 || { cat "$log" >&2; exit 1; }; }

# node_modules is kept as long as it belongs to the present lock file.
if ! cmp -s package-lock.json node_modules/.benchwatch-lock; then
  run npm ci --no-audit --no-fund
  cp package-lock.json node_modules/.benchwatch-lock
fi
run npm run --silent build

count=$(find .. -maxdepth 1 -name '*.json' | wc -l)
if [[ ${1-} == --check ]]; then
  changed=$(git status --porcelain -- ':(glob)../*.json')
  if [[ -n $changed ]]; then
    printf 'dashboards: not up to date, run dashboards/build.sh and commit:\n%s\n' "$changed" >&2
    exit 1
  fi
  echo "dashboards: $count checked, up to date"
else
  echo "dashboards: $count generated"
fi
