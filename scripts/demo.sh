#!/usr/bin/env bash
# Shows benchwatch at work: servers, load and monitoring on this machine's loopback,
# all in one folder, and stops everything it started.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
here=$root/scripts

usage() {
	cat <<'END'
usage: demo.sh [--keep] [--system galera|mariadb|postgresql] [--time SECONDS]

  --keep      leave everything running until Ctrl-C
  --system    a Galera cluster of three nodes (default), one MariaDB server, or a PostgreSQL
              primary with a synchronous and an asynchronous standby
  --time      how long the benchmark runs (60; at least 30)

With GRAFANA_URL and GRAFANA_TOKEN set (a service account with the role Admin), or with
Grafana installed, Grafana gets data source, dashboards and markers.
END
}

keep=no system=galera seconds=60
TABLES=4 TABLE_SIZE=20000 THREADS=16 SCALE=10
title='' tool=() latency=p95 digits=0 # pgbench prints no percentile

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
	[[ $system == @(galera|mariadb|postgresql) ]] || die "--system galera, mariadb or postgresql expected, not: $system"
	[[ $seconds =~ ^[0-9]+$ && $seconds -ge 30 ]] || die "--time: at least 30 seconds expected, not: $seconds"
}

say() { printf '%s\n' "$*"; }

die() {
	printf 'demo.sh: %s\n' "$*" >&2
	exit 1
}

# The folder of the running or previous demo is recorded in build/demo, so that the next
# one clears away what a killed demo left behind.
state=$root/build/demo
servers=$root/build/servers
run_pid=''

claim() {
	mkdir -p "$state"
	exec 9>>"$state/lock"
	flock -n 9 || die "a demo of this clone is running already"
	if [[ -s $state/folder && -e $(<"$state/folder")/.benchwatch-demo ]]; then
		dir=$(<"$state/folder")
		say "clearing away what an earlier demo left in $dir"
		stop_all
	fi
	dir=$(mktemp -d "${TMPDIR:-/tmp}/benchwatch-demo.XXXXXX")
	: >"$dir/.benchwatch-demo"
	# The database server's own user must be able to pass through.
	chmod 0711 "$dir"
	printf '%s\n' "$dir" >"$state/folder"
}

# stop_all: everything below dir, and the folder itself.
stop_all() {
	local folder
	for folder in monitoring servers; do
		[[ ! -d $dir/$folder ]] || "$servers" stop "$dir/$folder" 9>&- || true
	done
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
	rm -rf "$state/last"
	mkdir -p "$state/last"
	if ((code > 0 && code < 128)); then # not ended by a signal
		cp "$dir"/*.log "$dir"/*/*.log "$dir"/*/*/error.log "$state/last/" 2>/dev/null || true
		say "it failed; logs are in $state/last" >&2
	fi
	if [[ -d $dir/monitoring/data/runs ]]; then
		mv "$dir/monitoring/data/runs" "$state/last/"
		say 'the record is kept; to read it: ./benchwatch report --data-dir=build/demo/last last'
	fi
	stop_all
	exit "$code"
}

running() { [[ -n $run_pid ]] && kill -0 "$run_pid" 2>/dev/null; }

wait_end() { # SECONDS
	local end=$((SECONDS + $1))
	while running; do
		((SECONDS < end)) || return 1
		sleep 0.1
	done
}

# run_stop: the second signal ends the wait for replicas.
run_stop() {
	local signal
	for signal in INT INT KILL; do
		running || return 0
		kill -"$signal" "$run_pid" 2>/dev/null || true
		wait_end 5 || true
	done
}

prepare_sysbench() {
	say "preparing $TABLES tables of $TABLE_SIZE rows"
	sysbench --config-file="$dir/servers/sysbench.cnf" oltp_write_only --tables=$TABLES --table-size=$TABLE_SIZE \
		--threads=2 prepare >"$dir/prepare.log" 2>&1 || {
		tail -n 5 "$dir/prepare.log" >&2
		die 'sysbench could not prepare its tables'
	}
	title='sysbench oltp_write_only'
	tool=(sysbench --config-file="$dir/servers/sysbench.cnf" oltp_write_only --tables="$TABLES" --table-size="$TABLE_SIZE"
		--threads="$THREADS" --time="$seconds" --report-interval=1 --mysql-ignore-errors="1213,1020,1205,1047" run)
}

