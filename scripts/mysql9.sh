#!/usr/bin/env bash
# MySQL 9 of Debian's unstable distribution on an older Debian, without installing it:
# its packages are unpacked into a folder and run with their own C library. A source
# with replicas, or a group (Group Replication), on loopback, in one folder.
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
usage: mysql9.sh unpack                             fetch and unpack MySQL (100 MB), once
       mysql9.sh TOPOLOGY start DIR BASEPORT [SERVERS]
       mysql9.sh TOPOLOGY stop DIR                  stop all servers; the data stays
       mysql9.sh TOPOLOGY status DIR                one line a server
       mysql9.sh TOPOLOGY kill|pause|resume DIR N   SIGKILL, SIGSTOP, SIGCONT to server N
       mysql9.sh TOPOLOGY limit DIR N [PERCENT]     leave server N PERCENT of one core
       mysql9.sh TOPOLOGY unlimit DIR N
       mysql9.sh TOPOLOGY rejoin DIR N              start a dead server again
       mysql9.sh TOPOLOGY sql DIR N                 administrator's client on server N

TOPOLOGY is replica (2 servers: a source and its replicas) or group (3 members).
MySQL is unpacked into $BENCHWATCH_MYSQL9, by default build/mysql9. Server N listens on
127.0.0.1:BASEPORT+N, a member for its group on BASEPORT+10+N. DIR/{admin,bench,
monitor}.password hold the passwords of root, bench (database sbtest) and monitor;
DIR/sysbench.cnf is for sysbench --config-file.
END
}

ROOT=${BENCHWATCH_MYSQL9:-$here/../build/mysql9}
PORTS_PER_NODE=2
GROUP=b3c7a1f2-5d0e-4c1b-9f6a-2e8d4b7c9a10

