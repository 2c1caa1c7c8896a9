#!/usr/bin/env bash
# A Galera cluster of MariaDB servers on loopback, in one folder.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=scripts/lib/process.sh
. "$here/lib/process.sh"
# shellcheck source=scripts/lib/mariadb.sh
. "$here/lib/mariadb.sh"

usage() {
	cat <<'END'
usage: galera.sh start DIR BASEPORT [NODES]   start, or start again with the same data
       galera.sh stop DIR                     stop all nodes; the data stays
       galera.sh status DIR                   one line a node
       galera.sh kill|pause|resume DIR N      SIGKILL, SIGSTOP, SIGCONT to node N
       galera.sh limit DIR N PERCENT          leave node N PERCENT of one core
       galera.sh unlimit DIR N
       galera.sh rejoin DIR N [ist|sst]       start a dead node again
       galera.sh sql DIR N                    administrator's client on node N

Node N listens on 127.0.0.1:BASEPORT+N and takes BASEPORT+{10,20,30}+N for Galera.
DIR/bench.password and DIR/monitor.password hold the passwords of the users
bench (database sbtest) and monitor; DIR/sysbench.cnf is for sysbench --config-file.
END
}

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

node_numbers() { seq 1 "$(<"$dir/nodes")"; }

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
	for n in $(node_numbers); do
		((n > 1)) || continue
		server_folder "$dir/n$n"
		cp -a --reflink=auto "$dir/n1/data/." "$dir/n$n/data/"
	done
	: >"$dir/complete"
	restart
}

# recovered N: "SEQNO UUID" of a node that is down, from InnoDB; nothing if it
# has none.
recovered() {
	local log=$dir/n$1/recover.log
	as_server timeout "$START_TIMEOUT" mariadbd --defaults-file="$dir/n$1/my.cnf" --log-error="$log" \
		--wsrep-recover >/dev/null 2>&1 || true
	sed -nE 's/.*WSREP: Recovered position:? *([0-9a-f-]{36}):([0-9]+).*/\2 \1/p' "$log" 2>/dev/null | tail -n 1
	rm -f "$log"
}

# restart: the cluster again from its data, from the node that is furthest.
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
	sysbench_config "$dir/sysbench.cnf" $((base + 1)) "$(<"$dir/bench.password")"
}

# rejoin N ist|sst: with the position that InnoDB knows, a node killed a moment ago
# needs only what it missed (IST); without, everything is sent again (SST).
rejoin() {
	local n=$1 seqno uuid
	process_gone "$dir/n$n/pid" || die "node $n runs"
	process_stop "$dir/n$n/pid"
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

running() {
	local n count=0
	for n in $(node_numbers); do process_gone "$dir/n$n/pid" || count=$((count + 1)); done
	printf '%s\n' "$count"
}

start() {
	local nodes=${2:-3} n ports=()
	base=$1
	[[ $base =~ ^[1-9][0-9]{3,4}$ && $base -le 65000 ]] || die "a base port between 1000 and 65000 expected, not: $base"
	[[ $nodes =~ ^[1-9]$ ]] || die "1 to 9 nodes expected, not: $nodes"
	server_check
	need rsync rsync
	provider >/dev/null
	folder_claim "$dir" galera
	if [[ -e $dir/complete ]]; then
		nodes=$(<"$dir/nodes")
		if (($(running) == nodes)); then
			[[ $(<"$dir/base") == "$base" ]] || die "the cluster in $dir already runs with base port $(<"$dir/base")"
			for n in $(node_numbers); do server_wait "$dir/n$n" node_usable; done
			return
		fi
	fi
	# Half a cluster is not brought back into step: it is stopped and started whole.
	[[ ! -e $dir/nodes ]] || stop_nodes
	for n in $(seq "$nodes"); do ports+=($((base + n)) $((base + 10 + n)) $((base + 20 + n)) $((base + 30 + n))); done
	! port_taken "${ports[@]}" || die "a port of ${ports[*]} is taken"
	printf '%s\n' "$nodes" >"$dir/nodes"
	printf '%s\n' "$base" >"$dir/base"
	if [[ -e $dir/complete ]]; then restart; else create "$nodes"; fi
}

# stop_nodes: the loaded node goes last, the others could not commit without it.
stop_nodes() {
	local n
	for n in $(node_numbers | sort -rn); do
		process_stop "$dir/n$n/cpulimit.pid" 2
		process_stop "$dir/n$n/pid" 20
	done
}

status() {
	local n pid
	for n in $(node_numbers); do
		if ! pid=$(process_pid "$dir/n$n/pid"); then
			printf 'n%s down\n' "$n"
		elif [[ $(process_stat "$pid" 3) == T ]]; then
			printf 'n%s pid %s stopped by a signal\n' "$n" "$pid"
		else
			printf 'n%s pid %s 127.0.0.1:%s %s size %s seqno %s\n' "$n" "$pid" $((base + n)) \
				"$(wsrep "$dir/n$n" local_state_comment)" "$(wsrep "$dir/n$n" cluster_size)" "$(wsrep "$dir/n$n" last_committed)"
		fi
	done
}

node_signal() {
	process_signal "$dir/n$1/pid" "$2" || die "node $1 does not run"
}

main() {
	local command=${1:-help}
	case $command in
	help | -h | --help) usage && return ;;
	start) (($# == 3 || $# == 4)) || die "start DIR BASEPORT [NODES]" ;;
	stop | status) (($# == 2)) || die "$command DIR" ;;
	kill | pause | resume | unlimit | limit | rejoin | sql) (($# >= 3)) || die "$command DIR N" ;;
	*) die "unknown command: $command; galera.sh help lists them" ;;
	esac
	shift
	dir=$(realpath -m "$1")
	shift
	if [[ $command != start ]]; then
		[[ -e $dir/nodes ]] || die "$dir holds no cluster"
		base=$(<"$dir/base")
	fi
	if [[ ${1:-} && $command != start ]]; then
		[[ -d $dir/n$1 ]] || die "no node $1 in $dir"
	fi
	case $command in
	start) start "$@" ;;
	stop) folder_lock "$dir" && stop_nodes ;;
	status) status ;;
	kill) node_signal "$1" KILL && wait_for 10 process_gone "$dir/n$1/pid" ;;
	pause) node_signal "$1" STOP ;;
	resume) node_signal "$1" CONT ;;
	limit) cpu_limit "$dir/n$1" "${2:-10}" ;;
	unlimit) cpu_unlimit "$dir/n$1" ;;
	rejoin) rejoin "$@" ;;
	sql) SQL_TIMEOUT=0 sql "$dir/n$1" ;;
	esac
}

main "$@"
