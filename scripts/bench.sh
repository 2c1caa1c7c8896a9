#!/usr/bin/env bash
# Measures what observing costs beside what it is compared with: starts three MariaDB
# servers (a primary and two replicas) for it and runs tests/bench. Arguments go to
# tests/bench (-only parse,latency …).
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
here=$root/scripts
# shellcheck source=scripts/lib/process.sh
. "$here/lib/process.sh"

"$here/toolchain.sh" go
"$here/packages.sh" bench
dir=$(mktemp -d "${TMPDIR:-/tmp}/benchwatch-bench.XXXXXX")
chmod 0711 "$dir"
finish() {
	[[ ! -e $dir/servers/nodes ]] || "$here/mariadb.sh" stop "$dir/servers"
	rm -rf "$dir"
}
trap finish EXIT
trap 'exit 130' INT TERM HUP

port=$(ports_free 10)
"$here/mariadb.sh" start "$dir/servers" "$port" 3
sysbench --config-file="$dir/servers/sysbench.cnf" oltp_read_write --tables=4 --table-size=20000 prepare >/dev/null
go build -C "$root" -o "$dir/bench" ./tests/bench
note "$(nproc) cores, $(sed -n 's/^model name.*: //p' /proc/cpuinfo | head -n 1), load $(cut -d' ' -f1-3 /proc/loadavg)"
"$dir/bench" -root "$root" -binary "$root/benchwatch" -servers "$dir/servers" -port "$port" "$@"
