#!/usr/bin/env bash
# Builds the site of the documentation into build/site/html, strictly: a link that leads nowhere is an error.
# stage.py says what is on it.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
out=build/site
venv=${XDG_CACHE_HOME:-$HOME/.cache}/benchwatch/site-$(sha256sum site/requirements.txt | cut -c1-12)

# An environment of its own, by hashes; the next build finds it.
if [[ ! -x $venv/bin/zensical ]]; then
	rm -rf "$venv"
	python3 -m venv "$venv"
	"$venv/bin/pip" install --quiet --disable-pip-version-check --require-hashes -r site/requirements.txt
fi

rm -rf "$out"
mkdir -p "$out"
"$venv/bin/python" site/stage.py "$out"
for language in en zh; do
	printf '%s:\n' "$language"
	"$venv/bin/zensical" build --strict --clean -f "$out/$language/mkdocs.yml"
done
mv "$out/en/html" "$out/html"
mv "$out/zh/html" "$out/html/zh"
