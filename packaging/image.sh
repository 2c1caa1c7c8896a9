#!/usr/bin/env bash
# Builds the agent's container image from the archive in build/packages, with the stage
# of compose/Dockerfile that docker compose uses. No image is pulled.
#   image.sh [TAG]    default: benchwatch/agent:VERSION
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
version=$(<VERSION)
tag=${1:-benchwatch/agent:$version}
arch=${ARCH:-$(go env GOARCH)}
archive=build/packages/benchwatch-$version.linux-$arch.tar.gz
certificates=${SSL_CERT_FILE:-/etc/ssl/certs/ca-certificates.crt}

die() {
	printf 'image.sh: %s\n' "$*" >&2
	exit 1
}
[[ -e $archive ]] || die "no $archive: run make packages"
[[ -e $certificates ]] || die "no $certificates: install ca-certificates, or set SSL_CERT_FILE"
umask 022
rm -rf build/image
mkdir -p build/image/out/data build/image/etc/ssl/certs
tar -C build/image/out --strip-components=1 -xzf "$archive" "benchwatch-$version.linux-$arch/benchwatch"
cp "$certificates" build/image/etc/ssl/certs/ca-certificates.crt
# The same files give the same layers.
find build/image -exec touch -h -d "@${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || stat -c %Y VERSION)}" {} +
DOCKER_BUILDKIT=1 docker build --quiet --platform "linux/$arch" --network none --file compose/Dockerfile --target agent \
	--build-arg FILES=packages --tag "$tag" .
