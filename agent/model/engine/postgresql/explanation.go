package postgresql

import (
	"slices"

	"github.com/benchwatch/benchwatch/agent/model/cause"
	"github.com/benchwatch/benchwatch/agent/model/engine"
)

// What limits of PostgreSQL's servers mean, and what to do about them.
var _ = cause.Declare(cause.Explanation{
	Engine: Engine.Name,
	Waits: []cause.Wait{
		{Class: engine.Lock, State: "Lock:advisory", Waits: "waited for an advisory lock", Limit: cause.UserLocks,
			Test: "find the session that holds it (pg_blocking_pids), and what it does while it holds it"},
		{Class: engine.Other, State: "Timeout:PgSleep", Waits: "slept in the server (pg_sleep)", Limit: cause.Sleep, Test: "repeat with statements without pg_sleep"},
		{Class: engine.RowLock, Waits: "waited for a row that another transaction changes", Limit: cause.RowLocks,
			Stopped: "find the session that held the rows (pg_blocking_pids), and what it did meanwhile"},
		{Class: engine.Lock, Waits: "waited for a lock of a table", Limit: cause.Locks},
		{Class: engine.Commit, Waits: "waited in commit, for the write-ahead log", Limit: cause.Commit},
		{Class: engine.Replication, Waits: "waited in commit for a synchronous standby", Limit: cause.Replication},
		{Class: engine.Disk, Waits: "waited for blocks or files", Limit: cause.Disk},
		{Class: engine.Latch, Waits: "waited for a lightweight lock, a buffer or a longer table", Limit: cause.Latches},
	},
	Advice: map[cause.Limit]string{
		cause.Locks:       "find what holds it (pg_blocking_pids): DDL, LOCK TABLE, VACUUM FULL or a backup in another session",
		cause.Commit:      "repeat with synchronous_commit=off, for the test only: if the throughput rises, this was the cause",
		cause.Replication: "repeat with synchronous_commit=local, for the test only: if the throughput rises, this was the cause",
		cause.Disk:        "repeat with larger shared_buffers or a faster disk",
		cause.Pool:        "repeat with larger shared_buffers, or with less data: if the throughput rises, this was the cause",
		cause.Checkpoint:  "repeat with a larger max_wal_size, and checkpoint_timeout longer than the run",
		cause.Connections: "raise max_connections above the threads and what else connects, or lower the threads",
	},
	Stalls: []cause.Stall{{Limit: cause.Checkpoint, Measure: CheckpointRunning, High: 0.5, Applies: requestsCheckpoints,
		Text: "%s wrote a checkpoint in at least %s of a second"}},
	Meanings: []cause.Meaning{{
		Limit: cause.Commit, Holds: func(v *cause.View) bool {
			return v.Setting("synchronous_commit") == "off" || v.Setting("fsync") == "off"
		},
		Test: "find what else holds commits, such as full WAL buffers: by its settings no commit waits for a flush (synchronous_commit, fsync)",
	}},
	Settings: map[cause.Limit]string{cause.Connections: "max_connections"},
	Messages: map[cause.Limit][]string{cause.Connections: {"too many clients already", "remaining connection slots are reserved", "too many connections for "}},
	Programs: []string{"postgres"}, PageCache: true,
	Causes: []cause.Cause{
		{Name: "synchronisations of the WAL", Of: []cause.Limit{cause.Commit}, Reads: "sessions in `IO:WALSync`, `IO:WALWrite`, `LWLock:WALWrite`; WAL synchronisations, their time, commits for each",
			Find: walSync, Test: "repeat with synchronous_commit=off for the test only, or with the WAL on a faster disk"},
		{Name: "full WAL buffers", Of: []cause.Limit{cause.Commit, cause.Latches}, Reads: "`wal_buffers_full`, transactions",
			Find: fullBuffers, Test: "repeat with larger wal_buffers"},
		{Name: "requested checkpoints", Of: []cause.Limit{cause.Commit, cause.Disk, cause.Checkpoint, cause.Latches}, Reads: "requested checkpoints, full-page images as a share of the WAL, `max_wal_size`",
			Find: requestedCheckpoints, Test: "repeat with a larger max_wal_size"},
		{Name: "a synchronous standby", Of: []cause.Limit{cause.Replication}, Reads: "sessions in `IPC:SyncRep`, and the synchronous standby that lacks the most WAL",
			Find: slowStandby, Test: "repeat with synchronous_commit=local, or without this standby"},
		{Name: "the holder of a lock", Of: []cause.Limit{cause.RowLocks, cause.Locks, cause.UserLocks}, Reads: "holders of locks (`pg_blocking_pids`), asked every 2 s",
			Find: holderOfLocks, Test: "end this session's transaction earlier, or repeat without it"},
		{Name: "a transaction left open", Of: []cause.Limit{cause.RowLocks, cause.Locks}, Reads: "the age of transactions in sessions that are idle",
			Find: idleTransaction, Test: "end transactions before the client does something else (idle_in_transaction_session_timeout)"},
		{Name: "the same rows", Of: []cause.Limit{cause.RowLocks}, Reads: "sessions that wait for rows at the same time, in `Lock:tuple` for their turn; the age of idle transactions",
			Find: sameRows, Test: "spread the changes over more rows (pgbench: a scale above the number of clients)"},
		{Name: "a lightweight lock", Of: []cause.Limit{cause.Latches}, Reads: "sessions by the name of the lock", Find: lightweightLock, Test: "repeat with fewer clients"},
		{Name: "shared buffers", Of: []cause.Limit{cause.Disk, cause.Pool}, Reads: "sessions in `IO:DataFileRead` and `IPC:BufferIO`, blocks read, their time, `shared_buffers`",
			Find: sharedBuffers, Test: "repeat with larger shared_buffers"},
		{Name: "temporary files", Of: cause.Statements, Reads: "sessions in `IO:BufFile…`; temporary bytes of statements, `work_mem`", Find: temporaryFiles, Test: "repeat with a larger work_mem"},
		{Name: "dead rows", Of: cause.Statements,
			Reads: "dead rows, the age and the holder of the oldest snapshot, blocks of statements", Find: deadRowsLeft, Test: "end the transaction or slot that holds the snapshot, then VACUUM"},
		{Name: "many blocks for few rows", Of: cause.Statements,
			Reads: "blocks and rows of statements (`pg_stat_statements`), rows returned by scans", Find: manyBlocks,
			Test: "look at its plan (EXPLAIN (ANALYZE, BUFFERS)), and create an index for its condition"},
		{Name: "planning", Of: cause.CPU, Reads: "planning time of statements (`pg_stat_statements.track_planning`)", Find: planning, Test: "repeat with prepared statements (pgbench -M prepared)"},
		{Name: "deadlocks", Of: []cause.Limit{cause.RowLocks, cause.Locks}, Reads: "deadlocks, `deadlock_timeout`, sessions that wait for rows",
			Find: deadlocksWaited, Test: "change the rows in the same order in all transactions"},
		{Name: "JIT compilation", Of: cause.Statements, Reads: "times of JIT compilation of statements (`pg_stat_statements`, version 15 and later)",
			Find: compiling, Test: "repeat with jit=off, or a higher jit_above_cost"},
		{Name: "parallel plans", Of: cause.CPU, Reads: "parallel workers, sessions that execute a statement", Find: parallelPlans,
			Test: "repeat with max_parallel_workers_per_gather=0: with as many clients as cores, workers only take turns with them"},
		{Name: "autovacuum", Of: slices.Concat(cause.CPU, []cause.Limit{cause.Disk}), Reads: "autovacuum workers, sessions that execute a statement", Find: autovacuums,
			Test: "repeat after VACUUM (ANALYZE) of the tables, or with a larger autovacuum_vacuum_cost_delay"},
		{Name: "updates that change every index", Of: slices.Concat(cause.CPU, []cause.Limit{cause.Disk, cause.Checkpoint, cause.Latches}),
			Reads: "updates, and those without a change of an index (HOT)", Find: coldUpdates,
			Test: "repeat without the index on the changed column, or with space in the blocks (fillfactor; pgbench -F 80)"},
		{Name: "transaction states and multixacts", Of: []cause.Limit{cause.Disk, cause.Latches}, Reads: "sessions in `IO:SLRU…`, `LWLock:MultiXact…`, `LWLock:Subtrans…`, `LWLock:XactSLRU`; `pg_stat_slru`",
			Find: smallCaches, Test: "repeat without foreign keys, FOR SHARE and savepoints; version 17: raise multixact_offset_buffers, subtransaction_buffers or transaction_buffers"},
		{Name: "a connection for each transaction", Of: append([]cause.Limit{cause.Outside, cause.RoundTrip}, cause.CPU...), Reads: "sessions opened for each transaction",
			Find: newConnections, Test: "keep connections open (pgbench without -C), or use a pooler"},
	},
})
