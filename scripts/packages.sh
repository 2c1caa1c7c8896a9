#!/usr/bin/env bash
# Installs the Debian packages that are missing for the demo, the tests, the benchmarks
# or the test of compose/ on a Docker engine. No service is started or left enabled by it.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# Daemons are in sbin, which an ordinary user's PATH may lack.
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin

usage() {
	cat <<'END'
usage: packages.sh demo|postgresql|test|fleet|bench|compose...   install what is missing for them
       packages.sh --list demo|...              only print the missing packages
END
}

note() { printf '%s\n' "$*" >&2; }

die() {
	note "packages.sh: $*"
	exit 1
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
amtool prometheus-alertmanager
prometheus-alertmanager prometheus-alertmanager
prometheus-node-exporter prometheus-node-exporter
prometheus-mysqld-exporter prometheus-mysqld-exporter'
POSTGRESQL='pg_ctlcluster postgresql
prometheus-postgres-exporter prometheus-postgres-exporter'
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
	postgresql) printf '%s\n' "$POSTGRESQL" ;;
	test) printf '%s\n' "$SERVERS" "$MONITORING" "$POSTGRESQL" 'shellcheck shellcheck' 'chromium chromium' 'haproxy haproxy' 'sshd openssh-server' 'pgbouncer pgbouncer' 'git git' 'g++ g++' ;; # the race detector needs a C compiler
	fleet) printf '%s\n' 'prometheus prometheus' 'victoria-metrics victoria-metrics' ;;
	bench) printf '%s\n' "$SERVERS" "$MONITORING" 'mtail mtail' ;;
	compose) printf '%s\n' "$SERVERS" "$MONITORING" "$ENGINE" ;;
	*) die "demo, postgresql, test, fleet, bench or compose expected, not: $1" ;;
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

POLICY=${BENCHWATCH_POLICY:-/usr/sbin/policy-rc.d}
POLICY_SAVED=$POLICY.before-benchwatch

# policy_guard: Debian asks this program before it starts a service, and 101 forbids it.
# A guard whose script was killed notices that and hands on to the policy from before.
policy_guard() {
	local code=0 started
	policy_restore
	[[ ! -x $POLICY ]] || "$POLICY" benchwatch start >/dev/null 2>&1 || code=$?
	((code != 101)) || return 0 # most containers forbid it already
	started=$(cut -d ' ' -f 22 /proc/$$/stat)
	cat >"$POLICY.new" <<-END
		#!/bin/sh
		# Made by benchwatch's scripts/packages.sh, for as long as it runs.
		if [ "\$(cut -d ' ' -f 22 /proc/$$/stat 2>/dev/null)" = "$started" ]; then exit 101; fi
		if [ -x "\$0.before-benchwatch" ]; then exec "\$0.before-benchwatch" "\$@"; fi
		exit 0
	END
	chmod 0755 "$POLICY.new"
	[[ ! -e $POLICY && ! -L $POLICY ]] || mv "$POLICY" "$POLICY_SAVED"
	mv "$POLICY.new" "$POLICY"
}

# policy_restore: also after a script that was killed.
policy_restore() {
	if [[ -f $POLICY ]] && grep -q "Made by benchwatch's" "$POLICY"; then rm -f "$POLICY"; fi
	if [[ -e $POLICY_SAVED || -L $POLICY_SAVED ]]; then mv "$POLICY_SAVED" "$POLICY"; fi
	rm -f "$POLICY.new"
}

# services_enabled: the links that start a service with the machine, one a line.
services_enabled() {
	{
		find /etc/systemd/system -path '*.wants/*' -type l
		find /etc/rc[2-5].d -name 'S*'
	} 2>/dev/null | LC_ALL=C sort
}

# services_disable FILE: disables what has been enabled since services_enabled was
# written to FILE.
services_disable() {
	local link
	while read -r link; do
		case $link in
		*/rc[2-5].d/S*)
			link=${link##*/S??}
			update-rc.d "$link" disable >/dev/null 2>&1 || note "could not disable the service $link"
			;;
		*)
			if command -v systemctl >/dev/null; then systemctl disable "${link##*/}" >/dev/null 2>&1 || true; fi
			rm -f "$link"
			;;
		esac
	done < <(services_enabled | LC_ALL=C comm -13 "$1" -)
}

# install PACKAGE...: as root.
install() {
	work=$(mktemp -d)
	trap 'services_disable "$work/enabled"; policy_restore; rm -rf "$work"' EXIT
	trap 'exit 130' INT TERM HUP
	services_enabled >"$work/enabled"
	policy_guard
	# The package lists may be missing (a container) or too old: read them only then.
	if ! apt_install "$@" >"$work/log" 2>&1 && ! { apt-get update && apt_install "$@"; } >"$work/log" 2>&1; then
		tail -n 15 "$work/log" >&2
		die "apt-get could not install: $*"
	fi
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
		note "installing the Debian packages that are missing: ${packages[*]}"
		install "${packages[@]}"
	elif command -v sudo >/dev/null && { sudo -n true 2>/dev/null || [[ -t 0 ]]; }; then
		note "installing the Debian packages that are missing, with sudo: ${packages[*]}"
		sudo "$here/packages.sh" --install "${packages[@]}"
	else
		die "please install these Debian packages (as root: apt-get install --no-install-recommends ${packages[*]})"
	fi
}

main "$@"
