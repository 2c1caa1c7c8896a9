# shellcheck shell=bash
# Asking Prometheus through its HTTP API. Sourced after process.sh; the port is in
# prometheus_port.

: "${prometheus_port:=}"

# promql EXPRESSION [LABEL]: one line a series, "LABEL's value, tab, value", sorted; the
# value alone without LABEL. Nothing if nothing was recorded.
promql() {
	curl -fsS --max-time 10 -G "http://127.0.0.1:$prometheus_port/api/v1/query" --data-urlencode "query=$1" |
		jq -r --arg by "${2:-}" '.data.result[]
			| (if $by == "" then "" else (.metric[$by] // "") + "\t" end) + .value[1]' | sort
}

# rounded DIGITS: rounds the last column of its input.
rounded() {
	awk -v d="$1" -F '\t' 'BEGIN { OFS = FS } { $NF = sprintf("%." d "f", $NF); print }'
}

# across: "n1 3, n2 0" of "LABEL, tab, value" lines.
across() { awk -F '\t' '{ printf "%s%s %s", sep, $1, $2; sep = ", " } END { if (NR) print "" }'; }

# fact TEXT VALUE: a line of a summary; what was not recorded is said to be so.
fact() { printf '  %-34s %s\n' "$1" "${2:-not recorded}"; }

# cluster_fact TEXT VALUE: the same for what one server alone does not have.
cluster_fact() { [[ -z ${2:-} ]] || fact "$@"; }

# recorded RUN SECONDS: what Prometheus has of the last SECONDS, in which RUN took place.
recorded() {
	local alerts run="run=\"$1\"" range="$2s"
	local transactions="benchwatch_run_operations_per_second{$run,op=\"transaction\"}"
	local p95="benchwatch_run_latency_seconds{$run,op=\"transaction\",stat=\"p95\"}"
	fact 'transactions/s, mean' "$(promql "avg(avg_over_time(${transactions}[$range]))" | rounded 0)"
	fact 'transactions/s, worst second' "$(promql "min(min_over_time(${transactions}[$range]))" | rounded 0)"
	fact 'transactions/s, best second' "$(promql "max(max_over_time(${transactions}[$range]))" | rounded 0)"
	fact 'p95 latency, mean of seconds' "$(promql "1000 * avg(avg_over_time(${p95}[$range]))" | rounded 1 | sed 's/$/ ms/')"
	fact 'p95 latency, worst second' "$(promql "1000 * max(max_over_time(${p95}[$range]))" | rounded 1 | sed 's/$/ ms/')"
	fact 'transactions counted' "$(promql "max(benchwatch_run_summary_operations_total{$run,op=\"transaction\"})")"
	cluster_fact 'seconds paused by flow control' "$(promql "increase(benchwatch_galera_flow_control_paused_seconds_total[$range])" target | rounded 1 | across)"
	cluster_fact 'share paused, worst 15 s' "$(promql "100 * max_over_time(target:benchwatch_galera_flow_control_paused:ratio_rate15s[$range])" target | rounded 0 | sed 's/$/ %/' | across)"
	cluster_fact 'pauses asked for' "$(promql "increase(benchwatch_galera_flow_control_sent_total[$range])" target | rounded 0 | across)"
	cluster_fact 'greatest lag, transactions' "$(promql "max_over_time(benchwatch_replication_lag_transactions[$range])" target | across)"
	cluster_fact 'greatest lag, seconds' "$(promql "max_over_time(benchwatch_replication_lag_seconds[$range])" target | rounded 1 | across)"
	cluster_fact 'seconds to catch up after the end' "$(promql "max by (target) (max_over_time(benchwatch_run_drain_seconds{$run}[$range]))" target | rounded 1 | across)"
	fact 'host CPU, busiest 20 s' "$(promql "100 * max(max_over_time(instance:node_cpu_utilisation:rate20s[$range]))" | rounded 0 | sed 's/$/ %/')"
	alerts=$(promql "group by (alertname) (max_over_time(ALERTS{alertstate=\"firing\"}[$range]))" alertname | cut -f1 | tr '\n' ' ')
	fact 'alerts that fired' "${alerts:-none}"
}
