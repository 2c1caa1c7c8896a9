package postgresql

import (
	"fmt"
	"strings"
)

// The statements of a tick. Each lists the columns that its reader needs under one name for all
// versions; %s are parts that depend on the version.

// identity is read when connecting and every minute.
const identity = `SELECT current_setting('server_version') AS version, current_database() AS database, current_user AS role,
pg_has_role('pg_read_all_stats', 'USAGE') AS monitor,
current_setting('track_io_timing')::bool AS track_io_timing, current_setting('track_wal_io_timing')::bool AS track_wal_io_timing,
pg_size_bytes(current_setting('max_wal_size')) AS max_wal_size, current_setting('max_connections') AS max_connections,
current_setting('superuser_reserved_connections')::int + coalesce(current_setting('reserved_connections', true)::int, 0) AS reserved,
current_setting('autovacuum_max_workers') AS autovacuum_max_workers, pg_size_bytes(current_setting('shared_buffers')) AS shared_buffers,
pg_relation_size('pg_catalog.pg_class') AS catalog_size,
EXISTS (SELECT FROM pg_proc WHERE proname = 'aurora_version') AS aurora,
current_setting('rds.extensions', true) IS NOT NULL AS rds, current_setting('azure.extensions', true) IS NOT NULL AS azure,
current_setting('cloudsql.iam_authentication', true) IS NOT NULL AS cloudsql,
(SELECT quote_ident(n.nspname) FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace WHERE e.extname = 'pg_stat_statements') AS statements,
(SELECT extversion FROM pg_extension WHERE extname = 'pg_stat_statements') AS statements_version,
(SELECT quote_ident(n.nspname) FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace WHERE e.extname = 'pg_buffercache') AS buffercache`

// system is the identity of the database and its physical copies.
const system = `SELECT system_identifier::text AS system FROM pg_control_system()`

const position = `SELECT pg_is_in_recovery() AS recovery, CASE WHEN NOT pg_is_in_recovery() THEN pg_current_wal_lsn() END AS lsn,
extract(epoch FROM pg_postmaster_start_time()) AS started, extract(epoch FROM clock_timestamp() - pg_postmaster_start_time()) AS uptime, current_setting('synchronous_standby_names') AS synchronous,
extract(epoch FROM current_setting('recovery_min_apply_delay')::interval) AS delay`

// timeline is only known to a primary; a standby has it from its receiver.
const timeline = `SELECT CASE WHEN NOT pg_is_in_recovery() THEN substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) END AS timeline`

const replay = `SELECT pg_last_wal_replay_lsn() AS replayed, pg_last_wal_receive_lsn() AS received, pg_is_wal_replay_paused() AS paused,
extract(epoch FROM clock_timestamp() - pg_last_xact_replay_timestamp()) AS age,
CASE WHEN pg_has_role('pg_read_all_settings', 'USAGE') THEN current_setting('primary_conninfo') <> '' END AS streams
WHERE pg_is_in_recovery()`

const receiver = `SELECT status, received_tli, sender_host, sender_port, extract(epoch FROM clock_timestamp() - last_msg_receipt_time) AS silence
FROM pg_stat_get_wal_receiver() WHERE pid IS NOT NULL`

// checkpointed is the distance from the last checkpoint. It may be about half of max_wal_size.
const checkpointed = `SELECT pg_wal_lsn_diff(CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_lsn() END, redo_lsn) AS age
FROM pg_control_checkpoint()`

// senders leaves out backups. The view would list all sessions once for each sender.
const senders = `SELECT coalesce(nullif(a.application_name, ''), 'walsender') AS standby, host(a.client_addr) AS address, w.state, w.sync_state,
pg_wal_lsn_diff(c.at, w.sent_lsn) AS sent, pg_wal_lsn_diff(c.at, w.write_lsn) AS written, pg_wal_lsn_diff(c.at, w.flush_lsn) AS flushed,
pg_wal_lsn_diff(c.at, w.replay_lsn) AS replayed,
extract(epoch FROM w.write_lag) AS write_lag, extract(epoch FROM w.flush_lag) AS flush_lag, extract(epoch FROM w.replay_lag) AS replay_lag
FROM pg_stat_get_wal_senders() w
CROSS JOIN (SELECT CASE WHEN pg_is_in_recovery() THEN pg_last_wal_receive_lsn() ELSE pg_current_wal_lsn() END AS at) c
LEFT JOIN LATERAL pg_stat_get_activity(w.pid) a ON true WHERE w.state IS DISTINCT FROM 'backup' LIMIT 64`

