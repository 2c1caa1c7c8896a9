#!/usr/bin/env bash
# Runs all tests: what computes beside what waits for servers. Prints a line for each suite, every 15 seconds what runs
# and how long the rest will take, the five slowest tests, and at the end "N passed, N failed, N skipped".
# The output of a suite is in build/test/, and is shown if the suite failed. The end of that,
# where suites name what failed, is repeated before the last line. `make lint` is apart.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cd "$here/.."
logs=build/test
# Seconds of each suite: measured on two cores with a full build cache, replaced by those of the last run here.
declare -A seconds=([unit]=60 [race]=420 [repeating]=65 [shipped]=170 [page]=150 [e2e]=450 [cli]=150)
[[ ! -f $logs/seconds ]] || while read -r name took; do seconds[$name]=$took; done <"$logs/seconds"
mkdir -p "$logs"
# With -trimpath the build cache also serves a clone in another folder. A compiler that collects its garbage less often
# needs a quarter less CPU, and building is most of what the tests compute; the tests themselves keep the default.
export GOFLAGS="${GOFLAGS:+$GOFLAGS }-trimpath '-toolexec=env GOGC=400'"
rm -f "$logs"/*.events
for file in durations results running "seconds.new"; do : >"$logs/$file"; done

# suite NAME COMMAND...: COMMAND ends with a line "N passed, N failed[, N skipped]"; one
# that ends otherwise, or fails without counting a failure, is one failure.
suite() {
	local name=$1 log=$logs/$1.log code=0 begin=$SECONDS line p=0 f=0 s=0
	shift
	echo "start $name $SECONDS" >>"$logs/running"
	EVENTS=$logs/$name.events "$@" >"$log" 2>&1 </dev/null || code=$?
	echo "end $name" >>"$logs/running"
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
	echo "$name $((SECONDS - begin))" >>"$logs/seconds.new"
}

# go_suite ARGUMENT...: runs go test and counts its tests. A package that fails without a
# failed test (it does not compile, or panics) counts as one failure.
go_suite() {
	local code=0
	go test -json -vet=off "$@" >"$EVENTS" || code=$? # lint vets
	jq -Rrn -f "$here/gotest.jq" "$EVENTS"
	# Whole tests that passed, without their parts.
	jq -Rr 'fromjson? | select(.Action == "pass" and .Test and (.Test | contains("/") | not))
		| "\(.Elapsed) s\t\(.Package | sub("^github.com/benchwatch/benchwatch/"; "")) \(.Test)"' "$EVENTS" >>"$logs/durations"
	return "$code"
}

# rest SUITE...: the seconds that the suites will still take, one after the other.
rest() {
	local name total=0 left begun
	for name; do
		if grep -q "^end $name$" "$logs/running"; then continue; fi
		left=${seconds[$name]}
		begun=$(sed -n "s/^start $name //p" "$logs/running")
		[[ -z $begun ]] || left=$((left > SECONDS - begun ? left - SECONDS + begun : 0))
		total=$((total + left))
	done
	echo "$total"
}

# progress prints what runs until it is killed.
progress() {
	local name begun runs left longest
	while sleep 15; do
		runs=''
		while read -r name begun; do
			grep -q "^end $name$" "$logs/running" && continue
			runs+="$name for $((SECONDS - begun)) s"
			[[ ! -f $logs/$name.events ]] || runs+=" ($(grep -c '"Action":"pass".*"Test"' "$logs/$name.events" || true) passed)"
			runs+=', '
		done < <(sed -n 's/^start //p' "$logs/running")
		longest=0
		for left in "$(rest "${waited[@]}")" "$(rest "${computed[@]}")"; do
			longest=$((left > longest ? left : longest))
		done
		printf '%2d:%02d  %sabout %s s left\n' $((SECONDS / 60)) $((SECONDS % 60)) "$runs" "$longest"
	done
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

# They repeat what other tests do under the race detector, for each recording or a hundred times, and run without it.
names=(TestModel TestWeek TestRecordingsHoweverRead TestStoppedWhileCatchingUp TestCountersNeverFall
	TestCrashAtAnyByte TestKilledAtAnyTime TestFalseVerdicts TestTimeToFind TestReportOfTenHours
	TestSameRunsHoweverRead TestSameOutcomeFollowedAndImported TestEveryToolHasAHeadline TestTextHidesEverySecret
	TestArgumentsHideEverySecret TestOwnWords TestPrefixedLogs TestImportedPartsAreRuns TestLinesNeverFall
	TestOwnTextIsKept TestCarryOverSeconds TestHugeLine TestThinned)
for name in "${names[@]}"; do
	grep -qrE --include='*_test.go' "^func $name\(" "${concurrent[@]}" || { echo "test.sh: there is no $name" >&2 && exit 1; }
done
any=$(IFS='|' && printf %s "${names[*]}")
repeating="^($any)\$"
mapfile -t repeated < <(grep -rlE "^func ($any)\(" "${concurrent[@]}" | xargs dirname | sort -u)

# In each lane the longest suite is first. Most of the time several packages at once wait, for what servers report or for a
# clock. A third lane saves no time on two cores, and servers then answer too late for some tests.
waited=(e2e cli page)
waiting() {
	suite e2e go_suite -tags e2e -count 1 -p 3 -timeout 20m ./tests/e2e/engines ./tests/e2e/monitoring ./tests/e2e/groups ./tests/e2e ./tests/tutorials ./tests/e2e/...
	suite cli go_suite -timeout 20m -parallel 8 ./agent/app/cli
	suite page tests/web/run.sh
}
computed=(race repeating shipped unit)
computing() {
	suite race go_suite -race -p 3 -timeout 20m -skip "$repeating" "${concurrent[@]}"
	suite repeating go_suite -p 3 -timeout 20m -run "$repeating" "${repeated[@]}"
	suite shipped go_suite -p 3 ./tests/... # rules, dashboards, containers
	suite unit go_suite -p 3 -timeout 20m "${sequential[@]}"
}

progress &
progress=$!
trap 'kill "$progress" 2>/dev/null || true' EXIT
# What computes has a priority that leaves the processor to the servers and agents of the tests when they need it.
(
	renice -n 15 -p "$BASHPID" >/dev/null
	computing
) &
computing=$!
waiting
wait "$computing"
kill "$progress"
wait "$progress" 2>/dev/null || true
mv "$logs/seconds.new" "$logs/seconds"

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
