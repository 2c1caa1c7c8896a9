package postgresql

import (
	"github.com/benchwatch/benchwatch/agent/model/engine"
	"github.com/benchwatch/benchwatch/agent/model/measure"
)

// Labels.
const (
	labelDatabases = "databases" // connected or others
	labelOp        = "op"
	labelStandby   = "standby"
	labelStage     = "stage"
	labelSlot      = "slot"
	labelBackend   = "backend"
	labelObject    = "object"
	labelHolder    = "holder"
)

const milli = 1e3

// of the databases, one row for the connected one and one for all others.
var (
	databaseTable engine.Table

	rows = databaseTable.Map(measure.NewCounter("postgresql_rows_total",
		"Rows by what was done with them (pg_stat_database: tup_*): returned by scans, fetched by index scans, "+
			"inserted, updated, deleted. databases is connected for the database to which the agent connects, others for "+
			"the sum of the others.", labelDatabases, labelOp),
		"returned: tup_returned", "fetched: tup_fetched", "insert: tup_inserted", "update: tup_updated", "delete: tup_deleted")
	blocksHit  = databaseTable.Map(measure.NewCounter("postgresql_blocks_hit_total", "Blocks found in shared buffers (blks_hit).", labelDatabases), "blks_hit")
	blocksRead = databaseTable.Map(measure.NewCounter("postgresql_blocks_read_total",
		"Blocks that were not in shared buffers (blks_read): from the operating system's cache or from disk.", labelDatabases), "blks_read")
	readTime = measure.NewCounter("postgresql_blocks_read_seconds_total",
		"Time that sessions spent reading blocks (blk_read_time). Only with track_io_timing.", labelDatabases)
	writeTime = measure.NewCounter("postgresql_blocks_written_seconds_total",
		"Time that sessions spent writing blocks (blk_write_time). Only with track_io_timing.", labelDatabases)
	_ = databaseTable.Map(measure.NewCounter("postgresql_temporary_files_total",
		"Temporary files of sorts and hashes that did not fit into work_mem (temp_files).", labelDatabases), "temp_files")
	tempBytes = databaseTable.Map(measure.NewCounter("postgresql_temporary_bytes_total",
		"Bytes written to temporary files (temp_bytes).", labelDatabases), "temp_bytes")
	deadlocks = databaseTable.Map(measure.NewCounter("postgresql_deadlocks_total", "Deadlocks (deadlocks).", labelDatabases), "deadlocks")
	conflicts = databaseTable.Map(measure.NewCounter("postgresql_recovery_conflicts_total",
		"Statements that a standby cancelled because they were in the way of replay (conflicts).", labelDatabases), "conflicts")
	_ = databaseTable.Map(measure.NewCounter("postgresql_checksum_failures_total",
		"Blocks whose checksum was wrong (checksum_failures).", labelDatabases), "checksum_failures")
	opened = databaseTable.Map(measure.NewCounter("postgresql_sessions_total", "Sessions that began (sessions).", labelDatabases), "sessions")
	_      = databaseTable.Map(measure.NewCounter("postgresql_sessions_lost_total",
		"Sessions that did not end by themselves, by the reason (sessions_abandoned, _fatal, _killed).", labelDatabases, "reason"),
		"abandoned: sessions_abandoned", "fatal: sessions_fatal", "killed: sessions_killed")
	_ = databaseTable.Convert(measure.NewCounter("postgresql_session_seconds_total",
		"Time of sessions in which they were open, executed a statement (active), or were idle in a transaction. It "+
			"is counted when a statement ends.", labelDatabases, "state"), milli,
		"open: session_time", "active: active_time", "idle in transaction: idle_in_transaction_time")
	_ = databaseTable.Map(measure.NewCounter("postgresql_parallel_workers_total",
		"Parallel workers that plans asked for (wanted) and got (launched); version 18.", labelDatabases, "workers"),
		"wanted: parallel_wanted", "launched: parallel_launched")
)

