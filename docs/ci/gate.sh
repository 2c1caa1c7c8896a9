#!/bin/sh
# gate.sh COMMAND…: runs a benchmark REPEAT times for the version under test, compares the
# runs with the newest ones of before, and exits with 3 if a limit is broken, 4 if the runs
# can't tell. Writes gate.md and junit.xml.
#
#   VERSION  of the database or application under test
#   REPEAT   number of runs (4, with fewer no difference can be distinguished from noise)
#   DATA     folder of the runs, kept from job to job (benchwatch-data)
#   TPS, P95 limits of the change in percent (5, 10)
set -eu
: "${VERSION:?set VERSION to the version under test}" "${REPEAT:=4}" "${DATA:=benchwatch-data}" "${TPS:=5}" "${P95:=10}"

baseline=no
[ ! -d "$DATA/runs" ] || baseline=yes
i=0
while [ "$i" -lt "$REPEAT" ]; do
	benchwatch run --data-dir="$DATA" --label="version=$VERSION" --linger=0s -- "$@"
	i=$((i + 1))
done
if [ "$baseline" = no ]; then
	echo "No earlier runs in $DATA: these are the baseline." | tee gate.md
	exit 0
fi
compare() {
	benchwatch compare --data-dir="$DATA" "last=$REPEAT" "version=$VERSION" --fail-if "tps<-$TPS%" --fail-if "p95>+$P95%" --strict "$@"
}
compare --format=junit -o junit.xml || true # the same verdict follows
compare --format=markdown -o gate.md
