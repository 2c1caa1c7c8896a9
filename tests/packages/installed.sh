#!/usr/bin/env bash
# Runs in a bare Debian, as root (tests/debian.sh): installs the deb, lets two users run a
# benchmark beside the agent, upgrades, removes and purges.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# shellcheck source=tests/packages/service.sh
. tests/packages/service.sh
trap '[[ -z $agent ]] || kill "$agent"; rm -rf "$work"' EXIT

# printed TEXT...: by the previous check.
printed() {
	local text
	cp "$work/log.before" "$work/printed"
	for text in "$@"; do grep -F "$text" "$work/printed" || return 1; done
}
# As dpkg, apt and the tests themselves change other files.
files() { find / -xdev \( -path /proc -o -path /sys -o -path /dev -o -path /tmp -o -path /run -o -path /root -o -path /home -o -path /var/lib/dpkg -o -path /var/lib/apt -o -path /var/cache -o -path /var/log \) -prune -o -print | sort; }
folders() {
	mode /var/lib/benchwatch 'drwxr-xr-x benchwatch benchwatch' &&
		mode /var/lib/benchwatch/runs 'drwxrwsrwt benchwatch benchwatch' &&
		mode /var/lib/benchwatch/sweeps 'drwxrwxrwt benchwatch benchwatch'
}
account() { [[ $(getent passwd benchwatch) == *:/var/lib/benchwatch:*/nologin ]] && [[ $(id -Gn benchwatch) == benchwatch ]]; }
documented() { [[ $(zcat /usr/share/man/man1/benchwatch.1.gz) == '.TH BENCHWATCH'* && $(benchwatch --version) == *"version $(<VERSION) "* ]]; }
completes() { bash -n /usr/share/bash-completion/completions/benchwatch && [[ $(benchwatch __complete repo 2>/dev/null) == report* ]]; }
of_repository() {
	local folder
	for folder in alerts prometheus/rules; do diff -r "$folder" "/usr/share/benchwatch/$folder" -x testdata -x '*.md' -x '*.go' || return 1; done
	for folder in dashboards/*.json; do cmp "$folder" "/usr/share/benchwatch/$folder" || return 1; done
}
first_run() { as alice 'benchwatch run --run-id=first --label owner=alice -- sysbench cpu --time=4 --threads=1 run'; }
chart() { serves /api/runs/first/history '"intervals":{"rows":[1-9]'; }
run_is_private() {
	mode /var/lib/benchwatch/runs/first/stdout.log '-rw-r----- alice benchwatch' && not as bob 'cat /var/lib/benchwatch/runs/first/stdout.log' &&
		not as bob 'rm -rf /var/lib/benchwatch/runs/first' && [[ -s /var/lib/benchwatch/runs/first/stdout.log ]]
}
newer() { # a deb that differs by its version
	dpkg-deb -R "$deb" "$work/newer" && sed -i 's/^Version: .*/&+newer/' "$work/newer/DEBIAN/control" && dpkg-deb -Zgzip -z1 -b --root-owner-group "$work/newer" "$work/newer.deb"
}
configuration_kept() { grep -q '^# mine' /etc/benchwatch/benchwatch.yml && ls /etc/benchwatch/db.password /var/lib/benchwatch/runs/first/run.json; }
only_runs_left() {
	files >"$work/after"
	comm -13 "$work/before" "$work/after" | grep -vE '^/var/lib/benchwatch(/runs(/first(/.*)?)?)?$' >"$work/left" || true
	cat "$work/left"
	[[ ! -s $work/left ]] && [[ -s /var/lib/benchwatch/runs/first/stdout.log ]]
}
nothing_left() {
	files >"$work/after"
	comm -13 "$work/before" "$work/after" | tee "$work/left"
	[[ ! -s $work/left ]] && not getent passwd benchwatch && not getent group benchwatch
}
unit_valid() {
	systemd-analyze verify --man=no benchwatch.service 2>&1 | tee "$work/verify"
	not grep -i benchwatch "$work/verify"
}

# A mirror may be a snapshot.
apt-get update -qq -o Acquire::Check-Valid-Until=false >/dev/null
apt-get install -qq --no-install-recommends sysbench >/dev/null 2>&1
useradd -m alice
useradd -m bob
files >"$work/before"

echo 'without systemd:'
began=$SECONDS
ok 'it installs' dpkg -i "$deb"
ok 'and prints the address of the page and what to try' printed 'http://127.0.0.1:9838' 'benchwatch replay'
ok 'the account is there' account
ok 'the folders are shared' folders
ok 'man page and version' documented
ok 'completion' completes
ok 'rules and dashboards are those of the repository' of_repository
ok 'the agent starts as its user, with the configuration as it is' start_agent
first_run >"$work/run" 2>&1 &
run=$!
ok 'the page has a chart of a run of an ordinary user' eventually 20 chart
printf 'page after %s s\n' $((SECONDS - began))
ok 'the run succeeds' wait "$run"
ok 'its summary is in the metrics' eventually 20 serves /metrics 'benchwatch_run_summary_operations_per_second{.*run="first"'
ok 'no other user can read its output or remove it' run_is_private
echo '# mine' >>/etc/benchwatch/benchwatch.yml
echo secret | install -m 0640 -g benchwatch /dev/stdin /etc/benchwatch/db.password
ok 'a newer deb can be made' newer
ok 'the upgrade asks nothing' dpkg -i "$work/newer.deb"
ok 'and does not repeat that' not printed 'benchwatch replay'
ok 'and keeps configuration and runs' configuration_kept
ok 'the folders are as before' folders
ok 'the agent ends' stop_agent
ok 'removing it asks nothing' dpkg -r benchwatch
ok 'and keeps configuration and runs' configuration_kept
ok 'purging it asks nothing' dpkg -P benchwatch
ok 'and names the password files that it removes' printed 'removed /etc/benchwatch/db.password'
ok 'and leaves nothing but the runs' only_runs_left
ok 'their account stays, too' account
rm -rf /var/lib/benchwatch/runs/*
ok 'it installs again' dpkg -i "$deb"
ok 'without runs it leaves nothing' bash -c 'dpkg -P benchwatch'
ok 'neither file nor account' nothing_left

echo 'with systemd, which does not run:'
apt-get install -qq --no-install-recommends systemd >/dev/null 2>&1
files >"$work/before"
ok 'it installs' dpkg -i "$deb"
ok 'the account is there' account
ok 'the folders are shared' folders
ok 'the service is enabled' test -L /etc/systemd/system/multi-user.target.wants/benchwatch.service
ok 'the unit is valid' unit_valid
ok 'systemd makes the same folders' bash -c 'rmdir /var/lib/benchwatch/*; systemd-tmpfiles --create benchwatch.conf'
ok 'with the same modes' folders
ok 'an administrator disables it' systemctl disable benchwatch
ok 'the upgrade' dpkg -i "$work/newer.deb"
ok 'leaves it disabled' not test -e /etc/systemd/system/multi-user.target.wants/benchwatch.service
ok 'purging it' dpkg -P benchwatch
ok 'leaves nothing' nothing_left
printf '%s passed, %s failed\n' "$passed" "$failed"
((failed == 0))
