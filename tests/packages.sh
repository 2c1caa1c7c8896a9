#!/usr/bin/env bash
# Tests of the packages in build/packages: the same bytes when they are built again,
# lintian, and their life on bare Debians, with rpmlint there (needs root, debootstrap).
#   packages.sh [RELEASE...]    default: bookworm trixie sid
# Ends with "N passed, N failed".
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
packages=build/packages
passed=0 failed=0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

ok() { # NAME COMMAND...
	local name=$1
	shift
	if "$@" >"$work/log" 2>&1; then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
		printf 'FAILED: %s\n' "$name"
		sed 's/^/  /' "$work/log"
	fi
}

complete() {
	local version file
	version=$(<VERSION)
	for file in "benchwatch_${version}_"{amd64,arm64}.deb "benchwatch-$version-1."{x86_64,aarch64}.rpm "benchwatch_${version}_"{x86_64,aarch64}.apk \
		"benchwatch-$version."{linux,darwin}-{amd64,arm64}.{tar.gz,cdx.json}; do
		ls "$packages/$file" || return 1
	done
}
sums() { (cd "$packages" && sha256sum --quiet -c SHA256SUMS && [[ $(wc -l <SHA256SUMS) -eq $(find . -type f ! -name SHA256SUMS | wc -l) ]]); }
again() { TMPDIR=$work make packages OUT="$work/again" && diff -r "$packages" "$work/again"; }
static() {
	local file
	for file in "$packages"/*linux*.tar.gz; do
		mkdir -p "$work/static"
		tar -C "$work/static" --strip-components=1 -xzf "$file" --wildcards '*/benchwatch'
		! readelf -d "$work/static/benchwatch" | grep NEEDED || return 1
	done
}
# modules: of the binary, and what replaces one unless that is a folder of this repository.
modules() {
	go version -m "$work/static/benchwatch.amd64" | awk '
		function flush() { if (path != "" && path !~ /^\.\//) print "pkg:golang/" path "@" version }
		$1 == "dep" {flush(); path = $2; version = $3}
		$1 == "=>" {path = $2; version = $3}
		END {flush()}'
}
parts() { # every module of the binary and of the page is listed
	local file
	for file in "$packages"/*linux-amd64.cdx.json; do
		diff <(jq -r '.components[].purl | select(startswith("pkg:golang/") and (startswith("pkg:golang/stdlib") | not))' "$file" | sort) \
			<(modules | sort) || return 1
		jq -e '.components | any(.purl | startswith("pkg:npm/uplot@"))' "$file" || return 1
	done
}
unpack_amd64() {
	mkdir -p "$work/static"
	tar -C "$work/static" --strip-components=1 -xzf "$packages"/*linux-amd64.tar.gz --wildcards '*/benchwatch'
	mv "$work/static/benchwatch" "$work/static/benchwatch.amd64"
}
lint_deb() {
	local file
	for file in "$packages"/*.deb; do
		lintian --allow-root --fail-on error,warning "$file" || return 1
	done
}
has() { command -v "$1" >/dev/null; }

ok 'all packages were built' complete
ok 'the checksums are theirs' sums
ok 'binaries need no library' static
unpack_amd64
ok 'the lists have all parts' parts
if has lintian; then ok lintian lint_deb; else echo 'lintian is not installed: skipped'; fi
ok 'built again, they are the same bytes' again

if ((EUID == 0)) && has debootstrap; then
	for release in "${@:-bookworm trixie sid}"; do
		for name in $release; do
			ok "on a bare $name" tests/debian.sh "$name" tests/packages/installed.sh
			grep -hE '^(page after|[0-9]+ passed)' "$work/log" | sed "s/^/$name: /" || true
			ok "the first minute on a bare $name" tests/debian.sh "$name" tests/packages/minute.sh
			grep -hE ' after [0-9]+ s$|^[0-9]+ passed' "$work/log" | sed "s/^/$name: /" || true
		done
	done
	ok 'the rpm, with the rpm of Debian' tests/debian.sh bookworm tests/packages/rpm.sh
	grep -hE '^[0-9]+ passed' "$work/log" | sed 's/^/rpm: /' || true
else
	echo 'no root or no debootstrap: installing is not tested'
fi
printf '%s passed, %s failed\n' "$passed" "$failed"
((failed == 0))
