#!/usr/bin/env bash
# Runs in a bare Debian, as root (tests/debian.sh): rpmlint, and the rpm's life with rpm
# itself. The other parts are the same as in the deb.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
export DEBIAN_FRONTEND=noninteractive
passed=0 failed=0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
packages=$PWD/build/packages
case $(dpkg --print-architecture) in
arm64) rpm=$(ls "$packages"/*.aarch64.rpm) ;;
*) rpm=$(ls "$packages"/*.x86_64.rpm) ;;
esac

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
# The same files as in the deb, at the same places but for zsh and Debian's own.
as_deb() {
	diff <(rpm -qp --queryformat '[%{FILEMODES:perms} %{FILENAMES}\n]' "$rpm" | sed -n 's/^-[^ ]* //p' | grep -vE '^/usr/share/doc|site-functions' | sort) \
		<(dpkg-deb -c "$packages"/*_"$(dpkg --print-architecture)".deb | awk '$1 ~ /^-/ {print substr($6, 2)}' | grep -vE '^/usr/share/doc|vendor-completions|lintian' | sort)
}
configuration() { [[ $(rpm -qp --configfiles "$rpm" | sort | paste -sd ' ') == '/etc/benchwatch/benchwatch.yml /etc/default/benchwatch' ]]; }
lint() { rpmlint -c tests/packages/rpmlint.toml "$rpm" | tee "$work/rpmlint" && grep -q ' 0 errors' "$work/rpmlint"; }
works() { benchwatch --version | grep -q "version $(<VERSION) " && [[ $(stat -c '%a %U %G' /var/lib/benchwatch/runs) == '3777 benchwatch benchwatch' ]]; }
upgraded() { grep -q '^# mine' /etc/benchwatch/benchwatch.yml && [[ -e /var/lib/benchwatch/runs/first ]]; }
removed() { [[ ! -e /usr/bin/benchwatch && -e /var/lib/benchwatch/runs/first ]] && grep -q '^# mine' /etc/benchwatch/benchwatch.yml.rpmsave; }

# A mirror may be a snapshot.
apt-get update -qq -o Acquire::Check-Valid-Until=false >/dev/null
apt-get install -qq --no-install-recommends rpm rpmlint >/dev/null 2>&1
ok 'it has the files of the deb' as_deb
ok 'it has two files of configuration' configuration
ok 'it installs' rpm -i --nodeps "$rpm"
ok 'it works' works
echo '# mine' >>/etc/benchwatch/benchwatch.yml
mkdir /var/lib/benchwatch/runs/first
ok 'the upgrade' rpm -U --nodeps --replacepkgs "$rpm"
ok 'keeps configuration and runs' upgraded
ok 'it can be removed' rpm -e benchwatch
ok 'and leaves configuration and runs' removed
ok rpmlint lint # last: it unpacks files at their places
printf '%s passed, %s failed\n' "$passed" "$failed"
((failed == 0))
