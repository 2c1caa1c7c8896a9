#!/bin/bash
# Starts a Galera node: galera1 bootstraps a new cluster if no other node answers,
# the others join. Runs in MariaDB's image, before its entrypoint.
set -euo pipefail

answers() { timeout 2 bash -c "exec 3<>/dev/tcp/$1/4567" 2>/dev/null; }

address=gcomm://galera1,galera2,galera3
if [[ $HOSTNAME == galera1 ]] && ! answers galera2 && ! answers galera3; then
	address=gcomm://
	# galera1 may bootstrap again after a stop of all nodes: the cluster is for benchmarks,
	# and galera1 stops last, because docker compose stops in reverse order.
	state=/var/lib/mysql/grastate.dat
	[[ ! -e $state ]] || sed -i 's/^safe_to_bootstrap: 0$/safe_to_bootstrap: 1/' "$state"
fi
exec docker-entrypoint.sh "$@" --wsrep-cluster-address="$address" --wsrep-node-name="$HOSTNAME" --wsrep-node-address="$HOSTNAME"
