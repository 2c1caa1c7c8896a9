#!/usr/bin/env bash
# Measures what observing costs beside what it is compared with: starts three MariaDB
# servers (a primary and two replicas) for it and runs tests/bench. Arguments go to
# tests/bench (-only parse,latency …).
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
here=$root/scripts

"$here/toolchain.sh" go
"$here/packages.sh" bench
dir=$(mktemp -d "${TMPDIR:-/tmp}/benchwatch-bench.XXXXXX")
chmod 0711 "$dir"
finish() {
	[[ ! -d $dir/servers ]] || "$dir/servers-command" stop "$dir/servers"
	rm -rf "$dir"
}
trap finish EXIT
trap 'exit 130' INT TERM HUP

go build -C "$root" -o "$dir/servers-command" ./internal/servers/cmd
"$dir/servers-command" start mariadb "$dir/servers" --servers=3
port=$(jq .port "$dir/servers/servers.json")
sysbench --config-file="$dir/servers/sysbench.cnf" oltp_read_write --tables=4 --table-size=20000 prepare >/dev/null
go build -C "$root" -o "$dir/bench" ./tests/bench
echo "$(nproc) cores, $(sed -n 's/^model name.*: //p' /proc/cpuinfo | head -n 1), load $(cut -d' ' -f1-3 /proc/loadavg)"
"$dir/bench" -root "$root" -binary "$root/benchwatch" -servers "$dir/servers" -port "$port" "$@"
