#!/usr/bin/env bash
# Shows benchwatch at work: servers, load and monitoring on this machine's loopback,
# all in one folder, and stops everything it started.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
here=$root/scripts
# shellcheck source=scripts/lib/process.sh
. "$here/lib/process.sh"
# shellcheck source=scripts/lib/monitoring.sh
. "$here/lib/monitoring.sh"
# shellcheck source=scripts/lib/promql.sh
. "$here/lib/promql.sh"
# shellcheck source=scripts/lib/grafana.sh
. "$here/lib/grafana.sh"

usage() {
	cat <<'END'
usage: demo.sh [--keep] [--system galera|mariadb] [--time SECONDS]

  --keep      leave everything running until Ctrl-C
  --system    a Galera cluster of three nodes (default), or one MariaDB server
  --time      how long the benchmark runs (60; at least 30)

With GRAFANA_URL and GRAFANA_TOKEN set (a service account that may edit), or with
Grafana installed, Grafana gets data source, dashboards and markers.
END
}

keep=no system=galera seconds=60
TABLES=4 TABLE_SIZE=20000 THREADS=16

options() {
	while (($#)); do
		case $1 in
		--keep) keep=yes ;;
		--system) system=${2:-} && shift ;;
		--system=*) system=${1#*=} ;;
		--time) seconds=${2:-} && shift ;;
		--time=*) seconds=${1#*=} ;;
		-h | --help) usage && exit ;;
		*) die "unknown option: $1 (--help lists them)" ;;
		esac
		shift || true
	done
	[[ $system == galera || $system == mariadb ]] || die "--system galera or --system mariadb expected, not: $system"
	[[ $seconds =~ ^[0-9]+$ && $seconds -ge 30 ]] || die "--time: at least 30 seconds expected, not: $seconds"
}

say() { printf '%s\n' "$*"; }

# The folder of the running or last demo is remembered in build/demo, so that what a
# killed one left behind can be cleared away.
state=$root/build/demo

claim() {
	local left
	mkdir -p "$state"
	exec 9>>"$state/lock"
	flock -n 9 || die "a demo of this clone is running already"
	if [[ -s $state/folder ]]; then
		left=$(<"$state/folder")
		if [[ -e $left/.benchwatch-demo ]]; then
			say "clearing away what an earlier demo left in $left"
			dir=$left
			stop_all
		fi
	fi
	dir=$(mktemp -d "${TMPDIR:-/tmp}/benchwatch-demo.XXXXXX")
	: >"$dir/.benchwatch-demo"
	# The database server's own user must be able to pass through.
	chmod 0711 "$dir"
	printf '%s\n' "$dir" >"$state/folder"
}

# stop_all: everything below dir, by process id, and the folder itself.
stop_all() {
	monitoring_stop
	if [[ -e $dir/servers/nodes ]]; then
		if [[ -e $dir/servers/.galera ]]; then "$here/galera.sh" stop "$dir/servers"; else "$here/mariadb.sh" stop "$dir/servers"; fi
	fi
	rm -rf "$dir"
	rm -f "$state/folder"
}

# finish: keeps the run's record, and the logs if something went wrong.
finish() {
	local code=$?
	trap '' INT TERM HUP
	trap - EXIT
	say 'stopping everything that was started'
	run_stop
	grafana_forget || true
	rm -rf "$state/last"
	mkdir -p "$state/last"
	monitoring_stop || true
	if ((code > 0 && code < 128)); then # not ended by a signal
		cp "$dir"/*.log "$dir"/servers/*/error.log "$state/last/" 2>/dev/null || true
		note "it failed; logs are in $state/last"
	fi
	[[ ! -d $dir/data/runs ]] || mv "$dir/data/runs" "$state/last/"
	stop_all
	exit "$code"
}

prepare() {
	sysbench --config-file="$dir/servers/sysbench.cnf" oltp_write_only --tables=$TABLES --table-size=$TABLE_SIZE \
		--threads=2 prepare >"$dir/prepare.log" 2>&1 || {
		tail -n 5 "$dir/prepare.log" >&2
		die 'sysbench could not prepare its tables'
	}
}

start_load() {
	# Standard error gets the final table; it goes to a file of its own.
	# shellcheck disable=SC2016
	process_start "$dir/run.pid" "$dir/run.log" bash -c 'exec 2>"$0"; exec "$@"' "$dir/table.log" \
		"$root/benchwatch" run --config.file="$dir/benchwatch.yml" --run-id="$run" \
		--title="demo: oltp_write_only on $system" --label demo="$system" -- \
		sysbench --config-file="$dir/servers/sysbench.cnf" oltp_write_only --tables=$TABLES --table-size=$TABLE_SIZE \
		--threads=$THREADS --time="$seconds" --report-interval=1 \
		--mysql-ignore-errors=1213,1020,1205,1047 run
}

phase() { promql "benchwatch_run_phase{run=\"$run\"}" phase | cut -f1; }

# progress SECONDS: a line every five seconds, from Prometheus, for as long as the run
# goes on.
progress() {
	local end=$((SECONDS + $1))
	while ((SECONDS < end)) && ! process_gone "$dir/run.pid"; do
		sleep $((end - SECONDS < 5 ? end - SECONDS : 5))
		progress_line
	done
}

