#!/usr/bin/env bash
# Tests the dashboards and the markers in a real Grafana. Ends with "N passed, N failed".
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=scripts/lib/browser.sh
. "$here/../../scripts/lib/browser.sh"

usage() {
	cat <<'END'
usage: GRAFANA_URL=… GRAFANA_TOKEN=… make grafana-test

  GRAFANA_TOKEN       of a service account: Admin, or Editor with GRAFANA_DATASOURCE
  GRAFANA_DATASOURCE  uid of the Prometheus to ask; or
  PROMETHEUS_URL      a Prometheus as Grafana reaches it, for which a data source is
                      made; without both it is Grafana's default Prometheus
  GRAFANA_DASHBOARDS  only these, such as live-run,galera
  GRAFANA_PICTURES    folder for pictures of the dashboards

Whatever the tests put into Grafana they take out again.
END
}

main() {
	local code=0 life=failed
	if [[ -z ${GRAFANA_URL:-} || -z ${GRAFANA_TOKEN:-} ]]; then
		usage >&2
		exit 2
	fi
	work=$(mktemp -d)
	trap 'rm -rf "$work"' EXIT
	[[ -z ${GRAFANA_PICTURES:-} ]] || GRAFANA_PICTURES=$(realpath -m "$GRAFANA_PICTURES")
	export GRAFANA_URL GRAFANA_TOKEN GRAFANA_PICTURES
	chromium_find

	if (cd "$here/../.." && go test -count=1 -run '^TestRealGrafana$' ./agent/run/marker) >"$work/go" 2>&1; then
		life=passed
		echo "ok - a marker's life: created, found again, made a range, deleted"
	else
		cat "$work/go"
	fi
	cd "$here"
	npm_install "$work"
	node_test "$work" dashboards.test.mjs || code=$?
	if [[ $life == passed ]]; then passed=$((passed + 1)); else failed=$((failed + 1)) code=1; fi
	echo "$passed passed, $failed failed"
	exit "$code"
}

main