# unpack: apt works in folders of its own here, with the system's keys. A mirror that
# stands still is as good as one that does not.
unpack() {
	local apt=$ROOT.new/apt deb options
	[[ ! -x $ROOT/usr/sbin/mysqld ]] || return 0
	need apt-get apt
	[[ -r /usr/share/keyrings/debian-archive-keyring.gpg ]] || die "Debian's keys are missing (package debian-archive-keyring)"
	rm -rf "$ROOT.new"
	mkdir -p "$apt"/{lists,cache}/partial
	reachable "$ROOT.new"
	: >"$apt/status"
	printf 'deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] %s sid main\n' \
		"${BENCHWATCH_DEBIAN_MIRROR:-http://deb.debian.org/debian}" >"$apt/sources.list"
	options=(-q -o "Dir::Etc::sourcelist=$apt/sources.list" -o Dir::Etc::sourceparts=/dev/null
		-o "Dir::State::lists=$apt/lists" -o "Dir::State::status=$apt/status" -o "Dir::Cache=$apt/cache"
		-o "Dir::State::extended_states=$apt/extended" -o Acquire::Check-Valid-Until=false
		-o "APT::Sandbox::User=$(id -un)" -o Debug::NoLocking=true)
	quietly apt-get "${options[@]}" update
	quietly apt-get "${options[@]}" -y --no-install-recommends --download-only install mysql-server-core mysql-client-core
	for deb in "$apt"/cache/archives/*.deb; do dpkg-deb --extract "$deb" "$ROOT.new"; done
	rm -rf "$apt"
	chmod 0755 "$ROOT.new"
	mv "$ROOT.new" "$ROOT"
}

# reachable FOLDER: ends the script if the servers' own user can't get there, as below
# root's home.
reachable() {
	((EUID != 0)) || id mysql >/dev/null 2>&1 || die "the user mysql is missing; the package mariadb-server makes it"
	as_server test -x "$1" ||
		die "the user mysql can't reach $1: a folder above it is closed. Set BENCHWATCH_MYSQL9 to one that it can reach, such as /var/tmp/mysql9"
}

quietly() {
	local out
	out=$("$@" 2>&1) || die "$1 failed: $(tail -n 5 <<<"$out")"
}

# program NAME: the command line that starts an unpacked program, in the array
# PROGRAM.
program() {
	local loader
	loader=$(find "$ROOT/usr/lib" -maxdepth 2 -name 'ld-linux*.so.*' | head -n 1)
	[[ -n $loader ]] || die "MySQL is not unpacked in $ROOT; mysql9.sh unpack does that"
	PROGRAM=("$loader" --library-path "$(dirname "$loader")" "$ROOT/usr/$1")
}

sql() { # NODE [CLIENT OPTION...]
	local node=$1
	shift
	program bin/mysql
	MYSQL_PWD=$(<"$dir/admin.password") timeout "${SQL_TIMEOUT:-10}" "${PROGRAM[@]}" --no-defaults \
		--socket="$node/sock" --user=root --connect-timeout=3 --batch --skip-column-names "$@"
}

node_usable() {
	sql "$1" -e 'SELECT 1' >/dev/null 2>&1
}

node_state() {
	local threads
	if [[ $topology == group ]]; then
		sql "$1" -e "SELECT CONCAT(MEMBER_STATE, ' ', MEMBER_ROLE) FROM performance_schema.replication_group_members
			WHERE MEMBER_ID = @@server_uuid" 2>/dev/null
	else
		threads=$(sql "$1" --column-names --vertical -e 'SHOW REPLICA STATUS' 2>/dev/null |
			sed -nE 's/.*(Replica_(IO|SQL)_Running|Seconds_Behind_Source): /\1 /p' | tr '\n' ' ')
		printf '%s' "${threads:-source}"
	fi
}

node_config() { # N
	local node=$dir/n$1 i seeds=''
	cat >"$node/my.cnf" <<-END
		[mysqld]
		basedir=$ROOT/usr
		plugin-dir=$ROOT/usr/lib/mysql/plugin
		lc-messages-dir=$ROOT/usr/share/mysql
		character-sets-dir=$ROOT/usr/share/mysql/charsets
		datadir=$node/data
		tmpdir=$node/tmp
		socket=$node/sock
		pid-file=$node/mysqld.pid
		log-error=$node/error.log
		secure-file-priv=NULL
		bind-address=127.0.0.1
		port=$((base + $1))
		mysqlx=OFF
		server-id=$1
		report-host=127.0.0.1
		report-port=$((base + $1))
		skip-name-resolve=ON
		gtid_mode=ON
		enforce_gtid_consistency=ON
		innodb_buffer_pool_size=128M
		innodb_flush_log_at_trx_commit=2
		sync_binlog=0
		skip-replica-start=OFF
	END
	if [[ $topology == group ]]; then
		for i in $(node_numbers); do seeds+="127.0.0.1:$((base + 10 + i)),"; done
		cat >>"$node/my.cnf" <<-END
			plugin-load-add=group_replication.so
			loose-group_replication_group_name=$GROUP
			loose-group_replication_local_address=127.0.0.1:$((base + 10 + $1))
			loose-group_replication_group_seeds=${seeds%,}
			loose-group_replication_start_on_boot=OFF
			loose-group_replication_recovery_get_public_key=ON
		END
	fi
	chmod 0644 "$node/my.cnf"
}

# launch N [OPTION...]
launch() {
	local node=$dir/n$1
	shift
	program sbin/mysqld
	if ((EUID == 0)); then
		PROGRAM=(setpriv --reuid=mysql --regid=mysql --init-groups env HOME=/nonexistent "${PROGRAM[@]}")
	fi
	process_start "$node/pid" "$node/error.log" "${PROGRAM[@]}" --defaults-file="$node/my.cnf" "$@"
}

# initialize N: an empty server with its accounts. They are made on each server apart
# and are in no binary log: members of a group must not have transactions of their own.
initialize() {
	local node=$dir/n$1 out
	server_folder "$node"
	node_config "$1"
	(
		umask 077
		cat >"$node/init.sql" <<-END
			SET sql_log_bin = 0;
			ALTER USER root@localhost IDENTIFIED BY '$(<"$dir/admin.password")';
			CREATE DATABASE sbtest;
			CREATE USER bench@127.0.0.1 IDENTIFIED BY '$(<"$dir/bench.password")';
			GRANT ALL ON sbtest.* TO bench@127.0.0.1;
			CREATE USER monitor@127.0.0.1 IDENTIFIED BY '$(<"$dir/monitor.password")';
			GRANT REPLICATION CLIENT ON *.* TO monitor@127.0.0.1;
			GRANT SELECT ON performance_schema.* TO monitor@127.0.0.1;
			CREATE USER replica@127.0.0.1 IDENTIFIED BY '$(<"$dir/replica.password")';
			GRANT REPLICATION SLAVE, CONNECTION_ADMIN, BACKUP_ADMIN, GROUP_REPLICATION_STREAM ON *.* TO replica@127.0.0.1;
		END
	)
	((EUID != 0)) || chown mysql:mysql "$node/init.sql"
	program sbin/mysqld
	out=$(as_server "${PROGRAM[@]}" --defaults-file="$node/my.cnf" --initialize-insecure --init-file="$node/init.sql" 2>&1) ||
		server_failed "$node" "could not be made: $out"
	rm -f "$node/init.sql"
}

create() {
	local n name
	for name in admin bench monitor replica; do password_file "$dir/$name.password"; done
	for n in $(node_numbers); do initialize "$n"; done
	restart
	sysbench_config "$dir/sysbench.cnf" $((base + 1)) "$(<"$dir/bench.password")"
	: >"$dir/complete"
}

restart() {
	local n
	for n in $(node_numbers); do
		node_config "$n"
		launch "$n"
	done
	for n in $(node_numbers); do
		server_wait "$dir/n$n" node_usable
		join "$n" bootstrap
	done
}

rejoin() {
	launch "$1"
	server_wait "$dir/n$1" node_usable
	join "$1"
}

# join N [bootstrap]: the first member begins the group if nobody else is there.
join() {
	local begin=''
	if [[ $topology == group ]]; then
		[[ $1 != 1 || ${2:-} != bootstrap ]] || begin='SET GLOBAL group_replication_bootstrap_group = ON;'
		SQL_TIMEOUT=120 sql "$dir/n$1" 2>"$dir/n$1/join.log" <<-END || die "server $1 can't join: $(cat "$dir/n$1/join.log")"
			CHANGE REPLICATION SOURCE TO SOURCE_USER = 'replica', SOURCE_PASSWORD = '$(<"$dir/replica.password")'
				FOR CHANNEL 'group_replication_recovery';
			$begin
			START GROUP_REPLICATION;
			SET GLOBAL group_replication_bootstrap_group = OFF;
		END
	elif (($1 > 1)); then
		sql "$dir/n$1" 2>"$dir/n$1/join.log" <<-END || die "server $1 can't replicate: $(cat "$dir/n$1/join.log")"
			STOP REPLICA;
			CHANGE REPLICATION SOURCE TO SOURCE_HOST = '127.0.0.1', SOURCE_PORT = $((base + 1)), SOURCE_USER = 'replica',
				SOURCE_PASSWORD = '$(<"$dir/replica.password")', SOURCE_AUTO_POSITION = 1, SOURCE_CONNECT_RETRY = 1,
				GET_SOURCE_PUBLIC_KEY = 1;
			START REPLICA;
		END
	fi
}

slow() { cpu_limit "$dir/n$1" "$2"; }

unslow() { cpu_unlimit "$dir/n$1"; }

topology=${1:-help}
case $topology in
help | -h | --help) usage && exit ;;
unpack) unpack && exit ;;
replica) count=2 ;;
group) count=3 ;;
*) die "unpack, replica or group expected, not: $topology" ;;
esac
[[ ! -d $ROOT ]] || ROOT=$(cd "$ROOT" && pwd)
shift
if [[ ${1:-} == start ]]; then
	[[ -x $ROOT/usr/sbin/mysqld ]] || die "MySQL is not unpacked in $ROOT; mysql9.sh unpack does that"
	reachable "$ROOT"
fi
servers_main "mysql9-$topology" "$count" "$@"
