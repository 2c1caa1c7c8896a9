#!/bin/sh
# gate.sh COMMAND…: runs a benchmark REPEAT times for the version under test, compares the
# runs with the newest ones of before, and exits with 3 if a limit is broken. Writes gate.md and
# junit.xml; files of an earlier job are removed first.
#
#   VERSION  of the database or application under test
#   REPEAT   number of runs (4, with fewer no difference can be distinguished from noise)
#   DATA     folder of the runs, kept from job to job (benchwatch-data)
#   TPS, P95 limits of the change in percent (5, 10)
#   STRICT   if set, exit with 4 if the runs can't tell whether a limit is broken
set -eu
: "${VERSION:?set VERSION to the version under test}" "${REPEAT:=4}" "${DATA:=benchwatch-data}" "${TPS:=5}" "${P95:=10}" "${STRICT:=}"

rm -f gate.md junit.xml
i=0
while [ "$i" -lt "$REPEAT" ]; do
	benchwatch run --data-dir="$DATA" --label="version=$VERSION" --linger=0s -- "$@"
	i=$((i + 1))
done
compare() {
	benchwatch compare --data-dir="$DATA" "last=$REPEAT" "version=$VERSION" --fail-if "tps<-$TPS%" --fail-if "p95>+$P95%" ${STRICT:+--strict} "$@"
}
status=0
message=$(compare --format=junit -o junit.xml 2>&1) || status=$?
case "$status $message" in
0* | 3* | 4*) compare --format=markdown -o gate.md ;;
*"no other run that succeeded"*) echo "No earlier runs in $DATA: these are the baseline." | tee gate.md ;;
*)
	echo "$message" >&2
	exit "$status"
	;;
esac
