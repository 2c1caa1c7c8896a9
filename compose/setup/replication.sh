#!/bin/bash
# Makes replica1 and replica2 replicate from primary, replica2 with a delay of
# REPLICA_DELAY seconds. Runs in MySQL's image at each start of the stack.
set -euo pipefail

# Passes passwords in a file and on standard input, not on the command line.
options=$(mktemp)
trap 'rm -f "$options"' EXIT
printf '[client]\nuser = root\npassword = %s\n' "$(</secrets/root-password)" >"$options"
replication=$(</secrets/replication-password)

sql() { mysql --defaults-extra-file="$options" --host="$1" --batch --skip-column-names; }
threads() { sql "$1" <<<"SELECT (SELECT service_state FROM performance_schema.replication_connection_status), (SELECT service_state FROM performance_schema.replication_applier_status)"; }

for replica in replica1 replica2; do
	delay=0
	[[ $replica == replica1 ]] || delay=$REPLICA_DELAY
	sql "$replica" <<-END
		STOP REPLICA;
		CHANGE REPLICATION SOURCE TO SOURCE_HOST = 'primary', SOURCE_USER = 'replication', SOURCE_PASSWORD = '$replication',
		  SOURCE_AUTO_POSITION = 1, GET_SOURCE_PUBLIC_KEY = 1, SOURCE_DELAY = $delay, SOURCE_CONNECT_RETRY = 1;
		START REPLICA;
	END
done
for replica in replica1 replica2; do
	for ((i = 0; i < 60; i++)); do
		[[ $(threads "$replica") != $'ON\tON' ]] || continue 2
		sleep 1
	done
	echo "$replica does not replicate after a minute: see docker compose logs $replica" >&2
	exit 1
done
