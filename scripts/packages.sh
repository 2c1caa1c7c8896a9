#!/usr/bin/env bash
# Installs the Debian packages that are missing for the demo, the tests, the benchmarks
# or the test of compose/ on a Docker engine. No service is started or left enabled by it.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=scripts/lib/process.sh
. "$here/lib/process.sh"
# shellcheck source=scripts/lib/policy.sh
. "$here/lib/policy.sh"

usage() {
	cat <<'END'
usage: packages.sh demo|test|bench|compose...   install what is missing for them
       packages.sh --list demo|...              only print the missing packages
END
}

# "COMMAND PACKAGE" lines. mariadb-server brings galera-4.
SERVERS='mariadbd mariadb-server
mariadb mariadb-client
rsync rsync
sysbench sysbench
cpulimit cpulimit
curl curl
jq jq'
MONITORING='prometheus prometheus
promtool prometheus
prometheus-alertmanager prometheus-alertmanager
prometheus-node-exporter prometheus-node-exporter
prometheus-mysqld-exporter prometheus-mysqld-exporter'
# A Docker engine, and what stand-in images are made of.
ENGINE='dockerd docker.io
docker docker.io
iptables iptables
busybox busybox-static
debootstrap debootstrap
bc bc'

needs() {
	case $1 in
	demo) printf '%s\n' "$SERVERS" "$MONITORING" ;;
	test) printf '%s\n' "$SERVERS" "$MONITORING" 'shellcheck shellcheck' 'chromium chromium' ;;
	bench) printf '%s\n' "$SERVERS" 'promtool prometheus' 'prometheus-mysqld-exporter prometheus-mysqld-exporter' 'mtail mtail' ;;
	compose) printf '%s\n' "$SERVERS" "$MONITORING" "$ENGINE" ;;
	*) die "demo, test, bench or compose expected, not: $1" ;;
	esac
}

missing() {
	local part name package
	for part; do
		needs "$part" >/dev/null
		while read -r name package; do
			command -v "$name" >/dev/null || echo "$package"
		done < <(needs "$part")
	done | sort -u
}

# install PACKAGE...: as root.
install() {
	local log enabled
	work=$(mktemp -d)
	log=$work/log enabled=$work/enabled
	trap 'policy_restore; rm -rf "$work"' EXIT
	trap 'exit 130' INT TERM HUP
	services_enabled >"$enabled"
	policy_guard
	note "installing Debian packages: $*"
	# The package lists may be missing (a container) or too old: read them only then.
	if ! apt_install "$@" >"$log" 2>&1 && ! { apt-get update && apt_install "$@"; } >"$log" 2>&1; then
		tail -n 15 "$log" >&2
		services_disable "$enabled"
		die "apt-get could not install: $*"
	fi
	services_disable "$enabled"
}

apt_install() {
	DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends -o DPkg::Lock::Timeout=300 "$@" </dev/null
}

main() {
	local packages
	case ${1:-} in
	'' | -h | --help) usage && return ;;
	--list) shift && missing "$@" && return ;;
	--install) shift && install "$@" && return ;;
	esac
	mapfile -t packages < <(missing "$@")
	((${#packages[@]})) || return 0
	command -v apt-get >/dev/null || die "no apt-get here; please install what these Debian packages hold: ${packages[*]}"
	if ((EUID == 0)); then
		install "${packages[@]}"
	elif command -v sudo >/dev/null && { sudo -n true 2>/dev/null || [[ -t 0 ]]; }; then
		note "asking sudo for the right to install: ${packages[*]}"
		sudo "$here/packages.sh" --install "${packages[@]}"
	else
		die "please install these Debian packages (as root: apt-get install --no-install-recommends ${packages[*]})"
	fi
}

main "$@"
