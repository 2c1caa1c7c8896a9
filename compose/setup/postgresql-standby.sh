#!/bin/bash
# Starts a standby of postgresql1, whose name is the host's; at the first start it copies the primary. Runs in
# PostgreSQL's image as the user of the server, at each start of the stack.
set -euo pipefail

if [[ ! -s $PGDATA/PG_VERSION ]]; then
	# What an interrupted copy left.
	find "$PGDATA" -mindepth 1 -delete
	pg_basebackup --pgdata="$PGDATA" --wal-method=stream --checkpoint=fast --write-recovery-conf \
		--dbname="host=postgresql1 user=replication passfile=/secrets/postgresql.pgpass application_name=$HOSTNAME"
fi
chmod 0700 "$PGDATA"
exec "$@" -c hot_standby_feedback=on