# prepare_pgbench: libpq gets address and login from the environment, the password from a file. Commits wait until
# the first standby has replayed them.
prepare_pgbench() {
	local port statement
	say "preparing pgbench's tables at scale $SCALE"
	port=$(sed -n 's/^pgsql-port=//p' "$dir/servers/sysbench.cnf")
	printf '127.0.0.1:%s:sbtest:bench:%s\n' "$port" "$(<"$dir/servers/bench.password")" >"$dir/pgpass"
	chmod 0600 "$dir/pgpass"
	export PGHOST=127.0.0.1 PGPORT=$port PGUSER=bench PGDATABASE=sbtest PGPASSFILE=$dir/pgpass
	pgbench --initialize --quiet --scale=$SCALE >"$dir/prepare.log" 2>&1 || {
		tail -n 5 "$dir/prepare.log" >&2
		die 'pgbench could not prepare its tables'
	}
	for statement in "ALTER SYSTEM SET synchronous_standby_names = 'n2'" 'ALTER SYSTEM SET synchronous_commit = remote_apply' 'SELECT pg_reload_conf()'; do
		sql 1 "$statement"
	done
	title='pgbench --skip-some-updates' latency=avg digits=1
	tool=(pgbench --skip-some-updates --no-vacuum --client="$THREADS" --jobs=2 --time="$seconds" --progress=1)
}

# sql SERVER STATEMENT: as administrator.
sql() { "$servers" sql "$dir/servers" "$1" <<<"$2" >>"$dir/sql.log" 2>&1; }

# start_load: in a session of its own, so that Ctrl-C does not end it before finish does.
# Standard error gets the final table.
start_load() {
	setsid "$root/benchwatch" run --config.file="$config" --run-id="$run" \
		--title="demo: $title on $system" --label demo="$system" -- \
		"${tool[@]}" >"$dir/run.log" 2>"$dir/table.log" </dev/null 9>&- &
	run_pid=$!
}

