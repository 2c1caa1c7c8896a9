#!/usr/bin/env bash
# Runs all tests, one line for each suite, lists the five slowest tests and ends with
# "N passed, N failed, N skipped".
# The output of a suite is in build/test/, and is shown if the suite failed. The end of that,
# where suites name what failed, is repeated before the last line.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cd "$here/.."
logs=build/test
mkdir -p "$logs"
: >"$logs/durations"
passed=0 failed=0 skipped=0 failures=''

# suite NAME COMMAND...: COMMAND ends with a line "N passed, N failed[, N skipped]"; one
# that ends otherwise, or fails without counting a failure, is one failure.
suite() {
	local name=$1 log=$logs/$1.log code=0 begin=$SECONDS line p=0 f=0 s=0
	shift
	"$@" >"$log" 2>&1 </dev/null || code=$?
	line=$(tail -n 1 "$log")
	if [[ $line =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed(,\ ([0-9]+)\ skipped)?$ ]]; then
		p=${BASH_REMATCH[1]} f=${BASH_REMATCH[2]} s=${BASH_REMATCH[4]:-0}
		((code == 0 || f > 0)) || f=1
	else
		f=1
	fi
	if ((f > 0)); then
		sed "s/^/$name: /" "$log"
		failures+=$(tail -n 15 "$log" | sed "s/^/$name: /")$'\n'
	fi
	printf '%-12s %s passed, %s failed, %s skipped (%s s)\n' "$name" "$p" "$f" "$s" $((SECONDS - begin))
	passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
}

# go_suite ARGUMENT...: runs go test and counts its tests. A package that fails without a
# failed test (it does not compile, or panics) counts as one failure.
go_suite() {
	local events code=0
	events=$(mktemp)
	go test -json "$@" >"$events" || code=$?
	jq -Rrn -f "$here/gotest.jq" "$events"
	# Whole tests that passed, without their parts.
	jq -Rr 'fromjson? | select(.Action == "pass" and .Test and (.Test | contains("/") | not))
		| "\(.Elapsed) s\t\(.Package | sub("^github.com/benchwatch/benchwatch/"; "")) \(.Test)"' "$events" >>"$logs/durations"
	rm -f "$events"
	return "$code"
}

"$here/toolchain.sh" go node
"$here/packages.sh" test

suite lint "$here/lint.sh"
# The scripts of the command line start it some thousand times, which takes minutes with the
# race detector: `make race` does that.
mapfile -t units < <(go list ./agent/... ./internal/... | grep -v '/agent/app/cli$')
suite unit go_suite -race -timeout 20m "${units[@]}"
suite cli go_suite -timeout 20m ./agent/app/cli
suite shipped go_suite ./tests/... # rules, dashboards, containers: promtool has no data races of ours
suite page tests/web/run.sh
# Two packages at once: most of their time they wait for what servers report.
suite e2e go_suite -tags e2e -count 1 -p 2 -timeout 20m ./tests/e2e/... ./tests/tutorials

printf 'slowest tests:\n'
# Read to its end: a reader that stops early ends sort by SIGPIPE, and with it this script.
sort -rn "$logs/durations" | sed -n '1,5s/^/  /p'
printf '%s' "$failures"
printf '%s passed, %s failed, %s skipped\n' "$passed" "$failed" "$skipped"
((failed == 0))
