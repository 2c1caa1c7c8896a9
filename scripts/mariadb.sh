#!/usr/bin/env bash
# A MariaDB server on loopback, with replicas if wanted, in one folder.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=scripts/lib/process.sh
. "$here/lib/process.sh"
# shellcheck source=scripts/lib/mariadb.sh
. "$here/lib/mariadb.sh"
# shellcheck source=scripts/lib/cpu.sh
. "$here/lib/cpu.sh"
# shellcheck source=scripts/lib/servers.sh
. "$here/lib/servers.sh"

usage() {
	cat <<'END'
usage: mariadb.sh start DIR BASEPORT [SERVERS]  start (1 server), or start again with the same data
       mariadb.sh stop DIR                      stop all servers; the data stays
       mariadb.sh status DIR                    one line a server
       mariadb.sh kill|pause|resume DIR N       SIGKILL, SIGSTOP, SIGCONT to server N
       mariadb.sh limit DIR N [PERCENT]         leave server N (a replica: its appliers) PERCENT (5) of one core
       mariadb.sh unlimit DIR N
       mariadb.sh lag|unlag DIR N               let replica N fall behind
       mariadb.sh rejoin DIR N                  start a dead server again
       mariadb.sh sql DIR N                     administrator's client on server N

Server 1 is the primary, all others replicate from it by GTID. Server N listens on
127.0.0.1:BASEPORT+N. DIR/bench.password and DIR/monitor.password hold the passwords
of the users bench (database sbtest) and monitor; DIR/sysbench.cnf is for sysbench
--config-file.
END
}

PORTS_PER_NODE=1

node_config() { # N
	server_config "$dir/n$1" $((base + $1)) "$1" \
		log_bin=bin binlog_format=ROW binlog_expire_logs_seconds=3600 \
		gtid_strict_mode=ON slave_parallel_threads=0 skip_slave_start=OFF
}

node_usable() { server_answers "$1"; }

node_state() {
	local thread
	thread=$(sql "$1" --column-names --vertical -e 'SHOW ALL SLAVES STATUS' 2>/dev/null | sed -nE 's/.*(Slave_(IO|SQL)_Running|Seconds_Behind_Master): /\1 /p' | tr '\n' ' ')
	printf '%s' "${thread:-primary}"
}

# create: the replicas begin as copies of the primary, all at the empty GTID position.
create() {
	local n
	server_folder "$dir/n1"
	node_config 1
	server_install "$dir/n1"
	server_launch "$dir/n1"
	server_wait "$dir/n1" node_usable
	accounts "$dir" "$dir/n1" $((base + 1))
	password_file "$dir/replica.password"
	sql "$dir/n1" 2>/dev/null <<-END || die "creating the replication account failed"
		CREATE USER replica@127.0.0.1 IDENTIFIED BY '$(<"$dir/replica.password")';
		GRANT REPLICATION SLAVE ON *.* TO replica@127.0.0.1;
		RESET MASTER;
	END
	process_stop "$dir/n1/pid" 30
	for n in $(node_numbers); do ((n == 1)) || copy_data 1 "$n"; done
	restart
	: >"$dir/complete"
}

restart() {
	local n
	for n in $(node_numbers); do
		node_config "$n"
		rejoin "$n"
	done
}

rejoin() {
	local n=$1
	server_launch "$dir/n$n"
	server_wait "$dir/n$n" node_usable
	((n > 1)) || return 0
	sql "$dir/n$n" 2>/dev/null <<-END || die "setting up replication on server $n failed"
		STOP SLAVE;
		CHANGE MASTER TO MASTER_HOST = '127.0.0.1', MASTER_PORT = $((base + 1)), MASTER_USER = 'replica',
			MASTER_PASSWORD = '$(<"$dir/replica.password")', MASTER_USE_GTID = slave_pos, MASTER_CONNECT_RETRY = 1;
		START SLAVE;
	END
}

# slow N PERCENT: of a replica only the appliers, so that it still receives.
slow() {
	local threads=()
	if (($1 > 1)); then
		mapfile -t threads < <(sql "$dir/n$1" -e "SELECT tid FROM information_schema.processlist
			WHERE command IN ('Slave_SQL', 'Slave_worker')")
	fi
	cpu_limit "$dir/n$1" "$2" "${threads[@]}"
}

lag() { slow "$1" 2; }

unlag() { unslow "$1"; }

unslow() { cpu_unlimit "$dir/n$1"; }

[[ ${1:-} != start ]] || server_check
servers_main mariadb 1 "$@"
