package mysql

import (
	"strings"

	"github.com/benchwatch/benchwatch/agent/model/cause"
	"github.com/benchwatch/benchwatch/agent/model/engine"
)

// Name is the name of the engine.
const Name = "mysql"

// highCheckpoint is the share of the limit of the checkpoint age from which on writes may wait for flushed pages.
const highCheckpoint = 0.8

// What limits of servers of the family mean, and what to do about them.
var _ = cause.Declare(cause.Explanation{
	Engine: Name,
	Waits: []cause.Wait{
		{Class: engine.Lock, State: "user lock", Waits: "waited for a user-level lock (GET_LOCK)", Limit: cause.UserLocks,
			Test: "find the session that holds it (IS_USED_LOCK(name), performance_schema.metadata_locks or MariaDB's METADATA_LOCK_INFO), and what it does while it holds it"},
		{Class: engine.Latch, State: "thread pool", Waits: "waited for a thread of the server's thread pool", Limit: cause.ThreadPool,
			Test: "repeat with a larger thread_pool_size and thread_pool_max_threads, or with thread_handling=one-thread-per-connection"},
		{Class: engine.Other, State: "user sleep", Waits: "slept in the server (SLEEP)", Limit: cause.Sleep, Test: "repeat with statements without SLEEP"},
		{Class: engine.RowLock, Waits: "waited for a row lock", Limit: cause.RowLocks,
			Stopped: "find the session that held the rows (INNODB_TRX, sys.innodb_lock_waits), and what it did meanwhile"},
		{Class: engine.Commit, Waits: "waited in commit, for the redo or binary log", Limit: cause.Commit},
	},
	Advice: map[cause.Limit]string{
		cause.Locks:       "find what holds it: DDL, LOCK TABLES or a backup in another session, or the clients' own statements if their engine locks whole tables (MyISAM)",
		cause.Commit:      "repeat with innodb_flush_log_at_trx_commit=2 and sync_binlog=0, for the test only: if the throughput rises, this was the cause",
		cause.Replication: "repeat without semi-synchronous replication",
		cause.Disk:        "repeat with a larger buffer pool or a faster disk",
		cause.Pool:        "repeat with a larger innodb_buffer_pool_size, or with less data: if the throughput rises, this was the cause",
		cause.Checkpoint:  "repeat with a larger redo log (innodb_log_file_size, innodb_redo_log_capacity), or with more I/O capacity to flush pages",
		cause.Purge:       "repeat with more innodb_purge_threads, or without innodb_max_purge_lag",
		cause.Connections: "raise max_connections above the threads and what else connects, or lower the threads",
	},
	Stalls: []cause.Stall{
		{Limit: cause.Checkpoint, Measure: CheckpointAge, High: highCheckpoint, Text: "the redo log of %s that no checkpoint covers was at %s of its limit or more"},
		{Limit: cause.Purge, Measure: HistoryList, HighSetting: "innodb_max_purge_lag", Applies: delaysWrites,
			Text: "the history list of %s was longer than its innodb_max_purge_lag of %s"},
	},
	Meanings: []cause.Meaning{{
		Limit: cause.Commit, Holds: isUnflushed,
		Test: "find what else holds commits, such as a backup or a slow write of the logs: by their settings no commit waits for a flush (innodb_flush_log_at_trx_commit, sync_binlog)",
	}},
	Settings: map[cause.Limit]string{cause.Connections: "max_connections"},
	Messages: map[cause.Limit][]string{cause.Connections: {"Too many connections", "max_user_connections"}},
	Programs: []string{"mysqld", "mariadbd", "tidb-server", "tikv-server", "pd-server", "tiflash", "TiFlashMain", "maxscale"},
})

// isUnflushed reports whether, by its settings, no commit waits until the redo or the binary log is on disk.
func isUnflushed(v *cause.View) bool {
	redo, binary := v.Number("innodb_flush_log_at_trx_commit"), v.Number("sync_binlog")
	return (redo == 0 || redo == 2) && (binary == 0 || binary > 1)
}

// delaysWrites reports whether a history list longer than innodb_max_purge_lag delays writes. MariaDB
// delays none while nothing can be purged, for instance because of an old read view (MDEV-29401): the
// list only grows then.
func delaysWrites(v *cause.View) bool {
	if !strings.Contains(v.Version, "MariaDB") {
		return true
	}
	limit, before := v.Number("innodb_max_purge_lag"), -1.0
	for _, length := range v.Values(HistoryList) {
		if before >= limit && length < before {
			return true
		}
		before = length
	}
	return false
}
