#!/usr/bin/env bash
# Generates dashboards/*.json from dashboards-src. `build.sh --check` fails if
# they are not what the source gives.
set -euo pipefail
cd "$(dirname "$0")"

log=$(mktemp)
fresh=$(mktemp -d)
trap 'rm -rf "$log" "$fresh"' EXIT
run() { "$@" >"$log" 2>&1 || { cat "$log" >&2; exit 1; }; }

# node_modules is kept as long as it belongs to the present lock file.
if ! cmp -s package-lock.json node_modules/.benchwatch-lock; then
  run npm ci --no-audit --no-fund
  cp package-lock.json node_modules/.benchwatch-lock
fi
run npm run --silent build -- "$fresh"

count=$(find "$fresh" -name '*.json' | wc -l)
if [[ ${1-} == --check ]]; then
  mkdir "$fresh/committed"
  cp ../dashboards/*.json "$fresh/committed"
  if ! diff -rq --exclude=committed "$fresh" "$fresh/committed" >"$log"; then
    echo "dashboards: not what dashboards-src gives, run dashboards-src/build.sh:" >&2
    sed "s|$fresh/committed|dashboards|g; s|$fresh|generated|g" "$log" >&2
    exit 1
  fi
  echo "dashboards: $count checked, up to date"
else
  rm -f ../dashboards/*.json
  cp "$fresh"/*.json ../dashboards
  echo "dashboards: $count generated"
fi
