# shellcheck shell=bash
# Data source, dashboards and markers in a Grafana: the user's, by GRAFANA_URL and
# GRAFANA_TOKEN, or one started in the folder if Grafana is installed. Sourced after
# monitoring.sh.

: "${dir:=}" "${root:=}" "${grafana_port:=}" "${prometheus_port:=}"
GRAFANA_HOME=${GRAFANA_HOME:-/usr/share/grafana}
grafana_own=no

# grafana_api METHOD PATH [JSON]: the token goes by a file, not by the command line.
grafana_api() {
	local data=()
	[[ -z ${3:-} ]] || data=(--data-binary @-)
	curl -fsS --max-time 10 -X "$1" -H "@$dir/grafana.header" -H 'Content-Type: application/json' \
		"${data[@]}" "${GRAFANA_URL%/}$2" <<<"${3:-}"
}

grafana_token() { # TOKEN
	(
		umask 077
		printf '%s\n' "$1" >"$dir/grafana.token"
		printf 'Authorization: Bearer %s\n' "$1" >"$dir/grafana.header"
	)
}

# grafana_find: sets GRAFANA_URL and the token, or leaves GRAFANA_URL empty.
grafana_find() {
	if [[ -n ${GRAFANA_URL:-} ]]; then
		[[ -n ${GRAFANA_TOKEN:-} ]] || die 'GRAFANA_URL is set but GRAFANA_TOKEN is not: a token of a service account with the role Editor (data source: Admin) is needed'
		grafana_token "$GRAFANA_TOKEN"
		grafana_api GET /api/user >/dev/null || grafana_api GET /api/org >/dev/null ||
			die "Grafana at $GRAFANA_URL does not answer, or not to this token"
	elif command -v grafana-server >/dev/null; then
		grafana_start
	fi
}

# grafana_start: an own server with an own data folder; the installed one is not touched.
grafana_start() {
	local password account
	grafana_own=yes
	GRAFANA_URL=http://127.0.0.1:$grafana_port
	password=$(head -c 18 /dev/urandom | base64 | tr '+/' '-_')
	(umask 077 && printf '%s' "$password" >"$dir/grafana.password")
	daemon grafana "$GRAFANA_URL/api/health" env \
		GF_PATHS_DATA="$dir/grafana" GF_PATHS_LOGS="$dir/grafana" GF_PATHS_PLUGINS="$dir/grafana/plugins" \
		GF_SERVER_HTTP_ADDR=127.0.0.1 GF_SERVER_HTTP_PORT="$grafana_port" \
		GF_SECURITY_ADMIN_PASSWORD__FILE="$dir/grafana.password" \
		GF_AUTH_ANONYMOUS_ENABLED=true GF_AUTH_ANONYMOUS_ORG_ROLE=Viewer \
		GF_ANALYTICS_REPORTING_ENABLED=false GF_ANALYTICS_CHECK_FOR_UPDATES=false \
		grafana-server --homepath "$GRAFANA_HOME"
	(
		umask 077
		printf 'Authorization: Basic %s\n' "$(printf 'admin:%s' "$password" | base64 -w0)" >"$dir/grafana.header"
	)
	account=$(grafana_api POST /api/serviceaccounts '{"name": "benchwatch", "role": "Admin"}' | jq -r .id)
	grafana_token "$(grafana_api POST "/api/serviceaccounts/$account/tokens" '{"name": "benchwatch"}' | jq -r .key)"
}

# grafana_set_up: the data source and the dashboards, in a folder of their own.
grafana_set_up() {
	local dashboard
	[[ -n ${GRAFANA_URL:-} ]] || return 0
	grafana_api POST /api/datasources "$(jq -n --arg url "http://127.0.0.1:$prometheus_port" '{
		uid: "benchwatch-demo", name: "benchwatch demo", type: "prometheus", access: "proxy", url: $url,
		jsonData: {timeInterval: "1s"}}')" >/dev/null || die "Grafana did not take the data source (the role Admin is needed for that)"
	grafana_api POST /api/folders '{"uid": "benchwatch-demo", "title": "benchwatch demo"}' >/dev/null ||
		die 'Grafana did not take the folder'
	for dashboard in "$root"/dashboards/*.json; do
		jq -e '.panels and .uid' "$dashboard" >/dev/null 2>&1 || continue
		grafana_api POST /api/dashboards/db "$(jq '{folderUid: "benchwatch-demo", overwrite: true,
			dashboard: (walk(if type == "string" then gsub("/d/benchwatch-"; "/d/demo-benchwatch-") else . end)
				| .id = null | .uid = "demo-" + .uid | .title += " (demo)"
				| (.templating.list[]? | select(.type == "datasource")).current = {text: "benchwatch demo", value: "benchwatch-demo"})}' "$dashboard")" >/dev/null ||
			die "Grafana did not take ${dashboard##*/}"
	done
}

grafana_link() { printf '%s/d/demo-%s?refresh=5s&from=now-5m&to=now' "${GRAFANA_URL%/}" "$(jq -r .uid "$root/dashboards/live-run.json")"; }

# grafana_forget: takes back what the user's Grafana was given, but for the markers.
grafana_forget() {
	[[ -n ${GRAFANA_URL:-} && $grafana_own == no && -r $dir/grafana.header ]] || return 0
	grafana_api DELETE /api/folders/benchwatch-demo >/dev/null 2>&1 || true
	grafana_api DELETE /api/datasources/uid/benchwatch-demo >/dev/null 2>&1 || true
}
