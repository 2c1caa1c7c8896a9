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
# With it the build cache also serves a clone in another folder.
export GOFLAGS="${GOFLAGS:+$GOFLAGS }-trimpath"
: >"$logs/durations"
: >"$logs/results"

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
	if ((f > 0)); then sed "s/^/$name: /" "$log"; fi
	printf '%-12s %s passed, %s failed, %s skipped (%s s)\n' "$name" "$p" "$f" "$s" $((SECONDS - begin))
	printf '%s %s %s %s\n' "$name" "$p" "$f" "$s" >>"$logs/results"
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

# Packages that start goroutines run under the race detector, which makes tests several times
# slower and finds nothing in the others. The scripts of the command line start it some
# thousand times: `make race` has them.
mapfile -t all < <(go list -f '{{.Dir}}' ./agent/... ./internal/... | grep -v '/agent/app/cli$')
concurrent=() sequential=()
for folder in "${all[@]}"; do
	if grep -qE '^\s*go (func\b|[A-Za-z_.]+\()|\.Go\(' "$folder"/*.go; then
		concurrent+=("$folder")
	else
		sequential+=("$folder")
	fi
done

# They repeat what other tests do under the race detector, a hundred or a million times, and run without it.
names=(TestFollowingModel TestWeek TestRecordingsHoweverRead TestStoppedWhileCatchingUp TestCountersNeverFall
	TestCrashAtAnyByte TestKilledAtAnyTime TestFalseVerdicts TestTimeToFind TestReportOfTenHours)
any=$(IFS='|' && printf %s "${names[*]}")
repeating="^($any)\$"
mapfile -t repeated < <(grep -rlE "^func ($any)\(" "${concurrent[@]}" | xargs dirname | sort -u)

computing() {
	suite lint "$here/lint.sh"
	suite unit go_suite -timeout 20m "${sequential[@]}"
	suite race go_suite -race -timeout 20m -skip "$repeating" "${concurrent[@]}"
	suite repeating go_suite -timeout 20m -run "$repeating" "${repeated[@]}"
	suite shipped go_suite ./tests/... # rules, dashboards, containers
	suite page tests/web/run.sh
}

# Three packages at once, the longest first: most of the time they wait for what servers report.
waiting() {
	suite e2e go_suite -tags e2e -count 1 -p 3 -timeout 20m ./tests/e2e/monitoring ./tests/e2e ./tests/e2e/engines ./tests/e2e/groups ./tests/tutorials ./tests/e2e/...
	suite cli go_suite -timeout 20m -parallel 8 ./agent/app/cli
}

# What computes runs beside what waits, at a priority that leaves the servers and the agents
# of the tests the processor when they need it.
(
	renice -n 15 -p "$BASHPID" >/dev/null
	computing
) &
computing=$!
waiting
wait "$computing"

printf 'slowest tests:\n'
# Read to its end: a reader that stops early ends sort by SIGPIPE, and with it this script.
sort -rn "$logs/durations" | sed -n '1,5s/^/  /p'
passed=0 failed=0 skipped=0
while read -r name p f s; do
	passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
	if ((f > 0)); then tail -n 15 "$logs/$name.log" | sed "s/^/$name: /"; fi
done <"$logs/results"
printf '%s passed, %s failed, %s skipped\n' "$passed" "$failed" "$skipped"
((failed == 0))
