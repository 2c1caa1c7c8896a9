#!/usr/bin/env bash
# Runs a command in a fresh clone of this repository on a bare Debian of a given release,
# in a chroot with its own processes. Only what the README asks a reader to have is added
# first: make, git, Go and Node.js of this machine. Needs root.
set -euo pipefail

usage() {
	cat <<'END'
usage: debian.sh RELEASE [COMMAND...]    RELEASE is bookworm, trixie …

COMMAND is `make test` if none is given. MIRROR names the mirror of Debian to use.
END
}

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"

die() {
	printf 'debian.sh: %s\n' "$*" >&2
	exit 1
}

release=${1:-}
[[ -n $release && $release != -* ]] || { usage && exit 2; }
shift
(($#)) || set -- make test
((EUID == 0)) || die "run it as root: it mounts and changes the root folder"
command -v debootstrap >/dev/null || die "debootstrap is not installed (apt-get install debootstrap)"

mirror=${MIRROR:-http://deb.debian.org/debian}
state=${TMPDIR:-/var/tmp}/benchwatch-debian # not in the clone: Go would look for packages in it
base=$state/$release.tar
mkdir -p "$state"
system=$(mktemp -d "$state/$release.XXXXXX")
# All mounts are made in a mount namespace of their own, so this folder holds only files.
trap 'rm -rf --one-file-system "$system"' EXIT
trap 'exit 130' INT TERM HUP

# The bare system is fetched once.
if [[ ! -s $base ]]; then
	debootstrap --variant=minbase --include=ca-certificates,make,git "$release" "$system" "$mirror" >"$state/$release.log" ||
		die "debootstrap failed: see $state/$release.log"
	rm -rf "$system"/var/cache/apt/archives/*.deb
	tar -C "$system" -cf "$base.new" . && mv "$base.new" "$base"
else
	tar -C "$system" -xpf "$base"
fi
chmod 755 "$system" # it becomes /, which every user passes through

cp /etc/resolv.conf "$system/etc/resolv.conf"
# What this machine trusts: it may reach the internet through a proxy with its own authority.
cp /etc/ssl/certs/ca-certificates.crt "$system/etc/ssl/certs/ca-certificates.crt"
printf '127.0.0.1 localhost %s\n' "$(uname -n)" >"$system/etc/hosts"
mkdir -p "$system/usr/local/go" "$system/root/go/pkg/mod" "$system/root/.cache/go-build" "$system/usr/local/lib/node_modules"
# Node.js and npm, as the archive of nodejs.org has them.
if node=$(command -v node) && npm=$(dirname "$(dirname "$(readlink -f "$(command -v npm)")")"); then
	cp "$node" "$system/usr/local/bin/node"
	cp -r "$npm" "$system/usr/local/lib/node_modules/npm"
	ln -s ../lib/node_modules/npm/bin/npm-cli.js "$system/usr/local/bin/npm"
	ln -s ../lib/node_modules/npm/bin/npx-cli.js "$system/usr/local/bin/npx"
fi
git clone -q "$root" "$system/root/benchwatch"
# Packages are built on this machine and tried there.
if [[ -d build/packages ]]; then
	mkdir "$system/root/benchwatch/build"
	cp -r build/packages "$system/root/benchwatch/build/"
fi

# Nothing is downloaded or compiled again that this machine already has.
export SYSTEM=$system GOROOT_HERE MODULES COMPILED
GOROOT_HERE=$(go env GOROOT) MODULES=$(go env GOMODCACHE) COMPILED=$(go env GOCACHE)
mkdir -p "$MODULES" "$COMPILED"
# shellcheck disable=SC2016 # expanded by the inner shells
unshare --mount --pid --fork --kill-child bash -euc '
	mount --make-rprivate /
	mount --bind "$SYSTEM" "$SYSTEM" # a root that is a file system of its own, as on a machine
	mount --rbind /dev "$SYSTEM/dev"
	mount -t proc proc "$SYSTEM/proc"
	mount -t sysfs -o ro sysfs "$SYSTEM/sys"
	[[ ! -d /sys/fs/cgroup ]] || mount --rbind /sys/fs/cgroup "$SYSTEM/sys/fs/cgroup" # as root has it on a machine
	mount -t tmpfs tmpfs "$SYSTEM/run"
	mount -t tmpfs tmpfs "$SYSTEM/tmp"
	mount --bind "$GOROOT_HERE" "$SYSTEM/usr/local/go"
	mount --bind "$MODULES" "$SYSTEM/root/go/pkg/mod"
	mount --bind "$COMPILED" "$SYSTEM/root/.cache/go-build"
	exec chroot "$SYSTEM" /usr/bin/env -i HOME=/root LANG=C.UTF-8 TERM="${TERM:-dumb}" GOPROXY="$(go env GOPROXY)" GOTOOLCHAIN=local NODE_EXTRA_CA_CERTS=/etc/ssl/certs/ca-certificates.crt \
		PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/usr/local/go/bin \
		bash -c '"'"'cd /root/benchwatch && exec "$@"'"'"' bash "$@"
' bash "$@"
