#!/usr/bin/env bash
# A Galera cluster of MariaDB servers on loopback, in one folder.
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
usage: galera.sh start DIR BASEPORT [NODES]   start (3 nodes), or start again with the same data
       galera.sh stop DIR                     stop all nodes; the data stays
       galera.sh status DIR                   one line a node
       galera.sh kill|pause|resume DIR N      SIGKILL, SIGSTOP, SIGCONT to node N
       galera.sh limit DIR N [PERCENT]        leave node N's appliers PERCENT (5) of one core
       galera.sh unlimit DIR N
       galera.sh lag|unlag DIR N              let node N fall behind without holding the others
       galera.sh rejoin DIR N [ist|sst]       start a dead node again
       galera.sh sql DIR N                    administrator's client on node N

Node N listens on 127.0.0.1:BASEPORT+N and takes BASEPORT+{10,20,30}+N for Galera.
DIR/bench.password and DIR/monitor.password hold the passwords of the users
bench (database sbtest) and monitor; DIR/sysbench.cnf is for sysbench --config-file.
END
}

PORTS_PER_NODE=4

# The library's folder carries the machine's name on Debian.
provider() {
	local path
	for path in /usr/lib/galera/libgalera_smm.so /usr/lib/*/galera/libgalera_smm.so /usr/lib64/galera-4/libgalera_smm.so; do
		[[ -r $path ]] && {
			printf '%s\n' "$path"
			return
		}
	done
	die "Galera's library is not installed (Debian package galera-4); scripts/packages.sh installs it"
}

# node_config N: all nodes share one host, so every port differs. The benchmark's
# clients are on node 1, and a donor under rsync commits nothing: any other first.
node_config() {
	local n=$1 peers='' i
	for i in $(node_numbers); do peers+="127.0.0.1:$((base + 10 + i)),"; done
	server_config "$dir/n$n" $((base + n)) "$n" \
		binlog_format=ROW innodb_autoinc_lock_mode=2 \
		wsrep_on=ON wsrep_provider="$(provider)" wsrep_cluster_name=benchwatch \
		wsrep_cluster_address="gcomm://${peers%,}" \
		wsrep_node_name="n$n" wsrep_node_address=127.0.0.1 wsrep_node_incoming_address="127.0.0.1:$((base + n))" \
		"wsrep_provider_options=base_port=$((base + 10 + n));gmcast.listen_addr=tcp://127.0.0.1:$((base + 10 + n));ist.recv_addr=127.0.0.1:$((base + 20 + n));gcache.size=128M" \
		wsrep_sst_method=rsync wsrep_sst_receive_address="127.0.0.1:$((base + 30 + n))" \
		wsrep_sst_donor=n2,n3, wsrep_slave_threads=1
}

wsrep() { # NODE VARIABLE
	sql "$1" -e "SHOW GLOBAL STATUS LIKE 'wsrep_$2'" 2>/dev/null | cut -f2
}

node_usable() {
	[[ $(sql "$1" -e "SHOW GLOBAL STATUS WHERE Variable_name IN
		('wsrep_ready', 'wsrep_cluster_status', 'wsrep_local_state')" 2>/dev/null |
		sort | cut -f2 | tr '\n' ' ') == 'Primary 4 ON ' ]]
}

node_state() {
	printf '%s size %s seqno %s' "$(wsrep "$1" local_state_comment)" "$(wsrep "$1" cluster_size)" "$(wsrep "$1" last_committed)"
}

# create: node 1 is made and stopped again; the other nodes begin as copies of it.
# Standing at the same position, no node needs a full state transfer (15 s each).
create() {
	local n
	printf '1\n' >"$dir/nodes"
	server_folder "$dir/n1"
	node_config 1
	server_install "$dir/n1"
	server_launch "$dir/n1" --wsrep-new-cluster
	server_wait "$dir/n1" node_usable
	accounts "$dir" "$dir/n1" $((base + 1))
	process_stop "$dir/n1/pid" 30
	rm -f "$dir/n1/data/"{galera.cache,gvwstate.dat}
	printf '%s\n' "$1" >"$dir/nodes"
	for n in $(node_numbers); do ((n == 1)) || copy_data 1 "$n"; done
	: >"$dir/complete"
	restart
}

# recovered N: "SEQNO UUID" of a node that is down, as InnoDB knows it; nothing if it
# knows none.
recovered() {
	local log=$dir/n$1/recover.log
	as_server timeout "$START_TIMEOUT" mariadbd --defaults-file="$dir/n$1/my.cnf" --log-error="$log" \
		--wsrep-recover >/dev/null 2>&1 || true
	sed -nE 's/.*WSREP: Recovered position:? *([0-9a-f-]{36}):([0-9]+).*/\2 \1/p' "$log" 2>/dev/null | tail -n 1
	rm -f "$log"
}