const slots = `SELECT slot_name, slot_type, active, coalesce(wal_status, '') AS wal_status, safe_wal_size,
pg_wal_lsn_diff(CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_lsn() END, restart_lsn) AS retained,
greatest(age(xmin), age(catalog_xmin)) AS snapshot FROM pg_get_replication_slots() LIMIT 64`

// subscriptions has the main worker of each subscription.
const subscriptions = `SELECT subname, pid, received_lsn FROM pg_stat_subscription WHERE relid IS NULL%s LIMIT 64`

// activity has no text of statements. A user without pg_read_all_stats sees of other users' sessions only that
// they exist. The server's own processes have no database.
const activity = `SELECT backend_type, state, wait_event_type, wait_event, count(*) AS n, count(*) FILTER (WHERE ssl) AS encrypted,
count(*) FILTER (WHERE query = '<insufficient privilege>' AND datid IS NOT NULL) AS hidden,
extract(epoch FROM clock_timestamp() - min(xact_start)) AS transaction,
max(age(backend_xmin)) AS snapshot
FROM pg_stat_get_activity(NULL) WHERE pid <> pg_backend_pid() GROUP BY 1, 2, 3, 4 LIMIT 1001`

// fewInTransactions is activity for a server with many sessions, most of them idle: pg_stat_get_activity copies each of
// them, and searches its process among all others. Sessions of a database without a transaction, which wait for their
// client, are only counted. How many of them have TLS is then not known.
const fewInTransactions = `WITH b AS MATERIALIZED (SELECT pg_stat_get_backend_pid(i) AS pid,
(pg_stat_get_backend_xact_start(i) IS NULL AND pg_stat_get_backend_dbid(i) <> 0) IS TRUE AS idle FROM pg_stat_get_backend_idset() i),
w AS MATERIALIZED (SELECT pid FROM pg_stat_get_wal_senders())
SELECT 'client backend' AS backend_type, 'idle' AS state, 'Client' AS wait_event_type, 'ClientRead' AS wait_event,
(SELECT count(*) FROM b WHERE idle) - (SELECT count(*) FROM b JOIN w USING (pid) WHERE idle) AS n, NULL AS encrypted, 0 AS hidden,
NULL AS transaction, NULL AS snapshot
UNION ALL SELECT a.backend_type, a.state, a.wait_event_type, a.wait_event, count(*), NULL, 0,
extract(epoch FROM clock_timestamp() - min(a.xact_start)), max(age(a.backend_xmin))
FROM (SELECT pid FROM b WHERE NOT idle UNION SELECT pid FROM w) p CROSS JOIN LATERAL pg_stat_get_activity(p.pid) a
WHERE p.pid <> pg_backend_pid() GROUP BY 1, 2, 3, 4 LIMIT 1001`

// databases has a row for each database, which the reader adds up: sums in the server take three times as long.
const databases = `SELECT datname = current_database() AS connected, xact_commit, xact_rollback, blks_read, blks_hit,
tup_returned, tup_fetched, tup_inserted, tup_updated, tup_deleted, conflicts, temp_files, temp_bytes, deadlocks, checksum_failures, blk_read_time, blk_write_time,
session_time, active_time, idle_in_transaction_time, sessions, sessions_abandoned, sessions_fatal, sessions_killed%s FROM pg_stat_database`

// counters has the views of one row.
const counters = `SELECT w.wal_records, w.wal_fpi, w.wal_bytes, w.wal_buffers_full%s, b.buffers_clean, b.maxwritten_clean, b.buffers_alloc%s,
a.archived_count, a.failed_count, extract(epoch FROM now() - a.last_failed_time) < coalesce(extract(epoch FROM now() - a.last_archived_time), 'infinity') AS archiving_fails
FROM pg_stat_wal w, pg_stat_bgwriter b%s, pg_stat_archiver a`

const inputOutput = `SELECT backend_type, object, context, reads, read_time, writes, write_time, extends, extend_time, hits, evictions, reuses, fsyncs, fsync_time, %s
FROM pg_stat_io WHERE backend_type <> 'standalone backend' AND greatest(reads, writes, extends, hits, fsyncs) > 0`

