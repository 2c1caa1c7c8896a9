# shellcheck shell=bash
# Prometheus, Alertmanager, exporters and the agent beside a folder of servers, all
# on loopback. Sourced after process.sh; the folder is in dir, the repository in
# root, and the ports are in the variables that monitoring_ports sets.

: "${dir:=}" "${root:=}"

# monitoring_ports BASE: six ports in a row, mysqld exporters from the seventh.
monitoring_ports() {
	prometheus_port=$1
	alertmanager_port=$(($1 + 1))
	node_exporter_port=$(($1 + 2))
	agent_port=$(($1 + 3))
	# shellcheck disable=SC2034 # for grafana.sh
	grafana_port=$(($1 + 4))
	mysqld_exporter_port=$(($1 + 6))
}

# http_ok URL: whether it answers with success.
http_ok() { curl -fsS --max-time 2 -o /dev/null "$1" 2>/dev/null; }

answers_or_gone() { http_ok "$2" || process_gone "$dir/$1.pid"; }

# daemon NAME URL COMMAND...: starts it and waits until URL answers.
daemon() {
	local name=$1 url=$2
	shift 2
	process_start "$dir/$name.pid" "$dir/$name.log" "$@"
	wait_for 30 answers_or_gone "$name" "$url" || true
	if ! http_ok "$url"; then
		tail -n 10 "$dir/$name.log" >&2
		die "$name did not answer at $url"
	fi
}

# monitoring_config SERVERS: the repository's own configuration with this folder's ports.
monitoring_config() {
	local n exporters=''
	for ((n = 0; n < $1; n++)); do exporters+="\"127.0.0.1:$((mysqld_exporter_port + n))\", "; done
	mkdir -p "$dir/prometheus"
	cp -r "$root/prometheus/rules" "$dir/prometheus/"
	cp -r "$root/alerts" "$dir/"
	sed -e "s/127\.0\.0\.1:9838/127.0.0.1:$agent_port/" \
		-e "s/127\.0\.0\.1:9100/127.0.0.1:$node_exporter_port/" \
		-e "s/\"127\.0\.0\.1:9104\"/${exporters%, }/" \
		-e "s/127\.0\.0\.1:9093/127.0.0.1:$alertmanager_port/" \
		-e "s/127\.0\.0\.1:9090/127.0.0.1:$prometheus_port/" \
		"$root/prometheus/prometheus.yml" >"$dir/prometheus/prometheus.yml"
	sed -e "s/127\.0\.0\.1:9838/127.0.0.1:$agent_port/" "$root/alerts/alertmanager.yml" >"$dir/alerts/alertmanager.yml"
	# With it Alertmanager may hand firing alerts to the agent, which marks them on the run.
	(umask 077 && head -c 24 /dev/urandom | base64 | tr '+/' '-_' >"$dir/alerts/webhook_token")
}

# agent_config SERVERS BASEPORT [CLUSTER]: benchwatch.yml.
agent_config() {
	local n
	{
		printf 'data_dir: %s/data\nsample_interval: 1s\ntargets:\n' "$dir"
		for ((n = 1; n <= $1; n++)); do
			cat <<-END
				  - name: n$n
				    engine: mysql
				    address: 127.0.0.1:$(($2 + n))
				    user: monitor
				    password_file: $dir/servers/monitor.password
			END
			[[ -z ${3:-} ]] || printf '    cluster: %s\n' "$3"
		done
		printf 'webhook_token_file: %s/alerts/webhook_token\n' "$dir"
		printf 'prometheus:\n  url: http://127.0.0.1:%s\n' "$prometheus_port"
		[[ -z ${GRAFANA_URL:-} ]] || printf 'grafana:\n  url: %s\n  token_file: %s/grafana.token\n' "$GRAFANA_URL" "$dir"
	} >"$dir/benchwatch.yml"
}

# mysqld_exporters SERVERS BASEPORT: one a server; this version knows one server each.
mysqld_exporters() {
	local n
	for ((n = 1; n <= $1; n++)); do
		(
			umask 077
			printf '[client]\nhost=127.0.0.1\nport=%s\nuser=monitor\npassword=%s\n' \
				$(($2 + n)) "$(<"$dir/servers/monitor.password")" >"$dir/mysqld_exporter-n$n.cnf"
		)
		daemon "mysqld_exporter-n$n" "http://127.0.0.1:$((mysqld_exporter_port + n - 1))/" \
			prometheus-mysqld-exporter --config.my-cnf="$dir/mysqld_exporter-n$n.cnf" \
			--web.listen-address="127.0.0.1:$((mysqld_exporter_port + n - 1))" --log.level=warn
	done
}

# monitoring_start SERVERS BASEPORT [CLUSTER]
monitoring_start() {
	monitoring_config "$1"
	agent_config "$@"
	daemon node_exporter "http://127.0.0.1:$node_exporter_port/" \
		prometheus-node-exporter --web.listen-address="127.0.0.1:$node_exporter_port" --log.level=warn
	mysqld_exporters "$1" "$2"
	daemon alertmanager "http://127.0.0.1:$alertmanager_port/-/ready" \
		prometheus-alertmanager --config.file="$dir/alerts/alertmanager.yml" --storage.path="$dir/alertmanager" \
		--web.listen-address="127.0.0.1:$alertmanager_port" --cluster.listen-address= --log.level=warn
	agent_start
	daemon prometheus "http://127.0.0.1:$prometheus_port/-/ready" \
		prometheus --config.file="$dir/prometheus/prometheus.yml" --storage.tsdb.path="$dir/prometheus/data" \
		--web.listen-address="127.0.0.1:$prometheus_port" --log.level=warn
}

# agent_start: $BENCHWATCH, or the binary in the repository.
agent_start() {
	daemon agent "http://127.0.0.1:$agent_port/-/ready" \
		"${BENCHWATCH:-$root/benchwatch}" agent --config.file="$dir/benchwatch.yml" --web.listen-address="127.0.0.1:$agent_port"
}

# monitoring_stop: whatever of it runs.
monitoring_stop() {
	local pidfile
	for pidfile in "$dir"/*.pid; do
		[[ ! -e $pidfile ]] || process_stop "$pidfile" 10
	done
}
