#!/usr/bin/env bash
# Prometheus with the repository's rules, Alertmanager, exporters and the agent for a
# folder of servers, on loopback, in one folder of their own.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
here=$root/scripts
# shellcheck source=scripts/lib/process.sh
. "$here/lib/process.sh"
# shellcheck source=scripts/lib/monitoring.sh
. "$here/lib/monitoring.sh"
# shellcheck source=scripts/lib/grafana.sh
. "$here/lib/grafana.sh"

usage() {
	cat <<'END'
usage: monitoring.sh start DIR SERVERS BASEPORT [CLUSTER]
       monitoring.sh stop DIR          stop all of it; the data stays
       monitoring.sh stop-agent DIR    stop the agent alone

SERVERS is a folder of galera.sh or mariadb.sh whose servers run; CLUSTER is what the
agent calls them together. Prometheus listens on 127.0.0.1:BASEPORT, Alertmanager,
node_exporter and the agent on the next three ports, the mysqld_exporters from
BASEPORT+6 on. DIR/benchwatch.yml is the agent's configuration.
The agent is $BENCHWATCH, by default the binary that `make build` makes. With GRAFANA_URL
and GRAFANA_TOKEN set it sends its markers there.
END
}

start() { # SERVERS BASEPORT [CLUSTER]
	[[ -s $1/nodes && -s $1/base ]] || die "$1 holds no servers"
	[[ $2 =~ ^[1-9][0-9]{3,4}$ && $2 -le 65000 ]] || die "a base port between 1000 and 65000 expected, not: $2"
	folder_claim "$dir" monitoring
	ln -sfn "$(realpath "$1")" "$dir/servers"
	[[ -z ${GRAFANA_URL:-} ]] || grafana_find
	monitoring_ports "$2"
	monitoring_start "$(<"$1/nodes")" "$(<"$1/base")" "${3:-}"
}

claimed() { [[ -e $dir/.monitoring ]] || die "$dir was not made by this script"; }

command=${1:-help}
case $command in
help | -h | --help) usage && exit ;;
start | stop | stop-agent) ;;
*) die "unknown command: $command; ${0##*/} help lists them" ;;
esac
[[ -n ${2:-} ]] || die "$command: which folder?"
dir=$(realpath -m "$2")
shift 2
case $command in
start)
	(($# == 2 || $# == 3)) || die 'start: a folder of servers and a base port expected'
	start "$@"
	;;
stop) claimed && monitoring_stop ;;
stop-agent) claimed && process_stop "$dir/agent.pid" 10 ;;
esac
