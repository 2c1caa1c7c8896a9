#!/usr/bin/env bash
# Builds the packages into build/packages: deb, rpm and apk for Linux, archives for Linux
# and macOS, a list of each binary's parts (CycloneDX), and SHA256SUMS. The same commit
# gives the same bytes.
#   build.sh [FOLDER]
# LDFLAGS come from the Makefile. PLATFORMS limits what is built.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
export PATH=$PATH:/usr/local/go/bin
NFPM=github.com/goreleaser/nfpm/v2/cmd/nfpm@v2.45.2
PLATFORMS=${PLATFORMS:-linux/amd64 linux/arm64 darwin/amd64 darwin/arm64}
out=${1:-build/packages}

die() {
	printf 'build.sh: %s\n' "$*" >&2
	exit 1
}

[[ $(tar --version 2>/dev/null) == *GNU* ]] || die 'GNU tar is needed'
VERSION=$(<VERSION)
tag=$(git describe --tags --exact-match --match 'v*' 2>/dev/null || echo "v$VERSION")
[[ $tag == "v$VERSION" ]] || die "the tag is $tag and the file VERSION has $VERSION"
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || stat -c %Y VERSION)}
export VERSION SOURCE_DATE_EPOCH TZ=UTC LC_ALL=C
umask 022

nfpm=$(scripts/gotool.sh "$NFPM")
rm -rf "$out"
mkdir -p "$out"
out=$(cd "$out" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
go build -o "$work/sbom" ./internal/sbom

compile() { # GOOS GOARCH FILE
	GOOS=$1 GOARCH=$2 CGO_ENABLED=0 go build -trimpath -ldflags "${LDFLAGS--s -w}" -o "$3" .
}

# licence: Debian's form of it, with the licences of what is linked in.
licence() { # BINARY
	cat <<-END
		Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
		Upstream-Name: benchwatch
		Source: https://github.com/benchwatch/benchwatch

		Files: *
		Copyright: 2026 the benchwatch authors
		License: Apache-2.0
		 On Debian systems the text is in /usr/share/common-licenses/Apache-2.0.
		 The program contains the modules in LICENSES.gz, with these licences.
	END
}

# changelog: the newest section of CHANGELOG.md, as Debian writes one.
changelog() {
	printf 'benchwatch (%s) stable; urgency=medium\n\n' "$VERSION"
	awk '/^## / {if (seen++) exit; next} /^\* / {sub(/^\* /, ""); print}' CHANGELOG.md |
		while IFS= read -r line; do fold -s -w 72 <<<"$line" | sed -e '1s/^/  * /' -e '2,$s/^/    /' -e 's/ *$//'; done
	printf '\n -- %s  %s\n' "$(sed -n 's/^maintainer: //p' packaging/nfpm.yaml)" "$(date -u -R -d "@$SOURCE_DATE_EPOCH")"
}

archive() { # FOLDER FILE
	tar -C "$(dirname "$1")" --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner --format=ustar -cf - "$(basename "$1")" | gzip -9n >"$2"
}

package() { # FORMAT BINARY LICENCES
	local stage=$work/stage doc zsh=site-functions
	rm -rf "$stage"
	[[ $1 != deb ]] || zsh=vendor-completions
	packaging/stage.sh "$2" "$work/runnable" "$stage" /usr "$zsh"
	doc=$stage/usr/share/doc/benchwatch
	gzip -9n <"$3" >"$doc/LICENSES.gz"
	if [[ $1 == deb ]]; then
		licence >"$doc/copyright"
		changelog | gzip -9n >"$doc/changelog.gz"
		mkdir -p "$stage/usr/share/lintian/overrides"
		cp packaging/lintian-overrides "$stage/usr/share/lintian/overrides/benchwatch"
	else
		cp LICENSE CHANGELOG.md "$doc/"
	fi
	: >"$work/documentation"
	if [[ $1 == rpm ]]; then # which marks it
		mkdir "$stage/documentation"
		mv "$stage/usr/share/doc" "$stage/usr/share/man" "$stage/documentation/"
		(cd "$stage/documentation" && find . -type f -printf '  - {src: "@stage@/documentation/%P", dst: "/usr/share/%P", type: doc}\n' | sort) >"$work/documentation"
	elif [[ $1 == apk ]]; then
		rm -r "$stage/usr/lib/systemd"
	fi
	find "$stage" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
	sed "/@documentation@/r $work/documentation" packaging/nfpm.yaml | sed "s|@stage@|$stage|" >"$work/nfpm.yaml"
	"$nfpm" package --config "$work/nfpm.yaml" --packager "$1" --target "$out/" >"$work/log" || {
		cat "$work/log" >&2
		exit 1
	}
}

compile "$(go env GOHOSTOS)" "$(go env GOHOSTARCH)" "$work/runnable"
for platform in $PLATFORMS; do
	os=${platform%/*}
	ARCH=${platform#*/}
	export ARCH
	name=benchwatch-$VERSION.$os-$ARCH
	folder=$work/$name
	mkdir "$folder"
	compile "$os" "$ARCH" "$folder/benchwatch"
	"$work/sbom" -version "$VERSION" "$folder/benchwatch" >"$out/$name.cdx.json"
	"$work/sbom" -licences "$folder/benchwatch" >"$folder/LICENSES"
	if [[ $os == linux ]]; then
		for format in deb rpm apk; do
			package "$format" "$folder/benchwatch" "$folder/LICENSES"
		done
	fi
	cp LICENSE README.md CHANGELOG.md packaging/benchwatch.yml "$folder/"
	cp -r docs "$folder/docs"
	find "$folder/README.md" "$folder/docs" -name '*.md' -exec sed -i -E -f packaging/links.sed {} +
	mkdir -p "$folder/prometheus" "$folder/dashboards" "$folder/completion" "$folder/scripts"
	cp scripts/backfill.sh "$folder/scripts/"
	cp -r alerts "$folder/"
	cp -r prometheus/prometheus.yml prometheus/rules "$folder/prometheus/"
	cp dashboards/*.json "$folder/dashboards/"
	"$work/runnable" --help-man >"$folder/benchwatch.1"
	for shell in bash zsh fish; do
		"$work/runnable" completion $shell >"$folder/completion/benchwatch.$shell"
	done
	archive "$folder" "$out/$name.tar.gz"
done
(cd "$out" && sha256sum -- * >"$work/sums" && mv "$work/sums" SHA256SUMS)
chmod 0644 "$out"/*
