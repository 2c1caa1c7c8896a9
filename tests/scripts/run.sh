#!/usr/bin/env bash
# Tests of the scripts' own promises: whom they signal, what they leave behind. Ends with
# "N passed, N failed".
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
work=$(mktemp -d)
chmod 0711 "$work"
passed=0 failed=0
trap 'rm -rf "$work"' EXIT

# check NAME: runs the function of that name in a shell and a folder of its own.
check() {
	local dir=$work/$1 output
	mkdir "$dir"
	if output=$(cd "$dir" && bash -euo pipefail -c "
		dir='$dir' root='$root'
		. '$root/scripts/lib/process.sh'
		$(declare -f "$1")
		$1" 2>&1); then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
		printf 'FAIL %s\n%s\n' "$1" "$output"
	fi
}

# A process is started apart from us, found again, and stopped.
stops_what_it_started() {
	process_start "$dir/pid" "$dir/log" sleep 60
	process_pid "$dir/pid" >/dev/null
	process_stop "$dir/pid" 5
	[[ ! -e $dir/pid ]]
}

# A pid that belongs to somebody else by now is left alone.
leaves_foreign_pids_alone() {
	sleep 60 &
	printf '%s %s %s\n' $! 12345 "$(cat /proc/sys/kernel/random/boot_id)" >"$dir/pid"
	if process_pid "$dir/pid"; then exit 1; fi
	process_stop "$dir/pid" 1
	kill -0 $!
	kill $!
}

# A pid from before the last boot is nobody's.
leaves_pids_of_an_earlier_boot_alone() {
	sleep 60 &
	printf '%s %s %s\n' $! "$(process_stat $! 22)" 00000000-0000-0000-0000-000000000000 >"$dir/pid"
	process_stop "$dir/pid" 1
	kill -0 $!
	kill $!
}

# A process that ignores SIGTERM, or is stopped, is ended all the same.
insists() {
	process_start "$dir/pid" "$dir/log" bash -c 'trap "" TERM; while :; do sleep 0.1; done'
	process_signal "$dir/pid" STOP
	process_stop "$dir/pid" 1
	[[ ! -e $dir/pid ]]
}

# What a killed process left in its session goes with it, if it is about the folder.
ends_what_was_left_behind() {
	touch "$dir/file"
	process_start "$dir/pid" "$dir/log" bash -c "tail -f '$dir/file' & tail -f /dev/null & wait"
	session=$(cut -d' ' -f1 "$dir/pid")
	# shellcheck disable=SC2317
	started() { (($(pgrep -c -s "$session") == 3)); }
	wait_for 5 started
	kill -KILL "$session"
	process_stop "$dir/pid" 1
	# shellcheck disable=SC2317
	one_left() { [[ $(pgrep -a -s "$session") =~ ^[0-9]+' tail -f /dev/null'$ ]]; }
	wait_for 5 one_left
	kill "$(pgrep -s "$session")"
}

# A folder that somebody else filled is not taken.
refuses_foreign_folders() {
	mkdir "$dir/theirs"
	touch "$dir/theirs/file"
	for script in galera mariadb; do
		if "$root/scripts/$script.sh" start "$dir/theirs" 20100; then exit 1; fi
		[[ $(ls -A "$dir/theirs") == file ]]
	done
	if "$root/scripts/monitoring.sh" start "$dir/new" "$dir/theirs" 20100; then exit 1; fi # no servers in it
	mkdir "$dir/servers"
	echo 1 >"$dir/servers/nodes"
	echo 20100 >"$dir/servers/base"
	if "$root/scripts/monitoring.sh" start "$dir/theirs" "$dir/servers" 20110; then exit 1; fi
	if "$root/scripts/monitoring.sh" stop "$dir/theirs"; then exit 1; fi
	[[ $(ls -A "$dir/theirs") == file && ! -e $dir/new ]]
}

# A taken port is said to be taken before anything is started.
refuses_taken_ports() {
	base=$(ports_free 5)
	prometheus-node-exporter --web.listen-address="127.0.0.1:$((base + 1))" 2>"$dir/log" &
	wait_for 10 port_taken $((base + 1))
	output=$("$root/scripts/mariadb.sh" start "$dir/servers" "$base" 2>&1) && exit 1
	kill $!
	[[ $output == *"$((base + 1))"*taken* ]]
	[[ ! -e $dir/servers/n1 ]]
}

# While packages are installed no service may start; after that the machine's own policy
# holds again, also when the installer was killed.
guards_the_service_policy() {
	export BENCHWATCH_POLICY=$dir/policy-rc.d
	. "$root/scripts/lib/policy.sh"
	answers() { # CODE
		local code=0
		"$POLICY" some-service start || code=$?
		((code == $1))
	}
	policy_guard
	answers 101
	policy_restore
	[[ ! -e $POLICY ]]

	printf '#!/bin/sh\nexit 104\n' >"$POLICY"
	chmod +x "$POLICY"
	policy_guard
	answers 101
	policy_restore
	answers 104

	bash -c ". '$root/scripts/lib/process.sh'; . '$root/scripts/lib/policy.sh'; policy_guard; kill -KILL \$\$" || true
	answers 104 # the dead installer's guard stands aside
	policy_guard
	policy_restore
	answers 104
	[[ $(ls "$dir") == policy-rc.d ]]

	printf '#!/bin/sh\nexit 101\n' >"$POLICY"
	policy_guard
	[[ $(cat "$POLICY") == $'#!/bin/sh\nexit 101' ]]
}

# Without root and sudo it says what to install.
says_what_to_install() {
	mkdir bin
	for tool in bash dirname id cat tr sort apt-get; do ln -s "$(command -v "$tool")" bin/; done
	cp -r "$root/scripts" .
	chmod -R a+rX .
	as_user=(env)
	((EUID != 0)) || as_user=(setpriv --reuid=65534 --regid=65534 --clear-groups env)
	output=$("${as_user[@]}" PATH="$dir/bin" "$(command -v bash)" "$dir/scripts/packages.sh" bench 2>&1) && exit 1
	[[ $output == *'apt-get install'*mtail* ]]
}

# Grafana gets the data source and every dashboard bound to it, and the token goes by
# no command line. A stand-in for curl writes down what it was given.
fills_grafana() {
	mkdir bin requests
	cat >bin/curl <<-'END'
		#!/bin/bash
		n=$(ls requests | wc -l)
		printf '%s\n' "$*" >"requests/$n.arguments"
		cat >"requests/$n.body"
		echo '{}'
	END
	chmod +x bin/curl
	PATH=$dir/bin:$PATH GRAFANA_URL=http://grafana.example/ GRAFANA_TOKEN=glsa_secret prometheus_port=12345
	. "$root/scripts/lib/monitoring.sh"
	. "$root/scripts/lib/grafana.sh"
	grafana_find
	grafana_set_up
	if grep -q glsa_secret requests/*; then exit 1; fi
	grep -q '"url": "http://127.0.0.1:12345"' requests/*.body
	[[ $(stat -c %a grafana.token) == 600 && $(<grafana.token) == glsa_secret ]]
	[[ $(jq -r 'select(.dashboard) | .dashboard.templating.list[] | select(.type == "datasource") | .current.value' requests/*.body | sort -u) == benchwatch-demo ]]
	dashboards=$(grep -l '"panels"' "$root"/dashboards/*.json | wc -l)
	((dashboards > 0 && dashboards == $(grep -l '/api/dashboards/db' requests/*.arguments | wc -l)))
}

# Passwords are in files of their owner only, and on no command line.
keeps_passwords_in() {
	base=$(ports_free 5)
	trap '"$root/scripts/mariadb.sh" stop "$dir/servers"' EXIT
	"$root/scripts/mariadb.sh" start "$dir/servers" "$base"
	"$root/scripts/mariadb.sh" start "$dir/servers" "$base" # again: nothing to do
	for file in bench.password monitor.password sysbench.cnf; do
		[[ $(stat -c %a "$dir/servers/$file") == 600 ]]
	done
	if grep -qsaF "$(cat "$dir/servers/bench.password")" /proc/[0-9]*/cmdline; then exit 1; fi
	# Killed, it starts again with its data.
	"$root/scripts/mariadb.sh" sql "$dir/servers" 1 <<<'CREATE TABLE sbtest.kept (i INT)'
	kill -KILL "$(cut -d' ' -f1 "$dir/servers/n1/pid")"
	"$root/scripts/mariadb.sh" start "$dir/servers" "$base"
	[[ $("$root/scripts/mariadb.sh" sql "$dir/servers" 1 <<<'SHOW TABLES IN sbtest') == kept ]]
	# The administrator's account lets nobody else in, not even without a password.
	if ((EUID == 0)); then
		if setpriv --reuid=65534 --clear-groups mariadb --no-defaults -h 127.0.0.1 -P $((base + 1)) -u root -e 'SELECT 1'; then exit 1; fi
	fi
}

for name in $(declare -F | sed 's/.* //' | grep -v '^check$'); do check "$name"; done

printf '%s passed, %s failed\n' "$passed" "$failed"
((failed == 0))