# promql EXPRESSION [LABEL]: asks Prometheus. It prints one line per series, "LABEL's value,
# tab, value", sorted, or the value alone without LABEL; nothing if nothing was recorded.
promql() {
	curl -fsS --max-time 10 -G "${url[prometheus]}api/v1/query" --data-urlencode "query=$1" |
		jq -r --arg by "${2:-}" '.data.result[]
			| (if $by == "" then "" else (.metric[$by] // "") + "\t" end) + .value[1]' | sort
}

# rounded DIGITS: rounds the last column of its input.
rounded() {
	awk -v d="$1" -F '\t' 'BEGIN { OFS = FS } { $NF = sprintf("%." d "f", $NF); print }'
}

# across: "n1 3, n2 0" of "LABEL, tab, value" lines.
across() { awk -F '\t' '{ printf "%s%s %s", sep, $1, $2; sep = ", " } END { if (NR) print "" }'; }

# fact TEXT VALUE: a line of the summary.
fact() { printf '  %-34s %s\n' "$1" "${2:-not recorded}"; }

# cluster_fact TEXT VALUE: the same for what a single server does not have.
cluster_fact() { [[ -z ${2:-} ]] || fact "$@"; }

phase() { promql "benchwatch_run_phase{run=\"$run\"}" phase | cut -f1; }

# progress SECONDS: a line every five seconds during the run.
progress() {
	local end=$((SECONDS + $1))
	while ((SECONDS < end)) && running; do
		sleep $((end - SECONDS < 5 ? end - SECONDS : 5))
		progress_line
	done
}

progress_line() {
	local values
	values=$(
		promql "round(max(benchwatch_run_elapsed_seconds{run=\"$run\"}))" | sed 's/$/ s/'
		promql "max(benchwatch_run_operations_per_second{run=\"$run\",op=\"transaction\"})" | rounded 0 | sed 's/$/ tps/'
		promql "1000 * max(benchwatch_run_latency_seconds{run=\"$run\",op=\"transaction\",stat=\"$latency\"})" | rounded "$digits" | sed "s/^/$latency /; s/\$/ ms/"
		promql '100 * max(rate(benchwatch_galera_flow_control_paused_seconds_total[5s]))' | rounded 0 | sed 's/^/flow control /; s/$/ %/'
		promql 'max(benchwatch_replication_lag_transactions)' | sed 's/^/lag /; s/$/ transactions/'
		promql 'sum(rate(benchwatch_postgresql_standby_wait_seconds_total[5s]))' | rounded 0 | sed 's/^/waiting for a standby /; s/$/ sessions/'
		promql 'max(benchwatch_replication_lag_bytes) / 1048576' | rounded 1 | sed 's/^/lag /; s/$/ MB/'
	) || true
	[[ -z $values ]] || say "  ${values//$'\n'/ | }"
}

# The first node that becomes slow holds the cluster by flow control; the second, whose
# limit for that is raised, falls behind instead and has to catch up after the end.
load_galera() {
	progress $((seconds / 4))
	say '  -- node n3 becomes slow: flow control'
	"$servers" limit "$dir/servers" 3
	mark 'n3 slow'
	progress $((seconds / 3))
	"$servers" unlimit "$dir/servers" 3
	mark 'n3 normal'
	say '  -- node n3 is normal again'
	progress $((seconds / 8))
	say '  -- node n2 becomes slow and may lag: gcs.fc_limit=100000'
	"$servers" lag "$dir/servers" 2
	mark 'n2 slow, gcs.fc_limit=100000'
	while [[ $(phase) != @(draining|ended|) ]]; do progress 5; done
	say '  -- sysbench has ended, n2 is normal again and catches up'
	"$servers" unlag "$dir/servers" 2
}

# The standby for which commits wait replays late; later the other one stops to replay, while the primary has to write
# a checkpoint every few seconds: after the first one, each page that changes is in the WAL as a whole.
load_postgresql() {
	progress $((seconds / 4))
	say '  -- the synchronous standby n2 becomes slow: commits wait for it'
	sql 2 "ALTER SYSTEM SET recovery_min_apply_delay = '50ms'"
	sql 2 'SELECT pg_reload_conf()'
	mark 'n2 slow'
	progress $((seconds / 3))
	sql 2 'ALTER SYSTEM RESET recovery_min_apply_delay'
	sql 2 'SELECT pg_reload_conf()'
	mark 'n2 normal'
	say '  -- n2 is normal again'
	progress $((seconds / 8))
	say '  -- max_wal_size=32MB: checkpoints all the time; the asynchronous standby n3 stops to replay'
	sql 1 "ALTER SYSTEM SET max_wal_size = '32MB'"
	sql 1 'SELECT pg_reload_conf()'
	sql 1 'CHECKPOINT'
	"$servers" lag "$dir/servers" 3
	mark 'max_wal_size=32MB, n3 lags'
	while [[ $(phase) != @(draining|ended|) ]]; do progress 5; done
	say '  -- pgbench has ended, n3 replays again and catches up'
	"$servers" unlag "$dir/servers" 3
}

load_mariadb() {
	progress $((seconds / 3))
	say '  -- the server becomes slow'
	"$servers" limit "$dir/servers" 1 30
	mark 'server slow'
	progress $((seconds / 3))
	"$servers" unlimit "$dir/servers" 1
	mark 'server normal'
	say '  -- the server is normal again'
}

mark() { "$root/benchwatch" mark --config.file="$config" --run "$run" "$1" >>"$dir/mark.log" 2>&1 || true; }

# recorded SECONDS: what Prometheus has of the last SECONDS, in which the run took place.
recorded() {
	local alerts selector="run=\"$run\"" range="$1s"
	local transactions="benchwatch_run_operations_per_second{$selector,op=\"transaction\"}"
	local of="latency_seconds{$selector,op=\"transaction\",stat=\"$latency\"}"
	fact 'transactions/s, mean' "$(promql "avg(avg_over_time(${transactions}[$range]))" | rounded 0)"
	fact 'transactions/s, worst second' "$(promql "min(min_over_time(${transactions}[$range]))" | rounded 0)"
	fact 'transactions/s, best second' "$(promql "max(max_over_time(${transactions}[$range]))" | rounded 0)"
	fact "$latency latency, whole run" "$(promql "1000 * max(benchwatch_run_summary_$of)" | rounded 1 | sed 's/$/ ms/')"
	fact "$latency latency, worst second" "$(promql "1000 * max(max_over_time(benchwatch_run_${of}[$range]))" | rounded 1 | sed 's/$/ ms/')"
	fact 'transactions counted' "$(promql "max(benchwatch_run_summary_operations_total{$selector,op=\"transaction\"})")"
	cluster_fact 'seconds paused by flow control' "$(promql "increase(benchwatch_galera_flow_control_paused_seconds_total[$range])" target | rounded 1 | across)"
	cluster_fact 'share paused, worst 15 s' "$(promql "100 * max_over_time(target:benchwatch_galera_flow_control_paused:ratio_rate15s[$range])" target | rounded 0 | sed 's/$/ %/' | across)"
	cluster_fact 'pauses requested' "$(promql "increase(benchwatch_galera_flow_control_sent_total[$range])" target | rounded 0 | across)"
	cluster_fact 'waiting for a standby, session s' "$(promql "increase(benchwatch_postgresql_standby_wait_seconds_total[$range])" standby | rounded 0 | across)"
	cluster_fact 'checkpoints requested' "$(promql "increase(benchwatch_postgresql_checkpoints_total{role=\"primary\",cause=\"requested\"}[$range])" target | rounded 0 | across)"
	cluster_fact 'greatest lag, MB' "$(promql "max_over_time(benchwatch_replication_lag_bytes[$range]) / 1048576" target | rounded 1 | across)"
	cluster_fact 'greatest lag, transactions' "$(promql "max_over_time(benchwatch_replication_lag_transactions[$range])" target | across)"
	cluster_fact 'greatest lag, seconds' "$(promql "max_over_time(benchwatch_replication_lag_seconds[$range])" target | rounded 1 | across)"
	cluster_fact 'seconds to catch up after the end' "$(promql "max by (target) (max_over_time(benchwatch_run_drain_seconds{$selector}[$range]))" target | rounded 1 | across)"
	fact 'host CPU, busiest 20 s' "$(promql "100 * max(max_over_time(instance:node_cpu_utilisation:rate20s[$range]))" | rounded 0 | sed 's/$/ %/')"
	alerts=$(promql "group by (alertname) (max_over_time(ALERTS{alertstate=\"firing\"}[$range]))" alertname | cut -f1 | tr '\n' ' ')
	fact 'alerts that fired' "${alerts:-none}"
}

declare -A url

# find_urls: sets url[prometheus], url[agent] … from what was started.
find_urls() {
	local name address
	while read -r name address; do url[$name]=$address; done < <("$servers" status "$dir/monitoring")
}

where_to_look() {
	say "Prometheus    ${url[prometheus]}graph?g0.expr=benchwatch_run_operations_per_second&g0.tab=0&g0.range_input=5m"
	say "Alertmanager  ${url[alertmanager]}"
	say "agent         ${url[agent]}"
	[[ -z ${url[dashboard]:-} ]] || say "Grafana       ${url[dashboard]}"
	say "everything is in $dir"
}

# run_ended: prints the table of benchwatch run, and fails if the tool failed.
run_ended() {
	local status
	status=$(jq -r '.exit_code // .signal' "$dir/monitoring/data/runs/$run/run.json")
	say
	grep -v '^progress: ' "$dir/table.log"
	[[ $status == 0 ]] || {
		tail -n 5 "$dir/run.log" >&2
		die "${tool[0]} ended with $status"
	}
}

main() {
	local cluster=demo began
	options "$@"
	"$here/toolchain.sh" go
	if [[ $system == postgresql ]]; then
		"$here/packages.sh" demo postgresql
	else
		"$here/packages.sh" demo
	fi
	say "building benchwatch: seconds or, if Go has to download and compile its modules, about five minutes"
	make --no-print-directory -s -C "$root" build
	say "building what starts the servers"
	go build -C "$root" -o "$servers" ./internal/servers/cmd
	cd "$root"
	claim
	config=$dir/monitoring/benchwatch.yml
	trap finish EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM HUP
	case $system in
	galera) say 'starting a Galera cluster of three nodes' ;;
	postgresql) say 'starting a PostgreSQL primary with two standbys' ;;
	mariadb)
		say 'starting a MariaDB server'
		cluster=
		;;
	esac
	"$servers" start "$system" "$dir/servers" >/dev/null 9>&-
	say 'starting Prometheus, Alertmanager, exporters and the agent'
	"$servers" monitor "$dir/monitoring" "$dir/servers" --cluster="$cluster" --benchwatch="$root/benchwatch" >/dev/null 9>&-
	find_urls
	say
	where_to_look
	say
	if [[ $system == postgresql ]]; then
		prepare_pgbench
	else
		prepare_sysbench
	fi
	say "$title, $THREADS threads, $seconds s; what Prometheus has:"
	run=demo-$(date -u +%Y%m%dT%H%M%SZ)
	began=$SECONDS
	start_load
	"load_$system"
	while running; do progress 5; done
	run_ended
	# Two scrapes and one evaluation of the rules.
	sleep 6
	say
	say "What Prometheus recorded:"
	recorded $((SECONDS - began))
	say
	if [[ $keep == yes ]]; then
		where_to_look
		say 'Ctrl-C stops everything.'
		trap 'exit 0' INT
		while :; do sleep 1; done
	fi
	say "the run's record stays in $state/last/runs"
}

main "$@"
