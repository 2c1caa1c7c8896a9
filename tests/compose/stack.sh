#!/usr/bin/env bash
# Runs compose/ on a Docker engine of its own: builds the project's images, then the
# core, the profile mysql with a benchmark, a restart, and the other profiles for which
# there are servers. No image is pulled: stand-ins with the same names are made from what
# is installed here. Needs root and a network (Debian, Go's and npm's packages, Maven).
# Ends with "N passed, N failed".
#
#   DOCKER_COMPOSE  the compose plugin's file; without it and without an installed one it
#                   is built from its Go module (some minutes, kept in build/)
#   GRAFANA_HOME, GRAFANA_BINARY  a Grafana to stand in; without them Grafana is skipped
#   BENCHWATCH_UNPACKED  the folder of an unpacked MySQL 9 (build, mysql9 in it is made by `servers unpack-mysql9`);
#                   without it MariaDB stands in for MySQL, and there is no group
#   PROGRAMS        a folder with programs that stand in instead of Debian's: prometheus,
#                   alertmanager, node_exporter, mysqld_exporter; and yace and
#                   mongodb_exporter, which Debian does not have
#   PORTS           the first of five free ports in a row
#   KEEP            if set, the stack keeps running after all tests, until Enter or Ctrl-C
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
here=$root/tests/compose
# shellcheck source=tests/compose/standin.sh
. "$here/standin.sh"
# shellcheck source=tests/compose/bases.sh
. "$here/bases.sh"

COMPOSE_VERSION=v2.40.3
first_port=${PORTS:-$((20000 + RANDOM % 11000))}
export PROMETHEUS_PORT=$first_port ALERTMANAGER_PORT=$((first_port + 1)) GRAFANA_PORT=$((first_port + 2)) AGENT_PORT=$((first_port + 3))
passed=0 failed=0 failed_quietly=0 forward='' mirror_pid='' engine_pid=''

die() {
	printf 'stack.sh: %s\n' "$*" >&2
	exit 1
}

ok() { # NAME COMMAND...
	local name=$1
	shift
	if "$@" >"$work/output" 2>&1; then
		passed=$((passed + 1))
		echo "ok      $name"
	else
		failed=$((failed + 1))
		echo "FAILED  $name"
		tail -n 12 "$work/output" | sed 's/^/          /'
	fi
}

# eventually SECONDS COMMAND...
eventually() {
	local end=$((SECONDS + $1))
	shift
	until "$@"; do
		((SECONDS < end)) || return 1
		sleep 0.5
	done
}

