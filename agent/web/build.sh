#!/usr/bin/env bash
# Builds the live page into agent/web/dist, from where the Go build takes it. Without
# Node.js it leaves that folder alone: the binary then has no live page.
set -euo pipefail
cd "$(dirname "$0")"

if ! command -v npm >/dev/null; then
	printf 'no npm in PATH: building without the live page\n' >&2
	exit 0
fi

log=$(mktemp)
trap 'rm -f "$log"' EXIT
run() { "$@" >"$log" 2>&1 || { cat "$log" >&2; exit 1; }; }

# node_modules is kept as long as it belongs to the present lock file, and dist as
# long as nothing of its source is newer.
if ! cmp -s package-lock.json node_modules/.benchwatch-lock; then
	if ! npm ci --no-audit --no-fund >"$log" 2>&1; then
		tail -n 5 "$log" >&2
		printf 'npm could not install what the live page needs: building without it\n' >&2
		exit 0
	fi
	cp package-lock.json node_modules/.benchwatch-lock
	rm -f dist/index.html
fi
if [[ ! -e dist/index.html || -n $(find src package.json tsconfig.json build.mjs -newer dist/index.html -print -quit) ]]; then
	run npm run --silent build
fi