# restart: the cluster again, from the node that is furthest.
restart() {
	local n best=0 best_seqno=-1 seqno uuid position
	for n in $(node_numbers); do
		node_config "$n"
		read -r seqno uuid < <(recovered "$n") || continue
		((seqno <= best_seqno)) || { best=$n best_seqno=$seqno position=$uuid:$seqno; }
	done
	((best)) || die "no node in $dir has a position to start from; remove the folder to begin anew"
	# Galera lets only the node that was stopped last begin; here we know better.
	sed -i 's/^safe_to_bootstrap:.*/safe_to_bootstrap: 1/' "$dir/n$best/data/grastate.dat"
	server_launch "$dir/n$best" --wsrep-new-cluster --wsrep_start_position="$position"
	server_wait "$dir/n$best" node_usable
	for n in $(node_numbers); do ((n == best)) || rejoin "$n" ist; done
}

# rejoin N ist|sst: with the position that InnoDB knows, a node killed a moment ago
# needs only what it missed (IST); without, everything is sent again (SST).
rejoin() {
	local n=$1 seqno uuid
	if [[ ${2:-ist} == sst ]]; then
		server_folder "$dir/n$n"
		node_config "$n"
		server_launch "$dir/n$n"
	elif read -r seqno uuid < <(recovered "$n"); then
		server_launch "$dir/n$n" --wsrep_start_position="$uuid:$seqno"
	else
		server_launch "$dir/n$n"
	fi
	server_wait "$dir/n$n" node_usable
}

# slow N PERCENT: a slow applier makes a node's queue grow, and its flow control then
# holds the whole cluster. With cpulimit, the group's messages wait before they reach
# the queue, so the limit at which the node asks for a pause is lowered too.
slow() {
	limit_appliers "$1" "$2"
	[[ $CPU_LIMITED_BY == cgroup ]] || fc_limit "$1" 1
}

limit_appliers() { # N PERCENT
	local threads
	mapfile -t threads < <(sql "$dir/n$1" -e "SELECT tid FROM information_schema.processlist WHERE user = 'system user'")
	((${#threads[@]})) || die "node $1 shows no applier threads"
	cpu_limit "$dir/n$1" "$2" "${threads[@]}"
}

unslow() {
	cpu_unlimit "$dir/n$1"
	fc_limit "$1" 16
}

# lag N: slow appliers in a node that does not ask for pauses. Where single threads can't be
# slowed, a read lock holds them: the node then shows as desynced.
lag() {
	fc_limit "$1" 100000
	limit_appliers "$1" 2
	[[ $CPU_LIMITED_BY != cgroup ]] || return 0
	cpu_unlimit "$dir/n$1"
	process_start "$dir/n$1/lock.pid" /dev/null timeout 600 mariadb --no-defaults --socket="$dir/n$1/sock" --user="$ADMIN" \
		-e "FLUSH TABLES WITH READ LOCK; $LOCK_WAIT"
}

LOCK_WAIT='SELECT SLEEP(600)'

unlag() {
	unslow "$1"
	sql "$dir/n$1" -e "SELECT CONCAT('KILL ', id, ';') FROM information_schema.processlist WHERE info = '$LOCK_WAIT'" | sql "$dir/n$1"
	process_stop "$dir/n$1/lock.pid" 5
}

fc_limit() { # N LIMIT
	sql "$dir/n$1" -e "SET GLOBAL wsrep_provider_options = 'gcs.fc_limit=$2'"
}

if [[ ${1:-} == start ]]; then
	server_check
	need rsync rsync
	provider >/dev/null
fi
servers_main galera 3 "$@"
