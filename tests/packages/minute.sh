#!/usr/bin/env bash
# Runs in a bare Debian, as root (tests/debian.sh): types what README says, as an ordinary user
# beside a database and the packaged agent, and measures the time from the installation until the
# page has a value of the server. Then the same with servers that init configures.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# shellcheck source=tests/packages/service.sh
. tests/packages/service.sh
database=''
trap '[[ -z $agent ]] || kill "$agent"; [[ -z $database ]] || kill "$database"; wait; rm -rf "$work"' EXIT
server=$((port + 1))

start_database() {
	mkdir "$work/db" && chown mysql "$work/db" && chmod 755 "$work"
	mariadb-install-db --user=mysql --datadir="$work/db" --auth-root-authentication-method=socket || return 1
	mariadbd --no-defaults --user=mysql --datadir="$work/db" --socket="$work/db/socket" --pid-file="$work/db/pid" --bind-address=127.0.0.1 --port="$server" 2>"$work/db.log" &
	database=$!
	eventually 60 mariadb --no-defaults -S "$work/db/socket" -e "CREATE DATABASE sbtest; CREATE USER sbtest@'127.0.0.1' IDENTIFIED BY 'pw1'; GRANT ALL ON sbtest.* TO sbtest@'127.0.0.1';
		CREATE USER monitor@'127.0.0.1' IDENTIFIED BY 'pw2'; GRANT SLAVE MONITOR ON *.* TO monitor@'127.0.0.1'"
}
# typed BEGIN: the first line of README that begins so, with the server of this test.
typed() {
	grep -m1 "^$1" README.md | sed -e "s/--mysql-host=db1/--mysql-host=127.0.0.1 --mysql-port=$server/" -e 's/password=…/password=pw1/' \
		-e 's/--threads=[0-9]*/--threads=2/' -e 's/--time=[0-9]*/--time=8/'
}
run_id() { find /var/lib/benchwatch/runs -maxdepth 1 -name '*-*' -printf '%f\n' | sort | tail -n 1; }
server_chart() { serves "/api/runs/$(run_id)/history" '"servers":{"rows":[1-9]'; }
says() { grep -F "$1" "$work/run"; }

apt-get update -qq -o Acquire::Check-Valid-Until=false >/dev/null
printf '#!/bin/sh\nexit 101\n' >/usr/sbin/policy-rc.d && chmod +x /usr/sbin/policy-rc.d
apt-get install -qq --no-install-recommends sysbench mariadb-server >/dev/null 2>&1
useradd -m alice
ok 'a database starts' start_database
ok 'it has data' as alice "$(typed 'benchwatch run --sample -- ' | sed -e 's/.*-- //' -e 's/ run$/ prepare/')"

began=$SECONDS
ok 'the package installs' dpkg -i "$deb"
ok 'the agent starts' start_agent
as alice "$(typed 'benchwatch run --sample -- ')" >"$work/run" 2>&1 &
run=$!
ok 'the page has a chart of the server' eventually 60 server_chart
printf 'chart of a server after %s s\n' $((SECONDS - began))
ok 'the run succeeds' wait "$run"
ok 'and names the server that the agent samples' says "sampling 127.0.0.1:$server"
ok 'and the next command' says 'benchwatch report last'
ok 'which an ordinary user can type' as alice 'benchwatch report last'
ok 'no file has the password' not grep -r pw1 /var/lib/benchwatch /etc/benchwatch

echo pw2 >"$work/monitor.password"
began=$SECONDS
ok 'init adds the server and the agent samples it' bash -c "$(typed 'sudo benchwatch init' | sed 's/^sudo //') --yes --target='mysql://monitor@127.0.0.1:$server?name=db1' --password-file=$work/monitor.password"
printf 'sampled by the agent after %s s\n' $((SECONDS - began))
ok 'the password is for root and the agent' mode /etc/benchwatch/db1.password '-rw-r----- root benchwatch'
ok 'the comments of the configuration are left' grep -q '^# Log files that tools write by themselves.' /etc/benchwatch/benchwatch.yml
ok 'an ordinary user sees that the agent samples it' as alice 'benchwatch doctor'
as alice "$(typed 'benchwatch run --sample -- ' | sed 's/ --sample//')" >"$work/run" 2>&1
ok 'a run without --sample has the server' as alice 'benchwatch report last | grep db1'
printf '%s passed, %s failed\n' "$passed" "$failed"
((failed == 0))
