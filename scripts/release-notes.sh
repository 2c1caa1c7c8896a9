#!/usr/bin/env bash
# Prints the section of CHANGELOG.md for a tag vX.Y.Z. Fails if the file VERSION has
# another version or the section is missing.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
version=${1#v}
[[ $version == "$(<VERSION)" ]] || { printf 'release-notes.sh: the tag is %s, VERSION has %s\n' "$1" "$(<VERSION)" >&2 && exit 1; }
notes=$(awk -v heading="## $version / " 'index($0, heading) == 1 {found = 1; next} /^## / {found = 0} found' CHANGELOG.md)
[[ -n $notes ]] || { printf 'release-notes.sh: CHANGELOG.md has no section "## %s / YYYY-MM-DD"\n' "$version" >&2 && exit 1; }
printf '%s\n' "$notes"
