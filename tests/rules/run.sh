#!/usr/bin/env bash
# Checks Prometheus' and Alertmanager's configuration, all rules, and runs the
# rules' tests. PROMTOOL and AMTOOL name the tools; `run.sh --mutate` also breaks
# every rule in many ways and fails if no test notices.
set -euo pipefail
cd "$(dirname "$0")/../.."

PROMTOOL=${PROMTOOL:-promtool}
AMTOOL=${AMTOOL:-amtool}
export PROMTOOL
checks=0
log=$(mktemp)
trap 'rm -f "$log"' EXIT

check() {
  "$@" >"$log" 2>&1 || { printf 'failed: %s\n' "$*" >&2; cat "$log" >&2; exit 1; }
  checks=$((checks + 1))
}

if ! command -v "$PROMTOOL" >/dev/null; then
  echo "promtool is missing: install Debian's package prometheus or set PROMTOOL" >&2
  exit 1
fi
check "$PROMTOOL" check config prometheus/prometheus.yml
check "$PROMTOOL" check rules prometheus/rules/*.yml alerts/*.rules.yml
if command -v "$AMTOOL" >/dev/null; then
  check "$AMTOOL" check-config alerts/alertmanager.yml
else
  echo "rules: amtool is missing, alerts/alertmanager.yml is not checked" >&2
fi
# No package brings pint; where it is, it has to be content.
if command -v pint >/dev/null; then
  check pint --offline --no-color lint --min-severity=info --fail-on=info alerts prometheus/rules
fi
for test in tests/rules/*_test.yml; do
  check "$PROMTOOL" test rules "$test"
done
(cd tests/rules && check go test ./... -count=1)
checks=$((checks + 1))
if [[ ${1-} == --mutate ]]; then
  (cd tests/rules && go run ./mutate)
fi
echo "rules: $checks checks passed"