// of the server.
var (
	counterTable engine.Table

	_         = counterTable.Map(measure.NewCounter("postgresql_wal_records_total", "Records written to the write-ahead log (wal_records)."), "wal_records")
	walImages = counterTable.Map(measure.NewCounter("postgresql_wal_full_page_images_total",
		"Images of whole pages in the write-ahead log (wal_fpi): of each page that changes the first time after a "+
			"checkpoint."), "wal_fpi")
	walBytes       = counterTable.Map(measure.NewCounter("postgresql_wal_bytes_total", "Bytes of the write-ahead log (wal_bytes)."), "wal_bytes")
	walBuffersFull = counterTable.Map(measure.NewCounter("postgresql_wal_buffers_full_total",
		"Times that sessions wrote the write-ahead log because wal_buffers were full (wal_buffers_full)."), "wal_buffers_full")
	walWrites = counterTable.Map(measure.NewCounter("postgresql_wal_writes_total", "Writes of WAL buffers (wal_write; from 18 in pg_stat_io)."), "wal_write")
	walSyncs  = counterTable.Map(measure.NewCounter("postgresql_wal_syncs_total",
		"Synchronisations of WAL files (wal_sync; from 18 in pg_stat_io)."), "wal_sync")
	walWriteTime = measure.NewCounter("postgresql_wal_write_seconds_total", "Time of writes of WAL buffers. Only with track_wal_io_timing.")
	walSyncTime  = measure.NewCounter("postgresql_wal_sync_seconds_total", "Time of synchronisations of WAL files. Only with track_wal_io_timing.")

	checkpoints = counterTable.Map(measure.NewCounter("postgresql_checkpoints_total",
		"Checkpoints by what caused them: checkpoint_timeout (timed; includes those skipped on an idle server), or "+
			"max_wal_size and commands (requested).", "cause"),
		"timed: checkpoints_timed", "requested: checkpoints_req")
	_ = counterTable.Map(measure.NewCounter("postgresql_checkpoints_done_total",
		"Checkpoints that ended (num_done; version 18)."), "checkpoints_done")
	_ = counterTable.Map(measure.NewCounter("postgresql_restart_points_total",
		"Restart points of a standby that ended (restartpoints_done; version 17 and later)."), "restartpoints_done")
	checkpointTime = counterTable.Convert(measure.NewCounter("postgresql_checkpoint_seconds_total",
		"Time of checkpoints, writing and synchronising files.", "phase"), milli,
		"write: checkpoint_write_time", "sync: checkpoint_sync_time")
	buffersWritten = counterTable.Map(measure.NewCounter("postgresql_buffers_written_total",
		"Buffers written, by the process: checkpointer, bgwriter, backend (before version 17).", labelBackend),
		"checkpointer: buffers_checkpoint", "bgwriter: buffers_clean", "backend: buffers_backend")
	_ = counterTable.Map(measure.NewCounter("postgresql_slru_buffers_written_total",
		"Buffers of SLRU caches that checkpoints wrote (slru_written; version 18)."), "slru_written")
	_ = counterTable.Map(measure.NewCounter("postgresql_bgwriter_stops_total",
		"Times that the background writer stopped since it had written bgwriter_lru_maxpages (maxwritten_clean)."), "maxwritten_clean")
	_ = counterTable.Map(measure.NewCounter("postgresql_buffers_allocated_total", "Buffers allocated (buffers_alloc)."), "buffers_alloc")
	_ = counterTable.Map(measure.NewCounter("postgresql_backend_fsyncs_total",
		"Synchronisations of files that sessions had to do themselves (buffers_backend_fsync, before version 17)."), "buffers_backend_fsync")
	_ = counterTable.Map(measure.NewCounter("postgresql_wal_archived_total",
		"WAL files, archived and failed (pg_stat_archiver).", "result"), "archived: archived_count", "failed: failed_count")

	archivingFails    = measure.NewGauge("postgresql_archiving_fails", "1 if the last attempt to archive a WAL file failed, else 0.")
	checkpointRunning = measure.NewGauge("postgresql_checkpoint_running", "1 if a checkpoint or restart point is in progress, else 0.")
	checkpointBytes   = measure.NewGauge("postgresql_checkpoint_distance_bytes",
		"WAL since the beginning of the last checkpoint. The next one begins at about half of max_wal_size, or at "+
			"checkpoint_timeout.")
	maxWALSize = measure.NewGauge("postgresql_max_wal_size_bytes", "The setting max_wal_size.")
)