progress_line() {
	local values
	values=$(
		promql "round(max(benchwatch_run_elapsed_seconds{run=\"$run\"}))" | sed 's/$/ s/'
		promql "max(benchwatch_run_operations_per_second{run=\"$run\",op=\"transaction\"})" | rounded 0 | sed 's/$/ tps/'
		promql "1000 * max(benchwatch_run_latency_seconds{run=\"$run\",op=\"transaction\",stat=\"p95\"})" | rounded 0 | sed 's/^/p95 /; s/$/ ms/'
		promql '100 * max(rate(benchwatch_galera_flow_control_paused_seconds_total[5s]))' | rounded 0 | sed 's/^/flow control /; s/$/ %/'
		promql 'max(benchwatch_replication_lag_transactions)' | sed 's/^/lag /; s/$/ transactions/'
	) || true
	[[ -z $values ]] || say "  ${values//$'\n'/ | }"
}

# The first node made slow holds the cluster by flow control; the second, whose limit for
# asking is raised, falls behind instead and has to catch up after the end.
load_galera() {
	progress $((seconds / 4))
	say '  -- node n3 becomes slow: flow control'
	"$here/galera.sh" limit "$dir/servers" 3
	mark 'n3 slow'
	progress $((seconds / 3))
	"$here/galera.sh" unlimit "$dir/servers" 3
	mark 'n3 normal'
	say '  -- node n3 is normal again'
	progress $((seconds / 8))
	say '  -- node n2 becomes slow and may lag: gcs.fc_limit=100000'
	"$here/galera.sh" lag "$dir/servers" 2
	mark 'n2 slow, gcs.fc_limit=100000'
	while [[ $(phase) != @(draining|ended|) ]]; do progress 5; done
	say '  -- sysbench has ended, n2 is normal again and catches up'
	"$here/galera.sh" unlag "$dir/servers" 2
}

load_mariadb() {
	progress $((seconds / 3))
	say '  -- the server becomes slow'
	"$here/mariadb.sh" limit "$dir/servers" 1 30
	mark 'server slow'
	progress $((seconds / 3))
	"$here/mariadb.sh" unlimit "$dir/servers" 1
	mark 'server normal'
	say '  -- the server is normal again'
}

mark() {
	"$root/benchwatch" mark --config.file="$dir/benchwatch.yml" --run "$run" "$1" >>"$dir/mark.log" 2>&1 || true
}

where_to_look() {
	say "Prometheus    http://127.0.0.1:$prometheus_port/graph?g0.expr=benchwatch_run_operations_per_second&g0.tab=0&g0.range_input=5m"
	say "Alertmanager  http://127.0.0.1:$alertmanager_port/"
	say "agent         http://127.0.0.1:$agent_port/"
	[[ -z ${GRAFANA_URL:-} ]] || say "Grafana       $(grafana_link)"
	say "everything is in $dir"
}

main() {
	local base servers=3 cluster=demo began
	options "$@"
	"$here/toolchain.sh" go
	"$here/packages.sh" demo
	make --no-print-directory -s -C "$root" build
	claim
	trap finish EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM HUP
	base=$(ports_free 60)
	monitoring_ports $((base + 40))
	if [[ $system == galera ]]; then
		say 'starting a Galera cluster of three nodes'
		"$here/galera.sh" start "$dir/servers" "$base" 3
	else
		say 'starting a MariaDB server'
		servers=1 cluster=
		"$here/mariadb.sh" start "$dir/servers" "$base"
	fi
	say 'starting Prometheus, Alertmanager, exporters and the agent'
	grafana_find
	monitoring_start "$servers" "$base" "$cluster"
	grafana_set_up
	say
	where_to_look
	say
	say "preparing $TABLES tables of $TABLE_SIZE rows"
	prepare
	say "sysbench oltp_write_only, $THREADS threads, $seconds s; what Prometheus has:"
	run=demo-$(date -u +%Y%m%dT%H%M%SZ)
	began=$SECONDS
	start_load
	"load_$system"
	while ! process_gone "$dir/run.pid"; do progress 5; done
	run_ended
	# Two scrapes and one evaluation of the rules.
	sleep 6
	say
	say "What Prometheus recorded:"
	recorded "$run" $((SECONDS - began))
	say
	if [[ $keep == yes ]]; then
		where_to_look
		say 'Ctrl-C stops everything.'
		trap 'exit 0' INT
		while :; do sleep 1; done
	fi
	say "the run's record stays in $state/last/runs"
}

# run_ended: prints what benchwatch run printed after the tool's output, and checks it.
run_ended() {
	local status
	status=$(jq -r '.exit_code // .signal' "$dir/data/runs/$run/run.json")
	say
	cat "$dir/table.log"
	[[ $status == 0 ]] || {
		tail -n 5 "$dir/run.log" >&2
		die "sysbench ended with $status"
	}
}

# run_stop: ends a run that is still going on; the second signal ends the wait for replicas.
run_stop() {
	process_signal "$dir/run.pid" INT || return 0
	wait_for 5 process_gone "$dir/run.pid" || process_stop "$dir/run.pid" 5
}

main "$@"
