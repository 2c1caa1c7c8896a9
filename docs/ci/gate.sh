#!/bin/sh
# gate.sh COMMAND…: measures two versions of a database or application in turns, until each limit is
# known to be held or broken, and exits with 3 if one is broken. Writes gate.md and junit.xml; files
# of an earlier job are removed first.
#
#   BASE, HEAD  what the versions differ by, such as port=3306 and port=3307: {port} in COMMAND and BEFORE
#   BEFORE      shell command to run before each block, such as './start {version}' for versions that
#               can't run at the same time
#   DATA        folder of the runs (benchwatch-data)
#   TPS, P95    limits of the change in percent (5, 10)
#   MAX_TIME    time after which the measurement ends, decided or not (20m)
#   STRICT      if set, exit with 4 if it does
set -eu
: "${BASE:?set BASE to what the version to compare with differs by}" "${HEAD:?set HEAD to what the version under test differs by}"
: "${BEFORE:=}" "${DATA:=benchwatch-data}" "${TPS:=5}" "${P95:=10}" "${MAX_TIME:=20m}" "${STRICT:=}"

rm -f gate.md junit.xml
status=0
benchwatch ab --data-dir="$DATA" --a="$BASE" --b="$HEAD" --before="$BEFORE" --max-time="$MAX_TIME" --fail-if="tps<-$TPS%" --fail-if="p95>+$P95%" \
	${STRICT:+--strict} --format=markdown -o gate.md -- "$@" || status=$?
case $status in
0 | 3 | 4)
	id=$(sed -n 's/^#* *A\/B comparison //p' gate.md)
	benchwatch ab --data-dir="$DATA" --resume="$id" --format=junit -o junit.xml 2> /dev/null || true # the same status
	;;
*) rm -f gate.md ;;
esac
exit "$status"