compose_find() {
	plugin=${DOCKER_COMPOSE:-$root/build/compose-test/docker-compose-$COMPOSE_VERSION}
	[[ -z ${DOCKER_COMPOSE:-} ]] && command docker compose version >/dev/null 2>&1 && plugin='' && return
	[[ ! -x $plugin ]] || return 0
	echo "building the compose plugin $COMPOSE_VERSION" >&2
	local module
	module=$(cd "$root" && GOFLAGS=-mod=mod go mod download -json "github.com/docker/compose/v2@$COMPOSE_VERSION" | jq -r .Dir)
	mkdir -p "$work/compose" "${plugin%/*}"
	cp -r "$module/." "$work/compose/"
	chmod -R u+w "$work/compose"
	(cd "$work/compose" && CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -X github.com/docker/compose/v2/internal.Version=$COMPOSE_VERSION" -o "$plugin" ./cmd)
}

docker() { command docker --host "unix://$work/docker.sock" "$@"; }

# compose ARGUMENT...: the project's files, with the test's override.
compose() {
	local files=(--file "$root/compose/compose.yaml" --file "$work/override.yaml")
	if [[ -n $plugin ]]; then
		DOCKER_HOST=unix://$work/docker.sock "$plugin" "${files[@]}" "$@"
	else
		docker compose "${files[@]}" "$@"
	fi
}

# override: this engine has no network to build in; Grafana may be skipped.
override() {
	local service
	echo 'services:'
	for service in agent loadgen mongo1-exporter mongo2-exporter mongo3-exporter; do
		printf '  %s: {build: {network: host}}\n' "$service"
	done
	[[ -n ${GRAFANA_HOME:-} ]] || printf '  %s: !reset null\n' grafana grafana-token
}

engine_start() {
	forward=$(iptables -S FORWARD 2>/dev/null | head -n 1)
	setsid dockerd --data-root "$work/data" --exec-root "$work/exec" \
		--pidfile "$work/docker.pid" --host "unix://$work/docker.sock" --config-file "$work/daemon.json" >"$work/dockerd.log" 2>&1 </dev/null &
	engine_pid=$!
	eventually 60 docker_answers || {
		tail -n 20 "$work/dockerd.log" >&2
		die 'dockerd did not start'
	}
}
docker_answers() { docker version >/dev/null 2>&1; }

# end PID SECONDS: ends a child of this script.
end() {
	[[ -n $1 ]] && kill "$1" 2>/dev/null || return 0
	eventually "$2" ended "$1" || kill -KILL "$1" 2>/dev/null || true
}
ended() { ! kill -0 "$1" 2>/dev/null; }

# logs: of running and of failed services.
logs() {
	local name
	for name in agent alertmanager prometheus configure secrets grafana grafana-token mysql mysqld-exporter gr1 gr2 gr3 group galera1 galera2 galera3 cloudwatch-config cloudwatch-exporter; do
		compose --profile '*' logs --no-color --tail 15 "$name" 2>/dev/null || true
	done
}

finish_all() {
	local code=$?
	trap '' INT TERM HUP
	trap - EXIT
	if docker_answers; then
		((code == 0 || failed_quietly)) || logs >&2
		compose --profile '*' down --volumes --timeout 5 >/dev/null 2>&1 || true
	fi
	end "$mirror_pid" 5
	end "$engine_pid" 30
	# A Docker engine makes the machine drop forwarded packets, and does not undo that.
	[[ $forward != '-P FORWARD ACCEPT' ]] || iptables -P FORWARD ACCEPT || true
	# The engine unmounts its own mounts; one that is left would keep the folder.
	awk -v dir="$work/" 'index($2, dir) == 1 {print $2}' /proc/mounts | sort -r | while read -r mount; do umount -l "$mount" || true; done
	rm -rf "$work"
	exit "$code"
}

get() { curl -fs --max-time 5 "http://127.0.0.1:$1" "${@:2}"; }
value() { get "$PROMETHEUS_PORT/api/v1/query?query=$(jq -rn --arg q "$1" '$q | @uri')" | jq -re '.data.result[0].value[1]'; }
is() { [[ $(value "$1") == "$2" ]]; }
positive() { awk -v v="$(value "$1")" 'BEGIN {exit !(v > 0)}'; }
secret() { compose run --rm --no-deps --quiet-pull -T secrets cat "/secrets/$1"; }
targets() { get "$PROMETHEUS_PORT/api/v1/targets?state=active" | jq -r '.data.activeTargets[] | .labels.job + " " + .labels.instance + " " + .health' | sort; }
published() { docker ps --format '{{.Ports}}' | tr ',' '\n' | grep -- '->' | grep -v '127\.0\.0\.1:'; }
not() { ! "$@"; }

images() {
	ok 'the agent is built' build agent
	ok 'it is one static file' agent_alone
	ok 'the load generator is built' build loadgen
	ok 'its tools run as its user' tools_run
	if [[ -x ${PROGRAMS:-}/mongodb_exporter ]]; then
		ok "MongoDB's exporter is built" build mongo1-exporter
	fi
	((failed == 0)) || die 'nothing to test'
}

agent_alone() {
	local container
	container=$(docker create "$(image benchwatch/agent)")
	docker export "$container" | tar -t | grep -vE '/$|^(dev|etc|proc|sys)/|^\.dockerenv$|^var/lib/benchwatch' >"$work/agent.files" || true
	docker cp "$container:/benchwatch" "$work/agent.binary"
	docker rm "$container"
	grep -qx benchwatch "$work/agent.files" && [[ $(wc -l <"$work/agent.files") -eq 1 ]] && not ldd "$work/agent.binary"
}

# shellcheck disable=SC2016
tools_run() {
	docker run --rm --network none "$(image benchwatch/loadgen)" sh -euc '
		[ "$(id -u)" = 65532 ]
		touch /var/lib/benchwatch/written
		sysbench --version
		go-tpc version | grep "version: v"
		benchwatch --version
		mariadb --version
		ycsb run basic -P workloads/workloada -p operationcount=10 | grep -q Throughput'
}

core() {
	ok 'the core comes up' compose up --detach --quiet-pull
	((failed == 0)) || die 'nothing to test'
	ok 'the agent is healthy' eventually 30 get "$AGENT_PORT/-/healthy"
	ok 'it has its page' page_served
	ok 'Prometheus is ready' eventually 60 get "$PROMETHEUS_PORT/-/ready"
	ok 'Alertmanager is ready' eventually 30 get "$ALERTMANAGER_PORT/-/ready"
	ok 'Prometheus scrapes the agent' eventually 30 is 'up{job="benchwatch"}' 1
	ok 'Prometheus scrapes node_exporter' eventually 30 is 'up{job="node"}' 1
	ok 'node_exporter has the host'"'"'s name' eventually 30 is "count(node_uname_info{nodename=\"$(hostname)\"})" 1
	ok 'no target is down, none of a profile is there' eventually 30 core_targets
	ok 'the rules are loaded' rules_loaded
	ok 'Prometheus found Alertmanager' eventually 30 alertmanager_found
	ok 'Alertmanager hands alerts to the agent, with its token' webhook_configured
	ok 'no port but on loopback' not published
	ok 'the agent has no targets' not value benchwatch_db_up
}

page_served() { get "$AGENT_PORT/" | grep -q '<script'; }
core_targets() { diff <(targets) <(printf '%s up\n' 'benchwatch agent:9838' 'node node-exporter:9100' 'prometheus 127.0.0.1:9090'); }
rules_loaded() { [[ $(get "$PROMETHEUS_PORT/api/v1/rules" | jq '[.data.groups[].rules[] | select(.type == "alerting")] | length') -eq $(grep -hc '^ *- alert:' "$root"/alerts/*.rules.yml | paste -sd+ | bc) ]]; }
alertmanager_found() { [[ $(get "$PROMETHEUS_PORT/api/v1/alertmanagers" | jq '.data.activeAlertmanagers | length') -eq 1 ]]; }
# The API of newer ones hides the address.
webhook_configured() { compose exec -T alertmanager cat /config/alertmanager.yml | grep -q 'http://agent:9838/api/v1/alerts'; }

mysql() {
	ok 'the profile mysql comes up beside the core' compose --profile mysql up --detach --quiet-pull
	ok 'the running agent samples the server' eventually 60 is 'benchwatch_db_up{target="mysql"}' 1
	ok 'the server hides nothing from the monitoring user' not grep -iE 'denied|privilege|missing' <(compose logs agent)
	ok 'Prometheus found the exporter' eventually 60 is 'up{job="mysqld",instance="mysqld-exporter:9104"}' 1
	ok 'the exporter reads the server' eventually 30 is mysql_up 1
	ok 'sysbench prepares its tables' loadgen sysbench --config-file=/secrets/sysbench.cnf --mysql-host=mysql oltp_read_write --tables=2 --table-size=1000 prepare
	compose run --rm -T loadgen benchwatch run --run-id=composed -- sysbench --config-file=/secrets/sysbench.cnf --mysql-host=mysql \
		oltp_read_write --tables=2 --table-size=1000 --threads=4 --time=15 --report-interval=1 run >"$work/run.log" 2>&1 &
	local run=$!
	ok 'the agent serves the run of the other container' eventually 30 positive 'benchwatch_run_operations_per_second{run="composed",op="transaction"}'
	ok 'the run knows its host' eventually 10 is "count(benchwatch_run_info{run=\"composed\",generator=\"$(hostname)\"})" 1
	ok 'the server counts what the tool claims' eventually 10 positive 'rate(benchwatch_db_queries_total{target="mysql"}[5s])'
	ok 'sysbench ends well' run_ended "$run"
	ok 'the summary is in Prometheus' eventually 15 positive 'benchwatch_run_summary_operations_per_second{run="composed",op="transaction"}'
	ok 'Alertmanager takes an alert' alert_sent
	ok 'it becomes a mark on the run' eventually 30 alert_marked
	# shellcheck disable=SC2016
	ok 'no password is in the run' not docker run --rm -v benchwatch_data:/d:ro -v benchwatch_secrets:/s:ro "$(image busybox)" sh -c 'grep -rF "$(cat /s/benchmark-password)" /d'
	ok 'no port but on loopback, with the profile' not published
}

alert_sent() {
	curl -fsS --max-time 5 -H 'Content-Type: application/json' "http://127.0.0.1:$ALERTMANAGER_PORT/api/v2/alerts" \
		--data '[{"labels": {"alertname": "StackTest", "source": "benchwatch", "severity": "warning", "run": "composed"}, "annotations": {"summary": "sent by the test"}}]'
}
alert_marked() { docker run --rm -v benchwatch_data:/d:ro "$(image busybox)" grep -q StackTest /d/runs/composed/markers.jsonl; }
loadgen() { compose run --rm -T loadgen "$@"; }
run_ended() { wait "$1" || { cat "$work/run.log"; return 1; }; }

grafana() {
	ok 'Grafana is healthy' eventually 120 get "$GRAFANA_PORT/api/health"
	secret grafana-admin-password >"$work/password" 2>/dev/null
	printf 'user = "admin:%s"\n' "$(<"$work/password")" >"$work/admin.curl"
	ok 'the password that was made is the one' api /api/user
	ok 'no other is' not get "$GRAFANA_PORT/api/user" -u admin:admin
	ok 'every dashboard is there' eventually 30 dashboards
	ok 'the data source answers' datasource
	ok 'a token was made' eventually 60 token_made
	ok 'the run is marked, without anyone having made a token' eventually 60 marked composed
	ok 'a second start makes no second token' second_start
}

api() { curl -fsS --max-time 10 --config "$work/admin.curl" "http://127.0.0.1:$GRAFANA_PORT$1"; }
dashboards() { diff <(api '/api/search?type=dash-db&limit=1000' | jq -r '.[].uid' | sort) <(jq -r 'select(.panels).uid' "$root"/dashboards/*.json | sort); }
datasource() { api '/api/datasources/proxy/uid/prometheus/api/v1/query?query=up' | jq -e '.data.result | length > 0'; }
accounts() { api '/api/serviceaccounts/search?query=benchwatch' | jq -c '[.serviceAccounts[] | [.name, .role, .tokens]]'; }
token_made() { [[ $(accounts) == '[["benchwatch","Editor",1]]' ]]; }
marked() { api '/api/annotations?limit=100' | jq -e --arg run "$1" 'map(select(.tags | map(contains($run)) | any)) | length > 0'; }
second_start() { compose up --detach grafana-token && sleep 3 && token_made; }

again() {
	secret grafana-admin-password >"$work/before"
	ok 'it stops' compose --profile mysql down --timeout 10
	ok 'it starts again with all at once' compose --profile mysql up --detach
	ok 'with the same passwords' cmp "$work/before" <(secret grafana-admin-password)
	ok 'the server is sampled again' eventually 60 is 'benchwatch_db_up{target="mysql"}' 1
	ok 'the run is still known' eventually 30 positive 'benchwatch_run_summary_operations_per_second{run="composed",op="transaction"}'
	ok 'the server kept its data' loadgen sysbench --config-file=/secrets/sysbench.cnf --mysql-host=mysql oltp_point_select --tables=2 --table-size=1000 --events=10 run
	ok 'the profile stops, the core starts without it' core_again
}
core_again() { compose --profile mysql down --timeout 10 && compose up --detach && eventually 60 core_targets; }

group() {
	ok 'the profile group-replication comes up' compose --profile group-replication up --detach
	ok 'the members are in one group' eventually 60 online 3
	ok 'it is one that the agent sees whole' eventually 60 is 'sum(benchwatch_db_up{cluster="group-replication"})' 3
	ok 'Prometheus found three exporters' eventually 60 is 'sum(up{job="mysqld", instance=~"gr.*"})' 3
	ok 'the group takes load' loadgen sysbench --config-file=/secrets/sysbench.cnf --mysql-host=gr1 oltp_read_write --tables=1 --table-size=100 prepare
	ok 'all have it' eventually 30 members_agree
	ok 'all stop' compose --profile group-replication down --timeout 20
	ok 'the same group comes up again' compose --profile group-replication up --detach
	ok 'with all members' eventually 90 online 3
	ok 'and their data' members_agree
}

# shellcheck disable=SC2016
on_member() { compose --profile group-replication exec -T "$1" sh -c 'MYSQL_PWD=$(cat /secrets/root-password) mysql -h 127.0.0.1 -uroot -N' <<<"$2"; }
online() { [[ $(on_member gr1 "SELECT count(*) FROM performance_schema.replication_group_members WHERE member_state = 'ONLINE'") == "$1" ]]; }
members_agree() { [[ $(for member in gr1 gr2 gr3; do on_member "$member" 'SELECT @@gtid_executed, (SELECT count(*) FROM sbtest.sbtest1)'; done | sort -u | wc -l) -eq 1 ]]; }

galera() {
	ok 'the profile galera comes up' compose --profile galera up --detach
	ok 'the agent sees three synced nodes' eventually 60 is 'count(benchwatch_galera_local_state{cluster="galera"} == 4)' 3
	ok 'in one cluster' is 'count(benchwatch_galera_cluster_size{cluster="galera"} == 3)' 3
	ok 'Prometheus found three exporters' eventually 60 is 'sum(up{job="mysqld", instance=~"galera.*"})' 3
	ok 'which read their servers' eventually 30 is 'sum(mysql_up{instance=~"galera.*"})' 3
	ok 'the servers hide nothing from the monitoring user' not grep -iE 'denied|privilege|missing' <(compose logs --since 1m agent)
	ok 'the cluster takes load' loadgen sysbench --config-file=/secrets/sysbench.cnf --mysql-host=galera1 oltp_read_write --tables=2 --table-size=1000 prepare
	ok 'and a benchmark' loadgen benchwatch run --run-id=clustered -- sysbench --config-file=/secrets/sysbench.cnf --mysql-host=galera1 \
		oltp_read_write --tables=2 --table-size=1000 --threads=4 --time=10 --report-interval=1 --mysql-ignore-errors=1213,1020,1205 run
	ok 'both replicas caught up' eventually 30 is 'count(benchwatch_run_drain_seconds{run="clustered"})' 2
	ok 'all have the same' eventually 30 nodes_agree
	ok 'a YCSB run is one, too' loadgen benchwatch run --run-id=ycsb -- ycsb run basic -s -P workloads/workloada -p operationcount=20000 -p status.interval=1 \
		-p basicdb.verbose=false -threads 2
	ok 'with its summary' eventually 15 is 'benchwatch_run_summary_operations_total{run="ycsb",op="transaction"}' 20000
	ok 'go-tpc prepares its tables' loadgen sh -c "$(tpc prepare)"
	ok 'go-tpc makes load' loadgen sh -c "benchwatch run --run-id=tpcc -- $(tpc run) --time 8s --interval 1s"
	ok 'its new orders are counted' eventually 15 positive 'benchwatch_run_summary_operations_total{run="tpcc",op="new_order"}'
	# shellcheck disable=SC2016
	ok 'no password is in the runs' not docker run --rm -v benchwatch_data:/d:ro -v benchwatch_secrets:/s:ro "$(image busybox)" sh -c 'grep -rF "$(cat /s/benchmark-password)" /d'
	ok 'one node goes and comes back' node_restart galera2
	ok 'all stop' compose --profile galera down --timeout 30
	ok 'the same cluster comes up again' compose --profile galera up --detach
	ok 'with all nodes' eventually 90 is 'count(benchwatch_galera_local_state{cluster="galera"} == 4)' 3
	ok 'and their data' eventually 30 nodes_agree
	if [[ -n ${GRAFANA_HOME:-} ]]; then
		ok 'its runs are marked in Grafana' eventually 60 marked clustered
	fi
}

# As in compose/README.md: the container's shell reads the password.
# shellcheck disable=SC2016
tpc() { echo 'go-tpc tpcc '"$1"' -H galera1 -P 3306 -U benchmark -p "$(cat /secrets/benchmark-password)" -D test --warehouses 1 --parts 1 -T 2'; }
# shellcheck disable=SC2016
on_node() { compose --profile galera exec -T "$1" sh -c 'MYSQL_PWD=$(cat /secrets/root-password) mariadb -h 127.0.0.1 -uroot -N' <<<"$2"; }
nodes_agree() { [[ $(for node in galera1 galera2 galera3; do on_node "$node" 'CHECKSUM TABLE sbtest.sbtest1, sbtest.sbtest2' || echo "$node: $?"; done | sort -u | tee /dev/stderr | wc -l) -eq 2 ]]; }
node_restart() { compose --profile galera restart --timeout 20 "$1" && eventually 90 is 'count(benchwatch_galera_local_state{cluster="galera"} == 4)' 3; }

# Without credentials there is no CloudWatch. The test shows that the exporter accepts its
# configuration, and that a missing region is reported.
aurora() {
	ok 'the profile aurora wants a region' not compose --profile aurora up --detach cloudwatch-config cloudwatch-exporter
	ok 'and says so' region_missing
	export AWS_REGION=eu-central-1
	ok 'with one it comes up' compose --profile aurora up --detach --wait cloudwatch-exporter
	ok 'the exporter took its configuration' not grep -iE "couldn't read|yaml|invalid" <(compose logs cloudwatch-exporter)
	ok 'Prometheus found it' eventually 90 targets_have 'cloudwatch cloudwatch-exporter:5000 up'
	ok 'the profile aurora stops' compose --profile aurora down --timeout 10
	unset AWS_REGION
}
region_missing() { compose --profile aurora logs cloudwatch-config | grep -q 'set AWS_REGION'; }
targets_have() { targets | grep -qx "$1"; }

keep() {
	printf 'the stack keeps running at DOCKER_HOST=unix://%s/docker.sock; Enter or Ctrl-C ends it\n' "$work"
	read -r _ || while sleep 1; do :; done
}

main() {
	((EUID == 0)) || die 'a Docker engine needs root'
	"$root/scripts/packages.sh" compose
	"$root/scripts/toolchain.sh" go node
	work=$(mktemp -d "${TMPDIR:-/tmp}/benchwatch-compose.XXXXXX")
	plugin=''
	trap finish_all EXIT
	trap 'exit 130' INT TERM HUP
	# The file in /etc belongs to another engine; the default network is not needed.
	echo '{"bridge": "none"}' >"$work/daemon.json"
	compose_find
	override >"$work/override.yaml"
	[[ -n ${GRAFANA_HOME:-} ]] || echo 'GRAFANA_HOME is not set: Grafana is skipped'
	engine_start
	standin_core
	standin_mysql
	standin_exporters
	base_golang
	base_node
	base_debian
	ycsb_mirror
	standin_mariadb
	[[ -z ${GRAFANA_HOME:-} ]] || standin_grafana "$GRAFANA_HOME" "${GRAFANA_BINARY:-$GRAFANA_HOME/bin/grafana}"
	images
	core
	mysql
	[[ -z ${GRAFANA_HOME:-} ]] || grafana
	again
	if mysql9; then
		group
	else
		echo 'no MySQL 9 (go run ./internal/servers/cmd unpack-mysql9): the profile group-replication is skipped'
	fi
	galera
	if [[ -x ${PROGRAMS:-}/yace ]]; then
		aurora
	else
		echo 'no yace in PROGRAMS: the profile aurora is skipped'
	fi
	((failed == 0)) || logs
	[[ -z ${KEEP:-} ]] || keep
	printf '%s passed, %s failed\n' "$passed" "$failed"
	failed_quietly=$((failed > 0))
	((failed == 0))
}

main "$@"