const slru = `SELECT name, blks_hit, blks_read, blks_written FROM pg_stat_slru WHERE blks_hit + blks_read + blks_written > 0`

const vacuums = `SELECT coalesce(c.relname, 'in another database') AS relation, phase,
heap_blks_scanned::float8 / nullif(heap_blks_total, 0) AS progress
FROM pg_stat_progress_vacuum v LEFT JOIN pg_class c ON c.oid = v.relid AND v.datname = current_database() LIMIT 32`

// The statements that are read every few seconds, since their values change slowly or cost more.

const freeze = `SELECT max(age(datfrozenxid)) AS transactions, max(mxid_age(datminmxid)) AS multixacts FROM pg_database`

const preparedTransactions = `SELECT count(*) AS n, max(age(transaction)) AS snapshot, max(extract(epoch FROM clock_timestamp() - prepared)) AS age FROM pg_prepared_xacts`

// tables adds up the tables of the connected database.
const tables = `SELECT sum(seq_scan) AS seq_scan, sum(seq_tup_read) AS seq_tup_read, sum(idx_scan) AS idx_scan, sum(idx_tup_fetch) AS idx_tup_fetch,
sum(n_tup_upd) AS updated, sum(n_tup_hot_upd) AS hot, sum(n_live_tup) AS live, sum(n_dead_tup) AS dead,
sum(vacuum_count) AS vacuums, sum(autovacuum_count) AS autovacuums, sum(analyze_count) AS analyzes, sum(autoanalyze_count) AS autoanalyzes
FROM pg_stat_user_tables`

// mostDead are the tables with the most dead rows.
const mostDead = `SELECT relname AS relation, n_live_tup AS live, n_dead_tup AS dead, seq_tup_read AS scanned
FROM pg_stat_user_tables WHERE n_live_tup + n_dead_tup > 0 ORDER BY n_dead_tup DESC, seq_tup_read DESC LIMIT 10`

const buffers = `SELECT buffers_used, buffers_unused, buffers_dirty, buffers_pinned, usagecount_avg FROM %s.pg_buffercache_summary()`

// texts are the statements in the form of one version.
type texts struct {
	databases, counters, inputOutput, subscriptions string
}

func textsFor(version int) texts {
	database := ""
	if version >= 18 {
		database = ", parallel_workers_to_launch AS parallel_wanted, parallel_workers_launched AS parallel_launched"
	}
	wal := ", w.wal_write, w.wal_sync, w.wal_write_time, w.wal_sync_time"
	if version >= 18 {
		wal = "" // in pg_stat_io
	}
	checkpoints, from := ", b.checkpoints_timed, b.checkpoints_req, b.checkpoint_write_time, b.checkpoint_sync_time, b.buffers_checkpoint, b.buffers_backend, b.buffers_backend_fsync", ""
	if version >= 17 {
		checkpoints = `, c.num_timed AS checkpoints_timed, c.num_requested AS checkpoints_req, c.write_time AS checkpoint_write_time,
c.sync_time AS checkpoint_sync_time, c.buffers_written AS buffers_checkpoint, c.restartpoints_done`
		from = ", pg_stat_checkpointer c"
	}
	if version >= 18 {
		checkpoints += ", c.num_done AS checkpoints_done, c.slru_written"
	}
	bytes := "reads * op_bytes AS read_bytes, writes * op_bytes AS write_bytes, extends * op_bytes AS extend_bytes"
	if version >= 18 {
		bytes = "read_bytes, write_bytes, extend_bytes"
	}
	if version < 16 {
		bytes = ""
	}
	workers := ""
	if version >= 16 {
		workers = " AND leader_pid IS NULL"
	}
	t := texts{databases: fmt.Sprintf(databases, database), counters: fmt.Sprintf(counters, wal, checkpoints, from),
		subscriptions: fmt.Sprintf(subscriptions, workers)}
	if bytes != "" {
		t.inputOutput = fmt.Sprintf(inputOutput, bytes)
	}
	return t
}

// inSchema puts the name of an extension's schema, quoted by the server, into a statement.
func inSchema(text, schema string) string { return strings.Replace(text, "%s", schema, 1) }
