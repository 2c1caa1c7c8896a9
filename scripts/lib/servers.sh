# shellcheck shell=bash
# The commands that every script for a folder of servers n1, n2 … has. Sourced after
# process.sh, mariadb.sh and cpu.sh by a script that defines
#   usage           its help
#   create COUNT    make and start the servers of an empty folder
#   restart         start the servers of a folder that has data; none runs
#   rejoin N [HOW]  start server N, which is down
#   node_usable DIR whether the server in DIR is ready for work
#   node_state DIR  a few words for the status line
#   slow N PERCENT, unslow N, lag N, unlag N
#   PORTS_PER_NODE  how many ports a server takes: base+N, base+10+N …
#
# The folder and the base port are in dir and base.

dir='' base=''

node_numbers() { seq 1 "$(<"$dir/nodes")"; }

ports_of() { # COUNT
	local n i
	for n in $(seq "$1"); do
		for ((i = 0; i < PORTS_PER_NODE; i++)); do echo $((base + 10 * i + n)); done
	done
}

servers_start() { # KIND BASEPORT COUNT
	local nodes=$3 n ports
	base=$2
	[[ $base =~ ^[1-9][0-9]{3,4}$ && $base -le 65000 ]] || die "a base port between 1000 and 65000 expected, not: $base"
	[[ $nodes =~ ^[1-9]$ ]] || die "1 to 9 servers expected, not: $nodes"
	folder_claim "$dir" "$1"
	if [[ -e $dir/complete ]]; then
		nodes=$(<"$dir/nodes")
		if all_run; then
			[[ $(<"$dir/base") == "$base" ]] || die "the servers in $dir already run with base port $(<"$dir/base")"
			for n in $(node_numbers); do server_wait "$dir/n$n" node_usable; done
			return
		fi
	fi
	# Some but not all: they are stopped and started together.
	[[ ! -e $dir/nodes ]] || servers_stop
	mapfile -t ports < <(ports_of "$nodes")
	! port_taken "${ports[@]}" || die "a port of ${ports[*]} is taken"
	printf '%s\n' "$nodes" >"$dir/nodes"
	printf '%s\n' "$base" >"$dir/base"
	if [[ -e $dir/complete ]]; then
		restart
		sysbench_config "$dir/sysbench.cnf" $((base + 1)) "$(<"$dir/bench.password")"
	else
		create "$nodes"
	fi
}

all_run() {
	local n
	for n in $(node_numbers); do ! process_gone "$dir/n$n/pid" || return 1; done
}

# servers_stop: the first server, which has the clients, goes last: a cluster's
# others hold a writer up when they leave.
servers_stop() {
	local n
	for n in $(node_numbers | sort -rn); do
		process_stop "$dir/n$n/lock.pid" 2
		process_stop "$dir/n$n/pid" 20
		cpu_forget "$dir/n$n"
	done
}

servers_status() {
	local n pid
	for n in $(node_numbers); do
		if ! pid=$(process_pid "$dir/n$n/pid"); then
			printf 'n%s down\n' "$n"
		elif [[ $(process_stat "$pid" 3) == T ]]; then
			printf 'n%s pid %s 127.0.0.1:%s stopped by a signal\n' "$n" "$pid" $((base + n))
		else
			printf 'n%s pid %s 127.0.0.1:%s %s\n' "$n" "$pid" $((base + n)) "$(node_state "$dir/n$n")"
		fi
	done
}

node_signal() { # N SIGNAL
	process_signal "$dir/n$1/pid" "$2" || die "server $1 does not run"
}

# copy_data FROM TO: a server's files for another one; both are down.
copy_data() {
	server_folder "$dir/n$2"
	cp -a --reflink=auto "$dir/n$1/data/." "$dir/n$2/data/"
}

servers_main() { # KIND COUNT ARGUMENT...
	local kind=$1 count=$2 command=${3:-help}
	shift 3 || true
	case $command in
	help | -h | --help) usage && return ;;
	start | stop | status | kill | pause | resume | limit | unlimit | lag | unlag | rejoin | sql) ;;
	*) die "unknown command: $command; ${0##*/} help lists them" ;;
	esac
	(($#)) || die "$command: which folder?"
	dir=$(realpath -m "$1")
	shift
	if [[ $command == start ]]; then
		(($# == 1 || $# == 2)) || die "start: a folder and a base port expected"
		servers_start "$kind" "$1" "${2:-$count}"
		return
	fi
	[[ -e $dir/.$kind && -e $dir/nodes ]] || die "$dir holds no servers of ${0##*/}"
	base=$(<"$dir/base")
	case $command in
	stop) folder_lock "$dir" && servers_stop && return ;;
	status) servers_status && return ;;
	esac
	[[ ${1:-} =~ ^[1-9]$ && -d $dir/n$1 ]] || die "$command: a server's number expected, not: ${1:-nothing}"
	case $command in
	kill) node_signal "$1" KILL && wait_for 10 process_gone "$dir/n$1/pid" ;;
	pause) node_signal "$1" STOP ;;
	resume) node_signal "$1" CONT ;;
	limit) slow "$1" "${2:-5}" ;;
	unlimit) unslow "$1" ;;
	lag | unlag) "$command" "$1" ;;
	rejoin)
		process_gone "$dir/n$1/pid" || die "server $1 runs"
		process_stop "$dir/n$1/pid"
		cpu_forget "$dir/n$1"
		rejoin "$@"
		;;
	sql) SQL_TIMEOUT=0 sql "$dir/n$1" ;;
	esac
}
