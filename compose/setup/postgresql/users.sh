#!/bin/bash
# Creates the users and their rights. PostgreSQL's image runs it once, before the server has a network, as the user
# of the server.
set -euo pipefail

monitor=$(</secrets/monitor-password)
benchmark=$(</secrets/benchmark-password)
replication=$(</secrets/replication-password)

psql --quiet --no-psqlrc --set=ON_ERROR_STOP=1 --username=postgres --dbname=sbtest <<END
CREATE USER monitor PASSWORD '$monitor';
GRANT pg_monitor TO monitor;
CREATE USER benchmark PASSWORD '$benchmark';
GRANT ALL ON DATABASE sbtest TO benchmark;
GRANT ALL ON SCHEMA public TO benchmark;
CREATE USER replication REPLICATION PASSWORD '$replication';
CREATE EXTENSION pg_stat_statements;
-- In effect after the first start, which has no standby.
ALTER SYSTEM SET synchronous_standby_names = 'postgresql2';
END
echo 'host replication replication all scram-sha-256' >>"$PGDATA/pg_hba.conf"
