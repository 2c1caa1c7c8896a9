#!/usr/bin/env bash
# Adds runs or old logs to a Prometheus data directory, with their original timestamps.
set -euo pipefail

usage() {
	cat <<'END'
usage: backfill.sh PROMETHEUS_DATA_DIR RUN|LOGFILE... [-- BENCHWATCH_EXPORT_OPTION...]

  backfill.sh /var/lib/prometheus last
  backfill.sh /var/lib/prometheus old.log -- --start 2014-11-21T14:03:00Z --label via=atlas

Prometheus loads the blocks within a minute. It deletes data older than its
--storage.tsdb.retention.time and merges blocks that overlap in time.
BENCHWATCH names the program if it is not in PATH.
END
}

die() {
	printf 'backfill.sh: %s\n' "$1" >&2
	exit "${2:-1}"
}

case ${1:-} in
-h | --help) usage && exit ;;
esac
(($# >= 2)) || die "a data directory and a run are needed (see --help)" 2

target=$1
shift
runs=()
while (($#)) && [[ $1 != -- ]]; do
	runs+=("$1")
	shift
done
(($# == 0)) || shift
((${#runs[@]})) || die "no run is named (see --help)" 2

benchwatch=${BENCHWATCH:-benchwatch}
command -v "$benchwatch" >/dev/null || die "benchwatch is not in PATH: set BENCHWATCH"
[[ -d $target ]] || die "no directory $target: name the --storage.tsdb.path of Prometheus"
[[ -w $target ]] || die "can't write into $target: run this as the user of Prometheus"

# On the same file system as the target, so that moving a block is atomic.
work=$(mktemp -d "$target/.backfill.XXXXXX")
trap 'rm -rf "$work"' EXIT

mkdir "$work/blocks"
"$benchwatch" export "${runs[@]}" --format=blocks --output="$work/blocks" "$@"

# The owner of the directory owns the blocks.
chown -R --reference="$target" "$work/blocks" 2>/dev/null || true
count=0
for block in "$work"/blocks/*/; do
	[[ -e $block/meta.json ]] || continue
	mv "$block" "$target/"
	count=$((count + 1))
done
((count)) || die "nothing to backfill"
printf '%d blocks added to %s\n' "$count" "$target"
