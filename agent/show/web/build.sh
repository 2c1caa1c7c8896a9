#!/usr/bin/env bash
# Bundles the live page from agent/show/web/src into agent/show/web/dist, which is committed
# so that building the agent needs no Node.js. `build.sh --check` fails if dist is
# not what the source gives.
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

if [[ ${1-} == --check ]]; then
	diff -rq dist "$fresh" >"$log" || {
		echo "page: agent/show/web/dist is not what agent/show/web/src gives, run agent/show/web/build.sh:" >&2
		sed "s|$fresh|built|g" "$log" >&2
		exit 1
	}
	echo "page: up to date"
else
	rm -rf dist
	cp -r "$fresh" dist
	chmod 755 dist
fi