// I/O of version 16 and later, and SLRU caches.
var (
	ioOperations = measure.NewCounter("postgresql_io_operations_total",
		"Operations of pg_stat_io (version 16 and later) by type of process, object (relation, temp relation, wal), "+
			"context and operation: read, write, extend, hit, evict, reuse, fsync.", labelBackend, labelObject, "context", labelOp)
	ioBytes = measure.NewCounter("postgresql_io_bytes_total", "Bytes of pg_stat_io.", labelBackend, labelObject, labelOp)
	ioTime  = measure.NewCounter("postgresql_io_seconds_total",
		"Time of operations of pg_stat_io. Only with track_io_timing, for wal with track_wal_io_timing.", labelBackend, labelObject, labelOp)
	slruBlocks = measure.NewCounter("postgresql_slru_blocks_total",
		"Blocks of the small caches (pg_stat_slru) by cache, under the server's own name, and operation: hit, read, "+
			"written.", "cache", labelOp)
)

// Sessions.
var (
	sessionStates = measure.NewGauge("postgresql_sessions", "Clients' sessions by state (active, idle, idle in transaction …), except the agent's own.", "state")
	processes     = measure.NewGauge("postgresql_processes",
		"Other processes of the server that do work for clients: autovacuum worker, parallel worker, walsender, "+
			"logical replication worker.", labelBackend)
	pausedWorkers = measure.NewGauge("postgresql_autovacuum_workers_paused",
		"Autovacuum workers that pause since they reached vacuum_cost_limit.")
	workersLimit = measure.NewGauge("postgresql_autovacuum_workers_limit", "The setting autovacuum_max_workers.")
	oldestOpen   = measure.NewGauge("postgresql_oldest_transaction_seconds", "Age of the oldest transaction of a client, by the state of its session.", "state")
	snapshotAge  = measure.NewGauge("postgresql_oldest_snapshot_transactions",
		"Transactions since the oldest snapshot, whose dead rows can't be removed, by what holds it: session, "+
			"standby (feedback), slot, prepared transaction, vacuum.", labelHolder)
	blockedTime = measure.NewCounter("postgresql_blocked_seconds_total",
		"Time that sessions waited for a lock since the agent started, by what holds it: its program, its state, and "+
			"its last statement without values. Up to three of the sessions that wait for at least a second are asked "+
			"for.", labelHolder)
	encrypted = measure.NewGauge("postgresql_encrypted_sessions", "Clients' sessions with TLS.")
	reserved  = measure.NewGauge("postgresql_reserved_connections", "Connections that only superusers and reserved roles get.")
)

// Replication.
var (
	standbyBytes = measure.NewGauge("postgresql_standby_lag_bytes",
		"WAL that a standby or subscriber lacks, as its sender reports it, by stage: sent, write, flush, replay.", labelStandby, labelStage)
	standbyLag = measure.NewGauge("postgresql_standby_lag_seconds",
		"Time until a standby or subscriber reported that it wrote, flushed and replayed recent WAL (write_lag, "+
			"flush_lag, replay_lag). Absent if nothing was written since.", labelStandby, labelStage)
	standbySync  = measure.NewGauge("postgresql_standby_synchronous", "1 if commits wait for this standby, alone or as part of a quorum, else 0.", labelStandby)
	syncStandbys = measure.NewGauge("postgresql_synchronous_standbys", "Connected standbys for which commits wait.")
	syncWanted   = measure.NewGauge("postgresql_synchronous_standbys_wanted", "Standbys for which commits have to wait by synchronous_standby_names; 0: none.")
	slotRetained = measure.NewGauge("postgresql_slot_retained_bytes", "WAL that a replication slot retains.", labelSlot)
	slotSafe     = measure.NewGauge("postgresql_slot_safe_bytes",
		"WAL that can still be written before the slot may be lost (safe_wal_size). Absent without "+
			"max_slot_wal_keep_size.", labelSlot)
	slotActive = measure.NewGauge("postgresql_slot_active", "1 if a standby or subscriber uses the slot, else 0.", labelSlot)
	slotLost   = measure.NewGauge("postgresql_slot_lost",
		"1 if the slot has lost WAL that its user needs, or is about to (wal_status lost, unreserved), else 0.", labelSlot)
	standbyWait = measure.NewCounter("postgresql_standby_wait_seconds_total",
		"Time that sessions waited in commit for a synchronous standby since the agent started: sessions that wait "+
			"at each tick, for the synchronous standby that lacks the most WAL.", labelStandby)
	replayPaused = measure.NewGauge("postgresql_replay_paused", "1 if a standby's replay is paused, else 0.")
	replayQueue  = measure.NewGauge("postgresql_replay_queue_bytes", "WAL that a standby has received and not replayed.")
	replayAge    = measure.NewGauge("postgresql_replay_age_seconds",
		"Time since the commit of the last transaction that the standby replayed, by both servers' clocks. It grows "+
			"on an idle primary.")
)

