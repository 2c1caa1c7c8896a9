#!/usr/bin/env bash
# Puts the built site into a checkout of the branch gh-pages, as a version beside the others:
#   publish.sh CHECKOUT VERSION [ALIAS]
# VERSION is 0.2 or main. ALIAS, such as latest, is another name of this version; the root of the site leads to it.
# versions.json, from which the pages offer other versions, is in mike's format.
set -euo pipefail

branch=$1 version=$2 alias=${3:-}
built=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)/build/site/html
cd "$branch"

for name in "$version" ${alias:+"$alias"}; do
	[[ $name =~ ^[a-z0-9.]+$ ]] || { printf 'publish.sh: %s is no name of a version\n' "$name" >&2; exit 1; }
	rm -rf "./$name"
	cp -r "$built" "$name"
done
touch .nojekyll
[[ -f versions.json ]] || printf '[]\n' >versions.json
jq --arg version "$version" --arg alias "$alias" '
	[{version: $version, title: $version, aliases: (if $alias == "" then [] else [$alias] end)}]
	+ [.[] | select(.version != $version) | .aliases -= [$alias]]
	| sort_by(.version | if . == "main" then [1e9] else split(".") | map(tonumber? // 0) end) | reverse' versions.json >versions.json.new
mv versions.json.new versions.json
start=${alias:-$version}
if [[ -n $alias || ! -f index.html ]]; then
	printf '<!doctype html><meta charset="utf-8"><title>benchwatch</title><meta http-equiv="refresh" content="0; url=%s/"><a href="%s/">benchwatch</a>\n' \
		"$start" "$start" >index.html
fi