// Vacuum and rows.
var (
	freezeAge = measure.NewGauge("postgresql_freeze_age_transactions",
		"Transactions since the oldest unfrozen one of all databases; at 2^31 less 3 million the server refuses "+
			"writes.")
	multixactAge   = measure.NewGauge("postgresql_freeze_age_multixacts", "Multixacts since the oldest of all databases.")
	vacuumProgress = measure.NewGauge("postgresql_vacuum_progress_ratio", "Share of the relation that a running VACUUM has scanned.", "relation")
	vacuumsRunning = measure.NewGauge("postgresql_vacuums_running", "VACUUMs in progress, of autovacuum and clients.")
	preparedCount  = measure.NewGauge("postgresql_prepared_transactions", "Prepared transactions (two-phase commit).")

	tableTable engine.Table
	_          = tableTable.Map(measure.NewCounter("postgresql_scans_total",
		"Scans of the connected database's tables: sequential or by an index.", "kind"), "sequential: seq_scan", "index: idx_scan")
	_ = tableTable.Map(measure.NewCounter("postgresql_scan_rows_total",
		"Rows read by scans of the connected database's tables.", "kind"), "sequential: seq_tup_read", "index: idx_tup_fetch")
	updates    = tableTable.Map(measure.NewCounter("postgresql_row_updates_total", "Rows updated in the connected database."), "updated")
	hotUpdates = tableTable.Map(measure.NewCounter("postgresql_row_updates_hot_total", "Rows updated without a change of an index (heap-only tuples)."), "hot")
	_          = tableTable.Map(measure.NewGauge("postgresql_live_rows", "Rows of the connected database's tables, as estimated by the server."), "live")
	deadRows   = tableTable.Map(measure.NewGauge("postgresql_dead_rows", "Dead rows of the connected database's tables, as estimated by the server."), "dead")
	_          = tableTable.Map(measure.NewCounter("postgresql_vacuums_total",
		"VACUUMs of tables that ended, by who started them.", "by"), "autovacuum: autovacuums", "command: vacuums")
	_ = tableTable.Map(measure.NewCounter("postgresql_analyzes_total",
		"ANALYZEs of tables that ended, by who started them.", "by"), "autovacuum: autoanalyzes", "command: analyzes")

	tableDead = measure.NewGauge("postgresql_table_dead_rows", "Dead rows of the ten tables with the most.", "relation")
	worstDead = measure.NewGauge("postgresql_worst_dead_rows_ratio",
		"Share of dead rows in the table with the largest share, of the ten tables with the most dead rows and at "+
			"least 1000 of them.")
	tableLive    = measure.NewGauge("postgresql_table_live_rows", "Rows of the same tables.", "relation")
	tableScanned = measure.NewCounter("postgresql_table_scan_rows_total", "Rows read by sequential scans of the same tables.", "relation")

	cacheTable engine.Table
	_          = cacheTable.Map(measure.NewGauge("postgresql_shared_buffers", "Shared buffers by state (pg_buffercache_summary, version 16 and later).", "state"),
		"used: buffers_used", "unused: buffers_unused", "dirty: buffers_dirty", "pinned: buffers_pinned")
)

// The measures. A session adds its counts to the server's about once a second, so that a rate over one second is noisy
// and the sum over a run is exact.
var (
	_ = engine.Deadlocks.Or(measure.RateOf(deadlocks))
	_ = engine.OpenedConnections.Or(measure.RateOf(opened))
	_ = engine.PagesRead.Or(measure.RateOf(blocksRead))
	_ = engine.PageMisses.Or(measure.RateOf(blocksRead).Over(blocksRead, blocksHit))

	ReadTime = engine.NewMeasure(640, "blocks_read_time", "Time of reading blocks",
		"sessions waiting for a read, on average; with track_io_timing", measure.Count, measure.Mean, measure.RateOf(readTime))
	RowsReturned = engine.NewMeasure(642, "rows_returned", "Rows read",
		"rows per second that scans returned, whether used or not", measure.PerSecond, measure.Mean, measure.RateOf(rows).On(labelOp, "returned"))
	_ = engine.NewMeasure(643, "rows_changed", "Rows changed",
		"rows per second inserted, updated or deleted", measure.PerSecond, measure.Mean, measure.RateOf(rows).On(labelOp, "insert", "update", "delete"))
	TemporaryBytes = engine.NewMeasure(644, "temporary_bytes", "Temporary files",
		"bytes per second written by sorts and hashes", measure.Bytes, measure.Mean, measure.RateOf(tempBytes))

	WALRate   = engine.NewMeasure(650, "wal", "Write-ahead log", "bytes per second", measure.Bytes, measure.Mean, measure.RateOf(walBytes))
	WALImages = engine.NewMeasure(651, "wal_full_page_images", "Full-page images",
		"per second: pages that change the first time after a checkpoint", measure.PerSecond, measure.Mean, measure.RateOf(walImages))
	WALBuffersFull = engine.NewMeasure(652, "wal_buffers_full", "WAL buffers full",
		"per second: sessions had to write the log before they could add to it", measure.PerSecond, measure.Increase, measure.RateOf(walBuffersFull))
	WALSyncs    = engine.NewMeasure(653, "wal_syncs", "WAL synchronisations", "per second", measure.PerSecond, measure.Mean, measure.RateOf(walSyncs))
	WALSyncTime = engine.NewMeasure(654, "wal_sync_time", "Time of a WAL synchronisation",
		"mean; with track_wal_io_timing", measure.Seconds, measure.Mean, measure.RateOf(walSyncTime).Over(walSyncs))
	GroupCommit = engine.NewMeasure(655, "group_commit", "Commits per WAL synchronisation", "several commits share one",
		measure.Count, measure.Mean, measure.RateOf(engine.CommitsTotal).Over(walSyncs))

	CheckpointsRequested = engine.NewMeasure(660, "checkpoints_requested", "Checkpoints requested",
		"since max_wal_size was reached, or by a command", measure.PerSecond, measure.Increase, measure.RateOf(checkpoints).On("cause", "requested"))
	CheckpointsTimed = engine.NewMeasure(661, "checkpoints_timed", "Checkpoints by checkpoint_timeout", "",
		measure.PerSecond, measure.Increase, measure.RateOf(checkpoints).On("cause", "timed"))
	CheckpointRunning = engine.NewMeasure(662, "checkpoint_running", "Checkpoint in progress", "share of the time",
		measure.Ratio, measure.Mean, measure.ValueOf(checkpointRunning))
	CheckpointWrites = engine.NewMeasure(663, "checkpoint_buffers", "Buffers written by checkpoints", "per second",
		measure.PerSecond, measure.Mean, measure.RateOf(buffersWritten).On(labelBackend, "checkpointer"))
	_ = engine.NewMeasure(664, "checkpoint_sync", "Checkpoints synchronising files", "share of the time",
		measure.Ratio, measure.Mean, measure.ShareOf(checkpointTime).On("phase", "sync"))
	_ = engine.NewMeasure(665, "checkpoint_distance", "WAL since the last checkpoint", "of max_wal_size",
		measure.Ratio, measure.Max, measure.ValueOf(checkpointBytes).Over(maxWALSize))

	IdleInTransaction = engine.NewMeasure(670, "idle_in_transaction", "Sessions idle in a transaction", "on average",
		measure.Count, measure.Mean, measure.ValueOf(sessionStates).On("state", "idle in transaction", "idle in transaction (aborted)"))
	OldestTransaction = engine.NewMeasure(671, "oldest_transaction", "Oldest transaction", "of a client",
		measure.Seconds, measure.Max, measure.ValueOf(oldestOpen))
	OldestSnapshot = engine.NewMeasure(672, "oldest_snapshot", "Oldest snapshot",
		"transactions whose dead rows can't be removed", measure.Count, measure.Max, measure.ValueOf(snapshotAge))
	AutovacuumWorkers = engine.NewMeasure(673, "autovacuum_workers", "Autovacuum workers", "running", measure.Count,
		measure.Max, measure.ValueOf(processes).On(labelBackend, "autovacuum worker"))
	PausedWorkers = engine.NewMeasure(687, "autovacuum_workers_paused", "Autovacuum workers that pause",
		"since they reached vacuum_cost_limit", measure.Count, measure.Mean, measure.ValueOf(pausedWorkers))
	DeadRows = engine.NewMeasure(674, "dead_rows", "Dead rows",
		"of the connected database, as the server estimates", measure.Count, measure.Max, measure.ValueOf(deadRows))
	DeadShare = engine.NewMeasure(675, "dead_share", "Dead rows, of all of a table",
		"of the table with the largest share, as the server estimates", measure.Ratio, measure.Max, measure.ValueOf(worstDead))
	ParallelWorkers = engine.NewMeasure(684, "parallel_workers", "Parallel workers", "running", measure.Count,
		measure.Mean, measure.ValueOf(processes).On(labelBackend, "parallel worker"))
	RowUpdates = engine.NewMeasure(685, "row_updates", "Rows updated", "per second, in the connected database",
		measure.PerSecond, measure.Mean, measure.RateOf(updates))
	SmallCacheReads = engine.NewMeasure(686, "slru_reads", "Blocks of small caches read",
		"per second: states of transactions, multixacts, subtransactions …", measure.PerSecond, measure.Increase, measure.RateOf(slruBlocks).On(labelOp, "read"))
	HotShare = engine.NewMeasure(676, "hot_updates", "Updates without a change of an index",
		"share of all updates (HOT)", measure.Ratio, measure.Mean, measure.RateOf(hotUpdates).Over(updates))
	_ = engine.NewMeasure(677, "freeze_age", "Freeze age",
		"transactions since the oldest unfrozen one", measure.Count, measure.Last, measure.ValueOf(freezeAge))

	StandbyWait = engine.NewMeasure(681, "standby_wait", "Waiting for a synchronous standby",
		"seconds of all sessions; the chart: sessions", measure.Count, measure.Increase, measure.RateOf(standbyWait))
	BlockedTime = engine.NewMeasure(678, "blocked", "Blocked by a lock",
		"seconds of all sessions whose holder is known; the chart: sessions", measure.Count, measure.Increase, measure.RateOf(blockedTime))
	IdleAge = engine.NewMeasure(679, "idle_in_transaction_age", "Oldest transaction of an idle session", "", measure.Seconds, measure.Max,
		measure.ValueOf(oldestOpen).On("state", "idle in transaction", "idle in transaction (aborted)"))
	ReplayQueue = engine.NewMeasure(680, "replay_queue", "Received and not replayed", "WAL on the standby",
		measure.Bytes, measure.Max, measure.ValueOf(replayQueue))
	_ = engine.NewMeasure(682, "recovery_conflicts", "Statements cancelled by replay", "on the standby",
		measure.PerSecond, measure.Increase, measure.RateOf(conflicts))
	SlotRetained = engine.NewMeasure(683, "slot_retained", "WAL retained by slots", "", measure.Bytes, measure.Max, measure.ValueOf(slotRetained))
)

// The cost of one transaction of the run on a server.
var (
	_ = engine.NewCost(770, "cost_wal", "WAL", "bytes", measure.Bytes, measure.RateOf(walBytes))
	_ = engine.NewCost(771, "cost_full_page_images", "Full-page images", "pages", measure.Count, measure.RateOf(walImages))
	_ = engine.NewCost(772, "cost_wal_syncs", "WAL synchronisations", "operations", measure.Count, measure.RateOf(walSyncs))
	_ = engine.NewCost(773, "cost_blocks", "Blocks used", "found in shared buffers or read", measure.Count, measure.RateOf(blocksHit).Plus(blocksRead))
	_ = engine.NewCost(774, "cost_blocks_read", "Blocks read", "not in shared buffers", measure.Count, measure.RateOf(blocksRead))
	_ = engine.NewCost(775, "cost_rows_returned", "Rows returned by scans", "whether used or not", measure.Count, measure.RateOf(rows).On(labelOp, "returned"))
	_ = engine.NewCost(776, "cost_temporary", "Temporary files", "bytes", measure.Bytes, measure.RateOf(tempBytes))
)
